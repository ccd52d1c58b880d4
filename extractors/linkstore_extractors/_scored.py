"""Links from keywords that another package found and scored."""

from __future__ import annotations

import re
from collections.abc import Iterable

from linkstore.links import Direction, Link, merge_links
from linkstore.text import fold


def scored_links(
    scored: Iterable[tuple[str, float]], text: str, *, kind: str, direction: Direction
) -> tuple[Link, ...]:
    """Make one link for each keyword, heaviest first, equal ones by tag.

    Args:
        scored: Keywords, each with a weight. Those of no weight are left out.
        text: Where they come from. A label is the keyword as first written there.
        kind: Kind of the links.
        direction: Direction of the links.
    """
    links = merge_links(
        Link(
            kind=kind,
            tag=fold(keyword),
            direction=direction,
            label=_as_written(keyword, text),
            weight=min(1.0, float(weight)),
        )
        for keyword, weight in scored
        if weight > 0 and fold(keyword)
    )
    return tuple(sorted(links, key=lambda link: (-link.weight, link.tag)))


def _as_written(keyword: str, text: str) -> str:
    found = re.search(re.escape(keyword), text, re.IGNORECASE)
    return found[0] if found else keyword
