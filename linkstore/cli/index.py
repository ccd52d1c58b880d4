"""``linkstore index``: from a source of pages to a store."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkstore.cli.exits import UsageError, exit_code
from linkstore.cli.making import opened_or_made
from linkstore.cli.options import JsonOption, StoreOption, listed
from linkstore.cli.output import note, quiet
from linkstore.cli.sources import kind_of, options_of
from linkstore.cli.stores import opened_or_empty
from linkstore.cli.summary import reported
from linkstore.display import amount

if TYPE_CHECKING:
    from linkstore.ingest import PageStore, Progress

Links = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Link extractors; default hyperlink,section,citation; also mention, entity, keyword.",
    ),
]
Embedding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="wordllama, minilm or openai:MODEL; default that of the store, else wordllama."
    ),
]


Kind = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="KIND",
        help="Kind of SOURCE: website, folder, vault, wiki, jsonl or zim; default: recognized.",
    ),
]
Prefix = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="Store the pages below this path, such as 3.13, next to other sites."),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN", help="Website: index only pages that match, such as /docs/ or /*/en/; repeatable."
    ),
]
Deny = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN", help="Website: leave out pages that match, as in robots.txt; repeatable."
    ),
]
MaxPages = Annotated[
    int | None, typer.Option(metavar="N", help="Website: maximum number of pages; default 10000.")
]
MaxDepth = Annotated[
    int | None,
    typer.Option(metavar="N", help="Website: maximum number of links from the start page to a page."),
]
Rate = Annotated[float | None, typer.Option(metavar="N", help="Website: requests per second; default 4.")]
AllowPrivate = Annotated[
    bool, typer.Option("--allow-private", help="Website: allow loopback and private addresses.")
]

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A URL, a folder of HTML or Markdown, a vault, a wiki dump, a file of JSON lines or ZIM.",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--source", metavar="NAME", help="Name of the source in the store; default its path or URL."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and write nothing.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Remove missing pages even if more than half are missing.")
]
TrustClaims = Annotated[
    bool, typer.Option("--trust-claims", help="Accept canonical URLs that name other sites.")
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Read all pages in this encoding, such as shift_jis, whatever they declare."
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Processes that read pages; default one for each core."),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", dir_okay=False, help="Write what was skipped to FILE, as JSON lines."),
]


def index(
    source: Source,
    store: StoreOption,
    kind: Kind = None,
    links: Links = None,
    embedding: Embedding = None,
    name: Name = None,
    prefix: Prefix = None,
    allow: Allow = None,
    deny: Deny = None,
    max_pages: MaxPages = None,
    max_depth: MaxDepth = None,
    rate: Rate = None,
    allow_private: AllowPrivate = False,
    dry_run: DryRun = False,
    prune: Prune = False,
    trust_claims: TrustClaims = False,
    encoding: Encoding = None,
    jobs: Jobs = None,
    report: Report = None,
    json: JsonOption = False,
) -> None:
    """Index a folder, website, vault, wiki or file.

    Recognizes the kind of source. Creates the store if it does not exist. A second run updates changed pages
    and removes deleted ones. An interrupted run continues where it stopped. Pages that cannot be read are
    listed and skipped. If a part of the source cannot be read, the stored pages of that part are kept.
    """
    found = kind_of(source, kind)
    of_kind = {
        "prefix": prefix,
        "claims": "any" if trust_claims else None,
        "encoding": encoding,
        "allow": tuple(allow or ()),
        "deny": tuple(deny or ()),
        "max_pages": max_pages,
        "max_depth": max_depth,
        "rate": rate,
        "allow_private": allow_private,
    }
    options = options_of(found, of_kind) | {"dry_run": dry_run, "prune": prune, "jobs": jobs}
    run = partial(found.index(), source=name, links=extractors(links), **options)
    place = opened_or_empty(store) if dry_run else opened_or_made(store, embedding=embedding)
    with (
        reported(report, json=json) as summaries,
        place as opened_store,
        _stopping(opened_store),
        _progress() as progress,
    ):
        summaries.append(run(opened_store, source, progress=progress))


@contextmanager
def _stopping(store: PageStore) -> Iterator[None]:
    """Tell how to continue after Ctrl-C, SIGTERM or SIGHUP.

    Raises:
        typer.Exit: Instead of the KeyboardInterrupt.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        kept = store.survey().pages
        note(f"stopped; the store has {amount(kept, 'page')}. Run the same command again to go on")
        raise typer.Exit(exit_code(error)) from error


def extractors(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the extractors to use, all of them installed. Without names, use those of a source."""
    from linkstore.extraction import extractor_names
    from linkstore.ingest import DEFAULT_LINKS

    chosen = listed(names or DEFAULT_LINKS)
    installed = extractor_names()
    unknown = [name for name in chosen if name not in installed]
    if unknown:
        raise UsageError(f"--links: no extractor {', '.join(unknown)}; installed: {', '.join(installed)}")
    return chosen


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """Show a progress bar on stderr, if that is a terminal."""
    if quiet.get() or not sys.stderr.isatty():
        yield None
        return
    from linkstore.cli.progress import progress_bar

    with progress_bar() as advance:
        yield advance
