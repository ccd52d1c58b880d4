"""A short view of a document: title, headings, URL, and the part of its text that fits a query best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from linkstore.text import STOP_WORDS, TRAIL, fold, tokens, written_words

if TYPE_CHECKING:
    from langchain_core.documents import Document

WIDTH: Final = 200
"""Longest snippet, in characters, ellipses not counted."""
_SHORTEST_STEM: Final = 4

Span = tuple[int, int]


def snippet(text: str, query: str, width: int = WIDTH) -> str:
    """Return the window of ``text`` with the most different words of ``query``, in whole words.

    Args:
        text: Any text. White space becomes single spaces.
        query: The question.
        width: Longest window, in characters.

    Returns:
        At most ``width`` characters, with an ellipsis at each end that was cut, or the beginning of the
        text where it has no word of the query.
    """
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    words = [found.span() for found in written_words(text)]
    start, end = _window(text, words, query_spans(text, query), width)
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"


def query_spans(text: str, query: str) -> list[tuple[Span, str]]:
    """Return the places of the query's words in the text, each with its word.

    A longer form of a word counts as the word (``monorails`` for ``monorail``). Stop words do not count.
    """
    terms = [term for term in dict.fromkeys(tokens(query)) if term not in STOP_WORDS]
    spans = []
    for found in written_words(text):
        word = fold(found[0])
        term = next((term for term in terms if _same(word, term)), None)
        if term is not None:
            spans.append((found.span(), term))
    return spans


def _same(word: str, term: str) -> bool:
    return word == term or (len(term) >= _SHORTEST_STEM and word.startswith(term))


def _window(text: str, words: Sequence[Span], found: Sequence[tuple[Span, str]], width: int) -> Span:
    """Return the best window: most different terms, then most terms, then the earliest."""
    best, best_count = (0, 0), (0, 0)
    for first, ((start, _), _) in enumerate(found):
        inside = [entry for entry in found[first:] if entry[0][1] - start <= width]
        count = (len({term for _, term in inside}), len(inside))
        if count > best_count:
            best, best_count = (start, max(start, *(end for (_, end), _ in inside))), count
    return _widened(text, words, best, width)


def _widened(text: str, words: Sequence[Span], core: Span, width: int) -> Span:
    """Return the window grown around its core to ``width``, and shrunk to whole words."""
    spare = max(0, width - (core[1] - core[0]))
    low = max(0, min(core[0] - spare // 2, len(text) - width))
    high = min(len(text), low + width)
    if low:
        low = min((start for start, _ in words if low <= start), default=low)
    if high < len(text):
        high = max((end for _, end in words if low < end <= high), default=high)
    return low, high


def title_of(document: Document) -> str | None:
    """Return the title of the document's page, or None without one."""
    return _string(document, "title")


def url_of(document: Document) -> str | None:
    """Return the document's URL, or None without one."""
    return _string(document, "url")


def headings_of(document: Document) -> str | None:
    """Return the document's title and the headings above it, outermost first, or None without any."""
    return TRAIL.join(_trail(document)) or None


def body_of(document: Document) -> str:
    """Return the document's text without the headings that ingest puts above it."""
    above, _, body = document.page_content.partition("\n\n")
    return body if body and above == TRAIL.join(_trail(document)) else document.page_content


def _trail(document: Document) -> list[str]:
    """Return the lines that ingest puts above the text: the headings, after the title unless it is one."""
    found = document.metadata.get("headings")
    headings = [str(one) for one in found] if isinstance(found, list) else []
    title = title_of(document)
    return [title, *headings] if title and title not in headings else headings


def _string(document: Document, key: str) -> str | None:
    value = document.metadata.get(key)
    return value if isinstance(value, str) else None
