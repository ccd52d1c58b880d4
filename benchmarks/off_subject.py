"""How many questions a search doubts by default: a store's own, which should be none, and others.

None of them should find nothing. The others are everyday questions, and every fourth question of each other
store.

Run: ``python benchmarks/off_subject.py --data DIR [--embedding minilm] [--json]``, where DIR (or
LINKSTORE_EVAL_DATA) holds ``mtrag_open``, ``hotpotqa_train``, ``musique_train`` and ``ottqa_links``. Each
domain of mtrag_open is a store. The everyday questions, and vague ones about a manual of a cloud, were
written before the rule that decides was, and without a look at what it says of them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from _report import add_data, add_output, listed
from _retrieval_sets import ROW_SETS
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.embeddings import get_embedding

QUESTIONS = Path(__file__).parent / "_off_subject.json"
DOMAINS = ("ibmcloud", "fiqa", "govt", "clapnq")
SETS = ("hotpotqa_train", "musique_train", "ottqa_links")
Store = tuple[str, list[Document], dict[str, list[str]]]
"""Name, documents, and its own questions by what they are."""


def main() -> None:
    """Fill each store, ask, and print a line for each sort of questions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    parser.add_argument("--embedding", default="wordllama", help="default wordllama")
    parser.add_argument("--stores", default=",".join((*DOMAINS, *SETS)), help="default all")
    add_output(parser)
    options = parser.parse_args()
    rows = list(_measure(options))
    title = f"Questions that a search doubts, {options.embedding}"
    listed(title, rows, as_json=options.json, record_as=options.record)


def _measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    written = json.loads(QUESTIONS.read_text())
    stores = list(_read_stores(Path(options.data), options.stores.split(","), written))
    for name, documents, own in stores:
        others = [one for other, _, asked in stores if other != name for one in asked.get("own", ())[::4]]
        with LinkStore.open(":memory:", get_embedding(options.embedding)) as store:
            store.add_documents(documents)
            for sort, questions in {**own, "everyday": written["everyday"], "others": others}.items():
                results = [store.search(one) for one in questions]
                yield {
                    "store, questions": f"{name}, {sort}, {options.embedding}",
                    "documents": len(documents),
                    "asked": len(questions),
                    "nothing found": sum(not hits for hits in results),
                    "doubted": sum(hits.doubt is not None for hits in results),
                    "weak": sum(hits.match.startswith("weak") for hits in results),
                }


def _read_stores(data: Path, names: Iterable[str], written: dict[str, list[str]]) -> Iterator[Store]:
    for name in names:
        if name in DOMAINS:
            rows = _read_lines(data / "mtrag_open" / "corpus.jsonl")
            asked = [
                one["last"]
                for one in _read_lines(data / "mtrag_open" / "tasks.jsonl")
                if one["domain"] == name and one["gold"]
            ]
            own = {"own": asked} if asked else {}
            own |= {"vague": written["vague"]} if name == "ibmcloud" else {}
            yield name, [_make(one) for one in rows if one["domain"] == name], own
        else:
            found = ROW_SETS[name](data)
            yield (
                name,
                [_make(one) for one in found.corpus],
                {"own": [one["question"] for one in found.questions]},
            )


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _make(row: dict[str, Any]) -> Document:
    metadata = {"title": row["title"]} if row.get("title") else {}
    return Document(id=row["id"], page_content=row["text"], metadata=metadata)


if __name__ == "__main__":
    main()
