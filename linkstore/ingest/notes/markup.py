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
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Final
from urllib.parse import quote, unquote

from pyromark import Markdown, Options

from linkstore.core.text import find_joining
from linkstore.extract.protocol import Hyperlink
from linkstore.ingest.files import quote_path
from linkstore.ingest.notes.markdown import MARK, Dialect, encode_url, render_markdown, slug
from linkstore.ingest.notes.routes import Routes

_MOST_FOLDERS: Final = 32
"""Number of last parts of its path by which a note is found; by more only if that is the whole path."""
_MOST_SIGNS: Final = 4
"""How many ``#`` the name of a note may have for wikilinks to lead to it."""
_INDEX_NAMES: Final = ("index", "readme")
_COMMENT: Final = re.compile(
    r"((?m:^[ >]*(?P<fence>`{3,}|~{3,})[^\n]*)(?s:.*?)(?:\n[ >]*(?P=fence)[`~]*[ \t]*(?=\n|\Z)|\Z)|`[^`\n]+`)"
    r"|(?m:^[ \t>]*)%%(?s:.*?)%%|%%(?:[^\n]|\n(?!\s*\n))*?%%"
)
"""Code; a comment: from a line that begins with ``%%`` to the next ``%%``, or within a paragraph."""
TAG_SCHEME: Final = "x-linkstore-tag:"
"""Stands before the tag in the ``href`` of what was ``#tag``."""
_CALLOUT: Final = re.compile(r"\[!([\w\x80-\U0010ffff-]{1,40})\][+-]?[ \t]*")
_PROPERTY_LINK: Final = re.compile(r"\[\[([^\[\]\n]{1,1000})\]\]")
_BLOCK_ID: Final = re.compile(r"(?:^|[ \t\n])\^([A-Za-z0-9-]+)\s*\Z")
_TARGETS: Final = re.compile(
    r"\[\[([^\]|\n]{0,1000})|\]\(\s*<?([^)>#\s]{1,1000})|^ {0,3}\[[^\]\n]{1,999}\]:\s*([^#\s]{1,1000})",
    re.MULTILINE,
)
_PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".bmp", ".avif")
_SOUNDS: Final = (".mp3", ".wav", ".m4a", ".ogg", ".3gp", ".flac")
_MEDIA: Final = (*_PICTURES, *_SOUNDS, ".mp4", ".webm", ".ogv", ".mov", ".mkv")
_DAY: Final = re.compile(r"(\d{4})[_-](\d\d)[_-](\d\d)")
_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_VAULT: Final = re.compile(r"dendron://[^/]*/")
"""What Dendron writes before the name of a note of another vault."""
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


class NoteIndex:
    """The notes of a vault, by all the names that lead to them.

    Args:
        paths: From the root of the vault, with ``/`` and suffix.
        aliases: Alias → the notes that say it is theirs.
        routes: Where the notes are published, None (default) for nowhere.
    """

    def __init__(
        self, paths: Iterable[str], aliases: Mapping[str, Iterable[str]], routes: Routes | None = None
    ) -> None:
        self._routes = routes or Routes()
        self._exact: dict[str, str] = {}
        self._ending: dict[str, str] = {}
        self._loose: dict[str, str] = {}
        for path in sorted(paths, key=lambda path: (len(path), path)):
            for name in (_fold_name(path), _fold_name(posixpath.splitext(path)[0])):
                self._exact.setdefault(name, path)
                for ending in _iter_endings(name):
                    self._ending.setdefault(ending, path)
                    self._loose.setdefault(_loosen_name(ending), path)
        self._aliases = {
            _fold_name(alias): min(owners, key=lambda path: (len(path), path))
            for alias, owners in ((alias, list(owners)) for alias, owners in aliases.items())
            if owners
        }

    def resolve_name(self, name: str, page: str) -> str | None:
        """Return the note that ``[[name]]`` means, or None if there is none.

        Args:
            name: As written, without heading and label, empty for the page itself.
            page: The path of the note it is written in.
        """
        name = _VAULT.sub("", name.strip())
        if not name:
            return page
        if name.startswith(("./", "../")):
            return self._at(posixpath.join(posixpath.dirname(page), name))
        return (
            self._file(name)
            or self._nearest(name, page)
            or self._aliases.get(_fold_name(name))
            or self._at(name)
            or self._loose.get(_loosen_name(name))
        )

    def find(self, target: str, page: str) -> tuple[str | None, str, str]:
        """Return the note that ``[[target]]`` means, the name of it, and the place in it.

        A ``#`` stands between them, and may be part of the name.
        """
        parts = target.split("#", _MOST_SIGNS)
        for end in range(1, len(parts) + 1):
            name = "#".join(parts[:end])
            if note := self.resolve_name(name, page):
                return note, name, "#".join(parts[end:])
        return None, parts[0], "#".join(parts[1:])

    def resolve_path(self, path: str, page: str) -> str | None:
        """Return the note that a Markdown link means: a file, one published there, else as ``[[path]]``.

        Args:
            path: As written, without fragment.
            page: The path of the note it is written in.
        """
        path = unquote(path)
        note = self._at(posixpath.join(posixpath.dirname(page), path)) or self._routes.find(path, page)
        return note or (None if path.startswith("/") else self.resolve_name(path, page))

    def _file(self, path: str) -> str | None:
        """Return the note at a path from the root."""
        return self._exact.get(_fold_name(posixpath.normpath(path.lstrip("/"))))

    def _at(self, path: str) -> str | None:
        """Return the note at a path from the root: a file, or the index of a folder."""
        tried = (path, *(posixpath.join(path, name) for name in _INDEX_NAMES))
        return next((note for candidate in tried if (note := self._file(candidate))), None)

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


def _loosen_name(name: str) -> str:
    """Return one spelling for a page's name and its file's, as other programs derive one from the other.

    GitHub's wikis write hyphens for spaces, Logseq writes ``___`` for ``/``, and days as 2024_01_31, which
    it calls "Jan 31st, 2024".
    """
    name = _fold_name(name).replace("___", "/")
    day = _DAY.fullmatch(name.rpartition("/")[2])
    if day and 1 <= int(day[2]) <= len(_MONTHS):
        number = int(day[3])
        ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number not in {11, 12, 13} else 0, "th")
        return f"{_MONTHS[int(day[2]) - 1]} {number}{ending}, {day[1]}"
    return name.replace("-", " ").replace("_", " ")


def render_note(text: str, path: str, notes: NoteIndex) -> str:
    """Render the body of a note as HTML.

    Args:
        text: Its Markdown, without front matter.
        path: Where the note lies, from the root of the vault.
        notes: Of the vault.
    """
    return render_markdown(text, _NoteDialect(path, notes), mdx=path.lower().endswith(".mdx"))


def find_property_links(value: object, path: str, notes: NoteIndex) -> Iterator[Hyperlink]:
    """Yield the wikilinks in the properties of a note, its front matter.

    Args:
        value: Plain JSON.
        path: Where the note lies, from the root of the vault.
        notes: Of the vault.
    """
    if isinstance(value, str):
        for match in _PROPERTY_LINK.finditer(value):
            target, _, label = match[1].partition("|")
            href = _resolve_wikilink(target, path, notes)
            if href is not None:
                yield Hyperlink(href=href, label=label.strip() or _format_target(target, path, notes))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from find_property_links(item, path, notes)
    elif isinstance(value, list):
        for item in value:
            yield from find_property_links(item, path, notes)


def find_targets(text: str) -> set[str]:
    """Return possible links in the Markdown of a note, including code, by a cheap search, not a parse."""
    return {next(filter(None, match.groups()), "") for match in _TARGETS.finditer(text)}


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
        self._resolve = cache(partial(_resolve_wikilink, page=path, notes=notes))

    def prepare(self, text: str) -> str:
        """Return the text without comments, with marks that tell wikilinks and escaped signs in its HTML."""
        if "%%" in text:
            text = _COMMENT.sub(lambda match: match[0] if match[1] else "\n" * match[0].count("\n"), text)
        for sign in ("[[", "\\#", "&#35;"):
            text = text.replace(sign, f"{sign}{MARK}")
        return text

    def follow(self, href: str) -> str:
        """Return the file of the note that a link means."""
        return href if _SCHEME.match(href) else _mend_href(encode_url(href), self._path, self._notes)

    def resolve(self, target: str, label: str | None) -> tuple[str | None, str | None]:
        """Return the file of the note that a wikilink means, none for a picture, and its text.

        GitHub's wikis write the label first: if the target is no note and the label is, they change places.
        """
        if not target.strip():
            return None, f"[[{target}]]"
        if label is None:
            return self._resolve(target), _format_target(target, self._path, self._notes)
        if not self._notes.find(target, self._path)[0] and self._notes.find(label, self._path)[0]:
            return self._resolve(label), target
        return self._resolve(target), None

    def write_text(self, text: str, *, first: bool) -> str:
        """Return the text with links for its tags, and with the title of a callout."""
        match = _CALLOUT.match(text) if first else None
        if match is not None:
            untitled = text[match.end() : match.end() + 1] in {"", "\n"}
            text = f"{match[1].capitalize() if untitled else ''}{text[match.end() :]}"
        return "".join(_write_tags(text, first=first)) if "#" in text else text

    def take_block_id(self, text: str, *, whole: bool) -> tuple[str, str]:
        """Take ``^id`` off the end of a block.

        A line of nothing else becomes empty.
        """
        match = _BLOCK_ID.search(text)
        if match is None or (not whole and match[0].startswith("^")):
            return text, ""
        return text[: match.start()].rstrip(), f"^{match[1]}"


def _write_tags(text: str, *, first: bool) -> Iterator[str]:
    """Yield the HTML of a text. ``#tag`` at the start of a word is a link, unless it is escaped."""
    done = 0
    for tag in _find_tags(text):
        if tag.start() or first:
            yield text[done : tag.start()]
            yield f'<a href="{TAG_SCHEME}{quote(tag[1])}">{tag[0]}</a>'
            done = tag.end()
    yield text[done:]


def _find_tags(text: str) -> list[re.Match[str]]:
    """Find each ``#tag`` at the start of a word: letters with marks, digits, ``_-/``, but not a number."""
    marks = find_joining(text).replace(MARK, "")
    return list(re.finditer(rf"(?<!\S)#(?!{MARK})(?=[\w/{marks}-]*[^\W\d_])([\w/-][\w/{marks}-]*)", text))


def _format_target(target: str, page: str, notes: NoteIndex) -> str:
    """Return the visible text of a wikilink without label."""
    _, name, place = notes.find(target, page)
    return " > ".join(filter(None, map(str.strip, (name, *place.split("#"))))) or target.strip()


def _resolve_wikilink(target: str, page: str, notes: NoteIndex) -> str | None:
    """Return the URL of a wikilink, relative to its page, or None for a file that is not a note."""
    note, name, place = notes.find(target, page)
    suffix = posixpath.splitext(name.strip())[1]
    if note is None and suffix and not suffix[1:].isdigit() and " " not in suffix:
        note = name.strip().lstrip("/")
        if note.lower().endswith(_MEDIA):
            return None
    return _make_note_url(
        note or f"{name.strip().lstrip('/')}.md", _make_fragment(place.rpartition("#")[2]), page
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
    note = notes.resolve_path(path, page) if path else page
    if note is None or mark:
        return f"{path}{mark}{query}#{quote(fragment)}" if fragment else address
    return _make_note_url(note, fragment, page)
