"""The Markdown of notes: wikilinks, embeds, block ids, tags, callouts and comments.

A wikilink becomes an ordinary link, a block id the ``id`` of its element, and a tag a link of a scheme of
our own, by which it is told from links.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from html import escape
from typing import Final
from urllib.parse import quote, unquote

from pyromark import Markdown, Options

from linkstore.extraction import Hyperlink
from linkstore.ingest.files import quoted
from linkstore.ingest.notes.comments import without_comments
from linkstore.ingest.notes.esm import without_esm
from linkstore.ingest.notes.lines import slug
from linkstore.ingest.notes.markdown import to_html
from linkstore.ingest.notes.notes import Notes
from linkstore.ingest.notes.pieces import Dialect, Piece, encoded
from linkstore.ingest.notes.rendering import Rendered
from linkstore.text import joining

TAG_SCHEME: Final = "x-linkstore-tag:"
"""Stands before the tag in the ``href`` of what was ``#tag``."""

_CALLOUT: Final = re.compile(r"\[!([\w\x80-\U0010ffff-]{1,40})\][+-]?[ \t]*")
_PROPERTY_LINK: Final = re.compile(r"\[\[([^\[\]\n]{1,1000})\]\]")
_BLOCK_ID: Final = re.compile(r"(?:^|[ \t\n])\^([A-Za-z0-9-]+)[ \t]*$")
_TARGETS: Final = re.compile(
    r"\[\[([^\]|#\n]{0,1000})|\]\(\s*<?([^)>#\s]{1,1000})|^ {0,3}\[[^\]\n]{1,999}\]:\s*([^#\s]{1,1000})",
    re.MULTILINE,
)
_CLINGING: Final = frozenset({b"*", b"_", b"~", b"\\"})
"""Markup before the first word of a line; directly after it, no tag begins."""
_MEDIA: Final = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".bmp", ".mp3", ".mp4", ".webm", ".wav")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


def note_html(text: str, path: str, notes: Notes) -> Rendered:
    """Render the body of a note as HTML.

    Args:
        text: Its Markdown, without front matter.
        path: Where the note lies, from the root of the vault.
        notes: Of the vault.
    """
    mdx = path.lower().endswith(".mdx")
    if mdx:
        text = without_esm(text, _NoteDialect.parser)
    return to_html(without_comments(text), _NoteDialect(path, notes), mdx=mdx)


def property_links(value: object, path: str, notes: Notes) -> Iterator[Hyperlink]:
    """Yield the wikilinks in the properties of a note, its front matter.

    Args:
        value: Plain JSON.
        path: Where the note lies, from the root of the vault.
        notes: Of the vault.
    """
    if isinstance(value, str):
        for found in _PROPERTY_LINK.finditer(value):
            target, _, label = found[1].partition("|")
            href = _href(target, path, notes)
            if href is not None:
                yield Hyperlink(href=href, label=label.strip() or _shown(target))
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from property_links(one, path, notes)
    elif isinstance(value, list):
        for one in value:
            yield from property_links(one, path, notes)


def targets(text: str) -> set[str]:
    """Return possible links in the Markdown of a note, including code, by a cheap search, not a parse."""
    return {next(filter(None, found.groups()), "") for found in _TARGETS.finditer(text)}


class _NoteDialect(Dialect):
    """The Markdown of one note.

    Args:
        path: Where the note lies, from the root of the vault.
        notes: Of the vault.
    """

    parser = Markdown(
        options=Options.ENABLE_TABLES
        | Options.ENABLE_STRIKETHROUGH
        | Options.ENABLE_WIKILINKS
        | Options.ENABLE_MATH
    )

    def __init__(self, path: str, notes: Notes) -> None:
        self._path = path
        self._notes = notes
        self._led: dict[tuple[str, str], str | None] = {}

    def line(self, run: list[Piece]) -> list[Piece]:
        """Return a line without comments, and with the title of a callout."""
        if any(piece.kind == "text" and "%%" in piece.value for piece in run):
            run = list(_without_comments(run))
        found = _CALLOUT.match(run[0].value) if run and run[0].kind == "text" else None
        if found is None:
            return run
        title, *others = run
        untitled = found.end() == len(title.value) and others and others[0].kind == "break"
        said = found[1].capitalize() if untitled else title.value[found.end() :]
        return [title._replace(value=said), *others]

    def block_id(self, run: list[Piece]) -> str | None:
        """Take ``^id`` off the end of a block and return it. A line that is only that becomes empty."""
        last = run[-1] if run else None
        found = _BLOCK_ID.search(last.value) if last is not None and last.kind == "text" else None
        if found is None or last is None:
            return None
        before = run[-2] if len(run) > 1 else None
        if found[0].startswith("^") and before is not None and before.kind != "break":
            return None
        run[-1] = last._replace(value=last.value[: found.start()].rstrip())
        if before is None and not run[-1].value:
            run.clear()
        return f"^{found[1]}"

    def text(self, piece: Piece, source: bytes, *, first: bool) -> str:
        """Return the text with links for its tags."""
        if "#" not in piece.value:
            return super().text(piece, source, first=first)
        return "".join(_with_tags(piece, source, first=first))

    def links_in(self, text: str) -> int:
        """Count the tags in a text, each of which becomes a link."""
        return len(_tags(text)) if "#" in text else 0

    def href(self, piece: Piece) -> str | None:
        """Return the file of the note that a link means, or None for a file that is not a note."""
        written = (piece.type, piece.value)
        if written not in self._led:
            self._led[written] = self._found(piece)
        return self._led[written]

    def _found(self, piece: Piece) -> str | None:
        if piece.type:
            target = _target(piece)
            return _href(target, self._path, self._notes) if _is_target(target) else None
        if _SCHEME.match(piece.value):
            return encoded(piece.value)
        return _mended(encoded(piece.value), self._path, self._notes)

    def label(self, piece: Piece) -> str | None:
        """Return the visible text of a wikilink without label. Brackets without a target stay as they are."""
        if not piece.type:
            return None
        target = _target(piece)
        if not _is_target(target):
            return f"{'!' * (piece.kind == 'image')}[[{piece.value}]]" if piece.type == "wiki" else None
        return _shown(target) if piece.type == "wiki" else None


def _without_comments(run: Sequence[Piece]) -> Iterator[Piece]:
    """Yield the pieces without ``%% what nobody is shown %%``. A mark that no other follows is text."""
    marks = sum(piece.value.count("%%") for piece in run if piece.kind == "text")
    hidden = False
    for piece in run:
        if piece.kind != "text":
            if not hidden or piece.kind == "end":
                yield piece
            continue
        shown: list[str] = []
        for number, part in enumerate(piece.value.split("%%")):
            if number:
                marks -= 1
                if marks or hidden:
                    hidden = not hidden
                else:
                    shown.append("%%")
            shown.append("" if hidden else part)
        yield piece._replace(value="".join(shown))


def _with_tags(piece: Piece, source: bytes, *, first: bool) -> Iterator[str]:
    """Yield the HTML of a text. ``#tag`` at the start of a word is a link, unless it is escaped."""
    text, written = piece.value, source[piece.start : piece.end].decode(errors="replace")
    begins = first and source[max(0, piece.start - 1) : piece.start] not in _CLINGING
    meant = None if written == text else {found[0] for found in _tags(written)}
    done = 0
    for found in _tags(text):
        if (not found.start() and not begins) or (meant is not None and found[0] not in meant):
            continue
        yield escape(text[done : found.start()], quote=False)
        yield f'<a href="{TAG_SCHEME}{quote(found[1])}">{escape(found[0], quote=False)}</a>'
        done = found.end()
    yield escape(text[done:], quote=False)


def _tags(text: str) -> list[re.Match[str]]:
    """Find each ``#tag`` at the start of a word: letters with marks, digits, ``_-/``, but not a number."""
    return list(_tag_pattern(joining(text)).finditer(text))


@lru_cache(maxsize=256)
def _tag_pattern(marks: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\S)#(?=[\w/{marks}-]*[^\W\d_])([\w/-][\w/{marks}-]*)")


def _target(piece: Piece) -> str:
    """Return what a wikilink names. In a table, a backslash stands before what divides it from its label."""
    return piece.value.removesuffix("\\") if piece.type == "labelled" else piece.value


def _is_target(target: str) -> bool:
    return bool(target.strip()) and "\n" not in target and "[[" not in target


def _shown(target: str) -> str:
    """Return the visible text of a wikilink without label."""
    return " > ".join(filter(None, (part.strip() for part in target.split("#")))) or target.strip()


def _href(target: str, page: str, notes: Notes) -> str | None:
    """Return the URL of a wikilink, relative to its page, or None for a file that is not a note."""
    name, _, place = target.partition("#")
    found = notes.named(name, page)
    suffix = posixpath.splitext(name.strip())[1]
    if found is None and suffix and not suffix[1:].isdigit() and " " not in suffix:
        found = name.strip().lstrip("/")
        if found.lower().endswith(_MEDIA):
            return None
    return _url(found or f"{name.strip().lstrip('/')}.md", _fragment(place.rpartition("#")[2]), page)


def _fragment(place: str) -> str:
    place = place.strip()
    return place if place.startswith("^") else slug(place)


def _url(path: str, fragment: str, page: str) -> str:
    relative = "" if path == page else quoted(posixpath.relpath(path, posixpath.dirname(page) or "."))
    return f"{relative}#{quote(fragment)}" if fragment else relative or quoted(posixpath.basename(page))


def _mended(href: str, page: str, notes: Notes) -> str:
    """Lead a link between notes as authors write it, without suffix or by name, to the note's file."""
    address, _, fragment = href.partition("#")
    fragment = unquote(fragment)
    if fragment != fragment.lower() or " " in fragment:
        fragment = _fragment(fragment)
    path, mark, query = address.partition("?")
    found = notes.linked(path, page) if path else page
    if found is None or mark:
        return f"{path}{mark}{query}#{quote(fragment)}" if fragment else address
    return _url(found, fragment, page)
