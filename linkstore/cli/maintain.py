"""``linkstore delete``, and ``doctor``: counts, checks, verifies and repairs what a store holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstore.cli.commands import JsonOption, StoreOption
from linkstore.cli.exits import ALARM_FOUND, DAMAGED, UsageError
from linkstore.cli.links import find_documents, list_spellings
from linkstore.cli.output import get_indexed_page, inform, print_result, show, write_json
from linkstore.cli.sources import recognize_kind
from linkstore.cli.stores import open_core_store, open_store, refuse_options, split_names
from linkstore.core.display import format_count, make_readable
from linkstore.core.text import escape_surrogates, is_unicode
from linkstore.errors import LinkStoreError

if TYPE_CHECKING:
    from linkstore.evaluate.checkup import Checkup
    from linkstore.ingest.source import Source
    from linkstore.store.core import CoreStore
    from linkstore.store.linkstore import LinkStore
    from linkstore.store.pages import IndexRun


def delete(
    store: StoreOption,
    pages: Annotated[list[str] | None, typer.Argument()] = None,
    chunks: Annotated[list[str] | None, typer.Option("--chunk")] = None,
    erase: bool = False,
) -> None:
    """Remove pages with all their documents and links.

    If one of them does not exist, nothing is removed. The next index run of their source restores pages that
    it still has. A store does not need --erase to keep its size in proportion to its content; its time
    depends on the size of the store.

    Args:
        pages (PAGES): URLs of pages, or ids of documents that belong to no page.
        chunks (ID): Remove only this document of a page; repeatable.
        erase: Remove all traces of deleted documents from the files, also of those deleted before.
    """
    if not pages and not chunks and not erase:
        raise UsageError("there is nothing to delete; give pages, --chunk ID, or --erase")
    with open_core_store(store) as opened_store:
        whole, single = _find_targets(opened_store, pages or (), chunks or ())
        removed = opened_store.pages.remove(whole).removed
        opened_store.delete(single)
        if erase:
            opened_store.compact()
    if whole or single:
        count = removed + len(single)
        inform(
            f"deleted {format_count(len(whole), 'page')}, {format_count(count, 'document')}; "
            "the next index restores what the"
            " source still has"
        )
    if erase:
        inform("no trace of deleted documents is left in the files")


def _find_targets(
    store: CoreStore, pages: Sequence[str], chunks: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the pages to remove as wholes, and the ids of single documents.

    Raises:
        LinkStoreError: If there is no such page or document.
    """
    whole: list[str] = []
    single: list[str] = []
    for id in chunks:
        documents = store.get_by_ids(list_spellings(id))
        if not documents:
            raise LinkStoreError(f"nothing was deleted: no document has the id {id}")
        single.append(documents[0].id or "")
    for name in pages:
        of_name, loose = _find_named_pages(store, name)
        whole += of_name
        single += loose
    return list(dict.fromkeys(whole)), list(dict.fromkeys(single))


def _find_named_pages(store: CoreStore, name: str) -> tuple[list[str], list[str]]:
    """Return the pages that a name means, and the documents of no indexed page."""
    spelled = list(store.pages.ids(None, [url for url in list_spellings(name) if is_unicode(url)]))
    if spelled:
        return [name] if name in spelled else spelled[:1], []
    documents = find_documents(store, name)
    pages = {document.id or "": get_indexed_page(document) for document in documents}
    indexed = store.pages.ids(None, sorted(set(pages.values())))
    part = next((spelling for spelling in list_spellings(name) if pages.get(spelling) in indexed), None)
    if part is not None:
        raise UsageError(
            f"{name} is a part of the page {pages[part]}; to delete the page, name that; to delete only the"
            f" part: --chunk {name}"
        )
    if len(indexed) > 1:
        raise UsageError(
            f"{name} leads to {len(indexed)} pages; name the one to delete: {', '.join(indexed)}"
        )
    return list(indexed), [part for part, page in pages.items() if page not in indexed]


MAX_SHOWN_QUESTIONS = 20
"""How many of the questions that a store keeps are shown."""


def doctor(
    store: StoreOption,
    verify: bool = False,
    repair: bool = False,
    source: list[str] | None = None,
    names: list[str] | None = None,
    trust_claims: bool = False,
    encoding: str | None = None,
    max_bytes: Annotated[int | None, typer.Option(min=1)] = None,
    strict: bool = False,
    since: str | None = None,
    evidence: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
    json: JsonOption = False,
) -> None:
    """Count and check the content of a store, and say what needs attention.

    Reads all documents. Reports what its schema does not allow, types of documents that no traversal reaches,
    pages that changed since they were indexed, links that lead to no document, different spellings of names,
    and of bundles of the Open Knowledge Format invalid fields, dead links, orphans and stale pages. The exit
    code is 10 if there is an alarm, with --strict also if there is a hint. Writes nothing.

    With --since, only lists the pages that runs of index added, updated and removed. With --evidence, only
    holds what query --evidence wrote against the store. With --verify, only compares all derived data with
    the documents; the exit code is 5 if they do not match.

    Args:
        verify: Compare all derived data, such as indexes, with the documents instead.
        repair: Repair what --verify finds.
        source (NAME_OR_PATH): A source on disk to compare with its stored pages; NAME=PATH if it has another
            name in the store; repeatable.
        names (KINDS): Kinds of link whose tags are names; default entity,mention.
        trust_claims: The sources were indexed with --trust-claims.
        encoding (NAME): The sources were indexed with this --encoding.
        max_bytes (N): The sources were indexed with this --max-bytes.
        strict: End with exit code 10 also if there are only hints, as for continuous integration.
        since (TIME): List what runs of index changed from this time on instead: a date, a time, or 'last'
            for the last run that changed something.
        evidence (FILE): Check instead whether the store still has these passages; the exit code is 10 if not.
    """
    if since is not None or evidence is not None:
        others = {"verify": verify, "repair": repair, "source": source, "names": names, "strict": strict}
        only = {"since": since} if evidence is not None else {}
        refuse_options("does not go with --since or --evidence", **others, **only)
        with open_core_store(store) as opened_store:
            if since is not None:
                print_result(_find_runs(opened_store, since), _show_runs, json=json)
            elif evidence is not None:
                _check_evidence(opened_store, evidence, json=json)
        return
    if verify or repair:
        asked: dict[str, object] = {"source": source, "names": names, "strict": strict}
        how = {"trust_claims": trust_claims, "encoding": encoding, "max_bytes": max_bytes}
        with_repair = "does not go with --repair" if repair else "does not go with --verify"
        refuse_options(with_repair, verify=verify and repair, **asked, **how)
        _verify(store, repair=repair, json=json)
        return
    with open_store(store) as opened_store:
        options = {"claims": "any" if trust_claims else None, "encoding": encoding, "max_bytes": max_bytes}
        sources = dict(_open_source(opened_store, text, options) for text in source or ())
        from linkstore.evaluate.checkup import NAME_KINDS, examine

        kinds = split_names(names or ()) or NAME_KINDS
        checkup = examine(opened_store, sources=sources, names=kinds)
    print_result(checkup, _show_checkup, json=json)
    if not checkup.healthy or (strict and checkup.findings):
        raise typer.Exit(ALARM_FOUND)


def _find_runs(store: CoreStore, since: str) -> list[IndexRun]:
    """Return the runs since a time, as it was typed."""
    if since == "last":
        return store.pages.changes()[-1:]
    try:
        return store.pages.changes(datetime.fromisoformat(since).astimezone())
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"--since takes a date or time such as 2026-11-30, or 'last', not {since!r}"
        ) from error


def _show_runs(runs: Sequence[IndexRun]) -> None:
    for run in runs:
        show(f"{run.at.astimezone():%Y-%m-%d %H:%M}  {make_readable(run.source)}", "bold cyan")
        for name, pages in (("added", run.added), ("updated", run.updated), ("removed", run.removed)):
            for page in pages:
                show(f"  {name:<9}{make_readable(page)}")
        if run.more:
            show(f"  and {format_count(run.more, 'further page')}")
    if not runs:
        inform("no run of index has changed anything since then")


def _check_evidence(store: CoreStore, file: Path, *, json: bool) -> None:
    """Say which passages of a file the store still has, and end with exit code 10 if it lacks any."""
    import orjson

    from linkstore.evaluate.evidence import HOLDING, check_evidence

    try:
        evidence = orjson.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"--evidence {file}: {error}") from error
    checked = check_evidence(store, evidence)
    if json:
        write_json(checked)
    else:
        for passage in checked:
            moved = f" to {make_readable(passage.now)}" if passage.verdict == "moved" and passage.now else ""
            style = None if passage.verdict in HOLDING else "bold red"
            show(f"{passage.verdict:<10}{make_readable(passage.id)}{moved}", style)
    if any(passage.verdict not in HOLDING for passage in checked):
        raise typer.Exit(ALARM_FOUND)


def _verify(place: str, *, repair: bool, json: bool) -> None:
    """Compare derived data with the documents, and repair them or end with exit code 5 if they differ."""
    with open_core_store(place) as store:
        report = store.verify(repair=repair)
    if json:
        write_json({"sound": report.sound, "findings": list(report.findings)})
    elif report.sound:
        show("the store is sound", "green")
    else:
        for finding in report.findings:
            examples = f": {', '.join(finding.examples)}" if finding.examples else ""
            verb = "repaired" if repair else "found"
            show(f"{verb}: {finding.problem} ({finding.count}){examples}", "yellow")
    if not (repair or report.sound):
        raise typer.Exit(DAMAGED)


def _open_source(store: LinkStore, given: str, read: Mapping[str, str | int | None]) -> tuple[str, Source]:
    """Return a source with its name in the store, opened as it was indexed."""
    stored = store.pages.sources()
    name, equals, path = given.partition("=")
    if not equals or given in stored:
        name, path = given, given
    kind = recognize_kind(path)
    if kind.remote:
        raise UsageError(f"--source {given}: compare {kind.title} with linkstore index {path} --dry-run")
    options: dict[str, Any] = {key: value for key, value in read.items() if value and key in kind.options}
    named = name if equals or name in stored else escape_surrogates(Path(path).resolve().as_posix())
    if named not in stored:
        sources = ", ".join(stored) or "none"
        raise UsageError(f"--source {given}: the store has no source {named!r}; its sources are: {sources}")
    return named, kind.make(path, {"prefix": _read_prefix(store, named), **options})


def _read_prefix(store: LinkStore, source: str) -> str:
    """Return the prefix that a source was indexed with, as its documents record it."""
    pages = store.pages.digests(source)
    ids = store.pages.ids(source, list(pages)[:1])
    documents = store.get_by_ids([id for page_ids in ids.values() for id in page_ids][:1])
    return next((str(document.metadata.get("site", "")) for document in documents), "")


def _show_checkup(checkup: Checkup) -> None:
    show(f"documents     {checkup.documents:>10,}")
    show(f"pages         {checkup.pages:>10,}")
    for name, joined in checkup.types.items():
        if name is not None:
            show(
                f"  {name:<12}{joined.documents:>10,}  {joined.reached:,} are led to, {joined.leading:,}"
                f" lead on, {joined.alone:,} alone"
            )
    show(f"links         {sum(checkup.links.values()):>10,}")
    for kind, count in checkup.links.items():
        show(f"  {kind:<12}{count:>10,}")
    show(f"link groups   {checkup.groups:>10,}")
    show(f"to elsewhere  {checkup.external:>10,}")
    if checkup.unanswered:  # the most frequent first
        show(f"unanswered    {len(checkup.unanswered):>10,}")
    for question in checkup.unanswered[:MAX_SHOWN_QUESTIONS]:
        show(f"  {question.count:>9,}  {question.question}")
    for finding in checkup.findings:
        show(f"{finding.severity:<6}{finding}", "bold red" if finding.severity == "alarm" else "yellow")
    for check, reason in checkup.skipped.items():
        show(f"not checked: {check}: {reason}", "dim")
    if checkup.healthy:
        show("nothing needs attention" if not checkup.findings else "no alarm", "green")
