"""``linkstore demo``: shows what links find, on a small site and on a manual, both in the package."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.output import get_stdout, inform, show_hits, show_progress
from linkstore.cli.stores import open_store
from linkstore.core.display import get_title

if TYPE_CHECKING:
    from linkstore.core.hits import Hit, Hits, PageHits
    from linkstore.store.linkstore import LinkStore

SiteName = Literal["seattle", "sqlite"]
MAX_SHOWN: Final = 3
"""How many hits of each search are shown, and among how many pages the right one is said to be found."""
QUESTION: Final = "Where do people eat near the Space Needle?"
"""The page that answers does not name the Space Needle, whose page links to it."""
DEMO_ANSWER: Final = "uptown.html"
"""URL of the page that answers."""
DEMO_LINKS: Final = ("hyperlink", "section")
"""The kinds of link in the sites."""
DEMO_K: Final = 10
"""How many hits both searches give, as a search does by default."""
MANUAL_QUESTIONS: Final = {
    "What is the wal-index?": "walformat.html",
    "What is a virtual machine good for in a database?": "opcode.html",
    "Which tests show that it survives a lack of memory?": "testing.html",
    "Where is additional information on TH3?": "th3.html",
    "Which flags can a virtual table set for its index?": "c3ref/index_info.html",
    "How do I make a table from a function?": "vtab.html",
    "How does an extension reach the sqlite3_api_routines structure?": "loadext.html",
    "Which error does an INSERT give when all ROWIDs are used up?": "rescode.html",
    "Which optimizations does MATERIALIZED prevent?": "optoverview.html",
    "How do I defragment and back up at once?": "lang_vacuum.html",
}
"""Questions on SQLite's manual, each with a page that answers it and is brought by a link."""


def demo(
    name: Annotated[SiteName, typer.Argument(metavar="[SITE]")] = "seattle",
    store: Annotated[str | None, typer.Option("--store", "-s")] = None,
    copy: Annotated[Path | None, typer.Option(file_okay=False)] = None,
) -> None:
    """Show what links find, on a small site or on a manual.

    Indexes 15 pages about Seattle, or with "sqlite" the manual of SQLite, and asks questions, by similarity
    alone and by the default search, which follows links. Needs no network and no key.

    Args:
        name (SITE): seattle or sqlite; default seattle.
        store (PLACE): Keep the store in this folder or cluster.
        copy (DIR): Only copy the site to DIR.
    """
    if copy is not None:
        if copy.exists() and any(copy.iterdir()):
            raise UsageError(f"--copy: {copy} is not empty; give a new folder")
        with site(name) as folder:
            shutil.copytree(folder, copy, dirs_exist_ok=True)
        inform(f"copied the site to {copy}; see it with: linkstore open {copy}")
        return
    from linkstore.ingest import FolderSource, index

    kept = nullcontext(store) if store is not None else TemporaryDirectory(prefix="linkstore-demo-")
    with kept as place, open_store(place, create=True) as opened_store, site(name) as folder:
        inform(f"indexing {sum(1 for _ in folder.rglob('*.html'))} pages")
        with show_progress() as progress:
            source = f"linkstore-demo-{name}"
            index(opened_store, FolderSource(folder), name=source, links=DEMO_LINKS, progress=progress)
        (show_site if name == "seattle" else show_manual)(opened_store)
    question = QUESTION if name == "seattle" else next(iter(MANUAL_QUESTIONS))
    if store is not None:
        get_stdout().print(f'\nAsk again: linkstore query "{question}" --store {store}')
    elif name == "seattle":
        get_stdout().print("\nTen questions on a whole manual: linkstore demo sqlite")


@contextmanager
def site(name: SiteName = "seattle") -> Iterator[Path]:
    """Open the folder of a site's pages, as long as the context lasts."""
    resources = files("linkstore.cli")
    if name == "seattle":
        with as_file(resources / "site") as folder:
            yield folder
        return
    with (
        TemporaryDirectory(prefix="linkstore-demo-") as unpacked,
        (resources / "sqlite.tar.xz").open("rb") as packed,
        tarfile.open(fileobj=packed, mode="r:xz") as archive,
    ):
        for member in archive:
            page = archive.extractfile(member)
            if page is not None:
                path = Path(unpacked, member.name)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(page.read())
        yield Path(unpacked)


def show_site(store: LinkStore) -> None:
    """Ask one question about Seattle, and show the hits of both searches."""
    similar, linked = compare(store)
    console = get_stdout()
    console.print(f"Question: {QUESTION}\n", style="bold")
    console.print(f"The {MAX_SHOWN} nearest by similarity:\n", style="underline")
    show_hits(similar[:MAX_SHOWN], QUESTION)
    only = f"Not among the {len(similar)} nearest, and found by following links, as a search does by default:"
    console.print(f"\n{only}\n", style="underline")
    show_hits(linked[:MAX_SHOWN], QUESTION)


def compare(store: LinkStore, question: str = QUESTION, k: int = DEMO_K) -> tuple[Hits, list[Hit]]:
    """Ask a store one question by similarity alone, then by the default search.

    Args:
        store: A store that holds the site, or any other.
        question: The question.
        k: How many hits both searches give.

    Returns:
        The hits by similarity, and those of the default search that links gave besides, each best first.
    """
    from linkstore.strategies.first_stage import Similarity

    similar = store.search(question, strategy=Similarity(k=k))
    similar_ids = {hit.document.id for hit in similar}
    linked = store.search(question, k=k)
    return similar, [hit for hit in linked if hit.depth and hit.document.id not in similar_ids]


def show_manual(store: LinkStore) -> None:
    """Ask the questions on the manual, and show where both searches have the page that answers."""
    from linkstore.strategies.first_stage import Similarity

    console = get_stdout()
    console.print("Where is the page that answers?\n", style="underline")
    for question, answer in MANUAL_QUESTIONS.items():
        similar = store.search(question, strategy=Similarity(k=DEMO_K))
        linked = store.search(question, k=DEMO_K)
        console.print(question, style="bold")
        console.print(
            f"   by similarity: {_say_rank(similar, answer)}, by default: {_say_rank(linked, answer)}"
        )
        for page in linked.by_page():
            if page.page == answer:
                console.print(f"   {_say_path(page)}", style="yellow")


def _say_rank(hits: Hits, answer: str) -> str:
    pages = [page.page for page in hits.by_page()]
    return f"page {pages.index(answer) + 1} of {len(pages)}" if answer in pages else "not found"


def _say_path(page: PageHits) -> str:
    """Return the last link of the best path to a page, by the titles of its ends."""
    hit = next(hit for hit in page.hits if hit.depth)
    before, last = hit.path[-2], hit.path[-1]
    return f"{before.url or before.id} ─ “{last.label}” → {get_title(hit.document) or last.url or last.id}"
