"""Copies documents, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final, Protocol

from linkstore.arguments import path_of, require, require_at_least, require_having
from linkstore.backends.base import Backend, Change, Manifest, Record, Written
from linkstore.errors import BackendError, DocumentError, EmbeddingError, LinkError, LinkStoreError
from linkstore.floors import FLOOR_NOTE
from linkstore.migration.checkpoint import Journal
from linkstore.migration.report import MigrationReport, Step, Tally
from linkstore.migration.source import BackendSource, Batch, Source
from linkstore.plans import Candidates, Find, Plan
from linkstore.schemacheck import SCHEMA_NOTE

BATCH: Final = 500


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
    batch: int = BATCH,
    checkpoint: str | Path | None = None,
) -> MigrationReport:
    """Copy all documents of a source, with their vectors and links, and what it records besides.

    That is its page entries, times of access, schema, and minimum similarity. Nothing is embedded again, and
    documents are not checked against a schema. A schema and a minimum similarity that the target has stay; an
    open store uses a new minimum similarity when it is opened again. What the target holds besides stays;
    documents with the same ids are replaced. Writes to the source during the run may or may not be copied:
    run it again afterwards, which writes only what changed.

    Args:
        source: A backend, or for instance a :class:`~linkstore.migration.community.CommunityTable`.
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
    _claim(target, manifest)
    journal = Journal(None if checkpoint is None else path_of("checkpoint", checkpoint), manifest)
    tally = _resumed(journal, target)
    resumed = tally.steps > 0
    _copy_documents(_steps(origin, target, tally.cursor, batch), journal, tally, progress)
    pages = _copy_pages(origin, target, batch)
    if isinstance(source, Backend):
        _copy_notes(source, target)
        _copy_accesses(source, target, batch)
    target.run(target.flush())
    journal.remove()
    return tally.report(pages=pages, resumed=resumed)


def _copy_documents(
    steps: Iterator[tuple[Step, int]], journal: Journal, tally: Tally, progress: Progress | None
) -> None:
    """Take the steps of a run, and note how far it is after each."""
    done = 0
    for step, read in steps:
        journal.append(step)
        tally.take(step)
        done += read
        if progress is not None:
            progress(done, len(tally.refused))


def _claim(target: Backend, manifest: Manifest) -> None:
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


def _resumed(journal: Journal, target: Backend) -> Tally:
    """The progress of earlier runs; none if the target does not have it any more."""
    steps = journal.read()
    last = next((step.last for step in reversed(steps) if step.last is not None), None)
    tally = Tally()
    if last is not None and target.run(target.answer(_holds(last))):
        for step in steps:
            tally.take(step)
    else:
        journal.begin()
    return tally


def _holds(id: str) -> Plan[bool]:
    """Whether there is a document with this id."""
    found: Candidates = yield Find(ids=(id,))
    return len(found.refs) > 0


def _steps(source: Source, target: Backend, after: str | None, limit: int) -> Iterator[tuple[Step, int]]:
    """Copy what lies after a cursor; each step with how many documents were read for it."""
    while True:
        batch = source.batch(after, limit)
        if batch.cursor is None:
            return
        after = batch.cursor
        yield _copied(batch, batch.cursor, target), len(batch.records) + len(batch.refused)


def _copied(batch: Batch, cursor: str, target: Backend) -> Step:
    """Write a batch."""
    written, refused = _write(target, batch.records) if batch.records else (Written(), {})
    taken = [record for record in batch.records if record.id not in refused]
    return Step(
        cursor=cursor,
        last=taken[-1].id if taken else None,
        written=written,
        links=dict(Counter(link.kind for record in taken for link in record.links)),
        refused={**batch.refused, **refused},
    )


def _write(target: Backend, records: Sequence[Record]) -> tuple[Written, dict[str, str]]:
    """Write records together; if the target refuses, one by one, to find which of them it refuses."""
    try:
        return target.run(target.write(Change(put=records))), {}
    except LinkStoreError as error:
        if not _is_about_documents(error):
            raise
        written, refused = _write_each(target, records)
        if isinstance(error, BackendError) and len(refused) == len(records) > 1:
            raise  # it would refuse any
        return written, refused


def _write_each(target: Backend, records: Sequence[Record]) -> tuple[Written, dict[str, str]]:
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
