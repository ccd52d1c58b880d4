"""The links in the metadata of a document that is or will be stored, and those that pass a filter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import orjson

from linkstore.filters import Condition
from linkstore.links import LINKS_KEY, AnyLink, Link, as_link


def with_other_links(
    metadata: Mapping[str, Any], kinds: Collection[str], links: Iterable[Link]
) -> list[Any] | None:
    """Return ``metadata["links"]`` with the links of some kinds replaced, or None if nothing changes.

    Args:
        metadata: Metadata of a stored document, whose links are plain dicts.
        kinds: The kinds to replace. Other links are kept in order.
        links: The new links, appended.
    """
    known: Sequence[Any] = metadata.get(LINKS_KEY) or ()
    written = [link for link in known if link["kind"] not in kinds]
    written += [link.to_dict() for link in links]
    return None if _is_same_json(written, known) else written


def with_plain_data(links: Iterable[AnyLink]) -> list[Any]:
    """Return ``metadata["links"]`` as stored: dicts as their author wrote them, with plain JSON data."""
    return [
        ({**one, "data": as_link(one).to_dict().get("data", {})} if one.get("data") else one)
        if type(one) is dict
        else as_link(one).to_dict()
        for one in links
    ]


def passing_weights(
    links: Iterable[Link], side: Literal["out", "in"], condition: Condition
) -> dict[tuple[str, str], float]:
    """Return the link groups, by kind and tag, that links whose data pass lead to on one side.

    Returns:
        For each group the highest weight of these links.
    """
    weights: dict[tuple[str, str], float] = {}
    for link in links:
        if (link.leads_out if side == "out" else link.leads_in) and condition.matches(link.data or {}):
            key = link.kind, link.tag
            weights[key] = max(link.weight, weights.get(key, 0.0))
    return weights


def _is_same_json(written: Sequence[Any], known: Sequence[Any]) -> bool:
    """Say whether links are equal, also in the types of numbers: 1, 1.0 and true are equal in Python."""
    sort = orjson.OPT_SORT_KEYS
    return written == list(known) and orjson.dumps(written, option=sort) == orjson.dumps(known, option=sort)
