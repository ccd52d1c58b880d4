"""Reads a page's title and blocks from a file of Markdown, by way of HTML.

pyromark (pulldown-cmark) renders the HTML. One pass over its tags then gives headings the ids that GitHub
gives them, and lets a dialect, such as that of notes, say where links lead and what is in a text.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from html import escape, unescape
from itertools import islice
from typing import Final
from unicodedata import category
from urllib.parse import unquote

from pyromark import Markdown, Options

from linkstore.extract.blocks import fold_whitespace
from linkstore.ingest.html.pages import PageContent, decode_page, parse_page, read_page_content
from linkstore.ingest.notes.dialects import read_dialects
from linkstore.ingest.notes.frontmatter import (
    NO_FRONT_MATTER,
    FrontMatterError,
    find_front_title,
    read_front_matter,
    split_front_matter,
)

MARK: Final = "\ufdd0"
"""Stands behind ``[[`` and an escaped ``#`` while HTML is made; a noncharacter, which no text is meant to
have."""
_QUOTED_MARK: Final = "%EF%B7%90"
_NOT_IN_URLS: Final = re.compile(r"""[\x00-\x20\x7f"<>\\^`{|}]""")
_CUSTOM_ID: Final = re.compile(r"(?:(?<!\s)\s++)?\{:?\s*+#([\w.:\x80-\U0010ffff-]++)[^{}]*+\}\s*+\Z")
_NOT_IN_SLUGS: Final = re.compile(r"[^\w\- ]+")
_MARKUP: Final = re.compile(r"(<!--.*?(?:-->|\Z)|<[a-zA-Z/][^<>]*>)", re.DOTALL)
"""A comment that nothing closes goes on to the end, as for browsers."""
_TAG_NAME: Final = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)")
_HREF: Final = re.compile(r'(?<= href=")[^"]*')
_IMAGE: Final = re.compile(r'<img src="([^"]*)" alt="([^"]*)"')
_MAIN_HEADING: Final = re.compile(r"<h1\b[^>]*+>(.{1,500}?)</h1", re.IGNORECASE | re.DOTALL)
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCKS: Final = _HEADINGS | {"p", "li", "td", "th", "blockquote", "ul", "ol", "table", "pre", "dd", "dt"}
_BREAKS: Final = frozenset({"br", "input", *_BLOCKS})
_CODE: Final = frozenset({"code", "pre", "script", "style"})
_OPTIONS: Final = Options.ENABLE_TABLES | Options.ENABLE_STRIKETHROUGH


class Dialect:
    """CommonMark with tables and struck-out text. Subclasses say what else there is."""

    parser: Markdown = Markdown(options=_OPTIONS)

    def prepare(self, text: str) -> str:
        """Return the text that is given to the parser."""
        return text

    def follow(self, href: str) -> str:
        """Return where a link leads."""
        return href

    def resolve(self, target: str, label: str | None) -> tuple[str | None, str | None]:
        """Return where a wikilink leads, None for nowhere, and its text, None for its label as written.

        Args:
            target: What it names. What leads nowhere is a picture, if it is embedded.
            label: The label that it is written with, None without one.
        """
        del label
        return None, target

    def write_text(self, text: str, *, first: bool) -> str:
        """Return the HTML of a text.

        Args:
            text: As HTML.
            first: Whether it begins a block or a line.
        """
        del first
        return text

    def take_block_id(self, text: str, *, whole: bool) -> tuple[str, str]:
        """Split the text at the end of a block from the block's own id, which is empty without one.

        Args:
            text: As HTML.
            whole: Whether it is all that is in the block.
        """
        del whole
        return text, ""


COMMONMARK: Final = Dialect()


def encode_url(url: str) -> str:
    """Percent-encode the characters that must not be in a URL."""
    return _NOT_IN_URLS.sub(lambda match: f"%{ord(match[0]):02X}", url)


def slug(heading: str) -> str:
    """Return the id that GitHub gives a heading: lower case, no punctuation, hyphens for spaces.

    Marks stay, for words of many scripts have vowel signs: ``हिन्दी`` is all of the id of that heading.
    """

    def keep_marks(found: re.Match[str]) -> str:
        return "".join(character for character in found[0] if category(character)[0] == "M")

    return _NOT_IN_SLUGS.sub(keep_marks, heading.strip().lower()).replace(" ", "-")


def read_markdown_page(content: bytes, *, encoding: str | None = None) -> PageContent:
    """Read a page of Markdown (CommonMark with tables), with the metadata and the title of its front matter.

    Headings get the ids that GitHub gives them, unless they name one: ``## Heading {#id}``.

    Args:
        content: The file.
        encoding: Of the file. None (default) takes UTF-8, else windows-1252.

    Raises:
        UnreadablePageError: If the page is binary, mostly not in its encoding, or without text.
    """
    text = decode_page(content, encoding)
    block, body = split_front_matter(text.text)
    front, problem = NO_FRONT_MATTER, None
    try:
        front = read_front_matter(block)
    except FrontMatterError as error:
        problem = f"front matter: {error}"
    if front.fields and not body.strip():  # a page may be known by its properties alone
        body = f"# {front.title}\n\n{front.fields.get('description') or ''}"
    page = read_markdown_content(
        render_markdown(body), title=front.title or find_front_title(block), bare=bool(front.title)
    )
    page = replace(page, metadata=front.metadata, problem=problem)
    return replace(page, replaced=text.replaced, guessed=text.guessed)


def read_markdown_content(html: str, *, title: str, bare: bool = False) -> PageContent:
    """Return the content of a page of Markdown.

    Args:
        html: What it is as HTML.
        title: That of its front matter, may be empty: see
            :func:`~linkstore.ingest.html.pages.read_page_content`.
        bare: Whether a heading alone is a page.

    Raises:
        UnreadablePageError: If there is no text.
    """
    return read_page_content(parse_page(f"<main>{html}</main>"), title=title, bare=bare)


def render_markdown(text: str, dialect: Dialect = COMMONMARK, *, mdx: bool = False) -> str:
    """Render Markdown as HTML whose headings have ids.

    Args:
        text: Markdown without front matter.
        dialect: What may be in it.
        mdx: Whether it is MDX. Its components may also be in other Markdown.
    """
    html = dialect.parser.html(dialect.prepare(read_dialects(text, mdx=mdx)))
    return _Rewriter(dialect).rewrite(html)


def find_title(text: str, named: str) -> str:
    """Return the title of a page: its first heading of level 1, unless its front matter names it for sure.

    See :func:`~linkstore.ingest.html.pages.read_page_content`.

    Args:
        text: Markdown without front matter, which may be cut off.
        named: The title of its front matter, may be empty.
    """
    html = COMMONMARK.parser.html(text)
    headings = list(islice(_MAIN_HEADING.finditer(html), 2))
    if not headings or (named and (len(headings) > 1 or _read_text(html[: headings[0].start()]))):
        return named
    return _CUSTOM_ID.sub("", _read_text(headings[0][1]))


def _read_text(html: str) -> str:
    return fold_whitespace(unescape(_MARKUP.sub("", html)))


class _Rewriter:
    """Goes over the tags of the HTML that a parser made."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._out: list[str] = []
        self._open: list[_OpenBlock] = [_OpenBlock("", 0)]
        self._slugs: Counter[str] = Counter()
        self._closing: list[str] = []
        """What closes the links that are open."""
        self._code = 0
        self._math = ""

    def rewrite(self, html: str) -> str:
        """Return the HTML with ids and links."""
        pieces = _MARKUP.split(html)
        begins = True
        for at, piece in enumerate(pieces):
            if at % 2 == 0:
                if piece:
                    plain = self._code or self._math
                    self._out.append(piece if plain else self._dialect.write_text(piece, first=begins))
                    begins = False
                continue
            match = _TAG_NAME.match(piece)
            name = match[1].lower() if match else ""
            begins = name in _BREAKS
            if name in _CODE:
                self._code += -1 if piece.startswith("</") else 1
            if name == "a":
                pieces[at + 1] = self._write_link(piece, pieces[at + 1])
            elif name == "img":
                self._write_image(piece)
            elif name == "span" and (self._math or 'class="math' in piece):
                sign = self._math or ("$" if "inline" in piece else "$$")
                self._math = "" if self._math else sign
                self._out.append(sign)
            elif name in _BLOCKS and piece.startswith("</"):
                self._close(name)
                self._out.append(piece)
            else:
                if name in _BLOCKS:
                    around = self._open[-1]
                    self._open.append(_OpenBlock(name, len(self._out), around.last))
                    around.last = len(self._out)
                self._out.append(piece)
        return "".join(self._out).replace(MARK, "").replace(_QUOTED_MARK, "")

    def _write_link(self, tag: str, text: str) -> str:
        """Write the tag of a link, and return its text."""
        if tag.startswith("</"):
            self._out.append(self._closing.pop() if self._closing else tag)
            return text
        match = _HREF.search(tag)
        href = unescape(match[0]) if match else ""
        if href.startswith(_QUOTED_MARK):
            label = None if text.startswith(MARK) else unescape(text)
            led, display = self._dialect.resolve(_read_target(href), label)
            self._out.append("" if led is None else f'<a href="{escape(led)}">')
            self._closing.append("" if led is None else "</a>")
            return text if display is None else escape(display, quote=False)
        followed = escape(self._dialect.follow(href))
        self._out.append(f"{tag[: match.start()]}{followed}{tag[match.end() :]}" if match else tag)
        self._closing.append("</a>")
        return text

    def _write_image(self, tag: str) -> None:
        """Write the tag of an image, or of the link that an embed is."""
        match = _IMAGE.match(tag)
        if match is None or not match[1].startswith(_QUOTED_MARK):
            self._out.append(tag)
            return
        label = None if match[2].startswith(MARK) else unescape(match[2])
        target = _read_target(unescape(match[1]))
        led, display = self._dialect.resolve(target, label)
        text = escape(label or "" if display is None else display, quote=False)
        if led is None and target.strip():  # a picture, whose label may be a width
            self._out.append(f'<img src="{escape(target)}" alt="{escape(label or "")}">')
        else:
            self._out.append(text if led is None else f'<a href="{escape(led)}">{text}</a>')

    def _close(self, name: str) -> None:
        """Give the block that ends its id."""
        if len(self._open) == 1 or self._open[-1].name != name:
            return
        block = self._open.pop()
        whole = len(self._out) == block.at + 2
        text, named = self._dialect.take_block_id(self._out[-1], whole=whole)
        self._out[-1] = text
        if name in _HEADINGS:
            self._set_id(block.at, self._name_heading(block.at))
            self._out[block.at] += f'<a id="{escape(named)}"></a>' if named else ""
        elif named:
            self._set_id(block.at if text or not whole else block.before, named)

    def _name_heading(self, at: int) -> str:
        """Return the id given in a heading, removed from its text, or else the one GitHub gives it."""
        named = _CUSTOM_ID.search(self._out[-1])
        if named:
            self._out[-1] = self._out[-1][: named.start()]
            return named[1]
        text = "".join(_MARKUP.sub("", piece) for piece in self._out[at + 1 :])
        base = slug(unescape(text.replace(MARK, "")))
        self._slugs[base] += 1
        return base if self._slugs[base] == 1 else f"{base}-{self._slugs[base] - 1}"

    def _set_id(self, at: int | None, name: str) -> None:
        if at is not None and " id=" not in self._out[at]:
            self._out[at] = f'{self._out[at][:-1]} id="{escape(name)}">'


@dataclass(slots=True)
class _OpenBlock:
    """A block that is open.

    Args:
        name: Its element.
        at: Where its tag is in the output.
        before: Where that of the block before it is, if there is one in the same block.
        last: Where that of the last block in it is, so far.
    """

    name: str
    at: int
    before: int | None = None
    last: int | None = None


def _read_target(href: str) -> str:
    """Return the target of a wikilink.

    In a table, a backslash stands before the bar that divides it from its label.
    """
    return unquote(href.removeprefix(_QUOTED_MARK)).removesuffix("\\")
