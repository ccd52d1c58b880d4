"""``linkstore stats``: counts the content of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from linkstore.cli.options import JsonOption, StoreOption
from linkstore.cli.output import printable, stdout, write_json
from linkstore.cli.stores import core_opened

if TYPE_CHECKING:
    from linkstore.backends.base import Survey


def stats(store: StoreOption, json: JsonOption = False) -> None:
    """Count the contents of a store.

    Prints the number of documents, pages, links by kind and link groups, and of hyperlinks without a target
    in the store.
    """
    with core_opened(store) as opened_store:
        counts = survey_to_dict(opened_store.survey())
    if json:
        write_json(counts)
    else:
        show_counts(counts)


def survey_to_dict(survey: Survey) -> dict[str, Any]:
    """Return a survey as ``--json`` prints it; dangling are hyperlinks that lead to nothing in the store."""
    from linkstore.ingest.summary import count_dangling

    return {
        "documents": survey.documents,
        "pages": survey.pages,
        "links": dict(survey.links),
        "groups": survey.groups,
        "dangling": asdict(count_dangling(survey)),
    }


def show_counts(counts: Mapping[str, Any]) -> None:
    """Print counts, one a line, those of a group indented below its name."""
    console = stdout()
    for name, value in counts.items():
        if isinstance(value, Mapping):
            console.print(f"{name:<14}{sum(value.values()):>10,}")
            for part, count in value.items():
                console.print(f"  {printable(part):<12}{count:>10,}")
        else:
            console.print(f"{name:<14}{value:>10,}")
