"""Lists the files of a folder that are pages, and detects where they lie in public."""

from __future__ import annotations

import math
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePath
from posixpath import splitext
from typing import Final
from urllib.parse import quote

from linkstore.core.arguments import as_path
from linkstore.core.display import format_count, make_readable
from linkstore.core.text import replace_surrogates
from linkstore.core.urls import Site, UrlPolicy, normalize_url
from linkstore.errors import SourceNotFoundError
from linkstore.extract.html import UnboundedPageError, find_canonical_href, parse_html
from linkstore.ingest.documents import get_origin
from linkstore.ingest.folders import LEAVES_FOLDER, NO_PAGES_IN, NOT_A_FILE, Folder
from linkstore.ingest.source import BadInput, UnreadablePageError
from linkstore.ingest.suffixes import (
    DATA_SUFFIXES,
    FOR_PEOPLE,
    GZIP_SUFFIX,
    HTML_SUFFIXES,
    NOT_HTML,
    READ_AS,
    READ_DATA,
    SITE_SUFFIXES,
    TEXT_SUFFIX,
    get_suffix,
    suggest_source,
)

_MAY_HOLD_PAGES: Final = frozenset({"_static", "_images", "_downloads"})
"""Of these, the ones in which pages are counted; the others hold sources, or no pages for readers."""
_FOR_MACHINES: Final = frozenset(
    {"robots.txt", "_redirects.txt", "redirects.txt", "llms.txt", "llms-full.txt", "humans.txt"}
    | {"requirements.txt", "constraints.txt", "CMakeLists.txt", "search_index.json", "manifest.json"}
    | {"package.json", "package-lock.json", "tsconfig.json"}
)
_SAME_FOLDER: Final = "it is a link to another folder of the source, whose pages are read there"
_OF_SPHINX: Final = frozenset({"search", "genindex", "genindex-all"})
"""At the root, its search form and its index of everything."""
_SPHINX: Final = frozenset({"searchindex.js", "objects.inv", "genindex.html"})
_NOT_FOUND: Final = "404"
"""At the root, what servers answer for a page that is not there."""
_FOLDER_PAGES: Final = frozenset({"readme.md", "index.md", "readme.markdown", "index.markdown"})
_SAMPLE: Final = 16
_LARGEST: Final = 16 * 2**20
_NAMED_TYPES: Final = 5
_SECONDS_TO_SETTLE: Final = 2.0
"""What some disks take for one moment."""
_UNQUOTED: Final = re.compile(r"[A-Za-z0-9_.~/-]*")
_USUAL_ENDINGS: Final = tuple(HTML_SUFFIXES | NOT_HTML)
_FOLDED: Final = UrlPolicy(query="drop", fragment="drop", trailing_slash="strip")


@dataclass(slots=True)
class FolderSearch:
    """One walk through a folder, and what it finds.

    Args:
        folder: Where it looks.
        suffixes: Which files are pages.
        pages: The paths of its pages from the root, with ``/``, each with its status, None for a link.
        problems: What could not be looked into, and links that are not followed.
        others: How many files are not pages, by suffix.
        aside: How many pages are not read for where they lie, by suffix and the name of that folder.
        built: The folders that Sphinx built.
    """

    folder: Folder
    suffixes: AbstractSet[str]
    pages: dict[str, os.stat_result | None] = field(default_factory=dict)
    problems: list[BadInput] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    aside: Counter[str] = field(default_factory=Counter)
    built: set[str] = field(default_factory=set)

    def look_into(self, lead: str) -> list[str]:
        """Record what a folder holds, and return the folders in it."""
        try:
            with os.scandir(self.folder.path / lead) as entries:
                contents = list(entries)
        except OSError as error:
            self._say(lead or ".", f"the folder cannot be read: {error.strerror or error}", hides=lead)
            return []
        if lead and not contents:
            reason = "the folder is empty; what was stored of it is kept, in case it is not mounted"
            self.problems.append(
                BadInput(name=quote_path(lead), reason=reason, hides=(quote_path(lead),), guessed=True)
            )
        if not _SPHINX.isdisjoint(entry.name for entry in contents):
            self.built.add(lead)
        return [f"{lead}{entry.name}/" for entry in contents if self._record(entry, f"{lead}{entry.name}")]

    def _is_page(self, name: str) -> bool:
        lead, slash, file = name.rpartition("/")
        stem, dot, ending = file.partition(".")
        suffix = _find_suffix(f"{dot}{ending}")
        if not stem or suffix not in self.suffixes:
            return False
        if suffix not in HTML_SUFFIXES:
            return True
        stem = file.rpartition(".")[0]
        if stem == "index":
            lead, slash, folder = lead.rpartition("/")
            stem = splitext(folder)[0]
        if stem == _NOT_FOUND and (not lead or f"{lead}{slash}" in self.built):
            return False
        of_sphinx = stem in _OF_SPHINX or stem.startswith("genindex-")
        return not (of_sphinx and f"{lead}{slash}" in self.built)

    def _record(self, entry: os.DirEntry[str], name: str) -> bool:
        """Record a file, and say whether it is a folder to look into."""
        if entry.name.startswith(".") or entry.name in _FOR_MACHINES:
            return False
        if entry.name in NO_PAGES_IN:
            if entry.name in _MAY_HOLD_PAGES and entry.is_dir(follow_symlinks=False):
                self._count_aside(entry.path, entry.name)
            return False
        try:
            if entry.is_symlink():
                self._link(entry.path, name)
            elif entry.is_dir(follow_symlinks=False):
                return True
            elif not self._is_page(name):
                self.others[get_suffix(name) or "(none)"] += 1
            elif entry.is_file(follow_symlinks=False):
                self.pages[name] = entry.stat(follow_symlinks=False)
            else:
                self._say(name, NOT_A_FILE)
        except OSError as error:
            self._say(name, f"it cannot be looked at: {error.strerror or error}", hides=name)
        return False

    def _count_aside(self, path: str, folder: str) -> None:
        """Count the pages in a folder that is not read."""
        for _, _, names in os.walk(path):
            pages = (name for name in names if self._is_page(f"{folder}/{name}"))
            self.aside.update(f"{get_suffix(name)} in {folder}" for name in pages)

    def _link(self, link: str, name: str) -> None:
        """Record a symbolic link to a page of the folder. Folders are not entered through links."""
        is_page = self._is_page(name)
        try:
            target = Path(os.path.realpath(link, strict=True))
            mode = target.stat().st_mode
        except OSError as error:
            if is_page or not splitext(name)[1]:
                self._say(name, f"it is a broken link: {error.strerror or error}")
            return
        if self.folder.inside(target) is None:
            if is_page or stat.S_ISDIR(mode):
                self._say_of_link(name, LEAVES_FOLDER)
        elif stat.S_ISDIR(mode):
            self._say_of_link(name, _SAME_FOLDER)
        elif is_page and stat.S_ISREG(mode):
            self.pages[name] = None

    def _say(self, name: str, reason: str, *, hides: str | None = None) -> None:
        """Report a problem under the page's name, so that its stored content stays."""
        lead = None if hides is None else (quote_path(hides),)
        self.problems.append(BadInput(name=quote_path(name), reason=reason, hides=lead))

    def _say_of_link(self, name: str, reason: str) -> None:
        """Report a link under a name other than the page's, so that the stored page is removed."""
        self.problems.append(BadInput(name=f"{quote_path(name)} (link)", reason=reason))


@lru_cache
def _find_suffix(ending: str) -> str:
    """Return the suffix of a file by what its name has from its first dot on, mostly the same."""
    return get_suffix(f"x{ending}")


@lru_cache
def _find_kind(ending: str) -> str:
    """Return as what a file is read by its ending, ``.html`` for all kinds of HTML."""
    suffix = splitext(f"x{ending.lower().removesuffix(GZIP_SUFFIX)}")[1]
    return suffix if suffix in NOT_HTML else ".html"


def quote_path(path: str) -> str:
    """Return a path as a URL in its own letters, percent-encoding what cannot stand in one.

    Bytes that are not UTF-8 are percent-encoded too.
    """
    return path if _UNQUOTED.fullmatch(path) else make_readable(quote(path, errors="surrogateescape"))


def name_path(path: str | Path) -> str:
    """Return the absolute path by which a file or folder is named in a store.

    Raises:
        ArgumentError: If it is no path.
    """
    return PurePath(os.path.realpath(as_path("path", path))).as_posix()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file that is a page.

    Args:
        folder: Where it lies.
        page: Its path from there, with ``/``.
        url: The same as a URL: see :func:`~linkstore.ingest.files.quote_path`.
        aliases: Further URL paths that lead to it, such as a README's folder.
        size: Its bytes, 0 for a link.
        stamp: Differs once the file has changed, see :func:`make_stamp`; empty for a link.
    """

    folder: Folder
    page: str
    url: str
    aliases: tuple[str, ...] = ()
    size: int = 0
    stamp: str = ""
    suffix: str = field(init=False, repr=False, compare=False)
    """What the file is, ``.html`` for all kinds of HTML."""

    def __post_init__(self) -> None:
        _, dot, ending = self.page.rpartition("/")[2].partition(".")
        object.__setattr__(self, "suffix", _find_kind(f"{dot}{ending}"))

    @property
    def name(self) -> str:
        """The path for people to read, with surrogates replaced."""
        return replace_surrogates(self.page)

    def read(self, most: int) -> bytes:
        """Read the content of the file, of this many bytes at most: see :meth:`Folder.read`."""
        return self.folder.read(self.page, most)


def make_stamp(status: os.stat_result, settled: float = math.inf) -> str:
    """Return a text that differs once a file has changed.

    Args:
        status: Of the file.
        settled: A file that changed later, in seconds since 1970, may change again without another stamp. It
            gets an empty one.
    """
    if max(status.st_mtime, status.st_ctime) >= settled:
        return ""
    return f"{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}.{status.st_ino}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The pages of a folder, and what else there is to say of it.

    Args:
        folder: Where they lie.
        files: The pages, by path.
        problems: What was not looked into, and why.
        unread: How many files are pages to a reader and not read, by kind, most first.
    """

    folder: Folder
    files: tuple[PageFile, ...]
    problems: tuple[BadInput, ...] = ()
    unread: Mapping[str, int] = field(default_factory=dict)


def list_pages(folder: Folder, suffixes: AbstractSet[str] = SITE_SUFFIXES) -> Listing:
    """List the pages of a folder, by path.

    Hidden files and folders are left out, as are the folders that site builders keep no pages in
    (``_static``, ``_sources``, …), ``404.html`` and, at the root of what Sphinx built, its search form and
    general index.

    Args:
        folder: Where to look.
        suffixes: Which files are pages, default those of built sites.
    """
    settled = time.time() - _SECONDS_TO_SETTLE
    search = FolderSearch(folder, suffixes)
    waiting = [""]
    while waiting:
        waiting.extend(search.look_into(waiting.pop()))
    search.problems.sort(key=lambda problem: problem.name)
    pages = dict(sorted(search.pages.items()))
    in_language = _choose_languages(pages)
    files = tuple(
        PageFile(
            folder=folder,
            page=name,
            url=quote_path(name),
            aliases=_find_aliases(name, pages.keys(), in_language),
            size=0 if status is None else status.st_size,
            stamp="" if status is None else make_stamp(status, settled),
        )
        for name, status in pages.items()
        if not _has_html(name, pages.keys())
    )
    if len(files) < len(pages):
        search.aside[f"{TEXT_SUFFIX} beside HTML of its name"] += len(pages) - len(files)
    problems = (*search.problems, *([] if files else [_report_no_pages(search.others, suffixes)]))
    others = {kind: count for kind, count in search.others.items() if kind in FOR_PEOPLE - suffixes}
    unread = dict(Counter({**others, **search.aside}).most_common())
    return Listing(folder=folder, files=files, problems=problems, unread=unread)


def open_folder(path: str | Path, wanted: str) -> Folder:
    """Open the folder at a path.

    Raises:
        SourceNotFoundError: If there is none.
    """
    if as_path("path", path).is_file():
        raise SourceNotFoundError(f"{str(path)!r} is a file; {suggest_source(path) or f'give {wanted}'}")
    if not Path(path).is_dir():
        raise SourceNotFoundError(f"the folder {str(path)!r} does not exist; give {wanted}")
    return Folder(Path(path))


def _report_no_pages(others: Counter[str], suffixes: AbstractSet[str]) -> BadInput:
    """Report that a folder holds no pages, and the types of the files it holds instead."""
    types = ", ".join(f"{count:,} {suffix}" for suffix, count in others.most_common(_NAMED_TYPES))
    more = ", …" if len(others) > _NAMED_TYPES else ""
    count = format_count(others.total(), "other file")
    holds = f"only {count} ({types}{more})" if others else "no files"
    way = next((way for kind, way in READ_AS.items() if kind in others), None)
    data = "" if DATA_SUFFIXES.isdisjoint(others) else f" ({READ_DATA})"
    hint = f" (--as {way} reads others)" if way else data
    return BadInput(name=".", reason=f"it holds {holds}; pages are {', '.join(sorted(suffixes))}{hint}")


def detect_bases(files: Sequence[PageFile]) -> tuple[str, ...]:
    """Detect where a site lies in public, by the ``rel=canonical`` of a few of its pages.

    Returns:
        The base that most of them agree on, empty if they name none, none that fits their paths, or only a
        few of them do.
    """
    return _choose_agreed((_find_base(file, url) for file, url in _read_canonical_urls(files)), files)


def detect_origins(files: Sequence[PageFile]) -> tuple[str, ...]:
    """Return the origin of the ``rel=canonical`` of a few pages, if most of them agree on it."""
    return _choose_agreed((get_origin(url) for _, url in _read_canonical_urls(files)), files)


def _read_canonical_urls(files: Sequence[PageFile]) -> Iterable[tuple[PageFile, str]]:
    for file in _sample_files(files):
        try:
            href = find_canonical_href(parse_html(file.read(_LARGEST)))
        except (UnreadablePageError, UnboundedPageError, OSError):
            continue  # it is read again, and then reported
        url = normalize_url(href, policy=_FOLDED) if href else None
        if url is not None:
            yield file, url


def _sample_files(files: Sequence[PageFile]) -> Sequence[PageFile]:
    html = [file for file in files if file.suffix == ".html"]
    return html[:: max(1, len(html) // _SAMPLE)]


def _choose_agreed(found: Iterable[str | None], files: Sequence[PageFile]) -> tuple[str, ...]:
    """Return the most frequent value, if most pages that have one agree and more than a planted few do."""
    values = list(found)
    votes = Counter(filter(None, values)).most_common(1)
    most, count = votes[0] if votes else ("", 0)
    sample = len(_sample_files(files))
    return (most,) if 2 * count > len(values) and 4 * count >= sample and count >= min(2, sample) else ()


def _choose_languages(names: Iterable[str]) -> dict[str, str]:
    """Return the file that stands for ``page.html``, of ``page.html.de`` and ``page.html.en``: English."""
    files: dict[str, str] = {}
    for name in names:
        if name.endswith(_USUAL_ENDINGS):
            continue
        plain, language = splitext(name)
        if get_suffix(name) != language.lower() and (plain not in files or language == ".en"):
            files[plain] = name
    return files


def _has_html(name: str, known: AbstractSet[str]) -> bool:
    """Say whether a file of text is also there as HTML, of which it probably is the source."""
    stem, suffix = name[: -len(TEXT_SUFFIX)], name[-len(TEXT_SUFFIX) :]
    return suffix.lower() == TEXT_SUFFIX and any(
        f"{stem}{html_suffix}" in known for html_suffix in HTML_SUFFIXES
    )


def _find_aliases(name: str, known: AbstractSet[str], in_language: Mapping[str, str]) -> tuple[str, ...]:
    folder, slash, file = name.rpartition("/")
    plain = splitext(name)[0] if in_language else ""
    if in_language.get(plain) == name and plain not in known:
        return (quote_path(plain),)
    if file.lower() not in _FOLDER_PAGES or not known.isdisjoint(
        {f"{folder}{slash}index.html", f"{folder}{slash}index.htm"}
    ):
        return ()
    return (f"{quote_path(folder)}/",)


def _find_base(file: PageFile, url: str) -> str | None:
    """Return the URL that, with the page's path, makes its canonical URL."""
    path = (Site().page_tag(file.url) or "").rstrip("/")
    for ending in (path, path.removesuffix(".html")):
        if url.rstrip("/").endswith(ending):
            return f"{url.rstrip('/').removesuffix(ending)}/"
    return None
