"""What the page shows of a document: its text, its links in both directions, and what is around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from linkstore.core.display import get_body, get_title, get_url
from linkstore.core.hit_graph import name_document
from linkstore.core.hits import get_page
from linkstore.core.links import LINKS_KEY
from linkstore.errors import DocumentError, StrategyError
from linkstore.strategies import Words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_core.documents import Document

    from linkstore.store import LinkStore
    from linkstore.strategies.neighbours import Neighbour

MOST_HOPS: Final = 3
MOST_AROUND: Final = 150
"""How many documents around one are drawn at most."""
_MOST_LISTED: Final = 50
"""How many documents are listed of one link at most."""
_LONGEST_TEXT: Final = 50_000
_FOUND: Final = 20


def describe_document(store: LinkStore, id: str, hops: int = 1) -> dict[str, Any]:
    """Return a document with its links, and the graph of what is up to ``hops`` links away, as plain JSON.

    Args:
        store: Where it is.
        id: Its id.
        hops: How far the graph reaches, from 1 to 3. It has at most 150 documents, the nearest first.

    Raises:
        DocumentError: If the document does not exist.
        StrategyError: If ``hops`` is out of range.
    """
    if isinstance(hops, bool) or not isinstance(hops, int) or not 1 <= hops <= MOST_HOPS:
        raise StrategyError(f"hops must be a number from 1 to {MOST_HOPS}, not {hops!r}")
    documents = store.get_by_ids([id])
    if not documents:
        raise DocumentError(f"document {id!r} does not exist in the store")
    document = documents[0]
    around = store.neighbours(id)
    metadata = {name: value for name, value in document.metadata.items() if name != LINKS_KEY}
    text = get_body(document)
    graph = _describe_surroundings(store, id, hops)
    titles = {node["id"]: node["title"] for node in graph["nodes"]}
    return {
        "id": id,
        "title": get_title(document) or id,
        "name": name_document(document.metadata, text) or id,
        "page": get_page(document),
        "url": get_url(document),
        "text": text[:_LONGEST_TEXT],
        "cut": max(0, len(text) - _LONGEST_TEXT),
        "metadata": orjson.loads(orjson.dumps(metadata)),
        "outgoing": _list_links(around.outgoing, titles),
        "incoming": _list_links(around.incoming, titles),
        "graph": graph,
    }


def _list_links(neighbours: Iterable[Neighbour], titles: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "kind": one.link.kind,
            "tag": one.link.tag,
            "label": one.link.label,
            "more": one.more,
            "documents": [{"id": id, "title": titles.get(id, id)} for id in one.ids[:_MOST_LISTED]],
            "count": len(one.ids),
        }
        for one in neighbours
    ]


def _describe_surroundings(store: LinkStore, id: str, hops: int) -> dict[str, Any]:
    """Return the documents around one, nearest first, and the links by which they were found."""
    depth, edges = {id: 0}, dict[tuple[str, str, str], str | None]()
    frontier, cut = [id], False
    for distance in range(1, hops + 1):
        reached: list[str] = []
        for one in frontier:
            found = store.neighbours(one)
            for neighbour, away in [
                *((neighbour, True) for neighbour in found.outgoing),
                *((neighbour, False) for neighbour in found.incoming),
            ]:
                for other in neighbour.ids if not neighbour.more else ():
                    if other not in depth:
                        if len(depth) >= MOST_AROUND:
                            cut = True
                            continue
                        depth[other] = distance
                        reached.append(other)
                    ends = (one, other) if away else (other, one)
                    edges.setdefault((*ends, neighbour.link.kind), neighbour.link.label)
        frontier = reached
    stored = {document.id: document for document in store.get_by_ids(list(depth))}
    nodes = [
        {
            "id": one,
            "title": _name(stored[one]) if one in stored else one,
            "url": get_url(stored[one]) if one in stored else None,
            "role": "hit" if away else "start",
            "depth": away,
            "score": None,
        }
        for one, away in depth.items()
    ]
    links = [
        {"source": source, "target": target, "kind": kind, "label": label, "followed": True}
        for (source, target, kind), label in edges.items()
    ]
    return {"nodes": nodes, "edges": links, "cut": cut}


def _name(document: Document) -> str:
    return name_document(document.metadata, get_body(document)) or document.id or ""


def find_documents(store: LinkStore, text: str) -> list[dict[str, Any]]:
    """Return up to 20 documents for what somebody types: an id, a part of a page's name, or words."""
    typed = text.strip()
    if not typed:
        return []
    found = {one.id: one for one in store.get_by_ids([typed])}
    folded = typed.casefold()
    pages = sorted(name for name in store.pages() if folded in name.casefold())[:_FOUND]
    first = [ids[0] for ids in store.page_ids(None, pages).values() if ids]
    found |= {one.id: one for one in store.get_by_ids(first)}
    for hit in store.search(typed, strategy=Words(k=_FOUND)):
        found.setdefault(hit.document.id, hit.document)
    return [
        {"id": id, "title": _name(one), "page": get_page(one)} for id, one in list(found.items())[:_FOUND]
    ]
