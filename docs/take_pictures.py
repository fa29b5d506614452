"""Take the pictures of the audit page and the review app in Chromium: ``python docs/take_pictures.py``.

It audits and reviews the tables of `labelsieve demo`, with the true labels as the reviewer, and writes to
``docs/images``.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

import labelsieve
from labelsieve.datasets import load_animals
from labelsieve.datasets.animals import ANIMALS_CSV
from labelsieve.datasets.digits import load_digits_attributes, write_digits

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, chromium_sandbox=False)
        folder = Path(name)
        shutil.copyfile(ANIMALS_CSV, folder / "animals.csv")
        write_digits(folder)

        def open_page(address: str, width: int, height: int, theme: str = "light") -> Page:
            page = browser.new_context(
                viewport={"width": width, "height": height},
                is_mobile=width < 500,
                color_scheme=theme,  # type: ignore[arg-type]
                reduced_motion="reduce",
            ).new_page()
            page.goto(address)
            page.locator("html[data-ready]").wait_for(state="attached")
            return page

        labelsieve.audit(folder / "animals.csv", "tags").to_html(folder / "audit.html")
        page = browser.new_context(viewport={"width": 1200, "height": 1180}, bypass_csp=True).new_page()
        page.goto((folder / "audit.html").as_uri())
        # The answers and the flagged labels, without what is between them.
        page.add_style_tag(content="#columns, #map, #labels { display: none } #issues { margin-top: 0 }")
        take(page, "audit")

        with labelsieve.review(folder / "animals.csv", "tags") as app:
            truth = load_animals().Y
            page = open_page(app.url, 1200, 720)
            press(page, "2")
            take(page, "review-card")
            press(page, "1")
            answer_draw(page, truth)
            take(page, "review-summary")
        with labelsieve.review(folder / "digits.csv", "attributes") as app:
            digits = load_digits_attributes()
            page = open_page(app.url, 1200, 900, "dark")
            press(page, "4")
            press(page, "g")
            for _ in range(6):
                page.keyboard.press("ArrowRight")
                row, label = map(int, page.evaluate("document.activeElement.dataset.key").split("-"))
                press(page, "y" if is_right(digits.Y, label, row, page) else "n")
            take(page, "review-grid")
            page = open_page(app.url, 390, 780)
            take(page, "review-phone")
        browser.close()


def answer_draw(page: Page, truth: np.ndarray) -> None:
    """Give true verdicts on the whole draw."""
    while not page.evaluate("state.draw.complete"):
        row, label = map(int, page.evaluate("state.card.key").split("-"))
        press(page, "y" if truth[row, label] else "n")


def is_right(truth: np.ndarray, label: int, row: int, page: Page) -> bool:
    """Return the truth of a digit; the table lists its labels in another order than the dataset."""
    names = load_digits_attributes().label_names
    return bool(
        truth[row, names.index(page.evaluate(f"data.labels.find((one) => one.label === {label}).name"))]
    )


def press(page: Page, key: str) -> None:
    """Press a key, and wait until the page shows the result."""
    page.keyboard.press(key)
    page.wait_for_timeout(50)
    while page.evaluate("busy"):
        page.wait_for_timeout(20)


def take(page: Page, name: str) -> None:
    """Write a picture of the window."""
    page.wait_for_timeout(300)  # images load
    page.screenshot(path=IMAGES / f"{name}.png")
    print(f"wrote {IMAGES / name}.png")


if __name__ == "__main__":
    main()
