"""Where the retrieval benchmark keeps its corpora: in SQLite, or on a Cassandra server that it starts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from langchain_core.embeddings import Embeddings

from linkstore import LinkStore

KEYSPACE = "retrieval"


class Stores(ExitStack):
    """Gives a new store for each corpus.

    Args:
        cassandra: Whether they lie in Cassandra (Java 17 and Maven are needed).
    """

    def __init__(self, *, cassandra: bool) -> None:
        super().__init__()
        self._session = self._started() if cassandra else None
        self._numbers = count(1)

    def _started(self) -> object:
        sys.path.append(sys.path.pop(0))  # benchmarks/cassandra.py must not be taken for the driver
        sys.path.insert(1, str(Path(__file__).parents[1] / "tests" / "support"))
        from cassandra_server import Server, create_keyspace

        server = self.enter_context(Server(heap="4G"))
        session = self.enter_context(server.connect())
        create_keyspace(session, KEYSPACE)
        return session

    @contextmanager
    def opened(self, embedding: Embeddings) -> Iterator[LinkStore]:
        """A store for one corpus."""
        if self._session is None:
            store = LinkStore.open(":memory:", embedding)
        else:
            table = f"corpus_{next(self._numbers)}"
            store = LinkStore.cassandra(embedding, session=self._session, keyspace=KEYSPACE, table=table)
        with store:
            yield store
