"""Decides which files of a folder are pages, and their URLs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from posixpath import splitext
from typing import Final

from linkstore.arguments import path_of
from linkstore.errors import LinkStoreError
from linkstore.extraction.bounds import UnboundedPageError
from linkstore.extraction.markup import canonical_href, parse_html
from linkstore.ingest.claims import origin
from linkstore.ingest.files import HTML_SUFFIXES, Folder, IsPage, quoted, suffix_of
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.source import BadInput
from linkstore.text import without_surrogates
from linkstore.urls import Site, UrlPolicy, normalize_url

MARKDOWN_SUFFIXES: Final = frozenset({".md", ".markdown"})
NOTE_SUFFIXES: Final = MARKDOWN_SUFFIXES | {".mdx"}
READ_AS: Final = {".mdx": "vault", **dict.fromkeys(sorted(HTML_SUFFIXES), "folder")}
"""The kind of source that reads what another one leaves out, by suffix."""

_OTHERS: Final = """
    .adoc .asciidoc .asp .aspx .creole .djvu .doc .docx .epub .fb2 .ipynb .jsp .mediawiki .mht .mhtml
    .odt .org .pdf .php .pod .pptx .qmd .rdoc .rmd .rst .rtf .tex .textile .txt .wiki
"""
_FOR_PEOPLE: Final = HTML_SUFFIXES | NOTE_SUFFIXES | frozenset(_OTHERS.split())
"""Files that are pages to a reader, whether or not they are read here."""
_INSTEAD: Final = {
    ".ipynb": "notebooks are not read; convert it (jupyter nbconvert --to markdown), and give the folder",
    ".rst": "reStructuredText is not read; build it (sphinx-build -b html), and give the folder of HTML",
    ".txt": 'plain text is not read; give JSON lines, {"id": …, "text": …}, or a folder of Markdown',
}
_LLMS: Final = frozenset({"llms.txt", "llms-full.txt"})
_OF_SPHINX: Final = frozenset({"search", "genindex", "genindex-all"})
"""At the root, its search form and its index of everything."""
_SPHINX: Final = ("searchindex.js", "objects.inv")
_FOLDER_PAGES: Final = frozenset({"readme.md", "index.md", "readme.markdown", "index.markdown"})
_SAMPLE: Final = 16
_LARGEST: Final = 16 * 2**20
_NAMED_TYPES: Final = 5
_FOLDED: Final = UrlPolicy(query="drop", fragment="drop", trailing_slash="strip")


class SourceNotFoundError(LinkStoreError, FileNotFoundError):
    """There is no folder of pages at the given path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file that is a page.

    Args:
        folder: Where it lies.
        page: Its path from there, with ``/``.
        url: The same as a URL: see :func:`~linkstore.ingest.files.quoted`.
        aliases: Further URL paths that lead to it, such as a README's folder.
    """

    folder: Folder
    page: str
    url: str
    aliases: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The path for people to read, in which what is not Unicode is replaced."""
        return without_surrogates(self.page)

    @property
    def is_markdown(self) -> bool:
        """Whether the file holds Markdown rather than HTML."""
        return splitext(self.page)[1].lower() in NOTE_SUFFIXES  # asked often; a path object takes 5 µs

    def read(self, most: int) -> bytes:
        """Read the content of the file, of this many bytes at most: see :meth:`Folder.read`."""
        return self.folder.read(self.page, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The pages of a folder, and what else there is to say of it.

    Args:
        files: The pages, by path.
        problems: What was not looked into, and why.
        unread: How many files are pages to a reader and not read, by kind, most first.
    """

    files: tuple[PageFile, ...]
    problems: tuple[BadInput, ...]
    unread: Mapping[str, int]


def list_pages(
    folder: Folder,
    is_page: IsPage | None = None,
    suffixes: AbstractSet[str] = HTML_SUFFIXES | MARKDOWN_SUFFIXES,
) -> Listing:
    """List the pages of a folder, by path.

    Hidden files and folders are left out, as are the folders that site builders keep no pages in
    (``_static``, ``_sources``, …) and, at the root of what Sphinx built, its search form and general index.

    Args:
        folder: Where to look.
        is_page: Whether a file is a page, by its path, default HTML and Markdown.
        suffixes: Which files are pages, for the message where there are none.
    """
    found = folder.find(is_page or partial(_is_page, by_sphinx=any(map(folder.has, _SPHINX))))
    known, in_language = set(found.names), _in_languages(found.names)
    files = tuple(
        PageFile(folder=folder, page=name, url=quoted(name), aliases=_aliases(name, known, in_language))
        for name in found.names
    )
    problems = found.problems if files else (*found.problems, _without_pages(found.others, suffixes))
    others = ((kind, count) for kind, count in found.others.items() if kind in _FOR_PEOPLE - suffixes)
    unread = Counter({**dict(others), **found.aside})
    return Listing(files=files, problems=problems, unread=dict(unread.most_common()))


def opened_folder(path: str | Path, wanted: str) -> Folder:
    """Open the folder at a path.

    Raises:
        SourceNotFoundError: If there is none.
    """
    if path_of("path", path).is_file():
        raise SourceNotFoundError(f"{str(path)!r} is a file; {instead_of(path) or f'give {wanted}'}")
    if not Path(path).is_dir():
        raise SourceNotFoundError(f"the folder {str(path)!r} does not exist; give {wanted}")
    return Folder(Path(path))


def instead_of(path: str | Path) -> str:
    """Say what to give instead of a file that is no source, empty where that is not known."""
    file = PurePath(path)
    suffix = suffix_of(file.name)
    if file.name.lower() in _LLMS:
        return "it lists the pages of a site; give the URL of the site, or the folder of its pages"
    if suffix in HTML_SUFFIXES | NOTE_SUFFIXES:
        option = f" and --as {READ_AS[suffix]}" if suffix not in HTML_SUFFIXES | MARKDOWN_SUFFIXES else ""
        return f"it is a single page; give its folder, {file.parent.as_posix()}{option}"
    if suffix in _FOR_PEOPLE:
        return _INSTEAD.get(
            suffix, f"{suffix} is not read; convert it to HTML or Markdown, and give the folder"
        )
    return ""


def unread_text(unread: Mapping[str, int]) -> str:
    """Describe kinds of files that were not read, such as ``12 .mdx``, and the option that reads them."""
    counts = ", ".join(f"{count:,} {kind}" for kind, count in unread.items())
    ways: dict[str, list[str]] = {}
    for kind in unread:
        if kind in READ_AS:
            ways.setdefault(READ_AS[kind], []).append(kind)
    return "; ".join((counts, *(f"--as {way} reads {', '.join(kinds)}" for way, kinds in ways.items())))


def _without_pages(others: Mapping[str, int], suffixes: AbstractSet[str]) -> BadInput:
    """Report that a folder holds no pages, and what it holds instead."""
    types = ", ".join(f"{count:,} {suffix}" for suffix, count in list(others.items())[:_NAMED_TYPES])
    more = ", …" if len(others) > _NAMED_TYPES else ""
    holds = f"only {sum(others.values()):,} other files ({types}{more})" if others else "no files"
    way = next((way for kind, way in READ_AS.items() if kind in others), None)
    hint = f" (--as {way} reads others)" if way else ""
    return BadInput(name=".", reason=f"it holds {holds}; pages are {', '.join(sorted(suffixes))}{hint}")


def detect_bases(files: Sequence[PageFile]) -> tuple[str, ...]:
    """Detect where a site lies in public, by the ``rel=canonical`` of a few of its pages.

    Returns:
        The base that most of them agree on, empty if they name none, none that fits their paths, or only a
        few of them do.
    """
    return _agreed((_base(file, url) for file, url in _canonical_urls(files)), files)


def detect_origins(files: Sequence[PageFile]) -> tuple[str, ...]:
    """Return the origin of the ``rel=canonical`` of a few pages, if most of them agree on it."""
    return _agreed((origin(url) for _, url in _canonical_urls(files)), files)


def _canonical_urls(files: Sequence[PageFile]) -> Iterable[tuple[PageFile, str]]:
    for file in _sample(files):
        try:
            href = canonical_href(parse_html(file.read(_LARGEST)))
        except (UnreadablePageError, UnboundedPageError, OSError):
            continue  # it is read again, and then reported
        url = normalize_url(href, policy=_FOLDED) if href else None
        if url is not None:
            yield file, url


def _sample(files: Sequence[PageFile]) -> Sequence[PageFile]:
    html = [file for file in files if not file.is_markdown]
    return html[:: max(1, len(html) // _SAMPLE)]


def _agreed(found: Iterable[str | None], files: Sequence[PageFile]) -> tuple[str, ...]:
    """Return the most frequent value, if most pages that have one agree and more than a planted few do."""
    said = list(found)
    votes = Counter(filter(None, said)).most_common(1)
    most, count = votes[0] if votes else ("", 0)
    sample = len(_sample(files))
    return (most,) if 2 * count > len(said) and 4 * count >= sample and count >= min(2, sample) else ()


def _is_page(path: PurePosixPath, *, by_sphinx: bool) -> bool:
    suffix = suffix_of(path.name)
    if path.name.startswith(".") or suffix not in HTML_SUFFIXES | MARKDOWN_SUFFIXES:
        return False
    if not by_sphinx or suffix in MARKDOWN_SUFFIXES:
        return True
    top = path.parent.name if path.stem == "index" and len(path.parts) == 2 else path.stem
    at_root = len(path.parts) == 1 or top != path.stem
    return not (at_root and (top in _OF_SPHINX or top.startswith("genindex-")))


def _in_languages(names: Iterable[str]) -> dict[str, str]:
    """Return the file that stands for ``page.html``, of ``page.html.de`` and ``page.html.en``: English."""
    found: dict[str, str] = {}
    for name in names:
        plain, language = splitext(name)
        if suffix_of(name) != language.lower() and (plain not in found or language == ".en"):
            found[plain] = name
    return found


def _aliases(name: str, known: set[str], in_language: Mapping[str, str]) -> tuple[str, ...]:
    folder, slash, file = name.rpartition("/")
    plain = splitext(name)[0]
    if in_language.get(plain) == name and plain not in known:
        return (quoted(plain),)
    if file.lower() not in _FOLDER_PAGES or known & {
        f"{folder}{slash}index.html",
        f"{folder}{slash}index.htm",
    }:
        return ()
    return (f"{quoted(folder)}/",)


def _base(file: PageFile, url: str) -> str | None:
    """Return the URL that, with the page's path, makes its canonical URL."""
    path = (Site().page_tag(file.url) or "").rstrip("/")
    for ending in (path, path.removesuffix(".html")):
        if url.rstrip("/").endswith(ending):
            return f"{url.rstrip('/').removesuffix(ending)}/"
    return None
