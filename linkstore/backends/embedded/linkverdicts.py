"""A cache of the links that pass a filter on their data, by the entries of a mirror.

Neither the table of links nor the mirror contains link data. A search with such a filter reads them from the
documents that it reaches; other searches cost nothing extra.
"""

from __future__ import annotations

from typing import Final

import apsw
import numpy as np
import orjson

from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.mirror import Mirror
from linkstore.backends.embedded.recorded import decoding, read_metadata
from linkstore.backends.embedded.remembering import Remembered
from linkstore.filters import Condition
from linkstore.links import links_in
from linkstore.plans import Side
from linkstore.storedlinks import passing_weights
from linkstore.vectors import Floats, Ints

_NONE: Final = np.float32(-1)
_LINKS: Final = "SELECT key, links FROM document WHERE key IN (SELECT value FROM json_each(?))"
DATA: Final = '"data":'
"""The JSON of links contains this string if one of them has data."""


class LinkVerdicts:
    """The weights of links that pass recent filters, shared by the readers of one process."""

    def __init__(self) -> None:
        self._columns = Remembered[tuple[str, Side]](np.array([np.nan], np.float32))

    def weights(
        self, condition: Condition, side: Side, entries: Ints, mirror: Mirror, connection: apsw.Connection
    ) -> Floats:
        """Return for each entry (m,) the highest weight of its links that pass on a side, or -1 if none does.

        Args:
            condition: The filter.
            side: The side of the link groups.
            entries: (m,) entries of the mirror; the reader sees their documents.
            mirror: The mirror that has these entries.
            connection: In the reader's transaction.
        """
        if not len(entries):
            return np.empty(0, np.float32)
        column = self._columns.column((condition.key, side), int(entries.max()))
        unknown = np.unique(entries[np.isnan(column.take(entries))])
        if len(unknown):
            column.put(unknown, _judged(condition, side, unknown, mirror, connection))
        weights: Floats = column.take(entries)
        return weights


def _judged(
    condition: Condition, side: Side, entries: Ints, mirror: Mirror, connection: apsw.Connection
) -> Floats:
    rows = mirror.link_document.take(entries).astype(np.int64)
    distinct, owner = np.unique(rows, return_inverse=True)
    keys = mirror.keys.take(distinct).tolist()
    stored = dict(rows_of(connection, _LINKS, (orjson.dumps(keys).decode(),)))
    written: list[str] = [stored.get(key) or "" for key in keys]
    weights = np.full(len(entries), _NONE, np.float32)
    if condition.matches({}):
        weights[:] = mirror.link_weight.take(entries)
    told = np.array([DATA in links for links in written], np.bool_)[owner]
    with decoding("documents"):
        passing = {
            at: passing_weights(links_in(read_metadata("{}", written[at])), side, condition)
            for at in np.unique(owner[told]).tolist()
        }
    groups = mirror.link_group.take(entries[told]).astype(np.int64)
    kinds, tags = mirror.group_kind.take(groups).tolist(), mirror.tags.take(groups)
    weights[told] = [
        passing[at].get((mirror.kinds[kind], tag), _NONE)
        for at, kind, tag in zip(owner[told].tolist(), kinds, tags, strict=True)
    ]
    return weights
