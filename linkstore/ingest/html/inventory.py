"""Sphinx's ``objects.inv``: the names that a built site documents, and their places.

The format is that of Sphinx's ``InventoryFile``, version 2: four lines of text, then a zlib stream with a
line ``name domain:role priority uri title`` for each object, where ``$`` at the end of the uri stands for
the name.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from linkstore.errors import LinkStoreError
from linkstore.urls import normalize_fragment

FILE_NAME: Final = "objects.inv"
SYMBOL: Final = "symbol"
"""Kind of the incoming links of what documents a name: ``os.path.join`` leads to where it is described."""

_HEADER: Final = b"# Sphinx inventory version 2"
_LINE: Final = re.compile(r"(?P<name>.+?)\s+(?P<domain>[^\s:]+):(?P<role>\S+)\s+-?\d+\s+(?P<uri>\S*)\s+.*")
_OTHER_DOMAINS: Final = frozenset({"std", "rst"})
"""Labels, documents, glossary terms: texts do not use the names that the source gives them."""
LARGEST: Final = 64 * 2**20
"""Bytes of an inventory, packed and unpacked."""
_LONGEST_LINE: Final = 4096


class InventoryError(LinkStoreError, ValueError):
    """A file is not an inventory, or of an unknown version."""


def read_inventory(content: bytes) -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Read the names of programming languages that a site documents.

    Args:
        content: The file.

    Returns:
        URL path of a page → fragment and name of each object described there.

    Raises:
        InventoryError: If it is not an inventory, or unpacks to more than 64 MiB.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for line in _unpacked(content).decode(errors="replace").splitlines():
        for page, fragment, name in _object(line):
            found.setdefault(page, []).append((fragment, name))
    return {page: tuple(dict.fromkeys(names)) for page, names in found.items()}


def _unpacked(content: bytes) -> bytes:
    *header, body = content.split(b"\n", 4) if content.count(b"\n", 0, 4096) >= 4 else (content, b"")
    if header[0].rstrip() != _HEADER:
        raise InventoryError("it is not a Sphinx inventory of version 2")
    try:
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(body, LARGEST)
    except zlib.error as error:
        raise InventoryError(f"it cannot be unpacked: {error}") from error
    if unpacking.unconsumed_tail:
        raise InventoryError(f"it unpacks to more than {LARGEST:,} bytes")
    return unpacked


def _object(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield page, fragment and name of an object, if the line has one."""
    found = _LINE.fullmatch(line.rstrip()) if len(line) <= _LONGEST_LINE else None
    if found is None or found["domain"] in _OTHER_DOMAINS:
        return
    name, uri = found["name"], found["uri"]
    page, _, fragment = (f"{uri[:-1]}{name}" if uri.endswith("$") else uri).partition("#")
    if fragment:
        yield page, normalize_fragment(fragment), name
