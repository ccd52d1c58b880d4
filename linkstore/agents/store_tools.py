"""The tools ``search``, ``read``, ``follow``, ``path`` and ``schema``; ``add`` and ``delete`` of a server.

A model reads the docstrings of the tools: :mod:`linkstore.agents.tools` says how.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Annotated, Any, Final, Literal

from langchain_core.documents import Document
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from linkstore.agents.tool_answers import (
    ToolAnswer,
    ToolResult,
    ToolScope,
    correct_name,
    format_citation,
    identify_document,
    make_empty_answer,
    make_results_answer,
)
from linkstore.context.compiled import frame_parts
from linkstore.core.arguments import quote_value
from linkstore.core.calls import Operation, call, call_engine
from linkstore.core.display import escape_unprintable, format_count
from linkstore.core.documents import is_storable
from linkstore.core.filters import Filter
from linkstore.core.hits import Chain, Hit, Hits, Triple, get_page
from linkstore.core.links import LINKS_KEY, as_link, get_links
from linkstore.core.plans import read_documents
from linkstore.core.text import is_unicode
from linkstore.errors import DocumentError, StrategyError
from linkstore.store.documents import as_document
from linkstore.store.graph import answer_paths, look_up_name
from linkstore.store.misspellings import check_known_names
from linkstore.store.schema import TYPE_FIELD, RecordedSchema
from linkstore.store.schema_graph import read_schema
from linkstore.store.usage import record_unanswered
from linkstore.strategies.all_paths import AllPaths
from linkstore.strategies.base import HopDirection, SearchOptions, Strategy
from linkstore.strategies.eager import Eager
from linkstore.strategies.neighbours import MAX_SHOWN_MEMBERS, Neighbour, Neighbours, find_neighbours
from linkstore.strategies.pagerank import PageRank

LONGEST_QUESTION: Final = 4000
"""Maximum number of characters of a question."""
MOST_OTHERS: Final = 3
"""How many results are of other types than the one that was asked for, if there are enough of it."""
NEXT_KINDS: Final = frozenset({"next", "next_turn"})
PREVIOUS_KINDS: Final = frozenset({"previous"})
"""Kinds and labels of links between neighbouring sections and turns."""
_BRACKETED: Final = re.compile(r"\[([^\[\]]+)\]")
Kinds = Annotated[
    list[str] | None,
    BeforeValidator(lambda given: _SEPARATORS.split(given) if isinstance(given, str) else given),
]
"""Kinds of link, which a model may name without a list."""
_SEPARATORS: Final = re.compile(r"\s*[,|]\s*")
Direction = Annotated[HopDirection, BeforeValidator(lambda given: _DIRECTIONS.get(given, given))]
_DIRECTIONS: Final[Mapping[str, HopDirection]] = {
    **dict.fromkeys(("in", "incoming", "back", "backwards", "inward", "reverse"), "backward"),
    **dict.fromkeys(("out", "outgoing", "forwards", "outward"), "forward"),
    **dict.fromkeys(("any", "all", "either", "bidirectional"), "both"),
}
"""What models call a direction."""
MOST_NAMED: Final = 200
"""How many names of a sort are listed."""
MOST_PATHS: Final = 3


class GivenLink(BaseModel):
    """A link of a document that is added."""

    model_config = ConfigDict(extra="forbid")

    kind: str = Field(description='What relates both documents, for example "BELONGS_TO".')
    tag: str = Field(
        description='Where they meet: usually the id of the document pointed at, for example "CLS-3".'
    )
    direction: Literal["out", "in", "bidir"] = Field(
        description='"out" for a link from this document, "in" for one to it, "bidir" for both.'
    )
    label: str | None = Field(default=None, description='Words for people, for example "is an azole".')
    weight: float | None = Field(
        default=None, description="From 0 to 1, how much it counts, for example 0.5."
    )
    data: dict[str, Any] | None = Field(
        default=None, description='A JSON object about the link, for example {"year": 2019}.'
    )


def search(scope: ToolScope, question: str, result_type: str | None = None) -> Operation[ToolAnswer]:
    """Search the texts of the knowledge store for a question.

    ${subject}Use it rather than $read if the question names no document. Returns at most $results documents,
    the best first, each with its id, its URL, a part of its text, and the links that lead to it; or says that
    nothing was found. Changes nothing.

    Args:
        scope: Of the tools.
        question: The question, in words.
        result_type: The type of the documents to put first, if one is asked for. Default none.

    Raises:
        StrategyError: If the question is empty, too long or no Unicode, or the schema has no such type.
    """
    limits = scope.limits
    problem = f"{len(question):,} characters long" if len(question) > LONGEST_QUESTION else ""
    problem = problem or ("" if is_unicode(question) else "not valid Unicode, with a lone surrogate")
    if problem or not question.strip():
        raise StrategyError(
            f"the question is {problem or 'empty'}; ask in words, of at most {LONGEST_QUESTION:,} characters"
        )
    hits = yield from scope.search(question, _choose_strategy(scope))
    if not hits or hits.doubt:
        yield from record_unanswered(scope.backend, [question])
    if not hits:
        return make_empty_answer(hits.reason or "no document matches", _advise_search(hits))
    shown = list(hits)
    if result_type:  # small models name a type where none is meant, so that it cannot hide all others
        result_filter = yield from _make_type_filter(scope, result_type)
        typed = yield from scope.search(question, _choose_strategy(scope), result_filter)
        first = typed[: max(1, limits.results - MOST_OTHERS)]
        ids = {hit.document.id for hit in first}
        shown = [*first, *(hit for hit in hits if hit.document.id not in ids)][: limits.results]
    on_path = {step.id for hit in shown if hit.depth > 1 for step in hit.path}
    between = yield from find_documents(scope, sorted(on_path))
    results = [
        ToolResult(
            document=hit.document,
            query=question,
            width=limits.snippet,
            chains=_make_path_chain(hit, between),
            similarity=hit.similarity,
        )
        for hit in shown
    ]
    remarks = [f"Probably nothing here is about this: {hits.doubt}."] if hits.doubt else []
    heading = f"{len(results)} results; cite a document by its id in brackets, or its URL."
    return make_results_answer(heading, results, list(map(escape_unprintable, remarks)))


def _choose_strategy(scope: ToolScope) -> Strategy:
    """Choose the strategy of a search: without links if none may be followed."""
    k, threshold = scope.limits.results, scope.limits.min_similarity
    if scope.ceiling:
        return PageRank(k=k, min_similarity=threshold)
    return AllPaths(k=k, start_k=k, depth=0, named=0, min_similarity=threshold)


def _make_type_filter(scope: ToolScope, type: str) -> Operation[Filter]:
    """Return the filter for a type of the schema.

    Raises:
        StrategyError: If the schema does not have it.
    """
    recorded: RecordedSchema | None = yield from read_schema(scope.backend)
    if recorded is None:
        return {TYPE_FIELD: type}
    spelled = correct_name(type, recorded.schema.types)
    if spelled not in recorded.schema.types:
        types = ", ".join(sorted(recorded.schema.types))
        raise StrategyError(f"the schema has no type {quote_value(type)}; its types are {types}")
    return {recorded.schema.type_field: spelled}


def _make_path_chain(hit: Hit, between: Mapping[str, Document]) -> tuple[Chain, ...]:
    """Return the path to a hit as a chain; none if it was not reached by links from a document."""
    documents = {**between, hit.document.id or "": hit.document}
    triples = []
    for before, step in zip(hit.path.steps, hit.path.steps[1:], strict=False):
        if step.id not in documents:
            return ()
        link = step.kind, step.tag
        forward = any(own.leads_in for own in get_links(documents[step.id]) if (own.kind, own.tag) == link)
        subject, object_ = (before.id, step.id) if forward else (step.id, before.id)
        triples.append(
            Triple(subject=subject, kind=step.kind or "", object=object_, label=step.label, data=step.data)
        )
    return (Chain(hit.path.steps[0].id, tuple(triples)),) if triples else ()


def _advise_search(hits: Hits) -> list[str]:
    """Advise on finding more. Otherwise only an empty store or scope finds nothing."""
    if any(cut.reason == "min_similarity" for cut in hits.cuts):
        return [
            "ask with other words, closer to those of the documents, or with names that they use",
            "if nothing is found again, tell the user that the store does not answer this",
        ]
    return ["there is no document that these tools may read, so other questions find nothing either"]


def read(scope: ToolScope, id: str | list[str], offset: int = 0) -> Operation[ToolAnswer]:
    """Read the whole text of a document that is named, or of up to $results at once.

    Use it rather than $search, which shows parts only, to open or quote documents. Returns at most $text
    characters in all, between tags, and the ids of the documents before and after it. Changes nothing.

    Args:
        scope: Of the tools.
        id: Its id, URL or name; or a list of these.
        offset: The character to read on from, in one document.

    Raises:
        DocumentError: If there is no such document, or there are too many.
        StrategyError: If the offset lies outside of the text.
    """
    names, limits = [id] if isinstance(id, str) else id, scope.limits
    if isinstance(id, str) and len(bracketed := _BRACKETED.findall(id)) > 1:
        names = bracketed
    if not 1 <= len(names) <= limits.results:
        raise DocumentError(f"read from 1 to {limits.results} documents at once, not {len(names)}")
    if len(names) > 1 and offset:
        raise StrategyError("offset is for one document; read the others apart")
    share = max(1, limits.text // len(names))
    answers: list[ToolAnswer] = []
    for name in names:
        answers += [(yield from _read_one(scope, name, offset, share))]
    if len(answers) == 1:
        return answers[0]
    return ToolAnswer(
        text="\n\n".join(answer.text for answer in answers),
        data={"documents": [answer.data for answer in answers]},
    )


def _read_one(scope: ToolScope, name: str, offset: int, most: int) -> Operation[ToolAnswer]:
    """Read at most so many characters of the text of a document: see :func:`read`."""
    document = yield from find_document(scope, name)
    text = document.page_content
    last = max(0, len(text) - 1)
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset <= last:
        raise StrategyError(f"offset must be from 0 to {last} for this text, not {quote_value(offset)}")
    previous, following = yield from _find_adjacent(scope, document)
    part = text[offset : offset + most]
    end = offset + len(part)
    lines = [format_citation(document), frame_parts([("text", part)])]
    if end < len(text):
        lines.append(f"{len(text) - end:,} more characters; read on with offset={end}.")
    beside = {"Previous": previous, "Next": following}
    lines += [f"{name}: [{escape_unprintable(other)}]" for name, other in beside.items() if other]
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


def find_document(scope: ToolScope, name: str) -> Operation[Document]:
    """Find a document by its id, its URL or a name: see :mod:`linkstore.strategies.resolver`.

    Raises:
        DocumentError: If there is no such document, or several may be meant.
    """
    resolution, type_field = yield from look_up_name(scope.backend, name, None, scope.filter)
    if resolution.document is not None:
        return as_document(resolution.document)
    remedy = "take ids from the brackets in the answers of search and follow"
    raise DocumentError(resolution.explain(name, remedy, type_field))


def find_documents(scope: ToolScope, ids: Sequence[str]) -> Operation[dict[str, Document]]:
    """Return the stored documents with these ids, by id."""
    valid_ids = tuple(filter(is_storable, ids))
    stored = (yield from scope.answer(read_documents(valid_ids))) if valid_ids else []
    return {document.id: as_document(document) for document in stored}


def _find_adjacent(scope: ToolScope, document: Document) -> Operation[tuple[str | None, str | None]]:
    """Return the documents before and after, as the page has them, or if it has no other, as links say.

    Chunks that a splitter made are pages of their own, which links join.
    """
    entries = yield from call_engine(scope.backend, scope.backend.pages(None, [get_page(document)]))
    id = document.id or ""
    page = next((entry.ids for entry in entries if id in entry.ids), ())
    if len(page) < 2:
        near = yield from scope.answer(find_neighbours(id))
        if near is None:
            return None, None
        before = _find_first(near.outgoing, PREVIOUS_KINDS) or _find_first(near.incoming, NEXT_KINDS)
        return before, _find_first(near.outgoing, NEXT_KINDS) or _find_first(near.incoming, PREVIOUS_KINDS)
    at = page.index(id)
    beside = (page[at - 1] if at else None, page[at + 1] if at + 1 < len(page) else None)
    there = yield from find_documents(scope, [neighbour for neighbour in beside if neighbour])
    previous, following = (neighbour if neighbour in there else None for neighbour in beside)
    return previous, following


def _find_first(side: Sequence[Neighbour], names: frozenset[str]) -> str | None:
    named = (own.ids for own in side if names & {own.link.kind, own.link.label} and own.ids)
    return next((ids[0] for ids in named), None)


def add(
    scope: ToolScope,
    id: str,
    text: str,
    metadata: dict[str, Any] | None = None,
    links: tuple[GivenLink, ...] = (),
) -> Operation[ToolAnswer]:
    """Add a document with its links, or replace the whole document with this id.

    Use it rather than delete to correct a document. Returns one line, which says whether it was added or
    replaced. Changes the store.$rules

    Args:
        scope: Of the tools.
        id: Its id, for example "DRG-17". A document that has it is replaced.
        text: Its text, for example "Zalamizole is an azole."
        metadata: A JSON object, for example {"type": "Drug", "year": 2019}.
        links: Its links, for example [{"kind": "BELONGS_TO", "tag": "CLS-3", "direction": "out"}].

    Raises:
        DocumentError: If the document cannot be stored.
        LinkError: If a link is invalid.
        SchemaError: If the schema of the store does not allow it.
    """
    if not text.strip():
        raise DocumentError("the text is blank; give the document a text")
    if not is_unicode(text):
        raise DocumentError("the text has half of a surrogate pair, which is no character; leave it out")
    existing = yield from find_documents(scope, [id])
    own = {name: value for name, value in (metadata or {}).items() if name != LINKS_KEY}
    if links:
        own[LINKS_KEY] = [as_link(link.model_dump(exclude_none=True)).to_dict() for link in links]
    document = Document(id=id, page_content=text, metadata=own)
    yield from call(scope.store.add_documents, scope.store.aadd_documents, [document])
    done = "replaced" if id in existing else "added"
    return ToolAnswer(text=f"[{escape_unprintable(id)}] was {done}.", data={"id": id, "done": done})


def delete(scope: ToolScope, id: str) -> Operation[ToolAnswer]:
    """Delete a document.

    Use it rather than add only if nothing should take its place. Returns one line. Changes the store, and
    cannot be undone.

    Args:
        scope: Of the tools.
        id: Its exact id, for example "DRG-17".

    Raises:
        DocumentError: If there is no such document.
    """
    if id not in (yield from find_documents(scope, [id])):
        raise DocumentError(f"no document has the id {id[:200]!r}, so nothing was deleted; give its exact id")
    yield from call(scope.store.delete, scope.store.adelete, [id])
    return ToolAnswer(text=f"[{escape_unprintable(id)}] was deleted.", data={"id": id, "done": "deleted"})


def follow(
    scope: ToolScope, id: str, kinds: Kinds = None, direction: Direction = "forward"
) -> Operation[ToolAnswer]:
    """List what a document links to, or which documents link to it.

    Use it rather than $search for a question about the links of a document that is named. Returns at most
    $results documents at the other ends, each with id, URL and a part of its text. Changes nothing.

    Args:
        scope: Of the tools.
        id: The document: its id, URL or name.
        kinds: Only links of these kinds. Default all.
        direction: "forward" for what it links to, "backward" for what links to it, or "both".

    Raises:
        UnknownNameError: If no document in the store has links of one of the kinds.
        StrategyError: If the direction or a kind is invalid, or no links may be followed.
        DocumentError: If there is no such document.
    """
    if not scope.ceiling:
        raise StrategyError("the ceiling is 0: no links may be followed here; use search and read")
    id = (yield from find_document(scope, id)).id or ""
    near = yield from scope.answer(find_neighbours(id))
    near = near or Neighbours(id=id, outgoing=(), incoming=())  # deleted in between
    own = {neighbour.link.kind for neighbour in (*near.outgoing, *near.incoming)}
    recorded = yield from read_schema(scope.backend)
    types = recorded.schema.types - recorded.schema.kinds if recorded else frozenset[str]()
    mistaken = [kind for kind in kinds or () if correct_name(kind, types) in types]
    wanted = [correct_name(kind, own) for kind in kinds or () if kind not in mistaken]
    asked = Eager(kinds=wanted or None, direction=direction)
    yield from check_known_names(scope.backend, asked, SearchOptions(filter=scope.filter))
    chosen = [
        (neighbour, way == "forward")
        for way, neighbours in (("forward", near.outgoing), ("backward", near.incoming))
        for neighbour in neighbours
        if direction in (way, "both") and (asked.followed is None or neighbour.link.kind in asked.followed)
    ]
    ends = _find_ends(id, chosen)
    large = [neighbour for neighbour, _ in chosen if neighbour.more]
    remarks = [f"{quote_value(kind)} is a type, not a kind of link, and was left out" for kind in mistaken]
    if not ends:
        return make_empty_answer(_explain_empty(id, chosen, large), [*remarks, *_advise_links(near)])
    shown = list(ends.items())[: scope.limits.results]
    documents = yield from find_documents(scope, [end for end, _ in shown])
    results = [
        ToolResult(
            document=documents[end],
            query=triple.label or "",
            width=scope.limits.snippet,
            chains=(Chain(id, (triple,)),),
        )
        for end, triple in shown
        if end in documents
    ]
    total = format_count(len(ends), "document")
    heading = f"{len(results)} of {total} that links of [{escape_unprintable(id)}] lead to:"
    if rest := len(ends) - len(results):
        remarks.append(f"{rest:,} more documents are not shown; name kinds to see fewer")
    remarks += [f"Not followed: {_describe_hub(neighbour)}" for neighbour in large]
    return make_results_answer(heading, results, [f"{remark}." for remark in remarks], found=len(ends))


def path(scope: ToolScope, start: str, end: str) -> Operation[ToolAnswer]:
    """Find how two documents are connected: the shortest chains of links between them, in any direction.

    Use it rather than $follow if you know both ends. Returns at most 3 chains. Changes nothing.

    Args:
        scope: Of the tools.
        start: The first document: its id, URL or name.
        end: The other one.

    Raises:
        QueryError: If there is no such document, several may be meant, or both are the same.
    """
    paths = yield from answer_paths(scope.backend, start, end, MOST_PATHS, scope.filter, scope.ceiling)
    lines = [f"{at}. {escape_unprintable(str(chain))}" for at, chain in enumerate(paths.chains, 1)]
    lines += [f"Not complete: {escape_unprintable(limit)}." for limit in paths.limits]
    if not paths.chains:
        ends = f"[{escape_unprintable(paths.start)}] and [{escape_unprintable(paths.end)}]"
        lines.insert(0, f"No chain of links connects {ends}.")
    return ToolAnswer(text="\n".join(lines), data=paths.to_dict())


def _find_ends(id: str, sides: Iterable[tuple[Neighbour, bool]]) -> dict[str, Triple]:
    """Return the other documents with their links: the most similar of each link, then the next of each."""
    ends: dict[str, Triple] = {}
    rows = [[(other, neighbour.link, away) for other in neighbour.ids] for neighbour, away in sides]
    for other, link, away in (entry for column in zip_longest(*rows) for entry in column if entry):
        if other != id and other not in ends:
            subject, object_ = (id, other) if away else (other, id)
            ends[other] = Triple(subject=subject, kind=link.kind, object=object_, label=link.label)
    return ends


def _explain_empty(id: str, chosen: Sequence[tuple[Neighbour, bool]], large: Sequence[Neighbour]) -> str:
    if large:
        return "; ".join(map(_describe_hub, large))
    if chosen:
        links = format_count(len(chosen), "link")
        return f"document {id!r} has {links} of this sort, to no document in the store"
    return f"document {id!r} has no links of this sort"


def _advise_links(near: Neighbours) -> list[str]:
    """Advise on the links that the document does have."""
    advice = []
    for name, own in (("forward", near.outgoing), ("backward", near.incoming)):
        kinds = sorted({neighbour.link.kind for neighbour in own if neighbour.ids})
        if kinds:
            advice.append(f"direction={name!r} leads to documents by links of the kinds {', '.join(kinds)}")
    return advice or ["it has no links to other documents; search for something else"]


def _describe_hub(neighbour: Neighbour) -> str:
    named = escape_unprintable(f"{neighbour.link.kind} {neighbour.link.tag}")
    more = f"leads to more than {MAX_SHOWN_MEMBERS:,} documents; search among them by a question instead"
    return f"the link {named} {more}"


def schema(scope: ToolScope) -> Operation[ToolAnswer]:
    """List the types of document, the kinds of link between them and the metadata fields of the store.

    Use it rather than $search to learn which names there are. Returns at most $most_named names of each sort.
    Changes nothing.
    """
    # Without a recorded schema, the time may grow with the size of the store.
    recorded = yield from read_schema(scope.backend)
    if recorded:
        kinds, fields = sorted(recorded.schema.kinds), [recorded.schema.type_field]
        lines = [recorded.schema.describe()]
    else:
        vocabulary = yield from call_engine(scope.backend, scope.backend.vocabulary())
        kinds, fields = sorted(vocabulary.kinds), sorted(vocabulary.fields - {LINKS_KEY})
        lines = [f"Kinds of link: {_list_names(kinds)}", f"Metadata fields: {_list_names(fields)}"]
    data = {
        "schema": recorded.schema.to_dict() if recorded else None,
        "kinds": kinds[:MOST_NAMED],
        "fields": fields[:MOST_NAMED],
        "max_hops": scope.ceiling,
    }
    lines.append(f"match follows at most {format_count(scope.ceiling, 'link')} in a row.")
    return ToolAnswer(text="\n".join(lines), data=data)


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return escape_unprintable(", ".join(names[:MOST_NAMED]) or "none") + more
