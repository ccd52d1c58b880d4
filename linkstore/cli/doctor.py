"""``linkstore doctor``: reports what needs attention in a store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstore.cli.commands import JsonOption
from linkstore.cli.exits import ALARM_FOUND, UsageError
from linkstore.cli.output import note, show, write_json
from linkstore.cli.sources import recognize_kind
from linkstore.cli.stores import open_store, split_names
from linkstore.core.text import escape_surrogates

if TYPE_CHECKING:
    from linkstore.evaluate.checkup import Checkup
    from linkstore.evaluate.watch import Watch
    from linkstore.ingest.source import Source
    from linkstore.store.linkstore import LinkStore

MAX_SHOWN_QUESTIONS = 20
"""How many of the questions that a store keeps are shown."""
_MIN_QUESTIONS = 1
"""Alarms are raised from the first question on, because these questions are asked on purpose."""


def doctor(
    place: Annotated[str | None, typer.Argument(show_default=False)] = None,
    store: Annotated[str | None, typer.Option("--store", "-s", envvar="LINKSTORE_STORE")] = None,
    source: list[str] | None = None,
    questions: Annotated[Path | None, typer.Option(dir_okay=False, exists=True)] = None,
    names: list[str] | None = None,
    trust_claims: bool = False,
    encoding: str | None = None,
    json: JsonOption = False,
) -> None:
    """Check what a store holds, and say what needs attention.

    Reads all documents. Reports what its schema does not allow, types of documents that no traversal reaches,
    pages that changed since they were indexed, links that lead to no document, and different spellings of
    names. The exit code is 10 if there is an alarm; notes alone do not change it. Writes nothing.

    Args:
        place (STORE): The store: a folder, or cassandra://host:port/keyspace/table.
        store (PLACE): The same.
        source (NAME_OR_PATH): A source on disk to compare with its stored pages; NAME=PATH if it has another
            name in the store; repeatable.
        questions (FILE): Questions to ask, as JSON lines for linkstore eval: how many find nothing, and how
            long they take.
        names (KINDS): Kinds of link whose tags are names; default entity,mention.
        trust_claims: The sources were indexed with --trust-claims.
        encoding (NAME): The sources were indexed with this --encoding.
    """
    chosen = place or store
    if chosen is None:
        raise UsageError("give the store: linkstore doctor STORE")
    with open_store(chosen) as opened_store:
        given = {"claims": "any" if trust_claims else None, "encoding": encoding}
        sources = dict(_open_source(opened_store, one, given) for one in source or ())
        watch = _search_questions(opened_store, questions) if questions is not None else None
        from linkstore.evaluate.checkup import NAME_KINDS, examine

        kinds = split_names(names or ()) or NAME_KINDS
        checkup = examine(opened_store, sources=sources, names=kinds, watch=watch)
    if json:
        write_json(_checkup_to_dict(checkup, watch))
    else:
        _show_checkup(checkup, watch)
    if not checkup.healthy:
        raise typer.Exit(ALARM_FOUND)


def _open_source(store: LinkStore, given: str, read: Mapping[str, str | None]) -> tuple[str, Source]:
    """Return a source with its name in the store, opened as it was indexed."""
    stored = store.sources()
    name, equals, path = given.partition("=")
    if not equals or given in stored:
        name, path = given, given
    kind = recognize_kind(path)
    if kind.remote:
        raise UsageError(f"--source {given}: compare {kind.title} with linkstore index {path} --dry-run")
    options: dict[str, Any] = {key: value for key, value in read.items() if value and key in kind.options}
    named = name if equals or name in stored else escape_surrogates(Path(path).resolve().as_posix())
    if named not in stored:
        known = ", ".join(stored) or "none"
        raise UsageError(f"--source {given}: the store has no source {named!r}; its sources are: {known}")
    return named, kind.make(path, {"prefix": _read_prefix(store, named), **options})


def _read_prefix(store: LinkStore, source: str) -> str:
    """Return the prefix that a source was indexed with, as its documents record it."""
    pages = store.pages(source)
    ids = store.page_ids(source, list(pages)[:1])
    documents = store.get_by_ids([id for found in ids.values() for id in found][:1])
    return next((str(one.metadata.get("site", "")) for one in documents), "")


def _search_questions(store: LinkStore, questions: Path) -> Watch:
    """Ask questions under a watch, and return the watch, which has ended."""
    from linkstore.errors import LinkStoreError
    from linkstore.evaluate.running import read_questions
    from linkstore.evaluate.watch import Limits, Watch

    asked = read_questions(questions)
    limits = Limits(least=_MIN_QUESTIONS)
    with Watch(store, window=len(asked), kept=len(asked), limits=limits, keep=False) as watch:
        for one in asked:
            try:
                store.search(one.question)
            except LinkStoreError as error:
                note(f"{one.question}: {error}")
    return watch


def _checkup_to_dict(checkup: Checkup, watch: Watch | None) -> dict[str, object]:
    said: dict[str, object] = checkup.to_dict()
    if watch is not None:
        said["searches"] = watch.vitals().to_dict()
        said["not_found"] = [{"question": one.question, "reason": one.reason} for one in watch.unanswered()]
    return said


def _show_checkup(checkup: Checkup, watch: Watch | None) -> None:
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
    if watch is not None:
        show(f"searches      {watch.vitals()}")
        for search in watch.unanswered():
            show(f"  no answer: {search.question} ({search.reason})")
    _show_unanswered(checkup)
    for finding in checkup.findings:
        show(f"{finding.severity:<6}{finding}", "bold red" if finding.severity == "alarm" else "yellow")
    for check, reason in checkup.skipped.items():
        show(f"not checked: {check}: {reason}", "dim")
    if checkup.healthy:
        show("nothing needs attention" if not checkup.findings else "no alarm", "green")


def _show_unanswered(checkup: Checkup) -> None:
    """Show the questions that found nothing and are kept in the store, the most frequent first."""
    if checkup.unanswered:
        show(f"unanswered    {len(checkup.unanswered):>10,}")
    for one in checkup.unanswered[:MAX_SHOWN_QUESTIONS]:
        show(f"  {one.count:>9,}  {one.question}")
