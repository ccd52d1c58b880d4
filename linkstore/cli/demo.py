"""``linkstore demo``: shows what links find, on a small site that is installed with the package."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.output import get_stdout, note, show_hits
from linkstore.cli.stores import open_store

if TYPE_CHECKING:
    from linkstore.core.hits import Hit, Hits
    from linkstore.store.linkstore import LinkStore

MAX_SHOWN: Final = 3
"""How many hits of each search are shown."""
QUESTION: Final = "Where do people eat near the Space Needle?"
"""The page that answers does not name the Space Needle, whose page links to it."""
DEMO_ANSWER: Final = "uptown.html"
"""URL of the page that answers."""
DEMO_LINKS: Final = ("hyperlink", "section")
"""The kinds of link in the site."""
DEMO_K: Final = 10
"""How many hits both searches give, as a search does by default."""


def demo(
    store: Annotated[str | None, typer.Option("--store", "-s")] = None,
    copy: Annotated[Path | None, typer.Option(file_okay=False)] = None,
) -> None:
    """Show what links find, on a small site about Seattle.

    Indexes the site and asks one question, by similarity alone and by the default search, which follows
    links. Needs no network and no key.

    Args:
        store (PLACE): Keep the store in this folder or cluster.
        copy (DIR): Only copy the site to DIR.
    """
    if copy is not None:
        if copy.exists() and any(copy.iterdir()):
            raise UsageError(f"--copy: {copy} is not empty; give a new folder")
        with site() as folder:
            shutil.copytree(folder, copy, dirs_exist_ok=True)
        note(f"copied the site to {copy}; see it with: linkstore open {copy}")
        return
    from linkstore.ingest import FolderSource, index

    kept = nullcontext(store) if store is not None else TemporaryDirectory(prefix="linkstore-demo-")
    with kept as place, open_store(place, create=True) as opened_store, site() as folder:
        index(opened_store, FolderSource(folder), name="linkstore-demo", links=DEMO_LINKS, progress=None)
        similar, linked = compare(opened_store)
    console = get_stdout()
    console.print(f"Question: {QUESTION}\n", style="bold")
    console.print(f"The {MAX_SHOWN} nearest by similarity:\n", style="underline")
    show_hits(similar[:MAX_SHOWN], QUESTION)
    only = f"Not among the {len(similar)} nearest, and found by following links, as a search does by default:"
    console.print(f"\n{only}\n", style="underline")
    show_hits(linked[:MAX_SHOWN], QUESTION)
    if store is not None:
        console.print(f'\nAsk again: linkstore query "{QUESTION}" --store {store}')


@contextmanager
def site() -> Iterator[Path]:
    """Open the folder of the site's pages, as long as the context lasts."""
    with as_file(files("linkstore.cli") / "site") as folder:
        yield folder


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
