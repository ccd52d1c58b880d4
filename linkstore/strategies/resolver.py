"""From a name to the document that it means.

Names are compared in :data:`GRADES`, the surest first. The surest grade in which a document matches decides;
if several documents match in it, none is taken, and all are candidates. Documents are found by the index of
words, and if none of them is called so, by reading all documents of the type, if they are few.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from string import ascii_lowercase
from typing import Any, Final
from unicodedata import combining, normalize
from urllib.parse import quote

import numpy as np

from linkstore.core import plans
from linkstore.core.arrays import Floats, Ints, sort_unique
from linkstore.core.display import escape_unprintable, make_readable
from linkstore.core.documents import is_storable
from linkstore.core.filters import EVERYTHING, Condition, parse_filter
from linkstore.core.lexical import OTHER_NAME_FIELDS, extract_terms, get_last_id_part, is_number
from linkstore.core.links import LINKS_KEY
from linkstore.core.plans import Plan, StoredDocument
from linkstore.core.text import STOP_WORDS, is_unicode, tokenize
from linkstore.errors import CapabilityError, FilterError
from linkstore.strategies.traversal import NO_REFS, follow_tags

NAMING_KINDS: Final = ("mention", "heading")
"""Kinds of links by which texts and questions lead to what they name: documents and sections."""
NAME_FIELDS: Final = ("title", *OTHER_NAME_FIELDS)
"""Metadata fields that hold a name of a document, or a list of names."""
MAX_NAME_WORDS: Final = 12
"""How many words of a query a name may have."""
LEADING: Final = 300
"""Characters of a text that are looked at for the name that it begins with."""
ARTICLES: Final = frozenset(
    {"a", "an", "the", "das", "dem", "den", "der", "des", "die", "ein", "eine", "de", "een", "het"}
    | {"el", "la", "las", "los", "le", "les", "un", "une", "una", "gli", "i", "il", "lo"}
)
"""Words before a name that people leave out, or add."""
MAX_CHOICES: Final = 5
"""How many documents are listed of which one may be meant."""
MAX_CHOICE_CHARACTERS: Final = 200
_ABBREVIATION: Final = re.compile(r"\W*(?:[^\W\d_a-z]{2,4}|[^\W\d_a-z][a-z]{0,3}\.)\s")
"""What may stand before a name at the beginning of a text, as "MV" and "Dr." do."""
_SHORTEST_SLIP: Final = 4
_SHORTEST_LONE_SLIP: Final = 6
"""A shorter word is no slip of a name that has several words, or of one that has not."""

GRADES: Final = (
    "id",
    "name",
    "name but for an article, a plural, a title or the type beside it",
    "first words of its text",
    "part of its name, or a number in its metadata",
    "words of its name in another order, or initials",
    "its name with other words",
    "acronym of its name",
    "name but for a slip",
    "some words of its name",
)
"""How a name can be that of a document, the surest first."""
_ID, NAME, NEAR_NAME, LEADING_WORDS, PART, _WORDS, _AROUND, _ACRONYM, SLIP, _SOME = range(len(GRADES))
MAX_MATCHES: Final = 50
"""How many documents with the rarest word of a name are read to see whether they are called so."""
MAX_SCANNED: Final = 1_000
"""So many documents of a type are read, if no index finds a name."""
MAX_CANDIDATES: Final = 50
_LONGEST_SLIP: Final = 24
_MARKS: Final = " \t\n[]<>\"'\u201c\u201d\u2018\u2019"
_JOINING: Final = ARTICLES | {"and", "of", "for", "und", "y", "et"}
"""Words of a name that its acronym may lack."""
_LONGEST_ACRONYM: Final = 8
_NUMBERED: Final = re.compile(r"[^\W\d_]+(\d{5,})")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_RUN: Final = re.compile(r"\d+|[^\d_]+")
_YEAR: Final = re.compile(r"1[5-9]\d\d|20\d\d")
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

    @property
    def alike(self) -> bool:
        """Whether the candidates have only something like the name in theirs."""
        return self.grade in (GRADES[_AROUND], GRADES[_SOME])

    def explain(self, name: str, remedy: str, type_field: str = "type") -> str:
        """Say why a name means no document: it may mean several, or none has it, and what to do then."""
        none = f"no document has the id or name {name[:200]!r}; "
        if not self.candidates:
            return f"{none}{remedy}"
        what = f"{none}something like it have" if self.alike else f"{name[:200]!r} may mean"
        return f"{what} {list_choices(self.candidates, type_field)}; name one by its id"


def resolve_name(
    name: str, vector: Floats, filter: Condition = EVERYTHING, type_field: str = "type"
) -> Plan[Resolution]:
    """Find the document that a name means, or the choices.

    Args:
        name: An id, with or without brackets and in any case; a URL; a name in metadata, or the words that a
            text begins with; or something like these: see :data:`GRADES`.
        vector: (d,) any unit vector.
        filter: The documents that may be meant.
        type_field: The metadata field that holds types.
    """
    bare = name.strip(_MARKS)
    exact = yield from _find_exact(name, bare, vector, filter)
    if exact is not None or not bare or not is_unicode(bare):
        return exact or Resolution()
    asked = _Name(bare, type_field)
    documents, complete = yield from _find_by_words(asked, filter)
    best = _choose_best(asked, documents)
    if not best or best[0] >= PART:
        everything, whole = yield from _read_all(vector, filter)
        if whole:
            best, complete = _choose_best(asked, everything), True
    if not best:
        return Resolution()
    if complete or best[0] <= NEAR_NAME:
        return _make_resolution(*best)
    return Resolution(candidates=tuple(best[1][:MAX_CANDIDATES]), grade=GRADES[best[0]])


def compare_names(names: Iterable[str], others: Iterable[str]) -> str:
    """Return the surest grade in which some names are others, either way; "" if they at most share words."""
    pairs = [pair for name in names for other in others for pair in ((name, other), (other, name))]
    grades = (_Name(name, "").grade_name(other, Spelling.of(other), ()) for name, other in pairs)
    best = min((grade for grade in grades if grade is not None), default=_SOME)
    return GRADES[best] if best != _SOME else ""


def list_keys(name: str) -> Iterator[str]:
    """Yield what a name has in common with names like it: words, words but for a letter, initials."""
    spelling = Spelling.of(name)
    yield from ("".join(spelling.words), *_list_initials(spelling.words))
    for word in dict.fromkeys(chain.from_iterable(spelling.cores)):
        yield word
        yield from (
            word[:at] + word[at + 1 :] for at in range(len(word) if len(word) >= _SHORTEST_SLIP else 0)
        )


Best = tuple[int, list[StoredDocument]]


def _make_resolution(grade: int, documents: Sequence[StoredDocument]) -> Resolution:
    if len(documents) == 1 and grade not in (_AROUND, _SOME):
        return Resolution(document=documents[0], grade=GRADES[grade])
    return Resolution(candidates=tuple(documents[:MAX_CANDIDATES]), grade=GRADES[grade])


def _find_exact(name: str, bare: str, vector: Floats, filter: Condition) -> Plan[Resolution | None]:
    """Find a document by its id, in brackets, in another case or as the path of a file, or by its URL."""
    spellings = (name, bare, bare.upper(), bare.lower(), make_readable(quote(bare, errors="replace")))
    ids = tuple(id for id in dict.fromkeys(spellings) if is_storable(id))
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
    """Find the documents with the words of a name, or with a word of which one is a slip.

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
    terms = asked.terms
    try:
        if terms:
            counts = yield from plans.ask(plans.Lexical(terms=terms, k=1, filter=filter))
            having = counts.document_frequency
            unknown = [word for word in terms if word not in having and word not in counts.left_out]
            sought = [min(having, key=lambda word: (having[word], word))] if having else []
            if not having and len(unknown) == 1 and len(unknown[0]) <= _LONGEST_SLIP:
                sought = list(dict.fromkeys(slip for slip in _make_slips(unknown[0]) if slip != unknown[0]))
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
    documents = yield from plans.ask(plans.Documents(refs=once))
    pages = tuple(page for page in dict.fromkeys(map(_get_page, documents)) if is_storable(page))
    first = yield from plans.ask(plans.Find(ids=pages, filter=filter))
    others = yield from plans.ask(plans.Documents(refs=np.setdiff1d(first.refs, once)))
    return [*documents, *others], complete


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
    """Return the surest grade of documents, and all of this grade, by id.

    If that is the grade of a page, as by its title, its parts are left out.
    """
    graded: dict[int, list[StoredDocument]] = {}
    for document in documents:
        grade = asked.grade(document)
        if grade is not None:
            graded.setdefault(grade, []).append(document)
    if not graded:
        return None
    best = min(graded)
    pages = {document.id for document in graded[best]}
    whole = [own for own in graded[best] if _get_page(own) == own.id or _get_page(own) not in pages]
    return best, sorted(whole, key=attrgetter("id"))


def _get_page(document: StoredDocument) -> str:
    return str(document.metadata.get("page") or document.id)


@dataclass(frozen=True, slots=True)
class Spelling:
    """The words of a name: as they are, and in forms in which names are nearly the same.

    Args:
        words: Folded, without accents.
        cores: Without articles, "and", possessives and plurals; and also without a short word before it, as
            in "MV Aurora" or "IMO 9100019".
    """

    words: Words
    cores: tuple[Words, ...]

    @classmethod
    @lru_cache(maxsize=8192)
    def of(cls, text: str) -> Spelling:
        """Return the spelling of a name."""
        words = tokenize(remove_accents(text))[: 2 * MAX_NAME_WORDS]
        cores = [_strip_words(words)]
        if is_abbreviated(text) and _may_be_alone(words[1:]):
            cores.append(_strip_words(words[1:]))
        if len(words) == 1 and (numbered := _NUMBERED.fullmatch(words[0])):
            cores.append((numbered[1],))
        return cls(words, tuple(core for core in cores if core))

    def drop(self, kind: Words) -> Iterator[Words]:
        """Yield the cores without the type, where it stands before or behind the rest."""
        for core in self.cores if kind else ():
            if len(core) > len(kind):
                yield from [core[len(kind) :]] if core[: len(kind)] == kind else []
                yield from [core[: -len(kind)]] if core[-len(kind) :] == kind else []


class _Name:
    """A name that was given, and how documents match it.

    Args:
        text: The name.
        type_field: The metadata field that holds types.
    """

    def __init__(self, text: str, type_field: str) -> None:
        self.text = text
        self._type_field = type_field
        self._spelling = Spelling.of(text)
        self.words = self._spelling.words
        digits = any(map(str.isdigit, text))
        self._numbered = digits and any(word.isalpha() or is_number(word) for word in self.words)
        self._letters = "".join(self.words) if len(text) <= _LONGEST_ACRONYM and " " not in text else ""
        self._initials = _list_initials(self.words)

    @property
    def spellings(self) -> list[str]:
        """The name as tags of links may have it."""
        forms = (tokenize(self.text), self.words, *self._spelling.cores)
        return list(dict.fromkeys(" ".join(words) for words in forms if words))

    @property
    def terms(self) -> tuple[str, ...]:
        """The words by which documents are found."""
        joined = "".join(self.words) if any(map(str.isdigit, self.text)) else ""
        written = (word for words in (self.words, *self._spelling.cores) for word in words)
        return tuple(dict.fromkeys(extract_terms(" ".join((*written, joined)))))

    def grade(self, document: StoredDocument) -> int | None:
        """Return the surest grade in which a document matches, or None if it does not."""
        own, last = document.metadata.get(self._type_field), get_last_id_part(document.id)
        kind = _strip_words(tokenize(_CAMEL.sub(" ", own).replace("_", " "))) if isinstance(own, str) else ()
        named = [*list_given_names(document.metadata), *_list_tags(document)]
        grades = [self.grade_name(name, Spelling.of(name), kind) for name in (document.id, last, *named)]
        if last.isdigit() and not is_number(last) and last != document.id and last == self.text:
            grades = [PART]  # a short number is in many names
        if self._numbered and self._is_in_metadata(document):
            grades.append(PART)
        if self._begins(document.text):
            grades.append(PART if named else LEADING_WORDS)
        return min((grade for grade in grades if grade is not None), default=None)

    def grade_name(self, name: str, own: Spelling, kind: Words) -> int | None:
        """Return the grade in which a name of a document matches, or None if it does not."""
        if not own.cores or not self._spelling.cores:
            return None
        asked, core = self._spelling, self._spelling.cores[0]
        if own.words == asked.words:
            return NAME
        if not {*asked.cores, *asked.drop(kind)}.isdisjoint(own.cores):
            return NEAR_NAME
        if has_part(own.cores[0], core):
            return PART
        if _are_among(core, own.cores[0]) or _are_initials(core, own.cores[0]):
            return _WORDS
        if any(has_part(core, part) or _are_among(part, core) for part in own.cores):
            return _AROUND
        if self._letters and self._letters in _list_initials(own.words):
            return _ACRONYM if self.text.isupper() else _SOME
        if len(own.words) == 1 and name.isupper() and own.words[0] in self._initials:
            return _ACRONYM
        if is_near_miss(asked.words, own.words) or is_near_miss(core, own.cores[0]):
            return SLIP
        return _SOME if _share_half(core, own.cores[-1]) else None

    def _is_in_metadata(self, document: StoredDocument) -> bool:
        """Say whether a document has this number in a field that holds no names."""
        values = (value for value in document.metadata.values() if isinstance(value, str))
        numbers = (value for value in values if any(map(str.isdigit, value)))
        return any(Spelling.of(number).cores[:1] == self._spelling.cores[:1] for number in numbers)

    def _begins(self, text: str) -> bool:
        leading = Spelling.of(text[:LEADING]).words
        return any(
            bool(self.words) and leading[start : start + len(self.words)] == self.words
            for start in range(1 + is_abbreviated(text))
        )


def list_choices(documents: Sequence[plans.StoredDocument], type_field: str = "type") -> str:
    """List documents of which one may be meant, by id, name and type."""
    shown = []
    for document in documents[:MAX_CHOICES]:
        own = document.metadata.get(type_field)
        typed = [f"({own})"] if isinstance(own, str) and own else []
        parts = [f"[{document.id}]", *list_given_names(document.metadata)[:1], *typed]
        shown.append(" ".join(parts)[:MAX_CHOICE_CHARACTERS])
    more = len(documents) - len(shown)
    return escape_unprintable(", ".join(shown)) + (f" and {more} more" if more else "")


def is_abbreviated(text: str) -> bool:
    """Say whether a text begins with what may stand before a name."""
    return _ABBREVIATION.match(text) is not None


def list_given_names(metadata: Mapping[str, Any]) -> list[str]:
    """Return the names that a document has in its metadata, as written: its innermost heading, title, …."""
    headings = metadata.get("headings")
    values = headings[-1:] if isinstance(headings, list) else []
    for field in filter(metadata.__contains__, NAME_FIELDS):
        value = metadata[field]
        values += value if isinstance(value, list) else [value]
    names: dict[str, None] = {}
    for value in values:
        if isinstance(value, str):
            names[value] = None
    return list(names)


def _may_be_alone(words: Sequence[str]) -> bool:
    """Say whether words are a name without what stands before them: no small number, and no year."""
    return len(words) > 1 or any(not word.isdigit() or is_number(word) for word in words)


def _list_tags(document: StoredDocument) -> list[str]:
    """List the names by which links lead to a document."""
    links = document.metadata.get(LINKS_KEY) or ()
    return [link["tag"] for link in links if link["kind"] in NAMING_KINDS and link["direction"] != "out"]


def remove_accents(text: str) -> str:
    """Return letters without their accents."""
    if text.isascii():
        return text
    return "".join(letter for letter in normalize("NFKD", text) if not combining(letter))


def _strip_words(words: Words) -> Words:
    """Return the words without articles, "and", endings and zeros before numbers; "za354" is two words."""
    kept = [
        run.lstrip("0") or run for word in words if word != "and" for run in _RUN.findall(strip_word(word))
    ]
    while len(kept) > 1 and kept[0] in ARTICLES and _may_be_alone(kept[1:]):
        del kept[0]
    return tuple(kept)


def strip_word(word: str) -> str:
    """Return a word without the ending of a possessive or plural, and without apostrophes."""
    word = word.removesuffix("'s").replace("'", "")
    if word[:-1].isdigit() and word.endswith("s"):
        return word[:-1]
    if len(word) <= 3 or not word.endswith("s") or word.endswith(_NO_PLURALS):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]


def has_part(name: Words, part: Words) -> bool:
    """Say whether words stand together in a name."""
    return any(name[at : at + len(part)] == part for at in range(len(name) - len(part) + 1))


def _are_among(asked: Words, name: Words) -> bool:
    """Say whether a name has all of several words, in any order but for numbers other than years."""
    asked = tuple(word for word in asked if word not in STOP_WORDS)
    if (
        len(asked) < 2
        or not set(asked) <= set(name)
        or any(len(word) < 2 and word.isalpha() for word in asked)
    ):
        return False
    numbers, own = (
        [word for word in words if word.isdigit() and not _YEAR.fullmatch(word)] for words in (asked, name)
    )
    return not numbers or numbers == own


def _are_initials(asked: Words, name: Words) -> bool:
    """Say whether words are those of a name in order, some of them as initials, and one as a whole word."""
    return (
        len(asked) == len(name)
        and any(len(word) > 1 and word.isalpha() for word in asked)
        and all(word in (own, own[0]) for word, own in zip(asked, name, strict=True))
    )


def _share_half(asked: Words, name: Words) -> bool:
    """Say whether half of the words of the longer name are in the other one too, apart from small words."""
    shared = {word for word in set(asked) & set(name) if word not in STOP_WORDS and len(word) > 1}
    return bool(shared) and 2 * len(shared) >= max(len(asked), len(name))


def _list_initials(words: Words) -> set[str]:
    """Return the acronyms of a name: of all its words, and of all but the small ones."""
    large = [word for word in words if word not in _JOINING]
    return {"".join(word[0] for word in some) for some in (words, large) if len(some) > 1}


def is_near_miss(asked: Words, name: Words) -> bool:
    """Say whether words stand together in a name but for one letter of one word."""
    for start in range(len(name) - len(asked) + 1):
        part = name[start : start + len(asked)]
        other = [at for at, word in enumerate(asked) if word != part[at]]
        if len(other) == 1 and is_slip(asked[other[0]], part[other[0]], alone=len(asked) == 1):
            return True
    return False


def is_slip(asked: str, word: str, *, alone: bool) -> bool:
    """Say whether a word differs from another one by one letter: one more, one less, another, or two swapped.

    Numbers have no slips, and the first letter is right.

    Args:
        asked: The word of a question.
        word: The word of a name.
        alone: Whether it is the whole name.
    """
    short, long = sorted((asked, word), key=len)
    if len(short) < (_SHORTEST_LONE_SLIP if alone else _SHORTEST_SLIP) or not (
        asked.isalpha() and word.isalpha()
    ):
        return False
    at = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if not at or asked == word:
        return False
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
    return swapped or short[at + 1 :] == long[at + 1 :]


def _make_slips(word: str) -> Iterator[str]:
    for at in range(1, len(word) + 1):
        yield word[:at] + word[at + 1 :]
        yield word[:at] + word[at : at + 2][::-1] + word[at + 2 :]
        for letter in ascii_lowercase:
            yield word[:at] + letter + word[at:]
            yield word[:at] + letter + word[at + 1 :]
