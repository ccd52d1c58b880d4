"""Limits for HTML pages: estimates the cost of parsing a page before it is parsed.

Parsers of HTML take time and memory in proportion to the page, except for a few constructions. This module
refuses or rewrites those. The visible text does not change.
"""

from __future__ import annotations

from typing import Final

from linkstore.errors import ExtractionError
from linkstore.extraction.nesting import Nesting
from linkstore.extraction.order import in_order
from linkstore.extraction.tags import Tag, Tags, attribute_names

DEEPEST: Final = 512
"""Maximum depth of elements; browsers move deeper ones out to this depth."""
MOST_ATTRIBUTES: Final = 1000
"""Maximum number of attributes of one element."""
MOST_OPTIONS: Final = 1000
"""Maximum number of options in the lists of a page; further ones are left out, as they are not its text."""

_REOPENED: Final = 20_000
_CHARACTERS_EACH: Final = 4
_MOVED: Final = 50_000
_COMPARED: Final = 10_000_000
_COMPARED_EACH: Final = 100
_ROOTS: Final = frozenset({"html", "body"})


class UnboundedPageError(ExtractionError):
    """A page would take far more time or memory to parse than its length says."""


def bounded(page: str) -> str:
    """Return a page that takes time and memory in proportion to its length.

    Args:
        page: HTML.

    Returns:
        The page, in which elements that hold text only hold no tags.

    Raises:
        UnboundedPageError: If its elements lie too deep, have too many attributes, or are opened or moved too
            often by tags that are not closed in order.
    """
    if in_order(page):
        return page
    tags, nesting, options = Tags(page), Nesting(), 0
    roots: set[str] = set()
    for tag in tags:
        if tag.name == "option" and not tag.closing:
            options += 1
            if options > MOST_OPTIONS:
                tags.leave_out(tag)
                continue
        if tag.name in _ROOTS:
            roots.update(attribute_names(tag.attributes))  # a parser gives the first those of all
            _check_number(tag.name, roots)
        _follow(nesting, tag, len(page))
        tags.in_foreign = nesting.in_foreign
    return tags.written()


def _follow(nesting: Nesting, tag: Tag, length: int) -> None:
    """Apply a tag to the open elements, and check that the page stays within its bounds."""
    if tag.text:
        nesting.text()
    if tag.closing:
        nesting.end(tag.name)
        if nesting.moved > _MOVED + length:
            raise UnboundedPageError("elements are closed out of order too often to be moved")
        return
    if len(tag.attributes) > MOST_ATTRIBUTES:
        _check_number(tag.name, set(attribute_names(tag.attributes)))
    nesting.start(tag.name, tag.attributes)
    if nesting.depth > DEEPEST:
        raise UnboundedPageError(f"its elements lie more than {DEEPEST} deep")
    if nesting.reopened > _REOPENED + length // _CHARACTERS_EACH:
        raise UnboundedPageError(
            "formatting elements that are not closed, and their attributes, would be opened again"
            f" {nesting.reopened:,} times"
        )
    if nesting.compared > _COMPARED + length * _COMPARED_EACH:
        raise UnboundedPageError("formatting elements that are not closed have too many attributes")


def _check_number(name: str, attributes: set[str]) -> None:
    if len(attributes) > MOST_ATTRIBUTES:
        raise UnboundedPageError(f"a <{name[:40]}> has more than {MOST_ATTRIBUTES:,} attributes")
