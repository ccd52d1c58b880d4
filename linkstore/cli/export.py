"""``linkstore export`` and ``migrate``: the documents of a store as a file, or in another store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, Literal
from xml.etree.ElementTree import Element, SubElement, tostring

import orjson
import typer
import xxhash

from linkstore.cli.commands import JsonOption, StoreOption
from linkstore.cli.exits import UsageError
from linkstore.cli.output import inform, print_result, show, show_progress
from linkstore.cli.stores import is_place_url, is_store, open_backend, open_core_store
from linkstore.core.display import escape_unprintable, format_count, format_kinds, get_title, get_url
from linkstore.core.links import LINKS_KEY, get_links
from linkstore.errors import EmbeddingError, LinkStoreError, StoreNotFoundError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.core.links import Link
    from linkstore.store.core import CoreStore
    from linkstore.store.migration import MigrationReport, MigrationSource

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
    format: Literal["jsonl", "graphml", "html", "okf"] = "jsonl",
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
) -> None:
    """Write all documents with their links.

    Documents are read in batches, so a store of any size can be exported.

    Args:
        format: jsonl: one document per line, which index can read; graphml: documents and link groups as
            nodes, links as edges; html: one page that shows the graph of the pages; okf: a bundle of the Open
            Knowledge Format, in a new folder that --output names.
        output (PATH): Write to this file, or okf to this folder; default stdout.
    """
    if format == "okf":
        _export_bundle(store, output)
        return
    with open_core_store(store) as opened_store, _open_output(output) as file:
        if format == "html":
            from linkstore.explorer.page import render

            file.write(render(opened_store, store).encode())
        else:
            write = write_json_lines if format == "jsonl" else write_graphml
            file.writelines(write(opened_store))
    if output is not None:
        inform(f"wrote {output}")


def _export_bundle(place: str, folder: Path | None) -> None:
    if folder is None:
        raise UsageError("--format okf writes a folder; name a new one by --output")
    from linkstore.ingest.notes.bundle_writer import write_bundle

    with open_core_store(place) as store:
        count = write_bundle(store, folder)
    inform(f"wrote {format_count(count, 'page')} to {folder}")


@contextmanager
def _open_output(output: Path | None) -> Iterator[BinaryIO]:
    """Open the output file, which appears only once it is complete, or stdout without a path."""
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if output.is_dir():
        raise UsageError(f"--output: {output} is a folder; name a file")
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

    The documents of an indexed page stand together, in their order, then those of no page. ``"answers":
    false`` says that links lead to the document only by its ``links``. Memory holds the ids of all documents.
    """
    pages = store.pages.ids(None, list(store.pages.digests()))
    for page, ids in sorted(pages.items()):
        yield from (_format_line(document, page) for document in store.get_by_ids(ids))
    written = {id for ids in pages.values() for id in ids}
    yield from (_format_line(document) for document in store.scan() if document.id not in written)


def _format_line(document: Document, page: str | None = None) -> bytes:
    line = {
        "id": document.id,
        "text": document.page_content,
        "links": [link.to_dict() for link in get_links(document)],
        "metadata": {key: value for key, value in document.metadata.items() if key != LINKS_KEY},
        "answers": False,
        **({"page": page} if page else {}),
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


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
        parts = [_format_element("node", {"id": f"d:{document.id}"}, described)]
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
        yield _format_element("node", {"id": group}, {"type": "group", "kind": link.kind, "tag": link.tag})
    own = f"d:{document.id}"
    weight = None if link.weight == 1.0 else str(link.weight)
    data = None if link.data is None else orjson.dumps(link.data).decode()
    fields = {"kind": link.kind, "label": link.label, "weight": weight, "data": data}
    if link.leads_out:
        yield _format_element("edge", {"source": own, "target": group}, fields)
    if link.leads_in:
        yield _format_element("edge", {"source": group, "target": own}, fields)


def _format_element(name: str, attributes: dict[str, str], fields: dict[str, str | None]) -> str:
    """Format a node or an edge, with control characters, which XML does not have, written out."""
    element = Element(name, {key: escape_unprintable(value) for key, value in attributes.items()})
    for key, field in fields.items():
        if field:
            SubElement(element, "data", key=key).text = escape_unprintable(field)
    return f"    {tostring(element, encoding='unicode', short_empty_elements=False)}\n"


def migrate(source: str, target: str, embedding_name: str | None = None, json: JsonOption = False) -> None:
    """Copy a store with its vectors and links.

    Nothing is embedded again. To continue an interrupted migration, run the same command again. Documents
    that cannot be copied are listed with the reason, and skipped.

    Args:
        source (SOURCE): A folder, or cassandra://host:port/keyspace/table: a linkstore, or a table of
            langchain-community's CassandraGraphVectorStore or Cassandra.
        target (TARGET): A folder or URL; the store is created if it does not exist.
        embedding_name (NAME): Embedding of the vectors in a table of langchain-community, such as
            openai:text-embedding-3-small; a linkstore has its own.
    """
    checkpoint = _check_places(source, target)
    from linkstore.store import migration

    with _open_source(source, embedding_name) as origin:
        if is_place_url(target):
            from linkstore.store.community import check_free_for_store

            check_free_for_store(target)
        elif os.path.isdir(target) and os.listdir(target) and not is_store(target):  # noqa: PTH112, PTH208
            raise UsageError(f"{target} has other files, and is no store; give a new folder")
        with open_backend(target, create=True) as goal, show_progress("documents") as progress:
            try:
                report = migration.migrate(origin, goal, progress=progress, checkpoint=checkpoint)
            except BaseException:
                with suppress(LinkStoreError):
                    if migration.is_begun(goal, checkpoint):
                        inform("not done; the same command goes on from where it stopped")
                raise
    print_result(report, show_migration, json=json)


def _check_places(source: str, target: str) -> str:
    """Refuse an invalid place, and equal places, and return the name of the source in the target's notes.

    Raises:
        UsageError: If one is invalid, or both are equal. The message names it.
    """
    spelled = [
        place if is_place_url(place, of_store=place == target) else os.path.realpath(place)
        for place in (source, target)
    ]
    if spelled[0] == spelled[1]:
        raise UsageError(f"SOURCE and TARGET are the same: {source}")
    return f"from {spelled[0].encode(errors='backslashreplace').decode()}"


@contextmanager
def _open_source(place: str, embedding: str | None) -> Iterator[MigrationSource]:
    """Open the source of the migration, and close it at the end. Refuse a name that it does not record."""
    from linkstore.store.migration import BackendSource, find_recorded_name

    with ExitStack() as stack:
        source: MigrationSource
        if is_place_url(place, of_store=False):
            from linkstore.store.community import open_source

            source = stack.enter_context(open_source(place, embedding))
        else:
            try:
                source = BackendSource(stack.enter_context(open_backend(place, create=False)))
            except StoreNotFoundError as error:
                raise StoreNotFoundError(f"there is no store at {place} to copy from") from error
        recorded = source.manifest().embedding
        if embedding is not None and recorded not in {None, find_recorded_name(embedding)}:
            raise EmbeddingError(
                f"--embedding-name {embedding}: the source records that its vectors are from {recorded!r}"
            )
        yield source


def show_migration(report: MigrationReport) -> None:
    """Print what a migration did."""
    written = report.written
    show(f"documents {written.added:,} added, {written.updated:,} updated, {written.unchanged:,} unchanged")
    show(f"links     {format_kinds(report.links)}")
    show(f"pages     {report.pages:,}")
    for name, reason in report.refused.items():
        show(f"refused   {name}: {reason}", "yellow")
