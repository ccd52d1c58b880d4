"""The graph of a store: queries, names, neighbours and paths, and links that are replaced or suggested."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import orjson

from linkstore.core.arguments import require, require_at_least, require_list, require_within
from linkstore.core.arrays import make_unit_vector
from linkstore.core.calls import Operation, arun, call_engine, call_plan, run, run_in_thread
from linkstore.core.documents import is_storable, keep_storable
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.graph_answer import GraphAnswer, Lookup, ShortestPaths
from linkstore.core.graph_query import Branch as Branch
from linkstore.core.graph_query import GraphQuery as GraphQuery
from linkstore.core.graph_query import Step as Step
from linkstore.core.links import SUGGESTED, Link, merge_links, parse_links
from linkstore.core.plans import read_documents
from linkstore.core.vocabulary import Vocabulary
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import WriteCounts
from linkstore.errors import DocumentError, LinkError, StoreBusyError, StrategyError
from linkstore.store.documents import as_document, scan_records
from linkstore.store.misspellings import check_vocabulary
from linkstore.store.schema import TYPE_FIELD, VALID_FROM, VALID_UNTIL
from linkstore.store.schema_graph import check_links, read_schema
from linkstore.strategies.base import MAX_MATCH_NODES, MAX_MATCH_SECONDS
from linkstore.strategies.matching import MatchSettings, match_query
from linkstore.strategies.neighbours import Neighbours, find_neighbours
from linkstore.strategies.resolver import Resolution, resolve_name
from linkstore.strategies.shortest import (
    DEFAULT_HUB_CAP,
    DEFAULT_MAX_NODES,
    ShortestPathSettings,
    find_shortest_paths,
)

if TYPE_CHECKING:
    from linkstore.store.suggestions import LinkSuggestion


def find_document(backend: Backend, name: str, type: str | None, filter: Filter | None) -> Operation[Lookup]:
    """Find the document with a name: see :meth:`~linkstore.store.core.CoreStore.find`."""
    require(str, "an id or a name", name=name)
    resolution, _ = yield from look_up_name(backend, name, type, filter)
    document = resolution.document
    return Lookup(
        document=None if document is None else as_document(document),
        candidates=tuple(map(as_document, resolution.candidates)),
        grade=resolution.grade,
    )


def look_up_name(
    backend: Backend, name: str, type: str | None, filter: Filter | None
) -> Operation[tuple[Resolution, str]]:
    """Find what a name means within a filter: see :meth:`~linkstore.store.core.CoreStore.find`.

    Also return the field that holds types.
    """
    recorded = yield from read_schema(backend)
    type_field = recorded.schema.type_field if recorded else TYPE_FIELD
    condition = parse_filter(None if type is None else {type_field: type})
    yield from check_vocabulary(backend, Vocabulary(), [condition], filter)
    manifest = yield from call_engine(backend, backend.manifest())
    plan = resolve_name(name, make_unit_vector(manifest.dimension or 1), condition, type_field)
    return (yield from call_plan(backend, plan, parse_filter(filter))), type_field


def answer_query(
    backend: Backend,
    query: GraphQuery | Mapping[str, Any] | str,
    filter: Filter | None,
    max_depth: int | None,
    max_nodes: int = MAX_MATCH_NODES,
    seconds: float = MAX_MATCH_SECONDS,
    as_of: str | date | None = None,
) -> Operation[GraphAnswer]:
    """Answer a query within a filter: see :meth:`~linkstore.store.core.CoreStore.match`."""
    if isinstance(query, str):
        from linkstore.core.cypher import parse_cypher  # brings a parser

        query = parse_cypher(query)
    elif not isinstance(query, GraphQuery):
        query = GraphQuery.from_dict(query)
    if as_of is not None:
        query = replace(query, as_of=as_of.isoformat() if isinstance(as_of, date) else as_of)
    require_at_least(1, max_nodes=max_nodes)
    require_within(0, 86_400, seconds=seconds)
    scope = parse_filter(filter)
    if max_depth is not None and query.hops > max_depth:
        raise StrategyError(
            f"the query follows up to {query.hops} links in a row, and {max_depth} are allowed here; shorten"
            " its paths or repetitions"
        )
    recorded = yield from read_schema(backend)
    schema = recorded.schema if recorded else None
    conditions = [parse_filter(where) for where in query.filters]
    fields = frozenset[str]().union(*(condition.needed for condition in conditions))
    order_by = None if query.counted else query.order_by
    named = {name for name in (query.field, order_by) if name is not None}
    asked = Vocabulary(
        kinds=query.relations - (schema.kinds if schema else frozenset()), fields=fields | named
    )
    type_field = schema.type_field if schema else TYPE_FIELD
    typed = [parse_filter({type_field: name}) for name in sorted(query.types)]
    yield from check_vocabulary(backend, asked, [*conditions, *typed], filter)
    manifest = yield from call_engine(backend, backend.manifest())
    settings = MatchSettings(
        vector=make_unit_vector(manifest.dimension or 1),
        type_field=type_field,
        valid_from=schema.valid_from if schema else VALID_FROM,
        valid_until=schema.valid_until if schema else VALID_UNTIL,
        max_nodes=max_nodes,
        deadline=monotonic() + seconds,
    )
    return (yield from call_plan(backend, match_query(query, settings), scope))


def answer_paths(
    backend: Backend,
    start: str,
    end: str,
    k: int,
    filter: Filter | None,
    max_depth: int | None,
    max_nodes: int = DEFAULT_MAX_NODES,
    hub_cap: int = DEFAULT_HUB_CAP,
) -> Operation[ShortestPaths]:
    """Find paths within a filter: see :meth:`linkstore.store.graph.StoreLinks.paths`."""
    require(str, "the id or name of a document", start=start, end=end)
    require_at_least(1, k=k, max_nodes=max_nodes, hub_cap=hub_cap)
    scope = parse_filter(filter)
    manifest = yield from call_engine(backend, backend.manifest())
    recorded = yield from read_schema(backend)
    settings = ShortestPathSettings(
        vector=make_unit_vector(manifest.dimension or 1),
        type_field=recorded.schema.type_field if recorded else TYPE_FIELD,
        k=k,
        max_nodes=max_nodes,
        hub_cap=hub_cap,
        max_depth=max_depth,
    )
    return (yield from call_plan(backend, find_shortest_paths(start, end, settings), scope))


_DISMISSED_NOTE: Final = "dismissed suggestions"
"""The note with the pairs of pages between which no link is suggested any more."""
_MAX_TRIES: Final = 5


class StoreLinks:
    """The links between the documents of a store: ``store.links``."""

    __slots__ = ("_backend", "_max_depth")

    def __init__(self, backend: Backend, max_depth: int | None = None) -> None:
        self._backend = backend
        self._max_depth = max_depth

    def neighbours(self, id: str) -> Neighbours:
        """Return the documents that a document links to or is linked from.

        Args:
            id: The id of the document.

        Raises:
            DocumentError: If the document does not exist.
        """
        return run(self._find_neighbours(id))

    async def aneighbours(self, id: str) -> Neighbours:
        """Return the neighbours of a document: see :meth:`neighbours`."""
        return await arun(self._find_neighbours(id))

    def paths(
        self,
        start: str,
        end: str,
        k: int = 3,
        *,
        filter: Filter | None = None,
        max_nodes: int = DEFAULT_MAX_NODES,
        hub_cap: int = DEFAULT_HUB_CAP,
    ) -> ShortestPaths:
        """Find the ``k`` shortest paths between two documents, along links and against them.

        A link has a length: 1 divided by the weights of both its ends. No path passes a document twice.

        Args:
            start: The id or a name of a document.
            end: The id or a name of another one.
            k: How many paths at most. Default 3.
            filter: Only documents with such metadata exist for the search.
            max_nodes: How many documents are looked at on the way. Default 10,000.
            hub_cap: A link group with more documents than this on one side is not followed. Default 1,000.

        Raises:
            QueryError: If no document has one of the names, or several may be meant.
            FilterError: If the filter is invalid.
            StrategyError: If a number is invalid.
        """
        depth = self._max_depth
        return run(answer_paths(self._backend, start, end, k, filter, depth, max_nodes, hub_cap))

    async def apaths(
        self,
        start: str,
        end: str,
        k: int = 3,
        *,
        filter: Filter | None = None,
        max_nodes: int = DEFAULT_MAX_NODES,
        hub_cap: int = DEFAULT_HUB_CAP,
    ) -> ShortestPaths:
        """Find the shortest paths between two documents: see :meth:`paths`."""
        depth = self._max_depth
        return await arun(answer_paths(self._backend, start, end, k, filter, depth, max_nodes, hub_cap))

    def replace(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> WriteCounts:
        """Replace the links of these kinds in stored documents, in one change.

        Texts, metadata and other links stay, and nothing is embedded. Concurrent updates and deletions are
        preserved. :func:`linkstore.ingest.link_corpus` computes such links.

        Args:
            kinds: The kinds of link to replace.
            links: The new links of these kinds by document id. Unknown ids are ignored.

        Raises:
            LinkError: If a link has a kind that is not in ``kinds``.
            StoreBusyError: If another writer holds the store for more than 5 s. On Cassandra, if other
                writers keep changing the same documents.
            StoreFullError: If the disk is full.
            StoreUnavailableError: If a server does not answer. Repeat the call to complete the change.
        """
        return run(self._replace(kinds, links))

    async def areplace(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> WriteCounts:
        """Replace the links of these kinds: see :meth:`replace`."""
        return await arun(self._replace(kinds, links))

    def suggest(self, k: int = 100) -> list[LinkSuggestion]:
        """Suggest links between pages that may be missing.

        Pages that name another page without a link to it come first: by its title, an alias, or the text of
        links that lead to it elsewhere. Then come pages that are near each other in meaning and by the pages
        that both are linked with. It reads all documents three times. Documents without ``metadata["page"]``
        are pages of their own.

        Args:
            k: Maximum number of suggestions.

        Returns:
            Suggestions, best first, then by the ids of their documents.

        Raises:
            StrategyError: If ``k`` is not an integer of at least 1.
        """
        from linkstore.store.suggestions import find_suggestions  # late: nothing else needs its automaton

        require_at_least(1, k=k)
        dismissed = self._backend.run(self._backend.note(_DISMISSED_NOTE))
        pairs = frozenset(map(tuple, orjson.loads(dismissed or "[]")))
        return find_suggestions(partial(scan_records, self._backend), k, pairs)

    def dismiss(self, suggestions: Iterable[LinkSuggestion] | None) -> None:
        """Have :meth:`suggest` leave out suggestions from now on, also when their pages are indexed again.

        Args:
            suggestions: Of :meth:`suggest`. None: forget all that were dismissed.

        Raises:
            StoreBusyError: If others keep changing what is dismissed.
        """
        pairs = None if suggestions is None else [(one.source_page, one.target_page) for one in suggestions]

        def add(text: str | None) -> str:
            before = [] if pairs is None else orjson.loads(text or "[]")
            return orjson.dumps(sorted({*map(tuple, before), *(pairs or ())})).decode()

        if not self._backend.run(self._backend.change_note(_DISMISSED_NOTE, add, _MAX_TRIES)):
            raise StoreBusyError("others keep changing what is dismissed; try again")

    async def adismiss(self, suggestions: Iterable[LinkSuggestion] | None) -> None:
        """Have suggestions left out: see :meth:`dismiss`."""
        await run_in_thread(self.dismiss, None if suggestions is None else list(suggestions))

    async def asuggest(self, k: int = 100) -> list[LinkSuggestion]:
        """Suggest links that may be missing: see :meth:`suggest`."""
        return await run_in_thread(self.suggest, k)

    def accept(self, suggestions: Iterable[LinkSuggestion]) -> int:
        """Write suggestions as links of the kind ``"suggested"``, besides those written before.

        Searches follow them only if a strategy names the kind, as in ``PageRank(kinds={"suggested": 0.5})``.
        A page that is indexed again loses its own. ``replace({"suggested"}, {id: []})`` removes them.

        Args:
            suggestions: Of :meth:`suggest`, all or some.

        Returns:
            The number of documents whose links changed.
        """
        made: dict[str, list[Link]] = {}
        for suggestion in suggestions:
            for id, link in suggestion.links():
                made.setdefault(id, []).append(link)
        for document in self._backend.run(self._backend.answer(read_documents(made))):
            before = [link for link in parse_links(document.metadata, document.id) if link.kind == SUGGESTED]
            made[document.id] = [*before, *made[document.id]]
        return self.replace({SUGGESTED}, made).updated

    async def aaccept(self, suggestions: Iterable[LinkSuggestion]) -> int:
        """Write suggestions as links: see :meth:`accept`."""
        return await run_in_thread(self.accept, list(suggestions))

    def _find_neighbours(self, id: str) -> Operation[Neighbours]:
        neighbours: Neighbours | None = None
        if is_storable(id):
            neighbours = yield from call_plan(self._backend, find_neighbours(id))
        if neighbours is None:
            raise DocumentError(f"document {id!r} does not exist in the store")
        return neighbours

    def _replace(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Operation[WriteCounts]:
        require_list("kinds", kinds=kinds)
        require(Mapping, "a dict of links by the ids of documents", links=links)
        wanted = frozenset(kinds)
        merged = {id: merge_links(links[id]) for id in keep_storable("ids", links)}
        for id, listed in merged.items():
            for link in listed:
                if link.kind not in wanted:
                    raise LinkError(
                        f"document {id!r}: the kind of {link} is not among the kinds to replace"
                        f" ({', '.join(sorted(wanted)) or 'none'}); add it to kinds"
                    )
        yield from check_links(self._backend, merged)
        return (yield from call_engine(self._backend, self._backend.relink(wanted, merged)))
