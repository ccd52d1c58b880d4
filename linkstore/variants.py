"""Joins the spellings of a name in one link group: by a rule, and by aliases that you declare.

``"Compound Alpha"``, ``"compound-alpha"`` and ``"COMPOUND_ALPHA"`` are one name by the rule, and ``"ALPHA"``
if it is declared. Other names that look alike are only reported, and never joined automatically.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Protocol
from unicodedata import category, normalize

from langchain_core.documents import Document

from linkstore.errors import LinkError
from linkstore.links import LINKS_KEY, Link, get_links, merge_links
from linkstore.text import fold

SHOWN: Final = 1_000
"""How many near misses a report lists at most."""
LONGEST: Final = 100
"""Longer names are not compared with others, because that takes time quadratic in their length."""
_BATCH: Final = 500
_SHORTEST_TYPO: Final = 5
_SHORTEST_ACRONYM: Final = 3
_CROWD: Final = 50
_BETWEEN: Final = re.compile(r"[\s_\u2010-\u2015\u2212\ufe58\ufe63\uff0d-]+")
_QUOTES: Final = " \"'`\u201c\u201d\u2018"
_ENDING: Final = " .,;:!?" + _QUOTES
_DIGITS: Final = re.compile(r"\d+")


class Linked(Protocol):
    """A store whose links can be read and replaced."""

    def scan(self) -> Iterator[Document]:
        """Yield all documents."""
        ...

    def replace_links(self, kinds: frozenset[str], links: Mapping[str, Sequence[Link]]) -> object:
        """Replace the links of some kinds in stored documents."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Spellings that are one name.

    Args:
        name: The tag under which they meet.
        spellings: How many links have each spelling, the most frequent first.
    """

    name: str
    spellings: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.name}: " + ", ".join(f"{one!r} {count}" for one, count in self.spellings.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """Two names that may be one, and are not joined; declare an alias if they are.

    Args:
        names: Both tags.
        reason: ``accents``, ``spacing``, ``spelling``, ``part`` or ``acronym``.
    """

    names: tuple[str, str]
    reason: str

    def __str__(self) -> str:
        return f"{self.names[0]!r} and {self.names[1]!r} ({self.reason})"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantReport:
    """The names that were joined, and those that look alike and were not.

    Args:
        merges: Names with several spellings, by name.
        near_misses: Names that look alike, by name; at most 1,000.
    """

    merges: tuple[Merge, ...]
    near_misses: tuple[NearMiss, ...]


class Variants:
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
            for other in (name, *others):
                self._declare(other, normalized(name))

    def _declare(self, alias: str, name: str) -> None:
        known = self._canonical.setdefault(normalized(alias), name)
        if known != name:
            raise LinkError(f"the alias {alias!r} stands for {known!r} and for {name!r}; declare it once")

    def name(self, spelling: str) -> str:
        """Return the tag under which a spelling meets the others."""
        key = normalized(spelling)
        return self._canonical.get(key, key)

    def joined(self, link: Link) -> Link:
        """Return a link with the tag under which its name meets the others, and its own spelling as label."""
        name = self.name(link.tag) if link.kind in self.kinds else link.tag
        return link if name == link.tag else replace(link, tag=name, label=link.label or link.tag)

    def applied(self, documents: Iterable[Document]) -> list[Document]:
        """Return copies of documents whose names are joined, ready to be added.

        Raises:
            LinkError: If a link is invalid. The message names the document.
        """
        return [self._apply_to(document) for document in documents]

    def _apply_to(self, document: Document) -> Document:
        links = get_links(document)
        if not any(link.kind in self.kinds for link in links):
            return document
        written = [link.to_dict() for link in merge_links(map(self.joined, links))]
        return document.model_copy(update={"metadata": {**document.metadata, LINKS_KEY: written}})

    def apply(self, store: Linked) -> int:
        """Join the names in the links of stored documents, and return how many documents changed.

        Only links are written, and nothing is embedded. Documents that are added later are not joined: pass
        them through :meth:`applied` first.
        """
        changed: dict[str, Sequence[Link]] = {}
        count = 0
        for id, links in _changed(self, store.scan()):
            changed[id] = links
            count += 1
            if len(changed) == _BATCH:
                store.replace_links(self.kinds, changed)
                changed = {}
        if changed:
            store.replace_links(self.kinds, changed)
        return count

    def report(self, source: Linked | Iterable[Document]) -> VariantReport:
        """Report which spellings meet, and which names look alike, in a store or in documents.

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
        merges = (
            Merge(name=name, spellings=dict(sorted(found.items(), key=lambda one: (-one[1], one[0]))))
            for name, found in sorted(spellings.items())
            if len(found) > 1
        )
        return VariantReport(merges=tuple(merges), near_misses=tuple(near_misses(spellings)[:SHOWN]))


def _changed(variants: Variants, documents: Iterable[Document]) -> Iterator[tuple[str, Sequence[Link]]]:
    """Yield the documents whose links change, with their links of the kinds that are names."""
    for document in documents:
        own = [link for link in get_links(document) if link.kind in variants.kinds]
        joined = merge_links(map(variants.joined, own))
        if joined != tuple(own):
            yield document.id or "", joined


def normalized(name: str) -> str:
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


def near_misses(names: Iterable[str]) -> list[NearMiss]:
    """Return pairs of names that look alike, by name, each once with the first reason that applies."""
    short = sorted(name for name in set(names) if len(name) <= LONGEST)
    found: dict[tuple[str, str], str] = {}
    for reason, groups in (
        ("accents", _by(short, _without_marks)),
        ("spacing", _by(short, _without_spaces)),
        ("spelling", _typos(short)),
        ("part", _parts(short)),
        ("acronym", _acronyms(short)),
    ):
        for pair in groups:
            found.setdefault(pair, reason)
    return [NearMiss(names=pair, reason=reason) for pair, reason in sorted(found.items())]


def _by(names: Iterable[str], key: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[key(name)].append(name)
    for group in groups.values():
        yield from combinations(group[:_CROWD], 2)


def _without_marks(name: str) -> str:
    return "".join(one for one in normalize("NFD", name) if category(one)[0] != "M")


def _without_spaces(name: str) -> str:
    return "".join(one for one in _without_marks(name) if one.isalnum()) or name


def _typos(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield names one edit apart, except names that differ in a number."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if len(name) >= _SHORTEST_TYPO:
            for at in range(len(name) + 1):
                groups[name[:at] + name[at + 1 :]].append(name)
    for group in groups.values():
        for one, other in combinations(sorted(set(group))[:_CROWD], 2):
            if _DIGITS.findall(one) == _DIGITS.findall(other):
                yield one, other


def _parts(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each single word that begins or ends exactly one longer name, with that name."""
    having: dict[str, list[str]] = defaultdict(list)
    for name in names:
        words = name.split()
        if len(words) > 1:
            for word in {words[0], words[-1]}:
                having[word].append(name)
    for name in names:
        if len(having.get(name, ())) == 1:
            yield _pair(name, having[name][0])


def _acronyms(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    known = set(names)
    for name in names:
        words = name.split()
        initials = "".join(word[0] for word in words)
        if len(words) >= _SHORTEST_ACRONYM and initials in known:
            yield _pair(initials, name)


def _pair(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)
