"""``linkstore export``: writes the documents of a store in formats that other programs read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.options import StoreOption
from linkstore.cli.output import note
from linkstore.cli.stores import core_opened

if TYPE_CHECKING:
    from linkstore.store.core import CoreStore


class Format(StrEnum):
    """The formats of an export."""

    JSONL = "jsonl"
    GRAPHML = "graphml"


def export(
    store: StoreOption,
    format: Annotated[
        Format,
        typer.Option(
            help="jsonl: one document per line, which index can read; graphml: documents and link groups"
            " as nodes, links as edges."
        ),
    ] = Format.JSONL,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", dir_okay=False, help="Write to FILE; default stdout."),
    ] = None,
) -> None:
    """Write all documents with their links.

    Documents are read in batches, so a store of any size can be exported.
    """
    from linkstore.cli import exporting

    writers: dict[Format, Callable[[CoreStore], Iterator[bytes]]] = {
        Format.JSONL: exporting.json_lines,
        Format.GRAPHML: exporting.graphml,
    }
    with core_opened(store) as opened_store, _file(output) as file:
        for part in writers[format](opened_store):
            file.write(part)
    if output is not None:
        note(f"wrote {output}")


@contextmanager
def _file(output: Path | None) -> Iterator[BinaryIO]:
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
