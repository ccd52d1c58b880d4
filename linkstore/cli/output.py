"""Writes results to stdout, and everything else to stderr: JSON, lines, hits for a person, and progress."""

from __future__ import annotations

import codecs
import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO, TypeVar

from linkstore.core import display
from linkstore.core.display import (
    escape_unprintable,
    find_query_spans,
    format_link_data,
    get_body,
    get_title,
    get_url,
    join_headings,
    make_snippet,
)

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from rich.console import Console

    from linkstore.core.calls import Progress
    from linkstore.core.hits import Hit, Hits

T = TypeVar("T")
MAX_SHOWN_SECTIONS: Final = 3
"""How many sections of a page are shown."""
_INDENT: Final = 3
_UNBOUNDED: Final = 10_000
"""Columns of what is no terminal, where tables are not cut."""
_PLAIN_SIGNS: Final = {"─": "-", "→": "->", "←": "<-", "·": "*", "…": "...", "“": '"', "”": '"'}
"""Replacements for our own signs on terminals that lack them."""
_STYLED: Final = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Variables of the environment by which rich takes a stream that is no terminal for one."""
_PLAIN_HANDLER: Final = "linkstore.plain"
quiet: Final = ContextVar("quiet", default=False)
"""Whether status lines are left out; errors never are."""


def prepare_streams() -> None:
    """Let stdout and stderr replace characters that their encoding lacks, rather than fail.

    A process may have been started without these streams: its output is then dropped.
    """
    codecs.register_error(_PLAIN_HANDLER, _replace_signs)
    sys.stdout = sys.stdout or _open_null()
    sys.stderr = sys.stderr or _open_null()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_PLAIN_HANDLER)


def _open_null() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123


def show(line: str, style: str | None = None) -> None:
    """Print a line of results, with characters that change how it is shown escaped."""
    line = escape_unprintable(line)
    _print(line, ((0, len(line), style or ""),))


def _print(line: str, spans: Iterable[tuple[int, int, str]] = (), width: int = 0) -> None:
    """Print an escaped line indented, with spans of it in styles; rich is not needed where none are shown."""
    if not (sys.stdout.isatty() or any(map(os.environ.get, _STYLED))):
        sys.stdout.write(f"{' ' * width}{line}\n")
        sys.stdout.flush()
        return
    from rich.padding import Padding
    from rich.text import Text

    text = Text(line)
    for start, end, style in spans:
        text.stylize(style, start, end)
    # a terminal wraps lines, and the lines that it wraps to are indented too
    get_stdout().print(Padding(text, (0, 0, 0, width), expand=False) if width else text)


def get_stdout() -> Console:
    """Return the console for results, with plain text when stdout is not a terminal."""
    return _make_console(sys.stdout, stderr=False)


def get_stderr() -> Console:
    """Return the console for status lines and errors."""
    return _make_console(sys.stderr, stderr=True)


def print_result(result: T, show: Callable[[T], object], *, json: bool) -> None:
    """Print a result as JSON, or for a person."""
    if json:
        write_json(result)
    else:
        show(result)


def write_json(value: Any) -> None:
    """Print a value as indented JSON to stdout. An object is its ``to_dict()``, or its fields."""
    import orjson

    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS
    try:
        text = orjson.dumps(value, default=_make_dict, option=options).decode()
        if not text.isascii():
            text.encode(sys.stdout.encoding or "utf-8")
    except (TypeError, UnicodeEncodeError):  # a lone surrogate, or a terminal that cannot show all letters
        import json

        text = json.dumps(value, default=_make_dict, indent=2, sort_keys=True)
    sys.stdout.write(f"{text}\n")


def _make_dict(value: Any) -> dict[str, Any]:
    made: dict[str, Any] = value.to_dict() if hasattr(value, "to_dict") else asdict(value)
    return made


def inform(message: str) -> None:
    """Write a status line to stderr, which a terminal breaks at words."""
    if not quiet.get():
        complain(message)


def complain(message: str) -> None:
    """Report an error, as :func:`inform` does, even with ``--quiet``."""
    line = escape_unprintable(" ".join(message.split()))
    if sys.stderr.isatty():
        get_stderr().print(line)
    else:
        sys.stderr.write(f"{line}\n")


@contextmanager
def show_progress(unit: str = "pages") -> Iterator[Progress | None]:
    """Show a bar on stderr unless ``--quiet`` is given: see :func:`linkstore.core.display.show_progress`."""
    if quiet.get():
        yield None
        return
    with display.show_progress(unit) as advance:
        yield advance


@lru_cache(maxsize=2)
def _make_console(_: TextIO, *, stderr: bool) -> Console:
    """Make the console of a stream, which breaks lines at words in a terminal, and not at all elsewhere."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    console.on_broken_pipe = _fail_as_pipe  # type: ignore[method-assign]
    if not console.is_terminal:
        console.soft_wrap, console.width = True, _UNBOUNDED
    return console


def _fail_as_pipe() -> NoReturn:
    """Raise again what rich has just caught: the command line ends when nobody reads its output any more."""
    raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def _replace_signs(error: UnicodeError) -> tuple[str, int]:
    """Replace our own signs by plain ones, and escape all others: an error handler of :mod:`codecs`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    written = (_PLAIN_SIGNS.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in signs)
    return "".join(written), error.end


def hit_to_dict(hit: Hit, query: str) -> dict[str, Any]:
    """Return a hit as ``--json`` prints it."""
    return {
        **hit.to_dict(),
        "id": hit.document.id,
        "url": get_url(hit.document),
        "title": get_title(hit.document),
        "snippet": make_snippet(get_body(hit.document), query),
    }


def show_hits(hits: Iterable[Hit], query: str) -> None:
    """Print hits for a person: headings and score, URL, snippet, and the path where links were followed."""
    for rank, hit in enumerate(hits, 1):
        if rank > 1:
            _print("")
        document = hit.document
        name = join_headings(document) or document.id or ""
        _show_heading(f"{rank}. ", name, "bold cyan", _format_score(hit))
        _show_indented(get_url(document) or document.id or "", "green")
        _show_passage(hit, query)


def show_pages(hits: Hits, query: str) -> None:
    """Print pages: title and score, URL, then the best sections with snippet and path."""
    for rank, page in enumerate(hits.by_page(), 1):
        if rank > 1:
            _print("")
        best = page.hits[0].document
        name = get_title(best) or join_headings(best) or best.id or ""
        _show_heading(f"{rank}. ", name, "bold cyan", f"  score {page.score:.3f}")
        url = get_url(best)
        _show_indented(url.partition("#")[0] or url if url else page.page, "green")
        for place, hit in enumerate(page.hits[:MAX_SHOWN_SECTIONS]):
            _, _, fragment = (get_url(hit.document) or "").partition("#")
            parts = (_get_section(hit.document), fragment and f"#{fragment}")
            section = "  ".join(filter(None, parts))
            score = _format_score(hit, with_score=place > 0)  # that of the first is the page's
            _show_heading("- ", section or "beginning", "cyan", score, _INDENT)
            _show_passage(hit, query, _INDENT + 2)


def show_explanation(hits: Hits, *, to_stderr: bool) -> None:
    """Print how a search went and what it left out, by :meth:`~linkstore.core.hits.Hits.explain`."""
    console = get_stderr() if to_stderr else get_stdout()
    console.print()
    for line in hits.explain().split("\n"):
        console.print(escape_unprintable(line), style="dim")


def _show_heading(before: str, name: str, style: str, after: str, width: int = 0) -> None:
    line = f"{before}{escape_unprintable(name)}"
    spans = ((0, len(before), "dim"), (len(before), len(line), style), (len(line), len(line + after), "dim"))
    _print(line + after, spans, width)


def _format_score(hit: Hit, *, with_score: bool = True) -> str:
    return (f"  score {hit.score:.3f}" if with_score else "") + (f"  depth {hit.depth}" if hit.depth else "")


def _show_passage(hit: Hit, query: str, width: int = _INDENT) -> None:
    """Print the snippet of a hit with the words of the query in bold, and the links that were followed."""
    snippet = escape_unprintable(make_snippet(get_body(hit.document), query))
    _print(snippet, ((start, end, "bold") for (start, end), _ in find_query_spans(snippet, query)), width)
    for before, step in pairwise(hit.path):
        label = f" “{step.label}”" if step.label else ""
        data = f" {format_link_data(step.data)}" if step.data else ""
        line = f"{before.url or before.id} ─ {step.kind}{label}{data} → {step.url or step.id}"
        _show_indented(line, "yellow", width)


def _show_indented(line: str, style: str, width: int = _INDENT) -> None:
    line = escape_unprintable(line)
    _print(line, ((0, len(line), style),), width)


def _get_section(document: Document) -> str:
    """Return a document's headings below the title of its page, empty for the beginning of the page."""
    headings = document.metadata.get("headings")
    if not isinstance(headings, list):
        return ""
    names = [str(heading) for heading in headings]
    return " > ".join(names[1:] if names[:1] == [get_title(document)] else names)


def get_indexed_page(document: Document) -> str:
    """Return the name under which a store lists the document's page, or without a page the document's id."""
    page = document.metadata.get("page")
    return page if isinstance(page, str) else document.id or ""
