"""The tool ``schema``: the types of document and kinds of link of a store."""

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
    """Describe the recorded schema, or without one the kinds of link and metadata fields of the store.

    Without a recorded schema, the time may grow with the size of the store.
    """
    recorded = yield from recorded_schema(backend)
    if recorded:
        kinds, fields = sorted(recorded.schema.kinds), [recorded.schema.type_field]
        lines = [recorded.schema.describe()]
    else:
        known: Vocabulary = yield Engine(backend.vocabulary())
        kinds, fields = sorted(known.kinds), sorted(known.fields - {LINKS_KEY})
        lines = [f"Kinds of link: {_listed(kinds)}", f"Metadata fields: {_listed(fields)}"]
    data = {
        "schema": recorded.schema.to_dict() if recorded else None,
        "kinds": kinds[:NAMED],
        "fields": fields[:NAMED],
        "max_hops": ceiling,
    }
    return Answer(text="\n".join([*lines, f"search follows at most hops={ceiling}."]), data=data)


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    return printable(", ".join(found[:NAMED]) or "none") + more
