"""Keeps an index fresh: a folder is indexed again whenever its files change.

A run finds out itself what changed. It waits until the folder has been quiet for a moment, so that bursts of
changes and files that are being written are indexed once. Where few files of the last run change in a quiet
folder, as when somebody saves one, their pages are stored at once; the run, which looks at all files for what
the change means to others, follows later. Pages that a run keeps because most are missing, or a folder is
empty, are removed once the folder has been quiet for longer, if their files were seen to be deleted: a disk
that is not mounted deletes none, and where a site is built anew, new files follow.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final, Unpack

from linkstore.core.arguments import make_argument_error
from linkstore.errors import LinkStoreError, SourceNotFoundError
from linkstore.ingest.files import name_path, quote_path
from linkstore.ingest.pipeline import Excerpt, IndexOptions, index
from linkstore.ingest.source import RemovalRefusedError, SourcePage, Summary

if TYPE_CHECKING:
    from linkstore.ingest.html.folder import FolderPages, FolderSource
    from linkstore.ingest.notes.vault import VaultNotes, VaultSource
    from linkstore.store.core import CoreStore

QUIET_SECONDS: Final = 0.4
"""How long nothing may change before a run begins."""
MOST_SECONDS: Final = 30.0
"""A run begins this long after the first change at the latest, even if changes go on."""
TIDY_SECONDS: Final = 3.0
"""How long nothing may change before a run begins, if all changed pages are stored already."""
FEW: Final = 16
"""Of so many changed files the pages are stored at once."""
SETTLED_SECONDS: Final = 30.0
"""How long nothing may change before what was deleted is removed, even if it is most of the folder."""
_STEP_MS: Final = 50
_LOG: Final = logging.getLogger("linkstore.ingest")

Report = Callable[[Summary | LinkStoreError], object]
"""Is told the result of each run."""


def watch_folder(
    store: CoreStore,
    source: FolderSource | VaultSource,
    *,
    stop: Event | None = None,
    report: Report | None = None,
    ignore: Sequence[str | Path] = (),
    **options: Unpack[IndexOptions],
) -> None:
    """Index a folder, and again whenever something in it changes, until it is told to stop.

    A file that is changed in a quiet folder is searchable within some 0.2 s. New, renamed and deleted files
    are in the store about a second after the last change, or as long as looking at all files takes. Readers
    beside it see every run. While the folder is gone, as where a site is built anew, it waits for it. If most
    files are deleted, or all of a folder, their pages go once nothing has changed for 30 s. An interrupt such
    as Ctrl-C ends it as it ends a run: what was written stays, and is whole.

    Args:
        store: Where the documents go. It may lie in the folder.
        source: The folder or the vault.
        stop: Ends the watch, after a run that is under way. None: an interrupt ends it.
        report: Called after each run with its summary, or with the error that ended it. Default: it is logged
            by the logger ``linkstore.ingest``. An error of the first run is raised.
        ignore: Folders in it whose changes begin no run. That of an embedded store is one of them.
        options: Those of :func:`~linkstore.ingest.index`.

    Raises:
        SourceNotFoundError: If there is no such folder when it begins.
    """
    folder = _require_folder(source)
    tell = _log if report is None else report
    deleted: set[str] = set()
    place = getattr(getattr(store, "backend", None), "folder", None)
    unwatched = [*ignore, place] if isinstance(place, Path) else ignore  # a run changes the store's own files

    def is_deleted(page: str) -> bool:
        return page in deleted or any(page.startswith(f"{name}/") for name in deleted)

    kept = _KeptFolder(store, source, tell, options)
    first = True
    for settled in _wait_for_changes(folder, unwatched, stop or Event(), deleted, kept.store_at_once):
        run = options.copy()
        if settled and not run.get("prune"):
            run["prune"] = is_deleted
        result: Summary | LinkStoreError
        try:
            result = index(store, kept, **run)
            keeps = bool(result.unseen)
        except LinkStoreError as error:
            if first:
                raise
            result, keeps = error, isinstance(error, RemovalRefusedError)
            if isinstance(error, RemovalRefusedError) and deleted and not settled:
                until = f"what was deleted goes when nothing has changed for {SETTLED_SECONDS:g} s"
                result = RemovalRefusedError(f"{error}; {until}", error.summary)
        if settled or not keeps:
            deleted.clear()
        pages = result.pages if isinstance(result, Summary) and not result.skipped else None
        if not kept.reported or pages is None or pages.total > pages.unchanged:
            tell(result)
        kept.reported = False
        first = False


def _require_folder(source: object) -> Path:
    """Return the folder of a source.

    Raises:
        ArgumentError: If it has none.
        SourceNotFoundError: If it is not there.
    """
    path = getattr(source, "path", None)
    if not isinstance(path, str | Path):
        raise make_argument_error("source", "a FolderSource or a VaultSource", source)
    folder = Path(name_path(path))
    if not folder.is_dir():
        raise SourceNotFoundError(
            f"there is no folder {folder}; give the folder of a site or a vault to watch"
        )
    return folder


@dataclass
class _KeptFolder:
    """A folder, and how it was at the last run.

    Args:
        store: Where the documents go.
        source: The folder.
        tell: Is told what was stored at once.
        options: Those of a run.
        opened: How it was, None if that is not known.
        reported: Whether something was stored since then.
    """

    store: CoreStore
    source: FolderSource | VaultSource
    tell: Report
    options: IndexOptions
    opened: FolderPages | VaultNotes | None = None
    reported: bool = False

    @property
    def name(self) -> str:
        """The name of the folder as a source."""
        return self.source.name

    def open(self) -> AbstractContextManager[FolderPages | VaultNotes]:
        """Open the folder for a run."""
        return self.resume({})

    @contextmanager
    def resume(self, outlines: Mapping[str, str]) -> Iterator[FolderPages | VaultNotes]:
        """Open the folder for a run, whose unchanged files need not be read."""
        self.opened = None
        with self.source.resume(outlines) as opened:
            yield opened
        if not self.options.keys() & {"partition", "dry_run"}:
            self.opened = opened

    def store_at_once(self, paths: Sequence[Path]) -> bool:
        """Store the pages of changed files, if they are few and were there at the last run; say whether."""
        opened = self.opened
        if opened is None or len(paths) > FEW:
            return False
        offers = opened.reread({path.as_posix() for path in paths})
        if sum(isinstance(offer, SourcePage) for offer in offers) < len(paths):
            return False
        excerpt = Excerpt(self.name, opened.site, offers)
        run: IndexOptions = {**self.options, "progress": None, "jobs": 1}
        try:
            summary = index(self.store, excerpt, **run)
        except LinkStoreError:
            return False  # the run that follows meets the same, and tells it
        self.reported = True
        self.tell(summary)
        return not summary.skipped


def _wait_for_changes(
    folder: Path,
    ignore: Sequence[str | Path],
    stop: Event,
    deleted: set[str],
    store_at_once: Callable[[Sequence[Path]], bool],
) -> Iterator[bool]:
    """Yield at the start, and then whenever the folder is quiet after changes, or is another one.

    Yields True if it has been quiet for long, and files were deleted, whose names it keeps in ``deleted``.
    Offers changes in a quiet folder to ``store_at_once``, which says whether all of them are stored.
    """
    from watchfiles import watch

    ignored = [Path(place).resolve() for place in ignore]

    def is_watched(_: object, changed: str) -> bool:
        return not any(Path(changed).is_relative_to(path) for path in ignored)

    while not stop.wait(0 if (watched := _identify(folder)) else QUIET_SECONDS):
        since: float | None = float("-inf")  # a run begins as soon as changes are watched
        last, root = time.monotonic(), folder.resolve()
        is_stored = False
        deleted.clear()
        with suppress(FileNotFoundError):  # it is gone, or gone again
            for changes in watch(
                root,
                watch_filter=is_watched,
                stop_event=stop,
                step=_STEP_MS,
                rust_timeout=int(QUIET_SECONDS * 1000),
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                if changes:
                    last = time.monotonic()
                    paths = [Path(path).relative_to(root) for _, path in changes]
                    _update_deleted(paths, root, deleted)
                    is_stored = (since is None or is_stored) and store_at_once(paths)
                    since = since or last
                now = time.monotonic()
                is_quiet = not changes and now - last >= (TIDY_SECONDS if is_stored else 0)
                if since is not None and (is_quiet or now - since > MOST_SECONDS):
                    since, is_stored = None, False
                    yield False
                elif deleted and since is None and time.monotonic() - last > SETTLED_SECONDS:
                    yield True
                if (identity := _identify(folder)) != watched:  # as where a site is built anew
                    if identity is None:
                        yield False  # the run says that it is gone
                    break


def _update_deleted(paths: Iterable[Path], root: Path, deleted: set[str]) -> None:
    """Add the changed paths that are there no more, and remove those that are there again."""
    for path in paths:
        update = deleted.discard if os.path.lexists(root / path) else deleted.add
        update(quote_path(path.as_posix()))


def _identify(folder: Path) -> tuple[int, int] | None:
    """Return what tells a folder from another one at its path, None if there is none."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _log(result: Summary | LinkStoreError) -> None:
    if isinstance(result, LinkStoreError):
        _LOG.warning("the folder could not be indexed, and will be when it changes again: %s", result)
    else:
        _LOG.info("indexed: %s", result.pages)
