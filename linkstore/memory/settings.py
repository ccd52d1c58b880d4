"""The parts and settings of a memory, and the calls that its operations make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel

from linkstore.context.decay import Accesses
from linkstore.core.arguments import omit_none, require, require_at_least, require_having, require_model
from linkstore.core.calls import Operation, call, call_plan
from linkstore.core.filters import Filter
from linkstore.core.hits import Hits
from linkstore.core.plans import Plan
from linkstore.errors import StrategyError
from linkstore.memory.names import EntityFinder, find_entities
from linkstore.memory.turns import Turn
from linkstore.store.linkstore import LinkStore, require_store
from linkstore.store.search import choose_strategy
from linkstore.strategies.base import Reranker, Strategy, check_reranker
from linkstore.strategies.pagerank import DEFAULT_STRATEGY

T = TypeVar("T")
Rewriter = BaseLanguageModel[Any] | Callable[[str, Sequence[Turn]], str]
"""A model that rewrites a question, or a function of the question and the last turns."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MemorySettings:
    """The parts of a memory: see :class:`~linkstore.memory.ConversationMemory`."""

    store: LinkStore = field(kw_only=False)
    knowledge: LinkStore | None = field(default=None, kw_only=False)
    window: int = 10
    model: BaseLanguageModel[Any] | None = None
    rewriter: Rewriter | None = None
    reranker: Reranker | None = None
    entities: EntityFinder = find_entities
    strategy: Strategy = field(default_factory=lambda: DEFAULT_STRATEGY)
    ttl: timedelta | None = None
    touch: bool = True
    accesses: tuple[Accesses, ...] = field(init=False)

    def __post_init__(self) -> None:
        require_store(store=self.store, **omit_none(knowledge=self.knowledge))
        require_at_least(1, window=self.window)
        if self.ttl is not None:
            require(timedelta, "a timedelta, such as timedelta(days=30)", ttl=self.ttl)
            if self.ttl <= timedelta(0):
                raise StrategyError(f"ttl must be a positive time, not {self.ttl!r}")
        if self.model is not None:
            require_model("invoke", self.model)
        require(bool, "True or False", touch=self.touch)
        require_having("__call__", "a function", entities=self.entities)
        if self.reranker is not None:
            check_reranker(self.reranker)
        if self.rewriter is not None and not isinstance(self.rewriter, BaseLanguageModel):
            require_having("__call__", "a chat model or a function", rewriter=self.rewriter)
        choose_strategy(self.strategy, None)
        stores = [self.store, *([] if self.knowledge is None else [self.knowledge])]
        object.__setattr__(self, "accesses", tuple(map(Accesses, stores)))

    def read(self, plan: Plan[T]) -> Operation[T]:
        """Carry out a plan on the store of the turns."""
        return (yield from call_plan(self.store.backend, plan))


def search_store(
    store: LinkStore, question: str, strategy: Strategy, k: int, filter: Filter | None = None
) -> Operation[Hits]:
    """Search a store."""
    return call(store.search, store.asearch, question, k=k, strategy=strategy, filter=filter)


def add_documents(store: LinkStore, documents: list[Document]) -> Operation[list[str]]:
    """Add documents to a store in one change, and return their ids."""
    return call(store.add_documents, store.aadd_documents, documents, batch_size=len(documents))


def delete_documents(store: LinkStore, ids: list[str]) -> Operation[bool | None]:
    """Remove documents from a store by id."""
    return call(store.delete, store.adelete, ids)


def ask_model(model: BaseLanguageModel[Any], prompt: str) -> Operation[str]:
    """Ask a language model for its answer to a prompt."""
    answer: Any = yield from call(model.invoke, model.ainvoke, prompt)
    return str(answer if isinstance(answer, str) else answer.text).strip()
