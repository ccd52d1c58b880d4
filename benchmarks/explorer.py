"""How long the page takes: the server's part, the first picture in a browser, and its scripts.

Run: ``python benchmarks/explorer.py [--sizes 18000,100000] [--repeat 3] [--json]``. A store of pages of ten
chunks each, in communities, is made for each size. Chromium must be installed; it draws without a graphics
card. Beside the times on the clock stand those on the processor, which other work on the machine changes
less.
"""

from __future__ import annotations

import argparse
import os
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
from playwright.sync_api import CDPSession, Page, sync_playwright

from linkstore import Link, LinkStore, add_links
from linkstore.core.calls import run
from linkstore.core.documents import PageDocuments
from linkstore.explorer.corpus import read_corpus
from linkstore.explorer.server import make_app
from linkstore.explorer.views import Views

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
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
FIND = "input[aria-label='Search the drawn pages']"


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
            asked = {"question": "which page links a group to a hub?"}
            first = _time(lambda: views.show("corpus", {}))
            read = [_time(lambda: run(read_corpus(store.backend))) for _ in range(repeat)]
            views.show("answer", asked)
            answer = [_time(lambda: views.show("answer", asked)) for _ in range(repeat)]
            facets = [_time(lambda: views.show("facets", asked)) for _ in range(repeat)]
            drawn = len(views.show("corpus", {})["nodes"])
            seen = []
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
                for _ in range(repeat):
                    with _serve(Views(store)) as address:  # it has read nothing yet
                        seen.append(_look(browser.new_page(), address))
                browser.close()
    measured = {
        "corpus, server, first": first,
        "corpus, server": _median(read),
        "answer, server": _median(answer),
        "facets, server": _median(facets),
        "first picture": _median([one[0] for one in seen]),
        "longest interaction": _median([one[1] for one in seen]),
    }
    return {
        "chunks": size,
        "nodes drawn": drawn,
        **{f"{name}, ms": round(1000 * clock) for name, (clock, _) in measured.items()},
        **{f"{name}, CPU ms": round(1000 * cpu) for name, (_, cpu) in measured.items()},
        "processes that wanted a core": round(os.getloadavg()[0]),
    }


def _median(times: list[tuple[float, float]]) -> tuple[float, float]:
    clock, cpu = zip(*times, strict=True)
    return statistics.median(clock), statistics.median(cpu)


def _time(work: Any) -> tuple[float, float]:
    """Seconds on the clock and on the processor."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def _fill(store: LinkStore, size: int) -> None:
    random = np.random.default_rng(5)
    pages = size // CHUNKS
    for start in range(0, pages, 200):
        made = []
        for page in range(start, min(start + 200, pages)):
            near = page // COMMUNITY * COMMUNITY + random.integers(0, COMMUNITY, LINKS)
            targets = np.where(random.random(LINKS) < 0.8, near, random.integers(0, pages, LINKS)) % pages
            made.append(PageDocuments(f"s{page}", "1", tuple(_chunks(page, targets.tolist(), random))))
        store.pages.put("benchmark", made)


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


def _look(tab: Page, address: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Open the view of the corpus and walk over its graph: the first picture, and the longest interaction."""
    tab.set_default_timeout(120_000)
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def watch(work: Any) -> tuple[float, float]:
        start, cpu = time.perf_counter(), _read_cpu(session)
        work()
        tab.evaluate(TWO_FRAMES)
        return time.perf_counter() - start, _read_cpu(session) - cpu

    def show_corpus() -> None:
        tab.evaluate("location.hash = '#/corpus'")
        tab.wait_for_selector(".atlas .graph-canvas canvas")

    tab.goto(address)
    tab.wait_for_selector("input[name=q]")
    picture = watch(show_corpus)
    tab.wait_for_timeout(6000)  # it has settled
    tab.focus(".graph-canvas")
    keys = ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp")
    used = [watch(lambda key=key: tab.keyboard.press(key)) for key in keys]
    used.append(watch(lambda: tab.fill(FIND, "page 1")))
    tab.close()
    return picture, max(used, key=lambda one: one[1])


def _read_cpu(session: CDPSession) -> float:
    """Seconds of work of the page's thread."""
    found = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in found if one["name"] == "TaskDuration")


if __name__ == "__main__":
    main()
