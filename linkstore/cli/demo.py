"""``linkstore demo``: one question on a small site, by similarity alone and with its links."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.output import note, stdout
from linkstore.cli.render import show_hits
from linkstore.cli.stores import opened

if TYPE_CHECKING:
    from linkstore.demo import Comparison

SHOWN: Final = 3
"""How many of the hits found only by links are shown."""


def demo(
    store: Annotated[
        str | None,
        typer.Option("--store", "-s", metavar="PLACE", help="Keep the store in this folder or cluster."),
    ] = None,
    copy: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, help="Only copy the site to DIR."),
    ] = None,
) -> None:
    """Show what links find, on a small site about Seattle.

    Indexes the site and asks one question, by similarity alone and with links. Needs no network and no key.
    """
    if copy is not None:
        _copy(copy)
        return
    from linkstore.demo import LINKS, QUESTION, compare, site
    from linkstore.ingest import index_folder

    with _place(store) as place, opened(place, create=True) as opened_store, site() as folder:
        index_folder(opened_store, folder, source="linkstore-demo", links=LINKS)
        comparison = compare(opened_store)
    _show(QUESTION, comparison)
    if store is not None:
        stdout().print(f'\nAsk it more: linkstore query "Who built the monorail?" --store {store}')


def _copy(target: Path) -> None:
    from linkstore.demo import site

    if target.exists() and any(target.iterdir()):
        raise UsageError(f"--copy: {target} is not empty; give a new folder")
    with site() as folder:
        shutil.copytree(folder, target, dirs_exist_ok=True)
    note(f"copied the site to {target}; index it with: linkstore index {target} --store STORE")


@contextmanager
def _place(store: str | None) -> Iterator[str]:
    if store is not None:
        yield store
        return
    with TemporaryDirectory(prefix="linkstore-demo-") as folder:
        yield folder


def _show(question: str, comparison: Comparison) -> None:
    console = stdout()
    found = comparison.only_by_links
    console.print(f"Question: {question}\n", style="bold")
    console.print(f"By similarity alone, the {len(comparison.similar)} nearest:\n", style="underline")
    show_hits(comparison.similar, question)
    console.print(
        f"\nOnly by following their links ({len(found)} more; the first {min(SHOWN, len(found))}):\n",
        style="underline",
    )
    show_hits(found[:SHOWN], question)
