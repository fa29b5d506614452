"""Loading by name from a local test server that can simulate faults."""

import hashlib
import os
import socket
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from labelsieve.cli import main
from labelsieve.datasets import fetch as fetch_module
from labelsieve.datasets.catalog import CATALOG, CatalogEntry, CatalogFile
from labelsieve.datasets.fetch import availability, fetch, find_entry, load
from labelsieve.io.errors import DatasetError

NEEDS_DATA = pytest.mark.skipif(
    not os.environ.get("LABELSIEVE_DATA"),
    reason="LABELSIEVE_DATA is not set to a folder with the benchmark files",
)
DATA = Path(os.environ.get("LABELSIEVE_DATA", "."))

ARFF = b"""@relation toy
@attribute length numeric
@attribute width numeric
@attribute bird {0,1}
@attribute fish {0,1}
@data
1.5,2,1,0
2.5,1,1,1
0.5,3,0,1
1.0,4,0,0
"""
XML = b"""<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="bird"></label>
<label name="fish"></label>
</labels>
"""
CONTENT = {"toy.arff": ARFF, "toy.xml": XML}


class Handler(BaseHTTPRequestHandler):
    """Handler whose behaviour is the first part of the path, e.g. /cut/toy/toy.arff stops halfway."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        _, behaviour, *rest = self.path.split("/")
        self.server.asked.append(self.path)
        content = self.server.content.get("/".join(rest)) or CONTENT.get(rest[-1])
        getattr(self, f"_{behaviour}")(content)

    def _begin(self, status, length=None, **headers):
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def _good(self, content):
        self._begin(200 if content is not None else 404, len(content or b""))
        self.wfile.write(content or b"")

    def _gone(self, content):
        self._begin(404, 0)

    def _altered(self, content):
        self._good(content.replace(b"1", b"2"))

    def _cut(self, content):
        self._begin(200, len(content))
        self.wfile.write(content[: len(content) // 2])

    def _cut_without_length(self, content):
        self._begin(200)
        self.wfile.write(content[: len(content) // 2])

    def _stall(self, content):
        self._begin(200, len(content))
        self.wfile.write(content[: len(content) // 2])
        self.server.released.wait(30)

    def log_message(self, *args):
        """Stay silent."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request, client_address):
        """Ignore clients that disconnect, which tests do on purpose."""


@pytest.fixture
def server():
    with Server(("127.0.0.1", 0), Handler) as running:
        running.asked, running.content, running.released = [], {}, threading.Event()
        running.url = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.released.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Use an empty cache, without the user's environment variables."""
    for variable in ("LABELSIEVE_DATA", "LABELSIEVE_MIRROR", "LABELSIEVE_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LABELSIEVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


def toy_entry(*servers, **changes):
    """Make an entry with files on the given servers."""

    def file(name):
        urls = tuple(f"{url}/toy/{name}" for url in servers)
        return CatalogFile(name, hashlib.sha256(CONTENT[name]).hexdigest(), urls)

    entry = CatalogEntry(
        name="toy",
        files=(file("toy.arff"), file("toy.xml")),
        shape=(4, 2, 2),
        cardinality=1.0,
        domain="toys",
        citation="Toy, 2000",
    )
    return replace(entry, **changes)


@pytest.fixture
def catalogue(monkeypatch):
    def use(*servers, **changes):
        monkeypatch.setattr(fetch_module, "CATALOG", {"toy": toy_entry(*servers, **changes)})

    return use


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# Sources of files


def test_dataset_is_downloaded_verified_and_read(server, cache, catalogue):
    catalogue(f"{server.url}/good")
    assert availability("toy") == "download"
    data = load("toy")
    np.testing.assert_array_equal(data.X, [[1.5, 2], [2.5, 1], [0.5, 3], [1.0, 4]])
    np.testing.assert_array_equal(data.Y, [[1, 0], [1, 1], [0, 1], [0, 0]])
    assert data.name == "toy"
    assert data.source == f"{server.url}/good/toy/toy.arff"
    assert data.label_names == ("bird", "fish")
    assert files_in(cache) == ["toy/toy.arff", "toy/toy.xml"]
    assert availability("toy") == "cache"


def test_cached_files_are_not_downloaded_again(server, cache, catalogue, monkeypatch):
    catalogue(f"{server.url}/good")
    load("toy")
    asked = list(server.asked)
    monkeypatch.setenv("LABELSIEVE_OFFLINE", "1")
    load("toy")
    assert server.asked == asked


def test_local_files_come_first(server, cache, catalogue, monkeypatch, tmp_path):
    catalogue(f"{server.url}/good")
    (tmp_path / "own" / "toy").mkdir(parents=True)
    for name, content in CONTENT.items():
        (tmp_path / "own" / "toy" / name).write_bytes(content)
    monkeypatch.setenv("LABELSIEVE_DATA", str(tmp_path / "own"))
    assert availability("toy") == "local"
    assert load("toy").X.shape == (4, 2)
    assert server.asked == []
    assert not cache.exists()


def test_files_missing_locally_are_downloaded_to_the_cache(server, cache, catalogue, monkeypatch, tmp_path):
    catalogue(f"{server.url}/good")
    (tmp_path / "own" / "toy").mkdir(parents=True)
    (tmp_path / "own" / "toy" / "toy.arff").write_bytes(ARFF)
    monkeypatch.setenv("LABELSIEVE_DATA", str(tmp_path / "own"))
    assert availability("toy") == "download"
    assert load("toy").label_names == ("bird", "fish")
    assert files_in(cache) == ["toy/toy.xml"]
    assert availability("toy") == "cache"


def test_mirror_is_tried_before_public_urls(server, cache, catalogue, monkeypatch):
    catalogue(f"{server.url}/good/public")
    monkeypatch.setenv("LABELSIEVE_MIRROR", f"{server.url}/good/institute/")
    load("toy")
    assert server.asked == ["/good/institute/toy/toy.arff", "/good/institute/toy/toy.xml"]


# Faults of servers


@pytest.mark.parametrize("behaviour", ["gone", "cut", "cut_without_length", "altered", "stall"])
def test_failed_download_names_the_url_and_keeps_no_file(server, cache, catalogue, monkeypatch, behaviour):
    monkeypatch.setattr(fetch_module, "_TIMEOUT", (0.3, 0.3))
    catalogue(f"{server.url}/{behaviour}")
    with pytest.raises(DatasetError) as caught:
        load("toy")
    message = str(caught.value)
    assert f"{server.url}/{behaviour}/toy/toy.arff" in message
    assert str(cache / "toy" / "toy.arff") in message
    assert "\n" not in message
    assert files_in(cache) == []

    # The next URL is used instead.
    catalogue(f"{server.url}/{behaviour}", f"{server.url}/good")
    assert load("toy").X.shape == (4, 2)
    assert files_in(cache) == ["toy/toy.arff", "toy/toy.xml"]


def test_all_urls_are_tried_and_named(server, cache, catalogue):
    down = f"http://127.0.0.1:{closed_port()}"
    catalogue(down, f"{server.url}/gone")
    with pytest.raises(DatasetError, match=rf"{down}/toy/toy.arff: .*{server.url}.*404"):
        load("toy")
    catalogue(down, f"{server.url}/good")
    assert load("toy").X.shape == (4, 2)


def test_wrong_checksum_names_both_checksums_and_known_copies(server, cache, catalogue):
    catalogue(f"{server.url}/altered", altered="with a third label")
    expected = hashlib.sha256(ARFF).hexdigest()
    found = hashlib.sha256(ARFF.replace(b"1", b"2")).hexdigest()
    with pytest.raises(DatasetError, match=found) as caught:
        fetch("toy")
    assert expected in str(caught.value)
    assert "with a third label" in str(caught.value)


# Faults of the local system


def test_offline_error_names_the_file_and_its_path(server, cache, catalogue, monkeypatch):
    catalogue(f"{server.url}/good")
    monkeypatch.setenv("LABELSIEVE_OFFLINE", "1")
    with pytest.raises(DatasetError, match=r"toy\.arff .*LABELSIEVE_OFFLINE") as caught:
        load("toy")
    assert str(cache / "toy" / "toy.arff") in str(caught.value)
    assert server.asked == []


@pytest.mark.parametrize("value", ["", "0", "false", "False", "no"])
def test_false_values_of_offline_allow_downloads(server, cache, catalogue, monkeypatch, value):
    catalogue(f"{server.url}/good")
    monkeypatch.setenv("LABELSIEVE_OFFLINE", value)
    load("toy")
    assert len(server.asked) == 2


def test_altered_local_file_raises_and_is_not_changed(cache, catalogue, monkeypatch, tmp_path):
    catalogue(altered="as .mat")
    own = tmp_path / "own" / "toy" / "toy.arff"
    own.parent.mkdir(parents=True)
    own.write_bytes(ARFF + b"9,9,1,1\n")
    monkeypatch.setenv("LABELSIEVE_DATA", str(tmp_path / "own"))
    with pytest.raises(DatasetError, match=r"toy\.arff .*SHA-256 .*as \.mat"):
        load("toy")
    assert own.read_bytes() == ARFF + b"9,9,1,1\n"


def test_missing_local_folder_raises(cache, catalogue, monkeypatch, tmp_path):
    catalogue()
    monkeypatch.setenv("LABELSIEVE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError, match=r"LABELSIEVE_DATA .*nowhere"):
        load("toy")


def test_damaged_cached_file_is_downloaded_again(server, cache, catalogue):
    catalogue(f"{server.url}/good")
    load("toy")
    (cache / "toy" / "toy.arff").write_bytes(ARFF[:-5])
    catalogue(f"{server.url}/gone")
    with pytest.raises(DatasetError, match=r"toy\.arff"):
        load("toy")
    catalogue(f"{server.url}/good")
    load("toy")
    assert (cache / "toy" / "toy.arff").read_bytes() == ARFF


def test_cache_that_cannot_be_written_raises(server, cache, catalogue, monkeypatch, tmp_path):
    catalogue(f"{server.url}/good")
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("LABELSIEVE_CACHE", str(tmp_path / "file"))
    with pytest.raises(DatasetError, match="LABELSIEVE_CACHE"):
        load("toy")


def test_interrupted_download_keeps_no_file(server, cache, catalogue):
    class Interrupts:
        total = 0

        def update(self, size):
            raise KeyboardInterrupt

    catalogue(f"{server.url}/good")
    with pytest.raises(KeyboardInterrupt):
        fetch("toy", progress=lambda file: Interrupts())
    assert files_in(cache) == []


@pytest.mark.parametrize("terminal", [False, True])
def test_command_line_shows_a_progress_bar_only_on_terminals(
    server, cache, catalogue, monkeypatch, capsys, terminal
):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1" if terminal else "")
    catalogue(f"{server.url}/good")
    assert main(["datasets", "fetch", "toy"]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"toy\t{cache / 'toy'}\n"
    assert ("toy.arff" in captured.err) == terminal
    assert terminal or captured.err == ""


def test_command_line_reports_a_failed_download_in_one_line(server, cache, catalogue, capsys):
    catalogue(f"{server.url}/gone")
    assert main(["datasets", "fetch", "toy"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "404" in captured.err


# Names, shapes and cardinalities


@pytest.mark.parametrize("name", ["CAL500", "chd-49", "Corel5k", "water_quality"])
def test_names_ignore_case_and_hyphens(name):
    assert find_entry(name).name == name.lower().replace("-", "_")


def test_misspelled_name_raises_with_the_closest_names():
    with pytest.raises(DatasetError, match=r"'yaest'.* yeast"):
        load("yaest")
    with pytest.raises(DatasetError, match=r"'xyzzy'.* birds, cal500"):
        find_entry("xyzzy")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": (5, 2, 2)}, "'toy' must have 5 samples, got 4"),
        ({"shape": (4, 3, 2)}, "must have 3 features, got 2"),
        ({"shape": (4, 2, 1)}, "must have 1 labels, got 2"),
        ({"cardinality": 1.001}, "must have cardinality 1.001, got 1.0"),
        ({"candidate_cardinality": 2.0}, "must have candidate cardinality 2.0, got None"),
    ],
)
def test_wrong_shape_or_cardinality_raises(server, cache, catalogue, changes, message):
    catalogue(f"{server.url}/good", **changes)
    with pytest.raises(DatasetError, match=message):
        load("toy")


def test_identifiers_are_not_features(server, cache, catalogue):
    catalogue(f"{server.url}/good", identifiers=("length",), shape=(4, 1, 2))
    data = load("toy")
    assert data.feature_names == ("width",)
    np.testing.assert_array_equal(data.X, [[2], [1], [3], [4]])


def test_unknown_shape_and_cardinality_are_not_checked(server, cache, catalogue):
    catalogue(f"{server.url}/good", shape=(None, None, 2), cardinality=None)
    assert load("toy").X.shape == (4, 2)


# Benchmark datasets

BENCHMARKS = (
    "birds", "cal500", "chd_49", "corel5k", "languagelog", "mirflickr", "slashdot", "water_quality", "yeast"
)  # fmt: skip


@NEEDS_DATA
@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmarks_have_the_shape_and_cardinality_of_the_catalogue(name):
    data, entry = load(name), CATALOG[name]
    assert (*data.X.shape, data.Y.shape[1]) == entry.shape
    assert f"{data.Y.sum() / entry.shape[0]:.3f}" == f"{entry.cardinality:.3f}"
    if entry.candidate_cardinality is not None:
        assert f"{data.Y_candidates.sum() / entry.shape[0]:.3f}" == f"{entry.candidate_cardinality:.3f}"
    assert (data.name, data.source) == (name, entry.files[0].urls[0])


@NEEDS_DATA
def test_benchmarks_are_downloaded_from_a_mirror(server, cache, monkeypatch):
    for name in ("birds", "mirflickr", "slashdot"):
        for file in CATALOG[name].files:
            server.content[f"{name}/{file.name}"] = (DATA / name / file.name).read_bytes()
    monkeypatch.setenv("LABELSIEVE_MIRROR", f"{server.url}/good")
    for name in ("birds", "mirflickr", "slashdot"):
        assert load(name).X.shape[1] == CATALOG[name].shape[1]
        assert availability(name) == "cache"
