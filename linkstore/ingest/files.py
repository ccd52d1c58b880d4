"""Lists and reads the files of a folder, without leaving the folder.

Only regular files below the folder are read. A symbolic link is followed if its target is also in the folder
and not hidden. Pipes, sockets and devices are never opened. Replacing a file by a link while the folder is
read does not lead outside either: each part of a path is opened without following links.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final
from urllib.parse import quote

from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.source import BadInput
from linkstore.letters import readable_url

IsPage = Callable[[PurePosixPath], bool]

HTML_SUFFIXES: Final = frozenset({".html", ".htm", ".xhtml", ".xht", ".shtml"})
_NO_PAGES_IN: Final = frozenset(
    {"_static", "_sources", "_images", "_downloads", "node_modules", "__pycache__"}
)
_MAY_HOLD_PAGES: Final = frozenset({"_static", "_images", "_downloads"})
"""Of these, the ones in which pages are counted; the others hold sources, or no pages for readers."""
_FOR_MACHINES: Final = frozenset({"robots.txt", "_redirects.txt", "redirects.txt"})
_CODES: Final = """
    ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gl he hi hr hu hy id is it ja ka kk km ko
    lt lv mk mn ms my nb ne nl nn no pl pt ro ru si sk sl sq sr sv ta te th tr uk ur uz vi zh
"""
_LANGUAGES: Final = frozenset(_CODES.split())
"""Languages (ISO 639-1) that end the names of pages; none that is also the suffix of other files (``br``)."""
_LINKED: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})
"""What opening a path without following links says where it meets one; the last on FreeBSD."""
_FILE: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER: Final = _FILE | getattr(os, "O_DIRECTORY", 0)
_STEPS: Final = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd
_REGION: Final = 4
"""Letters of a region or script after a language, as in ``zh-hant``."""
_LEAVES: Final = "it is a link that leaves the folder"
_SAME: Final = "it is a link to another folder of the source, whose pages are read there"
_NO_FILE: Final = "it is a pipe, socket or device, not a file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The files of a folder.

    Args:
        names: The paths of its pages from the root, with ``/``, in order.
        problems: What could not be looked into, and links that are not followed.
        others: How many files are not pages, by suffix.
        aside: How many pages are not read for where they lie, by suffix and the name of that folder.
    """

    names: tuple[str, ...]
    problems: tuple[BadInput, ...]
    others: Mapping[str, int]
    aside: Mapping[str, int]


class Folder:
    """A folder whose files are read.

    Args:
        path: Where it is; may itself be a link.

    Raises:
        OSError: If it cannot be resolved.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = Path(os.path.realpath(path))

    def find(self, is_page: IsPage) -> Found:
        """Find all pages below the folder.

        Hidden files and folders are left out, as are those that site builders keep no pages in (``_static``,
        ``_sources``, …).

        Args:
            is_page: Whether a file is a page, by its path.
        """
        return _Search(self, is_page).run()

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

        Raises:
            UnreadablePageError: If it is larger, or not a regular file of the folder.
            OSError: If it cannot be read.
        """
        with self._opened(name) as file:
            size = os.fstat(file.fileno()).st_size
            content = file.read(size + 1) if size <= most else b""  # a larger buffer takes longer to get
            if len(content) > size:  # it is being written
                content += file.read(most - size)
        if max(size, len(content)) > most:
            raise UnreadablePageError(
                f"it has {max(size, len(content)):,} bytes, more than the {most:,} allowed"
            )
        return content

    def head(self, name: str, size: int) -> bytes:
        """Read the first bytes of a file, with the errors of :meth:`read`."""
        with self._opened(name) as file:
            return file.read(size)

    def inside(self, path: Path) -> tuple[str, ...] | None:
        """Return the parts of a resolved path from the root, or None if it lies elsewhere, or is hidden."""
        if not path.is_relative_to(self.path):
            return None
        parts = path.relative_to(self.path).parts
        hidden = any(part.startswith(".") or part in _NO_PAGES_IN for part in parts)
        return None if hidden else parts

    def _opened(self, name: str) -> BinaryIO:
        try:
            descriptor = self._descriptor(tuple(name.split("/")))
        except OSError as error:
            if error.errno not in _LINKED:
                raise
            target = self.inside(Path(os.path.realpath(self.path / name, strict=True)))
            if target is None:
                raise UnreadablePageError(_LEAVES) from error
            descriptor = self._descriptor(target)
        return os.fdopen(descriptor, "rb")

    def _descriptor(self, parts: tuple[str, ...]) -> int:
        """Open a file, going from folder to folder, none of which may be a link."""
        if not _STEPS:
            return _regular(str(self.path.joinpath(*parts)), None)
        here = os.open(self.path, _FOLDER)
        try:
            for part in parts[:-1]:
                following = os.open(part, _FOLDER, dir_fd=here)
                os.close(here)
                here = following
            return _regular(parts[-1], here)
        finally:
            os.close(here)


def _regular(path: str, folder: int | None) -> int:
    """Open a regular file.

    The file is looked at before, so that no device notices, and after, for it may be swapped.
    """
    before = os.stat(path, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(before.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if not stat.S_ISREG(before.st_mode):
        raise UnreadablePageError(_NO_FILE)
    descriptor = os.open(path, _FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadablePageError(_NO_FILE)
    return descriptor


@dataclass(slots=True)
class _Search:
    """One walk through a folder."""

    folder: Folder
    is_page: IsPage
    names: list[str] = field(default_factory=list)
    problems: list[BadInput] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    aside: Counter[str] = field(default_factory=Counter)

    def run(self) -> Found:
        waiting = [""]
        while waiting:
            waiting.extend(self._look_into(waiting.pop()))
        return Found(
            names=tuple(sorted(self.names)),
            problems=tuple(sorted(self.problems, key=lambda one: one.name)),
            others=dict(self.others.most_common()),
            aside=dict(self.aside.most_common()),
        )

    def _look_into(self, lead: str) -> list[str]:
        """Note what a folder holds, and return the folders in it."""
        folders: list[str] = []
        empty = bool(lead)
        try:
            with os.scandir(self.folder.path / lead) as entries:
                for entry in entries:
                    empty = False
                    folders.extend(self._entry(entry, f"{lead}{entry.name}"))
        except OSError as error:
            self._say(lead or ".", f"the folder cannot be read: {error.strerror or error}", hides=lead)
            empty = False
        if empty:
            reason = "the folder is empty; what was stored of it is kept, in case it is not mounted"
            self.problems.append(BadInput(name=quoted(lead), reason=reason, hides=quoted(lead), guessed=True))
        return folders

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
            elif not self.is_page(path):
                self.others[suffix_of(name) or "(none)"] += 1
            elif entry.is_file(follow_symlinks=False):
                self.names.append(name)
            else:
                self._say(name, _NO_FILE)
        except OSError as error:
            self._say(name, f"it cannot be looked at: {error.strerror or error}", hides=name)

    def _count_aside(self, path: str, folder: str) -> None:
        """Count the pages in a folder that is not read."""
        for _, _, names in os.walk(path):
            pages = (name for name in names if self.is_page(PurePosixPath(folder, name)))
            self.aside.update(f"{suffix_of(name)} in {folder}" for name in pages)

    def _link(self, link: str, path: PurePosixPath) -> None:
        """Note a symbolic link to a page of the folder. Folders are not entered through links."""
        about_pages = self.is_page(path) or not path.suffix
        try:
            target = Path(os.path.realpath(link, strict=True))
            mode = target.stat().st_mode
        except OSError as error:
            if about_pages:
                self._say(str(path), f"it is a broken link: {error.strerror or error}")
            return
        if self.folder.inside(target) is None:
            if self.is_page(path) or stat.S_ISDIR(mode):
                self._say_of_link(path, _LEAVES)
        elif stat.S_ISDIR(mode):
            self._say_of_link(path, _SAME)
        elif self.is_page(path) and stat.S_ISREG(mode):
            self.names.append(str(path))

    def _say(self, name: str, reason: str, *, hides: str | None = None) -> None:
        """Report a problem by the page's name, so that what is stored of the page stays."""
        lead = None if hides is None else quoted(hides)
        self.problems.append(BadInput(name=quoted(name), reason=reason, hides=lead))

    def _say_of_link(self, path: PurePosixPath, reason: str) -> None:
        """Report a link by another name than the page's, so that what was stored of the page is removed."""
        self.problems.append(BadInput(name=f"{quoted(str(path))} (link)", reason=reason))


def suffix_of(name: str) -> str:
    """Return the suffix that says what a file is, in lower case: that of ``page.html.en`` is ``.html``."""
    start, suffix = posixpath.splitext(name.lower())
    language, _, region = suffix[1:].replace("_", "-").partition("-")
    before = posixpath.splitext(start)[1] if language in _LANGUAGES and len(region) <= _REGION else ""
    return before if before in HTML_SUFFIXES else suffix


def quoted(path: str) -> str:
    """Return a path as a URL in its own letters, percent-encoding what cannot stand in one.

    Bytes that are not UTF-8 are percent-encoded too.
    """
    return readable_url(quote(path, errors="surrogateescape"))
