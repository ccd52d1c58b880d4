"""Link groups are read in full but for hubs, and what was a hub once is looked at again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from internals import (
    MAX_KEYS_PER_STATEMENT,
    MAX_REMEMBERED_HUBS,
    READ_MEMBER_TAGS,
    READ_MEMBERS,
    GroupReader,
    RowFetcher,
    drive,
)

FULL, LIGHT = READ_MEMBERS, READ_MEMBER_TAGS


class OneNode:
    """A placement that knows no ring."""

    def by_replica(self, items: Mapping) -> list[tuple[list, None]]:
        return [([*items.values()], None)] if items else []


class Server:
    """Answers statements about members from a dict of sizes, and notes what was read."""

    def __init__(self, sizes: dict[tuple[str, str], int]) -> None:
        self.sizes = sizes
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.rows = 0
        self.reader = GroupReader(RowFetcher(OneNode()))  # type: ignore[arg-type]

    def read(self, *groups: tuple[str, str], limit: int = 5):
        """Numbers of members of groups, and of those that were read with their states."""
        found = drive(self.reader.read(groups, "in", limit), self._answer)
        return [(len(rows), sum(len(row) > 1 for row in rows)) for rows in found]

    def _answer(self, requests):
        return [self._rows(statement) for statement in requests.statements]

    def _rows(self, statement):
        kind, tags, _, _, limit = statement.values
        self.asked.append((statement.cql, tuple(tags)))
        rows = [
            (tag,) if statement.cql == LIGHT else (tag, f"{n}", 1.0, b"")
            for tag in tags
            for n in range(min(limit, self.sizes.get((kind, tag), 0)))
        ]
        self.rows += len(rows)
        return rows


def test_a_group_is_read_in_full_and_a_hub_in_the_light_from_its_second_time() -> None:
    server = Server({("k", "hub"): 9, ("k", "small"): 3})
    groups = ("k", "hub"), ("k", "small"), ("k", "nobody"), ("k", "hub")
    assert server.read(*groups) == [(6, 6), (3, 3), (0, 0), (6, 6)], "one more, which may be a mark"
    assert server.asked == [(FULL, ("hub", "small", "nobody"))]
    server.asked.clear()
    assert server.read(*groups) == [(5, 0), (3, 3), (0, 0), (5, 0)]
    assert server.asked == [(FULL, ("small", "nobody")), (LIGHT, ("hub",))]


def test_a_hub_that_is_none_any_more_is_read_in_full() -> None:
    server = Server({("k", "hub"): 9, ("other", "hub"): 9})
    both = ("k", "hub"), ("other", "hub")
    server.read(*both)
    server.sizes["k", "hub"] = 4
    assert server.read(*both) == [(4, 4), (5, 0)]
    server.asked.clear()
    server.read(*both)
    assert server.asked == [(FULL, ("hub",)), (LIGHT, ("hub",))]


def test_what_is_a_hub_for_one_question_is_none_for_another() -> None:
    server = Server({("k", "hub"): 9})
    assert server.read(("k", "hub"), limit=5) == [(6, 6)]
    assert server.read(("k", "hub"), limit=10) == [(9, 9)]
    assert server.read(("k", "hub"), limit=5) == [(6, 6)]
    assert server.read(("k", "hub"), limit=5) == [(5, 0)]


def test_a_hub_stays_known_where_it_is_asked_only_whether_it_has_a_member() -> None:
    server = Server({("k", "hub"): 9})
    server.read(("k", "hub"), limit=5)
    assert server.read(("k", "hub"), limit=1) == [(1, 0)]
    assert server.read(("k", "hub"), limit=5) == [(5, 0)]


def test_the_hubs_met_last_are_remembered_and_no_more() -> None:
    server = Server({("k", f"{n}"): 2 for n in range(MAX_REMEMBERED_HUBS + 10)})
    for start in range(0, MAX_REMEMBERED_HUBS + 10, 1000):
        server.read(
            *(("k", f"{n}") for n in range(start, min(start + 1000, MAX_REMEMBERED_HUBS + 10))), limit=1
        )
    server.asked.clear()
    server.read(("k", "0"), ("k", f"{MAX_REMEMBERED_HUBS}"), limit=1)
    assert server.asked == [(FULL, ("0",)), (LIGHT, (f"{MAX_REMEMBERED_HUBS}",))]


@pytest.mark.parametrize(
    ("keys", "rows", "statements"),
    [(1, 1, 1), (100, 1, 1), (101, 1, 2), (1000, 1, 10), (24, 201, 1), (25, 201, 2), (17, 10**6, 2)],
)
def test_keys_of_one_node_go_in_a_few_statements(keys: int, rows: int, statements: int) -> None:
    fetcher = RowFetcher(OneNode())  # type: ignore[arg-type]
    parts = list(fetcher.parts({(b"%d" % n,): n for n in range(keys)}, rows))
    assert len(parts) == statements
    assert sorted(at for part, _ in parts for at in part) == list(range(keys))
    assert max(len(part) for part, _ in parts) <= MAX_KEYS_PER_STATEMENT
