"""Tests of tables in many formats, with planted columns and wrong labels."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from labelsieve import ColumnSelector, EvidenceSelector, find_label_issues
from labelsieve.io import read
from strangers import make_strangers

NAMES = ("tickets", "songs", "patients", "products")


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    return make_strangers(tmp_path_factory.mktemp("strangers"))


@pytest.fixture(scope="module")
def tables(strangers):
    return {name: read(stranger.path, **stranger.options) for name, stranger in strangers.items()}


@pytest.mark.parametrize("name", NAMES)
def test_the_role_of_every_column_is_inferred(strangers, tables, name):
    stranger, table = strangers[name], tables[name]
    roles = {column.name: column.role for column in table.columns}
    assert {column: roles[column] for column in stranger.roles} == stranger.roles
    assert table.label_names == stranger.label_names
    assert table.id_column == stranger.id_column


@pytest.mark.parametrize("name", NAMES)
def test_the_planted_columns_come_first(strangers, tables, name):
    stranger, table = strangers[name], tables[name]
    n_planted = len(stranger.planted)
    found = ColumnSelector(EvidenceSelector(), table.column_of, n_planted).fit(table.X, table.Y)
    assert {table.columns[place].name for place in found.columns_[found.get_support()]} == stranger.planted


@pytest.mark.parametrize("name", NAMES)
def test_planted_wrong_labels_are_flagged_early(strangers, tables, name):
    stranger, table = strangers[name], tables[name]
    issues = find_label_issues(table.X, table.Y, label_names=table.label_names)
    is_wrong = np.array(
        [
            (row, table.label_names[label]) in stranger.wrong
            for row, label in zip(issues.rows, issues.labels, strict=True)
        ]
    )
    assert is_wrong.sum() == len(stranger.wrong)
    assert roc_auc_score(is_wrong, -np.arange(len(is_wrong))) > 0.65
