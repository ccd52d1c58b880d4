"""``linkstore context``: the best context for a question that fits a budget of tokens."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from linkstore.cli.output import get_stderr, note, show, write_json
from linkstore.cli.query import MAX_RETURNED, FilterOption, check_question
from linkstore.cli.stores import JsonOption, StoreOption, TextArgument, open_store, parse_json_option
from linkstore.core.display import escape_unprintable

OrderName = Literal["precedence", "relevance", "document", "edges"]
SelectionName = Literal["rank", "knapsack"]

BudgetOption = Annotated[
    int, typer.Option("--budget", "-b", min=1, help="Maximum number of tokens of the context.")
]
OrderOption = Annotated[
    OrderName,
    typer.Option(help="Order of the documents: by links, best first, page by page, or best first and last."),
]
CandidatesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MAX_RETURNED,
        help="Number of hits of the search to choose from; default 200, or what the budget holds.",
    ),
]
SelectionOption = Annotated[
    SelectionName, typer.Option(help="By rank, or those of the highest value together.")
]
HeadersOption = Annotated[bool, typer.Option("--headers", help="Name the source above each text.")]
ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Print the bill on stderr: what was taken, left out, and why.")
]


def context(
    text: TextArgument,
    store: StoreOption,
    budget: BudgetOption = 2000,
    order: OrderOption = "precedence",
    selection: SelectionOption = "rank",
    candidates: CandidatesOption = None,
    filter: FilterOption = None,
    headers: HeadersOption = False,
    explain: ExplainOption = False,
    json: JsonOption = False,
) -> None:
    """Compile the best context for a question, within a budget.

    The budget is in tokens, counted by the tokenizer of Llama 2 without a network. Prints the texts of
    documents in the order they are to be read.
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
