"""Where benchmarks keep their stores: embedded, or on a Cassandra server that they start."""

from __future__ import annotations

import sys
import tempfile
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
        folders: Whether embedded ones lie in folders, and not in the memory of the process.
    """

    def __init__(self, *, cassandra: bool, folders: bool = False) -> None:
        super().__init__()
        self._folders = folders
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
        if self._session is not None:
            table = f"corpus_{next(self._numbers)}"
            opened = LinkStore.cassandra(embedding, session=self._session, keyspace=KEYSPACE, table=table)
        elif self._folders:
            folder = self.enter_context(tempfile.TemporaryDirectory(prefix="linkstore-benchmark-"))
            opened = LinkStore.open(Path(folder) / "kb", embedding)
        else:
            opened = LinkStore.open(":memory:", embedding)
        with opened as store:
            yield store
