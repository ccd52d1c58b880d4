"""The tool ``schema``: which types of document and kinds of link there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from linkstore.backends.base import Backend
from linkstore.display import printable
from linkstore.links import LINKS_KEY
from linkstore.plans import Operation
from linkstore.requests import Engine
from linkstore.schemacheck import recorded_schema
from linkstore.tools.answers import Answer
from linkstore.vocabulary import Vocabulary

NAMED: Final = 200
"""How many names of a sort are listed."""


def schema(backend: Backend, ceiling: int) -> Operation[Answer]:
    """The recorded schema as text; without one, the kinds of link and the metadata fields of the store."""
    recorded = yield from recorded_schema(backend)
    known: Vocabulary = yield Engine(backend.vocabulary())
    fields = sorted(known.fields - {LINKS_KEY})
    kinds = sorted(known.kinds)
    lines = [recorded.schema.describe()] if recorded else [f"Kinds of link: {_listed(kinds)}"]
    lines += [f"Metadata fields: {_listed(fields)}", f"search follows at most hops={ceiling}."]
    data = {
        "schema": recorded.schema.to_dict() if recorded else None,
        "kinds": kinds[:NAMED],
        "fields": fields[:NAMED],
        "max_hops": ceiling,
    }
    return Answer(text="\n".join(lines), data=data)


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    return printable(", ".join(found[:NAMED]) or "none") + more
