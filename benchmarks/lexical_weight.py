"""Which weight of words fits which embedding, chosen by leaving whole sets out; and what an estimate says.

Run: ``python benchmarks/lexical_weight.py --data DIR --cache FOLDER``, where DIR (or LINKSTORE_EVAL_DATA)
holds the folders ``hotpotqa_train``, ``musique_train``, ``ottqa_links``, ``docs_site`` and ``pep_questions``.
FOLDER keeps vectors between runs, because slow embeddings take minutes to hours. ``--embeddings`` names them;
``bge-small:weights.jar`` needs its weights.

For each set: recall at 5 of the default strategy with each weight (PEPs: questions whose page is among the
first 5 hits), the weight that is best on the mean of all other sets, and the one that
``estimate_lexical_weight`` finds without questions.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from _report import add_data, add_output, listed
from _retrieval_sets import ROW_SETS
from _site import unpack_site
from _vector_cache import make_encoder
from page_questions import read_page_questions

from linkstore import LinkStore
from linkstore.embeddings.encoder import Encoder
from linkstore.evaluate import estimate_lexical_weight, read_corpus, read_questions
from linkstore.evaluate.profiling import with_links
from linkstore.ingest import FolderSource, index
from linkstore.strategies import PageRank

WEIGHTS: Final = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
PEPS: Final = "peps"
SETS: Final = (*ROW_SETS, PEPS)
AMONG: Final = 5
Asked = Sequence[tuple[str, frozenset[str]]]


def main() -> None:
    """Measure each set with each embedding, choose weights, print the table."""
    options = _options()
    rows: list[dict[str, Any]] = []
    for name in options.embeddings.split(","):
        encoder, short = make_encoder(name, options.cache), name.partition(":")[0]
        measured: dict[str, tuple[list[float], float]] = {}
        for chosen in options.sets.split(","):
            with tempfile.TemporaryDirectory(prefix="linkstore-weight-") as folder:
                measured[chosen] = _measure(chosen, Path(options.data), Path(folder), encoder)
        rows += list(_rows(short, measured))
    listed("recall at 5 in %", rows, as_json=options.json, record_as=options.record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    parser.add_argument("--embeddings", default="wordllama,minilm", help="default wordllama,minilm")
    parser.add_argument("--sets", default=",".join(SETS), help=f"some of {','.join(SETS)} (default all)")
    parser.add_argument("--cache", metavar="FOLDER", help="keeps vectors between runs")
    add_output(parser)
    return parser.parse_args()


def _measure(name: str, data: Path, folder: Path, encoder: Encoder) -> tuple[list[float], float]:
    """Recall at 5 in % with each weight, and the weight that is estimated."""
    with LinkStore.open(folder / "kb", encoder) as store:
        asked = _fill(store, name, data, folder)
        found = [_recall(store, asked, weight, by_page=name == PEPS) for weight in WEIGHTS]
        return found, estimate_lexical_weight(store).weight


def _fill(store: LinkStore, name: str, data: Path, folder: Path) -> Asked:
    if name == PEPS:
        unpack_site(data, folder / "site")
        index(store, FolderSource(folder / "site" / "html"), name="site")
        return read_page_questions(data)
    rows = ROW_SETS[name](data)
    corpus, questions = rows.write(folder)
    store.add_documents(with_links(read_corpus(corpus), rows.links[0]))
    return [(one.question, frozenset(one.gold)) for one in read_questions(questions)]


def _recall(store: LinkStore, asked: Asked, weight: float, *, by_page: bool) -> float:
    shares = []
    for question, gold in asked:
        hits = store.search(question, strategy=PageRank(k=AMONG, lexical=weight))
        found = {hit.document.metadata["page"] if by_page else hit.document.id for hit in hits}
        shares.append(float(bool(gold & found)) if by_page else len(gold & found) / len(gold))
    return 100 * float(np.mean(shares))


def _rows(embedding: str, measured: dict[str, tuple[list[float], float]]) -> Iterator[dict[str, Any]]:
    for name, (found, estimated) in measured.items():
        others = np.mean([one for other, (one, _) in measured.items() if other != name] or [found], axis=0)
        chosen = int(np.argmax(others))
        yield {
            "set": f"{name}, {embedding}",
            **{f"{weight:g}": share for weight, share in zip(WEIGHTS, found, strict=True)},
            "chosen on the others": WEIGHTS[chosen],
            "with it": found[chosen],
            "estimated": estimated,
        }


if __name__ == "__main__":
    main()
