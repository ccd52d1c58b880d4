"""How long the page takes: the server's part, the first picture in a browser, and its scripts.

Run: ``python benchmarks/explorer.py [--sizes 18000,100000] [--repeat 3] [--json]``. A store of pages of ten
chunks each, in communities, is made for each size. Chromium must be installed.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from _report import add_output, report
from langchain_core.documents import Document
from playwright.sync_api import Page, sync_playwright

from linkstore import Link, LinkStore, add_links
from linkstore.core.documents import PageDocuments
from linkstore.explorer import Views, make_app

CHUNKS = 10
"""Chunks of a page."""
LINKS = 6
"""Links of a page, four of five within its community."""
COMMUNITY = 60
TOKEN = "a-token-of-the-benchmark"
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
WORDS = [
    "store",
    "link",
    "page",
    "group",
    "hub",
    "walk",
    "rank",
    "node",
    "path",
    "seed",
    "word",
    "text",
    "kind",
    "tag",
    "label",
    "score",
    "depth",
    "search",
    "chunk",
    "title",
]
WATCH = """() => {
  window.longest = 0;
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
  }).observe({ type: "longtask" });
}"""


def main() -> None:
    """Measure each size, and print a column for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="18000,100000", help="numbers of chunks, with commas")
    parser.add_argument("--repeat", type=int, default=3, help="how often, for the median")
    add_output(parser)
    options = parser.parse_args()
    rows = [_measure(int(size), options.repeat) for size in options.sizes.split(",")]
    report("The page of a store", rows, as_json=options.json, record_as=options.record)


def _measure(size: int, repeat: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        with LinkStore.open(Path(folder) / "kb") as store:
            _fill(store, size)
        with LinkStore.open(Path(folder) / "kb") as store:
            views = Views(store)
            first = _time(lambda: views.show("corpus", {}))
            again = statistics.median(_time(lambda: views.show("corpus", {})) for _ in range(repeat))
            asked = {"question": "which page links a group to a hub?"}
            views.show("answer", asked)
            drawn = len(views.corpus()["nodes"])
            answer = statistics.median(_time(lambda: views.show("answer", asked)) for _ in range(repeat))
            with _serve(views) as address, sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
                seen = [_look(browser.new_page(), address) for _ in range(repeat)]
                browser.close()
        return {
            "chunks": size,
            "corpus, server, first time, ms": round(1000 * first),
            "corpus, server, ms": round(1000 * again),
            "answer, server, ms": round(1000 * answer),
            "nodes drawn": drawn,
            **{name: round(statistics.median(one[name] for one in seen)) for name in seen[0]},
        }


def _time(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _fill(store: LinkStore, size: int) -> None:
    random = np.random.default_rng(5)
    pages = size // CHUNKS
    for start in range(0, pages, 200):
        made = []
        for page in range(start, min(start + 200, pages)):
            near = page // COMMUNITY * COMMUNITY + random.integers(0, COMMUNITY, LINKS)
            targets = np.where(random.random(LINKS) < 0.8, near, random.integers(0, pages, LINKS)) % pages
            made.append(PageDocuments(f"s{page}", "1", tuple(_chunks(page, targets.tolist(), random))))
        store.put_pages("benchmark", made)


def _chunks(page: int, targets: list[int], random: np.random.Generator) -> Iterator[Document]:
    for number in range(CHUNKS):
        text = " ".join(random.choice(WORDS, 40))
        made = Document(
            id=f"s{page}#{number}", page_content=text, metadata={"title": f"Page {page}", "page": f"s{page}"}
        )
        if number == 0:
            add_links(made, Link.incoming(kind="hyperlink", tag=f"s{page}"))
        if number < len(targets):
            add_links(
                made,
                Link.outgoing(kind="hyperlink", tag=f"s{targets[number]}", label=f"page {targets[number]}"),
            )
        yield made


@contextmanager
def _serve(views: Views) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        app = make_app(views, TOKEN, frozenset({host}))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"http://{host}/#token={TOKEN}"
        server.should_exit = True
        thread.join(10)


def _look(tab: Page, address: str) -> dict[str, float]:
    """Open the view of the corpus, and walk over its graph."""
    tab.goto(address)
    tab.wait_for_selector("input[name=q]")
    tab.evaluate(WATCH)
    start = time.perf_counter()
    tab.evaluate("location.hash = '#/corpus'")
    tab.wait_for_selector(".graph-canvas canvas")
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    picture = time.perf_counter() - start
    tab.wait_for_timeout(6000)  # it has settled
    tab.evaluate("window.longest = 0")
    tab.focus(".graph-canvas")
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp") * 3:
        tab.keyboard.press(key)
    tab.fill("input[aria-label='Search the drawn pages']", "page 1")
    tab.wait_for_timeout(500)
    found = {
        "first picture, ms": 1000 * picture,
        "longest script while used, ms": tab.evaluate("window.longest"),
    }
    tab.close()
    return found


if __name__ == "__main__":
    main()
