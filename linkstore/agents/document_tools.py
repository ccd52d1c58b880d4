"""The tools ``search``, ``read``, ``add`` and ``delete``; a server offers the last two only if told to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.agents.tool_answers import (
    StoreView,
    ToolAnswer,
    ToolLimits,
    ToolResult,
    format_citation,
    identify_document,
    is_named,
    make_empty_answer,
    make_results_answer,
    mark_meeting,
)
from linkstore.context.compiled import frame_parts
from linkstore.core.arguments import quote_value
from linkstore.core.arrays import Floats, make_unit_vector
from linkstore.core.calls import Call, call_engine
from linkstore.core.display import escape_unprintable
from linkstore.core.documents import is_storable
from linkstore.core.filters import parse_filter
from linkstore.core.hits import Chain, Hit, Hits, Triple, get_page
from linkstore.core.links import LINKS_KEY, Link, as_link, get_links
from linkstore.core.plans import (
    Candidates,
    Documents,
    Nearest,
    Operation,
    Plan,
    StoredDocument,
    read_documents,
)
from linkstore.core.text import is_unicode
from linkstore.engines.contract import Manifest, PageEntry
from linkstore.errors import DocumentError, LinkError, StrategyError
from linkstore.strategies.all_paths import AllPaths
from linkstore.strategies.neighbours import Neighbour, Neighbours, find_neighbours
from linkstore.strategies.pagerank import PageRank

NEXT_KINDS: Final = frozenset({"next", "next_turn"})
PREVIOUS_KINDS: Final = frozenset({"previous"})
"""Kinds and labels of links between neighbouring sections and turns."""
AdjacentIds = tuple[str | None, str | None]
"""The ids of the documents before and after another."""


def read_document(view: StoreView, id: str, offset: int, limits: ToolLimits) -> Operation[ToolAnswer]:
    """Read the text of a document.

    Args:
        view: Of the store.
        id: The document; also in the brackets that answers have, or its URL.
        offset: How many characters of its text to leave out.
        limits: Of the tools.

    Raises:
        DocumentError: If there is no such document.
        StrategyError: If the offset lies outside of the text.
    """
    document = yield from find_document(view, id)
    text = document.page_content
    last = max(0, len(text) - 1)
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset <= last:
        raise StrategyError(f"offset must be from 0 to {last} for this text, not {quote_value(offset)}")
    previous, following = yield from _find_adjacent(view, document)
    part = text[offset : offset + limits.text]
    end = offset + len(part)
    lines = [format_citation(document), frame_parts([("text", part)])]
    if end < len(text):
        lines.append(f"{len(text) - end:,} more characters; read on with offset={end}.")
    lines += [f"Previous: [{escape_unprintable(previous)}]"] if previous else []
    lines += [f"Next: [{escape_unprintable(following)}]"] if following else []
    data = {
        **identify_document(document),
        "text": part,
        "offset": offset,
        "characters": len(text),
        "next_offset": end if end < len(text) else None,
        "previous": previous,
        "next": following,
    }
    return ToolAnswer(text="\n".join(lines), data=data)


def find_document(view: StoreView, name: str) -> Operation[Document]:
    """Find a document by its id, else by its id in brackets, or by its URL.

    Raises:
        DocumentError: If there is no such document.
    """
    bare = name.strip().strip("[]<>").strip()
    known = yield from find_documents(view, [name, bare])
    found = known.get(name) or known.get(bare)
    if found is None and bare and is_unicode(bare):
        manifest: Manifest = yield call_engine(view.backend, view.backend.manifest())
        if manifest.dimension is not None:
            plan = _find_at_url(bare, make_unit_vector(manifest.dimension))
            found = next(map(_make_document, (yield from view.answer(plan))), None)
    if found is None:
        raise make_unknown_error(name)
    return found


def find_documents(view: StoreView, ids: Sequence[str]) -> Operation[dict[str, Document]]:
    """Return documents by id, without those that are not there."""
    known = tuple(filter(is_storable, ids))
    stored = yield from view.answer(read_documents(known))
    return {one.id: _make_document(one) for one in stored}


def make_unknown_error(id: str) -> DocumentError:
    """Make the error for an id that no document has."""
    return DocumentError(
        f"no document has the id {id[:200]!r}; take ids from the brackets in the answers of search and follow"
    )


def _make_document(stored: StoredDocument) -> Document:
    return Document(id=stored.id, page_content=stored.text, metadata=stored.metadata)


def _find_at_url(url: str, vector: Floats) -> Plan[list[StoredDocument]]:
    """Return one of the documents with a URL. The vector does not rank them."""
    found: Candidates = yield Nearest(vector=vector, k=1, filter=parse_filter({"url": url}))
    return (yield Documents(refs=found.refs))  # type: ignore[no-any-return]


def _find_adjacent(view: StoreView, document: Document) -> Operation[AdjacentIds]:
    """Return the documents before and after, as the page has them, else as links say."""
    entries: list[PageEntry] = yield call_engine(view.backend, view.backend.pages(None, [get_page(document)]))
    beside = next(
        (_find_adjacent_on_page(one.ids, document.id) for one in entries if document.id in one.ids), None
    )
    if beside is None:
        near = yield from view.answer(find_neighbours(document.id or ""))
        return _find_adjacent_by_links(near) if near else (None, None)
    there = yield from find_documents(view, [id for id in beside if id])
    previous, following = (id if id in there else None for id in beside)
    return previous, following


def _find_adjacent_on_page(ids: Sequence[str], id: str | None) -> AdjacentIds:
    at = ids.index(id or "")
    return ids[at - 1] if at else None, ids[at + 1] if at + 1 < len(ids) else None


def _find_adjacent_by_links(near: Neighbours) -> AdjacentIds:
    """Return the neighbours by links whose kind or label says that they lead to the next or previous one."""
    previous = _find_first(near.outgoing, PREVIOUS_KINDS) or _find_first(near.incoming, NEXT_KINDS)
    return previous, _find_first(near.outgoing, NEXT_KINDS) or _find_first(near.incoming, PREVIOUS_KINDS)


def _find_first(side: Sequence[Neighbour], names: frozenset[str]) -> str | None:
    found = (one.ids[0] for one in side if names & {one.link.kind, one.link.label} and one.ids)
    return next(found, None)


CHAIN_POOL: Final = 50
"""How many documents chains are looked for."""
CHAIN_BEAM: Final = 16
MOST_NODES: Final = 300
"""Of how many documents each hop follows the links, and how many are reached in all: in a store where nearly
everything is linked, three hops with the usual limits take six times as long."""
MOST_MEETINGS: Final = 5
"""How many further documents where chains meet are named."""
LONGEST_QUESTION: Final = 4000
"""Maximum number of characters of a question."""


def search_documents(
    view: StoreView, question: str, hops: int, limits: ToolLimits, ceiling: int
) -> Operation[ToolAnswer]:
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
    _check_question(question, hops, ceiling)
    floor = limits.min_similarity
    if hops:
        hits: Hits = yield view.search(question, PageRank(k=limits.results, min_similarity=floor))
    else:
        start = limits.results
        hits = yield view.search(question, AllPaths(k=start, start_k=start, depth=0, min_similarity=floor))
    linked: list[Hit] = []
    if hops > 1:
        strategy = AllPaths(
            k=CHAIN_POOL, depth=hops, beam=CHAIN_BEAM, max_nodes=MOST_NODES, min_similarity=floor
        )
        paths: Hits = yield view.search(question, strategy)
        starts = sorted({chain.start for hit in paths for chain in hit.chains})
        known = yield from find_documents(view, starts)
        named = {id for id, document in known.items() if is_named(document, question)}
        linked = [replace(hit, chains=mark_meeting(hit.chains, named)) for hit in paths]
    found = _join_hits(hits, linked, limits.results)
    if not found:
        return make_empty_answer(hits.reason or "no document matches", _advise_search(hits))
    return _show_hits(question, found, linked, limits)


def _check_question(question: str, hops: int, ceiling: int) -> None:
    if not question.strip():
        raise StrategyError("the question is empty; ask for something in words")
    if len(question) > LONGEST_QUESTION:
        raise StrategyError(
            f"the question has {len(question):,} characters; ask one of at most "
            f"{LONGEST_QUESTION:,} characters"
        )
    if not is_unicode(question):
        raise StrategyError("the question is not valid Unicode (it has a lone surrogate); ask it anew")
    if isinstance(hops, bool) or not isinstance(hops, int) or hops < 0:
        raise StrategyError(f"hops must be an integer from 0 to {ceiling}, not {quote_value(hops)}")
    if hops > ceiling:
        raise StrategyError(
            f"hops={quote_value(hops)} is more than the ceiling of {ceiling}; ask for at most {ceiling}"
        )


def _join_hits(hits: Hits, linked: Sequence[Hit], most: int) -> list[Hit]:
    """Put the best document where chains meet before the others, each with the chains that lead to it."""
    chains = {hit.document.id: hit.chains for hit in linked}
    ordered = {hit.document.id: hit for hit in [*islice(_select_meeting(linked), 1), *hits]}
    found = islice(ordered.items(), most)
    return [replace(hit, chains=chains[id]) if chains.get(id) else hit for id, hit in found]


def _select_meeting(linked: Sequence[Hit]) -> Iterator[Hit]:
    """Return the hits where independent chains meet, best first."""
    return (hit for hit in linked if any(chain.independent for chain in hit.chains))


def _show_hits(question: str, found: list[Hit], linked: Sequence[Hit], limits: ToolLimits) -> ToolAnswer:
    results = [
        ToolResult(
            document=hit.document,
            query=question,
            width=limits.snippet,
            chains=_list_chains(hit)[: limits.chains],
            similarity=hit.similarity,
        )
        for hit in found
    ]
    known = {hit.document.id for hit in found}
    others = [hit.document.id or "" for hit in _select_meeting(linked) if hit.document.id not in known][
        :MOST_MEETINGS
    ]
    named = ", ".join(f"[{escape_unprintable(id)}]" for id in others)
    notes = [f"Independent chains of links also meet at: {named}"] if others else []
    heading = f"{len(results)} results; cite a document by its id in brackets, or its URL."
    return make_results_answer(heading, results, notes, meeting=others)


def _list_chains(hit: Hit) -> tuple[Chain, ...]:
    """Return the chains to a hit, or its path of one link as a chain where the search gives that instead."""
    if hit.chains or hit.depth != 1:
        return hit.chains
    start, step = hit.path
    link, id = (step.kind, step.tag), hit.document.id or ""
    forward = any(own.leads_in for own in get_links(hit.document) if (own.kind, own.tag) == link)
    subject, object_ = (start.id, id) if forward else (id, start.id)
    triple = Triple(subject=subject, kind=step.kind or "", object=object_, label=step.label, data=step.data)
    return (Chain(start.id, (triple,)),)


def _advise_search(hits: Hits) -> list[str]:
    """Advise on finding more. Without a minimum, only an empty store or scope finds nothing."""
    if any(cut.reason == "floor" for cut in hits.cuts):
        return ["ask with other words, closer to those of the documents, or with names that they use"]
    return ["there is no document that these tools may read, so other questions find nothing either"]


_LINK_PARTS: Final = ("kind", "tag", "direction")
"""What a link must have."""


def add_document(
    view: StoreView,
    id: str,
    text: str,
    metadata: Mapping[str, Any] | None,
    links: Sequence[Mapping[str, Any]] | None,
) -> Operation[ToolAnswer]:
    """Add a document with its links, or replace the one with this id.

    Args:
        view: Of the store.
        id: Of the document.
        text: Its text.
        metadata: A JSON object.
        links: Objects with ``kind``, ``tag``, ``direction`` and, if wanted, ``label``.

    Raises:
        DocumentError: If the document cannot be stored.
        LinkError: If a link is invalid; the message names it by its place.
        SchemaError: If the schema of the store does not allow it.
    """
    if not text.strip():
        raise DocumentError("the text is blank; give the document a text")
    if not is_unicode(text):
        raise DocumentError("the text has half of a surrogate pair, which is no character; leave it out")
    known = yield from find_documents(view, [id])
    own = {name: value for name, value in (metadata or {}).items() if name != LINKS_KEY}
    if links:
        own[LINKS_KEY] = [_parse_link(at, link).to_dict() for at, link in enumerate(links)]
    document = Document(id=id, page_content=text, metadata=own)
    yield Call(view.store.add_documents, view.store.aadd_documents, ([document],))
    done = "replaced" if id in known else "added"
    return ToolAnswer(text=f"[{escape_unprintable(id)}] was {done}.", data={"id": id, "done": done})


def _parse_link(at: int, given: Mapping[str, Any]) -> Link:
    """Parse one of the links of a document.

    Raises:
        LinkError: If a part of it is missing, or there are others.
    """
    for name in _LINK_PARTS:
        if name not in given:
            raise LinkError(
                f"links.{at} has no {name}; a link has {', '.join(_LINK_PARTS)} and, if wanted, label"
            )
    if others := sorted(given.keys() - {*_LINK_PARTS, "label", "weight", "data"}):
        raise LinkError(f"links.{at} has {quote_value(others[0])}, which is no part of a link; leave it out")
    return as_link(given)


def delete_document(view: StoreView, id: str) -> Operation[ToolAnswer]:
    """Delete a document.

    Raises:
        DocumentError: If there is no such document.
    """
    if id not in (yield from find_documents(view, [id])):
        raise make_unknown_error(id)
    yield Call(view.store.delete, view.store.adelete, ([id],))
    return ToolAnswer(text=f"[{escape_unprintable(id)}] was deleted.", data={"id": id, "done": "deleted"})
