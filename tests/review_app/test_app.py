"""Tests of the routes: what the page gets, and what everybody else does not."""

import http.client
import json
import os
import re
import zlib

import numpy as np
import pandas as pd
import pytest
from review_tables import make_table, open_session

from labelsieve.datasets.digits import load_digits_attributes, write_digits
from labelsieve.io import read
from labelsieve.review_app.serve import RunningReview
from labelsieve.review_app.session import ReviewSession

BODY, JSON = b"{}", {"Content-Type": "application/json"}
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


class Answer:
    """Answer of the server, read completely."""

    def __init__(self, found):
        self.status_code, self.content = found.status, found.read()
        self.headers = {name.lower(): value for name, value in found.getheaders()}
        self.text = self.content.decode(errors="replace")

    def json(self):
        return json.loads(self.content)


class Client:
    """Client of a running app; in addresses, TOKEN stands for its token and HOST for its address."""

    def __init__(self, session):
        self.app = RunningReview(session)
        self.origin, self.token = self.app.url.rsplit("/", 2)[:2]
        self.port = int(self.origin.rpartition(":")[2])

    def request(self, method, path, headers=(), body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        given = {"Host": f"127.0.0.1:{self.port}", **dict(headers)}
        connection.putrequest(method, path.replace("TOKEN", self.token), skip_host=True)
        for name, value in given.items():
            connection.putheader(name, value.replace("HOST", self.origin))
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def get(self, path):
        return self.request("GET", path)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.app.close()


@pytest.fixture
def session(tmp_path):
    opened = open_session(make_table(tmp_path)[0])
    yield opened
    opened.close()


@pytest.fixture
def client(session):
    with Client(session) as opened:
        yield opened


def post(client, action, **body):
    return client.request("POST", f"/TOKEN/{action}", JSON, json.dumps(body).encode())


def test_a_review_through_the_routes(client, session):
    state = post(client, "view").json()
    key = state["card"]["key"]
    judged = post(client, "verdict", cards=[[key, ""]], verdict="wrong").json()
    assert judged["counts"]["wrong"] == 1
    assert judged["card"]["key"] != key
    assert client.get("/TOKEN/version").json()["version"] == judged["version"] > state["version"]
    undone = post(client, "undo", last=judged["last"]["number"]).json()
    assert undone["card"]["key"] == key
    assert undone["counts"]["wrong"] == 0
    grid = post(client, "view", queue="label", label=1, grid=[]).json()["grid"]
    marked = post(client, "verdict", cards=[[card["key"], ""] for card in grid], verdict="right",
                  queue="label", label=1, grid=[card["key"] for card in grid])  # fmt: skip
    assert [card["verdict"] for card in marked.json()["grid"]] == ["right"] * len(grid)
    written = post(client, "write", removals=False).json()["finish"]["written"]
    assert "0 labels removed" in written["summary"]
    assert session.copy.exists()
    assert post(client, "preview").json() == {"removals": []}


def test_a_second_tab_cannot_answer_a_card_that_has_a_verdict(client, session):
    key = post(client, "view").json()["card"]["key"]
    assert post(client, "verdict", cards=[[key, ""]], verdict="wrong").status_code == 200
    stale = post(client, "verdict", cards=[[key, ""]], verdict="right")
    assert stale.status_code == 409
    assert post(client, "view").json()["counts"]["wrong"] == 1
    assert post(client, "undo", last=0).status_code == 409
    assert post(client, "draw").status_code == 409


def test_the_page_and_all_answers_are_locked_down(client):
    page = client.get("/TOKEN/")
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.startswith(
        "default-src 'none'; img-src 'self' data:; connect-src 'self'; style-src 'sha256-"
    )
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r'(src|href)="(?!data:|#)|\son\w+=|style="', page.text)
    for answer in (page, client.get("/TOKEN/version"), post(client, "view"), client.get("/TOKEN/none")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "status"),
    [
        pytest.param("POST", "/TOKEN/view", {}, BODY, 200, id="nothing wrong"),
        pytest.param("POST", "/TOKEN/view", {"Origin": "HOST"}, BODY, 200, id="own origin"),
        pytest.param("POST", "/view", {}, BODY, 404, id="no token"),
        pytest.param("POST", "/short/view", {}, BODY, 404, id="shorter token"),
        pytest.param("POST", "/TOKENx/view", {}, BODY, 404, id="longer token"),
        pytest.param("POST", "/na%C3%AFve/view", {}, BODY, 404, id="token of other letters"),
        pytest.param("GET", "/", {}, None, 404, id="root"),
        pytest.param("GET", "/x/../TOKEN/../../etc/passwd", {}, None, 404, id="dots"),
        pytest.param("GET", "/TOKEN/../../etc/passwd", {}, None, 404, id="dots after the token"),
        pytest.param("GET", "/TOKEN/image/..%2F..%2Fetc/passwd", {}, None, 404, id="image by name"),
        pytest.param("GET", "/TOKEN/image/99999999999999999999/0", {}, None, 404, id="image of no row"),
        pytest.param("GET", "/TOKEN/image/-1/0", {}, None, 404, id="image of a negative row"),
        pytest.param("GET", "/TOKEN/image/0/8", {}, None, 404, id="image of labels"),
        pytest.param("POST", "/TOKEN/view", {"Host": "evil.example"}, BODY, 403, id="foreign host"),
        pytest.param("POST", "/TOKEN/view", {"Host": "127.0.0.1.evil.example"}, BODY, 403, id="host alike"),
        pytest.param("POST", "/TOKEN/view", {"Host": "127.0.0.1@evil.example"}, BODY, 403, id="host as user"),
        pytest.param("POST", "/TOKEN/view", {"Host": "[::1"}, BODY, 403, id="invalid host"),
        pytest.param("POST", "/TOKEN/view", {"Host": ""}, BODY, 403, id="empty host"),
        pytest.param("GET", "/TOKEN/", {"Host": "evil.example"}, None, 403, id="page for a foreign host"),
        pytest.param("POST", "/TOKEN/view", {"Origin": "http://evil.example"}, BODY, 403, id="origin"),
        pytest.param("POST", "/TOKEN/view", {"Origin": "null"}, BODY, 403, id="sandboxed origin"),
        pytest.param("POST", "/TOKEN/view", {"Origin": "http://127.0.0.1:1"}, BODY, 403, id="other port"),
        pytest.param("POST", "/TOKEN/view", {"Origin": "https://127.0.0.1"}, BODY, 403, id="https"),
        pytest.param("POST", "/TOKEN/view", {"Sec-Fetch-Site": "cross-site"}, BODY, 403, id="cross-site"),
        pytest.param("POST", "/TOKEN/view", {"Sec-Fetch-Site": "same-site"}, BODY, 403, id="same site"),
        pytest.param("POST", "/TOKEN/view", {"Content-Type": "text/plain"}, BODY, 415, id="a form"),
        pytest.param("POST", "/TOKEN/view", {}, b" " * 100_001, 413, id="oversized"),
        pytest.param("POST", "/TOKEN/view", {}, b"{", 400, id="malformed JSON"),
        pytest.param("POST", "/TOKEN/view", {}, b"[" * 90_000, 400, id="deep JSON"),
        pytest.param("POST", "/TOKEN/view", {}, b"\xff", 400, id="not UTF-8"),
        pytest.param("POST", "/TOKEN/view", {}, b"[]", 400, id="no object"),
        pytest.param("GET", "/TOKEN/view", {}, None, 405, id="other method"),
        pytest.param("OPTIONS", "/TOKEN/verdict", {"Origin": "http://evil.example"}, None, 403, id="preflight"),
    ],
)  # fmt: skip
def test_attacks_are_rejected(client, session, method, path, headers, body, status):
    before = session.file.read_bytes()
    answer = client.request(method, path, {**JSON, **headers}, body)
    assert answer.status_code == status
    assert session.file.read_bytes() == before
    if status != 200:
        assert "thing " not in answer.text


@pytest.mark.parametrize(
    "change",
    [
        {"cards": "0-0"},
        {"cards": []},
        {"cards": [["KEY"]]},
        {"cards": [[0, ""]]},
        {"cards": [["KEY", None]]},
        {"cards": [["KEY", "maybe"]]},
        {"cards": [["9999-0", ""]]},
        {"cards": [["KEY", ""]] * 2},
        {"cards": [["KEY", ""]] * 101},
        {"cards": None},
        {"verdict": "maybe"},
        {"verdict": "right\n0,a,wrong"},
        {"verdict": ["right"]},
        {"verdict": None},
    ],
)
def test_invalid_verdicts_are_rejected(client, session, change):
    before = session.file.read_bytes()
    key = post(client, "view").json()["card"]["key"]
    change = json.loads(json.dumps(change).replace("KEY", key))
    valid = {"cards": [[key, ""]], "verdict": "right"}
    assert post(client, "verdict", **{**valid, **change}).status_code == 400
    assert session.file.read_bytes() == before
    assert post(client, "verdict", **valid).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"queue": 1},
        {"label": "0"},
        {"label": -1},
        {"label": True},
        {"label": 2**60},
        {"skipped": "0-0"},
        {"skipped": [1]},
        {"grid": ["x"], "queue": "label"},
        {"grid": 3},
        {"card": 5},
        {"card": "../../etc/passwd"},
    ],
)
def test_invalid_views_are_rejected(client, body):
    assert post(client, "view", **body).status_code == 400
    assert post(client, "view").status_code == 200


def test_unknown_queues_and_labels_show_the_nearest(client):
    assert post(client, "view", queue="<b>").json()["queue"] == "draw"
    assert post(client, "view", label=1000).json()["label"] == 3
    assert post(client, "undo", last=-1).status_code == 400
    assert post(client, "write", removals="yes").status_code == 400


def hostile_session(folder, **options):
    """A table whose cells, columns, labels and names of rows look like scripts."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    frame = pd.DataFrame(
        {
            f"name {HOSTILE}": [f"{row} {HOSTILE}" for row in range(60)],
            HOSTILE: X[:, 0],
            "other": X[:, 1],
            "text": [f"{HOSTILE} {{{{7*7}}}} \u202e </script>" * 3 for _ in range(60)],
            "tags": [";".join(["</title><script>", "b"][: 1 + (x > 0)]) if x < 1 else "b" for x in X[:, 0]],
        }
    )
    path = folder / "<b>table.csv"
    frame.to_csv(path, index=False)
    dataset = read(path, "tags", id=f"name {HOSTILE}")
    return ReviewSession(dataset, folder / "r.csv", folder / "c.csv", n_drawn=12, images=folder, **options)


def test_scripts_in_cells_and_names_stay_text(tmp_path):
    session = hostile_session(tmp_path)
    with Client(session) as client:
        page = client.get("/TOKEN/").text
        # One element with data and one script; the names are escaped inside both title and data.
        assert len(re.findall("<script", page)) == 2
        assert "<img src=x" not in page
        assert "&lt;b&gt;table" in page
        state = post(client, "view")
        assert state.headers["content-type"] == "application/json"
        card = state.json()["card"]
        assert HOSTILE in card["row"]
        assert HOSTILE in card["texts"][0]["text"]
        assert "\u202e" not in state.text
    session.close()


PNG = zlib.decompress(zlib.compress(b"\x89PNG\r\n\x1a\n" + b"0" * 20))


@pytest.fixture
def images(tmp_path):
    """A table of images, some of which must not be shown; all outside files hold the word secret."""
    inside, outside = tmp_path / "data", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "sub").mkdir()
    for path in (inside / "good.png", inside / "sub" / "also good.JPG"):
        path.write_bytes(PNG)
    (outside / "secret.png").write_bytes(b"secret")
    (outside / "secret.txt").write_bytes(b"secret")
    (inside / "notes.txt").write_bytes(b"secret")
    (inside / "page.svg").write_bytes(b"<svg onload='secret'/>")
    (inside / "link.png").symlink_to(outside / "secret.png")
    (inside / "folder").symlink_to(outside)
    (inside / "text.png").symlink_to(inside / "notes.txt")
    (inside / "inner link.png").symlink_to(inside / "good.png")
    (inside / "loop.png").symlink_to(inside / "loop.png")
    os.mkfifo(inside / "pipe.png")
    (inside / "folder.png").mkdir()
    good = [
        "good.png",
        "sub/also good.JPG",
        " good.png",
        "sub/../good.png",
        str(inside / "good.png"),
        "inner link.png",
    ]
    bad = [
        "../outside/secret.png", "link.png", "folder/secret.png", str(outside / "secret.png"), "text.png",
        "page.svg", "notes.txt", "loop.png", "pipe.png", "folder.png", "missing.png", "good.png\0.png",
        "http://evil.example/a.png", "file:///etc/passwd.png", "a" * 5000 + ".png", "~/x.png", "/etc/passwd", "..",
    ]  # fmt: skip
    return inside, good, bad


def test_only_images_below_the_folder_of_the_data_are_served(images):
    folder, good, bad = images
    cells = [*good, *bad]
    n = len(cells)
    tags = ["a" if row % 2 else "a;b" for row in range(n)]
    frame = pd.DataFrame({"picture": cells, "size": np.arange(n) % 7, "tags": tags})
    dataset = read(frame, "tags")
    session = ReviewSession(dataset, folder / "r.csv", folder / "c.csv", n_drawn=10, images=folder)
    with Client(session) as client:
        for row, cell in enumerate(cells):
            answer = client.get(f"/TOKEN/image/{row}/0")
            assert answer.status_code == (200 if cell in good else 404), cell[:40]
            assert "secret" not in answer.text
            if cell in good:
                assert answer.content == PNG
                kind = "image/jpeg" if cell.lower().endswith("jpg") else "image/png"
                assert answer.headers["content-type"] == kind
                assert answer.headers["x-content-type-options"] == "nosniff"
            card = post(client, "view", card=f"{row}-0").json()["card"]
            assert bool(card["images"]) == (cell in good)
    session.close()


def test_without_a_folder_no_image_is_served(images):
    folder, good, _ = images
    frame = pd.DataFrame(
        {"picture": [str(folder / good[0])] * 20, "size": np.arange(20) % 3, "tags": ["a", "a;b"] * 10}
    )
    session = ReviewSession(read(frame, "tags"), folder / "r.csv", folder / "c.csv", n_drawn=5)
    with Client(session) as client:
        assert client.get("/TOKEN/image/0/0").status_code == 404
    session.close()


def test_the_digits_of_the_demo_are_images(tmp_path):
    path = write_digits(tmp_path, n_rows=40)
    dataset = read(path, "attributes")
    session = ReviewSession(dataset, tmp_path / "r.csv", tmp_path / "c.csv", n_drawn=10, images=tmp_path)
    with Client(session) as client:
        card = post(client, "view").json()["card"]
        row = int(card["key"].split("-")[0])
        image = client.get(f"/TOKEN/image/{row}/{card['images'][0]['column']}")
        assert image.headers["content-type"] == "image/png"
        assert decode_png(image.content) == [
            min(255, max(0, 255 - int(16 * value))) for value in load_digits_attributes().X[row]
        ]
        assert len(card["more"]) == 64
        assert card["facts"] == []
    session.close()


def decode_png(content):
    """Return the pixels of a grey image without filters."""
    start = content.index(b"IDAT")
    size = int.from_bytes(content[start - 4 : start])
    lines = zlib.decompress(content[start + 4 : start + 4 + size])
    assert zlib.crc32(content[start : start + 4 + size]) == int.from_bytes(content[start + 4 + size :][:4])
    return [value for line in range(8) for value in lines[9 * line + 1 : 9 * line + 9]]
