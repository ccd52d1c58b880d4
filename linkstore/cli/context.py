"""``linkstore context``: the best context for a question that fits a budget of tokens."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from linkstore.cli.commands import JsonOption, StoreOption, TextArgument
from linkstore.cli.output import get_stderr, note, show, write_json
from linkstore.cli.query import MAX_RETURNED, check_question
from linkstore.cli.stores import open_store, parse_json_option
from linkstore.core.display import escape_unprintable

OrderName = Literal["precedence", "relevance", "document", "edges"]
SelectionName = Literal["rank", "knapsack"]


def context(
    text: TextArgument,
    store: StoreOption,
    budget: Annotated[int, typer.Option("--budget", "-b", min=1)] = 2000,
    order: OrderName = "precedence",
    selection: SelectionName = "rank",
    candidates: Annotated[int | None, typer.Option(min=1, max=MAX_RETURNED)] = None,
    filter: str | None = None,
    headers: bool = False,
    explain: bool = False,
    json: JsonOption = False,
) -> None:
    """Compile the best context for a question, within a budget.

    The budget is in tokens, counted by the tokenizer of Llama 2 without a network. Prints the texts of
    documents in the order they are to be read.

    Args:
        budget: Maximum number of tokens of the context.
        order: Order of the documents: by links, best first, page by page, or best first and last.
        selection: By rank, or those of the highest value together.
        candidates: Number of hits of the search to choose from; default 200, or what the budget holds.
        filter (JSON): Filter on metadata, for the whole search.
        headers: Name the source above each text.
        explain: Print the bill on stderr: what was taken, left out, and why.
    """
    check_question(text)
    condition = parse_json_option(filter, "--filter")
    from linkstore.context.candidates import source_header
    from linkstore.context.compiler import ContextCompiler

    with open_store(store) as opened_store:
        compiled = ContextCompiler(
            opened_store,
            budget=budget,
            order=order,
            selection=selection,
            candidates=candidates,
            filter=condition,
            header=source_header if headers else None,
        ).compile(text)
    if json:
        write_json(compiled.to_dict())
    elif compiled.text:
        for line in compiled.text.split("\n"):
            show(line)
    if not compiled.items:
        note(f"the context is empty: {compiled.reason}")
    if explain:
        for line in compiled.explain().split("\n"):
            get_stderr().print(escape_unprintable(line))
