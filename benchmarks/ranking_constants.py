"""Choose constants of PageRank with whole sets left out: what others would choose, and what it gives.

Run: ``python benchmarks/ranking_constants.py --data DIR --try NAMED_WEIGHT=1,1.5,2 --try
BACKWARD=0.1,0.15,0.25``, where DIR (or LINKSTORE_EVAL_DATA) holds the sets of ``retrieval.py`` and
``page_questions.py``; all combinations of the values are compared, as constants of
``linkstore.strategies.pagerank``. ``hyperdocs/MANUAL`` names one of hyperdocs' open manuals, whose
packages are downloaded (``--packages DIR``), without the sections of its questions.

A set's figure is the mean of R@2, R@5 and R@10; of questions that one page answers, the share with this
page among the first 1, 5 and 10 hits and distinct pages. For each set: with the present constants, with
the combination that is best on the mean of all other sets, and with the one that is best on the mean of
all.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from _report import add_data, add_output, listed
from _retrieval_sets import ROW_SETS
from _site import unpack_site
from _vector_cache import make_encoder
from hyperdocs.manuals import MANUALS, copy_pages, unpack
from hyperdocs.questions import read_questions
from measure_hyperdocs import Sections
from page_questions import read_page_questions

from linkstore import LinkStore
from linkstore.cli.demo import DEMO_LINKS, site
from linkstore.evaluate import read_corpus
from linkstore.evaluate.profiling import with_links
from linkstore.ingest import FolderSource, index
from linkstore.strategies import PageRank, pagerank

PAGES: Final = ("peps", "sqlite")
MANUAL: Final = "hyperdocs/"
SETS: Final = (*ROW_SETS, *PAGES, "hyperdocs/git", "hyperdocs/postgresql")
AMONG: Final[Mapping[bool, Sequence[int]]] = {False: (2, 5, 10), True: (1, 5, 10)}
DEPTH: Final = 100
Asked = Sequence[tuple[str, Sequence[frozenset[str]]]]
"""Questions, with the documents of each gold section, or the pages that serve as one."""
Constants = tuple[tuple[str, float], ...]


def main() -> None:
    """Measure all combinations on all sets, and print what would be chosen without each set."""
    options = _options()
    tried: list[Constants] = [(), *_combine(options.constants)]
    measured = {name: _measure(name, tried, options) for name in options.sets.split(",")}
    listed(
        "constants with sets left out",
        list(_rows(measured, tried)),
        as_json=options.json,
        record_as=options.record,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    parser.add_argument("--try", dest="constants", action="append", required=True, metavar="NAME=VALUE,…")
    parser.add_argument("--sets", default=",".join(SETS), help=f"some of {','.join(SETS)} (default all)")
    parser.add_argument("--embedding", default="wordllama", help="default wordllama")
    parser.add_argument("--packages", type=Path, help="folder of .deb files; those it lacks are downloaded")
    parser.add_argument("--cache", metavar="FOLDER", help="keeps vectors between runs")
    add_output(parser)
    return parser.parse_args()


def _combine(constants: Sequence[str]) -> Iterator[Constants]:
    values = {
        name: map(float, some.split(",")) for name, _, some in (one.partition("=") for one in constants)
    }
    for chosen in itertools.product(*values.values()):
        yield tuple(zip(values, chosen, strict=True))


def _measure(name: str, tried: Sequence[Constants], options: argparse.Namespace) -> list[float]:
    """Return the figure in % of a set with each combination."""
    encoder, figures = make_encoder(options.embedding, options.cache), []
    with tempfile.TemporaryDirectory() as folder, LinkStore.open(":memory:", encoder) as store:
        asked = _fill(store, name, options, Path(folder))
        for constants in tried:
            with patch.multiple(pagerank, **dict(constants)):
                shares = [_ask(store, *one, by_page=name in PAGES) for one in asked]
            figures.append(100 * float(np.mean(shares)))
    return figures


def _fill(store: LinkStore, name: str, options: argparse.Namespace, folder: Path) -> Asked:
    if name.startswith(MANUAL):
        return _fill_manual(store, name.removeprefix(MANUAL), options.packages or folder / "packages", folder)
    if name == "sqlite":
        with site("sqlite") as pages:
            index(store, FolderSource(pages), links=DEMO_LINKS)
        rows = json.loads((Path(__file__).parent / "_demo_questions.json").read_text())
        return [(row["question"], [frozenset(some) for some in row["pages"]]) for row in rows]
    if name == "peps":
        unpack_site(options.data, folder / "site")
        index(store, FolderSource(folder / "site" / "html"), name=name)
        return [(question, [gold]) for question, gold in read_page_questions(Path(options.data))]
    rows = ROW_SETS[name](Path(options.data))
    store.add_documents(with_links(read_corpus(rows.write(folder)[0]), rows.links[0]))
    return [(row["question"], [frozenset([id]) for id in row["gold"]]) for row in rows.questions]


def _fill_manual(store: LinkStore, name: str, packages: Path, folder: Path) -> Asked:
    manual = next(manual for manual in MANUALS if manual.name == name)
    if manual.split != "open":
        raise SystemExit(f"{name} is for measuring only; choose on the open ones")
    root = unpack(manual, packages, folder / "unpacked")
    questions = [question for question in read_questions(manual, root) if question.rule != "heading"]
    index(store, FolderSource(copy_pages(manual, root, folder / "pages")), name=name)
    sections = Sections(list(store.scan()))
    store.delete(sorted(frozenset[str]().union(*map(sections.find_own, questions))))
    sections = Sections(list(store.scan()))
    return [(one.question, units) for one in questions if (units := sections.find_units(one)) is not None]


def _ask(store: LinkStore, question: str, gold: Sequence[frozenset[str]], *, by_page: bool) -> float:
    hits = store.search(question, strategy=PageRank(k=DEPTH))
    ranked = [hit.document.metadata["page"] if by_page else str(hit.document.id) for hit in hits]
    lists = (ranked, list(dict.fromkeys(ranked))) if by_page else (ranked,)
    return float(
        np.mean([[[bool(some & set(one[:k])) for some in gold] for k in AMONG[by_page]] for one in lists])
    )


def _rows(measured: Mapping[str, Sequence[float]], tried: Sequence[Constants]) -> Iterator[dict[str, Any]]:
    best = int(np.argmax(np.mean(list(measured.values()), axis=0)))
    for name, figures in measured.items():
        others = [some for other, some in measured.items() if other != name] or [figures]
        chosen = int(np.argmax(np.mean(others, axis=0)))
        yield {
            "set": name,
            "present": figures[0],
            "chosen without it": ", ".join(f"{constant} {value:g}" for constant, value in tried[chosen]),
            "gives": figures[chosen],
            "chosen on all": ", ".join(f"{constant} {value:g}" for constant, value in tried[best]),
            "with these": figures[best],
        }


if __name__ == "__main__":
    main()
