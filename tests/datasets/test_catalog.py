import os
import re
from pathlib import Path

import numpy as np
import pytest

from labelsieve.datasets import load, load_digits_attributes, make_pml
from labelsieve.datasets.catalog import CATALOG

NEEDS_DATA = pytest.mark.skipif(
    not os.environ.get("LABELSIEVE_DATA"),
    reason="LABELSIEVE_DATA is not set to a folder with the benchmark files",
)
ALL_FILES = [(entry.name, file) for entry in CATALOG.values() for file in entry.files]


def test_catalog_has_the_datasets_of_the_paper_and_real_candidates():
    eight = {"birds", "cal500", "chd_49", "corel5k", "languagelog", "slashdot", "water_quality", "yeast"}
    assert eight | {"mirflickr"} <= set(CATALOG)


def test_built_in_datasets_are_reproducible():
    X, _, Y, _ = make_pml(
        300, 60, n_informative=8, n_labels=8, label_density=0.25, return_truth=True, random_state=0
    )
    planted = load("planted")
    np.testing.assert_array_equal(planted.X, X)
    np.testing.assert_array_equal(planted.Y, Y)
    assert planted.Y_candidates is None
    digits, same = load("Digits"), load_digits_attributes()
    for part in ("X", "Y", "Y_candidates"):
        np.testing.assert_array_equal(getattr(digits, part), getattr(same, part))
    assert all((entry.make is None) == bool(entry.files) for entry in CATALOG.values())


def test_keys_equal_the_names_of_entries():
    assert all(entry.name == name == name.lower() for name, entry in CATALOG.items())


def test_catalog_is_immutable():
    with pytest.raises(TypeError, match="does not support item assignment"):
        CATALOG["new"] = CATALOG["yeast"]
    with pytest.raises(AttributeError, match="cannot assign to field"):
        CATALOG["yeast"].shape = (1, 1, 1)


@pytest.mark.parametrize(("name", "file"), ALL_FILES, ids=lambda value: getattr(value, "name", value))
def test_every_file_has_a_checksum_and_urls_with_a_commit(name, file):
    assert re.fullmatch("[0-9a-f]{64}", file.sha256)
    assert file.urls
    for url in file.urls:
        assert re.fullmatch(r"https://[\w.]+/[\w./-]+[/@][0-9a-f]{40}/[\w./%-]+", url)
        assert url.endswith(f"/{file.name}")


def test_checksums_and_urls_are_unique():
    checksums = [file.sha256 for _, file in ALL_FILES]
    urls = [url for _, file in ALL_FILES for url in file.urls]
    assert len(set(checksums)) == len(checksums)
    assert len(set(urls)) == len(urls)


@pytest.mark.parametrize("entry", CATALOG.values(), ids=list(CATALOG))
def test_every_entry_has_a_citation_and_a_licence(entry):
    assert re.search(r"\d{4}$", entry.citation)
    assert entry.licence
    assert entry.domain
    assert entry.cardinality is None or 0 < entry.cardinality < entry.shape[2]


@NEEDS_DATA
def test_checksums_equal_the_published_ones():
    folder = Path(os.environ["LABELSIEVE_DATA"])
    published = {}
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        checksum, path = line.split()
        published[Path(path).as_posix()] = checksum
    known = {f"{name}/{file.name}": file.sha256 for name, file in ALL_FILES}
    assert published.items() <= known.items()
