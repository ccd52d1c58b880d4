"""Resolves the links of a vault, by the rules of Obsidian and of sites built from Markdown.

For ``[[Note]]`` Obsidian takes, in this order: the note at exactly this path in the vault, the one in the
folder of the page with the link, and the one with the shortest path (as observed on Obsidian 1.13.7 by
``metadataCache.getFirstLinkpathDest``; its documentation says only "shortest path when possible").
Upper and lower case are the same; ``.md`` may be left out; ``[[b/Note]]`` also finds ``a/b/Note.md``;
``./`` and ``../`` mean just what they say. What names no file may be an alias, or a folder with an
``index.md`` or ``README.md``.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote

_MOST_FOLDERS: Final = 32
"""Number of last parts of its path by which a note is found; by more only if that is the whole path."""
_INDEX_NAMES: Final = ("index", "readme")


class Notes:
    """The notes of a vault, by all the names that lead to them.

    Args:
        paths: From the root of the vault, with ``/`` and suffix.
        aliases: Alias → the notes that say it is theirs.
    """

    def __init__(self, paths: Iterable[str], aliases: Mapping[str, Iterable[str]]) -> None:
        self._exact: dict[str, str] = {}
        self._ending: dict[str, str] = {}
        for path in sorted(paths, key=lambda path: (len(path), path)):
            for name in (_folded(path), _folded(posixpath.splitext(path)[0])):
                self._exact.setdefault(name, path)
                for ending in _endings(name):
                    self._ending.setdefault(ending, path)
        self._aliases = {
            _folded(alias): min(owners, key=lambda path: (len(path), path))
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
            or self._aliases.get(_folded(name))
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
        return self._exact.get(_folded(posixpath.normpath(path.lstrip("/"))))

    def _at(self, path: str) -> str | None:
        """Return the note at a path from the root: a file, or the index of a folder."""
        tried = (path, *(posixpath.join(path, name) for name in _INDEX_NAMES))
        return next((found for one in tried if (found := self._file(one))), None)

    def _nearest(self, name: str, page: str) -> str | None:
        """Return the note whose path ends so: in the page's folder, else the one with the shortest path."""
        wanted = _folded(name)
        beside = f"{_folded(posixpath.dirname(page))}/{posixpath.basename(wanted)}".lstrip("/")
        own = self._exact.get(beside) if f"/{beside}".endswith(f"/{wanted}") else None
        return own or self._ending.get(wanted)


def _endings(path: str) -> Iterator[str]:
    """Yield a path, and the same without its first, its first two, … folders."""
    parts = path.split("/")
    for first in range(max(0, len(parts) - _MOST_FOLDERS), len(parts)):
        yield "/".join(parts[first:])


def _folded(name: str) -> str:
    """Fold a name to one spelling: macOS takes accents apart in the names of files."""
    return unicodedata.normalize("NFC", name.strip()).casefold()
