"""Tests of the state of a review, without HTTP."""

import shlex
from dataclasses import replace

import numpy as np
import pytest
from review_tables import LABELS, judge_truly, make_table, open_session

from conftest import run
from labelsieve import find_label_issues
from labelsieve.inspection._reviews import fit_reviewed
from labelsieve.inspection.cleaning import is_cleaned, provenance_file
from labelsieve.inspection.review import read_review
from labelsieve.io import Dataset, DatasetError, read
from labelsieve.review_app.session import OutOfDateError, Request, ReviewSession

DRAW, SUSPICIOUS, MISSING = Request("draw"), Request("suspicious"), Request("missing")


@pytest.fixture
def table(tmp_path):
    path, truth = make_table(tmp_path)
    return path, truth


@pytest.fixture
def session(table):
    opened = open_session(table[0])
    yield opened
    opened.close()


def place_of(key):
    return tuple(map(int, key.split("-")))


def left(session, queue, label=0):
    return {entry["id"]: entry["left"] for entry in session.view(Request(queue, label))["queues"]}[queue]


def test_the_draw_comes_first_in_random_order_and_is_the_same_after_a_restart(session, table):
    path, truth = table
    drawn = session.review
    keys = judge_truly(session, truth, DRAW, 20)
    assert set(map(place_of, keys)) == set(zip(drawn.rows.tolist(), drawn.labels.tolist(), strict=True))
    assert session.view(DRAW)["card"] is None
    session.close()
    again = open_session(path)
    assert again.n_resumed == 20
    np.testing.assert_array_equal(again.review.rows, drawn.rows)
    again.close()
    path.with_name("things.review.csv").unlink()
    other = open_session(path, random_state=1)
    assert other.review.rows.tolist() != drawn.rows.tolist()
    other.close()


def test_a_label_of_an_unfinished_draw_is_asked_only_there(session, table):
    drawn = {f"{row}-{label}" for row, label in zip(session.review.rows, session.review.labels, strict=True)}
    seen, skipped = set(), []
    while (key := session.view(replace(SUSPICIOUS, skipped=tuple(skipped)))["card"]["key"]) not in seen:
        seen.add(key)
        skipped.append(key)
    assert not seen & drawn
    n_candidates = int(session.dataset.candidates.sum())
    assert left(session, "suspicious") == n_candidates - 20
    judge_truly(session, table[1], DRAW, 20)
    assert left(session, "suspicious") == n_candidates - 20


def test_queues_ask_for_the_labels_they_name(session):
    candidates = session.dataset.candidates
    place = place_of(session.view(SUSPICIOUS)["card"]["key"])
    support = np.where(candidates > 0, session._model.support_, np.inf)
    assert support[place] <= np.sort(support.ravel())[25]
    card = session.view(MISSING)["card"]
    assert card["kind"] == "missing"
    assert not candidates[place_of(card["key"])]
    loud = session.dataset.label_names.index("loud")
    assert session.view(Request("label", loud))["card"]["label"] == "loud"
    grid = session.view(Request("label", loud, grid=()))["grid"]
    assert len(grid) == 12
    assert {card["label"] for card in grid} == {"loud"}
    assert left(session, "label", loud) < candidates[:, loud].sum()


def test_the_grid_keeps_its_cards_after_verdicts(session):
    keys = [card["key"] for card in session.view(Request("label", 0, grid=()))["grid"]]
    session.judge([(keys[2], "")], "wrong")
    session.judge([(key, "") for key in keys if key != keys[2]], "right")
    cards = session.view(Request("label", 0, grid=tuple(keys)))["grid"]
    assert [card["key"] for card in cards] == keys
    assert [card["verdict"] for card in cards].count("right") == 11
    assert not {card["key"] for card in session.view(Request("label", 0, grid=()))["grid"]} & set(keys)
    session.undo(2)  # all eleven at once
    assert session.view(SUSPICIOUS)["counts"]["right"] == 0
    assert session.view(SUSPICIOUS)["counts"]["wrong"] == 1


def test_verdicts_change_the_order_of_the_other_cards_as_a_fresh_fit_would(session, table):
    judge_truly(session, table[1], DRAW, 20)
    judge_truly(session, table[1], SUSPICIOUS, 15)
    order, review = session._orders["suspicious"], session.review
    candidates = session._model._candidates
    decided = review.take(np.flatnonzero(review.is_decided))
    positions = candidates.positions(decided.rows, decided.labels)
    model = fit_reviewed(candidates, positions, decided.answers.astype(float))
    expected = model.probability(candidates)
    found = order.first(n=1000)
    np.testing.assert_array_equal(np.diff(expected[found]) >= 0, True)
    assert len(found) == len(expected) - 35


def test_label_effects_of_labels_without_reviews_are_zero(session, table):
    """The fit leaves them out; a fit with all of them gives the same."""
    judge_truly(session, table[1], SUSPICIOUS, 6)
    candidates = session._model._candidates
    review = session.review.take(np.flatnonzero(session.review.is_decided))
    positions = candidates.positions(review.rows, review.labels)
    answers = review.answers.astype(float)
    model = fit_reviewed(candidates, positions, answers)
    X = np.column_stack([np.ones(len(positions)), *(column[positions] for column in candidates.columns())])
    E = (candidates.labels[positions][:, None] == np.arange(4)).astype(float)
    z = X @ np.r_[model.intercept, model.weights] + E @ model.label_effects
    residual = 1 / (1 + np.exp(-z)) - answers
    np.testing.assert_allclose(E.T @ residual + 10 * model.label_effects, 0, atol=1e-8)
    others = 0.1 * np.r_[model.intercept, np.zeros(6)] + 30 * np.r_[0, model.weights - np.eye(6)[0]]
    np.testing.assert_allclose(X.T @ residual + others, 0, atol=1e-8)


def test_cards_that_follow_each_other_are_not_about_the_same_row(session, table):
    keys = judge_truly(session, table[1], SUSPICIOUS, 30)
    rows = [place_of(key)[0] for key in keys]
    assert all(rows[at] not in rows[max(0, at - 3) : at] for at in range(1, 30))


def test_near_duplicates_are_kept_apart(tmp_path):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 5)), 2, axis=0) + 0.01 * rng.normal(size=(120, 5))
    Y = np.column_stack([X[:, 0] > 0, X[:, 0] <= 0]).astype(int)
    Y[:60:2] = 1
    Y[1:60:2] = 1
    session = ReviewSession(Dataset(X, Y_candidates=Y), tmp_path / "r.csv", tmp_path / "c.csv", n_drawn=10)
    pairs = []
    for _ in range(30):
        key = session.view(SUSPICIOUS)["card"]["key"]
        session.judge([(key, "")], "wrong")
        pairs.append(place_of(key)[0] // 2)
    assert all(pairs[at] != pairs[at - 1] for at in range(1, 30))
    assert len(set(pairs)) < 30


def test_undo_goes_back_to_the_first_verdict_even_after_a_restart(session, table):
    path, truth = table
    keys = judge_truly(session, truth, DRAW, 3)
    session.judge([(keys[0], session.view(Request(card=keys[0]))["card"]["verdict"])], "unsure")
    session.close()
    again = open_session(path)
    first = again.view(DRAW)
    assert first["last"]["key"] == keys[0]
    assert first["last"]["number"] == 4
    undone = [again.undo(number) for number in (4, 3, 2, 1)]
    assert undone == [keys[0], keys[2], keys[1], keys[0]]
    assert again.view(DRAW)["card"]["key"] == keys[0]
    assert (again.review.answers == -1).all()
    with pytest.raises(OutOfDateError):
        again.undo(0)
    again.close()
    assert (read_review(again.file, again.dataset).answers == -1).all()


def test_a_page_that_is_out_of_date_changes_nothing(session):
    key = session.view(DRAW)["card"]["key"]
    session.judge([(key, "")], "right")
    before = session.file.read_bytes()
    for verdict in ("wrong", "right"):  # another answer, and the same one sent again
        with pytest.raises(OutOfDateError):
            session.judge([(key, "")], verdict)
    with pytest.raises(OutOfDateError):
        session.undo(7)
    with pytest.raises(OutOfDateError):
        session.draw_next()
    assert session.file.read_bytes() == before
    session.judge([(key, "right")], "wrong")
    assert session.view(DRAW)["counts"]["wrong"] == 1


@pytest.mark.parametrize("key", ["", "1", "-1-0", "1-9", "999-0", "1-0-0", "a-b", "1-0" * 20, "²-0"])
def test_other_keys_are_rejected(session, key):
    with pytest.raises(ValueError, match="card"):
        session.judge([(key, "")], "right")
    with pytest.raises(ValueError, match="card"):
        session.view(Request(card=key))


def test_a_failed_write_changes_nothing(session, monkeypatch):
    key = session.view(DRAW)["card"]["key"]

    def fail(review):
        raise DatasetError("disk full")

    monkeypatch.setattr(session._journal, "append", fail)
    with pytest.raises(DatasetError):
        session.judge([(key, "")], "right")
    assert session.view(DRAW)["card"]["key"] == key
    assert session.view(DRAW)["counts"]["right"] == 0
    assert session.view(DRAW)["version"] == 1


def complete(session, truth, n=20):
    judge_truly(session, truth, DRAW, n)
    return find_label_issues(
        session.dataset.X, session.dataset.candidates, checked=session.review, label_names=session.dataset.label_names
    )  # fmt: skip


def test_no_estimate_before_the_draw_is_complete_and_then_that_of_the_library(session, table):
    judge_truly(session, table[1], DRAW, 19)
    assert session.view(DRAW)["answers"] == []
    issues = complete(session, table[1], 1)
    view = session.view(DRAW)
    interval = issues.error_interval()
    assert view["answers"][0].startswith(interval.describe("wrong"))
    assert view["finish"]["removable"] == len(issues.removable(0.1))


def test_the_support_before_the_review_decides_about_removals(tmp_path):
    path, truth = make_table(tmp_path, n_rows=600, rate=0.4)
    session = open_session(path, n_drawn=60)
    issues = complete(session, truth, 60)
    expected = issues.removable(0.1)
    assert len(expected) > 10
    judge_truly(session, truth, SUSPICIOUS, 12)
    found = session._removals()
    reviewed = session.review.rows * 4 + session.review.labels
    kept = ~np.isin(expected.rows * 4 + expected.labels, reviewed)
    assert 0 < kept.sum() < len(expected)
    np.testing.assert_array_equal(found.rows, expected.rows[kept])
    np.testing.assert_array_equal(found.labels, expected.labels[kept])
    session.close()


@pytest.mark.parametrize(("verdict", "low", "high"), [("right", 0, 0), ("wrong", 20, 20), ("unsure", 0, 20)])
def test_unsure_is_right_at_the_lower_end_and_wrong_at_the_upper(session, verdict, low, high):
    for _ in range(20):
        session.judge([(session.view(DRAW)["card"]["key"], "")], verdict)
    interval = session._promises().issues.error_interval()
    n = interval.n_labels
    assert interval.n_low <= low * n / 20 <= interval.n_high
    assert interval.n_high >= high * n / 20
    assert (interval.n_low == 0) == (low == 0)
    assert (interval.n_high == n) == (high == 20)
    # For removals, unsure labels are right.
    assert (len(session._removals()) > 0) == (verdict == "wrong")


def test_another_draw_is_from_the_least_supported_fifth(session, table):
    for _ in range(20):
        session.judge([(session.view(DRAW)["card"]["key"], "")], "right")
    assert session.view(DRAW)["draw"]["can_draw"]
    session.draw_next()
    view = session.view(DRAW)
    n_left = view["queues"][0]["left"]
    assert view["draw"] == {"number": 2, "size": n_left, "done": 0, "complete": False, "can_draw": False}
    support = session._model.support_[session.dataset.candidates > 0]
    key = place_of(view["card"]["key"])
    assert session._model.support_[key] <= np.quantile(support, 0.25)
    judge_truly(session, table[1], DRAW, n_left)
    session.close()
    again = open_session(table[0])
    assert [draw.id for draw in again.review.draws] == ["1:all", "2:least-20%"]
    assert again.view(DRAW)["draw"]["complete"]
    again.close()


def test_verdicts_of_another_file_start_a_review(session, table):
    path, truth = table
    judge_truly(session, truth, DRAW, 20)
    judge_truly(session, truth, MISSING, 2)
    session.close()
    checked = session.review
    new = path.with_name("new.csv")
    other = open_session(path, file=new, checked=checked)
    assert other.review.draws == checked.draws
    assert other.view(DRAW)["counts"] == session.view(DRAW)["counts"]
    other.close()
    with pytest.raises(DatasetError, match="--checked"):
        open_session(path, file=new, checked=checked)
    # Verdicts without a draw: a draw is made.
    decided = replace(checked.take(np.arange(5)), numbers=np.zeros(5, dtype=int), draws=())
    with_draw = open_session(path, file=path.with_name("drawn.csv"), checked=decided)
    assert with_draw.view(DRAW)["draw"]["size"] == 20
    assert sum(with_draw.view(DRAW)["counts"].values()) == 5
    with_draw.close()


def test_the_copy_and_the_commands_give_the_same_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, truth = make_table(tmp_path, n_rows=600, rate=0.4)
    arguments = (["things.csv", "--labels", "tags"], [])
    session = open_session(path, n_drawn=60, arguments=arguments)
    judge_truly(session, truth, DRAW, 60)
    judge_truly(session, truth, SUSPICIOUS, 5)
    judge_truly(session, truth, MISSING, 5)
    for with_removals in (False, True):
        copy = session.write(with_removals=with_removals)
        written = copy.path.read_bytes()
        sidecar = provenance_file(copy.path).read_text()
        n_wrong, n_removable = (
            session.view(DRAW)["counts"]["wrong"],
            session.view(DRAW)["finish"]["removable"],
        )
        assert copy.n_removed == n_wrong + (n_removable if with_removals else 0)
        assert copy.n_added == session.view(DRAW)["counts"]["missing"]
        copy.path.unlink()
        provenance_file(copy.path).unlink()
        for command in session.commands(with_removals=with_removals):
            assert run(capsys, *shlex.split(command)[1:])[0] == 0
        assert copy.path.read_bytes() == written
        assert provenance_file(copy.path).read_text() == sidecar
        assert is_cleaned(read(copy.path, "tags"))
        (tmp_path / "things.review.all.csv").unlink(missing_ok=True)
    session.close()


def test_the_source_never_changes(session, table):
    before = table[0].read_bytes()
    judge_truly(session, table[1], SUSPICIOUS, 5)
    session.write(with_removals=True)
    assert table[0].read_bytes() == before


def test_reasons_count_other_rows(session):
    card = session.view(SUSPICIOUS)["card"]
    row, label = place_of(card["key"])
    against = card["reasons"]["against"]
    assert against
    column = session.dataset.feature_names.index(against[0]["column"])
    words = against[0]["detail"].split()
    k, n = int(words[0]), int(words[2])
    distance = np.abs(session.dataset.X[:, column] - session.dataset.X[row, column])
    similar = distance <= np.sort(distance)[12]
    similar[row] = False
    has = session.dataset.candidates[:, label] > 0
    assert (k, n) == ((similar & ~has).sum(), similar.sum())
    assert against[0]["detail"].endswith(f"similar values do not have {card['label']}")


def test_a_card_shows_the_row_but_not_the_verdict_of_the_columns(session):
    card = session.view(DRAW)["card"]
    row, label = place_of(card["key"])
    assert card["row"] == f"thing {row}"
    assert [name for name, _ in card["facts"]] == [f"size {k}" for k in range(6)]
    assert [text["name"] for text in card["texts"]] == ["note"]
    names = session.dataset.label_names
    has = {names[other] for other in np.flatnonzero(session.dataset.candidates[row])}
    assert set(card["others"]) == has - {names[label]}
    assert set(LABELS) == set(names)


def test_labels_without_variation_cannot_be_reviewed(tmp_path):
    dataset = Dataset(np.arange(6.0)[:, None], Y_candidates=np.ones((6, 1), dtype=int))
    with pytest.raises(DatasetError, match="some rows but not in all"):
        ReviewSession(dataset, tmp_path / "r.csv", tmp_path / "c.csv")
    assert not (tmp_path / "r.csv").exists() or (tmp_path / "r.csv").stat().st_size == 0
