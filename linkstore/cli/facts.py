"""``linkstore facts``: extract atomic facts for the agent that reads a store."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstore.cli.exits import SOURCE_INCOMPLETE, get_exit_code
from linkstore.cli.output import note, show, write_json
from linkstore.cli.stores import JsonOption, StoreOption, open_store
from linkstore.core.display import format_count
from linkstore.errors import StoreNotFoundError

if TYPE_CHECKING:
    from linkstore.agents.fact_index import FactSummary
    from linkstore.store.core import CoreStore

MAX_SHOWN_FAILURES = 10
"""Maximum number of chunks without facts that are listed."""


def facts(
    store: StoreOption,
    model: Annotated[str, typer.Option(metavar="NAME", help="Chat model, such as openai:gpt-4.1-mini.")],
    max_concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Calls of the model at once.")] = 8,
    rate: Annotated[
        float | None, typer.Option(metavar="N", help="Calls of the model per second; default no limit.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Count the calls and tokens that it would cost, and write nothing."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Extract atomic facts and key elements, for linkstore.agents.

    They are extracted from the chunks of a store, and kept in a second store next to it, so searches do
    not find them. A second run extracts the facts of new and changed chunks only. An interrupted run
    continues where it stopped.
    """
    from linkstore.agents.fact_index import ModelExtractor, index_facts
    from linkstore.agents.reader import chat_model

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
    for failed in summary.failed[:MAX_SHOWN_FAILURES]:
        note(f"failed: {failed.chunk}: {failed.reason}")
    if len(summary.failed) > MAX_SHOWN_FAILURES:
        note(f"and {len(summary.failed) - MAX_SHOWN_FAILURES:,} more; run the command again to retry them")


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
