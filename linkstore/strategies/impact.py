"""What depends on some documents: links to them, and documents to which only they lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from linkstore.core import plans
from linkstore.core.arrays import Ints, find_positions, sort_unique
from linkstore.core.plans import Plan
from linkstore.strategies.traversal import Hop, follow_groups, follow_links

MAX_MEMBERS: Final = 10_000
"""Link groups with more documents are not followed, and depend on no one document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """What depends on some documents.

    Args:
        linking: Ids of other documents that link to them.
        dangling: Those of them with a link that would lead to no document.
        orphaned: Ids of documents to which no link of another document leads.
    """

    linking: tuple[str, ...]
    dangling: tuple[str, ...]
    orphaned: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the lists as plain JSON."""
        return {
            "linking": list(self.linking), "dangling": list(self.dangling), "orphaned": list(self.orphaned)
        }  # fmt: skip


def find_impact(ids: Sequence[str]) -> Plan[Impact]:
    """Plan what depends on the documents with these ids."""
    own = (yield from plans.ask(plans.Find(ids=tuple(ids)))).refs
    inward = yield from follow_links(own, "in", take=MAX_MEMBERS, cap=MAX_MEMBERS, exclude=own)
    linking = sort_unique(inward.edges.target)
    others = yield from follow_groups(inward.groups, "in", take=1, cap=MAX_MEMBERS, exclude=own)
    alone = inward.groups[_count_reached(others, inward.groups) == 0]
    dangling = inward.edges.target[find_positions(inward.edges.group, alone) >= 0]
    outward = yield from follow_links(own, "out", take=MAX_MEMBERS, cap=MAX_MEMBERS, exclude=own)
    ends = sort_unique(outward.edges.target)
    back = yield from follow_links(ends, "in", take=2, cap=MAX_MEMBERS, exclude=own)
    large = back.source[back.size > MAX_MEMBERS]
    led = back.edges.source[back.edges.target != ends[back.edges.source]]
    orphaned = np.delete(ends, np.union1d(led, large).astype(np.int64))
    return Impact(
        linking=(yield from _list_ids(linking)),
        dangling=(yield from _list_ids(sort_unique(dangling))),
        orphaned=(yield from _list_ids(orphaned)),
    )


def _count_reached(hop: Hop, groups: Ints) -> Ints:
    """Count the documents behind each group; one that is too large has some."""
    counts = np.bincount(hop.edges.source, minlength=len(groups))
    counts[find_positions(hop.groups[hop.reached.sizes > MAX_MEMBERS], groups)] += 1
    return counts


def _list_ids(refs: Ints) -> Plan[tuple[str, ...]]:
    return tuple(sorted((yield from plans.ask(plans.Ids(refs=refs)))))
