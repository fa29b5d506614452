import base64
import hashlib
import json
import os
import re
import unicodedata
from pathlib import Path

import pytest

import bench_runs as bench
from conftest import fails, run
from html_page import HtmlPage
from labelsieve.bench import RunError
from labelsieve.report import page as report_page
from labelsieve.report.page import make_report, render_report, write_report
from synthetic_runs import make_summary, noisy

HOSTILE = (
    "<script>alert(1)</script>",
    'a" onload="x',
    "{{ 7 * 7 }}",
    "</td></table><img src=x onerror=alert(1)>",
    "&amp; 'quoted'",
)


@pytest.fixture(scope="module")
def hostile():
    """Report with all sections, failures and gaps, in which all names contain markup."""
    return make_report(
        make_summary(
            noisy(),
            datasets=HOSTILE[:3],
            methods=HOSTILE,
            references=("random-ranking", "no-features", "<b>filter"),
            ablation=("<i>whole", "part & parcel"),
            sweeps={f"<m> alpha={value:g}": {"alpha": value} for value in (0.1, 1.0, 10.0)},
            noises=(("flip 0.2", 0.2), ("flip 0.4", 0.4)),
            metrics=("ranking_loss",),
            fails=lambda dataset, method, fold, **_: (dataset, method, fold) == (HOSTILE[0], HOSTILE[1], 1),
            error="ValueError: \x1b[2J</summary><script>alert(2)</script>",
            traceback="Traceback:\n \x1b[2J</pre><script>alert(3)</script>",
            notes=("<u>warned</u>", "\x1b[31mred\x07 \u202eturned"),
        )
    )


@pytest.fixture(scope="module")
def hostile_page(hostile):
    return render_report(hostile)


def test_names_from_data_are_only_text(hostile_page):
    page = HtmlPage(hostile_page)
    assert page.n_scripts == 2  # data and code
    assert page.handlers == []
    for name in (*HOSTILE, "<b>filter", "<i>whole", "<u>warned</u>"):
        assert name in page.text
    assert "</summary><script>alert(2)</script>" in page.text
    assert "</pre><script>alert(3)</script>" in page.text
    assert "49" not in re.findall(r"\{\{.*?\}\}|\b49\b", page.text)


def test_the_policy_blocks_requests_and_other_scripts(hostile_page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', hostile_page)[1]
    policy = policy.replace("&#39;", "'").replace("&#43;", "+")
    assert policy.startswith("default-src 'none';")
    for what, tag in (("script", "script"), ("style", "style")):
        text = re.search(rf"<{tag}>(.*)</{tag}>", hostile_page, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{what}-src 'sha256-{digest}';" in policy
    assert "unsafe" not in policy
    assert " style=" not in hostile_page
    page = HtmlPage(hostile_page)
    assert {address for address in page.addresses if not address.startswith("#")} == {"data:,"}
    assert "@import" not in hostile_page
    assert "url(" not in re.sub(r"url\(#[^)]*\)", "", hostile_page)


def test_escape_sequences_are_escaped(hostile_page):
    assert not {letter for letter in hostile_page if unicodedata.category(letter) in ("Cc", "Cf")} - {"\n"}
    text = HtmlPage(hostile_page).text
    assert r"\x1b[31mred\x07 \u202eturned" in text
    assert "Traceback:\n \\x1b[2J" in text


def test_all_links_in_the_page_have_targets(hostile_page):
    page = HtmlPage(hostile_page)
    assert len(set(page.ids)) == len(page.ids)
    inner = {address[1:] for address in page.addresses if address.startswith("#")}
    assert {anchor for anchor in inner if anchor in page.ids or f'id="{anchor}"' in hostile_page} == inner


def test_every_section_with_data_is_on_the_page(hostile_page):
    expected = (
        "ranks metrics references curves statistics costs convergence stability noise ablation sensitivity"
    )
    ids = HtmlPage(hostile_page).ids
    for anchor in (*expected.split(), "failures", "warnings", "provenance"):
        assert anchor in ids
    assert "paper" not in ids  # no shared cells


@pytest.mark.parametrize(
    "shape",
    [
        {"datasets": ("one",)},
        {"methods": ("a",)},
        {"datasets": ("one",), "methods": ("a",), "sizes": (10.0,)},
        {"methods": (), "references": ("random-ranking", "no-features")},
        {"methods": (), "ablation": ("whole", "part")},
        {"methods": (), "sweeps": {"m alpha=1": {"alpha": 1.0}, "m alpha=2": {"alpha": 2.0}}},
        {"methods": ("a", "b"), "skip": lambda method, **_: method == "b"},
        {"fails": lambda dataset, method, **_: (dataset == "one") == (method == "a")},
        {"references": ("no-features",), "methods": ("a",), "fails": lambda method, **_: method == "a"},
    ],
)
def test_any_run_has_a_page(shape):
    report = make_report(make_summary(noisy(), **shape))
    page = HtmlPage(render_report(report))
    assert "A made-up run" in page.text
    assert "nan" not in page.text.lower().split()


# the folder


@pytest.fixture(scope="module")
def small():
    return make_report(make_summary(noisy(), metrics=("ranking_loss",)))


def test_a_report_has_a_page_tables_and_optional_figures(tmp_path, small):
    assert sorted(os.listdir(write_report(small, tmp_path / "plain").parent)) == ["index.html", "tables"]
    page = write_report(small, tmp_path / "deep" / "report", figures=("svg", "png"))
    assert page == tmp_path / "deep" / "report" / "index.html"
    assert sorted(os.listdir(page.parent)) == ["figures", "index.html", "tables"]
    tables = os.listdir(page.parent / "tables")
    for ending in ("csv", "md", "tex"):
        assert {f"ranking_loss.{ending}", f"average_ranks.{ending}", f"win_tie_loss.{ending}"} <= set(tables)
    assert "curves.csv" in tables
    assert "curves.tex" not in tables
    figures = os.listdir(page.parent / "figures")
    assert {"cd_ranking_loss.svg", "cd_ranking_loss.png", "curves_ranking_loss.png"} <= set(figures)
    assert {name.rpartition(".")[2] for name in figures} == {"svg", "png"}

    assert os.listdir(tmp_path / "deep") == ["report"]


def test_a_new_report_replaces_the_old_one(tmp_path, small):
    write_report(small, tmp_path / "report")
    stale = tmp_path / "report" / "tables" / "stale.csv"
    stale.write_text("x")
    write_report(small, tmp_path / "report")
    assert not stale.exists()
    assert os.listdir(tmp_path) == ["report"]


@pytest.mark.parametrize("name", ["notes.txt", "tables/notes.txt", "index.html", ".git"])
def test_a_folder_with_other_content_is_not_replaced(tmp_path, small, name):
    folder = tmp_path / "mine"
    file = folder / name
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    with pytest.raises(RunError, match=re.escape(str(folder))):
        write_report(small, folder)
    assert file.read_text() == "mine"
    assert os.listdir(tmp_path) == ["mine"]


def test_an_interrupted_report_keeps_the_old_one(tmp_path, small, monkeypatch):
    page = write_report(small, tmp_path / "report")
    before = page.read_bytes()

    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(report_page, "render_report", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_report(small, tmp_path / "report")
    assert page.read_bytes() == before
    assert os.listdir(tmp_path) == ["report"]


# the command line

CONFIGURATION = """
title = "Small & quick"
folds = 2
datasets = ["planted"]
noise = [{ model = "flip", rate = 0.2 }]
methods = ["sum-f", "sum-mi"]
references = ["no-features"]
metrics = ["ranking_loss", "macro_f1"]
[sizes]
percent = [10, 20]
"""


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    """Folder of a real run with a few cells."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "small.toml").write_text(CONFIGURATION)
    bench.here(folder / "small.toml")
    return folder / "runs" / "small"


@pytest.fixture
def in_project(plain_terminal, small_run, monkeypatch):
    """Change to the folder that contains ``runs``."""
    monkeypatch.chdir(small_run.parent.parent)


@pytest.mark.usefixtures("in_project")
@pytest.mark.parametrize("target", [[], ["small"], ["runs/small"], ["runs/small/results.sqlite"]])
def test_a_run_is_found_by_folder_file_name_or_as_the_latest(capsys, target, tmp_path):
    out_folder = tmp_path / "out"
    code, out, _ = run(capsys, "report", *target, "--out", str(out_folder))
    assert code == 0
    assert re.search(r"^sum-f +\d\.\d\d +\d\.\d\d$", out, re.MULTILINE)
    assert str(out_folder / "index.html") in out.splitlines()[-1]
    page = HtmlPage((out_folder / "index.html").read_text("utf-8"))
    assert "Small & quick" in page.text
    assert "planted" in page.text


@pytest.mark.usefixtures("in_project")
def test_the_report_as_json(capsys):
    code, out, err = run(capsys, "report", "small", "--json", "--control", "sum-mi")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert Path(found["page"]).is_file()
    assert found["control"] == "sum-mi"
    assert set(found["average_ranks"]) == {"sum-f", "sum-mi"}
    assert found["complete"] is True
    # The tables of the page are included without rounding, but not those that are only files.
    ranks = {row["method"]: row["all metrics"] for row in found["tables"]["average_ranks"]}
    assert {name: ranks[name] for name in found["average_ranks"]} == found["average_ranks"]
    assert {"ranking_loss", "macro_f1", "references", "environment"} <= set(found["tables"])
    assert "curves" not in found["tables"]


@pytest.mark.usefixtures("in_project")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "'nothing'"),
        (["small", "--control", "no-features"], r"\(sum-f, sum-mi\)"),
        (["small", "--out", "runs"], "'small'"),
        (["small", "--out", "/proc/none/here"], "/proc/none.* --out"),
    ],
)
def test_bad_requests_give_one_error(capsys, arguments, message):
    assert re.search(message, fails(capsys, 1, "report", *arguments))


@pytest.mark.usefixtures("plain_terminal")
def test_without_runs_the_error_shows_the_next_step(capsys):
    assert "labelsieve bench run" in fails(capsys, 1, "report")
