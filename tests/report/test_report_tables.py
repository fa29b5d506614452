import csv
import io
import re
import unicodedata

import numpy as np
import pandas as pd
import pytest

from labelsieve.report.page import make_report
from labelsieve.report.summary import as_records
from labelsieve.report.tables import FORMATS, Table, as_latex, as_markdown, show
from synthetic_runs import PAPER_DATASETS, PAPER_METHODS, PRINTED, make_summary, noisy, ranked

HOSTILE = (
    "=cmd|' /C calc'!A0",
    "@SUM(A1)",
    "-1+2",
    r"\input{/etc/passwd}",
    "100% & $5 #1_a^b~{c}",
    "a|b*c_d`e`",
    "<script>alert(1)</script>",
    "two\nlines",
    "\x1b[31mred\x07 \u202eturned",
)


def tables(run):
    """Tables of the report of a run, by the name of their files."""
    return {table.stem: table for section in make_report(run).sections for table in section.all_tables}


def texts(rows):
    """Return the texts of rows of cells."""
    return [[cell.text for cell in row] for row in rows]


def small(**options):
    """Make a metric table with simple numbers."""
    means = {("one", "a"): 0.25, ("one", "b"): 0.5, ("two", "a"): 0.5, ("two", "b"): 0.125}

    def value(*, dataset, method, size, fold, **_):
        # Values at sizes 10 and 20 are 0.1 below and above the mean.
        if method == "no-features":
            return 0.02 * fold - 0.01 + (0.2)
        return 0.02 * fold - 0.01 + (means[dataset, method] + (-0.1 if size == 10 else 0.1))

    run = make_summary(value, metrics=("ranking_loss",), references=("no-features",), **options)
    return tables(run)["ranking_loss"]


def test_best_second_and_average_ranks_are_shown():
    lines = as_markdown(small()).splitlines()
    # At every size the two folds are 0.01 from the mean: std = sqrt(2 * 0.0001) = 0.014.
    assert lines[4:] == [
        "| dataset      |                        a |                        b |     no-features |",
        "| ------------ | -----------------------: | -----------------------: | --------------: |",
        "| one          |        **0.250** ± 0.014 | <ins>0.500</ins> ± 0.014 | 0.200 † ± 0.014 |",
        "| two          | <ins>0.500</ins> ± 0.014 |        **0.125** ± 0.014 |   0.200 ± 0.014 |",
        "| average rank |                 **1.50** |                 **1.50** |               – |",
    ]
    assert lines[0] == "### Ranking loss ↓"
    assert "standard deviation over folds" in lines[2]


def test_the_deviation_over_folds_is_pooled_over_the_sizes():
    """Folds differ by 0.06 at one size only, and the means at both sizes differ by 0.2."""
    run = make_summary(
        lambda size, fold, **_: 0.3 if size == 10 else 0.47 + 0.06 * fold, datasets=("one",), methods=("a",)
    )
    row = tables(run)["ranking_loss"].frame.iloc[0]
    # At the second size the deviation is 0.06 / sqrt(2); the mean of squares is half its square.
    assert row["a std over folds"] == pytest.approx(0.06 / 2, rel=1e-5)
    assert row["a std over sizes"] == pytest.approx(0.2 / 2**0.5)


def test_references_are_ranked_under_every_classifier():
    """The second classifier reverses the order."""
    order = {"linear-svm": ("a", "b", "sum-f"), "ml-knn": ("sum-f", "b", "a")}

    def value(*, method, classifier, **_):
        return order[classifier].index(method) / 4

    run = make_summary(value, metrics=("ranking_loss",), references=("sum-f",), classifiers=tuple(order))
    made = tables(run)
    assert as_records(made["conditions_with_references"].flat) == [
        {"method": "a", "as above": 1.0, "ml-knn": 3.0},
        {"method": "b", "as above": 2.0, "ml-knn": 2.0},
        {"method": "sum-f", "as above": 3.0, "ml-knn": 1.0},
    ]
    assert texts(made["conditions"].rows) == [["as above", "1.00", "2.00"], ["ml-knn", "2.00", "1.00"]]


def test_latex_is_a_booktabs_table():
    text = as_latex(small())
    for command in (r"\toprule", r"\midrule", r"\bottomrule", r"\multicolumn{2}{c}{methods} & references"):
        assert command in text
    assert (
        r"one & \textbf{0.250} $\pm$ 0.014 & \underline{0.500} $\pm$ 0.014 & 0.200$^\dagger$ $\pm$ 0.014 \\"
        in text
    )
    assert r"\caption{Ranking loss $\downarrow$." in text
    assert "\\midrule\naverage rank" in text
    assert r"average rank & \textbf{1.50} & \textbf{1.50} & -- \\" in text


def test_csv_holds_numbers_in_full():
    rows = list(csv.reader(io.StringIO(FORMATS["csv"](small()))))
    spreads = ("std over folds", "std over sizes")
    names = [f"{name} {spread}".strip() for name in "ab" for spread in ("", *spreads)]
    assert rows[0][:-2] == ["dataset", *names]
    # A reference without sizes has no standard deviation over sizes.
    assert rows[0][-2:] == ["no-features", "no-features std over folds"]
    # Sizes 10 and 20 are 0.1 from the mean, folds 0.01.
    assert list(map(float, rows[1][1:4])) == pytest.approx([0.25, 0.01 * 2**0.5, 0.1 * 2**0.5], rel=1e-5)
    assert rows[3] == ["average rank", "1.5", "", "", "1.5", "", "", "", ""]


def test_gaps_are_shown_as_such():
    run = make_summary(noisy(), skip=lambda dataset, method, **_: (dataset, method) == ("one", "b"))
    table = tables(run)["ranking_loss"]
    assert table.rows[0][2].text == "–"
    assert list(csv.reader(io.StringIO(FORMATS["csv"](table))))[1][4:] == ["", "", ""]


@pytest.fixture
def hostile():
    """Hostile names as title, note, headings, names of rows and texts."""
    frame = pd.DataFrame(dict.fromkeys(HOSTILE[1:], HOSTILE), index=pd.Index(HOSTILE, name=HOSTILE[0]))
    groups = dict.fromkeys(HOSTILE[1:], "group &_%")
    return Table("x_%", HOSTILE[4], frame, note=HOSTILE[3], groups=groups)


def test_names_cannot_inject_latex(hostile):
    text = as_latex(hostile)
    # Without escaped characters, braces and dollars must balance and only known commands may occur.
    bare = re.sub(r"\\[&%$#_{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert "%" not in bare.replace("% needs", "").replace("{!}{%", "")
    assert "#" not in bare
    assert r"\input" not in bare
    body = bare[bare.index(r"\toprule") : bare.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {line.count(" & ") for line in rows} == {len(HOSTILE) - 1}


def test_names_cannot_inject_spreadsheet_formulas(hostile):
    rows = list(csv.reader(io.StringIO(FORMATS["csv"](hostile))))
    assert len(rows) == 1 + len(HOSTILE)
    for cell in (text for row in rows for text in row):
        assert not cell.startswith(("=", "+", "-", "@"))
    # Negative numbers are not escaped.
    assert (
        FORMATS["csv"](Table("t", "t", pd.DataFrame({"x": [-0.5]}, index=pd.Index([1], name="n"))))
        == "n,x\n1,-0.5\n"
    )


def test_names_cannot_inject_markdown(hostile):
    lines = as_markdown(hostile).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + len(HOSTILE)
    # All rows have the same number of cells and the same width.
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {len(HOSTILE) + 1}
    assert len({len(line) for line in table}) == 1
    assert "<script" not in "".join(lines)


@pytest.mark.parametrize("write", FORMATS.values())
def test_escape_sequences_reach_no_file(hostile, write):
    text = write(hostile)
    assert not {letter for letter in text if unicodedata.category(letter) in ("Cc", "Cf")} - {"\n"}
    assert "red" in text


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.0004, "p", "<0.001"),
        (0.0104, "p", "0.010"),
        (-0.25, "+.2f", "−0.25"),
        (-0.001, "+.2f", "0.00"),
        (np.inf, ".3f", "∞"),
        (np.nan, ".3f", "–"),
        (None, ".3f", "–"),
        (3, ".3f", "3"),
        (2010.4, "sig", "2010"),
        (0.01234, "sig", "0.0123"),
    ],
)
def test_numbers_are_formatted_for_readers(value, form, text):
    assert show(value, form) == text


def test_records_have_none_for_missing_and_infinite_values():
    frame = pd.DataFrame({"x": [np.inf, np.nan, 0.5], "n": [1, 2, 3]}, index=pd.Index(list("abc"), name="m"))
    assert [row["x"] for row in as_records(frame)] == [None, None, 0.5]


def test_average_ranks_are_sorted_with_references_last():
    run = make_summary(ranked(("all-features", "b", "a")), references=("all-features",))
    assert texts(tables(run)["average_ranks"].rows) == [
        ["b", "1.00", "1.00", "1.00", "2.00"],
        ["a", "2.00", "2.00", "2.00", "3.00"],
        ["all-features", "–", "–", "–", "1.00"],
    ]


def test_win_tie_loss_notes_the_smallest_p_value_if_too_large():
    made = tables(make_summary(ranked(("a", "b"))))
    few, p_values = made["win_tie_loss"], made["wilcoxon"]
    assert texts(few.rows) == [["b", "2/0/0", "2/0/0", "4/0/0"]]
    # Two datasets: 2 * 0.5^2 = 0.5.
    assert "0.500" in few.note
    assert p_values.frame["p (Wilcoxon)"].tolist() == [0.5, 0.5]
    many = tables(make_summary(ranked(("a", "b")), datasets=tuple(map(str, range(8)))))["win_tie_loss"]
    # Eight: 2 * 0.5^8 = 0.008.
    assert "0.0" not in many.note.replace("0.05", "")
    assert {cell.mark for cell in many.rows[0][1:3]} == {"best"}


def test_paper_tables_show_our_values_and_the_papers():
    run = make_summary(lambda **_: 0.4, datasets=("birds",), methods=PAPER_METHODS, metrics=("ranking_loss",))
    made = tables(run)
    # Ties have no order to correlate.
    assert texts(made["paper_ranking_loss"].rows)[0][:2] == ["birds", "0.40 / 0.32"]
    assert texts(made["paper_ranking_loss"].rows)[0][-2:] == ["–", "–"]
    first = texts(made["paper_cells"].rows)[0]
    assert first == ["ranking loss", "birds", "pml-fsmir", "0.400", "0.32", "+0.080"]


def test_agreement_with_the_paper_by_judge_and_metric():
    """One judge has the paper's values, the other adds 0.1 except for PML-FSMIR. Frequencies are 0."""

    def value(method, metric, dataset, classifier, **_):
        if method == "every-label":
            return 0.0
        more = 0.1 * (classifier == "shifted" and method != "pml-fsmir")
        return PRINTED[metric, dataset, method] + more

    run = make_summary(
        value,
        datasets=PAPER_DATASETS,
        methods=PAPER_METHODS,
        references=("every-label",),
        classifiers=("exact", "shifted"),
        metrics=("ranking_loss", "average_precision"),
        n_folds=1,
    )
    made = tables(run)
    overall, by_metric = (
        as_records(made[stem].flat) for stem in ("paper_agreement", "paper_agreement_by_metric")
    )
    assert [row["judged by"] for row in overall] == ["exact", "shifted"]
    exact, shifted = overall
    assert exact["cells"] == 144
    assert exact["correlation"] == exact["Spearman"] == pytest.approx(1)
    assert exact["mean difference"] == pytest.approx(0, abs=1e-12)
    assert shifted["mean difference"] == pytest.approx(0.1 * 8 / 9)
    assert shifted["difference of pml-fsmir"] == pytest.approx(0, abs=1e-12)
    assert exact["rank of pml-fsmir"] == pytest.approx(exact["rank in the paper"])
    # At 0, frequencies have the best ranking loss and the worst average precision of nine.
    assert exact["rank among ours"] == exact["rank among the printed"] == 5
    named = {(row["judged by"], row["metric"]): row for row in by_metric}
    assert named["exact", "ranking loss"]["rank among the printed"] == 1
    assert named["shifted", "average precision"]["rank among ours"] == 9
    assert named["exact", "ranking loss"]["cells"] == 72


def test_means_use_the_same_datasets_for_all_methods():
    run = make_summary(
        lambda dataset, **_: float(dataset == "two"),
        noises=(("flip 0", 0.0), ("flip 0.2", 0.2)),
        fails=lambda dataset, method, **_: (dataset, method) == ("two", "b"),
    )
    table = tables(run)["noise_flip_ranking_loss"]
    assert texts(table.rows) == [["a", "0.000", "0.000"], ["b", "0.000", "0.000"]]
    assert "1 dataset: one" in table.note
    stable = tables(run)["stability_kuncheva"]
    assert texts(stable.foot) == [["mean", "1.00", "–"]]


def test_variants_are_compared_with_the_full_method():
    run = make_summary(ranked(("whole", "part")), methods=(), ablation=("whole", "part"))
    table = tables(run)["ablation"]
    assert texts(table.rows)[0] == ["Ranking loss ↓", "0.000", "0.100 (0 of 2)"]


def test_gains_of_parts_have_one_row_per_judge():
    def value(method, classifier, dataset, metric, **_):
        gain = 0.2 if classifier == "own-weights" else -0.1 * (dataset == "two")
        better = gain * (method == "whole")
        return 0.5 - better if metric == "ranking_loss" else 0.5 + better

    run = make_summary(
        value, methods=(), ablation=("whole", "part"), classifiers=("linear-svm", "own-weights")
    )
    made = tables(run)
    table, by_metric = made["ablation_effects"], made["ablation_effects_by_metric"]
    assert texts(table.rows) == [
        ["linear-svm", "whole", "part", "", "0/2/2, −0.0500", "0/1/1, −0.0500", "0/1/1, −0.0500"],
        ["own-weights", "whole", "part", "", "4/0/0, +0.2000", "2/0/0, +0.2000", "2/0/0, +0.2000"],
    ]
    assert [cell.mark for cell in table.rows[1][4:]] == ["best"] * 3
    assert as_records(by_metric.flat)[0] == {
        "judged by": "linear-svm",
        "with": "whole",
        "against": "part",
        "which sets": "",
        "metric": "ranking loss",
        "better": 0,
        "equal": 1,
        "worse": 1,
        "mean gain": pytest.approx(-0.05),
    }


def test_the_best_setting_by_judge():
    sweeps = {f"m alpha={value:g}": {"alpha": value} for value in (0.1, 1.0, 10.0)}

    def value(method, classifier, **_):
        alpha = float(method.partition("=")[2])
        return alpha / 100 if classifier == "linear-svm" else 0.3 - alpha / 50

    run = make_summary(
        value, methods=(), sweeps=sweeps, metrics=("ranking_loss",), classifiers=("linear-svm", "own-weights")
    )
    table = tables(run)["settings"]
    assert texts(table.rows) == [
        ["linear-svm", "m", "alpha", "alpha = 0.1", "1.00", "alpha = 10.0", "3.00", "2 of 2", "+0.0990", "0.0990"],
        ["own-weights", "m", "alpha", "alpha = 10.0", "1.00", "alpha = 0.1", "3.00", "2 of 2", "+0.1980", "0.1980"],
    ]  # fmt: skip
