"""Renders the events of a Markdown parser as HTML whose headings have ids.

The parser is pulldown-cmark, by way of pyromark, whose time and memory grow with the length of any text. Its
events, and the HTML, take time for each element, so that the number of elements is bounded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape
from textwrap import dedent
from typing import Any, Final, NamedTuple

from pyromark.event import Range as Place

from linkstore.ingest.notes.lines import heading_id, line_html
from linkstore.ingest.notes.pieces import Dialect, Piece

_FREE: Final = 40_000
_EACH: Final = 5
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
_END: Final = Piece("end", "")
_LINES_END: Final = {"SoftBreak": "\n", "HardBreak": "<br />\n"}


class Rendered(NamedTuple):
    """HTML, and how many characters of the source are plain text in it because there was too much markup."""

    html: str
    plain: int


def rendered(text: str, dialect: Dialect, *, mdx: bool = False) -> Rendered:
    """Render Markdown as HTML.

    Args:
        text: Markdown.
        dialect: What may be in it.
        mdx: Whether indented text is ordinary text, as in MDX.
    """
    writer = _Writer(dialect, mdx=mdx, most=_FREE + len(text) // _EACH)
    writer.write(text)
    return Rendered("".join(writer.out), writer.plain)


@dataclass(slots=True)
class _Open:
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


class _Writer:
    """Writes HTML. The pieces of a line wait until it is complete."""

    def __init__(self, dialect: Dialect, *, mdx: bool, most: int) -> None:
        self._dialect = dialect
        self._mdx = mdx
        self._left = most
        self._open: list[_Open] = [_Open("", 0)]
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
            name, value = _parts(event)
            if name == "End":
                self._end(value if isinstance(value, str) else _parts(value)[0], depth)
                continue
            if self._code is not None:
                self._code.append(value)
                continue
            kind, details = _parts(value) if name == "Start" else (name, value)
            self._left -= self._text_cost(value) if name == "Text" else _COSTS.get(kind, _COST)
            if self._left < 0:
                self._write_plain(self._source[place["start"] :].decode(errors="replace"))
                break
            if name == "Start":
                self._begin(kind, details)
            else:
                self._add(name, value, place)
        self._source = outer

    def _text_cost(self, text: str) -> int:
        """Return the cost of a text, up to the store."""
        return 1 + _COSTS["Link"] * self._dialect.links_in(text)

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
            self._run.append(_link(_INLINE[name], details))
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
        self._open.append(_Open(tag, at, around.last))
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
            self._name(block.at, heading_id(run, self._slugs))
            self.out.append(f'<a id="{escape(named)}"></a>' if named else "")
        elif named:
            self._name(block.at if run else block.before, named)
        self.out.append(line_html(run, self._dialect, self._source))

    def _name(self, at: int | None, id: str) -> None:
        """Give an element in the output an id, unless it has one."""
        tag = self.out[at] if at is not None and at < len(self.out) else ""
        if at is not None and tag and " id=" not in tag:
            self.out[at] = f'{tag[:-1]} id="{escape(id)}">'


def _parts(event: Any) -> tuple[str, Any]:
    """Return the name of an event or element, and its details, emptying the event."""
    if isinstance(event, str):
        return event, ""
    name, value = event.popitem()
    return name, value


def _link(kind: str, details: dict[str, Any]) -> Piece:
    found = details["link_type"]
    address = str(details["dest_url"])
    if isinstance(found, dict):
        return Piece(kind, address, type="labelled" if found["WikiLink"]["has_pothole"] else "wiki")
    address = f"mailto:{address}" if found == "Email" else address
    return Piece(kind, address, title=details["title"])
