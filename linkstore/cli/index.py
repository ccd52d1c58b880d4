"""``linkstore index``: from a source of pages to a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from linkstore.cli.commands import JsonOption, StoreOption
from linkstore.cli.exits import NOTHING_TO_INDEX, SOURCE_INCOMPLETE, UsageError, get_exit_code
from linkstore.cli.output import complain, inform, quiet, show, show_progress, write_json
from linkstore.cli.sources import SourceKind, choose_extractors, recognize_kind, select_options
from linkstore.cli.stores import DEFAULT_STORE, is_among_pages, is_store, open_or_make
from linkstore.core.display import format_count
from linkstore.core.text import escape_surrogates
from linkstore.errors import LinkStoreError

if TYPE_CHECKING:
    from linkstore.ingest import Partition
    from linkstore.ingest.source import Summary
    from linkstore.store.core import CoreStore

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def index(
    source: str,
    store: StoreOption,
    kind: Annotated[str | None, typer.Option("--as")] = None,
    links: list[str] | None = None,
    embedding: str | None = None,
    name: Annotated[str | None, typer.Option("--source")] = None,
    prefix: str | None = None,
    allow: list[str] | None = None,
    deny: list[str] | None = None,
    max_pages: int | None = None,
    max_depth: int | None = None,
    rate: float | None = None,
    allow_private: bool = False,
    ignore_noindex: bool = False,
    dry_run: bool = False,
    prune: bool = False,
    trust_claims: bool = False,
    encoding: str | None = None,
    max_bytes: Annotated[int | None, typer.Option(min=1)] = None,
    jobs: Annotated[int | None, typer.Option(min=1)] = None,
    partition: str | None = None,
    report: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
    watch: bool = False,
    every: str | None = None,
    json: JsonOption = False,
) -> None:
    """Index a folder, website, page, vault, wiki or file.

    Recognizes the kind of source. Creates the store if it does not exist. A second run updates changed pages
    and removes deleted ones. An interrupted run continues where it stopped. Pages that cannot be read are
    listed and skipped. If a part of the source cannot be read, the stored pages of that part are kept.

    With --partition, run all parts, at the same time if the store is on Cassandra, then once without it: that
    removes deleted pages and makes the links that need all pages, and embeds nothing again.

    Args:
        source (SOURCE): A URL, a folder or file of pages, a vault, a wiki dump, a file of JSON lines or ZIM.
        kind (KIND): Kind of SOURCE: website, page, llms, folder, vault, wiki, jsonl or zim; default:
            recognized.
        links (NAMES): Link extractors; default hyperlink,section,citation; also mention, entity, keyword.
        embedding (NAME): wordllama, minilm, bge-small, multilingual or openai:MODEL; default that of
            the store, else wordllama.
        name (NAME): Name of the source in the store; default its path or URL.
        prefix (PATH): Store the pages below this path, such as 3.13, next to other sites.
        allow (PATTERN): Website: index only pages that match, such as /docs/ or /*/en/; repeatable.
        deny (PATTERN): Website: leave out pages that match, as in robots.txt; repeatable.
        max_pages (N): Website: maximum number of pages; default 10000.
        max_depth (N): Website: maximum number of links from the start page to a page.
        rate (N): Website: requests per second; default 4.
        allow_private: Website: allow loopback and private addresses.
        ignore_noindex: Website: also index pages that ask robots not to index them.
        dry_run: Print what would be done, and write nothing.
        prune: Remove missing pages even if more than half are missing.
        trust_claims: Accept canonical URLs that name other sites.
        encoding (NAME): Read all pages in this encoding, such as shift_jis, whatever they declare.
        max_bytes (N): Skip pages that are larger; default 16777216.
        jobs (N): Processes that read pages; default one for each core.
        partition (N/M): Index part N of M, such as 3/16; other processes index the others.
        report (FILE): Write what was skipped to FILE, as JSON lines.
        watch: Folder or vault: index again whenever files change, until Ctrl-C.
        every (TIME): Index again each time this has passed: 30m, 1h, 1d.
    """
    from linkstore.ingest import index as index_source

    source_kind = recognize_kind(source, kind)
    of_kind = {
        "prefix": prefix,
        "claims": "any" if trust_claims else None,
        "encoding": encoding,
        "max_bytes": max_bytes,
        "allow": tuple(allow or ()),
        "deny": tuple(deny or ()),
        "max_pages": max_pages,
        "max_depth": max_depth,
        "rate": rate,
        "allow_private": allow_private,
        "ignore_noindex": ignore_noindex,
    }
    if is_among_pages(store, source):
        raise UsageError(
            f"--store {store} is the folder of the pages; give another: --store {Path(store).resolve()}.kb"
        )
    if partition is not None and (watch or every is not None):
        raise UsageError("--partition is for a single run, without --watch and --every")
    seconds = _check_repetition(source_kind, watch=watch, every=every, dry_run=dry_run)
    chosen = choose_extractors(links)
    settings = select_options(source_kind, of_kind)
    if "cite" in source_kind.options:
        settings["cite"] = "citation" in chosen
    pages = source_kind.make(source, settings)
    if kind is None and source_kind.name == "vault":
        inform(f"{source} is read as {source_kind.title}; --as folder reads it as pages")
    run: dict[str, Any] = {
        "name": name,
        "links": chosen,
        "dry_run": dry_run,
        "prune": prune,
        "jobs": jobs,
        "progress": None,
        "partition": None if partition is None else _parse_partition(partition),
    }
    is_new = store == DEFAULT_STORE and not is_store(store)
    place = open_or_make(store, embedding=None if dry_run else embedding)
    with (
        report_run(report, json=json) as summaries,
        place as opened_store,
        _advise_when_stopped(opened_store),
        show_progress() as progress,
    ):
        if watch:
            from linkstore.ingest.watch import watch_folder

            watched: Any = pages
            inform(f"watching {watched.path}; Ctrl-C ends it")
            watch_folder(opened_store, watched, report=_tell_run, ignore=[store], **run)
        elif seconds is not None:
            _repeat_every(seconds, partial(index_source, opened_store, pages, **run))
        else:
            summaries.append(index_source(opened_store, pages, **{**run, "progress": progress}))
    if is_new and is_store(store):
        inform(f"the store is {store}, which commands in this folder and below use")


def _parse_partition(text: str) -> Partition:
    from linkstore.ingest import Partition

    try:
        number, count = map(int, text.split("/"))
        return Partition(number, count)
    except ValueError as error:  # StrategyError is one
        raise UsageError(f"--partition takes the number of a part, such as 3/16, not {text!r}") from error


def _check_repetition(found: SourceKind, *, watch: bool, every: str | None, dry_run: bool) -> float | None:
    """Return how many seconds pass between runs, or None without ``--every``.

    Raises:
        UsageError: If a source of this kind cannot be watched, or the time is not one.
    """
    if watch + dry_run + (every is not None) > 1 and (watch or every is not None):
        raise UsageError("give one of --watch, --every and --dry-run")
    if watch and found.name not in {"folder", "vault"}:
        raise UsageError(f"--watch is for folders and vaults; for a {found.name}, --every 1h")
    if every is None:
        return None
    number, unit = every[:-1], every[-1:]
    if unit not in _SECONDS or not number.isdecimal() or not int(number):
        raise UsageError(f"--every takes a time such as 30m, 1h or 1d, not {every!r}")
    return float(int(number) * _SECONDS[unit])


def _repeat_every(seconds: float, index_once: Callable[[], Summary]) -> None:
    """Index again and again until Ctrl-C. Only the first run ends the command if it fails."""
    _tell_run(index_once())
    while True:
        time.sleep(seconds)
        try:
            _tell_run(index_once())
        except LinkStoreError as error:
            _tell_run(error)


def _tell_run(result: Summary | LinkStoreError) -> None:
    if isinstance(result, LinkStoreError):
        complain(f"linkstore: {result}")
        return
    from linkstore.ingest.source import NAMES_OF_PARTS

    skipped = sum(not name.endswith(NAMES_OF_PARTS) for name in result.skipped)
    pages, at = result.pages, datetime.now().astimezone().strftime("%H:%M:%S")
    inform(
        f"{at} {format_count(pages.total, 'page')}: {pages.added:,} added, {pages.updated:,} updated,"
        f" {pages.removed:,} removed" + (f", {skipped:,} skipped" if skipped else "")
    )


@contextmanager
def _advise_when_stopped(store: CoreStore) -> Iterator[None]:
    """Tell how to continue after Ctrl-C, SIGTERM or SIGHUP.

    Raises:
        typer.Exit: Instead of the KeyboardInterrupt.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        kept = len(store.pages.digests())
        inform(f"stopped; the store has {format_count(kept, 'page')}. Run the same command again to go on")
        raise typer.Exit(get_exit_code(error)) from error


@contextmanager
def report_run(report: Path | None, *, json: bool) -> Iterator[list[Summary]]:
    """Take the summary of a run, show it, and end with the exit code that the run deserves.

    Args:
        report: The file for everything that was skipped, one JSON object a line.
        json: Whether to print JSON.

    Raises:
        typer.Exit: If the source was not seen as a whole, or there was nothing to index.
    """
    from linkstore.ingest.source import IndexingError, NothingIndexedError, list_first

    if report is not None:  # it must be possible to write it, before an hour of work
        try:
            report.write_bytes(b"")
        except OSError as error:
            raise UsageError(f"--report: {error}") from error
    summaries: list[Summary] = []
    try:
        yield summaries
    except IndexingError as error:
        nothing = isinstance(error, NothingIndexedError)
        _report_summary(error.summary, report, json=json, briefly=nothing)
        complain(f"linkstore: {error}")
        raise typer.Exit(NOTHING_TO_INDEX if nothing else SOURCE_INCOMPLETE) from error
    for summary in summaries:
        _report_summary(summary, report, json=json)
        if summary.unseen:
            parts = format_count(len(summary.unseen), "part")
            named = list_first(summary.unseen, len(summary.unseen))
            inform(f"{parts} of the source could not be seen ({named}); what is stored of that was kept")
            raise typer.Exit(SOURCE_INCOMPLETE)


def _report_summary(summary: Summary, report: Path | None, *, json: bool, briefly: bool = False) -> None:
    if report is not None:
        import orjson

        unseen = frozenset(summary.unseen)
        with report.open("wb") as file:
            for name, reason in summary.skipped.items():
                written = {"name": escape_surrogates(name), "reason": escape_surrogates(reason)}
                line = {**written, "unseen": name in unseen}
                file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    if json:
        write_json(summary)
    elif not briefly and not quiet.get():
        show_summary(summary)


def show_summary(summary: Summary) -> None:
    """Print what a run did."""
    for line, is_doubtful in summary.list_lines():
        show(line, "yellow" if is_doubtful else None)
