"""``linkstore facts``: extract atomic facts for the agent that reads a store."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstore.cli.commands import JsonOption, StoreOption
from linkstore.cli.exits import SOURCE_INCOMPLETE, UsageError, get_exit_code
from linkstore.cli.output import note, show, write_json
from linkstore.cli.stores import open_store
from linkstore.core.display import format_count
from linkstore.errors import StoreNotFoundError

if TYPE_CHECKING:
    from linkstore.agents.fact_index import FactReport, FactSummary
    from linkstore.store.core import CoreStore

MAX_SHOWN_FAILURES = 10
"""Maximum number of chunks without facts that are listed."""


def facts(
    store: StoreOption,
    model: str | None = None,
    max_concurrency: Annotated[int, typer.Option(min=1)] = 8,
    rate: float | None = None,
    dry_run: bool = False,
    report: bool = False,
    json: JsonOption = False,
) -> None:
    """Extract atomic facts and key elements, for linkstore ask.

    They are extracted from the chunks of a store by a chat model, and kept in a second store next to it, so
    searches do not find them. A second run extracts the facts of new and changed chunks only. An interrupted
    run continues where it stopped.

    Args:
        model (NAME): Chat model, such as openai:gpt-4.1-mini.
        max_concurrency (N): Calls of the model at once.
        rate (N): Calls of the model per second; default no limit.
        dry_run: Count the calls and tokens that it would cost, and write nothing.
        report: Show what the index of facts has, and extract nothing.
    """
    from linkstore.agents.fact_index import ModelExtractor, describe_facts, fact_store, index_facts
    from linkstore.agents.reader import chat_model

    if report:
        with open_store(store) as opened_store:
            try:
                stored = fact_store(opened_store)
            except StoreNotFoundError as error:
                raise StoreNotFoundError(
                    f"there are no facts of {store}; extract them with: linkstore facts --store {store}"
                    " --model NAME"
                ) from error
            with stored:
                found = describe_facts(stored)
        write_json(asdict(found)) if json else _show_report(found)
        return
    if model is None:
        raise UsageError("facts are extracted by a chat model; give --model, such as openai:gpt-4.1-mini")
    extractor = ModelExtractor(chat_model(model, rate=rate), max_concurrency=max_concurrency)
    with open_store(store) as opened_store:
        try:
            summary = index_facts(opened_store, extractor, dry_run=dry_run)
        except KeyboardInterrupt as error:
            note("stopped; run the same command again to go on")
            raise typer.Exit(get_exit_code(error)) from error
    if json:
        write_json(asdict(summary))
    else:
        _show_fact_summary(summary)
    if summary.failed:
        raise typer.Exit(SOURCE_INCOMPLETE)


def _show_fact_summary(summary: FactSummary) -> None:
    show(f"chunks    {summary.chunks:,}, {summary.unchanged:,} unchanged, {summary.removed:,} removed")
    if summary.dry_run:
        show(f"would extract the facts of {format_count(summary.extracted, 'chunk')}")
        added, removed = summary.elements_added, summary.elements_removed
        if added or removed:
            show(f"elements  {added:,} to add and {removed:,} to remove, of facts that are stored")
        tokens = format_count(summary.prompt_tokens, "token")
        show(f"calls     {summary.calls:,} of a model, {tokens} in their prompts")
        return
    show(f"extracted {format_count(summary.facts, 'fact')} of {format_count(summary.extracted, 'chunk')}")
    show(f"elements  {summary.elements_added:,} added, {summary.elements_removed:,} removed")
    if summary.doubtful:
        show(f"left out  {format_count(summary.doubtful, 'fact')} with names or numbers that the chunk lacks")
    for failed in summary.failed[:MAX_SHOWN_FAILURES]:
        note(f"failed: {failed.chunk}: {failed.reason}")
    if len(summary.failed) > MAX_SHOWN_FAILURES:
        note(f"and {len(summary.failed) - MAX_SHOWN_FAILURES:,} more; run the command again to retry them")


def _show_report(report: FactReport) -> None:
    show(f"facts     {report.facts:,} of {format_count(report.chunks, 'chunk')}")
    show(f"length    {report.words:.1f} words on average, {report.longest:,} at most")
    show(f"elements  {report.elements:,} that several facts name")
    for name, count in report.top:
        show(f"{count:>9,} {name}")


def note_facts(store: CoreStore, place: str) -> None:
    """Tell how facts of deleted documents are erased, if a store has facts beside it.

    Args:
        store: The store that documents were deleted from.
        place: The value of ``--store``.
    """
    from linkstore.store.core import FACTS_SUFFIX

    backend: Any = store.backend
    try:
        backend.beside(FACTS_SUFFIX, create=False).close()
    except StoreNotFoundError:
        return
    of_facts = f"{place}_{FACTS_SUFFIX}" if "://" in place else f"{place.rstrip('/')}/{FACTS_SUFFIX}"
    note(
        f"facts that were extracted from deleted documents stay in {of_facts}: run linkstore facts --store"
        f" {place} --model NAME, then linkstore compact --store {of_facts}"
    )
