"""Which members of link groups are read: enough to be right, and no more than that."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from internals import (
    DocumentVersion,
    MemberPool,
    Members,
    PlanDocuments,
    cosine_similarities,
    decode_states,
    dump_links,
    merge_links,
    normalize_vectors,
    pack_member_state,
    parse_filter,
)

from linkstore import Link
from linkstore.core.documents import collect_weights
from linkstore.core.filters import EVERYTHING
from linkstore.engines.cassandra import codec as codes

SEEDS = st.integers(0, 2**32 - 1)
NEAR = 2e-3
"""Twice the error of a similarity that a code gives, for vectors of eight numbers."""


SHORT = st.sampled_from(["a", "aa", "ä", "out", "bidir", "\x01", "\x03out", '"', "],["])


@given(
    st.lists(
        st.builds(
            Link,
            kind=SHORT,
            tag=st.one_of(SHORT, st.text(min_size=1, max_size=600).filter(lambda text: "\0" not in text)),
            direction=st.sampled_from(["in", "out", "bidir"]),
            weight=st.floats(0, 1, width=32),
        ),
        max_size=12,
    )
)
def test_links_are_read_as_they_were_parsed(links) -> None:
    """Also what they weigh on each side."""
    links = merge_links(links)
    vector = np.ones(1, np.float32)
    version = DocumentVersion("a", "", {}, "", dump_links(links), b"", vector)
    assert version.links == sorted((one.kind, one.tag, one.direction, one.weight) for one in links)
    for side in codes.SIDES:
        assert version.weights(side) == collect_weights(links, side, EVERYTHING)


class TestCodes:
    @pytest.mark.parametrize("dimension", [1, 2, 3, 7, 64, 255, 256, 1536])
    def test_the_bound_holds(self, dimension) -> None:
        random = np.random.default_rng(dimension)
        vectors = normalize_vectors(random.standard_normal((300, dimension)) ** 3)
        asked = normalize_vectors(random.standard_normal((1, dimension)))[0]
        packed = codes.encode_vectors(vectors)
        estimated, loss = codes.estimate_similarities(
            np.stack([np.frombuffer(code, np.uint8) for code in packed]), asked
        )
        exact = vectors.astype(np.float64) @ asked.astype(np.float64)
        assert (np.abs(estimated - exact) <= loss).all()
        assert {len(code) for code in packed} == {4 + dimension + (dimension + 1) // 2}
        assert loss.max() < 0.01

    @pytest.mark.parametrize("dimension", [256, 1537, 4096])
    def test_rounding_of_long_sums_is_within_the_bound(self, dimension) -> None:
        """Equal components of one sign: the codes lose nothing, and all terms of the sum add up."""
        same = normalize_vectors(np.ones((2 * codes._VECTORS_PER_BLOCK + 1, dimension)))
        packed = np.stack([np.frombuffer(code, np.uint8) for code in codes.encode_vectors(same)])
        estimated, loss = codes.estimate_similarities(packed, same[0])
        assert len(estimated) == len(same)
        assert (np.abs(estimated - 1) <= 2e-5).all()
        assert (loss > 2e-5).all()

    def test_what_is_no_code_or_says_two_things_tells_nothing(self) -> None:
        vectors = normalize_vectors(np.eye(4))
        first, second = (pack_member_state(0.5, code) for code in codes.encode_vectors(vectors)[:2])
        several = [
            codes.pack_set(first),
            codes.pack_set(first, second),
            codes.pack_set(),
            codes.pack_set(b"of other dimensions"),
            codes.pack_set(b"\xff" * len(first)),
            codes.pack_set(b"\x7e" * len(first)),
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            weight, estimated, loss = decode_states(several, vectors[0])
        assert weight.tolist() == [0.5, 1, 1, 1, 1, 1]
        assert estimated[0] == pytest.approx(1, abs=1e-4)
        assert loss.tolist()[1:] == [2, 2, 2, 2, 2]


@dataclass
class Graph:
    """Documents on link groups, in a table and in members that may differ from it."""

    vectors: np.ndarray
    lying: dict[tuple[int, int], float]
    """(group, document): the weight of the link."""
    members: dict[tuple[int, int], bytes]
    gone: set[int]


def graph_of(random, documents: int, groups: int, late: float) -> Graph:
    """Random documents, many alike; ``late`` of the members tell of a state that was or is to be."""
    vectors = normalize_vectors(random.standard_normal((documents, 8)))
    vectors[random.random(documents) < 0.3] = vectors[0]
    packed = codes.encode_vectors(vectors)
    gone = {n for n in range(documents) if random.random() < late}
    lying, members = {}, {}
    for group in range(groups):
        for n in range(documents):
            if random.random() < 0.5:
                weight = float(np.float32(random.choice([0.2, 0.5, 0.9, 1.0, 1.0, 1.0])))
                members[group, n] = codes.pack_set(pack_member_state(weight, packed[n]))
                if n not in gone and random.random() >= late:
                    lying[group, n] = weight
                    if random.random() < late:
                        other = pack_member_state(0.5, packed[random.integers(documents)])
                        members[group, n] = codes.pack_set(pack_member_state(weight, packed[n]), other)
    return Graph(vectors, lying, members, gone)


def rows_of(graph: Graph, groups: int):
    """What the server gives of each group."""
    return [
        [("", str(n), said) for (of, n), said in graph.members.items() if of == group]
        for group in range(groups)
    ]


def fill(known: PlanDocuments, graph: Graph, refs) -> None:
    """Read documents."""
    for ref in refs:
        n = int(known.ids[ref])
        if n not in graph.gone:
            links = [
                Link.incoming(kind="k", tag=str(group), weight=weight)
                for (group, of), weight in graph.lying.items()
                if of == n
            ]
            known.keep(DocumentVersion(str(n), "", {}, "", dump_links(links), b"", graph.vectors[n]))
    known.mark_read(refs)


def taken(graph: Graph, asked, take: int, groups: int, wanted=lambda n: True) -> list[tuple[int, int]]:
    """By looking at everything: (group, document) in order."""
    found = []
    for group in range(groups):
        of = [n for at, n in graph.lying if at == group and wanted(n)]
        scores = (
            dict(zip(of, cosine_similarities(graph.vectors[of], asked).tolist(), strict=True)) if of else {}
        )
        ordered = sorted(of, key=lambda n: (-scores[n], str(n)))
        found += [(group, n) for n in ordered[:take]]
    return found


def decide(graph, groups, fetch):
    """Ask a pool, reading what it wants; returns it and how many documents were read."""
    known = PlanDocuments()
    pool = MemberPool(known, [("k", str(group)) for group in range(groups)], rows_of(graph, groups), fetch)
    if not fetch.filter.always:
        fill(known, graph, pool.refs.tolist())
        pool.filter(lambda condition, refs: np.array([int(known.ids[ref]) % 2 == 0 for ref in refs]))
    read = 0
    while refs := pool.list_unread():
        read += len(refs)
        fill(known, graph, refs)
    return known, pool.select_reached(), read


@given(SEEDS, st.sampled_from([0, 0.2]), st.integers(0, 7))
def test_members_are_those_of_a_look_at_everything_but_for_near_ties(seed, late, take) -> None:
    random = np.random.default_rng(seed)
    groups = 6
    graph = graph_of(random, 30, groups, late)
    asked = normalize_vectors(random.standard_normal((1, 8)))[0]
    fetch = Members(
        groups=np.arange(groups), side="in", vector=asked, take=take, cap=99, exclude=np.empty(0, np.int64)
    )
    known, reached, read = decide(graph, groups, fetch)
    found = list(zip(reached.group.tolist(), [int(known.ids[ref]) for ref in reached.refs], strict=True))
    right = taken(graph, asked, take, groups)
    scores = cosine_similarities(graph.vectors, asked)
    assert [group for group, _ in found] == [group for group, _ in right]
    assert reached.similarity.tolist() == [scores[n] for _, n in found]
    assert found == sorted(found, key=lambda at: (at[0], -scores[at[1]], str(at[1])))
    assert reached.weight.tolist() == [np.float32(graph.lying[at]) for at in found]
    for (_, n), (_, m) in zip(found, right, strict=True):
        assert scores[n] == pytest.approx(scores[m], abs=NEAR)
    if not late:
        assert read == len({n for _, n in found}), "only what is taken is read"
        assert reached.sizes.tolist() == [sum(at == of for at, _ in graph.lying) for of in range(groups)]


def test_a_document_that_is_gone_gives_its_place_to_the_next() -> None:
    """Documents 1 and 2 tie for the second place of group 0, and document 0, which is gone, has the first."""
    cosines = np.array([0.9, 0.8, 0.8, 0.7, 0.69])
    vectors = normalize_vectors(np.stack((cosines, np.sqrt(1 - cosines**2)), axis=1))
    weights = {(0, 0): 0.1, (0, 1): 1.0, (0, 2): 1.0, (1, 3): 1.0, (1, 4): 1.0}
    packed = codes.encode_vectors(vectors)
    members = {
        key: codes.pack_set(pack_member_state(weight, packed[key[1]])) for key, weight in weights.items()
    }
    lying = {key: weight for key, weight in weights.items() if key != (0, 0)}
    fetch = Members(
        groups=np.arange(2),
        side="in",
        vector=np.array([1, 0], np.float32),
        take=2,
        cap=9,
        exclude=np.empty(0, np.int64),
    )
    known, reached, _ = decide(Graph(vectors, lying, members, {0}), 2, fetch)
    assert [known.ids[ref] for ref in reached.refs[reached.group == 0]] == ["1", "2"]


def test_what_a_filter_leaves_out_is_counted() -> None:
    graph = graph_of(np.random.default_rng(2), 30, 4, 0)
    asked = normalize_vectors(np.ones((1, 8)))[0]
    fetch = Members(
        groups=np.arange(4),
        side="in",
        vector=asked,
        take=5,
        cap=99,
        exclude=np.empty(0, np.int64),
        filter=parse_filter({"even": 1}),
    )
    known, reached, _ = decide(graph, 4, fetch)
    found = list(zip(reached.group.tolist(), [int(known.ids[ref]) for ref in reached.refs], strict=True))
    assert found == taken(graph, asked, 5, 4, lambda n: n % 2 == 0)
    assert reached.filtered == len({n for _, n in graph.lying if n % 2})
