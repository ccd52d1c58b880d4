"""Entities in what people say: names, and things with names of their own, such as files and modules.

A finder of your own, such as one over spaCy or GLiNER, takes the place of :func:`find_entities` by
``ConversationMemory(entities=...)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from linkstore.core.text import fold
from linkstore.memory.names import LONGEST_TEXT, find_names
from linkstore.memory.turns import has_words

EntityFinder = Callable[[str], Sequence[str]]
"""Gives the entities that a text mentions, in order."""
MOST_ENTITIES: Final = 32
"""How many entities of a turn are linked, the first ones."""
_IDENTIFIER: Final = re.compile(
    r"(?<![\w./-])(?=[\w./-]*[a-z])"
    r"(?:[\w-]+(?:[./_-][\w-]+)*\.(?:[a-z][a-z0-9]{1,4})|\w+(?:\.\w+)+|\w*\d\w*(?:-\w+)+)(?![\w/-])"
)
"""A file, a module, a part number: words joined by dots, or by hyphens with a digit in them."""
_QUOTED: Final = re.compile(r"`([^`\n]{2,60})`|\u201c([^\u201d\n]{2,60})\u201d|\*\*([^*\n]{2,60})\*\*")
"""What the text itself marks as a name."""
_TOPIC: Final = re.compile(
    r"\W*(?:what(?:['\u2019]s| is| are)|how (?:does|do)|(?:please )?(?:tell me (?:more )?about|explain))"
    r" (?!(?:the|my|our|your|his|her|their|its)\b)"
    r"(?P<topic>[^\W_][\w+#/-]+(?: (?!work|mean|do\b|use)[\w+#/-]+){0,2}?)"
    r"(?: works?| means?)?[\s?.!]*",
    re.IGNORECASE,
)
"""A query that asks what something is: what it asks about needs no capital."""
_LONGEST_TOPIC: Final = 120
"""Characters of a query that asks what something is."""


def find_entities(text: str) -> tuple[str, ...]:
    """Find the entities that a text mentions, in order, each once.

    An entity is a name ("Ada Lovelace", "PEP 615"), an identifier ("sys.monitoring", "Q4-2023-report.pdf"),
    what stands in quotation marks or is set off by Markdown, or what a short question asks about ("what is
    kubernetes?"). Common words are none, nor are parts of these, and a name has no possessive ending.
    """
    text = text[:LONGEST_TEXT]
    found = [(match.start(), match.end(), match[0]) for match in _IDENTIFIER.finditer(text)]
    found += [
        (match.start(), match.end(), next(filter(None, match.groups()))) for match in _QUOTED.finditer(text)
    ]
    names = [(one.start, one.start + len(one.text), one.text) for one in find_names(text)]
    topic = None if names or len(text) > _LONGEST_TOPIC else _TOPIC.fullmatch(text)
    if topic is not None:
        found.append((topic.start("topic"), topic.end("topic"), topic["topic"]))
    found += [
        (start, end, name)
        for start, end, name in names
        if not any(start < other_end and other_start < end for other_start, other_end, _ in found)
    ]
    return select_distinct_names([name for _, _, name in sorted(found) if any(map(str.isalpha, name))])


def select_distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names with a word in them, each spelling once, the first :data:`MOST_ENTITIES`."""
    spelled: dict[str, str] = {}
    for name in names:
        if has_words(name):
            spelled.setdefault(fold(name), " ".join(name.split()))
    return tuple(spelled.values())[:MOST_ENTITIES]
