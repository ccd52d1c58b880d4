"""Indexing that is interrupted anywhere leaves a sound store, and the next run makes it whole."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from interrupting import Timers, signals
from stores import SNAPSHOTS, embedding, times

from linkstore import LinkStore
from linkstore.engines.embedded import EmbeddedBackend
from linkstore.ingest import FolderSource, index

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
PAGES = 24

# What a process finds that opens the store anew: what ``verify`` says, and every document with its links.
LISTING = """
import json, sys
from linkstore.engines.embedded import EmbeddedBackend
store = EmbeddedBackend(sys.argv[1])
findings, stored = store.run(store.verify()).findings, store.run(store.scan(None, 100_000))
print(json.dumps([
    [str(finding) for finding in findings],
    [[one.id, one.text, sorted(str(link) for link in one.links)] for one in stored],
]))
store.close()
"""


def write_page(folder: Path, n: int, chance: random.Random) -> None:
    """A page of some sections, with links to other pages."""
    sections = "".join(
        f"<h2 id=s{part}>Part {part} of page {n}</h2>"
        f"<p>{'word ' * chance.randint(5, 60)}{chance.random()}</p>"
        f"<p>See <a href=p{chance.randrange(PAGES)}.html>another page</a>.</p>"
        for part in range(chance.randint(1, 6))
    )
    (folder / f"p{n}.html").write_text(f"<title>Page {n}</title><h1>Page {n}</h1>{sections}")


def change(folder: Path, chance: random.Random) -> None:
    """Rewrite some pages, and remove or bring back one."""
    for n in chance.sample(range(1, PAGES), 8):
        write_page(folder, n, chance)
    (folder / f"p{chance.randrange(1, PAGES)}.html").unlink(missing_ok=True)


def opened(folder: Path) -> LinkStore:
    """The store that is indexed into."""
    return LinkStore(embedding(), backend=EmbeddedBackend(folder, settings=SNAPSHOTS))


def indexed(store: LinkStore, pages: Path) -> LinkStore:
    """The store, with the pages in it."""
    index(store, FolderSource(pages), name="pages")
    return store


def listed(store: Path) -> list:
    """What a new process finds."""
    command = [sys.executable, "-c", LISTING, str(store)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised in a destructor
@pytest.mark.parametrize("seed", range(times(1, 10)))
def test_signals_while_a_folder_is_indexed(tmp_path, seed) -> None:
    chance, pages = random.Random(seed), tmp_path / "pages"
    pages.mkdir()
    for n in range(PAGES):
        write_page(pages, n, chance)
    timers, interrupts = Timers(chance), 0
    store = indexed(opened(tmp_path / "kb"), pages)
    while interrupts < times(12, 60):
        change(pages, chance)
        with signals():
            stopped = timers.interrupt("index", partial(indexed, store, pages))
        if stopped is None:
            continue
        interrupts += 1
        if interrupts % 4 == 0:  # the process goes on with the same store in between
            store.close()
            findings, _ = listed(tmp_path / "kb")
            assert findings == []
            store = opened(tmp_path / "kb")
        if interrupts % 3 == 0:
            backend = indexed(store, pages).backend
            backend.run(backend.flush())
            indexed(opened(tmp_path / f"fresh-{interrupts}"), pages).close()
            assert listed(tmp_path / "kb") == listed(tmp_path / f"fresh-{interrupts}")
    print(f"indexing, seed {seed}: {interrupts} interrupts")
    store.close()
