"""``linkstore context``: the best context for a question that fits a budget of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from linkstore.cli.options import JsonOption, StoreOption, TextArgument, json_file, json_object
from linkstore.cli.output import note, printable, stderr, stdout, write_json
from linkstore.cli.query import MOST, require_words
from linkstore.cli.stores import opened

if TYPE_CHECKING:
    from rich.console import Console

Order = Literal["precedence", "relevance", "document", "edges"]

BudgetOption = Annotated[
    int, typer.Option("--budget", "-b", min=1, help="Maximum number of tokens of the context.")
]
OrderOption = Annotated[
    Order,
    typer.Option(help="Order of the documents: by links, best first, page by page, or best first and last."),
]
CandidatesOption = Annotated[
    int, typer.Option(min=1, max=MOST, help="Number of hits of the search to choose from.")
]
FilterOption = Annotated[
    str | None, typer.Option(metavar="JSON", help="Filter on metadata, for the whole search.")
]
CalibrationOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Coefficients that linkstore eval --calibrate printed."),
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
    candidates: CandidatesOption = 200,
    filter: FilterOption = None,
    calibration: CalibrationOption = None,
    headers: HeadersOption = False,
    explain: ExplainOption = False,
    json: JsonOption = False,
) -> None:
    """Compile the best context for a question, within a budget.

    The budget is in tokens, counted by the tokenizer of Llama 2 without a network. Prints the texts of
    documents in the order they are to be read.
    """
    require_words(text)
    condition = json_object(filter, "--filter")
    coefficients = None if calibration is None else json_file(calibration, "--calibration")
    from linkstore.context import Calibrated, ContextCompiler, source_header

    with opened(store) as opened_store:
        compiled = ContextCompiler(
            opened_store,
            budget=budget,
            order=order,
            candidates=candidates,
            filter=condition,
            value=Calibrated(coefficients=coefficients),
            header=source_header if headers else None,
        ).compile(text)
    if json:
        write_json(compiled.to_dict())
    elif compiled.text:
        _show(stdout(), compiled.text)
    if not compiled.items:
        note(f"the context is empty: {compiled.reason}")
    if explain:
        _show(stderr(), compiled.explain())


def _show(console: Console, text: str) -> None:
    for line in text.split("\n"):
        console.print(printable(line))
