"""The Markdown of notes: wikilinks, embeds, block ids, tags, callouts and comments.

For ``[[Note]]`` Obsidian takes, in this order: the note at exactly this path in the vault, the one in the
folder of the page with the link, and the one with the shortest path (as observed on Obsidian 1.13.7 by
``metadataCache.getFirstLinkpathDest``; its documentation says only "shortest path when possible").
Upper and lower case are the same; ``.md`` may be left out; ``[[b/Note]]`` also finds ``a/b/Note.md``;
``./`` and ``../`` mean just what they say. What names no file may be an alias, or a folder with an
``index.md`` or ``README.md``. Comments are removed where they take up whole lines.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import quote, unquote

from pyromark import Markdown, Options

from linkstore.core.text import find_joining
from linkstore.extract.protocol import Hyperlink
from linkstore.ingest.files import quote_path
from linkstore.ingest.notes.dialects import make_fence_reader, remove_esm
from linkstore.ingest.notes.markdown import render_markdown
from linkstore.ingest.notes.rendering import Dialect, Piece, RenderedMarkdown, encode_url, slug

_MOST_FOLDERS: Final = 32
"""Number of last parts of its path by which a note is found; by more only if that is the whole path."""
_INDEX_NAMES: Final = ("index", "readme")
_FENCE: Final = re.compile(r"[ >]*(`{3,}+|~{3,}+)(.*)")
_COMMENT_OPENING: Final = re.compile(r"[ \t>]*%%")
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


class NoteIndex:
    """The notes of a vault, by all the names that lead to them.

    Args:
        paths: From the root of the vault, with ``/`` and suffix.
        aliases: Alias → the notes that say it is theirs.
    """

    def __init__(self, paths: Iterable[str], aliases: Mapping[str, Iterable[str]]) -> None:
        self._exact: dict[str, str] = {}
        self._ending: dict[str, str] = {}
        for path in sorted(paths, key=lambda path: (len(path), path)):
            for name in (_fold_name(path), _fold_name(posixpath.splitext(path)[0])):
                self._exact.setdefault(name, path)
                for ending in _iter_endings(name):
                    self._ending.setdefault(ending, path)
        self._aliases = {
            _fold_name(alias): min(owners, key=lambda path: (len(path), path))
            for alias, owners in ((alias, list(owners)) for alias, owners in aliases.items())
            if owners
        }

    def named(self, name: str, page: str) -> str | None:
        """Return the note that ``[[name]]`` means, or None if there is none.

        Args:
            name: As written, without heading and label, empty for the page itself.
            page: The path of the note it is written in.
        """
        name = name.strip()
        if not name:
            return page
        if name.startswith(("./", "../")):
            return self._at(posixpath.join(posixpath.dirname(page), name))
        return (
            self._file(name)
            or self._nearest(name, page)
            or self._aliases.get(_fold_name(name))
            or self._at(name)
        )

    def linked(self, path: str, page: str) -> str | None:
        """Return the note that a Markdown link means: relative to its page, else as ``[[path]]``.

        Args:
            path: As written, without fragment.
            page: The path of the note it is written in.
        """
        path = unquote(path)
        if path.startswith("/"):
            return self._at(path)
        return self._at(posixpath.join(posixpath.dirname(page), path)) or self.named(path, page)

    def _file(self, path: str) -> str | None:
        """Return the note at a path from the root."""
        return self._exact.get(_fold_name(posixpath.normpath(path.lstrip("/"))))

    def _at(self, path: str) -> str | None:
        """Return the note at a path from the root: a file, or the index of a folder."""
        tried = (path, *(posixpath.join(path, name) for name in _INDEX_NAMES))
        return next((found for one in tried if (found := self._file(one))), None)

    def _nearest(self, name: str, page: str) -> str | None:
        """Return the note whose path ends so: in the page's folder, else the one with the shortest path."""
        wanted = _fold_name(name)
        beside = f"{_fold_name(posixpath.dirname(page))}/{posixpath.basename(wanted)}".lstrip("/")
        own = self._exact.get(beside) if f"/{beside}".endswith(f"/{wanted}") else None
        return own or self._ending.get(wanted)


def _iter_endings(path: str) -> Iterator[str]:
    """Yield a path, and the same without its first, its first two, … folders."""
    parts = path.split("/")
    for first in range(max(0, len(parts) - _MOST_FOLDERS), len(parts)):
        yield "/".join(parts[first:])


def _fold_name(name: str) -> str:
    """Fold a name to one spelling: macOS takes accents apart in the names of files."""
    return unicodedata.normalize("NFC", name.strip()).casefold()


def blank_comments(text: str) -> str:
    """Blank the comments of Markdown: from a line that begins with ``%%`` to the next line with ``%%``.

    Comments within a line, and what is in fenced code, stay.
    """
    if "%%" not in text:
        return text
    lines = text.split("\n")
    marked = [at for at, line in enumerate(lines) if "%%" in line]
    is_fenced = make_fence_reader(_FENCE)
    done = 0
    for at, line in enumerate(lines):
        if at < done or is_fenced(line) or not _COMMENT_OPENING.match(line) or line.count("%%") != 1:
            continue
        following = bisect_right(marked, at)
        if following < len(marked):
            done = marked[following] + 1
            lines[at:done] = [""] * (done - at)
    return "\n".join(lines)


def render_note(text: str, path: str, notes: NoteIndex) -> RenderedMarkdown:
    """Render the body of a note as HTML.

    Args:
        text: Its Markdown, without front matter.
        path: Where the note lies, from the root of the vault.
        notes: Of the vault.
    """
    mdx = path.lower().endswith(".mdx")
    if mdx:
        text = remove_esm(text, _NoteDialect.parser)
    return render_markdown(blank_comments(text), _NoteDialect(path, notes), mdx=mdx)


def find_property_links(value: object, path: str, notes: NoteIndex) -> Iterator[Hyperlink]:
    """Yield the wikilinks in the properties of a note, its front matter.

    Args:
        value: Plain JSON.
        path: Where the note lies, from the root of the vault.
        notes: Of the vault.
    """
    if isinstance(value, str):
        for found in _PROPERTY_LINK.finditer(value):
            target, _, label = found[1].partition("|")
            href = _resolve_wikilink(target, path, notes)
            if href is not None:
                yield Hyperlink(href=href, label=label.strip() or _format_target(target))
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from find_property_links(one, path, notes)
    elif isinstance(value, list):
        for one in value:
            yield from find_property_links(one, path, notes)


def find_targets(text: str) -> set[str]:
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

    def __init__(self, path: str, notes: NoteIndex) -> None:
        self._path = path
        self._notes = notes
        self._led: dict[tuple[str, str], str | None] = {}

    def line(self, run: list[Piece]) -> list[Piece]:
        """Return a line without comments, and with the title of a callout."""
        if any(piece.kind == "text" and "%%" in piece.value for piece in run):
            run = list(_remove_comments(run))
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
        return "".join(_write_tags(piece, source, first=first))

    def links_in(self, text: str) -> int:
        """Count the tags in a text, each of which becomes a link."""
        return len(_find_tags(text)) if "#" in text else 0

    def href(self, piece: Piece) -> str | None:
        """Return the file of the note that a link means, or None for a file that is not a note."""
        written = (piece.type, piece.value)
        if written not in self._led:
            self._led[written] = self._found(piece)
        return self._led[written]

    def _found(self, piece: Piece) -> str | None:
        if piece.type:
            target = _get_wikilink_target(piece)
            return _resolve_wikilink(target, self._path, self._notes) if _is_target(target) else None
        if _SCHEME.match(piece.value):
            return encode_url(piece.value)
        return _mend_href(encode_url(piece.value), self._path, self._notes)

    def label(self, piece: Piece) -> str | None:
        """Return the visible text of a wikilink without label. Brackets without a target stay as they are."""
        if not piece.type:
            return None
        target = _get_wikilink_target(piece)
        if not _is_target(target):
            return f"{'!' * (piece.kind == 'image')}[[{piece.value}]]" if piece.type == "wiki" else None
        return _format_target(target) if piece.type == "wiki" else None


def _remove_comments(run: Sequence[Piece]) -> Iterator[Piece]:
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


def _write_tags(piece: Piece, source: bytes, *, first: bool) -> Iterator[str]:
    """Yield the HTML of a text. ``#tag`` at the start of a word is a link, unless it is escaped."""
    text, written = piece.value, source[piece.start : piece.end].decode(errors="replace")
    begins = first and source[max(0, piece.start - 1) : piece.start] not in _CLINGING
    meant = None if written == text else {found[0] for found in _find_tags(written)}
    done = 0
    for found in _find_tags(text):
        if (not found.start() and not begins) or (meant is not None and found[0] not in meant):
            continue
        yield escape(text[done : found.start()], quote=False)
        yield f'<a href="{TAG_SCHEME}{quote(found[1])}">{escape(found[0], quote=False)}</a>'
        done = found.end()
    yield escape(text[done:], quote=False)


def _find_tags(text: str) -> list[re.Match[str]]:
    """Find each ``#tag`` at the start of a word: letters with marks, digits, ``_-/``, but not a number."""
    marks = find_joining(text)
    return list(re.finditer(rf"(?<!\S)#(?=[\w/{marks}-]*[^\W\d_])([\w/-][\w/{marks}-]*)", text))


def _get_wikilink_target(piece: Piece) -> str:
    """Return what a wikilink names. In a table, a backslash stands before what divides it from its label."""
    return piece.value.removesuffix("\\") if piece.type == "labelled" else piece.value


def _is_target(target: str) -> bool:
    return bool(target.strip()) and "\n" not in target and "[[" not in target


def _format_target(target: str) -> str:
    """Return the visible text of a wikilink without label."""
    return " > ".join(filter(None, (part.strip() for part in target.split("#")))) or target.strip()


def _resolve_wikilink(target: str, page: str, notes: NoteIndex) -> str | None:
    """Return the URL of a wikilink, relative to its page, or None for a file that is not a note."""
    name, _, place = target.partition("#")
    found = notes.named(name, page)
    suffix = posixpath.splitext(name.strip())[1]
    if found is None and suffix and not suffix[1:].isdigit() and " " not in suffix:
        found = name.strip().lstrip("/")
        if found.lower().endswith(_MEDIA):
            return None
    return _make_note_url(
        found or f"{name.strip().lstrip('/')}.md", _make_fragment(place.rpartition("#")[2]), page
    )


def _make_fragment(place: str) -> str:
    place = place.strip()
    return place if place.startswith("^") else slug(place)


def _make_note_url(path: str, fragment: str, page: str) -> str:
    relative = "" if path == page else quote_path(posixpath.relpath(path, posixpath.dirname(page) or "."))
    return f"{relative}#{quote(fragment)}" if fragment else relative or quote_path(posixpath.basename(page))


def _mend_href(href: str, page: str, notes: NoteIndex) -> str:
    """Lead a link between notes as authors write it, without suffix or by name, to the note's file."""
    address, _, fragment = href.partition("#")
    fragment = unquote(fragment)
    if fragment != fragment.lower() or " " in fragment:
        fragment = _make_fragment(fragment)
    path, mark, query = address.partition("?")
    found = notes.linked(path, page) if path else page
    if found is None or mark:
        return f"{path}{mark}{query}#{quote(fragment)}" if fragment else address
    return _make_note_url(found, fragment, page)
