"""The shape of a page, once it is parsed."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser


def depth_of(html):
    """How deep the elements of a page lie, and how many there are."""
    deepest = count = 0
    waiting = [(LexborHTMLParser(html).root, 0)]
    while waiting:
        node, depth = waiting.pop()
        deepest, count = max(deepest, depth), count + 1
        waiting += ((child, depth + 1) for child in node.iter())
    return deepest, count
