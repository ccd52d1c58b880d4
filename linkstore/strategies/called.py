"""What is called by a name that somebody gives, rather than by one in a question.

The name is all there is, so a part of a longer name will do. What several documents are called is a choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from string import ascii_lowercase
from typing import Final

from linkstore.core import plans
from linkstore.core.lexical import extract_terms, get_last_id_part
from linkstore.core.plans import Plan
from linkstore.core.text import tokenize
from linkstore.errors import CapabilityError
from linkstore.strategies.names import (
    ARTICLES,
    LEADING,
    MAX_NAME_WORDS,
    is_abbreviated,
    is_slip,
    list_given_names,
)

MAX_CALLED: Final = 50
"""How many documents that have the rarest word of a name are read to see whether they are called so."""
_LONGEST_SLIP: Final = 24


def find_called(name: str) -> Plan[tuple[list[plans.StoredDocument], bool]]:
    """Find the documents that may be meant by a name, by id, and say whether there can be no others.

    A name of theirs has its words, or their text begins with them. One word may be a slip that no document
    has.
    """
    words = tokenize(name)[:MAX_NAME_WORDS]
    words = words[len(words) > 1 and words[0] in ARTICLES :]
    asked = tuple(word.removesuffix("'s") for word in words)
    terms = tuple(dict.fromkeys(extract_terms(" ".join(asked))))
    if not terms:
        return [], True
    try:
        counts = yield from plans.ask(plans.Lexical(terms=terms, k=1))
    except CapabilityError:
        return [], False
    spelt = {*counts.document_frequency, *counts.left_out}
    unknown = [at for at, word in enumerate(asked) if not spelt.issuperset(extract_terms(word))]
    slip = unknown[0] if len(unknown) == 1 and len(asked[unknown[0]]) <= _LONGEST_SLIP else None
    sought = () if slip is None else _list_slips(asked[slip])
    if counts.document_frequency:
        sought = (min(counts.document_frequency, key=lambda word: (counts.document_frequency[word], word)),)
    matches = yield from plans.ask(plans.Lexical(terms=sought, k=MAX_CALLED))
    documents = yield from plans.ask(plans.Documents(refs=matches.refs))
    called = [
        document
        for document in documents
        if any(_has_part(own, asked, slip) for own in _list_word_lists(document, len(asked)))
    ]
    return sorted(called, key=attrgetter("id")), len(matches.refs) < MAX_CALLED


def _list_word_lists(document: plans.StoredDocument, count: int) -> Iterator[tuple[str, ...]]:
    """Yield the words of the names of a document, and so many with which its text begins."""
    yield from map(tokenize, [get_last_id_part(document.id), *list_given_names(document.metadata)])
    leading = tokenize(document.text[:LEADING])
    yield from (leading[start : start + count] for start in range(1 + is_abbreviated(document.text)))


def _has_part(name: Sequence[str], asked: Sequence[str], slip: int | None) -> bool:
    """Say whether a name has these words, or all but a slip."""
    for start in range(len(name) - len(asked) + 1):
        part = name[start : start + len(asked)]
        other = [at for at, word in enumerate(asked) if word != part[at]]
        if not other or (other == [slip] and is_slip(asked[other[0]], part[other[0]], alone=len(asked) == 1)):
            return True
    return False


def _list_slips(word: str) -> tuple[str, ...]:
    """Return the words of a-z that a word may be a slip of: see :func:`is_slip`."""
    slips = dict.fromkeys(word[:at] + word[at + 1 :] for at in range(1, len(word)))
    for at in range(1, len(word) + 1):
        slips |= dict.fromkeys(word[:at] + letter + word[at:] for letter in ascii_lowercase)
        slips |= dict.fromkeys(word[:at] + letter + word[at + 1 :] for letter in ascii_lowercase)
        slips[word[:at] + word[at : at + 2][::-1] + word[at + 2 :]] = None
    return tuple(slip for slip in slips if slip != word)
