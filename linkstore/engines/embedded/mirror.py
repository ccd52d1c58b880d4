"""The mirror: keys, vectors and links as columns, which queries read instead of the tables.

A mirror is a value: the store after some change. :func:`advance_mirror` makes the next mirror from it, at the
cost of what changed, and of a byte for each row. The holder of the current mirror replaces it by a single
assignment; so even after an interrupt, no reader sees one column more advanced than another. A removed
document keeps its row, marked as removed, until the mirror is packed. Rows are numbered in the order in which
documents came into the mirror, and a reader returns row numbers as refs.

The columns of both mirrors share their memory: new rows lie past the end of the old column, so its readers do
not see them. An interrupted addition leaves only rows that no column includes, and the next addition
overwrites them. Rows may be added only to the newest of such columns.

The members of link groups are runs of entries sorted by group. New entries form a new run. The last run is
merged into the one before it while it is more than half as large (a log-structured merge, O'Neil et al.
1996). So there are few runs, and the cost of adding an entry stays logarithmic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import apsw
import numpy as np
import numpy.typing as npt

from linkstore.core.arrays import Bools, Ints, expand_ranges, sort_unique
from linkstore.core.plans import Side
from linkstore.engines.embedded.lexical import parse_length
from linkstore.engines.embedded.schema import convert_row_errors, fetch_rows, read_kinds
from linkstore.errors import BackendError

Array = npt.NDArray[Any]
GroupSpans = tuple[Array, Ints, Ints]
"""The entries of a run, where those of some groups (g,) start, and how many of each there are."""
SIDES: Final[tuple[Side, Side]] = ("out", "in")
_COLUMNS: Final = {
    "keys": np.int64,
    "vectors": np.float32,
    "words": np.int32,
    "link_group": np.int32,
    "link_document": np.int32,
    "link_kind": np.int32,
}
_SIDE_COLUMNS: Final = {"weight": np.float32, "groups": np.int32, "entries": np.int32}
_DOCUMENTS: Final = (
    "SELECT document.key, embedding, ifnull(sz, x'') FROM document JOIN vector USING (key)"
    " LEFT JOIN word_docsize ON word_docsize.id = document.key"
    " WHERE document.key > ? AND length(embedding) = ? ORDER BY document.key"
)
_MOST_ENTRIES: Final = np.iinfo(np.int32).max
_LINKS: Final = (
    "SELECT document, link_group, iif(direction = 'in', -1, weight), iif(direction = 'out', -1, weight)"
    " FROM link WHERE document > ? ORDER BY document, link_group"
)
LEAST_REMOVED: Final = 500
"""A mirror with at most this many removed documents is not packed."""
REMOVED_SHARE: Final = 0.5
"""A mirror is packed when its removed documents exceed this share of the existing ones."""


@dataclass(frozen=True, slots=True)
class Column:
    """A numpy column of rows of one shape and type.

    Args:
        base: (n, …) the first rows; may be a memory map.
        tail: (m, …) memory for further rows; the first ``size`` belong to the column.
        size: How many rows of ``tail`` belong to the column.
    """

    base: Array
    tail: Array
    size: int

    @classmethod
    def of(cls, base: Array) -> Column:
        """Make a column of these rows."""
        return cls(base, np.empty((0, *base.shape[1:]), dtype=base.dtype), 0)

    def __len__(self) -> int:
        return len(self.base) + self.size

    @property
    def last(self) -> int:
        """The last row of a column of numbers, 0 if it has none."""
        return int(self.rows(len(self) - 1, len(self))[0]) if len(self) else 0

    def extend(self, rows: Array) -> Column:
        """Return a column with rows added at the end. The amortised cost depends on these rows alone."""
        tail, needed = self.tail, self.size + len(rows)
        if needed > len(tail):
            grown = np.empty((max(needed, 2 * len(tail), 64), *rows.shape[1:]), self.base.dtype)
            grown[: self.size] = tail[: self.size]
            tail = grown
        tail[self.size : needed] = rows
        return Column(self.base, tail, needed)

    def take(self, at: Ints) -> Array:
        """Return the rows at the given positions, as a copy."""
        base, tail = self.base, self.tail
        if not len(base):
            return tail[at]
        if at.max(initial=0) < len(base):
            return base[at]
        rows = np.empty((len(at), *base.shape[1:]), dtype=base.dtype)
        early = at < len(base)
        rows[early] = base[at[early]]
        rows[~early] = tail[at[~early] - len(base)]
        return rows

    def parts(self, start: int, stop: int) -> list[Array]:
        """Return rows ``start`` to ``stop``, as one or two views."""
        split = len(self.base)
        views = [self.base[start : min(stop, split)], self.tail[max(start - split, 0) : max(stop - split, 0)]]
        return list(filter(len, views))

    def rows(self, start: int, stop: int) -> Array:
        """Return rows ``start`` to ``stop``."""
        views = self.parts(start, stop)
        if len(views) == 1:
            return views[0]
        return np.concatenate(views) if views else self.base[:0]

    def count_up_to(self, value: int) -> int:
        """Count the rows of an ascending column of whole numbers that are at most ``value``."""
        return int(self.count_below(np.array([value + 1]))[0])

    def find(self, values: Ints) -> tuple[Ints, Bools]:
        """Return the position of each value in an ascending column, and whether the column contains it."""
        if not len(self):
            return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
        first, most = (self.base if len(self.base) else self.tail)[0], len(self) - 1
        at = np.minimum(np.maximum(values - first, 0), most)  # right where no number before is missing
        contained: Bools = self.take(at) == values
        if not contained.all():
            at = np.minimum(self.count_below(values), most)
            contained = self.take(at) == values
        return at, contained

    def count_below(self, values: Ints) -> Ints:
        """Count the rows of an ascending column of whole numbers that are less than each value."""
        values = values.astype(self.base.dtype)  # or numpy would convert the column
        below = np.searchsorted(self.base, values)
        return below + np.searchsorted(self.tail[: self.size], values) if self.size else below


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Entries sorted by group, and within a group in the order in which they were added.

    Args:
        groups: (n,) the group of each entry, ascending.
        entries: (n,) entries.
    """

    groups: Array
    entries: Array

    @classmethod
    def of(cls, groups: Array, entries: Array) -> SortedRun:
        """Sort entries by their groups (n,)."""
        order = np.argsort(groups, kind="stable")
        return cls(groups[order], entries[order])

    def __len__(self) -> int:
        return len(self.entries)

    def spans(self, groups: Ints) -> tuple[Ints, Ints]:
        """Return where the entries of each group start, and how many entries it has."""
        wanted = groups.astype(self.groups.dtype)  # or numpy would convert the run
        starts = np.searchsorted(self.groups, wanted)
        return starts, np.searchsorted(self.groups, wanted, "right") - starts

    def merge(self, later: SortedRun) -> SortedRun:
        """Make one run of the entries of both."""
        return SortedRun.of(
            np.concatenate((self.groups, later.groups)), np.concatenate((self.entries, later.entries))
        )


def gather_entries(spans: Sequence[GroupSpans], groups: Ints, most: int = _MOST_ENTRIES) -> tuple[Ints, Ints]:
    """Return at most ``most`` entries of each group and run: the group, by its place, and the entries."""
    owners, gathered = [], []
    for entries, starts, counts in spans:
        taken = np.minimum(counts[groups], most)
        owners.append(np.repeat(groups, taken))
        gathered.append(entries[expand_ranges(starts[groups], taken)])
    return np.concatenate(owners), np.concatenate(gathered).astype(np.int64)


@dataclass(frozen=True, slots=True)
class LinkSide:
    """One side of all links.

    Args:
        weight: The highest weight of the links of each entry that are on this side, or -1 if none is.
        runs: The entries that are on this side, by link group: the oldest first, which may be memory-mapped.
    """

    weight: Column
    runs: tuple[SortedRun, ...]

    def extend(self, weight: Array, group: Array) -> LinkSide:
        """Return this side with further entries (n,), of groups (n,)."""
        runs = (*self.runs, _sort_entries(weight, group, len(self.weight)))
        while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]):
            runs = (*runs[:-2], runs[-2].merge(runs[-1]))
        return LinkSide(self.weight.extend(weight), runs)

    def find(self, groups: Ints) -> tuple[list[GroupSpans], Ints]:
        """Return where the entries of each group (g,) are, by run, and how many entries it has."""
        runs, sizes = [], np.zeros(len(groups), dtype=np.int64)
        for run in self.runs:
            starts, counts = run.spans(groups)
            runs.append((run.entries, starts, counts))
            sizes += counts
        return runs, sizes


def _sort_entries(weight: Array, group: Array, first: int) -> SortedRun:
    """Return the entries on a side, numbered from ``first``: those with a weight (n,)."""
    on_side = np.flatnonzero(weight >= 0)
    return SortedRun.of(group[on_side], (first + on_side).astype(np.int32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """Columns over rows of documents and over link entries; link groups are named by their keys.

    Args:
        change: The last change that the mirror includes.
        alive: (n,) whether each document has not been removed.
        living: How many have not been removed.
        word_count: How many words the others have together.
        keys: Document keys, ascending.
        vectors: Document vectors.
        words: How many words each document has.
        link_group: Keys of link groups, by entry.
        link_document: Rows of documents, by entry, ascending.
        link_kind: Positions in ``kinds``, by entry.
        kinds: The kinds that occur.
        sides: Weights by entry, and entries by link group, for each side.
    """

    change: int
    alive: Bools
    living: int
    word_count: int
    keys: Column
    vectors: Column
    words: Column
    link_group: Column
    link_document: Column
    link_kind: Column
    kinds: tuple[str, ...]
    sides: Mapping[Side, LinkSide]

    @classmethod
    def of(cls, arrays: Mapping[str, Array], change: int) -> Mirror:
        """Make a mirror in the state after a change of the columns that :func:`collect_columns` makes."""
        kinds = arrays["kinds"]
        return cls(
            change=change,
            alive=np.ones(len(arrays["keys"]), np.bool_),
            living=len(arrays["keys"]),
            word_count=int(arrays["words"].sum()),
            kinds=tuple(str(kinds.tobytes(), "utf-8").split("\0")) if kinds.size else (),
            sides={
                side: LinkSide(
                    Column.of(arrays[f"{side}_weight"]),
                    (SortedRun(arrays[f"{side}_groups"], arrays[f"{side}_entries"]),),
                )
                for side in SIDES
            },
            **{name: Column.of(arrays[name]) for name in _COLUMNS},
        )

    @property
    def dimension(self) -> int:
        """The length of the vectors."""
        return int(self.vectors.base.shape[1])

    def find_living(self, start: int = 0) -> Ints:
        """Return the rows, from ``start`` on, of the documents that have not been removed."""
        return start + np.flatnonzero(self.alive[start:])

    def links_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the link entries of documents, and for each the position of its document in ``rows``."""
        starts = self.link_document.count_below(rows)
        counts = self.link_document.count_below(rows + 1) - starts
        return np.repeat(np.arange(len(rows)), counts), expand_ranges(starts, counts)


def make_empty_mirror(dimension: int) -> Mirror:
    """Make the mirror of a store before its first change."""
    types: dict[str, Any] = {**_COLUMNS, "kinds": np.uint8}
    types |= {f"{side}_{name}": dtype for side in SIDES for name, dtype in _SIDE_COLUMNS.items()}
    arrays: dict[str, Array] = {name: np.empty(0, dtype) for name, dtype in types.items()}
    return Mirror.of(arrays | {"vectors": np.empty((0, dimension), np.float32)}, 0)


def _load_links(connection: apsw.Connection, after: int) -> tuple[Array, Array, list[Array]]:
    """Load the link entries of documents with keys greater than ``after``, by document, then by link group.

    An entry is a link. Of a document's links with one tag, say an incoming and a bidirectional one, the first
    has the highest weight on each side, and the others are on no side.

    Returns:
        (m,) document keys, (m,) link group keys, and for each side (m,) the weight, or -1 if it is not on it.
    """
    rows = fetch_rows(connection, _LINKS, (after,))
    with convert_row_errors("links"):
        flat = np.fromiter(chain.from_iterable(rows), np.float64, 4 * len(rows)).reshape(-1, 4)
    document, group = flat[:, :2].T.astype(np.int32)
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (document[1:] != document[:-1]) | (group[1:] != group[:-1])
    first = np.flatnonzero(begins)
    weights = np.full((2, len(rows)), -1, np.float32)
    weights[:, first] = np.maximum.reduceat(flat[:, 2:], first).T
    return document, group, list(weights)


def advance_mirror(mirror: Mirror, connection: apsw.Connection, change: int) -> Mirror:
    """Return a mirror with everything up to a change, or ``mirror`` itself if it has all of that.

    Keys only grow, so what ``mirror`` lacks has greater keys than what it has.

    What ``mirror`` shows does not change, and an interrupt at any point is harmless.
    """
    if mirror.change >= change:
        return mirror
    added = _add_documents(mirror, connection)
    query = "SELECT key FROM departed WHERE change > ? AND key <= ?"
    keys = fetch_rows(connection, query, (mirror.change, mirror.keys.last))
    at, present = mirror.keys.find(np.array(keys, np.int64).reshape(-1))
    removed = at[present]
    alive = np.append(mirror.alive, np.ones(len(added.keys) - len(mirror.keys), np.bool_))
    alive[removed] = False
    return replace(
        added,
        change=change,
        alive=alive,
        living=int(np.count_nonzero(alive)),
        word_count=added.word_count - int(added.words.take(removed).sum()),
    )


def _add_documents(mirror: Mirror, connection: apsw.Connection) -> Mirror:
    """Add the documents with greater keys, except those without a whole vector."""
    after = mirror.keys.last
    rows = fetch_rows(connection, _DOCUMENTS, (after, 4 * mirror.dimension))
    if not rows:
        return mirror
    numbers, blobs, sizes = zip(*rows, strict=True)
    keys = np.array(numbers, dtype=np.int64)
    with convert_row_errors("documents"):
        vectors = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(rows), mirror.dimension)
        words = np.array(list(map(parse_length, sizes)), np.int32)
    document, group, weights = _load_links(connection, after)
    array = np.isin(document, keys)  # all of them, unless the store is damaged
    document, group = np.searchsorted(keys, document[array]), group[array]
    if len(mirror.link_group) + len(document) > _MOST_ENTRIES:
        raise BackendError(
            f"the store holds more than {_MOST_ENTRIES} links; an embedded store cannot follow so many:"
            " split it, or use Cassandra"
        )
    groups = sort_unique(group)
    names = read_kinds(connection, groups)
    kinds = tuple(dict.fromkeys((*mirror.kinds, *names)))
    codes = {kind: code for code, kind in enumerate(kinds)}
    kind = np.array([codes[name] for name in names], np.int32)[np.searchsorted(groups, group)]
    return replace(
        mirror,
        keys=mirror.keys.extend(keys),
        vectors=mirror.vectors.extend(vectors),
        words=mirror.words.extend(words),
        word_count=mirror.word_count + int(words.sum()),
        link_group=mirror.link_group.extend(group),
        link_document=mirror.link_document.extend((len(mirror.keys) + document).astype(np.int32)),
        link_kind=mirror.link_kind.extend(kind),
        kinds=kinds,
        sides={
            side: mirror.sides[side].extend(weight[array], group)
            for side, weight in zip(SIDES, weights, strict=True)
        },
    )


def is_sparse(mirror: Mirror) -> bool:
    """Say whether the mirror has enough removed documents to be worth packing."""
    living = mirror.living
    return len(mirror.keys) - living > max(LEAST_REMOVED, REMOVED_SHARE * living)


def pack_mirror(mirror: Mirror) -> Mirror:
    """Return a mirror of the same state without deleted documents, with new row numbers."""
    vectors = mirror.vectors.take(mirror.find_living())
    return Mirror.of({**collect_columns(mirror), "vectors": vectors}, mirror.change)


def collect_columns(mirror: Mirror) -> dict[str, Array]:
    """Return all columns except the vectors, without removed documents, as a snapshot stores them."""
    rows, end = mirror.find_living(), len(mirror.link_group)
    position = np.full(len(mirror.keys), -1, np.int32)
    position[rows] = np.arange(len(rows))
    document = position[mirror.link_document.rows(0, end)]
    entries = document >= 0
    group, kind = mirror.link_group.rows(0, end)[entries], mirror.link_kind.rows(0, end)[entries]
    kinds = sorted(mirror.kinds[code] for code in sort_unique(kind).tolist())
    codes = {kind: code for code, kind in enumerate(kinds)}
    new_code = np.array([codes.get(kind, 0) for kind in mirror.kinds], np.int32)
    arrays: dict[str, Array] = {
        "keys": mirror.keys.take(rows),
        "words": mirror.words.take(rows),
        "link_group": group,
        "link_document": document[entries],
        "link_kind": new_code[kind],
        "kinds": np.frombuffer("\0".join(kinds).encode(), dtype=np.uint8),
    }
    for side in SIDES:
        weight = mirror.sides[side].weight.rows(0, end)[entries]
        run = _sort_entries(weight, group, 0)
        arrays |= {f"{side}_weight": weight, f"{side}_groups": run.groups, f"{side}_entries": run.entries}
    return arrays
