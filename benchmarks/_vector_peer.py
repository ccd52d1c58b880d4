"""One store of vectors for peers.py: lancedb, Chroma, sqlite-vec or linkstore, asked from a pipe.

Each runs in a process of its own. A line of JSON asks, ``{"question": 3, "filter": "few"}``; the answer has
ids, and seconds of the clock and of the processor, those of all threads. Each is used as its manual says for
a folder on the disk: cosine, the metadata as fields that can be filtered by, 10 results, and its default
index; lancedb and sqlite-vec have none, they compare all vectors.
"""

from __future__ import annotations

import json
import sys
import time
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

K = 10
BATCH = 1_000
Fields = list[dict[str, int]]


class Store:
    """What each of them does."""

    @abstractmethod
    def __init__(self, folder: Path) -> None: ...

    @abstractmethod
    def add(self, start: int, vectors: np.ndarray, fields: Fields) -> None:
        """Add a batch of documents, ``doc 7`` with the id ``7``."""

    def end(self) -> None:
        """Finish what adding left to do, so that the next process finds it done."""

    @abstractmethod
    def search(self, vector: np.ndarray, field: str | None) -> list[str]:
        """Return the ids of the nearest documents, of those alone in which a field is 1."""


class Lance(Store):
    """lancedb, without an index."""

    def __init__(self, folder: Path) -> None:
        import lancedb

        self._database = lancedb.connect(folder)
        self._table: Any = None

    def add(self, start: int, vectors: np.ndarray, fields: Fields) -> None:
        import pyarrow as pa

        columns = {
            "id": [str(start + n) for n in range(len(vectors))],
            "text": [f"doc {start + n}" for n in range(len(vectors))],
            "vector": pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1]),
            **{name: [row[name] for row in fields] for name in fields[0]},
        }
        rows = pa.table(columns)
        if self._table is None:
            self._table = self._database.create_table("documents", rows)
        else:
            self._table.add(rows)

    def search(self, vector: np.ndarray, field: str | None) -> list[str]:
        query = (
            self._table.search(vector).distance_type("cosine").select(["id", "text", "_distance"]).limit(K)
        )
        if field is not None:
            query = query.where(f"{field} = 1", prefilter=True)
        return [row["id"] for row in query.to_list()]


class Chroma(Store):
    """Chroma, with its graph (HNSW)."""

    def __init__(self, folder: Path) -> None:
        import chromadb
        from chromadb.config import Settings

        client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self._documents = client.create_collection(
            "documents", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def add(self, start: int, vectors: np.ndarray, fields: Fields) -> None:
        numbers = range(start, start + len(vectors))
        self._documents.add(
            ids=[str(n) for n in numbers],
            embeddings=vectors,
            documents=[f"doc {n}" for n in numbers],
            metadatas=fields,
        )

    def search(self, vector: np.ndarray, field: str | None) -> list[str]:
        where = None if field is None else {field: 1}
        answer = self._documents.query(
            query_embeddings=[vector], n_results=K, where=where, include=["documents", "distances"]
        )
        return answer["ids"][0]


class SqliteVec(Store):
    """sqlite-vec: a virtual table, which compares all vectors."""

    def __init__(self, folder: Path) -> None:
        import apsw
        import sqlite_vec

        self._connection = apsw.Connection(str(folder / "vectors.db"))
        self._connection.enable_load_extension(True)
        self._connection.load_extension(sqlite_vec.loadable_path())
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._made = False

    def add(self, start: int, vectors: np.ndarray, fields: Fields) -> None:
        names = list(fields[0])
        if not self._made:
            columns = ", ".join(f"{name} INTEGER" for name in names)
            self._connection.execute(
                f"CREATE VIRTUAL TABLE documents USING vec0(vector FLOAT[{vectors.shape[1]}]"
                f" DISTANCE_METRIC=cosine, {columns}, +text TEXT)"
            )
            self._made = True
        places = ", ".join("?" * (len(names) + 3))
        with self._connection:
            self._connection.executemany(
                f"INSERT INTO documents (rowid, vector, {', '.join(names)}, text) VALUES ({places})",
                (
                    (start + n, vector.tobytes(), *fields[n].values(), f"doc {start + n}")
                    for n, vector in enumerate(vectors)
                ),
            )

    def search(self, vector: np.ndarray, field: str | None) -> list[str]:
        where = "" if field is None else f" AND {field} = 1"
        rows = self._connection.execute(
            f"SELECT rowid, text, distance FROM documents WHERE vector MATCH ? AND k = {K}{where}",
            (vector.tobytes(),),
        )
        return [str(row[0]) for row in rows]


class Linkstore(Store):
    """linkstore's embedded engine, which also indexes the words of each document."""

    def __init__(self, folder: Path) -> None:
        from linkstore import LinkStore

        self._store = LinkStore.open(folder)  # its embedding, of as many dimensions, has nothing to do

    def add(self, start: int, vectors: np.ndarray, fields: Fields) -> None:
        numbers = range(start, start + len(vectors))
        self._store.add_texts(
            [f"doc {n}" for n in numbers], fields, ids=[str(n) for n in numbers], vectors=vectors
        )

    def end(self) -> None:
        self._store.backend.run(self._store.backend.flush())

    def search(self, vector: np.ndarray, field: str | None) -> list[str]:
        given = None if field is None else {field: 1}
        found = self._store.similarity_search_by_vector(vector, k=K, filter=given)
        return [str(document.id) for document in found]


STORES = {"lancedb": Lance, "chroma": Chroma, "sqlite-vec": SqliteVec, "linkstore": Linkstore}


def main() -> None:
    """Fill the store in batches, then answer until the pipe ends."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    data = dict(np.load(folder / "data.npz"))
    place = folder / name
    place.mkdir()
    vectors, fields = data["vectors"], list_fields(len(data["vectors"]))
    store = STORES[name](place)
    started = (time.perf_counter(), time.process_time())
    for start in range(0, len(vectors), BATCH):
        store.add(start, vectors[start : start + BATCH], fields[start : start + BATCH])
    store.end()
    _answer(started, [])
    for line in sys.stdin:
        asked = json.loads(line)
        vector = data["questions"][asked["question"]]
        started = (time.perf_counter(), time.process_time())
        _answer(started, store.search(vector, asked["filter"]))


def list_fields(count: int) -> Fields:
    """The metadata of documents: one in two has ``half`` 1, one in a hundred ``few``."""
    return [{"half": int(n % 2 == 0), "few": int(n % 100 == 0)} for n in range(count)]


def _answer(started: tuple[float, float], ids: list[str]) -> None:
    clock, processor = time.perf_counter() - started[0], time.process_time() - started[1]
    print(json.dumps({"clock": clock, "cpu": processor, "ids": ids}), flush=True)


if __name__ == "__main__":
    main()
