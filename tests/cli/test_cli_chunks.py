"""Tests of `labelsieve select --chunk-rows`."""

import json
import os
import re

import numpy as np
import pytest

from conftest import fails, run
from labelsieve.io import write

pytest.importorskip("dask")
pytestmark = pytest.mark.usefixtures("plain_terminal")

SUM_F = ("--labels", "2", "-m", "sum-f", "-k", "2")


def ranking(out):
    return [(column["column"], column["score"]) for column in json.loads(out)["columns"]]


@pytest.mark.parametrize(
    ("method", "size", "rows"), [("sum-f", "2", "7"), ("sum-f", "2", "auto"), ("evidence", "auto", "7")]
)
def test_blocks_and_the_whole_file_have_the_same_ranking(capsys, table, method, size, rows):
    command = ("select", table, "--labels", "2", "-m", method, "-k", size, "--json", "--all")
    whole = run(capsys, *command)[1]
    code, out, err = run(capsys, *command, "--chunk-rows", rows)
    assert code == 0, err
    assert [name for name, _ in ranking(out)] == [name for name, _ in ranking(whole)]
    np.testing.assert_allclose(
        [score for _, score in ranking(out)], [score for _, score in ranking(whole)], rtol=1e-9
    )
    assert not {"label_issues", "evidence_test"} & set(json.loads(out))


def test_table_and_file_contain_only_the_ranking(capsys, table):
    code, out, _ = run(capsys, "select", table, *SUM_F, "--chunk-rows", "7")
    assert code == 0
    assert sorted(re.findall(r"^ +\d +(\S+) ", out, re.MULTILINE)) == ["[red]width", "length"]
    assert run(capsys, "select", table, *SUM_F, "--chunk-rows", "7", "-o", "out.csv")[0] == 0
    with open("out.csv") as stream:
        assert len(stream.readlines()) == 3


def test_a_folder_of_parquet_files_is_accepted(capsys, planted):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    os.mkdir("all.parquet")
    columns = {f"x{j}": planted.X[:, j] for j in range(5)} | {"a": planted.Y[:, 0], "b": planted.Y[:, 1]}
    for part, rows in enumerate((slice(0, 25), slice(25, 60))):
        own = {name: values[rows] for name, values in columns.items()}
        pq.write_table(pa.table(own), f"all.parquet/{part}.parquet", row_group_size=10)
    code, out, err = run(capsys, "select", "all.parquet", *SUM_F, "--json", "--chunk-rows", "20")
    assert code == 0, err
    assert {name for name, _ in ranking(out)} == {"x0", "x1"}
    assert json.loads(out)["data"] == "all"
    err = fails(capsys, 1, "select", "all.parquet", *SUM_F, "--chunk-rows", "5")
    assert "row_group_size=5" in err
    assert "--chunk-rows 10" in err


def test_blocks_may_be_on_a_cluster(capsys, planted):
    distributed = pytest.importorskip("distributed")
    write(planted, "data.csv")
    command = ("select", "data.csv", "-m", "sum-f", "--json", "--chunk-rows", "20")
    here = run(capsys, *command)[1]
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        address = cluster.scheduler_address
        code, out, err = run(capsys, *command, "--dask", address)
    assert code == 0, err
    assert "dashboard" in err
    np.testing.assert_allclose(
        [score for _, score in ranking(out)], [score for _, score in ranking(here)], rtol=1e-9
    )


def test_no_scheduler_at_the_address_is_one_clear_error(capsys, table):
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")
    command = ("select", table, *SUM_F, "--chunk-rows", "7", "--dask")
    with dask.config.set({"distributed.comm.timeouts.connect": "300ms"}):
        assert "300ms" in fails(capsys, 1, *command, "tcp://127.0.0.1:1")
    assert "'nowhere'" in fails(capsys, 1, *command, "nowhere")
    # Later fits in this process do not use a cluster.
    assert dask.config.get("scheduler", None) is None
    with pytest.raises(ValueError, match="No clients"):
        distributed.Client.current()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--chunk-rows", "0"), "'0'"),
        (("--dask", "a:1"), "--chunk-rows"),
        (("--chunk-rows", "7", "--stability", "5"), "--stability: "),
        (("--chunk-rows", "7", "--write-data", "s.csv"), "--write-data: "),
        (("--chunk-rows", "7", "-m", "mifs"), "'mifs'"),
        (("--chunk-rows", "7", "-k", "auto"), "'auto'"),
    ],
)
def test_usage_errors_are_one_helpful_line(capsys, table, arguments, complaint):
    assert complaint in fails(capsys, 2, "select", table, "--labels", "2", "-m", "sum-f", *arguments)


def test_the_catalogue_fits_into_memory(capsys):
    assert "--chunk-rows" in fails(capsys, 2, "select", "digits", "-m", "sum-f", "--chunk-rows", "7")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("x,z,a\n1,0,1\n2,b,0\n", r"^error: bad.csv: .*'z'.*'b'.*--ignore z"),
        ("x,z,a\n1,0,0\n2,1,0\n", r"^error: bad.csv: "),
    ],
)
def test_an_invalid_block_is_one_line_and_writes_nothing(capsys, content, complaint):
    with open("bad.csv", "w") as stream:
        stream.write(content)
    code, out, err = run(
        capsys, "select", "bad.csv", "--labels", "1", "-m", "sum-f", "--chunk-rows", "1", "-o", "out.csv"
    )
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert re.search(complaint, err), err
    assert os.listdir() == ["bad.csv"]


@pytest.mark.parametrize("n_pages", [1, 10**6, -1])
def test_a_large_file_gets_a_hint(capsys, monkeypatch, table, n_pages):
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": n_pages, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert os.path.getsize(table) > 1024
    err = run(capsys, "select", table, *SUM_F)[2]
    assert ("--chunk-rows auto" in err) == (n_pages == 1)
    assert "--chunk-rows" not in run(capsys, "select", table, *SUM_F, "--chunk-rows", "7")[2]
