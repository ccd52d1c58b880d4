"""From a file of Markdown to a page's title and blocks, by way of HTML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import MutableMapping
from functools import cache
from itertools import pairwise
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from linkstore.ingest.html.pages import PageContent, decoded, page_content, parsed
from linkstore.ingest.notes.frontmatter import split_front_matter
from linkstore.ingest.notes.indented import with_tabs
from linkstore.ingest.notes.jsx import uses_jsx, without_jsx

_TITLE: Final = re.compile(r"^title:\s*(.+?)\s*$", re.MULTILINE)
_CUSTOM_ID: Final = re.compile(r"(?:(?<!\s)\s++)?\{:?\s*+#([\w.:-]++)[^{}]*+\}\s*+\Z")
_NOT_IN_SLUGS: Final = re.compile(r"[^\w\- ]")


def read_markdown_page(content: bytes, *, encoding: str = "utf-8") -> PageContent:
    """Read a page of Markdown (CommonMark with tables; YAML front matter names the title).

    Headings get the ids that GitHub gives them, unless they name one: ``## Heading {#id}``.

    Args:
        content: The file.
        encoding: Of the file.

    Raises:
        UnreadablePageError: If the page is binary, not in its encoding, or without text.
    """
    text = decoded(content, encoding)
    front, body = split_front_matter(text)
    title = _TITLE.search(front)
    html = to_html(body)
    return page_content(parsed(f"<main>{html}</main>"), title=title[1].strip("\"'") if title else "")


def to_html(text: str, parser: MarkdownIt | None = None, env: MutableMapping[str, Any] | None = None) -> str:
    """Markdown as HTML whose headings have ids.

    Args:
        text: Markdown.
        parser: Default CommonMark with tables and struck-out text.
        env: What the rules of the parser are told; ``"mdx"`` says that the text is MDX.
    """
    parser = parser or _parser()
    env = {} if env is None else env
    tokens = _parsed(text, parser, env)
    slugs: Counter[str] = Counter()
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", _heading_id(inline, slugs))
    return str(parser.renderer.render(tokens, parser.options, env))


def _parsed(text: str, parser: MarkdownIt, env: MutableMapping[str, Any]) -> list[Token]:
    text = with_tabs(text)
    if not env.get("mdx") and not uses_jsx(text):
        return parser.parse(text, env)
    with parser.reset_rules():
        parser.disable("code")  # in MDX, indented text is not code
        return parser.parse(without_jsx(text), env)


def slug(heading: str) -> str:
    """The id that GitHub gives a heading: lower case, no punctuation, hyphens for spaces."""
    return _NOT_IN_SLUGS.sub("", heading.strip().lower()).replace(" ", "-")


def _heading_id(inline: Token, slugs: Counter[str]) -> str:
    named = _CUSTOM_ID.search(inline.content)
    if named:
        last = (inline.children or [inline])[-1]
        last.content = _CUSTOM_ID.sub("", last.content)
        return named[1]
    shown = (child.content for child in inline.children or () if child.type in {"text", "code_inline"})
    base = slug("".join(shown))
    slugs[base] += 1
    return base if slugs[base] == 1 else f"{base}-{slugs[base] - 1}"


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])
