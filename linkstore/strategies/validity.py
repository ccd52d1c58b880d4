"""Whether what a document describes is valid now, as its metadata say; nothing is guessed from its text.

A document says so by a state (``status: "withdrawn"``), by a flag (``in_force: false``), or by when it ends
(``valid_until: "2019-12-31"``). Questions are about what is valid now, unless they name another state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

from linkstore.core.text import tokenize

Validity = Literal["valid", "over", "unknown"]
_STATE_WORDS: Final = frozenset({"condition", "lifecycle", "phase", "stage", "state", "status", "validity"})
"""A metadata field whose name has one of these words holds a state."""
_VALID_TEXT: Final = """
    active applicable approved available binding confirmed current effective enabled granted
    issued live maintained ongoing open operative outstanding published ratified registered
    running stable standing supported unfixed unresolved valid yes
"""
_VALID: Final = frozenset(_VALID_TEXT.split())
_OVER_TEXT: Final = """
    abandoned abolished abrogated annulled archived cancelled canceled ceased closed declined
    deleted denied deprecated disabled discontinued dismissed draft elapsed ended expired fixed
    former future historic historical inactive ineffective invalid lapsed obsolete old over
    overruled overturned past patched paused pending planned previous proposed quashed refused
    rejected remedied removed repealed replaced rescinded resolved retired retracted revoked
    superseded suspended terminated unsupported upcoming vacated void voided withdrawn yanked
"""
_OVER: Final = frozenset(_OVER_TEXT.split())
_NEGATIONS: Final = frozenset({"non", "not", "never"})
_IN_FORCE: Final = frozenset({"force", "effect", "use", "service"})
_END_TEXT: Final = """
    cancelled end ended ends expiration expire expired expires expiry repeal repealed revocation revoked
    terminated termination until withdrawal withdrawn
"""
_END_WORDS: Final = frozenset(_END_TEXT.split())
_EXCLUDING_TEXT: Final = """
    apart aside besides but disregard disregarding drop except exclude excluding excluded forget
    ignore ignoring leave leaving minus neither no nor not omit omitting skip skipping unless
    without
"""
_EXCLUDING: Final = frozenset(_EXCLUDING_TEXT.split())
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DATE: Final = re.compile(r"(\d{4})(-\d{2})?(-\d{2})?")


def find_states(metadata: Mapping[str, Any]) -> Iterator[tuple[str, object, Validity]]:
    """Yield the fields that say whether something is valid: name, value, and what it means."""
    for name, value in metadata.items():
        words = set(tokenize(_CAMEL.sub(" ", name).replace("_", " ").replace("-", " ")))
        if isinstance(value, bool):
            told = read_state(words)
            if told != "unknown":
                yield name, value, told if value else "over" if told == "valid" else "valid"
        elif words & _END_WORDS and (end := _DATE.match(str(value))):
            today = datetime.now(UTC).date().isoformat()
            yield name, value, "over" if end[0] < today[: len(end[0])] else "valid"
        elif isinstance(value, str) and words & _STATE_WORDS:
            yield name, value, read_state(set(tokenize(value.replace("_", " ").replace("-", " "))))


def read_state(words: set[str]) -> Validity:
    """Return what the words of a state, or of the name of a flag, mean."""
    over = bool(words & _OVER)
    valid = bool(words & _VALID) or ("in" in words and bool(words & _IN_FORCE))
    if words & _NEGATIONS or ("no" in words and len(words) > 1):
        over, valid = valid or over, False
    return "unknown" if over == valid else "over" if over else "valid"


def is_asked_for(question: str, value: object) -> bool:
    """Say whether a question names a state, and has no word such as "without" or "except"."""
    words, asked = set(tokenize(str(value))), set(tokenize(question))
    return isinstance(value, str) and bool(words) and words <= asked and not asked & _EXCLUDING
