"""The review page in Chromium: a whole review by keyboard and by thumb."""

import contextlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import kill_reviews
import labelsieve
from browser import Tab, chromium, open_tab  # noqa: F401
from labelsieve.datasets.digits import write_digits
from labelsieve.inspection.review import read_review
from labelsieve.io import read

sys.path.insert(0, str(Path(__file__).parents[1] / "review_app"))
from review_tables import LABELS, make_table

pytestmark = pytest.mark.slow
KEYS = {"right": ("ArrowRight", "y"), "wrong": ("ArrowLeft", "n"), "unsure": (" ", "u")}
HOSTILE = "<script>window.hit=1</script><img src=x onerror=window.hit=1>"


class ReviewTab:
    """Tab with a review page. It waits for the server after each key or click."""

    def __init__(self, tab, truth=None):
        self.tab, self.page, self.truth = tab, tab.page, truth
        self.wait()

    def wait(self):
        self.page.locator("html[data-ready]").wait_for(state="attached")

    def state(self):
        return self.tab.run("state")

    def act(self, action):
        """Do something that changes the state, and wait until the page shows the change."""
        with self.page.expect_response(re.compile("/(view|verdict|undo|draw|write)$")):
            action()
        self.settle()

    def settle(self):
        """Wait until the page shows the last answer."""
        self.tab.settle()
        while self.tab.run("busy"):
            self.tab.settle()
        self.tab.settle()

    def key(self, key):
        self.act(lambda: self.page.keyboard.press(key))

    def click(self, selector):
        self.act(lambda: self.page.locator(selector).first.click())

    def true_verdict(self):
        card = self.state()["card"]
        row, _ = map(int, card["key"].split("-"))
        is_right = bool(self.truth[row, LABELS.index(card["label"])])
        return "right" if is_right else "wrong"

    def question(self):
        return self.tab.text("#question")


def axe(page):
    """Return the accessibility findings of a page as short texts."""
    module = pytest.importorskip("axe_playwright_python.sync_playwright")
    code = Path(sys.modules[module.__name__].__file__).with_name("axe.min.js").read_text()
    # The policy of the page blocks scripts in elements, but not those of the driver.
    page.evaluate(code)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")
    return [(entry["id"], [node["html"][:120] for node in entry["nodes"]]) for entry in found["violations"]]


@pytest.fixture
def table(tmp_path):
    return make_table(tmp_path, n_rows=600, rate=0.4)


@contextlib.contextmanager
def command(table, *arguments):
    process, address = kill_reviews.start(table, *arguments)
    try:
        yield process, address
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(params=[1280, 390], ids=["desktop", "phone"])
def width(request):
    return request.param


def test_a_whole_review_with_the_keyboard_alone(open_tab, table, width, monkeypatch):  # noqa: F811
    path, truth = table
    monkeypatch.chdir(path.parent)
    with command(path.name, "--draw", "60") as (process, address):
        tab = open_tab(address, width=width)
        review = ReviewTab(tab, truth)
        assert review.page.locator("#question").is_visible()
        for number in range(40):
            key = KEYS["unsure" if number == 11 else review.true_verdict()][number % 2]
            review.key(key)
            assert review.state()["draw"]["done"] == number + 1
        assert tab.run("document.activeElement.id") == "question"
        assert "40 of 60 reviewed" in tab.text("#live")
        assert not review.state()["answers"]
        for number in (39, 38):
            review.key("z")
            assert review.state()["draw"]["done"] == number
        shown = review.question()
        review.page.reload()
        review.wait()
        assert review.state()["draw"]["done"] == 38
        review.page.keyboard.press("Tab")  # keys work wherever the focus is
        assert review.question() == shown
        tab.assert_clean_server()
        process.kill()
        process.communicate()
        review.page.keyboard.press("y")  # this verdict is not saved, and the page says so
        review.page.locator("#problem").wait_for()
        assert "Not saved" in tab.text("#problem")
    known = read_review(path.with_name("things.review.csv"), read(path, "tags"))
    assert (known.answers >= 0).sum() == 38
    with command(path.name, "--draw", "60") as (_, address):
        tab = open_tab(address, width=width)
        review = ReviewTab(tab, truth)
        assert review.state()["draw"]["done"] == 38
        assert review.question() == shown
        while not review.state()["draw"]["complete"]:
            review.key(KEYS[review.true_verdict()][0])
        assert tab.text("#question") == "The draw is complete"
        says = tab.texts("#summary .head .say")
        n_removable = review.state()["finish"]["removable"]
        assert n_removable > 10
        assert re.match(r"Between [\d,]+ and [\d,]+ of [\d,]+ labels are wrong", says[0])
        assert f"{n_removable:,} labels without a verdict can be removed" in says[1]
        # With Tab and space to the checkbox and the button.
        while tab.run("document.activeElement.id") != "removals-too":
            review.page.keyboard.press("Tab")
        review.page.keyboard.press("Space")
        assert tab.run("document.activeElement.id") == "removals-too"
        while tab.run("document.activeElement.id") != "write":
            review.page.keyboard.press("Tab")
        review.key("Enter")
        assert tab.run("document.activeElement.id") == "written"
        assert f"{n_removable + review.state()['counts']['wrong']} labels removed" in tab.text("#written")
        copy = Path("things.clean.csv").read_bytes()
        commands = tab.texts(".cmd code")
        assert len(commands) == 2
        tab.assert_clean_server()
    Path("things.clean.csv").unlink()
    for text in commands:
        words = [sys.executable, "-m", *shlex.split(text)]
        assert subprocess.run(words, capture_output=True).returncode == 0
    assert Path("things.clean.csv").read_bytes() == copy


def test_a_review_by_thumb_on_a_phone(open_tab, table):  # noqa: F811
    path, truth = table
    with labelsieve.review(path, "tags", n_drawn=10) as app:
        review = ReviewTab(open_tab(app.url, width=390), truth)
        page = review.page
        box = page.locator(".dock").bounding_box()
        for verdict in KEYS:
            button = page.locator(f"[data-verdict={verdict}]").bounding_box()
            assert button["height"] >= 44
            assert button["width"] >= 100
        assert box["y"] + box["height"] == pytest.approx(900, abs=1)  # at the bottom of the screen
        for _ in range(10):
            review.click(f"[data-verdict={review.true_verdict()}]")
        assert review.state()["draw"]["complete"]
        review.click("nav button:nth-child(2)")
        review.click("[data-verdict=wrong]")
        review.click("#undo")
        assert review.state()["last"]["number"] == 10
        review.tab.assert_clean_server()


def test_next_and_previous_show_other_cards_without_a_verdict(open_tab, table):  # noqa: F811
    with labelsieve.review(table[0], "tags") as app:
        review = ReviewTab(open_tab(app.url), table[1])
        shown = [review.question()]
        for _ in range(3):
            review.key("j")
            shown.append(review.question())
        assert len(set(shown)) == 4
        for question in shown[2::-1]:
            review.key("k")
            assert review.question() == question
        review.key("y")
        review.key("k")
        assert review.question() == shown[0]
        assert "Your verdict: Right" in review.tab.text(".given")
        review.key("n")
        assert review.state()["counts"] == {
            "right": 0,
            "wrong": 1,
            "unsure": 0,
            "missing": 0,
            "not_missing": 0,
        }
        assert app.review.answers[app.review.answers >= 0].tolist() == [0]


def test_a_held_key_gives_one_verdict_and_single_keys_can_be_switched_off(open_tab, table):  # noqa: F811
    with labelsieve.review(table[0], "tags") as app:
        review = ReviewTab(open_tab(app.url), table[1])
        page = review.page
        with page.expect_response(re.compile("verdict$")):
            for _ in range(5):  # the first goes down, the others repeat
                page.keyboard.down("y")
            page.keyboard.up("y")
        review.tab.settle()
        assert review.state()["draw"]["done"] == 1
        page.keyboard.press("?")
        assert page.locator("#keys").is_visible()
        page.keyboard.press("y")
        page.locator("#single").uncheck()
        page.locator("#keys [data-close]").click()
        page.keyboard.press("y")
        page.keyboard.press("z")
        review.key("ArrowRight")
        assert review.state()["draw"]["done"] == 2


def test_reasons_are_folded_in_the_draw_only(open_tab, table):  # noqa: F811
    with labelsieve.review(table[0], "tags") as app:
        review = ReviewTab(open_tab(app.url), table[1])
        assert review.tab.count(".two") == 0
        review.page.keyboard.press("r")
        assert review.tab.count(".two") == 1
        review.key("y")
        assert review.tab.count(".two") == 0  # folded again for the next card
        review.key("2")
        assert review.tab.count(".two") == 1
        assert "other rows with similar values" in review.tab.text(".two")
        review.page.keyboard.press("r")
        assert review.tab.count(".two") == 0


def test_a_second_tab_stays_consistent(open_tab, table):  # noqa: F811
    with labelsieve.review(table[0], "tags") as app:
        first, second = (ReviewTab(open_tab(app.url), table[1]) for _ in range(2))
        shown = first.question()
        assert second.question() == shown
        first.key("y")
        # The second tab still shows the card. Its verdict is not taken, and it shows the next card.
        second.page.keyboard.press("n")
        second.page.locator("#problem").wait_for()
        second.settle()
        assert "another tab" in second.tab.text("#problem")
        assert second.question() == first.question() != shown
        assert app.review.answers[app.review.answers >= 0].tolist() == [1]
        second.key("n")
        assert second.state()["counts"]["wrong"] == 1
        # The first tab notices by itself.
        first.page.locator(f"html[data-ready='{second.state()['version']}']").wait_for(
            state="attached", timeout=15000
        )
        assert first.question() == second.question()


def test_the_grid_with_the_keyboard(open_tab, table):  # noqa: F811
    with labelsieve.review(table[0], "tags") as app:
        review = ReviewTab(open_tab(app.url), table[1])
        review.key("4")
        review.key("g")
        assert review.tab.count(".g") == 12
        review.page.keyboard.press("ArrowRight")
        review.key("n")
        review.page.keyboard.press("ArrowRight")
        review.key("y")
        review.page.keyboard.press("ArrowDown")
        review.key("u")
        assert [card["verdict"] for card in review.state()["grid"]][:5] == [
            "wrong",
            "right",
            "",
            "",
            "unsure",
        ]
        assert review.tab.run("document.activeElement.dataset.key") == review.state()["grid"][4]["key"]
        review.click("#rest")
        assert review.state()["counts"]["right"] == 10
        review.key("z")
        assert review.state()["counts"]["right"] == 1
        review.page.locator("#label").select_option("2")
        review.settle()
        review.page.locator("#question em", has_text=review.state()["grid"][0]["label"]).wait_for()
        review.tab.assert_clean_server()


def test_another_draw_starts_from_the_summary(open_tab, table):  # noqa: F811
    with labelsieve.review(table[0], "tags", n_drawn=10) as app:
        review = ReviewTab(open_tab(app.url), table[1])
        for _ in range(10):
            review.key("y")
        review.click("#drawnext")
        assert review.state()["draw"] == {
            "number": 2,
            "size": 50,
            "done": 0,
            "complete": False,
            "can_draw": False,
        }
        assert "least supported 20%" in review.tab.attribute("nav button", "title")


def test_images_are_shown(open_tab, tmp_path):  # noqa: F811
    path = write_digits(tmp_path, n_rows=80)
    with labelsieve.review(path, "attributes", n_drawn=10) as app:
        review = ReviewTab(open_tab(app.url))
        image = review.page.locator(".images img")
        image.wait_for()
        assert image.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 8
        assert image.bounding_box()["width"] > 100
        review.tab.assert_clean_server()


def test_nothing_in_the_table_is_read_as_markup(open_tab, tmp_path):  # noqa: F811
    frame = pd.DataFrame(
        {
            f"id {HOSTILE}": [f"{row} {HOSTILE}" for row in range(60)],
            HOSTILE: [row * 7 % 11 for row in range(60)],
            "text": [f"{HOSTILE} {row} </script>" * 4 for row in range(60)],
            "tags": [f"{HOSTILE};b" if row * 7 % 11 > 4 else "b" for row in range(60)],
        }
    )
    frame.loc[:5, "tags"] = HOSTILE
    path = tmp_path / "things.csv"
    frame.to_csv(path, index=False)
    with labelsieve.review(read(path, "tags", id=f"id {HOSTILE}"), n_drawn=10) as app:
        review = ReviewTab(open_tab(app.url))
        for key in ("r", "j", "2", "3", "4", "g", "f"):
            review.page.keyboard.press(key)
            review.page.wait_for_timeout(200)
            assert review.tab.run("window.hit") is None
            assert review.tab.count("main script, main img[src=x]") == 0
        review.key("1")
        assert HOSTILE in review.question()
        review.tab.assert_clean_server()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(open_tab, table, width, theme):  # noqa: F811
    with labelsieve.review(table[0], "tags", n_drawn=60) as app:
        review = ReviewTab(open_tab(app.url, width=width, theme=theme), table[1])
        page = review.page
        assert axe(page) == []
        page.keyboard.press("r")
        assert axe(page) == []
        for key in ("2", "3", "4", "g"):
            review.key(key)
            assert axe(page) == [], key
        for key in ("ArrowRight", "n", "ArrowRight", "y", "ArrowRight", "u"):
            if "Arrow" in key:
                page.keyboard.press(key)
            else:
                review.key(key)
        assert axe(page) == []
        page.keyboard.press("?")
        assert axe(page) == []
        page.keyboard.press("Escape")
        review.key("1")
        for _ in range(60):
            review.key(KEYS[review.true_verdict()][1])
        assert axe(page) == []
        page.locator("#removals-too").check()
        review.click("#write")
        assert axe(page) == []
        page.get_by_text("Preview").first.click()
        page.locator("#removals tr").first.wait_for()
        assert axe(page) == []
        page.keyboard.press("Escape")
        page.route("**/verdict", lambda route: route.abort())
        page.keyboard.press("2")
        page.wait_for_timeout(300)
        page.keyboard.press("y")
        page.locator("#problem").wait_for()
        assert axe(page) == []
        review.tab.assert_clean_server(fails=True)
