"""``linkstore index``: from a source of pages to a store."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.options import JsonOption, StoreOption, listed
from linkstore.cli.output import printable, stdout, write_json
from linkstore.cli.sources import kind_of, options_of
from linkstore.cli.stores import opened, opened_or_empty

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


Kind = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="KIND",
        help="What SOURCE is: website, folder, vault, wiki, jsonl, zim [by its looks].",
    ),
]
Prefix = Annotated[
    str | None,
    typer.Option(
        metavar="PATH", help="Put the pages below this path, beside other sites in the store, such as 3.13."
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="Website: index only such pages, as /docs/ or /*/en/; repeatable."),
]
Deny = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="Website: leave out such pages, as robots.txt does; repeatable."),
]
MaxPages = Annotated[
    int | None, typer.Option(metavar="N", help="Website: index so many pages at most [10000].")
]
MaxDepth = Annotated[
    int | None, typer.Option(metavar="N", help="Website: follow so many links from the start page at most.")
]
Rate = Annotated[float | None, typer.Option(metavar="N", help="Website: make so many requests a second [4].")]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Website: loopback and private addresses may be asked too.")
]


def index(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A URL, a folder of HTML or Markdown, a vault, a wiki dump, a file of JSON lines or ZIM.",
        ),
    ],
    store: StoreOption,
    kind: Kind = None,
    links: Links = None,
    embedding: Embedding = None,
    name: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="What the source is called in the store [its path]."),
    ] = None,
    prefix: Prefix = None,
    allow: Allow = None,
    deny: Deny = None,
    max_pages: MaxPages = None,
    max_depth: MaxDepth = None,
    rate: Rate = None,
    allow_private: AllowPrivate = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and write nothing.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Index a source of pages: what it is, is seen by its looks.

    Makes the store if it is not there. Run again, it takes up what changed and removes what is gone; ended
    early, it keeps what it has and goes on from there. Pages that cannot be read are named and skipped.
    """
    found = kind_of(source, kind)
    crawling = {
        "allow": tuple(allow or ()),
        "deny": tuple(deny or ()),
        "max_pages": max_pages,
        "max_depth": max_depth,
        "rate": rate,
        "allow_private": allow_private,
    }
    options = options_of(found, {"prefix": prefix, **crawling})
    from linkstore.ingest import DEFAULT_LINKS

    chosen = extractors(links or DEFAULT_LINKS)
    run = found.index()
    place = opened_or_empty(store) if dry_run else opened(store, create=True, embedding=embedding)
    with place as opened_store, _progress() as progress:
        summary = run(
            opened_store, source, source=name, links=chosen, progress=progress, dry_run=dry_run, **options
        )
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
    done = "to write" if summary.dry_run else "written"
    if summary.dry_run:
        console.print("dry run   nothing was written")
    console.print(
        f"pages     {pages.added:,} added, {pages.updated:,} updated,"
        f" {pages.unchanged:,} unchanged, {pages.removed:,} removed"
    )
    console.print(f"chunks    {summary.chunks:,} {done}")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in summary.links.items())
    console.print(f"links     {printable(kinds) or 'none'} {done}")
    if not summary.dry_run:
        console.print(f"dangling  {dangling.internal:,} internal, {dangling.external:,} external")
    for number, page in enumerate(summary.linked):
        title = "linked  " if number == 0 else " " * 8
        console.print(printable(f"{title}{page.links:>6,}  {page.url}"))
    for name, reason in summary.skipped.items():
        console.print(printable(f"skipped   {name}: {reason}"), style="yellow")
