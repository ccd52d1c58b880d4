"""``linkstore export``: writes the documents of a store as JSON lines or as a graph."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, Literal
from xml.sax.saxutils import escape, quoteattr

import orjson
import typer
import xxhash

from linkstore.cli.commands import StoreOption
from linkstore.cli.exits import UsageError
from linkstore.cli.output import note
from linkstore.cli.stores import open_core_store
from linkstore.core.display import escape_unprintable, get_title, get_url
from linkstore.core.links import LINKS_KEY, get_links

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.core.links import Link
    from linkstore.store.core import CoreStore
_GRAPHML_KEYS: Final = (
    ("type", "node", "string"),
    ("title", "node", "string"),
    ("url", "node", "string"),
    ("kind", "all", "string"),
    ("tag", "node", "string"),
    ("label", "edge", "string"),
    ("weight", "edge", "double"),
    ("data", "edge", "string"),
)
_GRAPHML_HEAD: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    + "".join(
        f'  <key id="{name}" for="{where}" attr.name="{name}" attr.type="{kind}"/>\n'
        for name, where, kind in _GRAPHML_KEYS
    )
    + '  <graph edgedefault="directed">\n'
)
_GRAPHML_TAIL: Final = "  </graph>\n</graphml>\n"


def export(
    store: StoreOption,
    format: Literal["jsonl", "graphml", "html"] = "jsonl",
    output: Annotated[Path | None, typer.Option("--output", "-o", dir_okay=False)] = None,
) -> None:
    """Write all documents with their links.

    Documents are read in batches, so a store of any size can be exported.

    Args:
        format: jsonl: one document per line, which index can read; graphml: documents and link groups as
            nodes, links as edges; html: one page that shows the graph of the pages.
        output (FILE): Write to FILE; default stdout.
    """
    with open_core_store(store) as opened_store, _open_output(output) as file:
        if format == "html":
            from linkstore.explorer.page import render_store

            file.write(render_store(opened_store, title=store).encode())
        else:
            write = write_json_lines if format == "jsonl" else write_graphml
            file.writelines(write(opened_store))
    if output is not None:
        note(f"wrote {output}")


@contextmanager
def _open_output(output: Path | None) -> Iterator[BinaryIO]:
    """Open the output file, which appears only once it is complete, or stdout without a path."""
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    beside = output.with_name(f"{output.name}.part")
    try:
        with beside.open("wb") as file:
            yield file
        beside.replace(output)
    except OSError as error:
        raise UsageError(f"--output: {error}") from error
    finally:
        beside.unlink(missing_ok=True)


def write_json_lines(store: CoreStore) -> Iterator[bytes]:
    """Yield a line for each document, as :class:`linkstore.ingest.JsonLinesSource` reads it.

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


def write_graphml(store: CoreStore) -> Iterator[bytes]:
    """Yield a directed graph with documents and link groups as nodes, and links as edges.

    An outgoing link is an edge from its document to its group, an incoming one an edge from the group to its
    document: two documents are linked where there is a path of two edges. Edges from document to document
    would be as many as the product of both sides of each group. Memory holds a hash of each group, about 100
    bytes.
    """
    seen: set[bytes] = set()
    yield _GRAPHML_HEAD.encode()
    for document in store.scan():
        described = {"type": "document", "title": get_title(document), "url": get_url(document)}
        parts = [_format_node(f"d:{document.id}", described)]
        for link in get_links(document):
            parts.extend(_format_links(document, link, seen))
        yield "".join(parts).encode()
    yield _GRAPHML_TAIL.encode()


def _format_links(document: Document, link: Link, seen: set[bytes]) -> Iterator[str]:
    """Yield the edges of a link, and first the node of its group unless that was yielded before."""
    group = f"g:{link.kind}:{link.tag}"
    key = xxhash.xxh3_128_digest(group.encode())
    if key not in seen:
        seen.add(key)
        yield _format_node(group, {"type": "group", "kind": link.kind, "tag": link.tag})
    own = f"d:{document.id}"
    if link.leads_out:
        yield _format_edge(own, group, link)
    if link.leads_in:
        yield _format_edge(group, own, link)


def _format_node(id: str, fields: dict[str, str | None]) -> str:
    return f"    <node id={_quote_attribute(id)}>{_format_data_elements(fields)}</node>\n"


def _format_edge(source: str, target: str, link: Link) -> str:
    weight = None if link.weight == 1.0 else str(link.weight)
    told = None if link.data is None else orjson.dumps(link.data).decode()
    data = _format_data_elements({"kind": link.kind, "label": link.label, "weight": weight, "data": told})
    return f"    <edge source={_quote_attribute(source)} target={_quote_attribute(target)}>{data}</edge>\n"


def _format_data_elements(fields: dict[str, str | None]) -> str:
    return "".join(
        f'<data key="{key}">{escape(escape_unprintable(value))}</data>'
        for key, value in fields.items()
        if value
    )


def _quote_attribute(name: str) -> str:
    """Quote a name for XML, with control characters, which XML does not have, written out."""
    return quoteattr(escape_unprintable(name))
