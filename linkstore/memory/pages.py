"""How the turns of sessions are read from a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

import numpy as np

from linkstore.core.arrays import Ints
from linkstore.core.plans import Documents, Ids, Plan, Side, StoredDocument, read_documents
from linkstore.memory.sessions import (
    HAS_NOTE,
    HAS_SESSION,
    PAGE,
    SessionKey,
    make_group_tag,
    make_page_tag,
)
from linkstore.memory.turns import Turn, read_turn
from linkstore.strategies.traversal import NO_REFS, follow_tags

PROBED_PAGES: Final = 16
"""How many pages are looked for at once."""
_ALL: Final = 2**31 - 2
"""More documents than a group has."""


def read_head(session: SessionKey, take: int) -> Plan[tuple[int, list[Turn]]]:
    """Return the end of a session.

    Returns:
        The page that its document names, 0 without one; and up to ``take`` latest turns, in order.
    """
    documents = yield from read_documents([session.path])
    recorded = int(documents[0].metadata["page"]) if documents else 0
    page, refs, start = 0, NO_REFS, max(recorded, 1)
    while True:
        numbers = range(start, start + PROBED_PAGES)
        owner, members = yield from _read_pages(session, numbers)
        if not len(owner):
            break
        page, refs = numbers[int(owner.max())], members[owner == owner.max()]
        start = page + 1
    recent = yield from _read_latest(refs, take)
    before = (page or start) - 1
    while len(recent) < take and before > 0 and before > start - 2 * PROBED_PAGES:
        _, earlier = yield from _read_pages(session, [before])
        recent = [*(yield from _read_latest(earlier, take - len(recent))), *recent]
        before -= 1
    return recorded, recent


def _read_pages(session: SessionKey, pages: Sequence[int]) -> Plan[tuple[Ints, Ints]]:
    """Return the turns of pages: positions in ``pages``, and refs."""
    tags = [(PAGE, make_page_tag(session.path, page)) for page in pages]
    hop = yield from follow_tags(tags, "in", take=_ALL, cap=_ALL)
    return hop.edges.source, hop.edges.target


def read_turns(tags: Sequence[tuple[str, str]], side: Side = "in") -> Plan[list[Turn]]:
    """Return all turns and notes that link groups have on one side, in order of their ids."""
    stored = yield from _read_linked(tags, side)
    return sorted(map(read_turn, stored), key=attrgetter("id"))


def _read_linked(tags: Sequence[tuple[str, str]], side: Side = "in") -> Plan[list[StoredDocument]]:
    hop = yield from follow_tags(tags, side, take=_ALL, cap=_ALL)
    return (yield Documents(refs=np.unique(hop.edges.target)))  # type: ignore[no-any-return]


def _read_latest(refs: Ints, take: int) -> Plan[list[Turn]]:
    """Return the ``take`` latest of some turns, in order."""
    ids: list[str] = yield Ids(refs=refs)
    order = sorted(range(len(ids)), key=ids.__getitem__)[-take:] if take else []
    stored: list[StoredDocument] = yield Documents(refs=refs[np.asarray(order, np.int64)])
    return sorted(map(read_turn, stored), key=attrgetter("order"))


def read_session_documents(user_id: str | None, agent_id: str | None) -> Plan[list[StoredDocument]]:
    """Return the documents of the sessions of a user, with an agent, both, or all."""
    return (yield from _read_linked([(HAS_SESSION, make_group_tag(user_id, agent_id))]))


def _list_tags(sessions: Iterable[StoredDocument], further: int) -> list[tuple[str, str]]:
    """Return the tags of the pages that sessions name, of so many further ones, and of their notes."""
    tags: list[tuple[str, str]] = []
    for one in sessions:
        pages = range(1, int(one.metadata["page"]) + further + 1)
        tags += [(HAS_NOTE, one.id), *((PAGE, make_page_tag(one.id, page)) for page in pages)]
    return tags


def read_all(sessions: Iterable[StoredDocument]) -> Plan[list[Turn]]:
    """Return all turns and notes of sessions, given by their documents, in order of their ids."""
    return (yield from read_turns(_list_tags(sessions, PROBED_PAGES)))


def select_filled(sessions: Iterable[StoredDocument]) -> Plan[list[SessionKey]]:
    """Return the keys of the sessions that have a turn or a note, sorted."""
    tags = _list_tags(sessions, 0)
    hop = yield from follow_tags(tags, "in", take=1, cap=1)
    filled = {tags[at] for at in hop.source[hop.size > 0].tolist()}
    paths = {tag.rpartition("/")[0] if kind == PAGE else tag for kind, tag in filled}
    return [SessionKey.from_path(path) for path in sorted(paths)]
