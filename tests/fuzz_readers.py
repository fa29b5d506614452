"""Damage files of every format at random and read them: only a Dataset or a DatasetError may come out.

``python tests/fuzz_readers.py 60`` damages files for 60 seconds, ``python tests/fuzz_readers.py 60 7`` with the random
seed 7. Files that fail are kept in ``fuzz-failures``. Fix the reader and add the file to ``tests/data/corpus``.
"""

import gzip
import io
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

from labelsieve._text import printable
from labelsieve.io import Dataset, DatasetError, read, write

BLOWN_UP = [
    b"1e999", b"-1", b"999999999", b"1000000000", b"99999999999999999999", b"4194304", b"nan", b"inf", b"",
    b"0x10", b"1_0", b"-0.0", b"?", b"1e-400", b"2147483648", b"00", b"1.5",
]  # fmt: skip
TOKENS = [
    b"%", b"'", b'"', b"{", b"}", b"\0", b"\xff", b":", b",", b"\\", b"\n", b"\r", b"#", b"\t", b"@data\n",
    b"?", b" ", b"-C 7", b"<!DOCTYPE a>", b"&a;", b"label:", b"candidate:", b"nominal:", b";", b"|",
    b"\xef\xbb\xbf",
]  # fmt: skip

DENSE_ARFF = b"""% a comment
@RELATION 'Toy: -C 2' % another
@attribute 'it\\'s' {0,1}
@attribute beach {no, yes}
@attribute "a b" numeric
@attribute c real
@attribute place {2,10,'far away'}
@attribute when date "yyyy-MM-dd HH:mm"
@attribute id string
@data
0,yes,1.5,-2e3,10,"2020-01-02 03:04",one
1,no,?,0,'far away',"2021-01-02 03:04",'t, wo' % end
% between
1,'yes',3,4,2,"2022-01-02 03:04","thr\\"ee"
"""
SPARSE_ARFF = b"""@relation 'Toy: -C -2-weka.filters.Remove'
@attribute w0 numeric
@attribute w1 numeric
@attribute w2 {0,1,2}
@attribute sky {0,1}
@attribute sea {0,1}
@data
{0 1.5,2 2,4 1}
{}
{ 1 -3 , 3 1 }
{2 1,3 1,4 1}
"""
TEXT_CSV = b"""id,length,"colour, main",fly,swim
a1,1.5,red,TRUE,FALSE
a2,,blue,FALSE,TRUE
a3,2.5,"deep ""red\"\"",TRUE,TRUE
"""
LIBSVM = b"1,3 1:0.5 4:1 7:-2e-3\n2 2:1\n 3:4 5:6\n1,2,3\n"
EXTREME = b"4 8 5\n0,4 0:0.5 7:1\n2 1:1\n 3:4\n\n"


TAGS_CSV = b"""name;price;when;tags\r
"a;1";"1.234,50";01.02.2020;"red, blue"\r
b;?;13.02.2020;red\r
c;7;14.02.2020;\r
d;8;15.02.2020;"blue, green"\r
"""
RECORDS = b"""[{"id": "a", "size": 1.5, "tags": ["x", "y"], "in": {"a": 1}},
 {"id": "b", "size": null, "tags": [], "in": {"a": 2}}, {"id": "c", "size": 3, "tags": ["y"]}]
"""
JSON_LINES = b"""{"text": "red and blue", "vector": [1, 2, 3], "label": "yes"}
{"text": "green", "vector": [4, 5, 6], "label": "no"}
{"text": "\\u00e4", "vector": [7, 8, 9e3], "label": "yes"}
"""

#: Formats whose parsers can end the process if a file is damaged. Here they are read in a process of their own.
CRASHING = ("matlab 5", "matlab 5 packed", "matlab 5 packed sparse", "matlab 4", "parquet")
_SECONDS_PER_FILE = 60


def _toy(sparse=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 4)) * (rng.random((6, 4)) < 0.6)
    X[:, 0] = [0, 1, 2, 0, 1, 2]
    Y = (rng.random((6, 3)) < 0.4).astype(np.uint8)
    candidates = np.maximum(Y, rng.random((6, 3)) < 0.3).astype(np.uint8)
    if sparse:
        X, Y, candidates = sp.csr_array(X), sp.csr_array(Y), sp.csr_array(candidates)
    return Dataset(X, Y, candidates, name="toy", nominal=["x0"])


def _written(ending, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"toy.{ending}")
        write(data, path)
        return path.read_bytes()


def _matlab(**options):
    data = _toy(options.pop("sparse", False))
    stream = io.BytesIO()
    variables = {"data": data.X, "target": data.Y.T * 2.0 - 1 if not sp.issparse(data.Y) else data.Y.T * 1.0}
    scipy.io.savemat(stream, {**variables, "partial_labels": data.Y_candidates.T * 1.0}, **options)
    return stream.getvalue()


def _parquet():
    stream = io.BytesIO()
    frame = _toy().to_pandas()
    frame["text"] = ["a", "b", None, "a", "b", "c"]
    frame.to_parquet(stream)
    return stream.getvalue()


def _workbook():
    import openpyxl

    book = openpyxl.Workbook()
    for row in (
        ["x", "day", "tags"],
        [0.5, "2020-01-01", "a;b"],
        [1.5, None, "b"],
        ["=A1", "2020-01-03", ""],
    ):
        book.active.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _zipped():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toy.csv", TEXT_CSV)
    return stream.getvalue()


def _npy():
    stream = io.BytesIO()
    np.save(stream, np.hstack([_toy().X, _toy().Y]))
    return stream.getvalue()


def seeds():
    """Sound files by format: ending and content."""
    arff, xml = _written("arff", _toy()), b'<labels><label name="sky"/><label name="sea"/></labels>'
    truth = Dataset(_toy().X, _toy().Y)
    return {
        "arff dense": ("arff", DENSE_ARFF),
        "arff sparse": ("arff", SPARSE_ARFF),
        "xml": ("xml", xml),
        "csv numeric": ("csv", _written("csv", _toy())),
        "csv text": ("csv", TEXT_CSV),
        "matlab 5": ("mat", _matlab()),
        "matlab 5 packed": ("mat", _matlab(do_compression=True)),
        "matlab 5 packed sparse": ("mat", _matlab(sparse=True, do_compression=True)),
        "matlab 4": ("mat", _matlab(format="4")),
        "npz dense": ("npz", _written("npz", _toy())),
        "npz sparse": ("npz", _written("npz", _toy(sparse=True))),
        "parquet": ("parquet", _parquet()),
        "svmlight": ("svm", LIBSVM),
        "svmlight named": ("svm", _written("svm", truth)),
        "extreme": ("txt", EXTREME),
        "arff written": ("arff", arff),
        "csv tags": ("csv", TAGS_CSV),
        "tsv utf-16": ("tsv", TAGS_CSV.replace(b";", b"\t").decode().encode("utf-16")),
        "json": ("json", RECORDS),
        "json lines": ("jsonl", JSON_LINES),
        "excel": ("xlsx", _workbook()),
        "npy": ("npy", _npy()),
        "gzip": ("csv.gz", gzip.compress(TEXT_CSV, mtime=0)),
        "zip": ("zip", _zipped()),
    }


def damage(content, rng):
    """A few random changes to some bytes."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        start = rng.randrange(len(content) + 1)
        end = min(len(content), start + rng.choice((1, 2, 4, 8, 64)))
        match rng.randrange(6):
            case 0:
                if start < len(content):
                    content[start] ^= 1 << rng.randrange(8)
            case 1:
                content[start:start] = rng.choice(TOKENS)
            case 2:
                del content[start:end]
            case 3:
                del content[start:]
            case 4:
                _blow_up(content, rng)
            case 5:
                content[start:end] = rng.randbytes(end - start)
    return bytes(content)


def _blow_up(content, rng):
    """Put an awkward number in the place of a digit run."""
    digits = [index for index, byte in enumerate(content) if 48 <= byte <= 57]
    if digits:
        start = end = rng.choice(digits)
        while end < len(content) and 48 <= content[end] <= 57:
            end += 1
        content[start:end] = rng.choice(BLOWN_UP)


def read_damaged(folder, name, ending, content):
    """Read a damaged file the way its format is read; returns the kind of outcome."""
    options = {"missing": "mean"} | {
        "csv text": {"labels": "fly,swim", "ignore": "id"},
        "gzip": {"labels": "fly,swim"},
        "zip": {"labels": "fly,swim"},
        "json lines": {"labels": "label"},
        "tsv utf-16": {"labels": "tags", "unknown": "?"},
        "npy": {"labels": 3},
        "arff written": {"labels": "label*", "candidates": "candidate:*"},
        "arff dense": {"missing": "zero", "nominal": "onehot"},
    }.get(name, {})
    if name == "xml":
        path = Path(folder, "toy.arff")
        path.write_bytes(SPARSE_ARFF)
        Path(folder, "toy.xml").write_bytes(content)
    else:
        path = Path(folder, f"toy.{ending}")
        path.write_bytes(content)
    try:
        data = read(path, **options)
    except DatasetError as error:
        message = str(error)
        if str(path.parent) not in message or message != printable(message):
            raise AssertionError(f"the message must name the file on one line: {message!r}") from error
        return "DatasetError"
    assert np.isfinite(data.X.data if sp.issparse(data.X) else data.X).all()
    data.describe()
    return "Dataset"


def read_in_child(folder, name, ending, numbers, seed, log):
    """Read damaged files in a forked process until it ends, and write the outcome of each to `log`."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)  # messages of parsers that end the process
    warnings.simplefilter("ignore")
    content = seeds()[name][1]
    with open(log, "w") as lines:
        for number in numbers:
            print(number, end=" ", file=lines, flush=True)
            signal.alarm(_SECONDS_PER_FILE)
            try:
                outcome = read_damaged(
                    folder, name, ending, damage(content, random.Random(f"{seed} {name} {number}"))
                )
            except BaseException:
                outcome = "failure: " + traceback.format_exc().strip().replace("\n", " | ")[-600:]
            print(outcome, file=lines, flush=True)
    os._exit(0)


def fuzz(name, numbers, seed, kept):
    """Read damaged files of one format; returns the outcomes and keeps the files that failed."""
    ending, content = seeds()[name]
    outcomes, numbers = Counter(), list(numbers)
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile() as log:
        while numbers:
            status = read_in_child(folder, name, ending, numbers, seed, log.name)
            lines = Path(log.name).read_text().splitlines()
            found = {int(number): outcome for number, _, outcome in (line.partition(" ") for line in lines)}
            if os.WIFSIGNALED(status):
                found[max(found)] = f"crash: {signal.Signals(os.WTERMSIG(status)).name}"
            for number, outcome in found.items():
                kind = outcome.partition(":")[0]
                outcomes[kind] += 1
                if kind in ("crash", "failure"):
                    kept.mkdir(exist_ok=True)
                    damaged = damage(content, random.Random(f"{seed} {name} {number}"))
                    Path(kept, f"{name.replace(' ', '-')}-{seed}-{number}.{ending}").write_bytes(damaged)
                    with open(kept / "outcomes.txt", "a") as file:
                        print(name, seed, number, outcome, file=file)
            numbers = numbers[len(found) :]
    return outcomes


def main(seconds, seed=0, batch=200):
    """Fuzz all formats in turn until the time is over, then print a table of outcomes."""
    end, total = time.monotonic() + seconds, {name: Counter() for name in seeds()}
    first = 0
    while time.monotonic() < end:
        for name, outcomes in total.items():
            outcomes.update(fuzz(name, range(first, first + batch), seed, Path("fuzz-failures")))
        first += batch
    kinds = ("Dataset", "DatasetError", "crash", "failure")
    print(f"{'format':24}" + "".join(f"{kind:>14}" for kind in kinds))
    for name, outcomes in total.items():
        print(f"{name:24}" + "".join(f"{outcomes[kind]:14}" for kind in kinds))
    every = sum(total.values(), Counter())
    print(f"{'all ' + str(every.total()) + ' files':24}" + "".join(f"{every[kind]:14}" for kind in kinds))
    crashed = {name for name, outcomes in total.items() if outcomes["crash"]}
    return every["failure"] > 0 or not crashed <= set(CRASHING)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), *map(int, sys.argv[2:])))
