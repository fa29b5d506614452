"""Built-in table of animals with correct and wrong tags."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from labelsieve.io import Dataset, read

#: File with one row per animal and a column of tags.
ANIMALS_CSV = Path(__file__).with_name("animals.csv")


def load_animals() -> Dataset:
    """Load a table of 101 animals with 238 correct and 86 wrong tags.

    The columns and the correct tags are those of the Zoo dataset [1]_. A tag is the class of the
    animal (mammal, bird, fish, reptile, amphibian, insect or other invertebrate) or a property:
    airborne, aquatic, domestic, predator, venomous. Every tag that an animal does not have was
    added with probability 0.1. The dataset has two rows named frog; here the venomous one is
    called poison frog.

    Returns
    -------
    Dataset
        101 rows, 11 columns, 12 labels. `Y` holds the correct tags and `Y_candidates` all tags.

    References
    ----------
    .. [1] Forsyth, "Zoo", UCI Machine Learning Repository, 1990, doi:10.24432/C5R59V, licensed
       under CC BY 4.0.

    Examples
    --------
    >>> from labelsieve.datasets import load_animals
    >>> animals = load_animals()
    >>> animals.X.shape, int(animals.Y.sum()), int(animals.Y_candidates.sum())
    ((101, 11), 238, 324)
    >>> animals.feature_names[:4]
    ('hair', 'feathers', 'lays_eggs', 'gives_milk')
    """
    animals = read(ANIMALS_CSV, "tags", id="name")
    correct = pd.read_csv(ANIMALS_CSV.with_name("animals_true_tags.csv"))["tags"].str.get_dummies(";")
    Y = correct[list(animals.label_names)].to_numpy()
    return replace(
        animals, Y=Y, Y_candidates=animals.candidates, source="UCI Machine Learning Repository, Zoo"
    )
