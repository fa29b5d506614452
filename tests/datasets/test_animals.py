import numpy as np

from labelsieve.datasets import load_animals

CLASSES = ("amphibian", "bird", "fish", "insect", "invertebrate", "mammal", "reptile")


def test_every_animal_has_one_class():
    animals = load_animals()
    classes = [animals.label_names.index(name) for name in CLASSES]
    np.testing.assert_array_equal(animals.Y[:, classes].sum(axis=1), 1)


def test_wrong_tags_are_added_with_probability_one_tenth():
    animals = load_animals()
    absent = animals.Y == 0
    assert (animals.Y_candidates >= animals.Y).all()
    assert abs(animals.Y_candidates[absent].mean() - 0.1) < 3 * np.sqrt(0.09 / absent.sum())


def test_tags_agree_with_common_knowledge():
    animals = load_animals()
    rows, labels = list(animals.row_ids), list(animals.label_names)

    def has(row, label):
        return animals.Y[rows.index(row), labels.index(label)] == 1

    assert has("dolphin", "mammal")
    assert has("dolphin", "aquatic")
    assert has("penguin", "bird")
    assert not has("penguin", "airborne")
    assert not has("crayfish", "mammal")
    assert len(set(rows)) == 101
