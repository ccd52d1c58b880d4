"""Labels and data of the links on paths and chains, as the documents have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from linkstore.filters import Condition
from linkstore.links import LINKS_KEY, Link, links_in

Tag = tuple[str, str]
Data = Mapping[str, Any] | None


def labels_in(metadata: Mapping[str, Any]) -> dict[Tag, str]:
    """Return the first label that a document's links give to each (kind, tag)."""
    labels: dict[Tag, str] = {}
    for link in metadata.get(LINKS_KEY) or ():
        label = link.get("label")
        if label:
            labels.setdefault((link["kind"], link["tag"]), label)
    return labels


def data_in(metadata: Mapping[str, Any], condition: Condition) -> dict[Tag, Data]:
    """Return the data of a document's outgoing links, for each (kind, tag) the first that passes.

    The result is empty for a document whose links have no data.
    """
    if not any(link.get("data") for link in metadata.get(LINKS_KEY) or ()):
        return {}
    return pointing_data(links_in({LINKS_KEY: metadata[LINKS_KEY]}), condition)


def pointing_data(links: Iterable[Link], condition: Condition) -> dict[Tag, Data]:
    """Return the data of outgoing links: see :func:`data_in`."""
    data: dict[Tag, Data] = {}
    for link in links:
        if link.leads_out and condition.matches(link.data or {}):
            data.setdefault((link.kind, link.tag), link.data)
    return data
