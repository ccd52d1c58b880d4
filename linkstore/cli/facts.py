"""``linkstore facts``: extract atomic facts for the agent that reads a store."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstore.cli.exits import INCOMPLETE, exit_code
from linkstore.cli.options import JsonOption, StoreOption
from linkstore.cli.output import note, printable, stdout, write_json
from linkstore.cli.stores import opened
from linkstore.display import amount

if TYPE_CHECKING:
    from linkstore.agents import FactSummary

SHOWN = 10
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
    from linkstore.agents import ModelExtractor, chat_model, index_facts

    extractor = ModelExtractor(chat_model(model, rate=rate), max_concurrency=max_concurrency)
    with opened(store) as opened_store:
        try:
            summary = index_facts(opened_store, extractor, dry_run=dry_run)
        except KeyboardInterrupt as error:
            note("stopped; run the same command again to go on")
            raise typer.Exit(exit_code(error)) from error
    if json:
        write_json(asdict(summary))
    else:
        _show(summary)
    if summary.failed:
        raise typer.Exit(INCOMPLETE)


def _show(summary: FactSummary) -> None:
    line: Any = stdout().print
    line(f"chunks    {summary.chunks:,}, {summary.unchanged:,} unchanged, {summary.removed:,} removed")
    if summary.dry_run:
        line(f"would extract the facts of {amount(summary.extracted, 'chunk')}")
        added, removed = summary.elements_added, summary.elements_removed
        if added or removed:
            line(f"elements  {added:,} to add and {removed:,} to remove, of facts that are stored")
        tokens = amount(summary.prompt_tokens, "token")
        line(f"calls     {summary.calls:,} of a model, {tokens} in their prompts")
        return
    line(f"extracted {amount(summary.facts, 'fact')} of {amount(summary.extracted, 'chunk')}")
    line(f"elements  {summary.elements_added:,} added, {summary.elements_removed:,} removed")
    for failed in summary.failed[:SHOWN]:
        note(printable(f"failed: {failed.chunk}: {failed.reason}"))
    if len(summary.failed) > SHOWN:
        note(f"and {len(summary.failed) - SHOWN:,} more; run the command again to retry them")
