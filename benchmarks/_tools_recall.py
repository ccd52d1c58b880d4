"""Recall of the tool ``search`` by the number of links that it may follow, and of ``AllPaths`` alone."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _retrieval_sets import ROW_SETS

from linkstore import LinkStore
from linkstore.agents import graph_tools
from linkstore.evaluate import read_corpus, read_questions, with_links
from linkstore.strategies import AllPaths

SETS = ("hotpotqa_train", "musique_train")
CUTS = (2, 5, 8)
HOPS = range(4)


def recall(data: Path) -> list[dict[str, Any]]:
    """A row for each number of hops, in % of the gold documents among the first 2, 5 and 8 results."""
    found = {name: dict(_of_set(name, data)) for name in SETS}
    return [{"search": way, **{name: rows[way] for name, rows in found.items()}} for way in found[SETS[0]]]


def _of_set(name: str, data: Path) -> Iterator[tuple[str, list[float]]]:
    with tempfile.TemporaryDirectory() as folder, LinkStore() as store:
        rows = ROW_SETS[name](data)
        corpus, asked = rows.write(Path(folder))
        store.add_documents(with_links(read_corpus(corpus), rows.links[0]))
        questions = read_questions(asked)
        tool: Any = next(tool for tool in graph_tools(store) if tool.name == "search")

        def by_tool(hops: int) -> Callable[[str], Sequence[str]]:
            return lambda text: [one["id"] for one in tool.func(question=text, hops=hops)[1]["results"]]

        def by_paths(text: str) -> Sequence[str]:
            hits = store.search(text, strategy=AllPaths(k=max(CUTS), depth=2))
            return [str(hit.document.id) for hit in hits]

        ways = {f"hops {hops}": by_tool(hops) for hops in HOPS} | {"AllPaths, depth 2": by_paths}
        for way, ask in ways.items():
            ranked = [(set(one.gold), ask(one.question)) for one in questions]
            yield (
                way,
                [
                    100 * float(np.mean([len(gold & {*ids[:cut]}) / len(gold) for gold, ids in ranked]))
                    for cut in CUTS
                ],
            )
