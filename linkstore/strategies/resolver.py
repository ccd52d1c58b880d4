"""From a name that somebody gives to the document that it means.

Names are compared in :data:`GRADES`, the surest first. The surest grade in which a document matches decides;
if several documents match in it, none is taken, and all are candidates. Documents are found by the index of
words, and if none of them is called so, by reading all documents of the type, if they are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from string import ascii_lowercase
from typing import Final
from unicodedata import combining, normalize

import numpy as np

from linkstore.core import plans
from linkstore.core.arrays import Floats, Ints, sort_unique
from linkstore.core.documents import is_storable
from linkstore.core.filters import EVERYTHING, Condition, parse_filter
from linkstore.core.lexical import extract_terms, get_last_id_part
from linkstore.core.plans import Plan, StoredDocument
from linkstore.core.text import is_unicode, tokenize
from linkstore.errors import CapabilityError, FilterError
from linkstore.strategies.names import (
    ARTICLES,
    LEADING,
    MAX_NAME_WORDS,
    NAMING_KINDS,
    is_abbreviated,
    is_slip,
    list_given_names,
)
from linkstore.strategies.traversal import NO_REFS, follow_tags

GRADES: Final = (
    "id",
    "name",
    "name but for an article, a plural or a word before it",
    "first words of its text",
    "part of its name",
    "words of its name in another order, or initials",
    "acronym of its name",
    "name but for a slip",
)
"""How a name can be that of a document, the surest first."""
_ID, _NAME, _NEAR_NAME, _LEADING_WORDS, _PART, _WORDS, _ACRONYM, _SLIP = range(len(GRADES))
MAX_MATCHES: Final = 50
"""How many documents with the rarest word of a name are read to see whether they are called so."""
MAX_SCANNED: Final = 1_000
"""So many documents of a type are read, if no index finds a name."""
MAX_CANDIDATES: Final = 20
_LONGEST_SLIP: Final = 24
_AROUND: Final = " \t\n[]<>\"'\u201c\u201d\u2018\u2019"
_JOINING: Final = ARTICLES | {"and", "of", "for", "und", "y", "et"}
"""Words of a name that its acronym may lack."""
_LONGEST_ACRONYM: Final = 8
_NO_PLURALS: Final = ("ss", "is", "us", "os", "as")
Words = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a name means.

    Args:
        document: The document, if there is just one.
        candidates: Otherwise the documents of which one may be meant, by id.
        grade: How the name matches: one of :data:`GRADES`; empty if there is no document.
    """

    document: StoredDocument | None = None
    candidates: tuple[StoredDocument, ...] = ()
    grade: str = ""


def resolve_name(name: str, vector: Floats, filter: Condition = EVERYTHING) -> Plan[Resolution]:
    """Find the document that a name means, or those that it may mean.

    Args:
        name: An id, with or without brackets and in any case; a URL; a name in metadata, or the words that a
            text begins with; or something like these: see :data:`GRADES`.
        vector: (d,) any unit vector.
        filter: The documents that may be meant.
    """
    bare = name.strip(_AROUND)
    exact = yield from _find_exact(name, bare, vector, filter)
    if exact is not None or not bare or not is_unicode(bare):
        return exact or Resolution()
    asked = _Name(bare)
    found, complete = yield from _find_by_words(asked, filter)
    best = _choose_best(asked, found)
    if best and (_NAME <= best[0] <= _NEAR_NAME or complete):
        return _make_resolution(*best)
    if not best or best[0] >= _PART:
        everything, whole = yield from _read_all(vector, filter)
        scanned = _choose_best(asked, everything)
        if scanned and whole:
            return _make_resolution(*scanned)
        best = min(filter_none(best, scanned), default=None, key=lambda pair: pair[0])
    return Resolution(candidates=tuple(best[1][:MAX_CANDIDATES])) if best else Resolution()


Best = tuple[int, list[StoredDocument]]


def filter_none(*bests: Best | None) -> list[Best]:
    """Return those that are not None."""
    return [best for best in bests if best is not None]


def _make_resolution(grade: int, documents: Sequence[StoredDocument]) -> Resolution:
    if len(documents) == 1:
        return Resolution(document=documents[0], grade=GRADES[grade])
    return Resolution(candidates=tuple(documents[:MAX_CANDIDATES]), grade=GRADES[grade])


def _find_exact(name: str, bare: str, vector: Floats, filter: Condition) -> Plan[Resolution | None]:
    """Find a document by its id, in brackets or in another case, or by its URL."""
    ids = tuple(id for id in dict.fromkeys((name, bare, bare.upper(), bare.lower())) if is_storable(id))
    if not ids:
        return Resolution()
    candidates = yield from plans.ask(plans.Find(ids=ids, filter=filter))
    stored = yield from plans.ask(plans.Documents(refs=candidates.refs))
    by_id = {document.id: document for document in stored}
    for id in (name, bare):
        if id in by_id:
            return Resolution(document=by_id[id], grade=GRADES[_ID])
    if stored:
        return _make_resolution(_ID, stored)
    if any(mark in bare for mark in "/.:"):
        at_url = plans.Nearest(vector=vector, k=1, filter=filter & parse_filter({"url": bare}))
        placed = yield from plans.ask(at_url)
        if len(placed.refs):
            (document,) = yield from plans.ask(plans.Documents(refs=placed.refs))
            return Resolution(document=document, grade=GRADES[_ID])
    return None


def _find_by_words(asked: _Name, filter: Condition) -> Plan[tuple[list[StoredDocument], bool]]:
    """Find the documents that have the words of a name, or a word of which one may be a slip.

    Returns them, and whether there can be no others.
    """
    hop = yield from follow_tags(
        [(kind, spelling) for kind in NAMING_KINDS for spelling in asked.spellings],
        "in",
        take=MAX_MATCHES,
        cap=MAX_MATCHES,
        filter=filter,
    )
    refs: list[Ints] = [hop.edges.target]
    complete = True
    terms = tuple(dict.fromkeys(extract_terms(" ".join(asked.words))))
    try:
        if terms:
            counts = yield from plans.ask(plans.Lexical(terms=terms, k=1, filter=filter))
            having = counts.document_frequency
            unknown = [word for word in terms if word not in having and word not in counts.left_out]
            sought = [min(having, key=lambda word: (having[word], word))] if having else []
            if not having and len(unknown) == 1 and len(unknown[0]) <= _LONGEST_SLIP:
                sought = _list_slips(unknown[0])
            if len(terms) > 1:
                near = yield from plans.ask(plans.Lexical(terms=terms, k=MAX_MATCHES, filter=filter))
                refs.append(near.refs)
            if sought:
                rare = yield from plans.ask(plans.Lexical(terms=tuple(sought), k=MAX_MATCHES, filter=filter))
                refs.append(rare.refs)
                complete = len(rare.refs) < MAX_MATCHES
    except CapabilityError:
        complete = False
    once = sort_unique(np.concatenate(refs))
    return (yield from plans.ask(plans.Documents(refs=once))), complete


def _read_all(vector: Floats, filter: Condition) -> Plan[tuple[list[StoredDocument], bool]]:
    """Read all documents that may be meant if they are few, and say whether they are."""
    try:
        near = yield from plans.ask(plans.Nearest(vector=vector, k=MAX_SCANNED + 1, filter=filter))
    except FilterError:  # a server that would have to look at too many
        return [], False
    refs = near.refs if len(near.refs) <= MAX_SCANNED else NO_REFS
    documents = yield from plans.ask(plans.Documents(refs=refs))
    return documents, len(near.refs) <= MAX_SCANNED


def _choose_best(asked: _Name, documents: Sequence[StoredDocument]) -> Best | None:
    """Return the surest grade in which documents match, and those that match in it, by id."""
    graded: dict[int, list[StoredDocument]] = {}
    for document in documents:
        grade = asked.grade(document)
        if grade is not None:
            graded.setdefault(grade, []).append(document)
    if not graded:
        return None
    best = min(graded)
    return best, sorted(graded[best], key=attrgetter("id"))


class _Name:
    """A name that was given, and how documents match it.

    Args:
        text: The name.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = _split(text)
        self.core = _strip(self.words)
        self.shorter = self.words[1:] if is_abbreviated(text) and len(self.words) > 1 else ()
        self.letters = "".join(self.words) if len(text) <= _LONGEST_ACRONYM and text.upper() == text else ""
        self.initials = _list_initials(self.words)

    @property
    def spellings(self) -> list[str]:
        """The name as tags of links may have it."""
        return list(
            dict.fromkeys(" ".join(words) for words in (tokenize(self.text), self.words, self.core) if words)
        )

    def grade(self, document: StoredDocument) -> int | None:
        """Return the surest grade in which a document matches, or None if it does not."""
        last = get_last_id_part(document.id)
        names = [document.id, last, *list_given_names(document.metadata)]
        grades = [grade for name in names if (grade := self._grade_name(name)) is not None]
        best = min(grades, default=len(GRADES))
        if best > _LEADING_WORDS and self._begins(document.text):
            best = _LEADING_WORDS
        return best if best < len(GRADES) else None

    def _grade_name(self, name: str) -> int | None:
        words = _split(name)
        if not words or not self.words:
            return None
        if words == self.words:
            return _NAME
        if self._is_near(name, words):
            return _NEAR_NAME
        if _has_part(words, self.core):
            return _PART
        if len(self.core) > 1 and (_are_among(self.core, words) or _are_initials(self.core, words)):
            return _WORDS
        if self.letters and self.letters in _list_initials(words):
            return _ACRONYM
        if len(words) == 1 and name.upper() == name and words[0] in self.initials:
            return _ACRONYM
        near = _is_near_miss(self.words, words) or _is_near_miss(self.core, _strip(words))
        return _SLIP if near else None

    def _is_near(self, name: str, words: Words) -> bool:
        core = _strip(words)
        if core == self.core or (core and core == self.shorter):
            return True
        short = words[1:] if is_abbreviated(name) and len(words) > 1 else ()
        return bool(short) and short in (self.words, self.core, self.shorter)

    def _begins(self, text: str) -> bool:
        leading = _split(text[:LEADING])
        return any(
            bool(words) and leading[start : start + len(words)] == words
            for words in (self.words, self.core)
            for start in range(1 + is_abbreviated(text))
        )


def _split(text: str) -> Words:
    """Return the words of a name, folded, without accents."""
    plain = text
    if not text.isascii():
        plain = "".join(letter for letter in normalize("NFKD", text) if not combining(letter))
    return tokenize(plain)[: 2 * MAX_NAME_WORDS]


def _strip(words: Words) -> Words:
    """Return the words without articles before them, "and", a possessive, and the plural of the last one."""
    kept = [word.removesuffix("'s") for word in words if word != "and"]
    while len(kept) > 1 and kept[0] in ARTICLES:
        del kept[0]
    if kept:
        kept[-1] = _make_singular(kept[-1])
    return tuple(kept)


def _make_singular(word: str) -> str:
    if len(word) <= 3 or not word.endswith("s") or word.endswith(_NO_PLURALS):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]


def _has_part(name: Words, asked: Words) -> bool:
    """Say whether these words stand together in a name."""
    own = tuple(map(_make_singular, name))
    wanted = tuple(map(_make_singular, asked))
    return bool(wanted) and any(
        own[at : at + len(wanted)] == wanted for at in range(len(own) - len(wanted) + 1)
    )


def _are_among(asked: Words, name: Words) -> bool:
    """Say whether a name has all of these words, in any order."""
    return {word for word in asked if len(word) > 1} <= set(name) and min(map(len, asked)) > 1


def _are_initials(asked: Words, name: Words) -> bool:
    """Say whether words are those of a name in order, one of them at least as an initial, and not all."""
    return (
        len(asked) == len(name)
        and any(len(word) > 1 for word in asked)
        and all(
            own == word or (len(word) == 1 and own.startswith(word))
            for word, own in zip(asked, name, strict=True)
        )
    )


def _list_initials(words: Words) -> set[str]:
    """Return the acronyms of a name: of all its words, and of those that are no small words."""
    large = [word for word in words if word not in _JOINING]
    return {"".join(word[0] for word in some) for some in (words, large) if len(some) > 1}


def _is_near_miss(asked: Words, name: Words) -> bool:
    """Say whether words stand together in a name but for one letter of one word."""
    for start in range(len(name) - len(asked) + 1):
        part = name[start : start + len(asked)]
        other = [at for at, word in enumerate(asked) if word != part[at]]
        if len(other) == 1 and is_slip(asked[other[0]], part[other[0]], alone=len(asked) == 1):
            return True
    return False


def _list_slips(word: str) -> list[str]:
    """Return the words of a-z that a word may be a slip of: see :func:`is_slip`."""
    return list(dict.fromkeys(slip for slip in _make_slips(word) if slip != word))


def _make_slips(word: str) -> Iterator[str]:
    for at in range(1, len(word) + 1):
        yield word[:at] + word[at + 1 :]
        yield word[:at] + word[at : at + 2][::-1] + word[at + 2 :]
        for letter in ascii_lowercase:
            yield word[:at] + letter + word[at:]
            yield word[:at] + letter + word[at + 1 :]
