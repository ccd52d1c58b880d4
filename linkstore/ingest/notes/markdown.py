"""Reads a page's front matter, title and blocks from a file of Markdown, by way of HTML.

Front matter is the YAML between ``---`` lines at the beginning of a page. Its values become plain JSON, the
only form that metadata can have.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any, Final

import yaml

from linkstore.core.text import replace_surrogates
from linkstore.errors import LinkStoreError
from linkstore.ingest.html.pages import PageContent, decode_page, parse_page, read_page_content
from linkstore.ingest.notes.dialects import has_jsx, replace_jsx, unindent_tabs
from linkstore.ingest.notes.rendering import COMMONMARK, Dialect, RenderedMarkdown, render_events

_MOST_VALUES: Final = 10_000
DEEPEST_VALUE: Final = 20
"""Lists in lists, or objects in objects, of metadata."""
_BLOCK: Final = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t\r]*$\n?", re.DOTALL | re.MULTILINE
)
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BETWEEN_TAGS: Final = re.compile(r"[,\s]+")
_MOST_URLS: Final = 100
_MERGES: Final = re.compile(r"<<\s*:|!!merge")
_UNFIT: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What PyYAML raises, besides its own errors, for a value that does not fit its tag: ``!!timestamp soon``."""
LONGEST_FRONT_MATTER: Final = 64 * 2**10
"""Characters of front matter that are read."""
_TITLE: Final = re.compile(r"^title:\s*(.+?)\s*$", re.MULTILINE)


class NotPlainError(LinkStoreError, ValueError):
    """A value is too large to be metadata, or holds itself."""


def make_plain(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert a mapping to plain JSON.

    Keys become strings, tuples and sets lists, dates ISO 8601. Numbers that JSON cannot hold and all else
    become what ``str`` says. The result shares nothing with the values.

    Raises:
        NotPlainError: If it holds more than 10,000 values, or is nested more than 20 deep. References can
            make a few lines of YAML stand for billions of values.
    """
    budget = _Budget()
    try:
        return {str(key): _make_plain_value(value, budget, 1) for key, value in values.items()}
    except NotPlainError:
        raise
    except ValueError as error:
        raise NotPlainError(f"a number with too many digits: {error}") from error


@dataclass(slots=True)
class _Budget:
    left: int = _MOST_VALUES


def _make_plain_value(value: Any, budget: _Budget, depth: int) -> Any:
    budget.left -= 1
    if budget.left < 0 or depth > DEEPEST_VALUE:
        raise NotPlainError(f"over {_MOST_VALUES:,} values, or lists in lists without end")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _make_plain_value(one, budget, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_make_plain_value(one, budget, depth + 1) for one in value]
    if isinstance(value, AbstractSet):
        return [_make_plain_value(one, budget, depth + 1) for one in sorted(value, key=str)]
    text = value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)
    return replace_surrogates(text)


class FrontMatterError(LinkStoreError, ValueError):
    """The front matter is not a YAML mapping, or is too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """The front matter of a page.

    Args:
        fields: All of it, as plain JSON: dates as ISO 8601, keys as strings.
        title: ``title``; may be empty.
        aliases: ``aliases`` or ``alias``: other names of the page.
        tags: ``tags`` or ``tag``, without ``#``.
        categories: ``categories`` or ``category``.
        urls: ``permalink``, ``slug`` and ``redirect_from``: where else the page is, or was.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


NO_FRONT_MATTER: Final = FrontMatter()


def split_front_matter(text: str) -> tuple[str, str]:
    """Split a page into its front matter, empty if it has none, and its body."""
    found = _BLOCK.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)


def read_front_matter(source: str) -> FrontMatter:
    """Read front matter.

    Args:
        source: What stands between the lines, may be empty.

    Raises:
        FrontMatterError: If it is not YAML, not a mapping, too large or too deep.
    """
    if not source.strip():
        return NO_FRONT_MATTER
    if len(source) > LONGEST_FRONT_MATTER:
        raise FrontMatterError(
            f"the front matter has {len(source):,} characters; up to {LONGEST_FRONT_MATTER:,} are read"
        )
    if _MERGES.search(source):  # a few of them can make a loader build billions of entries
        raise FrontMatterError("the front matter has merge keys (<<), which are not read")
    try:
        _check_depth(source)
        read = yaml.load(source, Loader=_LOADER)  # noqa: S506 (a safe loader)
    except FrontMatterError:
        raise
    except (yaml.YAMLError, RecursionError) as error:
        raise FrontMatterError(
            f"the front matter is not valid YAML: {' '.join(str(error).split())}"
        ) from error
    except _UNFIT as error:
        raise FrontMatterError(
            f"the front matter has a value that is not of its type ({' '.join(str(error).split())});"
            " quote it to make it text"
        ) from error
    if read is None:
        return NO_FRONT_MATTER
    if not isinstance(read, dict):
        raise FrontMatterError(f"the front matter is a {type(read).__name__}, not a list of names and values")
    try:
        fields = make_plain(read)
    except NotPlainError as error:
        raise FrontMatterError(f"the front matter holds {error}") from error
    title = fields.get("title")
    return FrontMatter(
        fields=fields,
        title=str(title).strip() if isinstance(title, str | int | float) else "",
        aliases=_list_names(fields, ("aliases", "alias")),
        tags=tuple(tag.lstrip("#") for tag in _list_names(fields, ("tags", "tag"), apart=_BETWEEN_TAGS)),
        categories=_list_names(fields, ("categories", "category")),
        urls=_list_names(fields, ("permalink", "slug", "redirect_from"))[:_MOST_URLS],
    )


def _check_depth(source: str) -> None:
    """Refuse nesting that would overflow the stack of a loader, which calls itself for each inner list."""
    depth = 0
    for event in yaml.parse(source, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST_VALUE + 1:  # the mapping itself is not counted
                raise FrontMatterError(f"the front matter has lists in lists more than {DEEPEST_VALUE} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _list_names(
    fields: Mapping[str, Any], keys: Iterable[str], apart: re.Pattern[str] | None = None
) -> tuple[str, ...]:
    """Return the names under these keys: in a list, or alone in a string, or in one string set apart."""
    found: list[str] = []
    for key in keys:
        value = fields.get(key)
        values = value if isinstance(value, list) else [value]
        for one in values:
            if isinstance(one, str | int | float) and not isinstance(one, bool):
                found.extend(apart.split(str(one)) if apart and value is one else [str(one)])
    return tuple(dict.fromkeys(name for one in found if (name := one.strip())))


def read_markdown_page(content: bytes, *, encoding: str | None = None) -> PageContent:
    """Read a page of Markdown (CommonMark with tables, title named by YAML front matter).

    Headings get the ids that GitHub gives them, unless they name one: ``## Heading {#id}``.

    Args:
        content: The file.
        encoding: Of the file. None (default) takes UTF-8, else windows-1252.

    Raises:
        UnreadablePageError: If the page is binary, mostly not in its encoding, or without text.
    """
    found = decode_page(content, encoding)
    front, body = split_front_matter(found.text)
    title = _TITLE.search(front)
    page = read_markdown_content(render_markdown(body), title=title[1].strip("\"'") if title else "")
    return replace(page, replaced=found.replaced, guessed=found.guessed)


def read_markdown_content(page: RenderedMarkdown, *, title: str, bare: bool = False) -> PageContent:
    """Return the content of a page of Markdown.

    Args:
        page: As HTML.
        title: If not empty, the page's title, whatever its headings say.
        bare: Whether a heading alone is a page.

    Raises:
        UnreadablePageError: If there is no text.
    """
    found = read_page_content(parse_page(f"<main>{page.html}</main>"), title=title, bare=bare)
    return replace(found, plain=page.plain)


def render_markdown(text: str, dialect: Dialect = COMMONMARK, *, mdx: bool = False) -> RenderedMarkdown:
    """Render Markdown as HTML whose headings have ids.

    Args:
        text: Markdown.
        dialect: What may be in it.
        mdx: Whether it is MDX. Its components may also be in other Markdown.
    """
    text = unindent_tabs(text)
    if not mdx and not has_jsx(text):
        return render_events(text, dialect)
    return render_events(replace_jsx(text), dialect, mdx=True)
