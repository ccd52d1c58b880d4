"""Takes the pictures of the page that the documentation shows, in docs/images. Run by ``make screenshots``.

They show SQLite's manual, as ``linkstore demo sqlite`` has it.
"""

from __future__ import annotations

import tempfile
from io import BytesIO
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from browsing import BROWSER, FLAGS, serving  # of tests/support
from PIL import Image  # of matplotlib
from playwright.sync_api import Browser, Page, sync_playwright

from linkstore import LinkStore
from linkstore.cli.demo import DEMO_LINKS, site
from linkstore.ingest import FolderSource, index

DOCS: Final = Path(__file__).parent
IMAGES: Final = DOCS / "images"
QUESTION: Final = "What is a virtual machine good for in a database?"
"""One of the questions of the demo."""
PAGE: Final = "wal.html"
SCHEMES: Final = ("light", "dark")
SETTLED: Final = 6000
"""Milliseconds after which a graph has settled."""


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        with LinkStore.open(Path(folder) / "manual") as store, site("sqlite") as pages:
            index(store, FolderSource(pages), links=DEMO_LINKS)
            with serving(store, name="SQLite's manual") as address:
                take(browser, address, "ask", f"#/ask?{urlencode({'q': QUESTION})}", ".diagram .node")
                take(browser, address, "corpus", "#/corpus", ".graph-status:has-text('pages')")
                page = urlencode({"id": PAGE})
                take(browser, address, "document", f"#/document?{page}", ".around .node")
        browser.close()


def take(browser: Browser, address: str, name: str, view: str, awaited: str) -> None:
    """Take a picture of a view, light and dark."""
    for scheme in SCHEMES:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
        tab: Page = context.new_page()
        tab.goto(address)
        tab.wait_for_selector("input[name=q]")
        tab.evaluate("view => location.hash = view", view)
        tab.wait_for_selector(awaited)
        tab.wait_for_timeout(SETTLED)
        tab.evaluate("document.activeElement?.blur()")
        picture = Image.open(BytesIO(tab.screenshot())).convert("RGB")
        picture.quantize(128).save(IMAGES / f"explorer-{name}-{scheme}.png", optimize=True)
        context.close()


if __name__ == "__main__":
    main()
