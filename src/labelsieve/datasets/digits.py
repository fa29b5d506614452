"""Built-in dataset of handwritten digits, labelled with attributes of the digit."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from labelsieve.datasets.noise import add_candidates
from labelsieve.io.dataset import Dataset
from labelsieve.io.writing import replacing

# Attribute -> the digits that have it. The docstring below explains them.
_ATTRIBUTES = {
    "even": (0, 2, 4, 6, 8),
    "prime": (2, 3, 5, 7),
    "multiple of three": (0, 3, 6, 9),
    "greater than four": (5, 6, 7, 8, 9),
    "perfect square": (0, 1, 4, 9),
    "power of two": (1, 2, 4, 8),
    "closed loop": (0, 6, 8, 9),
    "straight strokes": (1, 4, 7),
    "round bottom": (0, 3, 5, 6, 8),
}


def load_digits_attributes(
    *, noise: float = 0.2, random_state: int | np.random.Generator | None = 0
) -> Dataset:
    """Load handwritten digits whose labels are attributes of the digit.

    The features are real: 1797 digits written by 43 people, scanned and reduced to 8 x 8 pixels with
    values from 0 (paper) to 16 (ink), as included in scikit-learn [1]_. The true labels are facts about
    the digit, so they have no errors. Only the added candidates are artificial. You can see whether a
    selection is good: it should have pixels where the strokes differ, not on the margin, where several
    pixels are blank in every image.

    =================  =============  =======================================================
    label              digits         the digit...
    =================  =============  =======================================================
    even               0 2 4 6 8      is divisible by two
    prime              2 3 5 7        is a prime number
    multiple of three  0 3 6 9        is divisible by three
    greater than four  5 6 7 8 9      is more than four
    perfect square     0 1 4 9        is the square of an integer
    power of two       1 2 4 8        is a power of two
    closed loop        0 6 8 9        encloses paper (4 is open in most of the images)
    straight strokes   1 4 7          is drawn with straight strokes only
    round bottom       0 3 5 6 8      ends in a curve at the bottom
    =================  =============  =======================================================

    Every digit has at least one label, and no two digits have the same labels.

    Parameters
    ----------
    noise : float, default=0.2
        Probability that a label that the digit does not have becomes a candidate.
    random_state : int, numpy Generator or None, default=0
        Seed of the noise.

    Returns
    -------
    Dataset
        1797 rows, 64 features ``pixel_r_c`` (row and column, from the upper left), and 9 labels. `Y` holds
        the true labels and `Y_candidates` the noisy ones.

    References
    ----------
    .. [1] Alpaydin and Kaynak, "Optical recognition of handwritten digits", UCI Machine Learning
       Repository, 1998.

    Examples
    --------
    >>> from labelsieve.datasets.digits import load_digits_attributes
    >>> digits = load_digits_attributes()
    >>> digits.X.shape, digits.Y.shape
    ((1797, 64), (1797, 9))
    >>> digits.feature_names[:2], digits.label_names[:2]
    (('pixel_0_0', 'pixel_0_1'), ('even', 'prime'))
    >>> bool((digits.Y_candidates >= digits.Y).all())
    True
    """
    from sklearn.datasets import load_digits  # slow to import

    bunch = load_digits()
    has_attribute = np.array([[digit in digits for digits in _ATTRIBUTES.values()] for digit in range(10)])
    Y = has_attribute.astype(np.int64)[bunch.target]
    return Dataset(
        X=bunch.data,
        Y=Y,
        Y_candidates=add_candidates(Y, "flip", rate=noise, random_state=random_state),
        feature_names=tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8)),
        label_names=tuple(_ATTRIBUTES),
        name="digits",
        source="scikit-learn load_digits",
    )


def write_digits(folder: Path, n_rows: int = 500) -> Path:
    """Write the first digits as a table with a column of image files, and return the table.

    The columns are the image, the 64 pixels, and the noisy attributes separated by semicolons.
    """
    digits = load_digits_attributes()
    images = folder / "digits"
    images.mkdir(parents=True, exist_ok=True)
    for row, pixels in enumerate(digits.X[:n_rows]):
        ink = np.minimum(255 - pixels.reshape(8, 8) * 16, 255).clip(0).astype(np.uint8)
        with replacing(images / f"{row:04}.png") as stream:
            stream.write(_png(ink))
    attributes = np.array(digits.label_names, dtype=object)
    table = pd.DataFrame(digits.X[:n_rows].astype(int), columns=digits.feature_names)
    table.insert(0, "image", [f"digits/{row:04}.png" for row in range(n_rows)])
    table["attributes"] = [";".join(attributes[has > 0]) for has in digits.candidates[:n_rows]]
    path = folder / "digits.csv"
    with replacing(path) as stream:
        stream.write(table.to_csv(index=False, lineterminator="\n").encode())
    return path


def _png(grey: np.ndarray) -> bytes:
    """Return an image with values from 0 (black) to 255 (white) as a PNG file."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    height, width = grey.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits of grey, not interlaced
    lines = np.column_stack([np.zeros(height, dtype=np.uint8), grey]).tobytes()  # each without a filter
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", zlib.compress(lines)),
            chunk(b"IEND", b""),
        ]
    )
