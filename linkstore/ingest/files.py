"""Lists and reads the files of a folder, without leaving it, and decides which of them are pages.

Only regular files below the folder are read. A symbolic link is followed if its target is also in the folder
and not hidden. Pipes, sockets and devices are never opened. Replacing a file by a link while the folder is
read does not lead outside either: each part of a path is opened without following links.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from gzip import BadGzipFile, GzipFile
from importlib.util import find_spec
from pathlib import Path, PurePath, PurePosixPath
from posixpath import splitext
from typing import BinaryIO, Final
from urllib.parse import quote

from linkstore.core.arguments import as_path
from linkstore.core.display import make_readable
from linkstore.core.text import replace_surrogates
from linkstore.core.urls import Site, UrlPolicy, normalize_url
from linkstore.errors import LinkStoreError
from linkstore.extract.html import find_canonical_href, parse_html
from linkstore.extract.html_bounds import UnboundedPageError
from linkstore.ingest.documents import get_origin
from linkstore.ingest.source import BadInput, UnreadablePageError

HTML_SUFFIXES: Final = frozenset({".html", ".htm", ".xhtml", ".xht", ".shtml"})
_NO_PAGES_IN: Final = frozenset(
    {"_static", "_sources", "_images", "_downloads", "node_modules", "__pycache__"}
)
_MAY_HOLD_PAGES: Final = frozenset({"_static", "_images", "_downloads"})
"""Of these, the ones in which pages are counted; the others hold sources, or no pages for readers."""
_FOR_MACHINES: Final = frozenset(
    {"robots.txt", "_redirects.txt", "redirects.txt", "llms.txt", "llms-full.txt", "humans.txt"}
    | {"requirements.txt", "constraints.txt", "CMakeLists.txt"}
)
_LANGUAGE_CODES: Final = """
    ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gl he hi hr hu hy id is it ja ka kk km ko
    lt lv mk mn ms my nb ne nl nn no pl pt ro ru si sk sl sq sr sv ta te th tr uk ur uz vi zh
"""
_LANGUAGES: Final = frozenset(_LANGUAGE_CODES.split())
"""Languages (ISO 639-1) that end the names of pages; none that is also the suffix of other files (``br``)."""
_LINK_ERRORS: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})
"""What opening a path without following links says where it meets one; the last on FreeBSD."""
_FILE_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER_FLAGS: Final = _FILE_FLAGS | getattr(os, "O_DIRECTORY", 0)
_HAS_DIR_FD: Final = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd
_LONGEST_REGION: Final = 4
"""Letters of a region or script after a language, as in ``zh-hant``."""
_LEAVES_FOLDER: Final = "it is a link that leaves the folder"
_SAME_FOLDER: Final = "it is a link to another folder of the source, whose pages are read there"
_NOT_A_FILE: Final = "it is a pipe, socket or device, not a file"
_SECONDS_TO_WRITE: Final = 1.0
_GZIP_SUFFIX: Final = ".gz"
MARKDOWN_SUFFIXES: Final = frozenset({".md", ".markdown"})
NOTE_SUFFIXES: Final = MARKDOWN_SUFFIXES | {".mdx"}
TEXT_SUFFIX: Final = ".txt"
NOTEBOOK_SUFFIX: Final = ".ipynb"
RST_SUFFIX: Final = ".rst"
_WITH_EXTRAS: Final = frozenset({RST_SUFFIX} if find_spec("docutils") else ())
SITE_SUFFIXES: Final = HTML_SUFFIXES | MARKDOWN_SUFFIXES | {TEXT_SUFFIX, NOTEBOOK_SUFFIX} | _WITH_EXTRAS
"""The suffixes of files that are pages of a folder."""
READ_AS: Final = {".mdx": "vault", **dict.fromkeys(sorted(SITE_SUFFIXES - MARKDOWN_SUFFIXES), "folder")}
"""The kind of source that reads what another one leaves out, by suffix."""
_OTHER_SUFFIXES: Final = """
    .adoc .asciidoc .asp .aspx .canvas .creole .djvu .doc .docx .epub .fb2 .jsp .mediawiki .mht .mhtml
    .odt .org .pdf .php .pod .pptx .qmd .rdoc .rmd .rst .rtf .tex .textile .wiki
"""
_FOR_PEOPLE: Final = SITE_SUFFIXES | NOTE_SUFFIXES | frozenset(_OTHER_SUFFIXES.split())
"""Files that are pages to a reader, whether or not they are read here."""
_NOT_HTML: Final = NOTE_SUFFIXES | {TEXT_SUFFIX, NOTEBOOK_SUFFIX, RST_SUFFIX}
_SUGGESTIONS: Final = {
    RST_SUFFIX: "reStructuredText is read with pip install 'langchain-linkstore[rst]'; or build it"
    " (sphinx-build -b html), and give the folder of HTML",
    ".csv": "a table is not read; write each row as a line of JSON with id and text, and give the .jsonl",
    ".xml": "it is no dump of a wiki; if it is a sitemap, give its URL, or the folder of the pages",
    ".zip": "unpack it, and give the folder",
}
_OF_SPHINX: Final = frozenset({"search", "genindex", "genindex-all"})
"""At the root, its search form and its index of everything."""
_SPHINX: Final = frozenset({"searchindex.js", "objects.inv", "genindex.html"})
_NOT_FOUND: Final = "404"
"""At the root, what servers answer for a page that is not there."""
_FOLDER_PAGES: Final = frozenset({"readme.md", "index.md", "readme.markdown", "index.markdown"})
_SAMPLE: Final = 16
_LARGEST: Final = 16 * 2**20
_NAMED_TYPES: Final = 5
_FOLDED: Final = UrlPolicy(query="drop", fragment="drop", trailing_slash="strip")


class Folder:
    """A folder whose files are read.

    Args:
        path: Where it is; may itself be a link.

    Raises:
        OSError: If it cannot be resolved.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = Path(os.path.realpath(path))

    def has(self, name: str) -> bool:
        """Say whether there is a regular file of this name, not reached by a link."""
        try:
            return stat.S_ISREG((self.path / name).lstat().st_mode)
        except OSError:
            return False

    def read(self, name: str, most: int) -> bytes:
        """Read the content of a file.

        Args:
            name: Its path from the root, with ``/``.
            most: How many bytes it may have.

        A file without content that was changed in the last second is read once more when that has passed,
        since a program that writes a file empties it first.

        Raises:
            UnreadablePageError: If it is larger, or not a regular file of the folder.
            OSError: If it cannot be read.
        """
        with self._open_unpacked(name) as file:
            status = os.fstat(file.fileno())
            size = status.st_size
            content = file.read(size + 1) if size <= most else b""  # a larger buffer takes longer to get
            if len(content) > size:  # it is being written
                content += file.read(most - size)
        if max(size, len(content)) > most:
            raise UnreadablePageError(
                f"it has {max(size, len(content)):,} bytes, more than the {most:,} allowed (--max-bytes;"
                " Python: max_bytes=…)"
            )
        wait = status.st_mtime + _SECONDS_TO_WRITE - time.time()
        if not content and 0 < wait <= _SECONDS_TO_WRITE:
            time.sleep(wait)
            return self.read(name, most)
        return content

    def head(self, name: str, size: int) -> bytes:
        """Read the first bytes of a file, with the errors of :meth:`read`."""
        with self._open_unpacked(name) as file:
            return file.read(size)

    def inside(self, path: Path) -> tuple[str, ...] | None:
        """Return the parts of a resolved path from the root, or None if it lies elsewhere, or is hidden."""
        if not path.is_relative_to(self.path):
            return None
        parts = path.relative_to(self.path).parts
        hidden = any(part.startswith(".") or part in _NO_PAGES_IN for part in parts)
        return None if hidden else parts

    @contextmanager
    def _open_unpacked(self, name: str) -> Iterator[BinaryIO | GzipFile]:
        """Open a file, as what it holds if it is compressed by gzip."""
        with self._open(name) as file:
            if not name.lower().endswith(_GZIP_SUFFIX):
                yield file
                return
            try:
                with GzipFile(fileobj=file) as unpacked:
                    yield unpacked
            except (BadGzipFile, EOFError, zlib.error) as error:
                raise UnreadablePageError(f"it cannot be unpacked: {error}") from error

    def _open(self, name: str) -> BinaryIO:
        try:
            descriptor = self._descriptor(tuple(name.split("/")))
        except OSError as error:
            if error.errno not in _LINK_ERRORS:
                raise
            target = self.inside(Path(os.path.realpath(self.path / name, strict=True)))
            if target is None:
                raise UnreadablePageError(_LEAVES_FOLDER) from error
            descriptor = self._descriptor(target)
        return os.fdopen(descriptor, "rb")

    def _descriptor(self, parts: tuple[str, ...]) -> int:
        """Open a file, going from folder to folder, none of which may be a link."""
        if not _HAS_DIR_FD:
            return _open_regular(str(self.path.joinpath(*parts)), None)
        here = os.open(self.path, _FOLDER_FLAGS)
        try:
            for part in parts[:-1]:
                following = os.open(part, _FOLDER_FLAGS, dir_fd=here)
                os.close(here)
                here = following
            return _open_regular(parts[-1], here)
        finally:
            os.close(here)


def _open_regular(path: str, folder: int | None) -> int:
    """Open a regular file.

    The file is looked at before, so that no device notices, and after, for it may be swapped.
    """
    before = os.stat(path, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(before.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if not stat.S_ISREG(before.st_mode):
        raise UnreadablePageError(_NOT_A_FILE)
    descriptor = os.open(path, _FILE_FLAGS, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadablePageError(_NOT_A_FILE)
    return descriptor


@dataclass(slots=True)
class FolderSearch:
    """One walk through a folder, and what it finds.

    Args:
        folder: Where it looks.
        suffixes: Which files are pages.
        names: The paths of its pages from the root, with ``/``.
        problems: What could not be looked into, and links that are not followed.
        others: How many files are not pages, by suffix.
        aside: How many pages are not read for where they lie, by suffix and the name of that folder.
        built: The folders that Sphinx built.
    """

    folder: Folder
    suffixes: AbstractSet[str]
    names: list[str] = field(default_factory=list)
    problems: list[BadInput] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    aside: Counter[str] = field(default_factory=Counter)
    built: set[str] = field(default_factory=set)

    def look_into(self, lead: str) -> list[str]:
        """Note what a folder holds, and return the folders in it."""
        try:
            with os.scandir(self.folder.path / lead) as entries:
                found = list(entries)
        except OSError as error:
            self._say(lead or ".", f"the folder cannot be read: {error.strerror or error}", hides=lead)
            return []
        if lead and not found:
            reason = "the folder is empty; what was stored of it is kept, in case it is not mounted"
            self.problems.append(
                BadInput(name=quote_path(lead), reason=reason, hides=(quote_path(lead),), guessed=True)
            )
        if not _SPHINX.isdisjoint(entry.name for entry in found):
            self.built.add(lead)
        return [folder for entry in found for folder in self._entry(entry, f"{lead}{entry.name}")]

    def _is_page(self, path: PurePosixPath) -> bool:
        suffix = get_suffix(path.name)
        if path.name.startswith(".") or suffix not in self.suffixes:
            return False
        if suffix not in HTML_SUFFIXES:
            return True
        page = path.parent if path.stem == "index" else path
        lead = "".join(f"{part}/" for part in page.parts[:-1])
        if page.stem == _NOT_FOUND and (not lead or lead in self.built):
            return False
        of_sphinx = page.stem in _OF_SPHINX or page.stem.startswith("genindex-")
        return not (of_sphinx and lead in self.built)

    def _entry(self, entry: os.DirEntry[str], name: str) -> Iterator[str]:
        """Note a file, and yield the folder to look into if it is one."""
        path = PurePosixPath(name)
        if entry.name.startswith(".") or entry.name in _FOR_MACHINES:
            return
        if entry.name in _NO_PAGES_IN:
            if entry.name in _MAY_HOLD_PAGES and entry.is_dir(follow_symlinks=False):
                self._count_aside(entry.path, entry.name)
            return
        try:
            if entry.is_symlink():
                self._link(entry.path, path)
            elif entry.is_dir(follow_symlinks=False):
                yield f"{name}/"
            elif not self._is_page(path):
                self.others[get_suffix(name) or "(none)"] += 1
            elif entry.is_file(follow_symlinks=False):
                self.names.append(name)
            else:
                self._say(name, _NOT_A_FILE)
        except OSError as error:
            self._say(name, f"it cannot be looked at: {error.strerror or error}", hides=name)

    def _count_aside(self, path: str, folder: str) -> None:
        """Count the pages in a folder that is not read."""
        for _, _, names in os.walk(path):
            pages = (name for name in names if self._is_page(PurePosixPath(folder, name)))
            self.aside.update(f"{get_suffix(name)} in {folder}" for name in pages)

    def _link(self, link: str, path: PurePosixPath) -> None:
        """Note a symbolic link to a page of the folder. Folders are not entered through links."""
        about_pages = self._is_page(path) or not path.suffix
        try:
            target = Path(os.path.realpath(link, strict=True))
            mode = target.stat().st_mode
        except OSError as error:
            if about_pages:
                self._say(str(path), f"it is a broken link: {error.strerror or error}")
            return
        if self.folder.inside(target) is None:
            if self._is_page(path) or stat.S_ISDIR(mode):
                self._say_of_link(path, _LEAVES_FOLDER)
        elif stat.S_ISDIR(mode):
            self._say_of_link(path, _SAME_FOLDER)
        elif self._is_page(path) and stat.S_ISREG(mode):
            self.names.append(str(path))

    def _say(self, name: str, reason: str, *, hides: str | None = None) -> None:
        """Report a problem by the page's name, so that what is stored of the page stays."""
        lead = None if hides is None else (quote_path(hides),)
        self.problems.append(BadInput(name=quote_path(name), reason=reason, hides=lead))

    def _say_of_link(self, path: PurePosixPath, reason: str) -> None:
        """Report a link by another name than the page's, so that what was stored of the page is removed."""
        self.problems.append(BadInput(name=f"{quote_path(str(path))} (link)", reason=reason))


def get_suffix(name: str) -> str:
    """Return the suffix that says what a file is, in lower case: ``.html`` of ``p.html.en.gz``."""
    start, suffix = posixpath.splitext(name.lower().removesuffix(_GZIP_SUFFIX))
    language, _, region = suffix[1:].replace("_", "-").partition("-")
    before = posixpath.splitext(start)[1] if language in _LANGUAGES and len(region) <= _LONGEST_REGION else ""
    return before if before in HTML_SUFFIXES else suffix


def quote_path(path: str) -> str:
    """Return a path as a URL in its own letters, percent-encoding what cannot stand in one.

    Bytes that are not UTF-8 are percent-encoded too.
    """
    return make_readable(quote(path, errors="surrogateescape"))


def name_path(path: str | Path) -> str:
    """Return the absolute path by which a file or folder is named in a store.

    Raises:
        ArgumentError: If it is no path.
    """
    return PurePath(os.path.realpath(as_path("path", path))).as_posix()


class SourceNotFoundError(LinkStoreError, FileNotFoundError):
    """There is no folder of pages at the given path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file that is a page.

    Args:
        folder: Where it lies.
        page: Its path from there, with ``/``.
        url: The same as a URL: see :func:`~linkstore.ingest.files.quote_path`.
        aliases: Further URL paths that lead to it, such as a README's folder.
    """

    folder: Folder
    page: str
    url: str
    aliases: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The path for people to read, in which what is not Unicode is replaced."""
        return replace_surrogates(self.page)

    @property
    def suffix(self) -> str:
        """What the file is, ``.html`` for all kinds of HTML."""
        name = self.page.lower().removesuffix(_GZIP_SUFFIX)
        suffix = splitext(name)[1]  # asked often; a path object takes 5 µs
        return suffix if suffix in _NOT_HTML else ".html"

    def read(self, most: int) -> bytes:
        """Read the content of the file, of this many bytes at most: see :meth:`Folder.read`."""
        return self.folder.read(self.page, most)


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
    search = FolderSearch(folder, suffixes)
    waiting = [""]
    while waiting:
        waiting.extend(search.look_into(waiting.pop()))
    search.names.sort()
    search.problems.sort(key=lambda problem: problem.name)
    known, in_language = set(search.names), _choose_languages(search.names)
    for name in [name for name in search.names if _has_html(name, known)]:
        search.names.remove(name)
        search.aside[f"{TEXT_SUFFIX} beside HTML of its name"] += 1
    files = tuple(
        PageFile(
            folder=folder, page=name, url=quote_path(name), aliases=_find_aliases(name, known, in_language)
        )
        for name in search.names
    )
    problems = (*search.problems, *([] if files else [_report_no_pages(search.others, suffixes)]))
    others = {kind: count for kind, count in search.others.items() if kind in _FOR_PEOPLE - suffixes}
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


def suggest_source(path: str | Path) -> str:
    """Say what to give instead of a file that is no source, empty where that is not known."""
    suffix = get_suffix(PurePath(path).name)
    if suffix in _SUGGESTIONS:
        return _SUGGESTIONS[suffix]
    if suffix in SITE_SUFFIXES | NOTE_SUFFIXES:
        return "it is a single page; index it as one, or give its folder"
    if suffix in _FOR_PEOPLE:
        return f"{suffix} is not read; convert it to HTML or Markdown, and give the folder"
    return ""


def describe_unread(unread: Mapping[str, int]) -> str:
    """Describe kinds of files that were not read, such as ``12 .mdx``, and the option that reads them."""
    counts = ", ".join(f"{count:,} {kind}" for kind, count in unread.items())
    ways: dict[str, list[str]] = {}
    for kind in unread:
        if kind in READ_AS:
            ways.setdefault(READ_AS[kind], []).append(kind)
    hints = [f"--as {way} reads {', '.join(kinds)}" for way, kinds in ways.items()]
    if RST_SUFFIX in unread and not _WITH_EXTRAS:
        hints.append(f"pip install 'langchain-linkstore[rst]' reads {RST_SUFFIX}")
    return "; ".join((counts, *hints))


def _report_no_pages(others: Counter[str], suffixes: AbstractSet[str]) -> BadInput:
    """Report that a folder holds no pages, and what it holds instead."""
    types = ", ".join(f"{count:,} {suffix}" for suffix, count in others.most_common(_NAMED_TYPES))
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
    said = list(found)
    votes = Counter(filter(None, said)).most_common(1)
    most, count = votes[0] if votes else ("", 0)
    sample = len(_sample_files(files))
    return (most,) if 2 * count > len(said) and 4 * count >= sample and count >= min(2, sample) else ()


def _choose_languages(names: Iterable[str]) -> dict[str, str]:
    """Return the file that stands for ``page.html``, of ``page.html.de`` and ``page.html.en``: English."""
    found: dict[str, str] = {}
    for name in names:
        plain, language = splitext(name)
        if get_suffix(name) != language.lower() and (plain not in found or language == ".en"):
            found[plain] = name
    return found


def _has_html(name: str, known: AbstractSet[str]) -> bool:
    """Say whether a file of text is also there as HTML, of which it probably is the source."""
    stem, suffix = splitext(name)
    return suffix.lower() == TEXT_SUFFIX and any(f"{stem}{one}" in known for one in HTML_SUFFIXES)


def _find_aliases(name: str, known: set[str], in_language: Mapping[str, str]) -> tuple[str, ...]:
    folder, slash, file = name.rpartition("/")
    plain = splitext(name)[0]
    if in_language.get(plain) == name and plain not in known:
        return (quote_path(plain),)
    if file.lower() not in _FOLDER_PAGES or known & {
        f"{folder}{slash}index.html",
        f"{folder}{slash}index.htm",
    }:
        return ()
    return (f"{quote_path(folder)}/",)


def _find_base(file: PageFile, url: str) -> str | None:
    """Return the URL that, with the page's path, makes its canonical URL."""
    path = (Site().page_tag(file.url) or "").rstrip("/")
    for ending in (path, path.removesuffix(".html")):
        if url.rstrip("/").endswith(ending):
            return f"{url.rstrip('/').removesuffix(ending)}/"
    return None
