"""Joins the spellings of a name in one link group: by a rule, and by aliases that you declare.

``"Compound Alpha"``, ``"compound-alpha"`` and ``"COMPOUND_ALPHA"`` are one name by the rule, and ``"ALPHA"``
if it is declared. Nothing else is joined: no name is guessed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from langchain_core.documents import Document

from linkstore.core.links import LINKS_KEY, Link, get_links, merge_links
from linkstore.core.text import fold
from linkstore.errors import LinkError

_VARIANT_BATCH: Final = 500
_BETWEEN: Final = re.compile(r"[\s_\u2010-\u2015\u2212\ufe58\ufe63\uff0d-]+")
_QUOTES: Final = " \"'`\u201c\u201d\u2018"
_ENDING: Final = " .,;:!?" + _QUOTES


class ReplaceableLinks(Protocol):
    """Links of a store, which can be replaced."""

    def replace(self, kinds: frozenset[str], links: Mapping[str, Sequence[Link]]) -> object:
        """Replace the links of some kinds in stored documents."""
        ...


class LinkedStore(Protocol):
    """A store whose links can be read and replaced."""

    def scan(self) -> Iterator[Document]:
        """Yield all documents."""
        ...

    @property
    def links(self) -> ReplaceableLinks:
        """The links between its documents."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedName:
    """Spellings that are one name.

    Args:
        name: The tag under which they meet.
        spellings: How many links have each spelling, the most frequent first.
    """

    name: str
    spellings: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.name}: " + ", ".join(
            f"{spelling!r} {count}" for spelling, count in self.spellings.items()
        )


class NameNormalizer:
    """Joins the spellings of names that links have as tags.

    Args:
        kinds: Kinds of link whose tags are names, such as ``"entity"``. Other links stay as they are.
        aliases: Other names by the name that they stand for: ``{"Compound Alpha": ["ALPHA", "CA-1"]}``.

    Raises:
        LinkError: If a name is empty, or an alias stands for two names.
    """

    def __init__(self, kinds: Iterable[str], aliases: Mapping[str, Iterable[str]] | None = None) -> None:
        if isinstance(kinds, str):
            raise LinkError(f"kinds must be a list of kinds, not the string {kinds!r}")
        self.kinds = frozenset(kinds)
        self._canonical: dict[str, str] = {}
        for name, others in (aliases or {}).items():
            if isinstance(others, str):
                raise LinkError(f"the aliases of {name!r} must be a list, not the string {others!r}")
            for alias in (name, *others):
                previous = self._canonical.setdefault(normalize_name(alias), meant := normalize_name(name))
                if previous != meant:
                    raise LinkError(
                        f"the alias {alias!r} stands for {previous!r} and for {meant!r}; declare it once"
                    )

    def name(self, spelling: str) -> str:
        """Return the tag under which a spelling meets the others."""
        key = normalize_name(spelling)
        return self._canonical.get(key, key)

    def link(self, link: Link) -> Link:
        """Return a link with the tag under which its name meets the others, and its own spelling as label."""
        name = self.name(link.tag) if link.kind in self.kinds else link.tag
        return link if name == link.tag else replace(link, tag=name, label=link.label or link.tag)

    def copies(self, documents: Iterable[Document]) -> list[Document]:
        """Return copies of documents whose names are joined, ready to be added.

        Raises:
            LinkError: If a link is invalid. The message names the document.
        """
        copies = []
        for document in documents:
            links = get_links(document)
            if any(link.kind in self.kinds for link in links):
                written = [link.to_dict() for link in merge_links(map(self.link, links))]
                metadata = {**document.metadata, LINKS_KEY: written}
                document = document.model_copy(update={"metadata": metadata})
            copies.append(document)
        return copies

    def rewrite(self, store: LinkedStore) -> int:
        """Join the names in the links of stored documents, and return how many documents changed.

        Only links are written, and nothing is embedded. Documents that are added later are not joined: pass
        them through :meth:`copies` first.
        """
        changed: dict[str, Sequence[Link]] = {}
        count = 0
        for document in store.scan():
            own = tuple(link for link in get_links(document) if link.kind in self.kinds)
            joined = merge_links(map(self.link, own))
            if joined == own:
                continue
            changed[document.id or ""] = joined
            count += 1
            if len(changed) == _VARIANT_BATCH:
                store.links.replace(self.kinds, changed)
                changed = {}
        if changed:
            store.links.replace(self.kinds, changed)
        return count

    def report(self, source: LinkedStore | Iterable[Document]) -> tuple[MergedName, ...]:
        """List the names that have several spellings, in a store or in documents.

        A label that differs from its tag counts as a spelling, so a store whose names are joined has the same
        report as before.
        """
        spellings: dict[str, Counter[str]] = defaultdict(Counter)
        documents = source if isinstance(source, Iterable) else source.scan()
        for document in documents:
            for link in get_links(document):
                if link.kind in self.kinds:
                    name = self.name(link.tag)
                    label = link.label if link.label and self.name(link.label) == name else link.tag
                    spellings[name][label] += 1
        return tuple(
            MergedName(
                name=name, spellings=dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
            )
            for name, counts in sorted(spellings.items())
            if len(counts) > 1
        )


def normalize_name(name: str) -> str:
    """Normalize a name by the rule: folded, one space between words instead of any dashes and underscores.

    Quotes around it and punctuation at its end are dropped. All other signs stay, so ``C`` is not ``C++``,
    and ``.NET`` is not ``Net``. A name of dashes and such signs alone stays as it is, folded.

    Raises:
        LinkError: If it is empty.
    """
    folded = fold(name)
    if not folded:
        raise LinkError(f"a name must have at least one visible character, not {name!r}")
    one_space = folded.isascii() and "-" not in folded and "_" not in folded
    words = (folded if one_space else _BETWEEN.sub(" ", folded)).lstrip(_QUOTES).rstrip(_ENDING)
    return words or folded
