"""How precise mentions and entities are, and how fast they are found.

Run: ``python benchmarks/linking.py --data DIR [--json]``, where DIR (or LINKSTORE_EVAL_DATA) holds
``hotpotqa_train`` and ``musique_train``. Precision is the share of the pairs of documents joined that are
both gold of one question; speed is CPU time on one core, over the texts of each set ``--repeat`` times.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from _report import add_data, add_output, listed, record
from langchain_core.documents import Document

from linkstore.extract.protocol import UpkeepExtractor
from linkstore_extractors.entities import EntityExtractor
from linkstore_extractors.mentions import MentionExtractor

SETS = ("hotpotqa_train", "musique_train")
Pairs = set[tuple[int, int]]


def main() -> None:
    """Link each set with each extractor, and print a line for each."""
    options = _options()
    rows = [row for name in SETS for row in _measured(name, options.data / name, options.repeat)]
    listed("Mentions and entities", rows, as_json=options.json)
    record(options.record, {f"{row['set']}, {row['kind']}": row for row in rows})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    parser.add_argument("--repeat", type=int, default=3, help="runs; the fastest counts (default 3)")
    add_output(parser)
    options = parser.parse_args()
    options.data = Path(options.data)
    return options


def _measured(name: str, folder: Path, repeat: int) -> Iterator[dict[str, Any]]:
    documents, gold = _read(name, folder)
    megabytes = sum(len(one.page_content.encode()) for one in documents) / 1e6
    mentioned: Pairs = set()
    for kind, make in (("mention", MentionExtractor), ("entity", EntityExtractor)):
        extractor: UpkeepExtractor = make()
        observing = _fastest(repeat, lambda make=make: make().observe(documents))
        extractor.observe(documents)
        extracting = _fastest(repeat, lambda one=extractor: [one.extract(document) for document in documents])
        joined = _joined(extractor, documents)
        new = joined - mentioned
        mentioned |= joined
        yield {
            "set": name,
            "kind": kind,
            "pairs": len(joined),
            "precision %": 100 * len(joined & gold) / len(joined),
            "not joined before": len(new),
            "their precision %": 100 * len(new & gold) / len(new),
            "observe MB/s": megabytes / observing,
            "extract MB/s": megabytes / extracting,
            "both, s per 10,000": 1e4 * (observing + extracting) / len(documents),
        }


def _read(name: str, folder: Path) -> tuple[list[Document], Pairs]:
    corpus = json.loads((folder / f"{name}_corpus.json").read_text())
    rows = corpus.items() if isinstance(corpus, dict) else [(row["title"], row["text"]) for row in corpus]
    passages = [(title, text if isinstance(text, str) else " ".join(text)) for title, text in rows]
    numbers: dict[Any, set[int]] = defaultdict(set)
    for number, (title, text) in enumerate(passages):
        numbers[title].add(number)
        numbers[title, text].add(number)
    questions = json.loads((folder / f"{name}.json").read_text())
    gold = {
        pair
        for question in questions
        for pair in combinations(sorted({n for key in _gold(question) for n in numbers[key]}), 2)
    }
    documents = [
        Document(id=str(number), page_content=text, metadata={"title": title})
        for number, (title, text) in enumerate(passages)
    ]
    return documents, gold


def _gold(question: dict[str, Any]) -> Iterable[Any]:
    """The passages a question needs: by title, or by title and text where titles repeat."""
    if "supporting_facts" in question:
        return {title for title, _ in question["supporting_facts"]}
    return {(one["title"], one["paragraph_text"]) for one in question["paragraphs"] if one["is_supporting"]}


def _joined(extractor: UpkeepExtractor, documents: Sequence[Document]) -> Pairs:
    leaving: dict[str, set[int]] = defaultdict(set)
    arriving: dict[str, set[int]] = defaultdict(set)
    for number, document in enumerate(documents):
        for link in extractor.extract(document):
            if link.leads_out:
                leaving[link.tag].add(number)
            if link.leads_in:
                arriving[link.tag].add(number)
    return {
        (min(one, other), max(one, other))
        for tag, sources in leaving.items()
        for one in sources
        for other in arriving[tag]
        if one != other
    }


def _fastest(repeat: int, work: Callable[[], object]) -> float:
    taken = []
    for _ in range(repeat):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


if __name__ == "__main__":
    main()
