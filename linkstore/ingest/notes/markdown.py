"""Reads a page's title and blocks from a file of Markdown, by way of HTML."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from linkstore.ingest.html.pages import PageContent, decoded, page_content, parsed
from linkstore.ingest.notes.frontmatter import split_front_matter
from linkstore.ingest.notes.indented import with_tabs
from linkstore.ingest.notes.jsx import uses_jsx, without_jsx
from linkstore.ingest.notes.pieces import COMMONMARK, Dialect
from linkstore.ingest.notes.rendering import Rendered, rendered

_TITLE: Final = re.compile(r"^title:\s*(.+?)\s*$", re.MULTILINE)


def read_markdown_page(content: bytes, *, encoding: str | None = None) -> PageContent:
    """Read a page of Markdown (CommonMark with tables, title named by YAML front matter).

    Headings get the ids that GitHub gives them, unless they name one: ``## Heading {#id}``.

    Args:
        content: The file.
        encoding: Of the file. None (default) takes UTF-8, else windows-1252.

    Raises:
        UnreadablePageError: If the page is binary, mostly not in its encoding, or without text.
    """
    found = decoded(content, encoding)
    front, body = split_front_matter(found.text)
    title = _TITLE.search(front)
    page = markdown_content(to_html(body), title=title[1].strip("\"'") if title else "")
    return replace(page, replaced=found.replaced, guessed=found.guessed)


def markdown_content(page: Rendered, *, title: str, bare: bool = False) -> PageContent:
    """Return the content of a page of Markdown.

    Args:
        page: As HTML.
        title: If not empty, the page's title, whatever its headings say.
        bare: Whether a heading alone is a page.

    Raises:
        UnreadablePageError: If there is no text.
    """
    found = page_content(parsed(f"<main>{page.html}</main>"), title=title, bare=bare)
    return replace(found, plain=page.plain)


def to_html(text: str, dialect: Dialect = COMMONMARK, *, mdx: bool = False) -> Rendered:
    """Render Markdown as HTML whose headings have ids.

    Args:
        text: Markdown.
        dialect: What may be in it.
        mdx: Whether it is MDX. Its components may also be in other Markdown.
    """
    text = with_tabs(text)
    if not mdx and not uses_jsx(text):
        return rendered(text, dialect)
    return rendered(without_jsx(text), dialect, mdx=True)
