"""Decides which files of a folder are pages, and their URLs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from posixpath import splitext
from typing import Final

from linkstore.arguments import path_of
from linkstore.errors import LinkStoreError
from linkstore.extraction.bounds import UnboundedPageError
from linkstore.extraction.markup import canonical_href, parse_html
from linkstore.ingest.claims import origin
from linkstore.ingest.files import Folder, IsPage, quoted
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.source import BadInput
from linkstore.text import without_surrogates
from linkstore.urls import Site, UrlPolicy, normalize_url

HTML_SUFFIXES: Final = frozenset({".html", ".htm", ".xhtml"})
MARKDOWN_SUFFIXES: Final = frozenset({".md", ".markdown"})

_NO_PAGES: Final = frozenset({"search", "genindex", "genindex-all"})
"""At the root, Sphinx's search form and its index of everything."""
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
        """Its path for people to read: what is not Unicode in it is replaced."""
        return without_surrogates(self.page)

    @property
    def is_markdown(self) -> bool:
        """Whether it holds Markdown rather than HTML."""
        return splitext(self.page)[1].lower() in MARKDOWN_SUFFIXES  # asked often; a path object takes 5 µs

    def read(self, most: int) -> bytes:
        """Its content, of this many bytes at most: see :meth:`Folder.read`."""
        return self.folder.read(self.page, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The pages of a folder, and what else there is to say of it.

    Args:
        files: The pages, by path.
        problems: What was not looked into, and why.
    """

    files: tuple[PageFile, ...]
    problems: tuple[BadInput, ...]


def list_pages(
    folder: Folder,
    is_page: IsPage | None = None,
    suffixes: Collection[str] = HTML_SUFFIXES | MARKDOWN_SUFFIXES,
) -> Listing:
    """The pages of a folder, by path.

    Hidden files and folders are left out, as are the folders that site builders keep no pages in
    (``_static``, ``_sources``, …) and, at the root, the search form and the general index.

    Args:
        folder: Where to look.
        is_page: Whether a file is a page, by its path; default HTML and Markdown.
        suffixes: Which files are pages, for the message where there are none.
    """
    found = folder.find(is_page or _is_page)
    known = set(found.names)
    files = tuple(
        PageFile(folder=folder, page=name, url=quoted(name), aliases=_aliases(name, known))
        for name in found.names
    )
    problems = found.problems if files else (*found.problems, _without_pages(found.others, suffixes))
    return Listing(files=files, problems=problems)


def opened_folder(path: str | Path, wanted: str) -> Folder:
    """The folder at a path.

    Raises:
        SourceNotFoundError: If there is none.
    """
    if not path_of("path", path).is_dir():
        raise SourceNotFoundError(f"the folder {str(path)!r} does not exist; give {wanted}")
    return Folder(Path(path))


def _without_pages(others: Mapping[str, int], suffixes: Collection[str]) -> BadInput:
    """Report that a folder holds no pages, and what it holds instead."""
    types = ", ".join(f"{count:,} {suffix}" for suffix, count in list(others.items())[:_NAMED_TYPES])
    more = ", …" if len(others) > _NAMED_TYPES else ""
    holds = f"only {sum(others.values()):,} other files ({types}{more})" if others else "no files"
    return BadInput(name=".", reason=f"it holds {holds}; pages are {', '.join(sorted(suffixes))}")


def detect_bases(files: Sequence[PageFile]) -> tuple[str, ...]:
    """Where a site lies in public, by the ``rel=canonical`` of a few of its pages.

    Returns:
        The base that most of them agree on; empty if they name none, none that fits their paths, or only a
        few of them do.
    """
    return _agreed((_base(file, url) for file, url in _canonical_urls(files)), files)


def detect_origins(files: Sequence[PageFile]) -> tuple[str, ...]:
    """The origin of the ``rel=canonical`` of a few pages, if most of them agree on it."""
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
    """What most of those that say something say, if they are not just a few that somebody planted."""
    said = list(found)
    votes = Counter(filter(None, said)).most_common(1)
    most, count = votes[0] if votes else ("", 0)
    sample = len(_sample(files))
    return (most,) if 2 * count > len(said) and 4 * count >= sample and count >= min(2, sample) else ()


def _is_page(path: PurePosixPath) -> bool:
    if path.name.startswith(".") or path.suffix.lower() not in HTML_SUFFIXES | MARKDOWN_SUFFIXES:
        return False
    top = path.parent.name if path.stem == "index" and len(path.parts) == 2 else path.stem
    at_root = len(path.parts) == 1 or top != path.stem
    return not (at_root and (top in _NO_PAGES or top.startswith("genindex-")))


def _aliases(name: str, known: set[str]) -> tuple[str, ...]:
    folder, slash, file = name.rpartition("/")
    if file.lower() not in _FOLDER_PAGES or known & {
        f"{folder}{slash}index.html",
        f"{folder}{slash}index.htm",
    }:
        return ()
    return (f"{quoted(folder)}/",)


def _base(file: PageFile, url: str) -> str | None:
    """The URL that, with the page's path, makes its canonical URL."""
    path = (Site().page_tag(file.url) or "").rstrip("/")
    for ending in (path, path.removesuffix(".html")):
        if url.rstrip("/").endswith(ending):
            return f"{url.rstrip('/').removesuffix(ending)}/"
    return None
