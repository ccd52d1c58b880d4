"""Which questions a search doubts: a store's own, which should be none, and 500 about something else.

Run: ``python benchmarks/off_subject.py --data DIR [--embedding minilm] [--stores fiqa,gimp] [--record]``,
where DIR (or LINKSTORE_EVAL_DATA) holds ``mtrag_open``, ``hotpotqa_train``, ``musique_train`` and
``ottqa_links``. Each domain of mtrag_open is a store, as is each manual of ``UNSEEN``: Debian packages
(``--packages DIR``), on which nothing was chosen; their own questions are those of hyperdocs.

The questions about something else: 213 everyday ones, and for each store some of those of other stores,
not of another encyclopaedia or another manual. The everyday ones, and vague ones about a manual of a
cloud, were written before the rule that decides was, and without a look at what it says of them.
``curve`` has the shares with other least similarities than that of the embedding.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from _report import add_data, add_output, listed
from _retrieval_sets import ROW_SETS
from _vector_cache import make_encoder
from hyperdocs.manuals import MANUALS, copy_pages, unpack
from hyperdocs.questions import read_questions
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.embeddings.names import LEAST_SIMILARITY
from linkstore.ingest import FolderSource, index

QUESTIONS = Path(__file__).parent / "_off_subject.json"
DOMAINS = ("ibmcloud", "fiqa", "govt", "clapnq")
SETS = ("hotpotqa_train", "musique_train", "ottqa_links")
UNSEEN = ("gimp", "zsh", "scrapy", "apache")
STORES = ("fiqa", "govt", "clapnq", "hotpotqa_train", *UNSEEN)
ENCYCLOPAEDIAS = frozenset({"clapnq", *SETS})
TECHNICAL = frozenset({"ibmcloud", *UNSEEN})
OFF: Final = 500
Margins = npt.NDArray[np.float64]
STEPS: Final = (-0.15, -0.1, -0.05, 0.0, 0.05, 0.1, 0.15)
"""How much more or less than the least similarity of the embedding the curve tries."""


def main() -> None:
    """Fill each store, ask, and print a line for each store and for all together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    parser.add_argument("--embedding", default="wordllama", help="default wordllama")
    parser.add_argument("--stores", default=",".join(STORES), help=f"default {','.join(STORES)}")
    parser.add_argument("--packages", type=Path, help="folder of .deb files; those it lacks are downloaded")
    parser.add_argument("--cache", metavar="FOLDER", help="keeps vectors between runs")
    add_output(parser)
    options = parser.parse_args()
    title = f"Questions that a search doubts, {options.embedding}"
    listed(title, list(_measure(options)), as_json=options.json, record_as=options.record)


def _measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    encoder, names = make_encoder(options.embedding, options.cache), options.stores.split(",")
    written = json.loads(QUESTIONS.read_text())
    everyday = [*written["everyday"], *written["written"]]
    margins: dict[str, list[Margins]] = {"own": [], "others": []}
    with tempfile.TemporaryDirectory(prefix="linkstore-off-subject-") as folder:
        corpora = {name: _read(name, options, Path(folder)) for name in names}
        for name, (content, own) in corpora.items():
            others = [one for other, (_, asked) in corpora.items() if _differ(name, other) for one in asked]
            random.Random(7).shuffle(others)
            with LinkStore.open(":memory:", encoder) as store:
                if isinstance(content, Path):
                    index(store, FolderSource(content), name=name)
                else:
                    store.add_documents(content)
                for sort, questions in {"own": own, "others": [*everyday, *others][:OFF]}.items():
                    margins[sort].append(_find_margins(store, encoder.name, questions))
                documents = len(list(store.scan()))
            latest = {sort: rows[-1:] for sort, rows in margins.items()}
            yield {"store": f"{name}, {options.embedding}", "documents": documents, **_count(**latest)}
    yield {"store": f"all, {options.embedding}", "documents": 0, **_count(**margins)}


def _read(name: str, options: argparse.Namespace, folder: Path) -> tuple[Path | list[Document], list[str]]:
    """Return the documents of a store, or the folder of its pages, and its own questions."""
    if name in UNSEEN:
        manual = next(manual for manual in MANUALS if manual.name == name)
        root = unpack(manual, options.packages or folder / "packages", folder / "unpacked")
        asked = [question.question for question in read_questions(manual, root)]
        return copy_pages(manual, root, folder / name), asked
    data = Path(options.data)
    if name in SETS:
        rows = ROW_SETS[name](data)
        return [_make(row) for row in rows.corpus], [row["question"] for row in rows.questions]
    tasks = _read_lines(data / "mtrag_open" / "tasks.jsonl")
    asked = [task["last"] for task in tasks if task["domain"] == name and task["gold"]]
    corpus = _read_lines(data / "mtrag_open" / "corpus.jsonl")
    documents = [_make(row) for row in corpus if row["domain"] == name]
    return documents, asked or json.loads(QUESTIONS.read_text())["vague"]


def _differ(name: str, other: str) -> bool:
    """Say whether the questions of another store are about something else than this one."""
    return name != other and not any({name, other} <= alike for alike in (ENCYCLOPAEDIAS, TECHNICAL))


def _find_margins(store: LinkStore, embedding: str, questions: Sequence[str]) -> Margins:
    """Return the least step of :data:`STEPS` by which each question is doubted, infinity if none does it."""
    least, margins = LEAST_SIMILARITY[embedding], np.full(len(questions), np.inf)
    for step in sorted(STEPS, reverse=True):
        with patch.dict(LEAST_SIMILARITY, {embedding: least + step}):
            for row, question in enumerate(questions):
                if store.search(question).doubt is not None:
                    margins[row] = step
    return margins


def _count(own: Sequence[Margins], others: Sequence[Margins]) -> dict[str, Any]:
    """Return the shares in % of doubted own questions and undoubted others, and both by least similarity."""
    true, false = np.concatenate(own), np.concatenate(others)
    return {
        "own": len(true),
        "doubted, %": 100 * float((true <= 0).mean()),
        "others": len(false),
        "undoubted, %": 100 * float((false > 0).mean()),
        "curve": [[100 * float((true <= step).mean()), 100 * float((false > step).mean())] for step in STEPS],
    }


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _make(row: dict[str, Any]) -> Document:
    metadata = {"title": row["title"]} if row.get("title") else {}
    return Document(id=row["id"], page_content=row["text"], metadata=metadata)


if __name__ == "__main__":
    main()
