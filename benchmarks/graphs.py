"""Questions whose answer is where two typed relations meet, asked of similarity, the tool, and a peer.

Run: ``python benchmarks/graphs.py [--graph-seed 7] [--graphs drugs,laws]``. ``_graph_worlds.py`` makes the
    graphs: drugs, laws and packages, each with 200 questions in five wordings. Another file with a dict
    ``WORLDS`` of functions from a seed to a :class:`World` is measured with ``--worlds FILE``. In %: the
    first result is right; of the right documents, those among the 8 results; and how many documents a
    question are wrongly said to be where relations meet. Contenders: similarity; ``search`` of an agent's
    tools with a model that only passes on the question; the same with types filled in;
    langchain-graph-retriever (its Eager strategy, the same embedding). ``--by-wording`` shows each wording
    apart.
"""

from __future__ import annotations

import argparse
import importlib.util
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import _graph_worlds
from _graph_worlds import GraphQuestion, World
from _report import add_output, listed

from linkstore import LinkStore
from linkstore.agents import graph_tools
from linkstore.embeddings import get_embedding
from linkstore.strategies import Similarity

RESULTS = 8
Answer = tuple[Sequence[str], Sequence[str]]
"""The ids of the results, and of the documents where relations are said to meet."""
Contender = Callable[[GraphQuestion], Answer]


def main() -> None:
    """Fill a store with each graph, ask all contenders, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--graph-seed", type=int, default=0, help="makes other graphs (default 0)")
    parser.add_argument("--graphs", help="some of them, by name (default all)")
    parser.add_argument("--worlds", metavar="FILE", help="take the graphs from this file")
    parser.add_argument("--embedding", default="wordllama", help="default wordllama")
    parser.add_argument("--by-wording", action="store_true", help="a row for each wording")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N wrong answers")
    add_output(parser)
    options = parser.parse_args()
    makers = _load(options.worlds) if options.worlds else _graph_worlds.WORLDS
    names = options.graphs.split(",") if options.graphs else list(makers)
    rows = [row for name in names for row in _measure(makers[name](options.graph_seed), options)]
    listed(f"graphs, seed {options.graph_seed}", rows, as_json=options.json, record_as=options.record)


def _load(path: str) -> Mapping[str, Callable[[int], World]]:
    spec = importlib.util.spec_from_file_location("worlds", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.WORLDS  # type: ignore[no-any-return]


def _measure(world: World, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with LinkStore.open(":memory:", get_embedding(options.embedding)) as store:
        store.schema.set(world.schema)
        store.add_documents(list(world.documents))
        for name, contender in _contenders(store, world).items():
            answers = [(one, *contender(one)) for one in world.questions]
            groups = {"": answers}
            if options.by_wording:
                groups |= {
                    word: [one for one in answers if one[0].wording == word]
                    for word in _graph_worlds.WORDINGS
                }
            for wording, some in groups.items():
                yield {"graph, asked of": f"{world.name}, {name} {wording}".strip(), **_score(some)}
            for question, ids, claimed in (
                answers[:: max(1, len(answers) // 200)] if name.startswith("tool") else ()
            ):
                wrong = set(claimed) - question.gold
                if options.show and (ids[:1] == [] or ids[0] not in question.gold or wrong):
                    options.show -= 1
                    print(
                        f"{name}: {question.text}\n  gold {sorted(question.gold)}\n  found {ids} claimed"
                        f" {claimed}"
                    )


def _score(answers: Sequence[tuple[GraphQuestion, Sequence[str], Sequence[str]]]) -> dict[str, float]:
    count = len(answers)
    return {
        "first right": round(
            100 * sum(ids[:1] != [] and ids[0] in one.gold for one, ids, _ in answers) / count, 1
        ),
        "right among results": round(
            100 * sum(len(one.gold & set(ids)) / len(one.gold) for one, ids, _ in answers) / count, 1
        ),
        "wrongly claimed": round(sum(len(set(claimed) - one.gold) for one, _, claimed in answers) / count, 3),
    }


def _contenders(store: LinkStore, world: World) -> dict[str, Contender]:
    found: dict[str, Contender] = {"similarity": _by_similarity(store)}
    tool: Any = next(one for one in graph_tools(store) if one.name == "search")
    found["tool, question alone"] = _by_tool(tool, {})
    if "start_type" in tool.args:
        filled = {"start_type": world.start_type, "result_type": world.result_type, "where": world.where}
        found["tool, types filled"] = _by_tool(tool, filled)
    try:
        found["langchain-graph-retriever"] = _by_peer(store, world)
    except ImportError:
        print("langchain-graph-retriever is not installed")
    return found


def _by_similarity(store: LinkStore) -> Contender:
    def ask(question: GraphQuestion) -> Answer:
        hits = store.search(question.text, strategy=Similarity(k=RESULTS))
        return [str(hit.document.id) for hit in hits], []

    return ask


def _by_tool(tool: Any, arguments: Mapping[str, Any]) -> Contender:
    def ask(question: GraphQuestion) -> Answer:
        call = {
            "name": tool.name,
            "args": {"question": question.text, **arguments},
            "id": "1",
            "type": "tool_call",
        }
        message = tool.invoke(call)
        assert message.status == "success", message.content
        results = message.artifact["results"]
        claimed = [one["id"] for one in results if sum(chain["independent"] for chain in one["chains"]) > 1]
        return [one["id"] for one in results][:RESULTS], [*claimed, *message.artifact.get("meeting", ())]

    return ask


def _by_peer(store: LinkStore, world: World) -> Contender:
    """Ask the peer, for which links are metadata: ids under the name of their kind, and edges from these to"
    " ids."""
    warnings.simplefilter("ignore")
    from graph_retriever.strategies import Eager
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_graph_retriever import GraphRetriever

    other = InMemoryVectorStore(store.embeddings)
    documents = []
    for one in world.documents:
        links = one.metadata["links"]
        pointed: dict[str, list[str]] = {}
        for link in links:
            if link["direction"] == "out":
                pointed.setdefault(link["kind"], []).append(link["tag"])
        documents.append(
            Document(id=one.id, page_content=one.page_content, metadata={"id": one.id, **pointed})
        )
    other.add_documents(documents)
    edges = [(kind, "id") for kind in sorted(world.schema.kinds)]
    retriever = GraphRetriever(
        store=other, edges=edges, strategy=Eager(k=RESULTS, start_k=4, adjacent_k=10, max_depth=3)
    )

    def ask(question: GraphQuestion) -> Answer:
        return [str(one.id) for one in retriever.invoke(question.text)], []

    return ask


if __name__ == "__main__":
    main()
