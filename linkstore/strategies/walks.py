"""How a branch of a query went: its layers of documents, and the chains through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from linkstore.core import plans
from linkstore.core.arrays import Ints, find_positions, is_member
from linkstore.core.hits import Chain, Triple
from linkstore.core.plans import Plan, StoredDocument
from linkstore.strategies.results import LinkTexts
from linkstore.strategies.traversal import Edges


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Documents that a branch leads to.

    Args:
        refs: (n,) ascending.
        length: (n,) number of links of the shortest chain to each.
        before: The layers that it was made of, by position.
        edges: The links from the one before to it, with positions in that as sources; None: it has the
            documents of several layers.
    """

    refs: Ints
    length: Ints
    before: tuple[int, ...] = ()
    edges: Edges | None = None

    def take(self, kept: Any) -> Layer:
        """Return the layer with only the chosen documents."""
        return replace(self, refs=self.refs[kept], length=self.length[kept])


Arrival = tuple[tuple[str, str], bool] | None
"""The (kind, tag) of the link that led to a document, and whether it was followed forward."""
Parents = Mapping[tuple[int, int], tuple[int, int, Arrival]]
"""For a (layer, document), the layer and document before it, and the link between them."""


def trace_ways(layers: Sequence[Layer], ends: Ints) -> Plan[Parents]:
    """Choose the way to each of some documents of the last layer, by the least ids of those before."""
    parents: dict[tuple[int, int], tuple[int, int, Arrival]] = {}
    needed: list[set[int]] = [set() for _ in layers]
    if layers:
        needed[-1] = set(ends.tolist())
    for at in range(len(layers) - 1, 0, -1):
        layer = layers[at]
        refs = np.array(sorted(needed[at]), dtype=np.int64)
        if not len(refs):
            continue
        if layer.edges is None:
            for ref, source in _choose_layers(layers, layer, refs).items():
                parents[at, ref] = source, ref, None
                needed[source].add(ref)
            continue
        before = layers[layer.before[0]]
        edges = layer.edges.take(is_member(layer.edges.target, refs))
        shortest = before.length[edges.source] + 1 == layer.length[find_positions(edges.target, layer.refs)]
        edges = edges.take(shortest)
        sources = before.refs[edges.source]
        once, place = np.unique(sources, return_inverse=True)
        ids = yield from plans.ask(plans.Ids(refs=once))
        groups, group = np.unique(edges.group, return_inverse=True)
        tags = yield from plans.ask(plans.Tags(groups=groups))
        best: dict[int, tuple[Any, ...]] = {}
        rows = zip(
            *(column.tolist() for column in (edges.target, sources, place, group, edges.forward)), strict=True
        )
        for target, source, of_id, of_tag, forward in rows:
            way = (ids[of_id], tags[of_tag], not forward, source)
            if target not in best or way < best[target]:
                best[target] = way
        for target, (_, tag, backward, source) in best.items():
            parents[at, target] = layer.before[0], source, (tag, not backward)
            needed[layer.before[0]].add(source)
    return parents


def _choose_layers(layers: Sequence[Layer], layer: Layer, refs: Ints) -> dict[int, int]:
    """Choose for each document of a joined layer the one with the shortest chain."""
    chosen: dict[int, int] = {}
    lengths = dict(zip(layer.refs.tolist(), layer.length.tolist(), strict=True))
    for source in layer.before:
        own = layers[source]
        place = find_positions(refs, own.refs)
        for ref, at in zip(refs.tolist(), place.tolist(), strict=True):
            if at >= 0 and own.length[at] == lengths[ref]:
                chosen.setdefault(ref, source)
    return chosen


def list_way(parents: Parents, layer: int, ref: int) -> list[tuple[int, Arrival]]:
    """Return the documents of a chain from its start, each with the link that led to it."""
    way: list[tuple[int, Arrival]] = []
    while (layer, ref) in parents:
        before, source, arrival = parents[layer, ref]
        if arrival is not None:
            way.append((ref, arrival))
        layer, ref = before, source
    return [(ref, None), *reversed(way)]


def make_chain(
    way: Sequence[tuple[int, Arrival]], documents: Mapping[int, StoredDocument], texts: LinkTexts
) -> Chain:
    """Return a way as a chain, with the labels and data of its links."""
    triples = []
    for (before, _), (ref, arrival) in pairwise(way):
        assert arrival is not None
        tag, forward = arrival
        subject, object_ = (before, ref) if forward else (ref, before)
        triples.append(
            Triple(
                subject=documents[subject].id,
                kind=tag[0],
                object=documents[object_].id,
                label=texts.label(tag, subject, object_),
                data=texts.data(tag, subject),
            )
        )
    return Chain(documents[way[0][0]].id, tuple(triples))
