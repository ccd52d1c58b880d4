"""Makes the golden stores, which every later version must open: ``python tests/support/golden.py``.

Run it once for each new format. It writes ``format-N.zip``, the folder of an embedded store of 100 documents
with a snapshot, of which ten were updated and two removed afterwards; ``format-N.json``, what searches
answer; and ``schema-N.cql``, the tables of a store in Cassandra.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from named import Named
from stores import DIMENSION, SNAPSHOTS, backend, vectors

from linkstore import Link
from linkstore.core.links import merge_links
from linkstore.engines.contract import PageEntry, Record, WriteBatch
from linkstore.engines.embedded import EmbeddedBackend
from linkstore.engines.embedded.schema import FORMAT_VERSION
from linkstore.strategies import AllPaths, Eager, Mmr, PageRank, Question, Similarity, Strategy, Words

TESTS: Final = Path(__file__).parents[1]
STORES: Final = TESTS / "embedded" / "data"
SCHEMAS: Final = TESTS / "cassandra" / "data"
REMOVED: Final = (50, 51)
UPDATED: Final = range(10)
NUMBERS: Final = tuple(n for n in range(100) if n not in REMOVED)
QUESTION: Final = Question(vector=vectors([10_000])[0], text="Where is title 7 of the ünïcode documents?")
SEARCHES: Final[Mapping[str, Strategy]] = {
    "similarity": Similarity(k=5),
    "words": Words(k=5),
    "named": Named(k=5),
    "eager": Eager(depth=2, k=8),
    "mmr": Mmr(k=5, fetch_k=10),
    "all-paths": AllPaths(k=5),
    "pagerank": PageRank(k=8, depth=2),
}


def make_record(n: int, version: int) -> Record:
    """Return document ``n``: a keyword of 17, a link with data and a label, and what others link to."""
    links = merge_links(
        (
            Link.bidir(kind="keyword", tag=f"k{n % 17}"),
            Link.outgoing(kind="hyperlink", tag=f"u{(7 * n + version) % 97}", data={"since": 2000 + n % 20}),
            Link.incoming(kind="hyperlink", tag=f"u{n}", label=f"to {n}", weight=0.5),
        )
    )
    metadata = {"n": n, "c": n % 3, "v": version, "title": f"Title {n}"}
    return Record(
        id=f"d{n}",
        text=f"doc {n} v{version} ünïcode",
        metadata={**metadata, "links": [link.to_dict() for link in links]},
        vector=vectors([n], version)[0],
        links=links,
    )


def find_version(n: int) -> int:
    """Return the version of document ``n`` that is stored."""
    return int(n in UPDATED)


def write_store(folder: Path) -> None:
    """Write the golden store into a new folder."""
    store = backend(folder)
    store.run(store.write(WriteBatch(put=[make_record(n, 0) for n in range(100)])))
    store.run(store.flush())
    store.run(store.write(WriteBatch(put=[make_record(n, 1) for n in UPDATED])))
    store.run(store.write(WriteBatch(remove=[f"d{n}" for n in REMOVED])))
    entry = PageEntry(source="s", url="p1", digest="x", ids=("d1", "d2"))
    store.run(store.write(WriteBatch(put_pages=[entry])))
    store.run(store.set_note("floor", "0.5", None))
    store.run(store.touch({"d1": 5}))
    store.close()


def read_answers(store: EmbeddedBackend) -> dict[str, Any]:
    """Return the hits of each search: ids, scores, depths and paths."""
    answers = {}
    for name, strategy in SEARCHES.items():
        hits = store.run(store.answer(strategy.plan(QUESTION)))
        answers[name] = [
            [hit.document.id, round(float(hit.score), 6), hit.depth, str(hit.path)] for hit in hits
        ]
    return answers


def read_schema(dimension: int = DIMENSION) -> str:
    """Return the statements that create the tables of a store ``kb`` in a keyspace ``golden``."""
    from linkstore.engines.cassandra import statements
    from linkstore.engines.cassandra.tables import SCHEMA_VERSION

    tables = statements.Tables("golden", "kb")
    texts = [f"-- schema version {SCHEMA_VERSION}"]
    for expiring in (False, True):
        created = (
            *statements.create_small_tables(expiring=expiring),
            *statements.create_document_tables(dimension, expiring=expiring),
            statements.CREATE_MEMBER_TABLE,
            statements.CREATE_WORD_TABLE,
        )
        texts.append("-- documents expire" if expiring else "-- documents do not expire")
        texts += [f"{tables.name_in(text)};" for text in created]
    return "\n".join(texts) + "\n"


def main() -> None:
    """Write the files of the present formats."""
    from linkstore.engines.cassandra.tables import SCHEMA_VERSION

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "kb"
        write_store(folder)
        with zipfile.ZipFile(STORES / f"format-{FORMAT_VERSION}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.iterdir()):
                if path.suffix in {".db", ".bin"}:
                    archive.write(path, f"kb/{path.name}")
        store = EmbeddedBackend(folder, create=False, settings=SNAPSHOTS)
        answers = read_answers(store)
        store.close()
    (STORES / f"format-{FORMAT_VERSION}.json").write_text(
        json.dumps(answers, ensure_ascii=False).replace("[[", "[\n[").replace("], [", "],\n[") + "\n",
        encoding="utf-8",
    )
    (SCHEMAS / f"schema-{SCHEMA_VERSION}.cql").write_text(read_schema(), encoding="utf-8")


if __name__ == "__main__":
    main()
