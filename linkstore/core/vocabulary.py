"""The names in a store: kinds of link, metadata fields, and fields of the data of links.

A search with a kind or a field that no document has would return an answer that looks ordinary, so it is
refused, or has a reason for finding nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Final

from linkstore.core.links import LINKS_KEY, Link
from linkstore.core.text import is_unicode
from linkstore.errors import UnknownNameError

MAX_NAME_BYTES: Final = 8192
"""Names with more bytes of UTF-8 are neither recorded nor checked."""
_MAX_COMPARED_NAMES: Final = 5_000
"""How many names are compared with a misspelled one at most."""
_MAX_COMPARED_LENGTH: Final = 200
"""Longer names are not compared, because the comparison takes time quadratic in their length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Names of link kinds, of metadata fields, and of fields of the data of links.

    Args:
        kinds: Kinds of link.
        fields: Top-level keys of metadata.
        link_fields: Top-level keys of the data of links.
    """

    kinds: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    link_fields: frozenset[str] = frozenset()

    def __or__(self, other: Vocabulary) -> Vocabulary:
        """Return the names in either vocabulary."""
        return self._combine(frozenset.union, other)

    def __and__(self, other: Vocabulary) -> Vocabulary:
        """Return the names in both vocabularies."""
        return self._combine(frozenset.intersection, other)

    def __sub__(self, other: Vocabulary) -> Vocabulary:
        """Return the names that are not in ``other``."""
        return self._combine(frozenset.difference, other)

    def __len__(self) -> int:
        return len(self.kinds) + len(self.fields) + len(self.link_fields)

    @property
    def checkable(self) -> Vocabulary:
        """The names that are short enough to be recorded."""
        return self._combine(_keep_short)

    @property
    def storable(self) -> Vocabulary:
        """The names that are valid Unicode; a document can have no other."""
        return self._combine(lambda names: frozenset(filter(is_unicode, names)))

    def _combine(self, change: Callable[..., frozenset[str]], *others: Vocabulary) -> Vocabulary:
        """Return the vocabulary with each set of names combined by ``change`` with those of ``others``."""
        kinds = change(self.kinds, *(other.kinds for other in others))
        fields = change(self.fields, *(other.fields for other in others))
        link_fields = change(self.link_fields, *(other.link_fields for other in others))
        return Vocabulary(kinds=kinds, fields=fields, link_fields=link_fields)


def collect_names(metadata: Iterable[str], links: Sequence[Link]) -> Vocabulary:
    """Return the names that a document with this metadata and these links uses."""
    kinds = frozenset(map(attrgetter("kind"), links))
    link_fields = frozenset(chain.from_iterable(filter(None, map(attrgetter("data"), links))))
    fields = frozenset(metadata) | ({LINKS_KEY} if kinds else set())
    return Vocabulary(kinds=kinds, fields=fields, link_fields=link_fields).checkable


def make_unknown_name_error(missing: Vocabulary, known: Vocabulary) -> UnknownNameError:
    """Return the error for the first of the missing names, with the nearest known ones.

    A relation that was taken for a field is advised to be written as one.
    """
    what, names, others = next(
        group
        for group in (
            ("link kind", missing.kinds, known.kinds),
            ("metadata field", missing.fields, known.fields),
            ("field of link data", missing.link_fields, known.link_fields),
        )
        if group[1]
    )
    name = min(names)
    kinds = sorted(known.kinds) if names is missing.fields else []
    relation = next((kind for kind in kinds if _fold_name(kind) == _fold_name(name)), "")
    return UnknownNameError(what, name, find_nearest_names(name, others), sorted(others), relation)


def make_unknown_type_error(name: str, types: Iterable[str]) -> UnknownNameError:
    """Return the error for a document type that a schema does not have."""
    return UnknownNameError("type", name, find_nearest_names(name, types), sorted(types))


def find_nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names most like ``name``, whatever their case, best first."""
    if len(name) > _MAX_COMPARED_LENGTH:
        return []
    spelled: dict[str, str] = {}
    for known_name in sorted(known)[:_MAX_COMPARED_NAMES]:
        if len(known_name) <= _MAX_COMPARED_LENGTH:
            spelled.setdefault(_fold_name(known_name), known_name)
    return [spelled[match] for match in difflib.get_close_matches(_fold_name(name), spelled, n=3, cutoff=0.6)]


def _fold_name(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


def _keep_short(names: frozenset[str]) -> frozenset[str]:
    return frozenset(
        name
        for name in names
        if len(name) <= MAX_NAME_BYTES and len(name.encode(errors="surrogatepass")) <= MAX_NAME_BYTES
    )
