"""ContextCompiler: the best context that fits a budget of tokens, and its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict

from linkstore.context.assembly import Assembly
from linkstore.context.candidates import DEFAULT_CANDIDATES, CompilerSettings, make_candidates
from linkstore.context.compiled import Compiled
from linkstore.context.decay import Accesses
from linkstore.context.ordering import First
from linkstore.context.surroundings import (
    MOST_PINNED,
    Surroundings,
    find_dependencies,
    find_pinned,
    find_surroundings,
)
from linkstore.core.arguments import omit_none, require
from linkstore.core.arrays import make_unit_vector
from linkstore.core.calls import Operation, arun, call, call_engine, call_plan, run
from linkstore.core.filters import parse_filter
from linkstore.core.hits import Hits
from linkstore.core.links import strip_links
from linkstore.core.plans import StoredDocument
from linkstore.errors import BudgetError
from linkstore.strategies.base import Strategy
from linkstore.strategies.pagerank import DEFAULT_STRATEGY

if TYPE_CHECKING:
    from linkstore.context.middleware import ContextMiddleware


class ContextCompiler(CompilerSettings, Runnable[str, Compiled]):
    """Compiles the best context for a question that fits a budget of tokens.

    What is pinned comes first, then the hits of a search by rank, as long as they fit; the best of what does
    not fit are there in whole sentences. What the documents build upon is read before them. Of documents that
    say the same, to the letter, the best is taken; neighbouring chunks of a page are joined. Documents with
    ``metadata["memory"] == "procedural"`` are pinned. A document with an outgoing link of the kind
    ``requires`` is taken only together with the documents it leads to. Memories fade, unless contexts use
    them.

    A compiler is a LangChain Runnable from a question to a :class:`Compiled`. It may be used by any number of
    threads and tasks. The same store, question, settings, time and accesses give the same context.

    Args:
        store: What is searched.
        budget: The most tokens that the text may have, at least 1.
        strategy: How to search; its ``k`` becomes ``candidates``. Default
            :data:`~linkstore.strategies.DEFAULT_STRATEGY`; where the budget holds more documents than that
            starts from, the search is repeated with four times as many starts as it holds, at most 128.
        tokenizer: What counts tokens; default that of the default embedding (Llama 2's), offline. See
            :func:`~linkstore.context.counter_of`.
        selection: ``"rank"`` (default) fills the budget by rank. ``"knapsack"`` takes the set of documents
            whose shares, 1 divided by the rank, have the highest sum, by dynamic programming (S. Martello and
            P. Toth, "Knapsack Problems", 1990, chapter 2). It gains nothing over ranks in our benchmarks.
        decay: How memories fade; default :class:`Decay`.
        order: ``"precedence"`` (default): what links say is read first; ``"relevance"``: best first;
            ``"document"``: page by page; ``"edges"``: the best first and last.
        precedence: Which end of a link is read first, by kind; default that of
            ``linkstore.context.ordering.PRECEDENCE``.
        requires: Kinds of link that lead to what a document requires; default ``{"requires"}``.
        pinned: Filter of the documents that are always in; None pins none.
        filter: Metadata filter for the whole compilation, pinned and required documents included.
        candidates: How many hits are considered; default 200, or as many as the budget holds, at most 5,000.
        separator: Stands between texts; default an empty line.
        header: Gives the line above a document's text; default none. See
            :func:`~linkstore.context.source_header`.
        last_access: When documents were last accessed, as a dict or a function of the id. For others it is
            what was recorded when they were written, by contexts that used them and by
            ``store.accesses.record``, else ``metadata["last_access"]``.
        touch: Whether a context counts as an access to the memories in it; default True. Accesses are
            recorded for many searches at a time, at the latest by :meth:`flush`.
        frame: Gives what is sent of the text, which the budget is for; default the text.

    Raises:
        ArgumentError: If an argument has the wrong type, such as a path instead of a store.
        StrategyError: If a setting is out of range, or ``strategy`` is not a strategy.
        FilterError: If a filter is invalid.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_accesses", Accesses(self.store))

    _accesses: Accesses

    def compile(
        self, question: str, *, now: datetime | None = None, precedence: Mapping[str, First] | None = None
    ) -> Compiled:
        """Compile the context for a question.

        Args:
            question: In words.
            now: The time that the ages of memories are counted to; default the current time.
            precedence: Which end of a link is read first, for kinds of link besides those of the compiler.

        Raises:
            BudgetError: If the pinned documents exceed the budget; the message says by how much.
            EmbeddingError: If the question cannot be embedded.
            BackendError: If the storage engine fails.
        """
        return run(self._gather(question, now, precedence))

    async def acompile(
        self, question: str, *, now: datetime | None = None, precedence: Mapping[str, First] | None = None
    ) -> Compiled:
        """Compile without blocking the event loop: see :meth:`compile`."""
        return await arun(self._gather(question, now, precedence))

    def flush(self) -> None:
        """Record the accesses that are still to be recorded."""
        run(self._accesses.record(all=True))

    async def aflush(self) -> None:
        """Record the accesses that are still to be recorded."""
        await arun(self._accesses.record(all=True))

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Compiled:
        """Compile the context for a question, traced by LangChain's callbacks."""
        return self._call_with_config(lambda question: self.compile(question, **kwargs), input, config)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Compiled:
        """Compile the context for a question: see :meth:`invoke`."""

        async def compile_question(question: str) -> Compiled:
            return await self.acompile(question, **kwargs)

        return await self._acall_with_config(compile_question, input, config)

    def as_retriever(self, **kwargs: Any) -> ContextRetriever:
        """Return a LangChain retriever that yields the documents of the context, in their order.

        Args:
            kwargs: Fields of LangChain's retrievers, such as ``tags``.
        """
        return ContextRetriever(compiler=self, **kwargs)

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
        return f"ContextCompiler({self.store!r}, budget={self.budget})"

    def _gather(
        self, question: str, now: datetime | None, precedence: Mapping[str, First] | None
    ) -> Operation[Compiled]:
        """Search, look around, assemble, and record what was used."""
        settings: CompilerSettings = self
        backend = self.store.backend
        if precedence is not None:
            require(Mapping, "a dict of 'source' or 'target' by kind of link", precedence=precedence)
            settings = replace(self, precedence={**self.precedence, **precedence})
        require(datetime, "a datetime", **omit_none(now=now))
        strategy, k = settings.strategy or DEFAULT_STRATEGY, settings.candidates or DEFAULT_CANDIDATES
        hits = yield from self._search(question, strategy, k)
        wider = yield from call(settings.widen, None, hits)
        if wider is not None:
            hits = yield from self._search(question, *wider)
        manifest = yield from call_engine(backend, backend.manifest())
        pinned: list[StoredDocument] = []
        around, all_hits = Surroundings(), list(hits)
        if manifest.dimension is not None:
            any_vector = make_unit_vector(manifest.dimension)
            scope = parse_filter(settings.filter)
            if settings.pinned is not None:
                plan = find_pinned(parse_filter(settings.pinned), any_vector)
                pinned = yield from call_plan(backend, plan, scope)
                if len(pinned) > MOST_PINNED:
                    raise BudgetError(
                        f"more than {MOST_PINNED} documents are pinned; give a narrower filter: pinned={{…}}"
                    )
            if settings.strategy is None:
                all_hits = yield from call_plan(backend, find_dependencies(hits, settings.precedence), scope)
            ids = [*(document.id for document in pinned), *(str(hit.document.id) for hit in all_hits)]
            looking = find_surroundings(list(dict.fromkeys(ids)), frozenset(settings.requires))
            around = yield from call_plan(backend, looking, scope)
        metadata = {str(hit.document.id): hit.document.metadata for hit in all_hits}
        metadata |= {document.id: document.metadata for document in pinned}
        named = (fields.get("page") for fields in metadata.values())
        urls = list(dict.fromkeys(url for url in named if isinstance(url, str) and url))
        pages = (yield from call_engine(backend, backend.pages(None, urls))) if urls else []
        metadata |= {name: document.metadata for name, document in around.documents.items()}
        fading = [name for name, fields in metadata.items() if settings.decay.may_fade(fields)]
        accessed = yield from self._accesses.read(fading)
        if settings.last_access is not None:
            by_id = settings.last_access
            find = by_id.get if isinstance(by_id, Mapping) else by_id
            accessed |= {name: at for name in fading if (at := find(name)) is not None}
        moment = now or datetime.now(UTC)

        def assemble() -> Compiled:
            candidates = make_candidates(settings, all_hits, pinned, around, accessed, moment)
            return Assembly(settings, question, hits, candidates, around, pages).compile()

        compiled = yield from call(assemble, None)
        if settings.touch:
            yield from self._record_accesses(compiled, moment)
        return compiled

    def _record_accesses(self, compiled: Compiled, moment: datetime) -> Operation[None]:
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        fading = self.decay.may_fade
        self._accesses.collect((item.id for item in compiled.items if fading(item.document.metadata)), aware)
        yield from self._accesses.record()

    def _search(self, question: str, strategy: Strategy, k: int) -> Operation[Hits]:
        store = self.store
        return call(store.search, store.asearch, question, k=k, strategy=strategy, filter=self.filter)


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
        return documents if self.with_links else [strip_links(document) for document in documents]
