"""The stores that a reader reads from, and the model that it asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from linkstore.agents.asking import Asker
from linkstore.agents.state import Reading
from linkstore.plans import Operation
from linkstore.store import LinkStore
from linkstore.twins import Twin
from linkstore.vectors import Floats, unit_vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources that the steps of a reading share.

    Args:
        store: Holds the chunks.
        facts: Holds their facts; None: the reader searches and follows links only.
        asker: Asks the model.
        closing: The prompt of the answer in a state, which a budget must leave room for.
    """

    store: LinkStore
    facts: LinkStore | None
    asker: Asker
    closing: Callable[[Reading], Sequence[BaseMessage]]

    def vector(self, text: str) -> Operation[Floats]:
        """Compute the unit vector of a text."""
        embedding = self.store.embeddings
        given = yield Twin(embedding.embed_query, embedding.aembed_query, (text,))
        return unit_vector(given)

    def search(self, query: str, k: int) -> Twin:
        """Request the hits of the default strategy."""
        return Twin(
            lambda: self.store.search(query, k=k),
            lambda: self.store.asearch(query, k=k),
        )
