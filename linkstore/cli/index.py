"""``linkstore index``: from a folder of pages to a store."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.options import JsonOption, StoreOption, listed
from linkstore.cli.output import printable, stdout, write_json
from linkstore.cli.stores import opened

if TYPE_CHECKING:
    from linkstore.ingest import Progress, Summary

Links = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES", help="Link extractors [hyperlink,section,citation]; also: mention, entity, keyword."
    ),
]
Embedding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="wordllama, minilm or openai:MODEL [the store's, else wordllama]."),
]


def index(
    site: Annotated[str, typer.Argument(metavar="SITE_DIR", help="A folder of built HTML or Markdown.")],
    store: StoreOption,
    links: Links = None,
    embedding: Embedding = None,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the site is called in the store [its path].")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Index a folder of HTML or Markdown.

    Makes the store if it is not there. Run again, it takes up what changed and removes what is gone.
    Pages that cannot be read are named and skipped.
    """
    if not Path(site).is_dir():
        raise UsageError(f"there is no folder {site}; give the folder of a built site")
    from linkstore.ingest import DEFAULT_LINKS, index_folder

    chosen = extractors(links or DEFAULT_LINKS)
    with opened(store, create=True, embedding=embedding) as opened_store, _progress() as progress:
        summary = index_folder(opened_store, site, source=source, links=chosen, progress=progress)
    if json:
        write_json(asdict(summary))
    else:
        show_summary(summary)


def extractors(names: Sequence[str]) -> tuple[str, ...]:
    """The extractors to use, all of them installed."""
    from linkstore.extraction import extractor_names

    chosen = listed(names)
    installed = extractor_names()
    unknown = [name for name in chosen if name not in installed]
    if unknown:
        raise UsageError(f"--links: no extractor {', '.join(unknown)}; installed: {', '.join(installed)}")
    return chosen


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from linkstore.cli.progress import progress_bar

    with progress_bar() as advance:
        yield advance


def show_summary(summary: Summary) -> None:
    """Print what a run did."""
    console = stdout()
    pages, dangling = summary.pages, summary.dangling
    console.print(
        f"pages     {pages.added:,} added, {pages.updated:,} updated,"
        f" {pages.unchanged:,} unchanged, {pages.removed:,} removed"
    )
    console.print(f"chunks    {summary.chunks:,} written")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in summary.links.items())
    console.print(f"links     {printable(kinds) or 'none'} written")
    console.print(f"dangling  {dangling.internal:,} internal, {dangling.external:,} external")
    for page, reason in summary.skipped.items():
        console.print(printable(f"skipped   {page}: {reason}"), style="yellow")
