"""The page of a run in a real browser, driven by the DevTools protocol."""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request

import pytest

from labelsieve.report.page import make_report, render_report
from synthetic_runs import make_summary, noisy

websocket = pytest.importorskip("websocket")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
]
# Seconds; only a browser that hangs takes so long.
PATIENCE = 60


class Browser:
    """One tab, and everything it complained about or asked for."""

    def __init__(self, address):
        self._socket = websocket.create_connection(address, timeout=PATIENCE)
        self._number = 0
        self.events = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        """Give an order and wait for the answer; what happens meanwhile is kept."""
        message = self.ask(method, **params)
        assert "error" not in message, message
        return message["result"]

    def ask(self, method, **params):
        """The same for an order that may be refused; returns the whole answer."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                return message
            self.events.append(message)

    def evaluate(self, expression):
        """The value of an expression in the page; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(self, url):
        """Load a page, forget the one before."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(json.loads(self._socket.recv()))

    def click(self, element):
        """Click into the middle of an element."""
        x, y = self._middle(element)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def _middle(self, element):
        return self.evaluate(
            f"(() => {{ const e = {element};"
            "e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )

    def choose(self, element, text):
        """Choose an option of a select by its text, as a user does."""
        assert self.evaluate(
            f"(() => {{ const s = {element}; const o = [...s.options].find((one) => one.text === {json.dumps(text)});"
            "if (!o) return false; o.selected = true; s.dispatchEvent(new Event('change')); return true; })()"
        )

    def hover(self, element):
        """Move the mouse over the middle of an element."""
        x, y = self._middle(element)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key, text=""):
        """Press a key on whatever has the focus."""
        codes = {"Enter": 13, " ": 32, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39}
        options = {"key": key, "windowsVirtualKeyCode": codes[key], "code": "Space" if key == " " else key}
        typed = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **typed, **options)
        self.call("Input.dispatchKeyEvent", type="keyUp", **options)

    def of(self, method):
        """The parameters of all events of a kind."""
        self.evaluate("new Promise((done) => setTimeout(done, 50))")  # what is under way arrives
        return [event["params"] for event in self.events if event["method"] == method]

    def complaints(self):
        """Exceptions, errors of the console and of the browser."""
        console = [
            call for call in self.of("Runtime.consoleAPICalled") if call["type"] in ("error", "assert")
        ]
        log = [entry for entry in self.of("Log.entryAdded") if entry["entry"]["level"] == "error"]
        return [*self.of("Runtime.exceptionThrown"), *console, *log]

    def requests(self):
        """Addresses the page asked for."""
        return [request["request"]["url"] for request in self.of("Network.requestWillBeSent")]

    def close(self):
        self._socket.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    profile = tmp_path_factory.mktemp("chromium")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=nowhere, stderr=nowhere, start_new_session=True)
    try:
        tab = Browser(_tab_address(profile / "DevToolsActivePort", process))
        yield tab
        tab.close()
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # its own group: the browser and its helpers
        process.wait()


def _tab_address(port_file, process):
    """Wait until the browser says where it listens; returns the address of its tab."""
    end = time.monotonic() + PATIENCE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < end:
        assert process.poll() is None, "chromium ended at once"
        if port_file.exists() and port_file.read_text().strip():
            with opener.open(f"http://127.0.0.1:{port_file.read_text().split()[0]}/json") as answer:
                tabs = [target for target in json.load(answer) if target["type"] == "page"]
            if tabs:
                return tabs[0]["webSocketDebuggerUrl"]
        time.sleep(0.1)
    raise AssertionError("chromium did not start")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with charts; its address."""
    run = make_summary(
        noisy(),
        datasets=("one", "two", "ten"),
        methods=("a", "b", "c"),
        references=("no-features", "random-ranking"),
        classifiers=("linear-svm", "ml-knn"),
        skip=lambda dataset, method, **_: (dataset, method) == ("two", "c"),
    )
    report = make_report(run)
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(render_report(report), "utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser, page):
    browser.open(page)
    return browser


TABLE = "document.querySelector('table[data-table=\"ranking_loss\"]')"


def column(browser, place):
    """The numbers of a column as the rows stand now; None for a gap."""
    return browser.evaluate(
        f"[...{TABLE}.tBodies[0].rows].map((row) => row.cells[{place}].dataset.v)"
        ".map((value) => value === '' ? null : Number(value))"
    )


def head(place):
    return f"{TABLE}.tHead.rows[1].cells[{place}]"


def test_the_page_shows_tables_and_figures_without_a_complaint_or_a_request(opened, page):
    assert opened.evaluate("document.querySelector('.findings .first').innerText").count("average rank") == 1
    assert opened.evaluate("document.querySelectorAll('table.sortable').length") >= 8
    charts = opened.evaluate("[...document.querySelectorAll('figure')].map((one) => one.dataset.chart)")
    assert charts == ["ranks", "curves", "costs", "convergence", "stability"]
    assert opened.evaluate(
        "[...document.querySelectorAll('.stage svg')].every((svg) => svg.getBBox().width > 200)"
    )
    assert opened.complaints() == []
    assert {url for url in opened.requests() if not url.startswith("data:")} == {page}


def test_a_click_sorts_by_numbers_and_another_turns_the_order(opened):
    before = column(opened, 1)
    opened.click(f"{head(1)}.querySelector('button')")
    assert column(opened, 1) == sorted(before)
    assert opened.evaluate(f"{head(1)}.getAttribute('aria-sort')") == "ascending"
    opened.click(f"{head(1)}.querySelector('button')")
    assert column(opened, 1) == sorted(before, reverse=True)
    assert opened.evaluate(f"{head(1)}.getAttribute('aria-sort')") == "descending"
    # The averages stay below.
    assert opened.evaluate(f"{TABLE}.tFoot.rows[0].cells[0].innerText") == "average rank"
    assert opened.complaints() == []


@pytest.mark.parametrize(("key", "text"), [("Enter", "\r"), (" ", " ")])
def test_the_keyboard_sorts_as_a_click_does(opened, key, text):
    opened.evaluate(f"{head(2)}.querySelector('button').focus()")
    opened.press(key, text)
    assert column(opened, 2) == sorted(column(opened, 2))
    assert opened.evaluate(f"{head(2)}.getAttribute('aria-sort')") == "ascending"
    assert opened.evaluate(f"{head(1)}.getAttribute('aria-sort')") == "none"


def test_gaps_stay_last_whatever_the_order(opened):
    for _ in range(2):
        opened.click(f"{head(3)}.querySelector('button')")
        assert [value is None for value in column(opened, 3)] == [False, False, True]


def test_names_sort_by_the_alphabet(opened):
    opened.click(f"{head(0)}.querySelector('button')")
    rows = f"[...{TABLE}.tBodies[0].rows].map((row) => row.cells[0].innerText)"
    assert opened.evaluate(rows) == ["one", "ten", "two"]


CURVES = "document.querySelector('#curves')"


def select(section, place):
    return f"document.querySelectorAll('#{section} select')[{place}]"


def drawn(browser):
    """Names of the lines of the curves, by the ends of which they stand."""
    return set(
        browser.evaluate(f"[...{CURVES}.querySelectorAll('svg.lines .label')].map((e) => e.textContent)")
    )


def told(browser):
    """What the tip says, line by line; None while it is hidden."""
    return browser.evaluate(
        "(() => { const t = document.getElementById('tip');"
        "return t.hidden ? null : [...t.children].map((e) => e.textContent); })()"
    )


def test_pointing_at_a_chart_tells_method_data_set_and_value(opened):
    opened.choose(select("curves", 1), "all data sets")
    opened.hover(f"{CURVES}.querySelectorAll('svg.lines')[1].querySelector('circle.control')")
    name, where, value = told(opened)
    # The control is the first method; the panel the second data set, at the smaller of two sizes.
    assert (name, where) == ("a", "two, features kept: 2")
    mean, _, spread = value.partition(" ± ")
    assert 0 < float(mean) < 1
    assert spread.endswith(" over folds")
    # Its line stands out in every panel.
    assert opened.evaluate(f"{CURVES}.querySelectorAll('polyline.hot').length") == 3
    opened.hover("document.querySelector('h1')")
    assert told(opened) is None
    assert opened.evaluate(f"{CURVES}.querySelectorAll('.hot').length") == 0
    assert opened.complaints() == []


def test_the_legend_switches_methods_off_and_on_in_every_chart(opened):
    assert drawn(opened) == {"a", "b", "c", "no-features", "random-ranking"}
    button = f"{CURVES}.querySelectorAll('.legend button')[1]"
    opened.click(button)
    assert drawn(opened) == {"a", "c", "no-features", "random-ranking"}
    assert opened.evaluate(f"{button}.getAttribute('aria-pressed')") == "false"
    opened.evaluate(f"{button}.focus()")
    opened.press(" ", " ")
    assert drawn(opened) == {"a", "b", "c", "no-features", "random-ranking"}
    assert opened.evaluate(f"{button}.getAttribute('aria-pressed')") == "true"


def test_a_metric_is_chosen_once_for_charts_and_tables(opened):
    tables = "[...document.querySelectorAll('#metrics .table')]"
    shown = f"{tables}.filter((e) => e.offsetParent).map((e) => e.dataset.metric)"
    assert opened.evaluate(shown) == ["Ranking loss ↓"]
    line = f"{CURVES}.querySelector('polyline.control').getAttribute('points')"
    before = opened.evaluate(line)
    opened.choose(select("metrics", 0), "Average precision ↑")
    assert opened.evaluate(shown) == ["Average precision ↑"]
    assert opened.evaluate(line) != before
    ranks = "document.querySelector('#ranks select').selectedOptions[0].text"
    assert opened.evaluate(ranks) == "Average precision ↑"
    assert "higher is better" in opened.evaluate(f"{CURVES}.querySelector('svg').textContent")
    # Another judge and another data set draw other lines.
    for place, text in ((2, "ml-knn"), (1, "ten")):
        before = opened.evaluate(line)
        opened.choose(select("curves", place), text)
        assert opened.evaluate(line) != before
    assert opened.complaints() == []


def test_the_reader_says_which_deviation_stands_in_the_tables(opened):
    seen = "[...document.querySelector('#metrics .table').querySelectorAll('small, p')].filter((e) => e.offsetParent)"
    kinds = f"[...new Set({seen}.map((e) => e.classList.contains('sizes') ? 'sizes' : 'folds'))]"
    note = f"{seen}.find((e) => e.tagName === 'P').textContent"
    assert opened.evaluate(kinds) == ["folds"]
    assert "± standard deviation over the folds at one size" in opened.evaluate(note)
    opened.choose(select("metrics", 1), "over the sizes")
    assert opened.evaluate(kinds) == ["sizes"]
    assert "± standard deviation over the sizes" in opened.evaluate(note)
    opened.choose(select("metrics", 1), "not shown")
    assert opened.evaluate(f"{seen}.filter((e) => e.tagName === 'SMALL').length") == 0


def test_the_arrow_keys_go_from_point_to_point(opened):
    opened.evaluate(f"{CURVES}.querySelector('svg.lines').focus()")
    opened.press("ArrowRight")
    assert told(opened)[:2] == ["a", "one, features kept: 2"]
    opened.press("ArrowRight")
    assert told(opened)[:2] == ["a", "one, features kept: 4"]
    live = opened.evaluate(f"{CURVES}.querySelector('[aria-live]').textContent")
    assert live.startswith("a, one, features kept: 4: ")
    opened.press("ArrowLeft")
    # Up: the next larger value among the other lines at the same size, those that need no size too.
    data = json.loads(opened.evaluate("document.getElementById('data').textContent"))
    first = {place: row["y"][0] for place, row in data["charts"]["curves"]["panels"]["0,0,0"]["rows"].items()}
    above = [place for place in first if first[place] > first["0"]]
    assert above, "the test needs a line above the control's"
    opened.press("ArrowUp")
    assert told(opened)[0] == data["series"][int(min(above, key=first.__getitem__))]["name"]
    opened.press("Escape")
    assert told(opened) is None


def emulate(browser, scheme="light", media="screen"):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", media=media, features=features)


def test_the_inks_of_data_stay_in_the_dark_and_paper_is_light(browser, page):
    look = (
        "[getComputedStyle(document.body).backgroundColor,"
        f"getComputedStyle({CURVES}.querySelector('polyline.control')).stroke,"
        f"getComputedStyle({CURVES}.querySelector('.controls')).display,"
        "[...document.querySelectorAll('#metrics .table')].filter((e) => e.offsetParent).length]"
    )
    looks = {}
    try:
        for scheme, media in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
            emulate(browser, scheme, media)
            browser.open(page)
            looks[scheme, media] = browser.evaluate(look)
    finally:
        emulate(browser)
    white, blue = "rgb(255, 255, 255)", "rgb(31, 119, 180)"
    assert looks["light", "screen"] == [white, blue, "flex", 1]
    assert looks["dark", "screen"] == ["rgb(20, 23, 27)", blue, "flex", 1]
    # On paper every metric has its table, and there is nothing to press.
    assert looks["dark", "print"] == [white, blue, "none", 2]


def test_without_javascript_words_and_tables_are_there(browser, page):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        browser.call("DOM.enable")
        root = browser.call("DOM.getDocument")["root"]["nodeId"]

        def boxes(selector):
            nodes = browser.call("DOM.querySelectorAll", nodeId=root, selector=selector)["nodeIds"]
            return [_height(browser, node) for node in nodes]

        assert all(height > 0 for height in boxes("#metrics .table"))
        assert len(boxes("#metrics .table")) == 2
        assert all(height > 0 for height in boxes(".findings li, #ranks table, #curves noscript p"))
        assert boxes("figure.chart") == [0] * 5
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def _height(browser, node):
    """Of an element on the page; 0 if it is not displayed."""
    answer = browser.ask("DOM.getBoxModel", nodeId=node)
    return answer["result"]["model"]["height"] if "result" in answer else 0


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_itself_never_scrolls_sideways(browser, page, width):
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=True
    )
    try:
        browser.open(page)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def test_the_network_and_other_scripts_are_out_of_reach(opened):
    """Also shows that the tests above would notice a complaint."""
    asked = "fetch('http://127.0.0.1:9/').then(() => 'reached', () => 'refused')"
    assert opened.evaluate(asked) == "refused"
    inject = (
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.injected = 1'}))"
    )
    opened.evaluate(f"{inject}; 0")
    assert opened.evaluate("typeof window.injected") == "undefined"
    told = " ".join(entry["entry"]["text"] for entry in opened.of("Log.entryAdded"))
    told += " ".join(str(call["args"]) for call in opened.of("Runtime.consoleAPICalled"))
    assert "Content Security Policy" in told
