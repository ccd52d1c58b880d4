"""Plain questions on a documentation site, each answered by one page: what share finds the page.

Run: ``python benchmarks/page_questions.py --data DIR``, where DIR (or LINKSTORE_EVAL_DATA) holds
``docs_site/peps_html.tar.xz`` and ``pep_questions/questions.json``. The site is indexed as by
``linkstore index``. For each strategy: the share of questions whose page is among the first 1, 5 and 10 hits,
and among the first 1, 5 and 10 distinct pages of its hits.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from _report import add_data, add_output, listed
from _site import unpack_site
from _vector_cache import make_encoder

from linkstore import LinkStore
from linkstore.ingest import FolderSource, index
from linkstore.strategies import Eager, PageRank, Similarity, Strategy, Words, pagerank

DEPTH: Final = 200
"""So many hits are looked at for ten distinct pages."""
AMONG: Final = (1, 5, 10)
CONTENDERS: Final[Mapping[str, Strategy]] = {
    "dense": Similarity(),
    "BM25": Words(),
    "dense+BM25": PageRank(depth=0),
    "first stage with pages, no walk": PageRank(),
    "default without pages": PageRank(),
    "Eager": Eager(),
    "default": PageRank(),
}
CONSTANTS: Final[Mapping[str, Mapping[str, float]]] = {
    "first stage with pages, no walk": {"DAMPING": 0.0},
    "default without pages": {"PAGE_WEIGHT": 0.0, "PAGE_FADE": 1.0},
}
"""Constants of PageRank that a contender has otherwise."""
Asked = Sequence[tuple[str, frozenset[str]]]


def main() -> None:
    """Index the site, ask every contender, print the table."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="linkstore-pages-") as folder:
        site = Path(folder) / "site"
        unpack_site(options.data, site)
        with LinkStore.open(Path(folder) / "kb", make_encoder(options.embedding, options.cache)) as store:
            index(store, FolderSource(site / "html"), name="site")
            asked = read_page_questions(Path(options.data))
            rows = [_row(name, store, one, asked) for name, one in CONTENDERS.items()]
    listed(
        f"{len(asked)} questions, {options.embedding}: % found",
        rows,
        as_json=options.json,
        record_as=options.record,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    parser.add_argument("--embedding", default="wordllama", help="default wordllama")
    parser.add_argument("--cache", metavar="FOLDER", help="keeps vectors between runs")
    add_output(parser)
    return parser.parse_args()


def read_page_questions(data: Path) -> Asked:
    """The questions, each with the pages that answer it."""
    rows = json.loads((data / "pep_questions" / "questions.json").read_text())
    return [(row["question"], frozenset(row["gold"])) for row in rows]


def _row(name: str, store: LinkStore, strategy: Strategy, asked: Asked) -> dict[str, Any]:
    with patch.multiple(pagerank, **CONSTANTS.get(name, {})):
        ranks = [_ranks(store, strategy.with_k(DEPTH), *one) for one in asked]
    shares = [
        [100 * sum(rank[of] < among for rank in ranks) / len(ranks) for among in AMONG] for of in (0, 1)
    ]
    return {"strategy": name, "hits": shares[0], "pages": shares[1]}


def _ranks(store: LinkStore, strategy: Strategy, question: str, gold: frozenset[str]) -> tuple[int, int]:
    """The place of the first gold page among the hits, and among their distinct pages."""
    pages = [hit.document.metadata["page"] for hit in store.search(question, strategy=strategy)]
    return tuple(
        next((place for place, page in enumerate(some) if page in gold), DEPTH)
        for some in (pages, list(dict.fromkeys(pages)))
    )  # type: ignore[return-value]


if __name__ == "__main__":
    main()
