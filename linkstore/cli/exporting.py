"""Writes a store as JSON lines or as a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape, quoteattr

import orjson
import xxhash

from linkstore.display import printable
from linkstore.links import LINKS_KEY, get_links
from linkstore.snippet import title_of, url_of

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.links import Link
    from linkstore.store.core import CoreStore

_KEYS: Final = (
    ("type", "node", "string"),
    ("title", "node", "string"),
    ("url", "node", "string"),
    ("kind", "all", "string"),
    ("tag", "node", "string"),
    ("label", "edge", "string"),
    ("weight", "edge", "double"),
    ("data", "edge", "string"),
)
_HEAD: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    + "".join(
        f'  <key id="{name}" for="{where}" attr.name="{name}" attr.type="{kind}"/>\n'
        for name, where, kind in _KEYS
    )
    + '  <graph edgedefault="directed">\n'
)
_TAIL: Final = "  </graph>\n</graphml>\n"


def json_lines(store: CoreStore) -> Iterator[bytes]:
    """Yield a line for each document, as :func:`linkstore.ingest.index_jsonl` reads it.

    ``"answers": false`` says that links lead to the document only by its ``links``.
    """
    for document in store.scan():
        metadata = {key: value for key, value in document.metadata.items() if key != LINKS_KEY}
        line = {
            "id": document.id,
            "text": document.page_content,
            "links": [link.to_dict() for link in get_links(document)],
            "metadata": metadata,
            "answers": False,
        }
        yield orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def graphml(store: CoreStore) -> Iterator[bytes]:
    """Yield a directed graph with documents and link groups as nodes, and links as edges.

    An outgoing link is an edge from its document to its group, an incoming one an edge from the group to its
    document: two documents are linked where there is a path of two edges. Edges from document to document
    would be as many as the product of both sides of each group. Memory holds a hash of each group, about 100
    bytes.
    """
    seen: set[bytes] = set()
    yield _HEAD.encode()
    for document in store.scan():
        parts = [_node(f"d:{document.id}", {"type": "document", **_described(document)})]
        for link in get_links(document):
            parts.extend(_linked(document, link, seen))
        yield "".join(parts).encode()
    yield _TAIL.encode()


def _described(document: Document) -> dict[str, str | None]:
    return {"title": title_of(document), "url": url_of(document)}


def _linked(document: Document, link: Link, seen: set[bytes]) -> Iterator[str]:
    """Yield the edges of a link, and first the node of its group unless that was yielded before."""
    group = f"g:{link.kind}:{link.tag}"
    key = xxhash.xxh3_128_digest(group.encode())
    if key not in seen:
        seen.add(key)
        yield _node(group, {"type": "group", "kind": link.kind, "tag": link.tag})
    own = f"d:{document.id}"
    if link.leads_out:
        yield _edge(own, group, link)
    if link.leads_in:
        yield _edge(group, own, link)


def _node(id: str, fields: dict[str, str | None]) -> str:
    return f"    <node id={_quoted(id)}>{_data(fields)}</node>\n"


def _edge(source: str, target: str, link: Link) -> str:
    weight = None if link.weight == 1.0 else str(link.weight)
    told = None if link.data is None else orjson.dumps(link.data).decode()
    data = _data({"kind": link.kind, "label": link.label, "weight": weight, "data": told})
    return f"    <edge source={_quoted(source)} target={_quoted(target)}>{data}</edge>\n"


def _data(fields: dict[str, str | None]) -> str:
    return "".join(
        f'<data key="{key}">{escape(printable(value))}</data>' for key, value in fields.items() if value
    )


def _quoted(name: str) -> str:
    """Quote a name for XML, with control characters, which XML does not have, written out."""
    return quoteattr(printable(name))
