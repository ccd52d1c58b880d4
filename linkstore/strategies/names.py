"""Names in a question: the documents that it means by title, alias, heading, id, or a rare word.

A name decides before common words do. The sorts of evidence are, the surest first: the tag of a link whose
kind names documents, or a name that a document has in its metadata or id; the words that a text begins with;
a name without its first word ("Pacific Tide" for "MV Pacific Tide"), or with one slip of the pen, if no other
name is like it; and a rare word that is written as a name, with a capital letter or a digit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from operator import attrgetter
from typing import Final

import numpy as np

from linkstore.core import plans
from linkstore.core.arrays import Ints, cosine_similarities, sort_unique
from linkstore.core.documents import is_storable
from linkstore.core.lexical import MAX_QUESTION_CHARACTERS, extract_terms, get_last_id_part, is_number
from linkstore.core.plans import Plan
from linkstore.core.text import STOP_WORDS, find_words, fold, tokenize
from linkstore.strategies.base import Question
from linkstore.strategies.resolver import (
    ARTICLES,
    GRADES,
    LEADING,
    LEADING_WORDS,
    MAX_NAME_WORDS,
    NAME,
    PART,
    SLIP,
    Spelling,
    Words,
    is_abbreviated,
    is_near_miss,
    list_choices,
    list_given_names,
    remove_accents,
    strip_word,
)
from linkstore.strategies.traversal import (
    NO_REFS,
    NO_SCORES,
    QUERY,
    Edges,
    FoundDocuments,
    Trail,
    follow_tags,
)

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
NONE_FOUND: Final = FoundDocuments(refs=NO_REFS, similarity=NO_SCORES, weight=NO_SCORES)
_AROUND_IDS: Final = " .,;:!?()[]{}<>\"'\u201c\u201d\u2018\u2019"
"""What may stand around an id in a question."""
_RARE_WORD: Final = len(GRADES)
"""What is less sure than any grade of a name."""
Place = tuple[int, int]
"""The first word of a place in a question, and how many words it has."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a question that may name a document.

    Args:
        at: Its first word.
        size: How many words it has.
        grade: How the words there are the name of the document: of :data:`.GRADES`, or a rare word.
        ref: The document.
        edge: The row of the link whose tag is the name, -1 for none.
        name: The whole name of the document, where the place has a short one or one with a slip.
    """

    at: int
    size: int
    grade: int
    ref: int
    edge: int = -1
    name: str = ""


class QuestionNames:
    """The words of a question, and what stands where.

    Args:
        text: The question.
        document_frequency: How many documents have each of its words, as far as they were looked up.
        unknown: Those of its words that no document has.
        cap: A word that at most so many documents have may name one.
        partial: Whether short names, and names with a slip, count.
    """

    def __init__(
        self,
        text: str,
        document_frequency: Mapping[str, int],
        unknown: Collection[str],
        cap: int,
        *,
        partial: bool,
    ) -> None:
        self._partial = partial
        self.words = tokenize(text[:MAX_QUESTION_CHARACTERS])[:MAX_SEARCHED_WORDS]
        written = [word[0] for word in find_words(text[:MAX_QUESTION_CHARACTERS])][:MAX_SEARCHED_WORDS]
        written = written if len(written) == len(self.words) else list(self.words)
        self._capital = [word != word.lower() or any(map(str.isdigit, word)) for word in written]
        self.terms = [extract_terms(word) for word in self.words]
        self.rare = {word: count for word, count in document_frequency.items() if 0 < count <= RARE}
        self.rarest = [
            min(map(self.rare.get, terms, repeat(RARE + 1)), default=RARE + 1) for terms in self.terms
        ]
        self._naming = [at for at, count in enumerate(self.rarest) if count <= cap]
        self._bare = tuple(word.removesuffix("'s") for word in self.words)
        self.unknown = [at for at, terms in enumerate(self.terms) if terms and set(terms) <= {*unknown}]
        self.places = _find_spellings(self.words)

    def find_mentions(self, ref: int, document: plans.StoredDocument) -> Iterator[Mention]:
        """Yield the places that may name a document."""
        for name in {document.id, get_last_id_part(document.id), *list_given_names(document.metadata)}:
            own = Spelling.of(name)
            for grade, words in enumerate((own.words, *own.cores[:1]), NAME):
                places = self.places.get(words) if grade == NAME or len(words) > 1 else ()
                if places and any(map(_may_name, words)):
                    yield from (Mention(*place, grade, ref) for place in places)
        leading = tokenize(document.text[:LEADING])[:MAX_NAME_WORDS]
        for length in range(len(leading), 0, -1):
            if places := self.places.get(leading[:length]):
                for at, size in places:
                    named = size - self.terms[at : at + size].count(())
                    # Words stand together by chance unless they are many, or one is rare.
                    if named >= SURE_NAME_WORDS or min(self.rarest[at : at + size]) <= RARE:
                        yield Mention(at, size, LEADING_WORDS, ref)
                break
        if self._partial:
            yield from self._find_partial_names(ref, document, leading)
        if self._naming:
            yield from self._find_rare_words(ref, document.text)

    def _find_partial_names(
        self, ref: int, document: plans.StoredDocument, leading: Words
    ) -> Iterator[Mention]:
        for name in list_given_names(document.metadata):
            yield from self._find_unsure(ref, name, Spelling.of(name).words, document.text)
            yield from self._find_unsure(ref, name, _drop_first_word(name), document.text, part=True)
        if is_abbreviated(document.text):
            ends = range(len(leading), 2, -1)
            short = next((leading[1:end] for end in ends if leading[1:end] in self.places), ())
            yield from self._find_unsure(ref, " ".join(short), short, document.text, part=True)

    def _find_unsure(
        self, ref: int, name: str, words: Words, text: str, *, part: bool = False
    ) -> Iterator[Mention]:
        """Yield the places of words with a slip, and of all of them if they are a part of a name."""
        slips = self._find_slips(words)
        whole = [place for place in self.places.get(words, ()) if self._may_be_whole(place)] if part else []
        terms = extract_terms(" ".join(words)) if whole or slips else ()
        if terms and _is_written_as_name(f"{name}\n{text}", terms):
            yield from (Mention(*place, SLIP, ref, name=name) for place in slips)
            if len(terms) > 1:
                yield from (Mention(*place, PART, ref, name=name) for place in whole)

    def _find_rare_words(self, ref: int, text: str) -> Iterator[Mention]:
        there = frozenset(extract_terms(text))
        for at in self._naming:
            terms = self.terms[at]
            if there.issuperset(terms) and _is_written_as_name(text, terms):
                yield Mention(at, 1, _RARE_WORD, ref)

    def _may_be_whole(self, place: tuple[int, int]) -> bool:
        """Say whether the words there may be all of a name, in a question that writes names with capitals.

        They have capitals then, and the word before them has none: "2003 Road World Cup" is no "World Cup".
        """
        at, size = place
        if not any(self._capital[1:]):
            return True
        longer = at > 1 and self._capital[at - 1] and bool(self.terms[at - 1])
        return not longer and all(self._capital[i] or not self.terms[i] for i in range(at, at + size))

    def _find_slips(self, name: Words) -> list[Place]:
        """Return the places of a name one of whose words is spelt as no document has it, one letter off."""
        size = len(name)
        firsts = (first for at in self.unknown for first in range(max(0, at - size + 1), at + 1))
        return [(first, size) for first in firsts if is_near_miss(self._bare[first : first + size], name)]


def find_named_documents(
    trail: Trail,
    question: Question,
    document_frequency: Mapping[str, int],
    unknown: Collection[str],
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
    thirds. What a document calls itself counts :data:`OWN_NAME` of the tag of a link or of a rare word. A
    place that is like several names leads to none, and the trail says which may be meant.

    Args:
        trail: Takes the cuts.
        question: The question.
        document_frequency: How many documents have each of its words; none: only tags are looked up.
        unknown: Those of its words that no document has.
        best: Documents that match its words best.
        kinds: The kinds of the links that have names as tags.
        most: Maximum number of documents: those with the largest weight, then the most similar, then by id.
        cap: A name of more documents than this is ignored.
        rare: What a document calls itself counts if at most so many have one of its words, and without short
            names and slips; None: any number.
    """
    names = QuestionNames(question.text, document_frequency, unknown, cap, partial=rare is None)
    if not names.words or not most:
        return NONE_FOUND, False
    edges, mentions, taken = yield from _find_tags(names, question, kinds, cap)
    likely = yield from _find_candidates(names, question, best)
    near = (yield from _find_nearest(question)) if names.unknown and rare is None else NO_REFS
    refs = sort_unique(np.concatenate((likely, near)))
    read: dict[int, plans.StoredDocument] = {}
    if len(refs):
        documents = yield from plans.ask(plans.Documents(refs=refs))
        read = dict(zip(refs.tolist(), documents, strict=True))
        share_words = set(likely.tolist())
        for ref, document in read.items():
            for mention in names.find_mentions(ref, document):
                rarest = min(names.rarest[mention.at : mention.at + mention.size])
                if (ref in share_words or mention.grade == SLIP) and (rare is None or rarest <= rare):
                    mentions.append(mention)
    meant, unclear = _select_longest(mentions, taken, cap)
    for alike in unclear:
        several = sorted((read[mention.ref] for mention in alike), key=attrgetter("id"))
        written = " ".join(names.words[alike[0].at : alike[0].at + alike[0].size])
        detail = f"{written!r} may mean {list_choices(several)}; name one by its id"
        trail.cut("name", len(several), 0, detail)
    if not meant:
        return NONE_FOUND, False
    meant_refs = np.array(sorted({mention.ref for mention, _ in meant}), dtype=np.int64)
    vectors = yield from plans.ask(plans.Vectors(refs=meant_refs))
    similarity = cosine_similarities(vectors, question.vector)
    ids = yield from plans.ask(plans.Ids(refs=meant_refs))
    place = {ref: at for at, ref in enumerate(meant_refs.tolist())}
    chosen: dict[int, tuple[float, int]] = {}
    for mention, share in meant:
        previous = chosen.get(mention.ref)
        if previous is None or share > previous[0]:
            chosen[mention.ref] = share, mention.edge
    ordered = sorted(
        chosen, key=lambda ref: (-np.float32(chosen[ref][0]), -similarity[place[ref]], ids[place[ref]])
    )[:most]
    rows = np.array([chosen[ref][1] for ref in ordered if chosen[ref][1] >= 0], dtype=np.int64)
    at = [place[ref] for ref in ordered]
    named = FoundDocuments(
        refs=meant_refs[at],
        similarity=similarity[at],
        weight=np.array([chosen[ref][0] for ref in ordered], dtype=np.float32),
        edges=edges.take(rows),
    )
    return named, any(mention.grade != _RARE_WORD for mention, _ in meant)


def _find_tags(
    names: QuestionNames, question: Question, kinds: Sequence[str], cap: int
) -> Plan[tuple[Edges, list[Mention], set[tuple[int, int]]]]:
    """Find the documents whose naming links have a part of the query as their tag.

    Returns the links from the query to them, the mentions, and the places of all names that documents have.
    """
    spellings = list(names.places)
    tags = [(kind, " ".join(words)) for words in spellings for kind in kinds]
    hop = yield from follow_tags(
        tags, "in", vector=question.vector, take=cap, cap=cap, filter=question.seed_filter
    )
    taken: set[tuple[int, int]] = set()
    for source in hop.source[hop.size > 0].tolist():
        taken.update(names.places[spellings[source // len(kinds)]])
    # Of equally rare names the first one makes the path.
    edges = hop.edges.take(np.argsort(hop.edges.source, kind="stable"))
    mentions = []
    for row, (source, target) in enumerate(zip(edges.source.tolist(), edges.target.tolist(), strict=True)):
        for at, size in names.places[spellings[source // len(kinds)]]:
            mentions.append(Mention(at, size, NAME, target, row))
    return leave_query(edges), mentions, taken


def leave_query(edges: Edges) -> Edges:
    """Return the edges as edges from the query."""
    return replace(edges, source=np.full(len(edges), QUERY))


def _find_nearest(question: Question) -> Plan[Ints]:
    """Return the documents of whose names an unknown word may be a slip."""
    near = yield from plans.ask(plans.Nearest(vector=question.vector, k=READ, filter=question.seed_filter))
    return near.refs


def _find_candidates(names: QuestionNames, question: Question, best: Ints) -> Plan[Ints]:
    """Return the documents whose names are compared with the question."""
    parts = [best[:READ]]
    ids: dict[str, None] = {}
    for word in question.text[:MAX_QUESTION_CHARACTERS].split():
        id = word.strip(_AROUND_IDS)
        if not id.isalpha() and is_storable(id):
            ids[id] = None
    if ids:
        asked = tuple(ids)[:MAX_SEARCHED_WORDS]
        candidates = yield from plans.ask(plans.Find(ids=asked, filter=question.seed_filter))
        parts.append(candidates.refs)
    if names.rare:
        matches = yield from plans.ask(
            plans.Lexical(terms=tuple(names.rare), k=2 * READ, filter=question.seed_filter)
        )
        parts.append(matches.refs)
    return sort_unique(np.concatenate(parts))


def _select_longest(
    mentions: Iterable[Mention], taken: set[tuple[int, int]], cap: int
) -> tuple[list[tuple[Mention, float]], list[list[Mention]]]:
    """Select the longest name at each place from left to right, with the weight of each of its documents.

    Returns them, and the short names of several documents.
    """
    by_place: dict[tuple[int, int], list[Mention]] = {place: [] for place in taken}
    for mention in mentions:
        by_place.setdefault((mention.at, mention.size), []).append(mention)
    free, selected, unclear = 0, [], []
    for at, size in sorted(by_place, key=lambda place: (place[0], -place[1])):
        if at < free:
            continue
        free = at + size
        there = by_place[at, size]
        surest = min((mention.grade for mention in there), default=0)
        chosen = {mention.ref: mention for mention in reversed(there) if mention.grade == surest}
        if len({mention.name for mention in chosen.values()}) > 1:
            unclear.append(list(chosen.values()))
        elif len(chosen) <= cap:
            share = min(SURE_NAME_WORDS, size) / SURE_NAME_WORDS / max(1, len(chosen))
            own = OWN_NAME if surest != _RARE_WORD else 1.0
            selected += [
                (mention, share if mention.edge >= 0 else share * own) for mention in chosen.values()
            ]
    return selected, unclear


def _may_name(word: str) -> bool:
    return not (word.isdigit() or word in STOP_WORDS) or is_number(word)


def _drop_first_word(name: str) -> Words:
    """Return the words of a name without articles and one word before them, such as "MV", or a number.

    A small word or a year says that the rest is something else, and so does a sign: "Sport in Hong Kong",
    "2018 Winter Olympics", "Anesthetize (Porcupine Tree)".
    """
    written = list(find_words(name))[:MAX_NAME_WORDS]
    words = tuple(fold(word[0]) for word in written)
    bare = next((at for at, word in enumerate(words) if word not in ARTICLES), len(words))
    if bare + 1 >= len(words) or not _may_name(words[bare]) or words[bare + 1] in STOP_WORDS:
        return ()
    between = name[written[bare].end() : written[bare + 1].start()]
    return words[bare + 1 :] if is_number(words[bare]) or not between.strip(" .\u00a0") else ()


def _find_spellings(words: Words) -> dict[Words, list[Place]]:
    """Return the places of all names that words may spell, also as a possessive or a plural of several."""
    places: dict[Words, list[Place]] = {}
    unaccented = remove_accents("\n".join(words)).split("\n")
    plain = tuple([word.removesuffix("'s") for word in unaccented])
    bare = tuple(map(strip_word, unaccented))
    for at in range(len(words)):
        for size in range(min(MAX_NAME_WORDS, len(words) - at), 0, -1):
            end = at + size
            forms = [words[at:end], (*words[at : end - 1], plain[end - 1]), plain[at:end]]
            if size > 1:
                forms += [(*words[at : end - 1], bare[end - 1]), bare[at:end]]
            for form in dict.fromkeys(forms):
                places.setdefault(form, []).append((at, size))
    return places


def _is_written_as_name(text: str, terms: Iterable[str]) -> bool:
    """Say whether a text writes words as a name: never one of them in small letters."""
    wanted = set(terms)
    matched = set()
    for word in {match[0] for match in find_words(text)}:
        if word.isascii() and not any(map(word.lower().replace("'", "").__contains__, wanted)):
            continue  # as nearly all; what follows takes ten times as long
        for term in wanted.intersection(extract_terms(word)):
            if word == word.lower() and not any(map(str.isdigit, word)):
                return False
            matched.add(term)
    return bool(wanted) and matched == wanted
