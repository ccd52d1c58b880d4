"""The documents of a gold answer: all chunks of a page, all chunks of a section, or one document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, get_args

from linkstore.arguments import require, require_list
from linkstore.errors import EvaluationError
from linkstore.evaluation.rows import GoldQuestion
from linkstore.ids import is_storable
from linkstore.plans import Candidates, Find, Ids, Plan
from linkstore.store import LinkStore

GoldKind = Literal["page", "section", "id"]
"""Kinds of gold answers."""
GOLD_KINDS: Final[tuple[str, ...]] = get_args(GoldKind)
_AT_ONCE: Final = 1000
_NAMED: Final = 5
"""Number of missing answers that a message lists."""
_FURTHER: Final = re.compile(r"~\d+\Z")
"""The end of the ids of further chunks of a section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldUnits:
    """The documents that each gold answer stands for.

    Args:
        kind: Kind of the answers.
        documents: By answer, the ids of its documents; finding any of them is finding the answer.
    """

    kind: GoldKind
    documents: Mapping[str, frozenset[str]]


def gold_units(store: LinkStore, questions: Sequence[GoldQuestion], kind: GoldKind | None) -> GoldUnits:
    """Look up the documents of every gold answer.

    Args:
        store: Where the documents are.
        questions: Questions with their answers.
        kind: What the answers name. None: pages, if every answer is the URL of an indexed page, else
            sections, if every answer is a section of one, else ids of documents.

    Raises:
        EvaluationError: If an answer is not in the store, or ``kind`` is unknown.
    """
    require_list("questions", questions=questions)
    for question in questions:
        require(GoldQuestion, "a GoldQuestion", question=question)
    if kind is not None and kind not in GOLD_KINDS:
        raise EvaluationError(f"gold must be one of {', '.join(GOLD_KINDS)}, not {kind!r}")
    wanted = list(dict.fromkeys(answer for question in questions for answer in question.gold))
    pages = _pages(store, {answer.partition("#")[0] for answer in wanted} if kind != "id" else ())
    if kind == "page" or (kind is None and all(answer in pages for answer in wanted)):
        return _units("page", wanted, {answer: pages.get(answer, ()) for answer in wanted})
    sections = {answer: _section(answer, pages.get(answer.partition("#")[0], ())) for answer in wanted}
    if kind == "section" or (kind is None and all(sections.values())):
        return _units("section", wanted, sections)
    known = _known(store, wanted)
    return _units("id", wanted, {answer: [answer] if answer in known else [] for answer in wanted})


def _units(kind: GoldKind, wanted: Sequence[str], found: Mapping[str, Iterable[str]]) -> GoldUnits:
    documents = {answer: frozenset(found[answer]) for answer in wanted}
    missing = [answer for answer in wanted if not documents[answer]]
    if missing:
        named = ", ".join(map(repr, missing[:_NAMED])) + (", …" if len(missing) > _NAMED else "")
        what = {"page": "the URL of an indexed page", "section": "the URL of a section of an indexed page"}
        raise EvaluationError(
            f"{len(missing)} of {len(wanted)} gold answers are not in the store: {named}; with gold={kind!r}"
            f" each must be {what.get(kind, 'the id of a document')}"
        )
    return GoldUnits(kind=kind, documents=documents)


def _pages(store: LinkStore, urls: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the documents of these pages, for those that are indexed: url → ids."""
    found: dict[str, tuple[str, ...]] = {}
    for some in _batches(urls):
        entries = store.backend.run(store.backend.pages(None, some))
        found.update({entry.url: entry.ids for entry in entries})
    return found


def _section(answer: str, ids: Sequence[str]) -> list[str]:
    """Return a page's chunks that belong to a section: their id is the section's, or that and ``~N``."""
    return [one for one in ids if _FURTHER.sub("", one) == answer or one == answer]


def _known(store: LinkStore, answers: Sequence[str]) -> set[str]:
    """Return the answers that are ids of documents."""
    known: set[str] = set()
    for some in _batches(answers):
        known.update(store.backend.run(store.backend.answer(_found(some))))
    return known


def _batches(strings: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the strings that may be stored, some at a time."""
    storable = filter(is_storable, strings)
    while some := tuple(islice(storable, _AT_ONCE)):
        yield some


def _found(ids: tuple[str, ...]) -> Plan[list[str]]:
    found: Candidates = yield Find(ids=ids)
    known: list[str] = yield Ids(refs=found.refs)
    return known
