"""What a large store costs in recall: sets of questions among 90,000 documents that answer none of them.

Run: ``python benchmarks/among.py --data DIR``. One store has the passages of hotpotqa_train, musique_train
and ottqa_links, whole, and a site of Python's PEPs in pieces of at most 200 characters. Each set's questions
are asked of its own passages alone, as in ``retrieval.py``, and of that store: compared with every document,
and through the index. Most of the store is about other subjects than the questions.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from _report import add_data, add_output, listed
from _retrieval_cost import SMALL_PIECES
from _retrieval_sets import ROW_SETS, RowSet
from _site import unpack_site
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.engines.embedded import EmbeddedSettings
from linkstore.evaluate import GoldQuestion, evaluate, read_corpus, read_questions
from linkstore.evaluate.metrics import make_strategies
from linkstore.evaluate.profiling import with_links
from linkstore.ingest import FolderSource, index

CUTS: Final = (2, 5, 20)
STRATEGIES: Final = ("pagerank", "similarity", "eager")
ASK_SAME: Final = {"single_hop": "musique_train"}
"""Sets that have the passages of another one."""
_NO_INDEX: Final = EmbeddedSettings(exact_below=1_000_000)


def main() -> None:
    """Make the stores, ask the questions, print a table."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="linkstore-among-") as folder:
        rows = _measured(Path(options.data), Path(folder))
    listed("recall in %", rows, as_json=options.json, record_as=options.record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    add_output(parser)
    return parser.parse_args()


def _measured(data: Path, folder: Path) -> list[dict[str, Any]]:
    sets = [_named(make(data)) for make in ROW_SETS.values()]
    files = {one.name: one.write(folder) for one in sets}
    corpora = {one.name: with_links(read_corpus(files[one.name][0]), one.links[0]) for one in sets}
    rows: dict[str, dict[str, Any]] = {one.name: {"set": one.name} for one in sets}
    for name, row in rows.items():
        with LinkStore.open(":memory:") as store:
            store.add_documents(corpora[name])
            row |= _recalls("alone", store, read_questions(files[name][1]))
    _fill(folder / "kb", data, [corpora[name] for name in corpora if name not in ASK_SAME])
    for way, settings in (("exact", _NO_INDEX), ("index", None)):  # opening makes the index if it is due
        with LinkStore.open(folder / "kb", create=False, settings=settings) as store:
            for name, row in rows.items():
                row |= _recalls(way, store, read_questions(files[name][1]))
                row["documents"] = store.survey().documents
    return list(rows.values())


def _fill(place: Path, data: Path, corpora: Sequence[list[Document]]) -> None:
    with tempfile.TemporaryDirectory() as site, LinkStore.open(place, settings=_NO_INDEX) as store:
        unpack_site(data, Path(site))
        index(store, FolderSource(Path(site), limits=SMALL_PIECES))
        for documents in corpora:
            store.add_documents(documents)


def _named(one: RowSet) -> RowSet:
    """The set with ids that are unique among all sets."""
    owner = ASK_SAME.get(one.name, one.name)
    corpus = [{**row, "id": f"{owner}/{row['id']}"} for row in one.corpus]
    asked = [{**row, "gold": [f"{owner}/{id}" for id in row["gold"]]} for row in one.questions]
    return replace(one, corpus=corpus, questions=asked)


def _recalls(way: str, store: LinkStore, questions: Sequence[GoldQuestion]) -> dict[str, list[float]]:
    """For each strategy its recall in %."""
    found: Mapping[str, Any] = evaluate(store, questions, make_strategies(STRATEGIES)).to_dict()
    return {
        f"{name}, {way}": [100 * values[f"recall@{k}"] for k in CUTS]
        for name, values in found["strategies"].items()
    }


if __name__ == "__main__":
    main()
