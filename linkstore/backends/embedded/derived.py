"""Comparison of derived data (mirror, snapshot and index) with the tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from linkstore.backends.base import Finding
from linkstore.backends.embedded.advancing import advanced
from linkstore.backends.embedded.ann import LEAST_RECALL, LiveIndex, SavedIndex
from linkstore.backends.embedded.columns import Array
from linkstore.backends.embedded.loading import load_documents, load_groups, load_links
from linkstore.backends.embedded.mirror import Mirror, Stamp
from linkstore.backends.embedded.nodes import codes_of
from linkstore.backends.embedded.reader import View
from linkstore.backends.embedded.recall import recall_at_ten
from linkstore.backends.embedded.recorded import settings_of
from linkstore.backends.embedded.sharing import FLOOR
from linkstore.backends.embedded.snapshot import Snapshot, SnapshotFiles
from linkstore.vectors import Ints

_CHUNK: Final = 20_000
"""How many document keys are read at once."""
_EXAMPLES: Final = 5


def findings(
    view: View, files: SnapshotFiles, recorded: Snapshot | None, live: LiveIndex
) -> Iterator[Finding]:
    """Yield the differences between derived data and the tables.

    Args:
        view: A view of the store.
        files: The files of its snapshots.
        recorded: The snapshot that the database records; its files have the recorded hashes.
        live: The index in memory.
    """
    yield from _in_mirror(view, view.mirror, "in memory")
    floor = settings_of(view.connection).get(FLOOR) or 0
    mirror = files.load_mirror(recorded) if recorded and recorded.change >= floor else None
    if mirror is not None:  # an older mirror cannot be brought up to date, and is never used
        yield from _in_mirror(view, advanced(mirror, view.connection, view.stamp), "in the snapshot")
    saved = files.map_ann(recorded) if recorded else None
    if saved is not None:
        yield from _in_index(view, saved, "in the snapshot")
    yield from live.used(lambda index: list(_in_index(view, index, "in memory"))) or ()


def _in_mirror(view: View, mirror: Mirror, place: str) -> Iterator[Finding]:
    wrong: list[str] = []
    for after in range(0, view.stamp.last_key, _CHUNK):
        wrong += _differing(view, mirror, after, min(after + _CHUNK, view.stamp.last_key))
    yield from _finding(f"documents that differ {place}", wrong)
    rows = mirror.all_visible(view.stamp)
    surplus = len(rows) - view.connection.execute("SELECT count(*) FROM document").get
    if surplus > 0:
        yield Finding(problem=f"documents that are only {place}", count=surplus)
    yield from _finding(f"link groups that differ {place}", _differing_groups(view, mirror))
    if not all(_sorted_rightly(mirror, view.stamp, bit) for bit in mirror.sides):
        yield Finding(problem=f"members of link groups that differ {place}", count=1)


def _differing(view: View, mirror: Mirror, after: int, last: int) -> list[str]:
    """Return the ids of the documents in a range of keys that the mirror lacks or has with other values."""
    documents = load_documents(view.connection, after, last, mirror.dimension)
    rows, found = mirror.keys.find(documents.keys)
    visible = mirror.visible(rows, view.stamp)
    if visible is not None:
        found &= visible
    wrong = ~found
    if len(mirror.keys):
        wrong |= np.array([a != b for a, b in zip(mirror.ids.take(rows), documents.ids, strict=True)], bool)
        wrong |= (mirror.vectors.take(rows) != documents.vectors).any(axis=1)
    links = load_links(view.connection, after, last)
    of, entries = mirror.links_of(rows[~wrong])
    theirs = (
        documents.keys[~wrong][of],
        mirror.group_keys.take(mirror.link_group.take(entries).astype(np.int64)),
        mirror.link_bits.take(entries),
        mirror.link_weight.take(entries),
    )
    kept = np.isin(links.document, documents.keys[~wrong])
    ours = (links.document[kept], links.group[kept], links.bits[kept], links.weight[kept])
    wrong |= np.isin(documents.keys, _unlike(ours, theirs))
    return [documents.ids[at] for at in np.flatnonzero(wrong).tolist()]


def _unlike(ours: tuple[Array, ...], theirs: tuple[Array, ...]) -> Ints:
    """Return the keys of documents whose link entries differ: an entry that is equal in both occurs twice.

    ``numpy.unique`` is not used here: it compares rows by Python code, and raises TypeError if interrupted.
    """
    both = [np.concatenate(pair).astype(np.float64) for pair in zip(ours, theirs, strict=True)]
    rows = np.column_stack(both)
    rows = rows[np.lexsort(rows.T)]
    starts = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1))[: len(rows)])
    counts = np.diff(starts, append=len(rows))
    unlike: Ints = rows[starts[counts != 2], 0].astype(np.int64)
    return unlike


def _differing_groups(view: View, mirror: Mirror) -> list[str]:
    """Return the tags of link groups in the table that the mirror lacks or has with other values."""
    groups = load_groups(view.connection, 0, view.stamp.last_group)
    rows, found = mirror.group_keys.find(groups.keys)
    if not len(mirror.group_keys):
        return groups.tags
    kinds = [mirror.kinds[code] for code in mirror.group_kind.take(rows).tolist()]
    named = zip(kinds, mirror.tags.take(rows), groups.codes.tolist(), groups.tags, strict=True)
    same = [kind == groups.kinds[code] and tag == other for kind, tag, code, other in named]
    return [tag for tag, good in zip(groups.tags, np.array(same, bool) & found, strict=True) if not good]


def _sorted_rightly(mirror: Mirror, stamp: Stamp, bit: int) -> bool:
    """Check that the runs of a side have every entry of every existing document under its link group."""
    groups, entries = mirror.sides[bit].flat()
    if len(entries) and (entries.max() >= len(mirror.link_group) or entries.min() < 0):
        return False
    if (mirror.link_group.take(entries) != groups).any():
        return False
    total = len(mirror.link_group)
    there = mirror.visible(mirror.link_document.rows(0, total).astype(np.int64), stamp)
    wanted = (mirror.link_bits.rows(0, total) & bit) != 0
    if there is not None:
        wanted &= there
    counts = np.bincount(entries, minlength=total)
    return bool((counts[wanted] == 1).all() and (counts <= 1).all())


def _in_index(view: View, index: SavedIndex, place: str) -> Iterator[Finding]:
    """Compare the keys and vectors of an index with the documents that it covers."""
    mirror, stamp = view.mirror, view.stamp
    if index.change > stamp.change:
        return  # it may lack documents that were removed after this view's state
    keys = np.sort(np.concatenate((np.asarray(index.index.keys, dtype=np.int64), index.twins.keys)))
    rows = mirror.all_visible(stamp)
    rows = rows[: np.searchsorted(mirror.keys.take(rows), index.covered, "right")]
    wanted = mirror.keys.take(rows)
    wrong = ~np.isin(wanted, keys)
    for start in range(0, len(wanted), _CHUNK):
        part = np.arange(start, min(start + _CHUNK, len(wanted)))
        part = part[~wrong[part]]
        if len(part):
            held = codes_of(index.index, index.twins.nodes_of(wanted[part]))
            wrong[part] = (held != index.codes(mirror.vectors.take(rows[part]))).any(axis=1)
    yield from _finding(f"documents that the index {place} lacks or differs in", mirror.ids.take(rows[wrong]))
    if len(keys) != len(np.unique(keys)) or (len(keys) and keys[-1] > index.covered):
        yield Finding(problem=f"entries of the index {place} without documents", count=1)
    if not wrong.any() and index.recall >= LEAST_RECALL:  # of one that is not used, nothing is promised
        recall = recall_at_ten(index, mirror, stamp)
        if recall < LEAST_RECALL:
            problem = f"the index {place} finds {recall:.0%} of the ten nearest documents of a sample"
            yield Finding(problem=problem, count=1)


def _finding(problem: str, places: list[str]) -> Iterator[Finding]:
    if places:
        yield Finding(problem=problem, count=len(places), examples=tuple(places[:_EXAMPLES]))
