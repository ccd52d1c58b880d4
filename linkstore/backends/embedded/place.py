"""The location of a store: its folder, resolved once, and the database file that was opened there."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Final

from linkstore.arguments import path_of
from linkstore.backends.embedded.files import sync
from linkstore.errors import (
    StoreFormatError,
    StoreMovedError,
    StoreNotFoundError,
    StorePermissionError,
    StoreReadOnlyError,
)
from linkstore.text import is_unicode

FILE_NAME: Final = "linkstore.db"
_REMAINS: Final = ("writer.pid", "graph-*.bin", "ann-*.usearch", "vectors*.f32")
"""Files that a store creates after its database; if they exist without it, the database was lost."""
Identity = tuple[int, int]


class Place:
    """The folder of a store and its database file.

    The path is made absolute and its symbolic links are followed once. So an open store stays in the same
    folder if the working directory or a link changes. The database file is identified by its device and
    inode, which are recorded when it is first opened.

    Args:
        path: The folder, as the user names it.

    Raises:
        ArgumentError: If this is not a path.
        StoreFormatError: If the path cannot name a folder.
        StoreNotFoundError: If the path is relative and the working directory no longer exists.
    """

    def __init__(self, path: str | Path) -> None:
        self.folder = _resolved(path_of("path", path))
        self.database = self.folder / FILE_NAME
        self._pinned: Identity | None = None

    def prepare(self, *, create: bool) -> None:
        """Check the folder, and create it if a store is to be created.

        Raises:
            StoreNotFoundError: If the store does not exist and ``create`` is False.
            StoreFormatError: If the path is a file, or the database is empty or missing beside its files.
            StorePermissionError: If this process may not read the folder.
            StoreReadOnlyError: If the store cannot be created because the folder is read-only.
        """
        try:
            remains = self._find_remains()  # first: another process may be creating the store
            size = self._get_size()
        except PermissionError as error:
            raise StorePermissionError(f"{self.folder} cannot be read: {error.strerror}") from error
        if not size and remains:
            state = "is missing" if size is None else "is empty"
            raise StoreFormatError(
                f"{self.database} {state}, but {remains[0]} shows that there was a store: restore the"
                " database from a copy, or delete the folder to start anew"
            )
        if size == 0 and not create:
            raise StoreFormatError(
                f"{self.database} is empty: making the store was interrupted; open it with create=True"
            )
        if size is None and not create:
            raise StoreNotFoundError(
                f"there is no linkstore at {self.folder}; create one by adding documents"
            )
        if not size:
            self._make_folder()

    def check(self) -> None:
        """Compare the file at the path with the one that was opened first.

        Raises:
            StoreMovedError: If the file is gone or is a different one.
        """
        try:
            found = self.identity()
        except OSError as error:
            raise StoreMovedError(
                f"{self.database} was deleted or moved while the store was open ({error.strerror});"
                " open the store again where it is now"
            ) from error
        if self._pinned is None:
            self._pinned = found
        elif found != self._pinned:
            raise StoreMovedError(
                f"{self.database} was replaced by another file while the store was open;"
                " open the store again to use the new one"
            )

    @property
    def moved(self) -> bool:
        """Whether the file at the path is no longer the file that was opened."""
        try:
            self.check()
        except StoreMovedError:
            return True
        return False

    def identity(self) -> Identity:
        """Return the device and inode of the file at the path."""
        state = self.database.stat()
        return state.st_dev, state.st_ino

    @property
    def writable(self) -> bool:
        """Whether the system allows this process to write the database and to make files beside it."""
        if not os.access(self.folder, os.W_OK):
            return False
        return not self.database.exists() or os.access(self.database, os.W_OK)

    def sync(self) -> None:
        """Make the emptied log and the removal of files durable, if the system supports it."""
        with contextlib.suppress(FileNotFoundError):
            sync(Path(f"{self.database}-wal"))
        sync(self.folder)

    def beside(self, suffix: str) -> int:
        """Return the size of one of SQLite's auxiliary files, such as ``-wal``, or -1 if there is none."""
        try:
            return Path(f"{self.database}{suffix}").stat().st_size
        except FileNotFoundError:
            return -1

    def contents(self) -> tuple[int, int, int, int]:
        """Return a value that changes at every write to the database, for readers that cannot take locks."""
        state = self.database.stat()
        return state.st_ino, state.st_mtime_ns, state.st_size, self.beside("-wal")

    def _find_remains(self) -> list[str]:
        if not self.folder.exists():
            return []
        if not self.folder.is_dir():
            raise StoreFormatError(f"{self.folder} is a file; a linkstore is a folder")
        return [path.name for pattern in _REMAINS for path in self.folder.glob(pattern)]

    def _get_size(self) -> int | None:
        try:
            return self.database.stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _make_folder(self) -> None:
        missing = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for folder in missing:
                sync(folder.parent)
        except NotADirectoryError as error:
            raise StoreFormatError(f"{self.folder} cannot be a folder: {error}") from error
        except OSError as error:
            raise StoreReadOnlyError(f"no linkstore can be made at {self.folder}: {error}") from error
        if not self.writable:
            raise StoreReadOnlyError(f"no linkstore can be made at {self.folder}: it can only be read")


def _resolved(path: Path) -> Path:
    if re.match(r"[a-z]{2,}:/", str(path)):  # pathlib makes one slash of two
        raise StoreFormatError(
            f"{str(path)!r} is a URL and not a folder; for a store in Cassandra use LinkStore.cassandra()"
        )
    try:
        folder = path.resolve()
    except FileNotFoundError as error:
        raise StoreNotFoundError(f"{path} is relative, and the working directory is gone") from error
    except (OSError, RuntimeError, ValueError) as error:  # such as a loop of links, or a NUL
        raise StoreFormatError(f"{str(path)!r} is not a path that a store can have: {error}") from error
    if not is_unicode(str(folder)):
        raise StoreFormatError(f"{str(folder)!r} is not a path that a store can have: it is not valid UTF-8")
    return folder
