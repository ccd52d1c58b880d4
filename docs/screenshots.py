"""Takes the pictures of the page that the documentation shows, in docs/images. Run by ``make screenshots``.

The demo's site is asked, and the Markdown files of this documentation are the corpus.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from browsing import BROWSER, FLAGS, serving  # of tests/support
from playwright.sync_api import Browser, Page, sync_playwright

from linkstore import LinkStore
from linkstore.cli.demo import QUESTION, site
from linkstore.ingest import FolderSource, index

DOCS: Final = Path(__file__).parent
IMAGES: Final = DOCS / "images"
SCHEMES: Final = ("light", "dark")
SETTLED: Final = 6000
"""Milliseconds after which a graph has settled."""


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        with (
            LinkStore.open(Path(folder) / "demo") as demo,
            LinkStore.open(Path(folder) / "docs") as docs,
            site() as pages,
        ):
            index(demo, FolderSource(pages))
            index(docs, FolderSource(DOCS))
            with serving(demo, name="demo") as address:
                take(browser, address, "ask", f"#/ask?{urlencode({'q': QUESTION})}", ".diagram .node")
            with serving(docs, name="docs") as address:
                take(browser, address, "corpus", "#/corpus", ".graph-status:has-text('pages')")
                page = urlencode({"id": "explanation/link-groups.md"})
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
        tab.screenshot(path=IMAGES / f"explorer-{name}-{scheme}.png")
        context.close()


if __name__ == "__main__":
    main()
