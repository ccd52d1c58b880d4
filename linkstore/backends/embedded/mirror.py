"""What queries read instead of tables: ids, vectors and links as columns, kept up to date.

A mirror holds everything up to some change of the store and never forgets: a document that was
removed keeps its row, with the change that removed it. A reader that knows its own change and last
key therefore sees exactly its state, even while another thread brings the mirror further.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

import apsw
import numpy as np

from linkstore.arrays import ranges
from linkstore.backends.embedded.columns import Array, Column, Names
from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.loading import GroupRows, load_documents, load_groups, load_links
from linkstore.backends.embedded.runs import Run, Runs
from linkstore.vectors import Bools, Ints

ALIVE: Final = np.iinfo(np.int64).max
OUT, IN = 1, 2
SIDE_BITS: Final = {"out": OUT, "in": IN}


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which state of the store a reader sees.

    Args:
        change: Number of the last change.
        last_key: Largest document key given out.
        last_group: Largest link group key given out.
        documents: How many documents there are.
    """

    change: int
    last_key: int
    last_group: int
    documents: int


class Mirror:
    """Columns over document keys (row 0 is unused), link entries and link groups.

    Args:
        dimension: Of the vectors.
        base: What a snapshot holds; None starts empty.
        vectors: (n, d) vectors of the first n keys, with a base.
        change: The change the base was taken at.

    Attributes:
        oldest: Readers of states before this change cannot be served.
        gaps: Whether there are keys without a document.
        stale: How many documents were removed since the base: they may still be in the runs.
    """

    def __init__(
        self,
        dimension: int,
        base: dict[str, Array] | None = None,
        vectors: Array | None = None,
        change: int = 0,
    ) -> None:
        base = base or _nothing()
        self.dimension = dimension
        self.oldest = self.change = change
        self.ids = Names(base["id_offsets"], base["id_blob"])
        self.vectors = Column(np.zeros((1, dimension), np.float32) if vectors is None else vectors)
        self.removed_at = Column(np.where(base["alive"], ALIVE, 0).astype(np.int64))
        self.gaps = not base["alive"][1:].all()
        self.stale = 0
        self.links_end = Column(base["links_end"])
        self.link_group = Column(base["link_group"])
        self.link_document = Column(base["link_document"])
        self.link_bits = Column(base["link_bits"])
        self.link_weight = Column(base["link_weight"])
        self.group_kind = Column(base["group_kind"])
        self.tags = Names(base["tag_offsets"], base["tag_blob"])
        self.kinds: list[str] = (
            str(base["kinds"].tobytes(), "utf-8").split("\0") if base["kinds"].size else []
        )
        self.sides = {bit: Runs(_run(base, bit)) for bit in (OUT, IN)}
        self._lock = threading.Lock()

    @property
    def last_key(self) -> int:
        """The largest document key held."""
        return len(self.links_end) - 1

    def catch_up(self, connection: apsw.Connection, stamp: Stamp) -> None:
        """Take in what was committed up to ``stamp``; cost of the change alone."""
        if self.change >= stamp.change:
            return
        with self._lock:
            if self.change >= stamp.change:
                return
            self._take_groups(load_groups(connection, len(self.group_kind) - 1, stamp.last_group))
            if stamp.last_key > self.last_key and not self._take_documents(connection, stamp.last_key):
                self.oldest = stamp.change  # a document came and went; states in between had it
            self._take_removals(connection)
            self.change = stamp.change

    def fill_vectors(self, connection: apsw.Connection) -> None:
        """Load vectors that no verified file holds; part of opening."""
        missing = len(self.vectors) - 1
        if missing < self.last_key:
            rows = load_documents(connection, missing, self.last_key, self.dimension)
            self.vectors.append(rows.vectors)

    def use_vectors(self, base: Array) -> None:
        """Read the first vectors from an equal array, freeing the memory of the old."""
        with self._lock:
            self.vectors.rebase(base)

    def visible(self, keys: Ints, stamp: Stamp) -> Bools | None:
        """Which documents exist in the state of ``stamp``; None when all do."""
        if not self.gaps and (not len(keys) or keys.max() <= stamp.last_key):
            return None
        known = keys <= stamp.last_key
        known[known] = self.removed_at.take(keys[known]) > stamp.change
        return known

    def links_of(self, keys: Ints) -> tuple[Ints, Ints]:
        """Link entries of documents: positions in ``keys``, and entries."""
        ends, starts = self.links_end.take(keys), self.links_end.take(keys - 1)
        counts = ends - starts
        return np.repeat(np.arange(len(keys)), counts), ranges(starts, counts)

    def _take_groups(self, rows: GroupRows) -> None:
        codes = {kind: code for code, kind in enumerate(self.kinds)}
        for kind in rows.kinds:
            codes.setdefault(kind, len(codes))
        self.kinds = list(codes)
        recode = np.array([codes[kind] for kind in rows.kinds], dtype=np.int16)
        self.tags.append(rows.tags)
        self.group_kind.append(recode[rows.codes])

    def _take_documents(self, connection: apsw.Connection, last_key: int) -> bool:
        """Append the documents up to a key; tells whether all of them are there."""
        first = self.last_key
        rows = load_documents(connection, first, last_key, self.dimension)
        links = load_links(connection, first, last_key)
        start = len(self.link_group)
        self.ids.append(rows.ids)
        self.vectors.append(rows.vectors)
        self.removed_at.append(np.where(rows.alive, ALIVE, 0))
        complete = bool(rows.alive.all())
        self.gaps |= not complete
        for column, values in (
            (self.link_group, links.group),
            (self.link_document, links.document),
            (self.link_bits, links.bits),
            (self.link_weight, links.weight),
        ):
            column.append(values)
        entries = np.arange(start, start + len(links.group), dtype=np.int32)
        for bit, runs in self.sides.items():
            chosen = (links.bits & bit) != 0
            runs.add(links.group[chosen], entries[chosen])
        counts = np.bincount(links.document - first - 1, minlength=last_key - first)
        self.links_end.append(start + np.cumsum(counts))
        return complete

    def _take_removals(self, connection: apsw.Connection) -> None:
        query = "SELECT key, change FROM departed WHERE change > ?"
        rows = np.array(rows_of(connection, query, (self.change,)), dtype=np.int64).reshape(-1, 2)
        rows = rows[self.removed_at.take(rows[:, 0]) == ALIVE]
        self.removed_at.put(rows[:, 0], rows[:, 1])
        self.gaps |= bool(len(rows))
        self.stale += len(rows)

    def arrays(self, stamp: Stamp) -> dict[str, Array]:
        """Everything but vectors in the state of ``stamp``, as a snapshot stores it."""
        last_key = stamp.last_key
        offsets, blob = self.ids.packed(last_key + 1)
        tag_offsets, tag_blob = self.tags.packed(stamp.last_group + 1)
        entries = int(self.links_end.take(np.array([last_key]))[0])
        arrays: dict[str, Array] = {
            "id_offsets": offsets,
            "id_blob": blob,
            "alive": self.removed_at.rows(0, last_key + 1) > stamp.change,
            "links_end": self.links_end.rows(0, last_key + 1),
            "link_group": self.link_group.rows(0, entries),
            "link_document": self.link_document.rows(0, entries),
            "link_bits": self.link_bits.rows(0, entries),
            "link_weight": self.link_weight.rows(0, entries),
            "group_kind": self.group_kind.rows(0, stamp.last_group + 1),
            "tag_offsets": tag_offsets,
            "tag_blob": tag_blob,
            "kinds": np.frombuffer("\0".join(self.kinds).encode(), dtype=np.uint8),
        }
        for bit in (OUT, IN):
            there = arrays["alive"][arrays["link_document"]]
            chosen = np.flatnonzero(there & ((arrays["link_bits"] & bit) != 0)).astype(np.int32)
            run = Run.of(arrays["link_group"][chosen], chosen)
            arrays |= {
                f"run{bit}_groups": run.groups,
                f"run{bit}_starts": run.starts,
                f"run{bit}_entries": run.entries,
            }
        return arrays


def _run(base: dict[str, Array], bit: int) -> Run:
    return Run(base[f"run{bit}_groups"], base[f"run{bit}_starts"], base[f"run{bit}_entries"])


def _nothing() -> dict[str, Array]:
    """The arrays of an empty store: row 0 of each keyed column, which no document has."""
    empty32, one = np.empty(0, np.int32), np.zeros(1, np.int64)
    arrays: dict[str, Array] = {
        "id_offsets": np.zeros(2, np.int64),
        "id_blob": np.empty(0, np.uint8),
        "alive": np.zeros(1, np.bool_),
        "links_end": one,
        "link_group": empty32,
        "link_document": empty32,
        "link_bits": np.empty(0, np.uint8),
        "link_weight": np.empty(0, np.float32),
        "group_kind": np.zeros(1, np.int16),
        "tag_offsets": np.zeros(2, np.int64),
        "tag_blob": np.empty(0, np.uint8),
        "kinds": np.empty(0, np.uint8),
    }
    for bit in (OUT, IN):
        arrays |= {f"run{bit}_groups": empty32, f"run{bit}_starts": one, f"run{bit}_entries": empty32}
    return arrays
