"""Rows of a table as documents: checked, with their vectors if they have some, in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from math import isnan
from typing import Any, Final, TypeAlias

import numpy as np
import orjson
import xxhash
from langchain_core.documents import Document

from linkstore.core.arguments import (
    MAX_NESTING,
    is_too_deep,
    make_argument_error,
    quote_value,
    require_list,
)
from linkstore.core.arrays import Floats, as_matrix
from linkstore.core.documents import check_id
from linkstore.core.urls import Site
from linkstore.errors import ArgumentError, DocumentError, LinkError
from linkstore.ingest.notes.frontmatter import NotPlainError, make_plain
from linkstore.ingest.records import ROW_KEYS, make_row_document
from linkstore.store.documents import prepare_drafts

Row: TypeAlias = Document | Mapping[str, Any]
"""A document, or its fields as those of a line of JSON."""
VECTOR: Final = "vector"
"""The field of a row for what the store's embedding gives for its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Documents that are written together.

    Args:
        documents: As they will be stored.
        vectors: Of shape (documents, dimension); None if the documents are to be embedded.
    """

    documents: list[Document]
    vectors: Floats | None


def split_rows(
    rows: Any, vectors: Floats | None, *, metadata: Sequence[str], most_rows: int, most_bytes: int
) -> Iterator[Batch]:
    """Yield the documents of rows in batches, as they will be stored.

    Args:
        rows: Documents or rows, a table of pandas, Arrow or Polars, or a dict of columns.
        vectors: Of shape (rows, dimension), if they are given beside the rows.
        metadata: Columns that become fields of the metadata, where they are not null.
        most_rows: Of a batch.
        most_bytes: Of the texts, metadata and vectors of a batch, unless a single document has more.

    Raises:
        ArgumentError: If these are no rows.
        DocumentError: If a row has no id, or that of an earlier row, or cannot be stored.
        LinkError: If a link is invalid.
    """
    seen: set[bytes] = set()
    documents: list[Document] = []
    given: list[Any] = []
    size = 0

    def take() -> Batch:
        nonlocal documents, given, size
        batch = Batch(documents=documents, vectors=as_matrix(given) if given else None)
        documents, given, size = [], [], 0
        return batch

    for number, (row, beside) in enumerate(_list_rows(rows, vectors), start=1):
        document = _read_row(row, metadata, f"row {number}")
        vector = row.get(VECTOR) if beside is None and isinstance(row, Mapping) else beside
        if vector is not None and not isinstance(vector, Sequence | np.ndarray):
            raise DocumentError(
                f"row {number}: a vector is a list of numbers, not {quote_value(vector)[:80]}"
            )
        key = xxhash.xxh3_128_digest((document.id or "").encode())
        if key in seen:
            raise DocumentError(f"row {number}: an earlier row has the same id {document.id!r}")
        seen.add(key)
        own = len(pack_document(document)) + (0 if vector is None else 4 * len(vector))
        if documents and (len(documents) == most_rows or size + own > most_bytes):
            yield take()
        documents.append(document)
        given += [] if vector is None else [vector]
        size += own
        if len(given) not in {0, len(documents)}:
            raise DocumentError(f"row {number}: give a vector with each row, or with none")
    if documents:
        yield take()


def pack_document(document: Document) -> bytes:
    """Return the bytes of what is stored of a document besides its id and vector."""
    return orjson.dumps((document.page_content, document.metadata))


def _list_rows(rows: Any, vectors: Floats | None) -> Iterator[tuple[Any, Any]]:
    """Yield rows, each with its vector if these are given beside them."""
    listed: Iterable[Any]
    if hasattr(rows, "to_pylist"):  # Arrow
        listed = rows.to_pylist()
    elif hasattr(rows, "to_dicts"):  # Polars
        listed = rows.to_dicts()
    elif hasattr(rows, "notna"):  # pandas, which has values of its own for what is missing
        listed = rows.astype(object).where(rows.notna(), None).to_dict("records")
    elif isinstance(rows, Mapping):
        require_list("cells", **{str(name): cells for name, cells in rows.items()})
        lengths = {name: len(cells) for name, cells in rows.items()}
        if len(set(lengths.values())) > 1:
            raise ArgumentError(f"columns differ in length: {lengths}")
        listed = [dict(zip(rows, cells, strict=True)) for cells in zip(*rows.values(), strict=True)]
    elif isinstance(rows, Iterable) and not isinstance(rows, str | bytes | Document):
        listed = rows
    else:
        raise make_argument_error("rows", "a list or table of documents or rows", rows)
    plain = (row.asDict(recursive=True) if hasattr(row, "asDict") else row for row in listed)  # of Spark
    if vectors is None:
        yield from ((row, None) for row in plain)
        return
    given = as_matrix(vectors)
    if not isinstance(listed, Sized) or len(listed) != len(given):
        count = len(listed) if isinstance(listed, Sized) else "an iterator of"
        raise DocumentError(
            f"got {count} rows and {len(given)} vectors; pass a list, and a vector for each row"
        )
    yield from zip(plain, given, strict=True)


def _read_row(row: Any, metadata: Sequence[str], where: str) -> Document:
    """Return the document of a row."""
    if not isinstance(row, Document | Mapping):
        raise ArgumentError(f"{where} is {repr(row)[:200]}; give Documents or dicts")
    given = {} if isinstance(row, Document) else {key: row[key] for key in row if key != VECTOR}
    if is_too_deep(given):
        raise DocumentError(f"{where} has lists or dicts nested more than {MAX_NESTING} deep")
    cells = {key: _clean(cell) for key, cell in given.items()}
    id = row.id if isinstance(row, Document) else cells.pop("id", None)
    id = str(id) if isinstance(id, int) and not isinstance(id, bool) else id
    if not isinstance(id, str) or not id.strip():
        raise DocumentError(
            f"{where} has the id {id!r}; each needs an id of its own, so that writing it again replaces it"
        )
    try:
        check_id(id)
        document = row if isinstance(row, Document) else _make_document(id, cells, metadata)
        (draft,) = prepare_drafts([document], [id])
    except LinkError as error:
        raise LinkError(f"{where}: {error}") from error
    except (DocumentError, NotPlainError, ValueError) as error:
        raise DocumentError(f"{where}: {error}") from error
    return Document(id=id, page_content=draft.text, metadata=dict(draft.metadata))


def _make_document(id: str, cells: Mapping[str, Any], metadata: Sequence[str]) -> Document:
    if unknown := sorted(map(str, cells.keys() - {*ROW_KEYS, *metadata})):
        raise DocumentError(
            f"unknown columns {', '.join(unknown)}; leave them out, or have them in the metadata, by"
            f" metadata={(*metadata, *unknown)!r}"
        )
    own = make_plain({name: cells[name] for name in metadata if cells.get(name) is not None})
    fields = {key: cell for key, cell in cells.items() if key in ROW_KEYS and cell is not None}
    document = make_row_document(id, fields, Site())
    document.metadata = {**own, **document.metadata}
    return document


def _clean(cell: Any) -> Any:
    """Return a cell of a table as plain Python: NumPy's values converted, what is missing as None."""
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, float) and isnan(cell):
        return None
    if isinstance(cell, list):
        return [_clean(one) for one in cell]
    if isinstance(cell, dict):  # of a column of structures, in which each has the fields of all
        return {key: found for key, one in cell.items() if (found := _clean(one)) is not None}
    return cell
