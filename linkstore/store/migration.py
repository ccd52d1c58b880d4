"""Copies documents from one store to another, batch by batch, without embedding anything again.

The target notes after each batch how far the run is, so that the next one continues after an interrupt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

import orjson
from langchain_core.embeddings import Embeddings

from linkstore import errors
from linkstore.core.arguments import make_argument_error, require, require_at_least, require_having
from linkstore.core.calls import Progress, split_batches
from linkstore.embeddings.names import get_embedding, name_embedding
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Manifest, PageEntry, Record, WriteBatch, WriteCounts
from linkstore.store.base import MIN_SIMILARITY_NOTE
from linkstore.store.schema_graph import SCHEMA_NOTE

MIGRATION_BATCH_SIZE: Final = 500
_NOTE: Final = "migration "
"""The notes that say how far a migration is begin with this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """The result of a migration, including earlier interrupted runs.

    Args:
        written: Documents by what the target did with them.
        links: Links of these documents, by kind.
        pages: Entries of indexed pages.
        refused: Documents that could not be taken, by id, with the reason.
        resumed: Whether an earlier run was gone on with.
    """

    written: WriteCounts
    links: Mapping[str, int]
    pages: int
    refused: Mapping[str, str]
    resumed: bool = False

    @property
    def documents(self) -> int:
        """How many documents were taken over, whether the target had them already or not."""
        return self.written.added + self.written.updated + self.written.unchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The next documents of a source.

    Args:
        cursor: Where to go on after them; None if there were none left.
        records: Those that can be stored.
        refused: Those that cannot, by id, with the reason.
    """

    cursor: str | None
    records: Sequence[Record] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


class MigrationSource(Protocol):
    """Documents read from a cursor on, in an order that stays the same from run to run."""

    def manifest(self) -> Manifest:
        """Return the embedding that the vectors of the source are from."""
        ...

    def batch(self, after: str | None, limit: int) -> Batch:
        """Return up to ``limit`` documents after a cursor (None: the first)."""
        ...

    def pages(self) -> Sequence[PageEntry]:
        """Return the records of indexed pages."""
        ...


@dataclass(frozen=True, slots=True)
class BackendSource:
    """A linkstore as a source, which stays open; its cursors are ids."""

    backend: Backend

    def manifest(self) -> Manifest:
        """Return the embedding that the store records."""
        return self.backend.run(self.backend.manifest())

    def batch(self, after: str | None, limit: int) -> Batch:
        """Return the next documents in the backend's order."""
        records = self.backend.run(self.backend.scan(after, limit))
        return Batch(cursor=records[-1].id if records else None, records=records)

    def pages(self) -> Sequence[PageEntry]:
        """Return the page entries of all its sources."""
        return self.backend.run(self.backend.pages(None))


def migrate(
    source: MigrationSource | Backend,
    target: Backend,
    *,
    progress: Progress | None = None,
    batch: int = MIGRATION_BATCH_SIZE,
    checkpoint: str | None = None,
) -> MigrationReport:
    """Copy all documents of a source, with their vectors and links, and what it records besides.

    That is its page entries, times of access, schema, and minimum similarity. Nothing is embedded again, and
    documents are not checked against a schema. A schema and a minimum similarity that the target has stay; an
    open store uses a new minimum similarity when it is opened again. What the target holds besides stays;
    documents with the same ids are replaced. Writes to the source during the run may or may not be copied:
    run it again afterwards, which writes only what changed.

    Args:
        source: A backend, or for instance a :class:`~linkstore.store.community.CommunityTable`.
        target: Takes the documents; its embedding is recorded if none is.
        progress: Called after each batch with the documents read in this run, 0 and the id of the last one.
        batch: How many documents are read and written at once; default 500.
        checkpoint: A name for this source. The target notes under it how far the run is, until it is done. A
            run with the name of an interrupted one goes on from there.

    Returns:
        What was copied, and which documents could not be, with the reasons.

    Raises:
        EmbeddingError: If the target was built with another embedding.
        BackendError: If source or target fails; what was written until then stays.
        StoreBusyError: If another run with the same ``checkpoint`` is under way.
        StrategyError: If ``batch`` is not an integer of at least 1.
    """
    require(Backend, "a backend, such as LinkStore.open('kb').backend", target=target)
    require_having("manifest", "a backend, such as LinkStore.open('kb').backend, or a Source", source=source)
    require_at_least(1, batch=batch)
    if checkpoint is not None and not (isinstance(checkpoint, str) and checkpoint):
        raise make_argument_error("checkpoint", "a name", checkpoint)
    origin = BackendSource(source) if isinstance(source, Backend) else source
    _claim_embedding(target, origin.manifest())
    copied = _Copied(target, checkpoint)
    resumed, done = copied.cursor is not None, 0
    while (read := origin.batch(copied.cursor, batch)).cursor is not None:
        copied.take(read)
        done += len(read.records) + len(read.refused)
        if progress is not None:
            progress(done, 0, read.records[-1].id if read.records else "")
    entries = origin.pages()
    for part in split_batches(entries, batch):
        target.run(target.write(WriteBatch(put_pages=part)))
    if isinstance(source, Backend):
        _copy_notes(source, target)
        _copy_accesses(source, target, batch)
    target.run(target.flush())
    copied.record_progress(None)
    return MigrationReport(
        written=WriteCounts(**copied.written),
        links=dict(sorted(copied.links.items())),
        pages=len(entries),
        refused=copied.refused,
        resumed=resumed,
    )


def is_begun(target: Backend, checkpoint: str) -> bool:
    """Say whether a migration of this name has copied something, and is not done."""
    return target.run(target.note(_NOTE + checkpoint)) is not None


class _Copied:
    """What was copied so far, of which the target keeps a note from batch to batch.

    Args:
        target: Takes the documents.
        name: Of the note; None keeps none.
    """

    def __init__(self, target: Backend, name: str | None) -> None:
        self._target = target
        self._name = None if name is None else _NOTE + name
        self._recorded = None if self._name is None else target.run(target.note(self._name))
        progress = {} if self._recorded is None else orjson.loads(self._recorded)
        self.cursor: str | None = progress.get("cursor")
        self.written = Counter[str](progress.get("written"))
        self.links = Counter[str](progress.get("links"))
        self.refused: dict[str, str] = progress.get("refused", {})

    def take(self, batch: Batch) -> None:
        """Write records together; if the target refuses, one by one, to find which of them it refuses."""
        self.cursor = batch.cursor
        self.refused.update(batch.refused)
        refused: dict[str, str] = {}
        try:
            self._write(batch.records)
        except errors.LinkStoreError as error:
            if not _is_about_documents(error):
                raise
            for record in batch.records:
                try:
                    self._write((record,))
                except errors.LinkStoreError as own:
                    if not _is_about_documents(own):
                        raise
                    refused[record.id] = own.message
            if isinstance(error, errors.BackendError) and len(refused) == len(batch.records) > 1:
                raise  # it would refuse any
        self.refused.update(refused)
        self.record_progress(
            {"cursor": self.cursor, "written": self.written, "links": self.links, "refused": self.refused}
        )

    def _write(self, records: Sequence[Record]) -> None:
        if records:
            self.written.update(asdict(self._target.run(self._target.write(WriteBatch(put=records)))))
            self.links.update(link.kind for record in records for link in record.links)

    def record_progress(self, state: Mapping[str, Any] | None) -> None:
        """Write into the target how far the run is, or remove the note.

        Raises:
            StoreBusyError: If another run of the same migration has recorded something else.
        """
        if self._name is None:
            return
        text = None if state is None else orjson.dumps(state).decode()
        if self._target.run(self._target.set_note(self._name, text, self._recorded)) != text:
            raise errors.StoreBusyError("another run of this migration is under way; wait for it, or end it")
        self._recorded = text


def _claim_embedding(target: Backend, manifest: Manifest) -> None:
    """Record the source's embedding in the target."""
    if manifest.dimension is None:
        return
    recorded = target.run(target.claim(manifest))
    if recorded != manifest:
        raise errors.EmbeddingError(
            f"the target was built with the embedding {recorded.embedding!r} of dimension"
            f" {recorded.dimension}, and the source's vectors are from {manifest.embedding!r} of dimension"
            f" {manifest.dimension}; migrate into a new store"
        )


def _is_about_documents(error: errors.LinkStoreError) -> bool:
    """Say whether a target may have refused a document, and not be out of reach, busy, full or damaged."""
    return isinstance(error, errors.DocumentError | errors.LinkError) or type(error) is errors.BackendError


def _copy_notes(source: Backend, target: Backend) -> None:
    """Record the schema and the minimum similarity of the source in a target that has none."""
    for name in (SCHEMA_NOTE, MIN_SIMILARITY_NOTE):
        text = source.run(source.note(name))
        if text is not None:
            target.run(target.set_note(name, text, None))


def _copy_accesses(source: Backend, target: Backend, limit: int) -> None:
    """Record in the target when documents were last accessed."""
    after: str | None = None
    while records := source.run(source.scan(after, limit)):
        times = source.run(source.accessed([record.id for record in records]))
        if times:
            target.run(target.touch(times))
        after = records[-1].id


def find_recorded_name(embedding: Embeddings | str) -> str:
    """Return the name that a store must record to open with this embedding.

    Args:
        embedding: An embedding or its name: a short one such as ``wordllama`` gives the full one, and one
            that linkstore cannot make an embedding from stays as it is.

    Raises:
        MissingExtraError: If it is a built-in one that is not installed.
    """
    if not isinstance(embedding, str):
        return name_embedding(embedding)
    if ":" in embedding:  # a model's name is written in one way only
        return embedding
    try:
        return name_embedding(get_embedding(embedding))
    except errors.EmbeddingError:
        return embedding
