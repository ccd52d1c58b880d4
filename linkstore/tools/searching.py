"""The tool ``search``: the default search, and the document where chains of different relations meet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from linkstore.arguments import quoted
from linkstore.display import printable
from linkstore.errors import StrategyError
from linkstore.hits import Chain, Hit, Hits, Triple
from linkstore.links import get_links
from linkstore.plans import Operation
from linkstore.strategies import AllPaths, PageRank, Strategy
from linkstore.text import is_unicode
from linkstore.tools.answers import Answer, Result, nothing, shown
from linkstore.tools.limits import ToolLimits
from linkstore.tools.meeting import is_named, meeting
from linkstore.tools.reading import documents_of
from linkstore.tools.view import View

POOL: Final = 50
"""How many documents chains are looked for."""
BEAM: Final = 16
NODES: Final = 300
"""Of how many documents each hop follows the links, and how many are reached in all: in a store where nearly
everything is linked, three hops with the usual limits take six times as long."""
MEETINGS: Final = 5
"""How many further documents where chains meet are named."""
QUESTION: Final = 4000
"""Maximum number of characters of a question."""


@dataclass(frozen=True, slots=True)
class Search:
    """A request for the hits of a search: Hits."""

    question: str
    strategy: Strategy


def search(view: View, question: str, hops: int, limits: ToolLimits, ceiling: int) -> Operation[Answer]:
    """Search the store for a question.

    The results are those of the default strategy. If more than one link may be followed, the document where
    chains of different relations meet stands before them, if there is one: no other search finds it reliably.
    With none, they are the best by meaning and words.

    Args:
        view: Of the store.
        question: In words.
        hops: How many links in a row to follow.
        limits: Of the tools.
        ceiling: The most that ``hops`` may be.

    Raises:
        StrategyError: If ``hops`` exceeds the ceiling, or the question is empty, too long or no Unicode.
    """
    _check(question, hops, ceiling)
    floor = limits.min_similarity
    if hops:
        hits: Hits = yield Search(question, PageRank(k=limits.results, min_similarity=floor))
    else:
        start = limits.results
        hits = yield Search(question, AllPaths(k=start, start_k=start, depth=0, min_similarity=floor))
    linked: list[Hit] = []
    if hops > 1:
        strategy = AllPaths(k=POOL, depth=hops, beam=BEAM, max_nodes=NODES, min_similarity=floor)
        paths: Hits = yield Search(question, strategy)
        starts = sorted({chain.start for hit in paths for chain in hit.chains})
        known = yield from documents_of(view, starts)
        named = {id for id, document in known.items() if is_named(document, question)}
        linked = [replace(hit, chains=meeting(hit.chains, named)) for hit in paths]
    found = _joined(hits, linked, limits.results)
    if not found:
        return nothing(hits.reason or "no document matches", _remedies(hits))
    return _shown(question, found, linked, limits)


def _check(question: str, hops: int, ceiling: int) -> None:
    if not question.strip():
        raise StrategyError("the question is empty; ask for something in words")
    if len(question) > QUESTION:
        raise StrategyError(
            f"the question has {len(question):,} characters; ask one of at most {QUESTION:,} characters"
        )
    if not is_unicode(question):
        raise StrategyError("the question is not valid Unicode (it has a lone surrogate); ask it anew")
    if isinstance(hops, bool) or not isinstance(hops, int) or hops < 0:
        raise StrategyError(f"hops must be an integer from 0 to {ceiling}, not {quoted(hops)}")
    if hops > ceiling:
        raise StrategyError(
            f"hops={quoted(hops)} is more than the ceiling of {ceiling}; ask for at most {ceiling}"
        )


def _joined(hits: Hits, linked: Sequence[Hit], most: int) -> list[Hit]:
    """Put the best document where chains meet before the others, each with the chains that lead to it."""
    chains = {hit.document.id: hit.chains for hit in linked}
    ordered = {hit.document.id: hit for hit in [*islice(_meeting(linked), 1), *hits]}
    found = islice(ordered.items(), most)
    return [replace(hit, chains=chains[id]) if chains.get(id) else hit for id, hit in found]


def _meeting(linked: Sequence[Hit]) -> Iterator[Hit]:
    """Return the hits where independent chains meet, best first."""
    return (hit for hit in linked if any(chain.independent for chain in hit.chains))


def _shown(question: str, found: list[Hit], linked: Sequence[Hit], limits: ToolLimits) -> Answer:
    results = [
        Result(
            document=hit.document,
            query=question,
            width=limits.snippet,
            chains=_chains(hit)[: limits.chains],
            similarity=hit.similarity,
        )
        for hit in found
    ]
    known = {hit.document.id for hit in found}
    others = [hit.document.id or "" for hit in _meeting(linked) if hit.document.id not in known][:MEETINGS]
    named = ", ".join(f"[{printable(id)}]" for id in others)
    notes = [f"Independent chains of links also meet at: {named}"] if others else []
    heading = f"{len(results)} results; cite a document by its id in brackets, or its URL."
    return shown(heading, results, notes, meeting=others)


def _chains(hit: Hit) -> tuple[Chain, ...]:
    """Return the chains to a hit, or its path of one link as a chain where the search gives that instead."""
    if hit.chains or hit.depth != 1:
        return hit.chains
    start, step = hit.path
    link, id = (step.kind, step.tag), hit.document.id or ""
    forward = any(own.leads_in for own in get_links(hit.document) if (own.kind, own.tag) == link)
    subject, object_ = (start.id, id) if forward else (id, start.id)
    triple = Triple(subject=subject, kind=step.kind or "", object=object_, label=step.label, data=step.data)
    return (Chain(start.id, (triple,)),)


def _remedies(hits: Hits) -> list[str]:
    """Advise on finding more. Without a minimum, only an empty store or scope finds nothing."""
    if any(cut.reason == "floor" for cut in hits.cuts):
        return ["ask with other words, closer to those of the documents, or with names that they use"]
    return ["there is no document that these tools may read, so other questions find nothing either"]
