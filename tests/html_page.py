"""An HTML page as a browser without scripts would see it."""

from html.parser import HTMLParser


class HtmlPage(HTMLParser):
    """Checks that elements nest, and collects words, embedded data, addresses, handlers and identifiers."""

    def __init__(self, html):
        super().__init__()
        self.open, self.text, self.data = [], "", ""
        self.addresses, self.handlers, self.ids = [], [], []
        self.n_scripts = 0
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "link", "br", "input", "col", "img"):
            self.open.append("json" if ("type", "application/json") in attributes else tag)
        self.n_scripts += tag == "script"
        for name, value in attributes:
            assert name != "style"  # the policy of the page forbids it
            if name in ("src", "href", "xlink:href", "action"):
                self.addresses.append(value)
            if name.startswith("on"):
                self.handlers.append(name)
            if name == "id" and "svg" not in self.open:
                self.ids.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop().replace("json", "script") == tag

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_data(self, data):
        if "json" in self.open:
            self.data += data
        elif not {"style", "script"} & set(self.open):
            self.text += data
