"""The links between the documents of a store: neighbours, paths, replacements and suggestions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import orjson

from linkstore.core.arguments import require, require_at_least, require_list
from linkstore.core.calls import Operation, arun, call_engine, call_plan, run, run_in_thread
from linkstore.core.documents import is_storable, keep_storable
from linkstore.core.filters import Filter
from linkstore.core.graph_answer import ShortestPaths
from linkstore.core.links import SUGGESTED, Link, merge_links, parse_links
from linkstore.core.plans import read_documents
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import WriteCounts
from linkstore.errors import DocumentError, LinkError, StoreBusyError
from linkstore.store.documents import scan_records
from linkstore.store.graph import answer_paths
from linkstore.store.schema_graph import check_links
from linkstore.strategies.neighbours import Neighbours, find_neighbours
from linkstore.strategies.shortest import DEFAULT_HUB_CAP, DEFAULT_MAX_NODES

if TYPE_CHECKING:
    from linkstore.store.suggestions import LinkSuggestion


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
