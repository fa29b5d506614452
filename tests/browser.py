"""Pages in the system's Chromium, driven by playwright."""

import shutil

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = ["--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update"]


class Tab:
    """An open page with everything it logged as an error and every address it requested."""

    def __init__(self, chromium, address, *, width=1280, theme="light", script=True):
        self.address = address
        self.errors, self.requests = [], []
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            is_mobile=width < 500,
            color_scheme=theme,
            reduced_motion="reduce",
            java_script_enabled=script,
        )
        self.page = context.new_page()
        self.page.on("console", self._log)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def _log(self, message):
        if message.type in ("error", "assert"):
            self.errors.append(message.text)

    def run(self, expression):
        """Evaluate JavaScript in the page and wait for its promise."""
        return self.page.evaluate(expression)

    def settle(self):
        """Wait until pending changes are drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def show(self, theme="light", media="screen"):
        """Switch theme and medium."""
        self.page.emulate_media(color_scheme=theme, media=media)

    def text(self, selector):
        return self.page.locator(selector).first.text_content()

    def texts(self, selector):
        return self.page.locator(selector).all_text_contents()

    def count(self, selector):
        return self.page.locator(selector).count()

    def attribute(self, selector, name):
        return self.page.locator(selector).first.get_attribute(name)

    def click(self, selector):
        self.page.locator(selector).first.click()
        self.settle()

    def choose(self, selector, option):
        """Choose an option of a select by its text."""
        self.page.locator(selector).first.select_option(label=option)
        self.settle()

    def type(self, selector, text):
        """Replace the text of a field and leave it."""
        field = self.page.locator(selector).first
        field.fill(text)
        field.dispatch_event("change")
        self.settle()

    def key(self, key, selector=None):
        if selector is not None:
            self.page.locator(selector).first.focus()
        self.page.keyboard.press(key)
        self.settle()

    def assert_clean(self):
        """Check that the page raised no error, requested nothing and does not scroll sideways."""
        self.settle()
        assert self.errors == []
        assert {url for url in self.requests if not url.startswith(("data:", "blob:"))} == {self.address}
        assert self.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0

    def assert_clean_server(self, *, fails=False):
        """Check that the page of a local server raised no error, sent no other request and does not scroll sideways.

        If `fails`, requests may fail, which the browser logs.
        """
        self.settle()
        assert [error for error in self.errors if not (fails and "Failed to load" in error)] == []
        assert {url for url in self.requests if not url.startswith(("data:", self.address))} == set()
        assert self.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0

    def close(self):
        self.page.context.close()


@pytest.fixture(scope="module")
def chromium():
    """A running Chromium, or a skipped test."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=_FLAGS, chromium_sandbox=False)
        yield browser
        browser.close()


@pytest.fixture
def open_tab(chromium):
    """Open pages in fresh tabs that are closed after the test."""
    tabs = []

    def open_(address, **options):
        tabs.append(Tab(chromium, address, **options))
        return tabs[-1]

    yield open_
    for tab in tabs:
        tab.close()
