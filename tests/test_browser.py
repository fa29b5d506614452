"""The pages of a run and of a fit in a real browser, driven by the DevTools protocol."""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request

import pytest

from labelsieve import PMLFSMIR
from labelsieve.datasets import load_digits_attributes
from labelsieve.inspection.page import write_page
from labelsieve.inspection.selection import summarise
from labelsieve.report.charts.figures import draw_figures
from labelsieve.report.contents import make_report
from labelsieve.report.page import render_report
from synthetic_runs import make_summary
from test_report_analysis import noisy

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
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
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
        x, y = self.evaluate(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center', inline: 'center'}});"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key, text):
        """Press a key on whatever has the focus."""
        code = {"Enter": 13, " ": 32}[key]
        options = {"key": key, "windowsVirtualKeyCode": code, "code": "Enter" if key == "Enter" else "Space"}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **options)
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
    """A page with figures; its address."""
    run = make_summary(
        noisy(),
        datasets=("one", "two", "ten"),
        methods=("a", "b", "c"),
        references=("no-features", "random-ranking"),
        metrics=("ranking_loss",),
        skip=lambda dataset, method, **_: (dataset, method) == ("two", "c"),
    )
    report = make_report(run)
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(render_report(report, pictures=draw_figures(report.analysis)), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def inspection(tmp_path_factory):
    """The page of one fit; its address."""
    digits = load_digits_attributes()
    selector = PMLFSMIR(n_features_to_select=5).fit(digits.X, digits.candidates)
    path = tmp_path_factory.mktemp("inspection") / "page.html"
    write_page(summarise(selector, digits, "pml-fsmir", converged=True), path)
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
    assert opened.evaluate("document.querySelectorAll('figure svg').length") >= 4
    assert opened.evaluate(
        "[...document.querySelectorAll('figure svg')].every((svg) => svg.getBBox().width > 50)"
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


def test_the_page_of_a_fit_shows_all_without_a_complaint_or_a_request(browser, inspection):
    browser.open(inspection)
    assert browser.evaluate("document.querySelectorAll('.bar span').length") == 5
    # The best feature has the whole bar: styles in attributes are allowed.
    assert browser.evaluate("document.querySelector('.bar span').getBoundingClientRect().width") > 20
    assert browser.evaluate("document.querySelector('figure svg').getBBox().width") > 50
    assert browser.complaints() == []
    assert {url for url in browser.requests() if not url.startswith("data:")} == {inspection}


@pytest.mark.parametrize("kind", ["page", "inspection"])
def test_the_network_and_other_scripts_are_out_of_reach(browser, kind, request):
    """Also shows that the tests above would notice a complaint."""
    opened = browser
    opened.open(request.getfixturevalue(kind))
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
