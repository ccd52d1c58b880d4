"""What people see: texts that are escaped and readable, a short view of a document, and a bar of progress."""

from __future__ import annotations

import html
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote_to_bytes

import orjson

from linkstore.core.text import STOP_WORDS, TRAIL, find_words, fold, tokenize

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from rich.console import Console

    from linkstore.core.calls import Progress

SHOWN_DATA: Final = 120
"""How many characters of the data of a link are shown."""
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # controls, among them line ends and escape sequences
    "\u202a-\u202e\u2066-\u2069"  # runs of another direction; marks, which Hebrew and Arabic need, stay
    "\u2028\u2029\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f"  # line ends, annotations, invisible tags
    "\ud800-\udfff]"  # halves of characters, which no encoding has
)
_NAMED: Final = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_ENCODED: Final = re.compile(r"(?:%[89A-Fa-f][0-9A-Fa-f])+")
_NOT_READABLE: Final = re.compile(
    r"[\x00-\xa0\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ufff9-\uffff\U000e0000-\U000e007f\s"
    "\ud800-\udfff]"
)
"""Of what is not ASCII: white space, controls, marks of direction, and bytes that are no Unicode."""
SNIPPET_WIDTH: Final = 200
"""Longest snippet, in characters, ellipses not counted."""
_SHORTEST_STEM: Final = 4
_LONGEST_STEM: Final = 40
"""Letters of a word of a query of which a longer word counts as a form."""
_MAX_SHOWN_NAME: Final = 40
"""Characters of a page's name beside a bar."""
_DELAY: Final = 1.0
"""Seconds before a notebook, which keeps what it was shown, shows a bar."""
Span = tuple[int, int]


def escape_unprintable(text: str) -> str:
    """Return a text on one line, with characters that change how it is shown, such as line ends, escaped."""
    return _UNSAFE.sub(_escape_character, text)


def format_count(count: int, noun: str) -> str:
    """Format a number of things that can be counted, as in "1 page" and "1,234 pages"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_kinds(counts: Mapping[str, int]) -> str:
    """Format numbers of links by kind."""
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "none"


def format_percent(share: float, places: int = 1) -> str:
    """Format a share, as in "12.5 %"."""
    return f"{100 * share:.{places}f} %"


def escape_html(text: str) -> str:
    """Escape a text for HTML, between tags or in quotes."""
    return html.escape(escape_unprintable(text))


def _escape_character(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] in _NAMED:
        return _NAMED[found[0]]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def format_link_data(data: Mapping[str, Any]) -> str:
    """Format the data of a link for a person as JSON, of which only the beginning is shown if it is long."""
    text = orjson.dumps(data).decode()
    return text if len(text) <= SHOWN_DATA else f"{text[:SHOWN_DATA]}…"


def make_readable(url: str) -> str:
    """Return a percent-encoded URL in its own letters: ``東京.md`` for ``%E6%9D%B1%E4%BA%AC.md``.

    ASCII stays as it is, and so do encoded white space, controls, marks of direction, and bytes that are not
    UTF-8. Both spellings are the same page: ``linkstore.core.urls`` gives them one tag.
    """
    return _ENCODED.sub(_decode_letters, url) if "%" in url else url


def _decode_letters(found: re.Match[str]) -> str:
    text = unquote_to_bytes(found[0]).decode("utf-8", "surrogateescape")
    return _NOT_READABLE.sub(lambda match: quote(match[0], errors="surrogateescape"), text)


def encode_controls(name: str) -> str:
    """Percent-encode control characters and marks of direction in a name, so that it can be an id."""
    return name if name.isprintable() else _CONTROLS.sub(lambda match: quote(match[0]), name)


def make_snippet(text: str, query: str, width: int = SNIPPET_WIDTH) -> str:
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
    words = [word.span() for word in find_words(text)]
    start, end = _find_window(text, words, find_query_spans(text, query), width)
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"


def find_query_spans(text: str, query: str) -> list[tuple[Span, str]]:
    """Return the places of the query's words in the text, each with its word.

    A longer form of a word counts as the word (``monorails`` for ``monorail``). Stop words do not count.
    """
    ranks = {term: rank for rank, term in enumerate(dict.fromkeys(tokenize(query))) if term not in STOP_WORDS}
    spans = []
    for match in find_words(text):
        word = fold(match[0])
        forms = {word, *(word[:length] for length in range(_SHORTEST_STEM, min(len(word), _LONGEST_STEM)))}
        if terms := forms & ranks.keys():
            spans.append((match.span(), min(terms, key=ranks.__getitem__)))
    return spans


def _find_window(text: str, words: Sequence[Span], found: Sequence[tuple[Span, str]], width: int) -> Span:
    """Return the best window: most different terms, then most terms, then the earliest."""
    best, best_count = (0, 0), (0, 0)
    for first, ((start, _), _) in enumerate(found):
        inside = [entry for entry in found[first:] if entry[0][1] - start <= width]
        count = (len({term for _, term in inside}), len(inside))
        if count > best_count:
            best, best_count = (start, max(start, *(end for (_, end), _ in inside))), count
    return _widen_window(text, words, best, width)


def _widen_window(text: str, words: Sequence[Span], core: Span, width: int) -> Span:
    """Return the window grown around its core to ``width``, and shrunk to whole words."""
    spare = max(0, width - (core[1] - core[0]))
    low = max(0, min(core[0] - spare // 2, len(text) - width))
    high = min(len(text), low + width)
    if low:
        low = min((start for start, _ in words if low <= start), default=low)
    if high < len(text):
        high = max((end for _, end in words if low < end <= high), default=high)
    return low, high


def get_title(document: Document) -> str | None:
    """Return the title of the document's page, or None without one."""
    return _get_string(document, "title")


def get_url(document: Document) -> str | None:
    """Return the document's URL, or None without one."""
    return _get_string(document, "url")


def join_headings(document: Document) -> str | None:
    """Return the document's title and the headings above it, outermost first, or None without any."""
    return TRAIL.join(_list_headings(document)) or None


def get_body(document: Document) -> str:
    """Return the document's text without the headings that ingest puts above it."""
    above, _, body = document.page_content.partition("\n\n")
    return body if body and above == TRAIL.join(_list_headings(document)) else document.page_content


def _list_headings(document: Document) -> list[str]:
    """Return the lines that ingest puts above the text: the headings, after the title unless it is one."""
    value = document.metadata.get("headings")
    headings = [str(heading) for heading in value] if isinstance(value, list) else []
    title = get_title(document)
    return [title, *headings] if title and title not in headings else headings


def _get_string(document: Document, key: str) -> str | None:
    value = document.metadata.get(key)
    return value if isinstance(value, str) else None


@contextmanager
def show_progress(unit: str = "pages", console: Console | None = None) -> Iterator[Progress | None]:
    """Show a bar while the context lasts, and yield the function that moves it.

    Yield None where nobody would see it: stderr is no terminal, and the program no notebook with tqdm.

    Args:
        unit: What is counted.
        console: Where it is shown; default stderr.
    """
    if console is None and is_notebook():
        with _show_in_notebook(unit) as advance:
            yield advance
    elif console is None and not (sys.stderr is not None and sys.stderr.isatty()):
        yield None
    else:
        with _show_in_terminal(unit, console) as advance:
            yield advance


def is_notebook() -> bool:
    """Say whether the program runs in the kernel of a notebook."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def _show_in_notebook(unit: str) -> Iterator[Progress | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that widgets are missing; the bar is text then
            from tqdm.auto import tqdm
    except ImportError:
        yield None
        return
    with tqdm(unit=f" {unit}", leave=False, delay=_DELAY) as bar:

        def advance(done: int, total: int, page: str) -> None:
            bar.total = total or None
            bar.set_postfix_str(page[-_MAX_SHOWN_NAME:], refresh=False)
            bar.update(done - bar.n)

        yield advance


@contextmanager
def _show_in_terminal(unit: str, console: Console | None) -> Iterator[Progress]:
    from rich import progress
    from rich.console import Console

    rate = progress.TextColumn("{task.fields[rate]}")
    columns = (progress.BarColumn(), progress.MofNCompleteColumn(), rate, progress.TimeRemainingColumn())
    shown = console or Console(stderr=True)
    with progress.Progress(*columns, console=shown, transient=True) as bar:
        task = bar.add_task(unit, total=None, rate="")

        def advance(done: int, total: int, page: str) -> None:
            speed = bar.tasks[0].speed
            speed_text = "" if speed is None else f"{speed:,.0f} {unit}/s"
            bar.update(task, completed=done, total=total or None, description=page, rate=speed_text)

        yield advance
