"""ContextCompiler: the best context that fits a budget of tokens, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict

from linkstore.context.assembly import Assembly
from linkstore.context.compiled import Compiled, Tokenizer, counter_of
from linkstore.context.entries import (
    DEFAULT_CANDIDATES,
    PINNED_FILTER,
    REQUIRED_KINDS,
    CompilerSettings,
    Frame,
    Header,
    make_entries,
)
from linkstore.context.selection import EXACT_CLASSES, PRECEDENCE, First, Order
from linkstore.context.surroundings import MOST_PINNED, Surroundings, find_pinned, find_surroundings
from linkstore.context.value import Calibrated, Decay, LastAccess, Value, find_access
from linkstore.core.arguments import omit_none, require, require_list
from linkstore.core.arrays import make_unit_vector
from linkstore.core.calls import Call, arun, call_engine, call_plan, run
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.hits import Hits
from linkstore.core.links import strip_links
from linkstore.core.plans import Operation, StoredDocument
from linkstore.engines.contract import Manifest
from linkstore.errors import BudgetError
from linkstore.store.documents import read_access_times
from linkstore.store.linkstore import LinkStore, require_store
from linkstore.strategies.base import Strategy
from linkstore.strategies.pagerank import DEFAULT_STRATEGY

if TYPE_CHECKING:
    from linkstore.context.middleware import ContextMiddleware

T = TypeVar("T")


class ContextCompiler(Runnable[str, Compiled]):
    """Compiles the best context for a question that fits a budget of tokens.

    The hits of a search are valued by how likely each is evidence, selected so that the sum is highest
    within the budget, and ordered so that what others build upon is read first. Of documents that say the
    same, to the letter, the best is taken; neighbouring chunks of a page are joined. Documents with
    ``metadata["memory"] == "procedural"`` are always in. A document with an outgoing link of the kind
    ``requires`` is taken only together with the documents it leads to.

    A compiler is a LangChain Runnable from a question to a :class:`Compiled`. It holds no state but its
    settings, and may be used by any number of threads and tasks. The same store, question, settings and time
    give the same context.

    Args:
        store: What is searched.
        budget: The most tokens that the text may have, at least 1.
        strategy: How to search; its ``k`` becomes ``candidates``. Default
            :data:`~linkstore.strategies.DEFAULT_STRATEGY`; where the budget holds more documents than that
            starts from, the search is repeated with four times as many starts as it holds, at most 128.
        tokenizer: What counts tokens; default that of the default embedding (Llama 2's), offline. See
            :func:`~linkstore.context.counter_of`.
        value: What a candidate is worth; default :class:`Calibrated`.
        decay: How memories fade; default :class:`Decay`.
        order: ``"precedence"`` (default): what links say is read first; ``"relevance"``: best first;
            ``"document"``: page by page; ``"edges"``: the best first and last.
        precedence: Which end of a link is read first, by kind; default :data:`PRECEDENCE`.
        requires: Kinds of link that lead to what a document requires; default ``{"requires"}``.
        pinned: Filter of the documents that are always in; None pins none.
        filter: Metadata filter for the whole compilation, pinned and required documents included.
        candidates: How many hits are considered; default 200.
        exact_candidates: Maximum number for an exact knapsack; default 200. Beyond, and if they times the
            tokens of the budget are more than 40 million, it is greedy and
            :attr:`Compiled.gap` bounds what it may lack.
        separator: Stands between texts; default an empty line.
        header: Gives the line above a document's text; default none. See
            :func:`~linkstore.context.source_header`.
        last_access: When documents were last accessed, as a dict or a function of the id. For others it is
            what :meth:`~linkstore.LinkStore.touch` recorded, else ``metadata["last_access"]``.

    Raises:
        ArgumentError: If an argument has the wrong type, such as a path instead of a store.
        StrategyError: If a setting is out of range, or ``strategy`` is not a strategy.
        FilterError: If a filter is invalid.
    """

    def __init__(
        self,
        store: LinkStore,
        *,
        budget: int,
        strategy: Strategy | None = None,
        tokenizer: Tokenizer | None = None,
        value: Value | None = None,
        decay: Decay | None = None,
        order: Order = "precedence",
        precedence: Mapping[str, First] = PRECEDENCE,
        requires: frozenset[str] | set[str] = REQUIRED_KINDS,
        pinned: Filter | None = PINNED_FILTER,
        filter: Filter | None = None,
        candidates: int = DEFAULT_CANDIDATES,
        exact_candidates: int = EXACT_CLASSES,
        separator: str = "\n\n",
        header: Header | None = None,
        last_access: LastAccess | None = None,
    ) -> None:
        require_store(store=store)
        require_list("kinds", requires=requires)
        self.store = store
        self.settings = CompilerSettings(
            budget=budget,
            strategy=strategy,
            counter=counter_of(tokenizer),
            value=Calibrated() if value is None else value,
            decay=Decay() if decay is None else decay,
            order=order,
            precedence=precedence,
            requires=frozenset(requires),
            pinned=pinned,
            filter=filter,
            candidates=candidates,
            exact_candidates=exact_candidates,
            separator=separator,
            header=header,
            last_access=last_access,
        )

    def compile(self, question: str, *, now: datetime | None = None) -> Compiled:
        """Compile the context for a question.

        Args:
            question: In words.
            now: The time that the ages of memories are counted to; default the current time.

        Raises:
            BudgetError: If the pinned documents exceed the budget; the message says by how much.
            EmbeddingError: If the question cannot be embedded.
            BackendError: If the storage engine fails.
        """
        return run(self._gather(question, now))

    async def acompile(self, question: str, *, now: datetime | None = None) -> Compiled:
        """Compile without blocking the event loop: see :meth:`compile`."""
        return await arun(self._gather(question, now))

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Compiled:
        """Compile the context for a question, traced by LangChain's callbacks."""
        return self._call_with_config(lambda question: self.compile(question, **kwargs), input, config)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Compiled:
        """Compile the context for a question: see :meth:`invoke`."""

        async def compiled(question: str) -> Compiled:
            return await self.acompile(question, **kwargs)

        return await self._acall_with_config(compiled, input, config)

    def as_retriever(self, **kwargs: Any) -> ContextRetriever:
        """Return a LangChain retriever that yields the documents of the context, in their order.

        Args:
            kwargs: Fields of LangChain's retrievers, such as ``tags``.
        """
        return ContextRetriever(compiler=self, **kwargs)

    def framed_by(self, frame: Frame) -> ContextCompiler:
        """Return this compiler with a budget that is for what ``frame`` makes of the text of a context."""
        other = copy(self)
        other.settings = replace(self.settings, frame=frame)
        return other

    def as_middleware(self) -> ContextMiddleware:
        """Make middleware for LangChain's ``create_agent``: it adds the context to each system message.

        The context is that of the user's last message. The budget is for all that is added.

        Raises:
            BudgetError: If the budget is too small for the sentence above the context.
            MissingExtraError: If the extra ``agents`` is not installed.
        """
        from linkstore.context.middleware import ContextMiddleware

        return ContextMiddleware(self)

    def __repr__(self) -> str:
        return f"ContextCompiler({self.store!r}, budget={self.settings.budget})"

    def _gather(self, question: str, now: datetime | None) -> Operation[Compiled]:
        """Search, look around, and assemble."""
        settings, backend = self.settings, self.store.backend
        require(datetime, "a datetime", **omit_none(now=now))
        hits: Hits = yield self._search(question, settings.strategy or DEFAULT_STRATEGY)
        wider: Strategy | None = yield Call(settings.wider, None, (hits,))
        if wider is not None:
            hits = yield self._search(question, wider)
        manifest: Manifest = yield call_engine(backend, backend.manifest())
        pinned: list[StoredDocument] = []
        around = Surroundings()
        if manifest.dimension is not None:
            any_vector = make_unit_vector(manifest.dimension)
            scope = parse_filter(settings.filter)
            if settings.pinned is not None:
                plan = find_pinned(parse_filter(settings.pinned), any_vector)
                pinned = yield call_plan(backend, plan, scope)
                _refuse_too_many(pinned)
            ids = dict.fromkeys([*(one.id for one in pinned), *(str(hit.document.id) for hit in hits)])
            looking = find_surroundings(list(ids), settings.requires, settings.kinds)
            around = yield call_plan(backend, looking, scope)
        metadata = [*(hit.document.metadata for hit in hits), *(one.metadata for one in pinned)]
        named = (one.get("page") for one in metadata)
        urls = list(dict.fromkeys(url for url in named if isinstance(url, str) and url))
        pages = (yield call_engine(backend, backend.pages(None, urls))) if urls else []
        stored = {str(hit.document.id): hit.document.metadata for hit in hits}
        stored |= {one.id: one.metadata for one in (*pinned, *around.documents.values())}
        fading = [name for name, one in stored.items() if settings.decay.may_fade(one)]
        accessed: dict[str, datetime] = (yield from read_access_times(backend, fading)) if fading else {}
        moment = now or datetime.now(UTC)

        def assemble() -> Compiled:
            known = replace(settings, last_access=_combine_accesses(settings.last_access, accessed))
            entries = make_entries(known, hits, pinned, around, moment)
            return Assembly(settings, question, hits, entries, around, pages).compiled()

        return (yield Call(assemble))  # type: ignore[no-any-return]

    def _search(self, question: str, strategy: Strategy) -> Call:
        settings, store = self.settings, self.store
        options = {"k": settings.candidates, "strategy": strategy, "filter": settings.filter}
        return Call(store.search, store.asearch, (question,), options)


class ContextRetriever(BaseRetriever):
    """Retrieves the documents of the best context that fits a budget, in the order they are to be read.

    Args:
        compiler: Compiles the contexts.
        with_links: Whether documents keep ``metadata["links"]``; default False.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    compiler: ContextCompiler
    with_links: bool = False

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self._prepare(self.compiler.compile(query).documents)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self._prepare((await self.compiler.acompile(query)).documents)

    def _prepare(self, documents: list[Document]) -> list[Document]:
        return documents if self.with_links else [strip_links(one) for one in documents]


def _combine_accesses(first: LastAccess | None, second: Mapping[str, datetime]) -> LastAccess:
    """Return times of access from the first source, else from the second."""
    if first is None:
        return second
    return lambda name: find_access(name, first) or second.get(name)


def _refuse_too_many(pinned: list[StoredDocument]) -> None:
    if len(pinned) > MOST_PINNED:
        raise BudgetError(
            f"more than {MOST_PINNED} documents are pinned; pin fewer, by another filter: pinned={{…}}"
        )
