"""A vault of Markdown notes as a source of pages, and how its links are resolved.

Templates, of which notes are made, are left out: a template says nothing by itself, and its links and tags
are those of notes to come. They are the notes in the folder that Obsidian's own plugin for them is set to,
and, in a folder called ``templates``, the notes with the placeholders of that plugin or of Templater.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote

import xxhash
from langchain_core.documents import Document

from linkstore.core.links import Link
from linkstore.extract.blocks import fold_whitespace
from linkstore.extract.html import DecodedText
from linkstore.extract.protocol import Chunk, Hyperlink, Page
from linkstore.ingest.chunks import make_chunks
from linkstore.ingest.documents import Claims
from linkstore.ingest.files import Listing, PageFile, list_pages, open_folder, quote_path
from linkstore.ingest.folders import Folder
from linkstore.ingest.html.folder import read_file_content
from linkstore.ingest.html.pages import decode_page
from linkstore.ingest.notes.bundles import Bundles
from linkstore.ingest.notes.frontmatter import (
    NO_FRONT_MATTER,
    FrontMatter,
    FrontMatterError,
    is_usable_tag,
    make_tag_links,
    read_front_matter,
    split_front_matter,
)
from linkstore.ingest.notes.markdown import read_markdown_content
from linkstore.ingest.notes.markup import (
    TAG_SCHEME,
    NoteIndex,
    find_property_links,
    find_targets,
    render_note,
)
from linkstore.ingest.notes.routes import Routes, find_sites
from linkstore.ingest.outlines import Outlines
from linkstore.ingest.settings import PathSettings, hash_values
from linkstore.ingest.source import BadInput, EmptyPageError, SourcePage, UnreadablePageError
from linkstore.ingest.suffixes import HTML_SUFFIXES, NOTE_SUFFIXES
from linkstore.ingest.titles import PageTitles

_VAULT_FOLDERS: Final = (".obsidian", ".foam", "logseq")
"""What the programs that make a vault put into it."""
_MAX_NOTES: Final = 500
_MAX_READ: Final = 64 * 2**10
"""How many notes of a folder are looked at, and how many bytes of each, to tell whether it is a vault."""
_NOTES_A_PAGE: Final = 10
"""So many notes for each page of HTML, or more, as there are in a repository around a vault."""
_WIKILINK: Final = re.compile(r"(?<![\\`\[])\[\[([^\]|#\n]{1,200})(?:[|#][^\]\n]{0,200})?\]\](?!`)")
_FENCE: Final = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
_TEMPLATES: Final = "templates of notes"
"""How a summary counts them."""
_TEMPLATE_SETTINGS: Final = ".obsidian/templates.json"
_TEMPLATE_BYTES: Final = 64 * 2**10
"""Bytes of the settings, and of a note in which placeholders are looked for."""
_TEMPLATE_FOLDERS: Final = frozenset({"templates", "_templates"})
_PLACEHOLDER: Final = re.compile(rb"\{\{\s*(?:title|date|time)\s*(?::[^{}\n]{0,100})?\}\}|<%[-_*+]?\s*tp\.")


def is_vault(folder: Path) -> bool:
    """Say whether a folder is a vault: a program made it one, or a note names another beside little HTML."""
    try:
        if any((folder / name).is_dir() for name in _VAULT_FOLDERS):
            return True
        html = (path for path in folder.rglob("*.htm*") if path.suffix.lower() in HTML_SUFFIXES)
        built = sum(1 for _ in islice(html, _MAX_NOTES // _NOTES_A_PAGE + 1))
        files = (path for path in folder.rglob("*.md") if path.is_file())  # a pipe would be waited for
        notes = [path.relative_to(folder).as_posix() for path in islice(files, _MAX_NOTES)]
        if _NOTES_A_PAGE * built > len(notes):
            return False
        index = NoteIndex(notes, {})
        return any(
            index.resolve_name(name, note) not in {None, note}
            for note in notes
            for name in _find_wikilinks(folder / note)
        )
    except OSError:
        return False  # the source reports what cannot be read


def _find_wikilinks(note: Path) -> list[str]:
    """Return the names in double brackets at the beginning of a note, but for those in blocks of code."""
    with note.open("rb") as file:
        read = file.read(_MAX_READ)
    return _WIKILINK.findall(_FENCE.sub("", read.decode(errors="replace"))) if b"[[" in read else []


@dataclass(frozen=True, slots=True)
class VaultSource(PathSettings):
    """The notes of a vault, by path.

    ``[[wikilinks]]``, embeds and links between notes are of kind ``hyperlink``. Tags, in the text and in the
    front matter, are of kind ``tag``, categories of kind ``category``. Those of the front matter lie on the
    first document of their note. Front matter becomes metadata.

    Args:
        path: The vault's folder.

    Its other settings are those of :class:`~linkstore.ingest.settings.PathSettings`.
    """

    def open(self) -> AbstractContextManager[VaultNotes]:
        """List the vault.

        Raises:
            SourceNotFoundError: If there is no such folder.
        """
        return self.resume({})

    def resume(self, outlines: Mapping[str, str]) -> AbstractContextManager[VaultNotes]:
        """List the vault, whose unchanged files need not be read: see :meth:`open`."""
        folder = open_folder(self.path, "the folder of a vault")
        listing = _leave_out_templates(list_pages(folder, NOTE_SUFFIXES))
        return nullcontext(VaultNotes(self, listing, outlines))


class VaultNotes:
    """The notes of a vault, in one run. Their front matter is read twice, for the aliases of all come first.

    Args:
        settings: How notes are read.
        listing: Which files are notes.
        outlines: What the last run said of its notes, by their names in the store.
    """

    def __init__(self, settings: PathSettings, listing: Listing, outlines: Mapping[str, str]) -> None:
        self._settings = settings
        self._listing = listing
        self._files = listing.files
        self.site: Final = settings.make_site(settings.bases or ())
        self._claims = Claims(settings.claims, settings.bases or ())
        self._outlines = Outlines(self._files, settings, outlines, all_front_matter=True)
        self._titles = PageTitles(self._outlines.titles.items())
        self._bundles = Bundles(self._files, self._outlines)
        self._routes = Routes()
        self._notes = NoteIndex((), {})
        self._salt = hash_values(settings.limits, settings.encoding, settings.claims)

    @property
    def unread(self) -> Mapping[str, int]:
        """The number of files that are pages to a reader and are not read here, by kind, most first."""
        return self._listing.unread

    def __len__(self) -> int:
        """Return the number of notes."""
        return len(self._files)

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the notes by path. A note with broken front matter is offered without it, and reported."""
        yield from self._listing.problems
        self._name_notes()
        for file in self._files:
            yield from self._offer(file, known.get(file.url))

    def reread(self, paths: Collection[str]) -> list[SourcePage | BadInput]:
        """Return the notes with these paths as they are now, with all else as it was at the run."""
        return [
            offer
            for file in self._files
            if file.page in paths
            for offer in self._offer(replace(file, stamp=""))
        ]

    def _offer(self, file: PageFile, known: str | None = None) -> Iterator[SourcePage | BadInput]:
        outline = self._outlines.get(file)
        if known and outline.around == (around := self._hash_around(file, outline.targets)):
            stored = self._outlines.kept[file.url]
            yield SourcePage(url=file.url, digest=known, read=partial(self._read, file), outline=stored)
            return
        content = read_file_content(file, self._settings.max_bytes)
        if isinstance(content, BadInput):
            yield content
            return
        try:
            note = decode_page(content, self._settings.encoding)
        except UnreadablePageError as error:
            yield BadInput(name=file.url, reason=str(error), empty=isinstance(error, EmptyPageError))
            return
        around = self._hash_around(file, find_targets(note.text))
        stored = self._outlines.write(file, around, content)
        block, body = split_front_matter(note.text)
        try:
            front = read_front_matter(block)
        except FrontMatterError as error:
            front, stored = NO_FRONT_MATTER, ""
            yield BadInput(name=f"{file.url} (front matter)", reason=str(error))
        yield SourcePage(
            url=file.url,
            digest=xxhash.xxh3_128_hexdigest(f"{around}\0{note.text}".encode(errors="replace")),
            read=partial(self._chunks, file, front, note._replace(text=body)),
            size=len(body),
            outline=stored,
        )

    def _read(self, file: PageFile) -> Sequence[Chunk] | Sequence[Document]:
        *_, offer = self._offer(file)
        if isinstance(offer, BadInput):
            raise UnreadablePageError(offer.reason)
        return offer.read()

    def _name_notes(self) -> None:
        """Learn the names of all notes: their paths, their aliases, and where they are published."""
        aliases: dict[str, list[str]] = {}
        fields: dict[str, Mapping[str, Any]] = {}
        for file in self._files:
            front = self._outlines.get(file).front
            fields[file.page] = front.fields
            for alias in front.aliases:
                aliases.setdefault(alias, []).append(file.page)
        folder = self._listing.folder
        self._routes = Routes(fields, find_sites(folder, fields), folder.path.name)
        self._notes = NoteIndex(fields, aliases, self._routes)

    def _hash_around(self, file: PageFile, targets: Iterable[str]) -> str:
        """Return a hash of all that a note is made of but its text, such as where its links lead."""
        named, linked = self._notes.find, self._notes.resolve_path
        leads = sorted(
            str((target, named(target, file.page), linked(target, file.page))) for target in targets
        )
        known_as = (file.url, file.aliases, self._routes.get_published(file.page))
        around = f"{self._titles.describe(file.url)}{self._bundles.describe(file.page)}"
        state = f"{self._salt}{known_as}{leads}{around}"
        return xxhash.xxh3_128_hexdigest(state.encode(errors="replace"))

    def _chunks(self, file: PageFile, front: FrontMatter, body: DecodedText) -> list[Chunk]:
        notes = self._notes
        stem, named = PurePosixPath(file.name).stem, fold_whitespace(front.title)
        html = render_note(body.text, file.page, notes)
        if front.fields and not body.text.strip():  # a note may be known by its properties alone
            html = f"<h1>{escape(named or stem)}</h1>"
        content = read_markdown_content(html, title=named, bare=True)
        content = self._titles.disambiguate(content, file.url)
        route = self._routes.get_published(file.page)
        published = () if route is None else (quote_path(route),)
        urls = [url for url in front.urls if not published or url != front.fields.get("slug")]
        believed = {url: self._claims.trusts(self.site.page_tag(url) or "") for url in urls}
        page = Page(
            url=file.url,
            title=self._bundles.get_title(file.page) or content.title,
            aliases=(*file.aliases, *published, *(url for url in urls if believed[url])),
            metadata=front.metadata,
            disbelieved=tuple(self.site.page_tag(url) or url for url in urls if not believed[url]),
            replaced=body.replaced,
            guessed=body.guessed,
        )
        chunks = make_chunks(page, content.blocks, self._settings.limits)
        tagged = [f"[[{name}]]" for name in front.linked if notes.resolve_name(name, file.page)]
        links = tuple(find_property_links([front.fields, tagged], file.page, notes))
        chunks[0] = replace(chunks[0], hyperlinks=(*links, *chunks[0].hyperlinks))
        chunks = [_add_tags(chunk, front if chunk.index == 0 else NO_FRONT_MATTER) for chunk in chunks]
        return self._bundles.complete(chunks, file.page, self.site)


def _add_tags(chunk: Chunk, front: FrontMatter) -> Chunk:
    """Add the tags of a chunk, and those of the front matter, as links."""
    written = (unquote(link.href.removeprefix(TAG_SCHEME)) for link in chunk.hyperlinks if _is_tag_link(link))
    names = filter(is_usable_tag, map(fold_whitespace, front.categories))
    categories = (Link.bidir(kind="category", tag=name) for name in names)
    return replace(
        chunk,
        hyperlinks=tuple(link for link in chunk.hyperlinks if not _is_tag_link(link)),
        links=(*chunk.links, *make_tag_links((*front.tags, *written)), *categories),
    )


def _is_tag_link(link: Hyperlink) -> bool:
    return link.href.startswith(TAG_SCHEME)


def _leave_out_templates(listing: Listing) -> Listing:
    """Return a listing of a vault without its templates, which are counted."""
    chosen = _find_template_folder(listing.folder)
    kept = tuple(file for file in listing.files if not _is_template(file, chosen))
    count = len(listing.files) - len(kept)
    unread = Counter({**listing.unread, **({_TEMPLATES: count} if count else {})})
    return replace(listing, files=kept, unread=dict(unread.most_common()))


def _find_template_folder(folder: Folder) -> str:
    """Return the folder of templates that Obsidian is set to, empty without one."""
    try:
        settings = json.loads(folder.read(_TEMPLATE_SETTINGS, _TEMPLATE_BYTES))
    except (OSError, UnreadablePageError, ValueError, RecursionError):
        return ""  # there is none, or Obsidian could not read it either
    name = settings.get("folder") if isinstance(settings, dict) else None
    lead = posixpath.normpath(name.strip("/")) if isinstance(name, str) else "."
    return "" if lead == "." else lead


def _is_template(file: PageFile, chosen: str) -> bool:
    if chosen and file.page.startswith(f"{chosen}/"):
        return True
    if _TEMPLATE_FOLDERS.isdisjoint(part.lower() for part in file.page.split("/")[:-1]):
        return False
    try:
        return _PLACEHOLDER.search(file.folder.head(file.page, _TEMPLATE_BYTES)) is not None
    except (OSError, UnreadablePageError):
        return False  # it is read again, and then reported
