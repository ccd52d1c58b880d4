"""YAML front matter: the text between ``---`` lines at the beginning of a page of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from linkstore.errors import LinkStoreError
from linkstore.ingest.notes.plain import DEEPEST, NotPlainError, plain

_BLOCK: Final = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t\r]*$\n?", re.DOTALL | re.MULTILINE
)
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BETWEEN_TAGS: Final = re.compile(r"[,\s]+")
_MOST_URLS: Final = 100
_MERGES: Final = re.compile(r"<<\s*:|!!merge")
_UNFIT: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What PyYAML raises, besides its own errors, for a value that does not fit its tag: ``!!timestamp soon``."""
LONGEST: Final = 64 * 2**10
"""Characters of front matter that are read."""


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


NONE: Final = FrontMatter()


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
        return NONE
    if len(source) > LONGEST:
        raise FrontMatterError(f"the front matter has {len(source):,} characters; up to {LONGEST:,} are read")
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
        return NONE
    if not isinstance(read, dict):
        raise FrontMatterError(f"the front matter is a {type(read).__name__}, not a list of names and values")
    try:
        fields = plain(read)
    except NotPlainError as error:
        raise FrontMatterError(f"the front matter holds {error}") from error
    title = fields.get("title")
    return FrontMatter(
        fields=fields,
        title=str(title).strip() if isinstance(title, str | int | float) else "",
        aliases=_names(fields, ("aliases", "alias")),
        tags=tuple(tag.lstrip("#") for tag in _names(fields, ("tags", "tag"), apart=_BETWEEN_TAGS)),
        categories=_names(fields, ("categories", "category")),
        urls=_names(fields, ("permalink", "slug", "redirect_from"))[:_MOST_URLS],
    )


def _check_depth(source: str) -> None:
    """Refuse nesting that would overflow the stack of a loader, which calls itself for each inner list."""
    depth = 0
    for event in yaml.parse(source, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST + 1:  # the mapping itself is not counted
                raise FrontMatterError(f"the front matter has lists in lists more than {DEEPEST} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _names(
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
