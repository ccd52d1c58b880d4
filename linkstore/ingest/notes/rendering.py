"""Renders the events of a Markdown parser as HTML whose headings have ids.

The pieces of a line (a paragraph, heading, item or table cell without blocks in it) wait until it is
complete; a dialect of Markdown may change them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import dedent
from typing import Any, Final, NamedTuple
from unicodedata import category

from pyromark import Markdown, Options
from pyromark.event import Range as Place

_NOT_IN_URLS: Final = re.compile(r"""[\x00-\x20\x7f"<>\\^`{|}]""")
_CUSTOM_ID: Final = re.compile(r"(?:(?<!\s)\s++)?\{:?\s*+#([\w.:\x80-\U0010ffff-]++)[^{}]*+\}\s*+\Z")
_NOT_IN_SLUGS: Final = re.compile(r"[^\w\- ]+")
_TEXT_KINDS: Final = frozenset({"text", "literal", "code"})
_FREE_COST: Final = 40_000
_CHARACTERS_PER_COST: Final = 5
"""The budget of a page is _FREE, plus 1 for every _EACH characters. One unit is about 3 µs of work."""
_COSTS: Final = {
    "Emphasis": 1,
    "Strong": 1,
    "Strikethrough": 1,
    "Link": 4,
    "Image": 4,
    "Heading": 8,
    "List": 4,
    "Table": 6,
    "TableHead": 4,
}
_COST: Final = 2
"""The cost of any other element."""
_DEEPEST: Final = 60
"""Lists and quotations nested deeper are read as what is in them."""
_DEEPEST_CODE: Final = 8
_TAGS: Final = {
    "Paragraph": "p",
    "Item": "li",
    "BlockQuote": "blockquote",
    "CodeBlock": "pre",
    "Table": "table",
    "TableHead": "thead",
    "TableRow": "tr",
}
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_NESTING: Final = frozenset({"Item", "List", "BlockQuote"})
_INLINE: Final = {"Link": "link", "Image": "image"}
_UNSEEN: Final = frozenset({"Emphasis", "Strong", "Strikethrough"})
"""Not in the HTML: what reads it makes no difference for them."""
_MATH: Final = {"InlineMath": "$", "DisplayMath": "$$"}
_KINDS: Final = {"Code": "code", "InlineHtml": "html"}
_LINES_END: Final = {"SoftBreak": "\n", "HardBreak": "<br />\n"}


class Piece(NamedTuple):
    """An inline element of a line of Markdown."""

    kind: str
    """``text``; ``literal``, a text without markup in it; ``code``, ``html``, ``break``; ``link`` and
    ``image``, and the ``end`` of either."""
    value: str
    """Its text; of a link or image, where it leads."""
    start: int = 0
    """The beginning of a text in the source, in bytes."""
    end: int = 0
    """The end of the text, in bytes."""
    type: str = ""
    """The sort of a link or image: ``wiki``, ``labelled`` for a wikilink with a label, else empty."""
    title: str = ""
    """Of a link or image; may be empty."""


class Dialect:
    """CommonMark with tables and struck-out text. Subclasses say what else there is."""

    parser: Markdown = Markdown(options=Options.ENABLE_TABLES | Options.ENABLE_STRIKETHROUGH)

    def line(self, run: list[Piece]) -> list[Piece]:
        """Return the pieces of a line that are shown.

        Args:
            run: The pieces of a paragraph, heading, table cell or item.
        """
        return run

    def block_id(self, run: list[Piece]) -> str | None:
        """Take the id that a block gives itself off its end and return it, None if there is none."""
        del run
        return None

    def text(self, piece: Piece, source: bytes, *, first: bool) -> str:
        """Render a text as HTML.

        Args:
            piece: The text.
            source: Of the page.
            first: Whether it begins a line.
        """
        del source, first
        return escape(piece.value, quote=False)

    def links_in(self, text: str) -> int:
        """Return how many links a text may become, at most."""
        del text
        return 0

    def href(self, piece: Piece) -> str | None:
        """Return the target of a link, or None if it has none."""
        return encode_url(piece.value)

    def label(self, piece: Piece) -> str | None:
        """Return the text that replaces the label of a link, or None to keep the label."""
        del piece
        return None


COMMONMARK: Final = Dialect()


def encode_url(url: str) -> str:
    """Percent-encode the characters that must not be in a URL."""
    return _NOT_IN_URLS.sub(lambda found: f"%{ord(found[0]):02X}", url)


def slug(heading: str) -> str:
    """Return the id that GitHub gives a heading: lower case, no punctuation, hyphens for spaces.

    Marks stay, for words of many scripts have vowel signs: ``हिन्दी`` is all of the id of that heading.
    """
    return _NOT_IN_SLUGS.sub(_keep_marks, heading.strip().lower()).replace(" ", "-")


def _keep_marks(found: re.Match[str]) -> str:
    return "".join(one for one in found[0] if category(one)[0] == "M")


def make_heading_id(run: list[Piece], slugs: Counter[str]) -> str:
    """Return the id that a heading names, which is taken off its pieces, else the one GitHub gives it.

    Args:
        run: The pieces of the heading.
        slugs: How often GitHub's id was asked for on the page.
    """
    last = run[-1] if run else None
    named = _CUSTOM_ID.search(last.value) if last is not None and last.kind == "text" else None
    if named and last is not None:
        run[-1] = last._replace(value=last.value[: named.start()])
        return named[1]
    base = slug("".join(_list_texts(run)))
    slugs[base] += 1
    return base if slugs[base] == 1 else f"{base}-{slugs[base] - 1}"


def render_line(run: Sequence[Piece], dialect: Dialect, source: bytes) -> str:
    """Render the pieces of a line as HTML.

    Args:
        run: The pieces.
        dialect: What texts and links mean.
        source: Of the page.
    """
    if len(run) == 1 and run[0].kind == "text":
        return dialect.text(run[0], source, first=True)
    out: list[str] = []
    closing: list[str] = []
    at = 0
    while at < len(run):
        piece = run[at]
        at += 1
        if piece.kind == "text":
            first = at == 1 or run[at - 2].kind == "break"
            out.append(dialect.text(piece, source, first=first))
        elif piece.kind == "end":
            out.append(closing.pop() if closing else "")
        elif piece.kind == "image" and not piece.type:
            stop = _find_link_end(run, at)
            said = escape("".join(_list_texts(run[at:stop])))
            out.append(f'<img src="{escape(encode_url(piece.value))}" alt="{said}" />')
            at = stop + 1
        elif piece.kind in {"link", "image"}:
            href = dialect.href(piece)
            said = f' title="{escape(piece.title)}"' if piece.title else ""
            opened, closed = ("", "") if href is None else (f'<a href="{escape(href)}"{said}>', "</a>")
            label = dialect.label(piece)
            if label is None:
                out.append(opened)
                closing.append(closed)
            else:
                out += (opened, escape(label, quote=False), closed)
                at = _find_link_end(run, at) + 1
        elif piece.kind == "code":
            out.append(f"<code>{escape(piece.value, quote=False)}</code>")
        else:
            out.append(escape(piece.value, quote=False) if piece.kind == "literal" else piece.value)
    return "".join((*out, *reversed(closing)))


def _find_link_end(run: Sequence[Piece], at: int) -> int:
    """Return the end of the link or image that was opened before a place."""
    depth = 1
    for number in range(at, len(run)):
        depth += {"link": 1, "image": 1, "end": -1}.get(run[number].kind, 0)
        if not depth:
            return number
    return len(run)


def _list_texts(run: Sequence[Piece]) -> list[str]:
    """Return the texts of pieces, without those of images."""
    found: list[str] = []
    within = 0
    for piece in run:
        if piece.kind == "image" or (within and piece.kind == "link"):
            within += 1
        elif piece.kind == "end":
            within = max(0, within - 1)
        elif not within and piece.kind in _TEXT_KINDS:
            found.append(piece.value)
    return found


_END: Final = Piece("end", "")


class RenderedMarkdown(NamedTuple):
    """HTML, and how many characters of the source are plain text in it because there was too much markup."""

    html: str
    plain: int


def render_events(text: str, dialect: Dialect, *, mdx: bool = False) -> RenderedMarkdown:
    """Render Markdown as HTML.

    Args:
        text: Markdown.
        dialect: What may be in it.
        mdx: Whether indented text is ordinary text, as in MDX.
    """
    writer = _HtmlWriter(dialect, mdx=mdx, most=_FREE_COST + len(text) // _CHARACTERS_PER_COST)
    writer.write(text)
    return RenderedMarkdown("".join(writer.out), writer.plain)


@dataclass(slots=True)
class _OpenElement:
    """An element not yet closed, and where it lies in the output.

    Args:
        tag: Its tag; empty for one that is not written.
        at: Its own place.
        before: That of the element before it, if there is one in the same element.
        last: That of the last element in it so far.
    """

    tag: str
    at: int
    before: int | None = None
    last: int | None = None


class _HtmlWriter:
    """Writes HTML. The pieces of a line wait until it is complete."""

    def __init__(self, dialect: Dialect, *, mdx: bool, most: int) -> None:
        self._dialect = dialect
        self._mdx = mdx
        self._left = most
        self._open: list[_OpenElement] = [_OpenElement("", 0)]
        self._run: list[Piece] = []
        self._code: list[str] | None = None
        self._slugs: Counter[str] = Counter()
        self._source = b""
        self.out: list[str] = []
        self.plain = 0

    def write(self, text: str, depth: int = 0) -> None:
        """Write a text as HTML, and as plain text from where there are too many elements."""
        outer, self._source = self._source, text.encode()
        for event, place in self._dialect.parser.events_with_range(text, merge_text=True):
            name, value = _split_event(event)
            if name == "End":
                self._end(value if isinstance(value, str) else _split_event(value)[0], depth)
                continue
            if self._code is not None:
                self._code.append(value)
                continue
            kind, details = _split_event(value) if name == "Start" else (name, value)
            if name == "Text":  # up to the store
                self._left -= 1 + _COSTS["Link"] * self._dialect.links_in(value)
            else:
                self._left -= _COSTS.get(kind, _COST)
            if self._left < 0:
                self._write_plain(self._source[place["start"] :].decode(errors="replace"))
                break
            if name == "Start":
                self._begin(kind, details)
            else:
                self._add(name, value, place)
        self._source = outer

    def _write_plain(self, rest: str) -> None:
        self._flush()
        while len(self._open) > 1:
            self._close()
        self._code = None
        self.plain += len(rest)
        self.out.append(f"<pre>\n{escape(rest, quote=False)}</pre>\n")

    def _begin(self, name: str, details: Any) -> None:
        if name in _UNSEEN:
            return
        if name in _INLINE:
            self._run.append(_make_link_piece(_INLINE[name], details))
            return
        if self._run:
            self._flush()
        if name == "CodeBlock":
            self._code = []
            if self._mdx and details == "Indented":
                return
        if name != "HtmlBlock":
            self._open_element(self._tag(name, details))

    def _tag(self, name: str, details: Any) -> str:
        if name in _NESTING and len(self._open) > _DEEPEST:
            return ""
        if name == "List":
            return "ul" if details is None else "ol"
        if name == "Heading":
            return str(details["level"]).lower()
        if name == "TableCell":
            return "th" if self._open[-1].tag == "thead" else "td"
        return _TAGS[name]

    def _open_element(self, tag: str) -> None:
        around, at = self._open[-1], len(self.out)
        self._open.append(_OpenElement(tag, at, around.last))
        around.last = at
        self.out.append(f"<{tag}>" if tag else "")

    def _end(self, name: str, depth: int) -> None:
        if name in _UNSEEN:
            return
        if name in _INLINE:
            self._run.append(_END)
            return
        if name == "CodeBlock":
            self._end_code(depth)
            return
        if self._run:
            self._flush()
        if name != "HtmlBlock":
            self._close()

    def _end_code(self, depth: int) -> None:
        text, self._code = "".join(self._code or ()), None
        if self._open[-1].tag == "pre":
            self.out.append(f"<code>{escape(text, quote=False)}</code>")
            self._close()
        elif depth < _DEEPEST_CODE:
            self.write(dedent(text), depth + 1)
        else:
            self.out.append(f"<p>{escape(text, quote=False)}</p>\n")

    def _close(self) -> None:
        tag = self._open.pop().tag
        if tag:
            self.out.append(f"</{tag}>\n")

    def _add(self, name: str, value: str, place: Place) -> None:
        if name == "Text":
            self._run.append(Piece("text", value, place["start"], place["end"]))
        elif name in _KINDS:
            self._run.append(Piece(_KINDS[name], value))
        elif name in _LINES_END:
            self._run.append(Piece("break", _LINES_END[name]))
        elif name in _MATH:
            sign = _MATH[name]
            self._run.append(Piece("literal", f"{sign}{value}{sign}"))
        elif name == "Html":
            self.out.append(value)
        elif name == "Rule":
            self._flush()
            self.out.append("<hr />\n")

    def _flush(self) -> None:
        """Write the line that waits, if one does, and give its block its id."""
        if not self._run:
            return
        run, self._run = self._dialect.line(self._run), []
        block = self._open[-1]
        named = self._dialect.block_id(run)
        if block.tag in _HEADINGS:
            self._name(block.at, make_heading_id(run, self._slugs))
            self.out.append(f'<a id="{escape(named)}"></a>' if named else "")
        elif named:
            self._name(block.at if run else block.before, named)
        self.out.append(render_line(run, self._dialect, self._source))

    def _name(self, at: int | None, id: str) -> None:
        """Give an element in the output an id, unless it has one."""
        tag = self.out[at] if at is not None and at < len(self.out) else ""
        if at is not None and tag and " id=" not in tag:
            self.out[at] = f'{tag[:-1]} id="{escape(id)}">'


def _split_event(event: Any) -> tuple[str, Any]:
    """Return the name of an event or element, and its details, emptying the event."""
    if isinstance(event, str):
        return event, ""
    name, value = event.popitem()
    return name, value


def _make_link_piece(kind: str, details: dict[str, Any]) -> Piece:
    found = details["link_type"]
    address = str(details["dest_url"])
    if isinstance(found, dict):
        return Piece(kind, address, type="labelled" if found["WikiLink"]["has_pothole"] else "wiki")
    address = f"mailto:{address}" if found == "Email" else address
    return Piece(kind, address, title=details["title"])
