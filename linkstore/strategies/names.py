"""Names in a question: the documents that it means by title, alias, heading, id, or a word that few have.

A name decides before common words do. There are three sorts of evidence, the surest first: the tag of a link
whose kind names documents, or a name that a document has in its metadata or id; the words that a text begins
with; and a rare word that is written as a name, with a capital letter or a digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import numpy as np

from linkstore.core import plans
from linkstore.core.arrays import Ints, cosine_similarities, sort_unique
from linkstore.core.documents import is_storable
from linkstore.core.lexical import MAX_QUESTION_CHARACTERS, extract_terms
from linkstore.core.plans import Plan
from linkstore.core.text import STOP_WORDS, find_words, tokenize
from linkstore.strategies.base import Question
from linkstore.strategies.traversal import NO_REFS, NO_SCORES, QUERY, Edges, FoundDocuments, follow_groups

NAMING_KINDS: Final = ("mention", "heading")
"""Kinds of links by which texts and questions lead to what they name: documents and sections."""
MAX_NAME_WORDS: Final = 12
"""How many words of a query a name may have."""
MAX_SEARCHED_WORDS: Final = 256
"""Number of words of a query that are searched for names."""
SURE_NAME_WORDS: Final = 3
"""A name with fewer words than this is often an ordinary word, and counts less."""
RARE: Final = 20
"""A word that at most so many documents have is rare."""
READ: Final = 12
"""How many of the documents that match words best are read for their names; twice as many with rare words."""
OWN_NAME: Final = 0.3
"""How much a name counts that only the document itself has, in metadata, id or first words."""
NAME_FIELDS: Final = ("title", "name", "label", "alias", "aliases", "names")
"""Metadata fields that hold a name of a document, or a list of names."""
NONE_FOUND: Final = FoundDocuments(refs=NO_REFS, similarity=NO_SCORES, weight=NO_SCORES)
_ID_PART: Final = re.compile(r"[/#:]")
_AROUND_IDS: Final = " .,;:!?()[]{}<>\"'\u201c\u201d\u2018\u2019"
"""What may stand around an id in a question."""
_LEADING: Final = 300
"""Characters of a text that are looked at for the name that it begins with."""
_BY_NAME, _BY_LEADING_WORDS, _BY_RARE_WORD = range(3)


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a question that may name a document.

    Args:
        at: Its first word.
        size: How many words it has.
        evidence: Of which sort, the surest first.
        ref: The document.
        edge: The row of the link whose tag is the name, -1 for none.
    """

    at: int
    size: int
    evidence: int
    ref: int
    edge: int = -1


class QuestionNames:
    """The words of a question, and what stands where.

    Args:
        text: The question.
        having: How many documents have each of its words, as far as they were looked up.
        cap: A word that at most so many documents have may name one.
    """

    def __init__(self, text: str, having: Mapping[str, int], cap: int) -> None:
        self.words = tokenize(text[:MAX_QUESTION_CHARACTERS])[:MAX_SEARCHED_WORDS]
        self.terms = [extract_terms(word) for word in self.words]
        self.rare = {word: count for word, count in having.items() if 0 < count <= RARE}
        self._naming = [at for at in range(len(self.words)) if self.count_rarest(at, 1) <= cap]
        self.places: dict[str, list[tuple[int, int]]] = {}
        for at in range(len(self.words)):
            for size in range(min(MAX_NAME_WORDS, len(self.words) - at), 0, -1):
                for name in _list_spellings(" ".join(self.words[at : at + size])):
                    self.places.setdefault(name, []).append((at, size))

    def count_rarest(self, at: int, size: int) -> int:
        """Return how many documents have the rarest of the words there, at most :data:`RARE` + 1."""
        terms = chain.from_iterable(self.terms[at : at + size])
        return min((self.rare.get(term, RARE + 1) for term in terms), default=RARE + 1)

    def _is_sure(self, place: tuple[int, int]) -> bool:
        """Say whether the words there are too rare or too many to stand together by chance."""
        named = sum(map(bool, self.terms[place[0] : sum(place)]))
        return self.count_rarest(*place) <= RARE or named >= SURE_NAME_WORDS

    def find_mentions(self, ref: int, document: plans.StoredDocument) -> Iterator[Mention]:
        """Yield the places that may name a document."""
        for name in list_names(document.id, document.metadata):
            for at, size in self.places.get(name, ()):
                yield Mention(at, size, _BY_NAME, ref)
        leading = tokenize(document.text[:_LEADING])[:MAX_NAME_WORDS]
        for size in range(len(leading), 0, -1):
            if places := self.places.get(" ".join(leading[:size]), ()):
                yield from (
                    Mention(*place, _BY_LEADING_WORDS, ref) for place in places if self._is_sure(place)
                )
                break
        there = frozenset(extract_terms(document.text) if self._naming else ())
        for at in self._naming:
            terms = self.terms[at]
            if there.issuperset(terms) and _is_written_as_name(document.text, terms):
                yield Mention(at, 1, _BY_RARE_WORD, ref)


def find_named_documents(
    question: Question,
    having: Mapping[str, int],
    best: Ints,
    kinds: Sequence[str],
    most: int,
    cap: int,
    rare: int | None = None,
) -> Plan[tuple[FoundDocuments, bool]]:
    """Find the documents that the query names, longest names first from left to right.

    Returns them, and whether one of them is named by more than a rare word.

    A name is also found as a possessive or, if it has several words, as a plural. Of n documents with the
    same name, each has the weight 1/n. A name of one word has a third of this, and one of two words two
    thirds. What a document calls itself counts :data:`OWN_NAME` of the tag of a link or of a rare word.

    Args:
        question: The question.
        having: How many documents have each of its words; none: only tags are looked up.
        best: Documents that match its words best.
        kinds: The kinds of the links that have names as tags.
        most: Maximum number of documents: those with the largest weight, then the most similar, then by id.
        cap: A name of more documents than this is ignored.
        rare: What a document calls itself counts if at most so many have one of its words; None: any number.
    """
    names = QuestionNames(question.text, having, cap)
    if not names.words or not most:
        return NONE_FOUND, False
    edges, mentions, taken = yield from _find_tags(names, question, kinds, cap)
    refs = yield from _find_candidates(names, question, best)
    if len(refs):
        documents = yield from plans.ask(plans.Documents(refs=refs))
        for ref, document in zip(refs.tolist(), documents, strict=True):
            mentions += (
                mention
                for mention in names.find_mentions(ref, document)
                if rare is None or names.count_rarest(mention.at, mention.size) <= rare
            )
    meant = _select_longest(mentions, taken, cap)
    if not meant:
        return NONE_FOUND, False
    array = np.array(sorted({mention.ref for mention, _ in meant}), dtype=np.int64)
    vectors = yield from plans.ask(plans.Vectors(refs=array))
    similarity = cosine_similarities(vectors, question.vector)
    ids = yield from plans.ask(plans.Ids(refs=array))
    place = {ref: at for at, ref in enumerate(array.tolist())}
    chosen: dict[int, tuple[float, int]] = {}
    for mention, share in meant:
        known = chosen.get(mention.ref)
        if known is None or share > known[0]:
            chosen[mention.ref] = share, mention.edge
    ordered = sorted(
        chosen, key=lambda ref: (-np.float32(chosen[ref][0]), -similarity[place[ref]], ids[place[ref]])
    )[:most]
    rows = np.array([chosen[ref][1] for ref in ordered if chosen[ref][1] >= 0], dtype=np.int64)
    at = [place[ref] for ref in ordered]
    named = FoundDocuments(
        refs=array[at],
        similarity=similarity[at],
        weight=np.array([chosen[ref][0] for ref in ordered], dtype=np.float32),
        edges=edges.take(rows),
    )
    return named, any(mention.evidence != _BY_RARE_WORD for mention, _ in meant)


def _find_tags(
    names: QuestionNames, question: Question, kinds: Sequence[str], cap: int
) -> Plan[tuple[Edges, list[Mention], set[tuple[int, int]]]]:
    """Find the documents whose naming links have a part of the query as their tag.

    Returns the links from the query to them, the mentions, and the places of all names that documents have.
    """
    grams = [
        (place, kind, name) for name, places in names.places.items() for place in places for kind in kinds
    ]
    refs = yield from plans.ask(plans.Resolve(tags=tuple((kind, name) for _, kind, name in grams)))
    array, first = np.unique(refs, return_index=True)
    named = np.sort(first[array >= 0])
    hop = yield from follow_groups(
        refs[named],
        "in",
        source=named,
        vector=question.vector,
        take=cap,
        cap=cap,
        filter=question.seed_filter,
    )
    borne = set(hop.groups[hop.reached.sizes > 0].tolist())
    taken = {place for (place, _, _), ref in zip(grams, refs.tolist(), strict=True) if ref in borne}
    # Of equally rare names the first one makes the path.
    edges = hop.edges.take(np.argsort(hop.edges.source, kind="stable"))
    of_ref: dict[int, list[tuple[int, int]]] = {}
    for (place, _, _), ref in zip(grams, refs.tolist(), strict=True):
        of_ref.setdefault(ref, []).append(place)
    mentions = [
        Mention(*place, _BY_NAME, target, row)
        for row, (group, target) in enumerate(zip(edges.group.tolist(), edges.target.tolist(), strict=True))
        for place in of_ref[group]
    ]
    return leave_query(edges), mentions, taken


def leave_query(edges: Edges) -> Edges:
    """Return the edges as edges from the query."""
    return replace(edges, source=np.full(len(edges), QUERY))


def _find_candidates(names: QuestionNames, question: Question, best: Ints) -> Plan[Ints]:
    """Return the documents whose names are compared with the question."""
    parts = [best[:READ]]
    words = dict.fromkeys(word.strip(_AROUND_IDS) for word in question.text[:MAX_QUESTION_CHARACTERS].split())
    ids = [word for word in words if not word.isalpha() and is_storable(word)][:MAX_SEARCHED_WORDS]
    if ids:
        candidates = yield from plans.ask(plans.Find(ids=tuple(ids), filter=question.seed_filter))
        parts.append(candidates.refs)
    if names.rare:
        matches = yield from plans.ask(
            plans.Lexical(terms=tuple(names.rare), k=2 * READ, filter=question.seed_filter)
        )
        parts.append(matches.refs)
    return sort_unique(np.concatenate(parts))


def _select_longest(
    mentions: Iterable[Mention], taken: set[tuple[int, int]], cap: int
) -> list[tuple[Mention, float]]:
    """Select the longest name at each place from left to right, with the weight of each of its documents."""
    by_place: dict[tuple[int, int], list[Mention]] = {place: [] for place in taken}
    for mention in mentions:
        by_place.setdefault((mention.at, mention.size), []).append(mention)
    free, found = 0, []
    for at, size in sorted(by_place, key=lambda place: (place[0], -place[1])):
        if at < free:
            continue
        free = at + size
        there = by_place[at, size]
        surest = min((mention.evidence for mention in there), default=0)
        chosen = {mention.ref: mention for mention in reversed(there) if mention.evidence == surest}
        if len(chosen) <= cap:
            share = min(SURE_NAME_WORDS, size) / SURE_NAME_WORDS / max(1, len(chosen))
            own = OWN_NAME if surest != _BY_RARE_WORD else 1.0
            found += [(mention, share if mention.edge >= 0 else share * own) for mention in chosen.values()]
    return found


def list_names(id: str, metadata: Mapping[str, Any]) -> set[str]:
    """Return the names of a document, folded: title, aliases, innermost heading, id and its last part."""
    headings = metadata.get("headings")
    given = [id, _ID_PART.split(id)[-1], *(headings[-1:] if isinstance(headings, list) else ())]
    for field in NAME_FIELDS:
        value = metadata.get(field)
        given += value if isinstance(value, list) else [value]
    words = (tokenize(one) for one in given if isinstance(one, str))
    return {
        " ".join(name) for name in words if any(not one.isdigit() and one not in STOP_WORDS for one in name)
    }


def _list_spellings(words: str) -> list[str]:
    """Return the words, and what they name as a possessive or as a plural of several words."""
    if words.endswith("'s"):
        return [words, words.removesuffix("'s")]
    plural = " " in words and words.endswith("s") and not words.endswith("ss")
    return [words, words.removesuffix("s")] if plural else [words]


def _is_written_as_name(text: str, terms: Iterable[str]) -> bool:
    """Say whether a text writes words as a name: never one of them in small letters."""
    wanted = set(terms)
    found = set()
    for word in {match[0] for match in find_words(text)}:
        if word.isascii() and not any(map(word.lower().replace("'", "").__contains__, wanted)):
            continue  # as nearly all; what follows takes ten times as long
        for term in wanted.intersection(extract_terms(word)):
            if word == word.lower() and not any(map(str.isdigit, word)):
                return False
            found.add(term)
    return bool(wanted) and found == wanted
