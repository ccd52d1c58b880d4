"""Copies documents from one store to another, batch by batch, without embedding anything again.

A journal lets the next run continue after an interrupt. It is a file of JSON lines: source and target, then
one line for each batch that the target has acknowledged. A line that was cut off does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import orjson
from langchain_core.embeddings import Embeddings

from linkstore.core.arguments import as_path, require, require_at_least, require_having
from linkstore.core.plans import Candidates, Find, Plan
from linkstore.embeddings.names import embedding_name, get_embedding
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Change, Manifest, PageEntry, Record, Written
from linkstore.errors import BackendError, DocumentError, EmbeddingError, LinkError, LinkStoreError
from linkstore.store.operations import FLOOR_NOTE
from linkstore.store.schema_graph import SCHEMA_NOTE


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOutcome:
    """The outcome of one batch.

    Args:
        cursor: Where to go on after it.
        last: Id of the last document written; None if all were refused.
        written: What the target did with the documents.
        links: Their links, by kind.
        refused: Documents that could not be taken, by id, with the reason.
    """

    cursor: str
    last: str | None
    written: Written
    links: Mapping[str, int]
    refused: Mapping[str, str]


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

    written: Written
    links: Mapping[str, int]
    pages: int
    refused: Mapping[str, str]
    resumed: bool = False

    @property
    def documents(self) -> int:
        """How many documents were taken over, whether the target had them already or not."""
        return self.written.added + self.written.updated + self.written.unchanged


@dataclass(slots=True)
class MigrationTally:
    """Sums of the steps so far."""

    steps: int = 0
    cursor: str | None = None
    written: Counter[str] = field(default_factory=Counter)
    links: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)

    def take(self, step: BatchOutcome) -> None:
        """Count a step."""
        self.steps += 1
        self.cursor = step.cursor
        self.written.update(asdict(step.written))
        self.links.update(step.links)
        self.refused.update(step.refused)

    def report(self, *, pages: int, resumed: bool) -> MigrationReport:
        """Return the report of all steps."""
        return MigrationReport(
            written=Written(**self.written),
            links=dict(sorted(self.links.items())),
            pages=pages,
            refused=dict(self.refused),
            resumed=resumed,
        )


_FORMAT: Final = "linkstore migration 1"


class CheckpointError(LinkStoreError):
    """A file is not a checkpoint, or belongs to another migration."""


class Journal:
    """The steps of a migration that is not done yet, in a file.

    Args:
        path: The file; None keeps no journal.
        manifest: The embedding of what is migrated.
    """

    def __init__(self, path: Path | None, manifest: Manifest) -> None:
        self._path = path
        self._head = {"format": _FORMAT, **asdict(manifest)}

    def read(self) -> list[BatchOutcome]:
        """Return the steps of earlier runs, in order, or none if there is no file.

        Raises:
            CheckpointError: If it is not a checkpoint, or belongs to another migration.
        """
        if self._path is None or not self._path.exists():
            return []
        content = self._path.read_bytes()
        whole, _, cut = content.rpartition(b"\n")
        try:
            head, *entries = map(orjson.loads, whole.splitlines())
            steps = [_parse_step(entry) for entry in entries]
        except (ValueError, TypeError, KeyError) as error:
            raise self._error("no checkpoint of a migration") from error
        if head != self._head:
            raise self._error("the checkpoint of another migration, or of another version of linkstore")
        if cut:
            self._path.write_bytes(whole + b"\n")
        return steps

    def begin(self) -> None:
        """Start with no steps."""
        if self._path is not None:
            self._path.write_bytes(orjson.dumps(self._head) + b"\n")

    def append(self, step: BatchOutcome) -> None:
        """Note a step that the target has acknowledged."""
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(orjson.dumps(asdict(step)) + b"\n")

    def remove(self) -> None:
        """Remove the file, since the migration is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _error(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self._path} is {what}; remove it, or name another file")


def _parse_step(entry: Mapping[str, Any]) -> BatchOutcome:
    return BatchOutcome(**{**entry, "written": Written(**entry["written"])})


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


class Source(Protocol):
    """Documents that are read from a cursor on, in an order that stays the same from run to run."""

    def manifest(self) -> Manifest:
        """Return the embedding that the vectors of the source are from."""
        ...

    def batch(self, after: str | None, limit: int) -> Batch:
        """Up to ``limit`` documents after a cursor (None: the first)."""
        ...

    def pages(self) -> Sequence[PageEntry]:
        """Return the records of indexed pages."""
        ...


class BackendSource:
    """A linkstore as a source; its cursors are ids.

    Args:
        backend: It stays open.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def manifest(self) -> Manifest:
        """As the store records it."""
        return self._backend.run(self._backend.manifest())

    def batch(self, after: str | None, limit: int) -> Batch:
        """In the backend's order."""
        records = self._backend.run(self._backend.scan(after, limit))
        return Batch(cursor=records[-1].id if records else None, records=records)

    def pages(self) -> Sequence[PageEntry]:
        """Of all its sources."""
        return self._backend.run(self._backend.pages(None))


MIGRATION_BATCH_SIZE: Final = 500


class Progress(Protocol):
    """Called after each batch."""

    def __call__(self, done: int, refused: int) -> None:
        """``done`` documents were read in this run; ``refused`` in all could not be taken."""
        ...


def migrate(
    source: Source | Backend,
    target: Backend,
    *,
    progress: Progress | None = None,
    batch: int = MIGRATION_BATCH_SIZE,
    checkpoint: str | Path | None = None,
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
        progress: Called after each batch.
        batch: How many documents are read and written at once; default 500.
        checkpoint: A file in which the run notes how far it is; it is removed at the end. With that of an
            interrupted run the next one goes on from there, if the target still has what was written.
            Use it for the same source and target only.

    Returns:
        What was copied, and which documents could not be, with the reasons.

    Raises:
        EmbeddingError: If the target was built with another embedding.
        CheckpointError: If ``checkpoint`` is something else.
        BackendError: If source or target fails; what was written until then stays.
        StrategyError: If ``batch`` is not an integer of at least 1.
    """
    require(Backend, "a backend, such as LinkStore.open('kb').backend", target=target)
    require_having("manifest", "a backend, such as LinkStore.open('kb').backend, or a Source", source=source)
    require_at_least(1, batch=batch)
    origin = BackendSource(source) if isinstance(source, Backend) else source
    manifest = origin.manifest()
    _claim_embedding(target, manifest)
    journal = Journal(None if checkpoint is None else as_path("checkpoint", checkpoint), manifest)
    tally = _resume_tally(journal, target)
    resumed = tally.steps > 0
    _copy_documents(_copy_steps(origin, target, tally.cursor, batch), journal, tally, progress)
    pages = _copy_pages(origin, target, batch)
    if isinstance(source, Backend):
        _copy_notes(source, target)
        _copy_accesses(source, target, batch)
    target.run(target.flush())
    journal.remove()
    return tally.report(pages=pages, resumed=resumed)


def _copy_documents(
    steps: Iterator[tuple[BatchOutcome, int]],
    journal: Journal,
    tally: MigrationTally,
    progress: Progress | None,
) -> None:
    """Take the steps of a run, and note how far it is after each."""
    done = 0
    for step, read in steps:
        journal.append(step)
        tally.take(step)
        done += read
        if progress is not None:
            progress(done, len(tally.refused))


def _claim_embedding(target: Backend, manifest: Manifest) -> None:
    """Record the source's embedding in the target."""
    if manifest.dimension is None:
        return
    recorded = target.run(target.claim(manifest))
    if recorded != manifest:
        raise EmbeddingError(
            f"the target was built with the embedding {recorded.embedding!r} of dimension"
            f" {recorded.dimension}, and the source's vectors are from {manifest.embedding!r} of dimension"
            f" {manifest.dimension}; migrate into a new store"
        )


def _resume_tally(journal: Journal, target: Backend) -> MigrationTally:
    """Return the progress of earlier runs, or none if the target no longer has it."""
    steps = journal.read()
    last = next((step.last for step in reversed(steps) if step.last is not None), None)
    tally = MigrationTally()
    if last is not None and target.run(target.answer(_has_document(last))):
        for step in steps:
            tally.take(step)
    else:
        journal.begin()
    return tally


def _has_document(id: str) -> Plan[bool]:
    """Whether there is a document with this id."""
    found: Candidates = yield Find(ids=(id,))
    return len(found.refs) > 0


def _copy_steps(
    source: Source, target: Backend, after: str | None, limit: int
) -> Iterator[tuple[BatchOutcome, int]]:
    """Copy what lies after a cursor; each step with how many documents were read for it."""
    while True:
        batch = source.batch(after, limit)
        if batch.cursor is None:
            return
        after = batch.cursor
        yield _copy_batch(batch, batch.cursor, target), len(batch.records) + len(batch.refused)


def _copy_batch(batch: Batch, cursor: str, target: Backend) -> BatchOutcome:
    """Write a batch."""
    written, refused = _write_batch(target, batch.records) if batch.records else (Written(), {})
    taken = [record for record in batch.records if record.id not in refused]
    return BatchOutcome(
        cursor=cursor,
        last=taken[-1].id if taken else None,
        written=written,
        links=dict(Counter(link.kind for record in taken for link in record.links)),
        refused={**batch.refused, **refused},
    )


def _write_batch(target: Backend, records: Sequence[Record]) -> tuple[Written, dict[str, str]]:
    """Write records together; if the target refuses, one by one, to find which of them it refuses."""
    try:
        return target.run(target.write(Change(put=records))), {}
    except LinkStoreError as error:
        if not _is_about_documents(error):
            raise
        written, refused = _write_singly(target, records)
        if isinstance(error, BackendError) and len(refused) == len(records) > 1:
            raise  # it would refuse any
        return written, refused


def _write_singly(target: Backend, records: Sequence[Record]) -> tuple[Written, dict[str, str]]:
    """Write records one by one; what was written, and which were refused and why."""
    sums: Counter[str] = Counter()
    refused = {}
    for record in records:
        try:
            written = target.run(target.write(Change(put=(record,))))
        except LinkStoreError as error:
            if not _is_about_documents(error):
                raise
            refused[record.id] = error.message
        else:
            sums.update(asdict(written))
    return Written(**sums), refused


def _is_about_documents(error: LinkStoreError) -> bool:
    """Whether a target may have refused a document, and not be out of reach, busy, full or damaged."""
    return isinstance(error, DocumentError | LinkError) or type(error) is BackendError


def _copy_pages(source: Source, target: Backend, limit: int) -> int:
    """Copy the entries of indexed pages; how many there are."""
    entries = source.pages()
    for start in range(0, len(entries), limit):
        target.run(target.write(Change(put_pages=entries[start : start + limit])))
    return len(entries)


def _copy_notes(source: Backend, target: Backend) -> None:
    """Record the schema and the minimum similarity of the source in a target that has none."""
    for name in (SCHEMA_NOTE, FLOOR_NOTE):
        text = source.run(source.note(name))
        if text is not None:
            target.run(target.set_note(name, text, None))


def _copy_accesses(source: Backend, target: Backend, limit: int) -> None:
    """Record in the target when documents were last accessed."""
    records = source.run(source.scan(None, limit))
    while records:
        times = source.run(source.accessed([record.id for record in records]))
        if times:
            target.run(target.touch(times))
        records = source.run(source.scan(records[-1].id, limit))


def find_recorded_name(embedding: Embeddings | str) -> str:
    """Return the name that a store built with this embedding records, so that it opens with it.

    Args:
        embedding: An embedding or its name: a short one such as ``wordllama`` gives the full one, and one
            that linkstore cannot make an embedding from stays as it is.

    Raises:
        MissingExtraError: If it is a built-in one that is not installed.
    """
    if not isinstance(embedding, str):
        return embedding_name(embedding)
    if ":" in embedding:  # a model's name is written in one way only
        return embedding
    try:
        return embedding_name(get_embedding(embedding))
    except EmbeddingError:
        return embedding
