"""``linkstore profile``: shows whether links can improve the results of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linkstore.cli.evaluate import Gold
from linkstore.cli.exits import UsageError
from linkstore.cli.options import JsonOption, StoreOption
from linkstore.cli.output import write_json
from linkstore.cli.stores import opened


def profile(
    store: StoreOption,
    questions: Annotated[
        str | None,
        typer.Option(metavar="FILE", help='JSON Lines of {"question", "gold": [pages, sections or ids]}.'),
    ] = None,
    gold: Gold = None,
    json: JsonOption = False,
) -> None:
    """Show whether the links of a store can improve results.

    Prints links by kind, link groups by size, hubs, dangling links, and how many documents links reach. With
    questions and their answers, also prints how often links join the answers, and how much they can improve
    results.
    """
    if questions is not None and not Path(questions).is_file():
        raise UsageError(f"--questions: the file {questions} does not exist")
    from linkstore.evaluation import profile as profiled
    from linkstore.evaluation import read_questions

    asked = () if questions is None else read_questions(questions)
    with opened(store) as opened_store:
        found = profiled(opened_store, asked, gold=gold)
    if json:
        write_json(found.to_dict())
    else:
        from linkstore.cli.profiled import show_profile

        show_profile(found)
