"""What the tests of stores share: small data, sample sizes, and other processes."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from linkstore import Link, add_links
from linkstore.core.arrays import Floats, cosine_similarities, normalize_vectors
from linkstore.core.filters import parse_filter
from linkstore.core.links import parse_links
from linkstore.core.plans import Candidates, Ids, Nearest, Plan
from linkstore.engines.contract import Manifest, Record, WriteBatch
from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings
from linkstore.engines.embedded.files import name_file

PROCESSES = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
if os.name == "posix":
    PROCESSES.set_forkserver_preload(["__main__", "linkstore.store", "langchain_core.embeddings.fake"])
LONG = os.environ.get("LINKSTORE_LONG") == "1"
DIMENSION = 16
SNAPSHOTS = EmbeddedSettings(exact_below=64, durable=False)
"""Settings under which a few hundred documents already have an index and derived files."""


def times(sample: int, full: int) -> int:
    """How often to repeat something: ``full`` under ``make test-long``."""
    return full if LONG else sample


def long(*values: object) -> Any:
    """A parameter of a test that only ``make test-long`` has."""
    return pytest.param(*values, marks=pytest.mark.long)


def embedding() -> Embeddings:
    """Vectors that depend on the text alone, the same in every process."""
    return DeterministicFakeEmbedding(size=DIMENSION)


def document(n: int, version: int = 0) -> Document:
    """Document ``n``: one keyword of 17, a link to another document, and what others link to."""
    made = Document(
        id=f"d{n}", page_content=f"doc {n} v{version}", metadata={"n": n, "c": n % 3, "v": version}
    )
    add_links(
        made,
        Link.bidir(kind="keyword", tag=f"k{n % 17}"),
        Link.outgoing(kind="hyperlink", tag=f"u{(n * 7 + version) % 97}"),
        Link.incoming(kind="hyperlink", tag=f"u{n}"),
    )
    return made


def documents(start: int, stop: int, version: int = 0) -> list[Document]:
    """Documents ``start`` to ``stop``."""
    return [document(n, version) for n in range(start, stop)]


def vectors(numbers: Sequence[int], version: int = 0, dimension: int = DIMENSION) -> Floats:
    """(n, dimension) unit vectors, each by its number and version alone."""
    rows = [np.random.default_rng((n, version)).standard_normal(dimension) for n in numbers]
    return normalize_vectors(np.array(rows).reshape(-1, dimension))


def record(n: int, version: int = 0) -> Record:
    """Document ``n`` as a backend takes it."""
    made = document(n, version)
    return Record(
        id=f"d{n}",
        text=made.page_content,
        metadata=made.metadata,
        vector=vectors([n], version)[0],
        links=parse_links(made.metadata, made.id),
    )


def records(start: int, stop: int, version: int = 0) -> list[Record]:
    """Documents ``start`` to ``stop`` as a backend takes them."""
    return [record(n, version) for n in range(start, stop)]


def backend(path: Path | str, settings: EmbeddedSettings = SNAPSHOTS) -> EmbeddedBackend:
    """An embedded backend that is ready for records."""
    made = EmbeddedBackend(path, settings=settings)
    if made.run(made.manifest()).dimension is None:
        made.run(made.claim(Manifest(embedding="test", dimension=DIMENSION)))
    return made


def put(store: EmbeddedBackend, start: int, stop: int, version: int = 0) -> None:
    """Write records."""
    store.run(store.write(WriteBatch(put=records(start, stop, version))))


def snapshot_file(folder: Path) -> Path:
    """The file of the snapshot that the database of a store records."""
    connection = apsw.Connection(str(folder / "linkstore.db"))
    text = connection.execute("SELECT value FROM setting WHERE name = 'snapshot'").get
    connection.close()
    return folder / name_file(json.loads(text)["digest"])


def nearest(store: EmbeddedBackend, vector: Floats, k: int = 10, filter: dict | None = None) -> list[str]:
    """Ids of the nearest documents."""
    return store.run(store.answer(_nearest(vector, k, filter)))


def _nearest(vector: Floats, k: int, filter: dict | None) -> Plan[list[str]]:
    found: Candidates = yield Nearest(vector=vector, k=k, filter=parse_filter(filter))
    ids: list[str] = yield Ids(refs=found.refs)
    return ids


def exact(numbers: Sequence[int], vector: Floats, k: int = 10) -> list[str]:
    """What the nearest must be, by looking at all of version 0."""
    scores = cosine_similarities(vectors(numbers), vector)
    order = sorted(range(len(numbers)), key=lambda at: (-scores[at], f"d{numbers[at]}"))
    return [f"d{numbers[at]}" for at in order[:k]]


def sql(folder: Path, *statements: str) -> None:
    """Damage or inspect the database behind the store's back."""
    connection = apsw.Connection(str(folder / "linkstore.db"))
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


class Child:
    """Another process, which sends what it has to say; it does not outlive the tests.

    Args:
        target: A function of this or the test's module; it gets a connection, then ``arguments``.
        arguments: Plain values.
    """

    def __init__(self, target: Callable[..., None], *arguments: object) -> None:
        self.connection, theirs = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=target, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def kill(self) -> list[Any]:
        """End it by SIGKILL; what it had sent before."""
        self._process.kill()
        said = self._rest()
        self._process.join()
        assert self._process.exitcode == -signal.SIGKILL, "it ended by itself"
        return said

    def finish(self, timeout: float = 300) -> list[Any]:
        """Wait for its end, which must be a good one; what it sent."""
        said = self._rest(timeout)
        self._process.join(timeout)
        assert self._process.exitcode == 0
        return said

    def _rest(self, timeout: float = 300) -> list[Any]:
        """What it sends until its end; what it has sent after so many seconds of silence."""
        said = []
        with contextlib.suppress(EOFError, ConnectionError):
            while self.connection.poll(timeout):
                said.append(self.connection.recv())
        return said


@contextlib.contextmanager
def meanwhile(*work: Callable[[], object]) -> Iterator[None]:
    """Do each work over and over, at least once, in a thread of its own; raises what one raises."""
    stop = threading.Event()

    def over_and_over(once: Callable[[], object]) -> None:
        once()
        while not stop.is_set():
            once()

    with ThreadPoolExecutor(len(work)) as pool:
        running = [pool.submit(over_and_over, once) for once in work]
        try:
            yield
        finally:
            stop.set()
        for one in running:
            one.result()
