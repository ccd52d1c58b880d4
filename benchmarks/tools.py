"""How long the tools of an agent take, on a store of many documents.

Run: ``python benchmarks/tools.py --documents 100000``. The documents are those of ``growth.py``: clustered
vectors, keywords, hyperlinks; vectors are given, so embedding a question costs nothing. Each tool is called
once for each question. ``--cassandra`` keeps the documents on a Cassandra server of its own (Java 17 and
Maven are needed). Times of CPU are of this process alone; other programs disturb them less than the clock.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

from _growth_data import QUESTIONS, GivenVectors, GrowthData, make
from _report import add_output, listed, milliseconds
from _retrieval_stores import Stores

from linkstore import LinkStore
from linkstore.agents import graph_tools

WARM = 10
"""Calls before the first that counts."""
BATCH = 10_000


def main() -> None:
    """Fill a store, call the tools, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000, help="how many (default 100,000)")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help=f"default {QUESTIONS}")
    parser.add_argument("--cassandra", action="store_true", help="on a Cassandra server instead of embedded")
    add_output(parser)
    options = parser.parse_args()
    data = make(options.documents)
    with (
        Stores(cassandra=options.cassandra, folders=True) as stores,
        stores.opened(GivenVectors(data)) as store,
    ):
        for _, batch in data.batches(BATCH):
            store.add_documents(batch)
        store.backend.run(store.backend.flush())
        rows = list(_measured(store, data, options.questions))
    engine = "Cassandra" if options.cassandra else "embedded"
    name = options.record and f"{options.record}{'-cassandra' if options.cassandra else ''}"
    listed(f"tools, {options.documents:,} documents, {engine}", rows, as_json=options.json, record_as=name)


def _measured(store: LinkStore, data: GrowthData, questions: int) -> Iterator[dict[str, Any]]:
    ids = [str(n * len(data) // QUESTIONS) for n in range(QUESTIONS)]
    calls: dict[str, Callable[[int], dict[str, Any]]] = {
        "search": lambda n: {"question": f"question {n}"},
        "match": lambda n: {"branches": [{"start": ids[n], "path": ["hyperlink"]}]},
        "match, 3 links": lambda n: {"branches": [{"start": ids[n], "path": ["hyperlink{1,3}"]}]},
        "follow": lambda n: {"id": ids[n], "kinds": ["hyperlink"]},
        "follow, all kinds both ways": lambda n: {"id": ids[n], "direction": "both"},
        "read": lambda n: {"id": ids[n]},
        "schema": lambda _: {},
    }
    names = list(dict.fromkeys(name.split(",")[0] for name in calls))
    tools = {tool.name: tool for tool in graph_tools(store, only=names)}
    for name, arguments in calls.items():
        tool = tools[name.split(",")[0]]
        seconds, cpu = [], []
        for n in [*range(WARM), *range(questions)]:
            given = arguments(n % QUESTIONS)
            start, used = time.perf_counter(), time.process_time()
            tool.invoke(given)
            seconds.append(time.perf_counter() - start)
            cpu.append(time.process_time() - used)
        yield {
            "tool": name,
            "p50 ms": milliseconds(seconds[WARM:]),
            "p99 ms": milliseconds(seconds[WARM:], 99),
            "CPU p50 ms": milliseconds(cpu[WARM:]),
            "CPU p99 ms": milliseconds(cpu[WARM:], 99),
        }


if __name__ == "__main__":
    main()
