"""One hop as a table of edges: the pairs of links that meet in a link group; on the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance.probe import DIMENSION, QUERY_VECTOR, make_record
from internals import (
    Candidates,
    Find,
    Hop,
    Ids,
    Link,
    Manifest,
    Plan,
    Record,
    Tags,
    WriteBatch,
    follow_links,
    follow_tags,
)
from oracle import OracleBackend

CAP = 5


def records_of(seed: int) -> list[Record]:
    """Documents with random links, of which some link groups are hubs and some lead nowhere."""
    print("seed", seed)
    random = np.random.default_rng(seed)
    made = []
    for number in range(12):
        links = [
            Link(
                kind=str(random.choice(["k", "word"])),
                tag=f"t{random.integers(6)}",
                direction=random.choice(["in", "out", "bidir"]),
                weight=float(random.choice([0.25, 0.5, 1.0])),
            )
            for _ in range(random.integers(5))
        ]
        made.append(make_record(f"d{number:02}", float(random.uniform(-1, 1)), *links))
    return made


def answered(records: list[Record], plan: Plan[Any]) -> Any:
    backend = OracleBackend()
    backend.run(backend.claim(Manifest(embedding="e", dimension=DIMENSION)))
    backend.run(backend.write(WriteBatch(put=records)))
    return backend.run(backend.answer(plan))


def weights(record: Record, side: str) -> dict[tuple[str, str], float]:
    """The link groups of a document on one side, each with the highest weight of its links."""
    found: dict[tuple[str, str], float] = {}
    for link in record.links:
        if link.direction in {side, "bidir"}:
            found[link.kind, link.tag] = max(link.weight, found.get((link.kind, link.tag), 0.0))
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("vector", [None, QUERY_VECTOR])
@pytest.mark.parametrize(("leave", "arrive"), [("out", "in"), ("in", "out")])
def test_edges_are_the_pairs_of_links_that_meet(seed, vector, leave, arrive) -> None:
    records = records_of(seed)
    ids = [record.id for record in records]

    def plan() -> Plan[list[tuple[Any, ...]]]:
        found: Candidates = yield Find(ids=tuple(ids))
        strength = np.linspace(0.5, 1, len(ids), dtype=np.float32)
        hop: Hop = yield from follow_links(
            found.refs,
            leave,
            weigh={"k": 0.5, "word": 0.0}.__getitem__,
            strength=strength,
            vector=vector,
            take=100,
            cap=CAP,
        )
        edges = hop.edges
        assert set(edges.forward.tolist()) <= {leave == "out"}
        tags = yield Tags(groups=edges.group)
        targets = yield Ids(refs=edges.target)
        columns = (edges.source.tolist(), targets, tags, edges.strength.tolist(), edges.weight.tolist())
        return list(zip(*columns, edges.size.tolist(), strict=True))

    strength = np.linspace(0.5, 1, len(ids), dtype=np.float32)
    expected = []
    for source, left in enumerate(records):
        for tag, weight in weights(left, leave).items():
            reached = [(one.id, weights(one, arrive)[tag]) for one in records if tag in weights(one, arrive)]
            if tag[0] == "k" and len(reached) <= CAP:
                path = float(strength[source] * np.float32(0.5) * np.float32(weight))
                expected += [(source, id, tag, path, own, len(reached)) for id, own in reached]
    assert sorted(answered(records, plan())) == sorted(expected)


def test_every_link_that_leaves_is_known_with_the_size_of_its_group() -> None:
    records = [
        make_record("a", 0.5, Link.outgoing(kind="k", tag="nowhere"), Link.outgoing(kind="k", tag="x")),
        make_record("b", 0.5, Link.incoming(kind="k", tag="x")),
        *(make_record(f"c{n}", 0.5, Link.incoming(kind="k", tag="hub")) for n in range(CAP + 3)),
    ]

    def plan() -> Plan[list[tuple[int, int]]]:
        tags = [("k", tag) for tag in ("hub", "unknown", "x", "nowhere")]
        hop: Hop = yield from follow_tags(tags, "in", take=1, cap=CAP)
        assert hop.edges.source.tolist() == [2]
        return list(zip(hop.source.tolist(), hop.size.tolist(), strict=True))

    assert answered(records, plan()) == [(0, CAP + 1), (2, 1), (3, 0)]
