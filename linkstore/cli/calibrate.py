"""``linkstore calibrate``: a minimum similarity for a store and its embedding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkstore.cli.evaluate import Gold
from linkstore.cli.exits import UsageError
from linkstore.cli.options import JsonOption, StoreOption
from linkstore.cli.output import note, stdout, write_json
from linkstore.cli.stores import opened

if TYPE_CHECKING:
    from linkstore.store import LinkStore

QuestionsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help='JSON Lines of {"question", "gold": [pages, sections or ids]}; default: compare documents.',
    ),
]
NoiseOption = Annotated[
    float, typer.Option(min=0, max=1, metavar="SHARE", help="Share of noise that may reach the minimum.")
]
KeepOption = Annotated[
    float,
    typer.Option(min=0, max=1, metavar="SHARE", help="Share of questions of which an answer must reach it."),
]
SaveOption = Annotated[bool, typer.Option("--save", help="Record the proposal as the store's default.")]
ClearOption = Annotated[bool, typer.Option("--clear", help="Remove the store's default instead.")]


def calibrate(
    store: StoreOption,
    questions: QuestionsOption = None,
    gold: Gold = None,
    noise: NoiseOption = 0.05,
    keep: KeepOption = 0.99,
    save: SaveOption = False,
    clear: ClearOption = False,
    json: JsonOption = False,
) -> None:
    """Propose a minimum similarity for the start of searches.

    A search starts from no document below it. Prints the proposal with the share of noise that reaches it:
    random pairs of documents or, with questions, pairs of a question and a document that does not answer it;
    and the shares of gold answers that reach it, and of questions with an answer that does.
    """
    if questions is not None and not Path(questions).is_file():
        raise UsageError(f"--questions: the file {questions} does not exist")
    if clear and (save or questions is not None):
        raise UsageError("--clear removes the default, and takes neither --save nor --questions")
    with opened(store) as opened_store:
        if clear:
            _remove(opened_store)
            return
        from linkstore.evaluation import calibrate_floor, read_questions

        asked = () if questions is None else read_questions(questions)
        found = calibrate_floor(opened_store, asked, gold=gold, noise=noise, keep=keep)
        if save:
            opened_store.set_min_similarity(found.min_similarity)
        recorded = opened_store.min_similarity
    if json:
        write_json(found.to_dict() | {"recorded": recorded})
        return
    stdout().print(str(found))
    told = "records none" if recorded is None else f"records {recorded:g}"
    note(
        "recorded: searches of this store use it unless they set their own"
        if save
        else f"the store {told}; --save records this one"
    )


def _remove(store: LinkStore) -> None:
    """Remove the minimum similarity that a store records."""
    before = store.min_similarity
    store.set_min_similarity(None)
    note("no default was recorded" if before is None else f"removed the default of {before:g}")
