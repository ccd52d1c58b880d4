"""The names a store knows: kinds of link and metadata fields.

A search that names a kind or a field which no document has would return an ordinary-looking answer.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from linkstore.errors import UnknownNameError
from linkstore.links import LINKS_KEY

LONGEST_NAME: Final = 8192
"""Names with more bytes of UTF-8 are neither recorded nor checked."""
_COMPARED: Final = 5_000
"""How many names are compared with a misspelled one at most."""
_READABLE: Final = 200
"""Longer names are not compared, because the comparison takes time quadratic in their length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Names of link kinds and of metadata fields.

    Args:
        kinds: Kinds of link.
        fields: Top-level keys of metadata.
    """

    kinds: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.kinds or self.fields)

    def __or__(self, other: Vocabulary) -> Vocabulary:
        """The names in either."""
        return Vocabulary(kinds=self.kinds | other.kinds, fields=self.fields | other.fields)

    def __and__(self, other: Vocabulary) -> Vocabulary:
        """The names in both."""
        return Vocabulary(kinds=self.kinds & other.kinds, fields=self.fields & other.fields)

    def __sub__(self, other: Vocabulary) -> Vocabulary:
        """The names that are not in ``other``."""
        return Vocabulary(kinds=self.kinds - other.kinds, fields=self.fields - other.fields)

    @property
    def checkable(self) -> Vocabulary:
        """The names that are short enough to be recorded."""
        return Vocabulary(kinds=_short(self.kinds), fields=_short(self.fields))

    @property
    def storable(self) -> Vocabulary:
        """The names that are valid Unicode; a document can have no other."""
        return Vocabulary(kinds=_valid(self.kinds), fields=_valid(self.fields))


def names_in(metadata: Mapping[str, Any], kinds: Iterable[str]) -> Vocabulary:
    """The names that a document with this metadata and links of these kinds uses."""
    found = Vocabulary(kinds=frozenset(kinds), fields=frozenset(metadata))
    return (found | Vocabulary(fields=frozenset([LINKS_KEY] if found.kinds else []))).checkable


def unknown_name(missing: Vocabulary, known: Vocabulary) -> UnknownNameError:
    """The error for the first of the missing names, with the nearest known ones."""
    if missing.kinds:
        name = min(missing.kinds)
        return UnknownNameError("link kind", name, _nearest(name, known.kinds), sorted(known.kinds))
    name = min(missing.fields)
    return UnknownNameError("metadata field", name, _nearest(name, known.fields), sorted(known.fields))


def unknown_type(name: str, types: Iterable[str]) -> UnknownNameError:
    """The error for a document type that is not among those of a schema."""
    return UnknownNameError("type", name, _nearest(name, types), sorted(types))


def _nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names most like ``name``, whatever their case; best first."""
    if len(name) > _READABLE:
        return []
    spelled: dict[str, str] = {}
    for one in sorted(known)[:_COMPARED]:
        if len(one) <= _READABLE:
            spelled.setdefault(_folded(one), one)
    return [spelled[one] for one in difflib.get_close_matches(_folded(name), spelled, n=3, cutoff=0.6)]


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


def _short(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in names if len(name) <= LONGEST_NAME and _size(name) <= LONGEST_NAME)


def _valid(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in names if name.encode(errors="replace").decode() == name)


def _size(name: str) -> int:
    return len(name.encode(errors="surrogatepass"))
