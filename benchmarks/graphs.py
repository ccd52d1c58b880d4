"""Questions over typed graphs: queries written by hand, the default search, the tool, and a peer.

Run: ``python benchmarks/graphs.py --data DIR [--graph-seed 5] [--graphs org,oss]``. Each Python file of DIR
    that makes a ``Dom`` is a graph with questions; its argument is the seed. The benchmark gives it ``Dom``::

        from dom import Dom

        d = Dom("harbour", "ships and ports", ["Ship", "Flag"], [("FLIES", "Ship", "Flag")])
        d.node("Flag", "f1", "Malvania.", title="Malvania")
        d.node("Ship", "s1", "A tanker.", [("FLIES", "f1")], name="MV Aurora")
        d.q("one relation", "Which flag does the Aurora fly?", {"f1"}, query={"branches": [...]})
        d.run()

    A question has a category, its words, the ids of all right documents (none: nothing is right) and, if
    somebody wrote it, a query as JSON. In %: the first result is right; of the right documents, those among
    the first 8. And how many results a question are claimed wrongly: of a query, all that are not right; a
    search claims nothing. Contenders: the queries; the default search, with and without the names in the
    question; the tool ``search`` with the type of the results; langchain-graph-retriever (its Eager strategy,
    the same embedding), if it is installed.
    With ``--model openai:NAME --base-url URL``, a model writes the queries instead, for at most ``--most``
    questions of each graph, of each category in turn: how many lead to just the right documents, and of these
    at the first try; how many lead to a wrong one; how many have no answer; calls and tokens a question.
    ``--by-category`` shows each category apart, ``--show N`` the first wrong answers.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from _report import add_data, add_output, listed
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.agents import ask_graph, graph_tools
from linkstore.agents.chat_models import chat_model
from linkstore.embeddings import get_embedding
from linkstore.errors import LinkStoreError
from linkstore.store import Relation, Schema
from linkstore.strategies import PageRank

RESULTS = 8
Answer = tuple[Sequence[str], bool]
"""The ids of the results, and whether all of them are claimed to be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQuestion:
    """A question, the ids that answer it, and the query for it if there is one."""

    category: str
    text: str
    gold: frozenset[str]
    query: Mapping[str, Any] | None


Contender = Callable[[GraphQuestion], Answer | None]
"""Answers a question, or returns None for one that it is not asked."""


class Dom:
    """A graph with questions, as the files of a data set make it."""

    made: list[Dom]

    def __init__(
        self, name: str, about: str, types: Sequence[str], relations: Sequence[tuple[Any, Any, Any]]
    ) -> None:
        self.name, self.about = name, about
        self.schema = Schema(
            types=frozenset(types), relations=tuple(Relation(*relation) for relation in relations)
        )
        self.docs: list[Document] = []
        self.questions: list[GraphQuestion] = []

    def node(self, type: str, id: str, text: str, links: Iterable[Any] = (), **metadata: Any) -> None:
        """Add a document."""
        self.docs.append(self.schema.document(type, id, text, list(links), metadata=metadata))

    def q(
        self,
        category: str,
        text: str,
        gold: Iterable[str],
        meet: bool = True,
        *,
        query: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a question."""
        self.questions.append(GraphQuestion(category=category, text=text, gold=frozenset(gold), query=query))

    def run(self, verbose: bool = False) -> None:
        """Take part in the benchmark."""
        self.made.append(self)


def main() -> None:
    """Fill a store with each graph, ask all contenders, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    parser.add_argument("--graph-seed", type=int, default=5, help="makes other graphs (default 5)")
    parser.add_argument("--graphs", help="some of the files, by name (default all that have questions)")
    parser.add_argument("--embedding", default="wordllama", help="default wordllama")
    parser.add_argument("--by-category", action="store_true", help="a row for each category")
    parser.add_argument("--model", help="a chat model that writes queries, such as openai:qwen")
    parser.add_argument("--base-url", help="where the server of the model listens")
    parser.add_argument("--timeout", type=float, help="seconds that a call of the model may take")
    parser.add_argument("--most", type=int, default=25, help="questions asked of the model (default 25)")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N wrong answers")
    add_output(parser)
    options = parser.parse_args()
    own = sys.argv
    graphs = list(_load(Path(options.data), options.graph_seed, options.graphs))
    sys.argv = own
    if not graphs:
        print(f"no file of {options.data} makes a Dom")
        return
    measure = _measure_model if options.model else _measure
    rows = [row for graph in graphs for row in measure(graph, options)]
    listed(f"graphs, seed {options.graph_seed}", rows, as_json=options.json, record_as=options.record)


def _load(folder: Path, seed: int, names: str | None) -> Iterator[Dom]:
    """Run the files that make a graph, with the class above for theirs."""
    module: Any = types.ModuleType("dom")
    module.Dom = Dom
    sys.modules["dom"] = module
    sys.path.insert(0, str(folder))
    for path in sorted(folder.glob("*.py")):
        wanted = path.stem in names.split(",") if names else "Dom(" in path.read_text(encoding="utf-8")
        if wanted and path.stem != "dom":
            Dom.made, sys.argv = [], [str(path), str(seed)]
            runpy.run_path(str(path))
            yield from Dom.made


def _measure(graph: Dom, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    with LinkStore.open(":memory:", get_embedding(options.embedding)) as store:
        store.schema.set(graph.schema)
        store.add_documents(graph.docs)
        for name, contender in _make_contenders(store, graph).items():
            answers = [(question, contender(question)) for question in graph.questions]
            asked = [(question, answer) for question, answer in answers if answer is not None]
            groups = {"": asked}
            if options.by_category:
                for question, answer in asked:
                    groups.setdefault(question.category, []).append((question, answer))
            for category, some in groups.items():
                if some:
                    yield {"graph, asked of": f"{graph.name}, {name} {category}".strip(), **_score(some)}
            for question, (ids, claims) in asked:
                wrong = set(ids) - question.gold if claims else set()
                if options.show and (wrong or (question.gold and ids[:1] and ids[0] not in question.gold)):
                    options.show -= 1
                    print(f"{name}: {question.text}\n  gold {sorted(question.gold)[:9]}\n  got {ids[:9]}")


def _score(answers: Sequence[tuple[GraphQuestion, Answer]]) -> dict[str, float]:
    first, among, wrong = [], [], []
    for question, (ids, claims) in answers:
        gold = question.gold
        first.append(bool(ids) and ids[0] in gold if gold else not (ids and claims))
        share = len(gold & set(ids[:RESULTS])) / min(len(gold), RESULTS) if gold else float(first[-1])
        among.append(share)
        wrong.append(len(set(ids) - gold) if claims else 0)
    count = len(answers)
    return {
        "questions": count,
        "first right": round(100 * sum(first) / count, 1),
        "right among results": round(100 * sum(among) / count, 1),
        "wrongly claimed": round(sum(wrong) / count, 3),
    }


def _make_contenders(store: LinkStore, graph: Dom) -> dict[str, Contender]:
    tool: Any = next(tool for tool in graph_tools(store, about=graph.about) if tool.name == "search")
    contenders: dict[str, Contender] = {
        "queries written by hand": _ask_by_query(store),
        "default search": lambda question: (
            [str(hit.document.id) for hit in store.search(question.text, k=RESULTS)],
            False,
        ),
        "default search, names not looked up": lambda question: (
            [
                str(hit.document.id)
                for hit in store.search(question.text, strategy=PageRank(k=RESULTS, named=0))
            ],
            False,
        ),
        "tool search, result type said": _ask_by_tool(tool, graph),
    }
    try:
        contenders["langchain-graph-retriever"] = _ask_by_peer(store, graph)
    except ImportError:
        print("langchain-graph-retriever is not installed")
    return contenders


def _take_in_turn(questions: Sequence[GraphQuestion], most: int) -> list[GraphQuestion]:
    """Take the first question of each category, then the second of each, until there are enough."""
    count, turns = Counter[str](), []
    for question in questions:
        turns.append((count[question.category], question))
        count[question.category] += 1
    return [question for _, question in sorted(turns, key=lambda turn: turn[0])][:most]


def _ask_by_query(store: LinkStore) -> Contender:
    def ask(question: GraphQuestion) -> Answer | None:
        if question.query is None:
            return None
        try:
            answer = store.match({"limit": 1_000, **question.query})
        except LinkStoreError as error:
            print(f"{question.text}: {error}")
            return [], True
        return answer.ids, True

    return ask


def _measure_model(graph: Dom, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Ask a model for queries, and tell of each question as it comes."""
    chat = chat_model(options.model, base_url=options.base_url, temperature=0, timeout=options.timeout)
    counts = Counter(dict.fromkeys(("just right", "at the first try", "wrong", "no answer"), 0))
    calls, tokens = 0, 0
    questions = _take_in_turn(graph.questions, options.most)
    with LinkStore.open(":memory:", get_embedding(options.embedding)) as store:
        store.schema.set(graph.schema)
        store.add_documents(graph.docs)
        for question in questions:
            reply = ask_graph(store, question.text, chat)
            calls += reply.calls
            tokens += (reply.prompt_tokens or 0) + (reply.output_tokens or 0)
            ids: set[str] = set()
            if reply.query is not None and reply.answer is not None and not reply.problem:
                # What is counted or grouped is judged by its documents.
                every = replace(reply.query, returns="documents", field=None, limit=1_000)
                ids = set(store.match(every).ids)
            right, wrong = ids == question.gold, bool(ids - question.gold)
            counts.update({"just right": right, "at the first try": right and reply.tries == 1})
            counts.update({"wrong": wrong, "no answer": not ids})
            verdict = "right" if right else "wrong" if wrong else "in part" if ids else "none"
            print(
                f"{verdict}: {question.text} | {reply.cypher} | {reply.problem}", file=sys.stderr, flush=True
            )
    yield {
        "graph, asked of": f"{graph.name}, {options.model}",
        "questions": len(questions),
        **counts,
        "calls": round(calls / len(questions), 2),
        "tokens": round(tokens / len(questions)),
    }


def _ask_by_tool(tool: Any, graph: Dom) -> Contender:
    of = {document.id: document.metadata["type"] for document in graph.docs}

    def ask(question: GraphQuestion) -> Answer | None:
        types = {of[id] for id in question.gold}
        if len(types) != 1:
            return None
        args = {"question": question.text, "result_type": types.pop()}
        message = tool.invoke({"name": tool.name, "args": args, "id": "1", "type": "tool_call"})
        assert message.status == "success", message.content
        return [result["id"] for result in message.artifact["results"]], False

    return ask


def _ask_by_peer(store: LinkStore, graph: Dom) -> Contender:
    """Ask the peer, for which links are metadata: ids under the name of their kind, and edges to ids."""
    warnings.simplefilter("ignore")
    from graph_retriever.strategies import Eager
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_graph_retriever import GraphRetriever

    other = InMemoryVectorStore(store.embeddings)
    documents = []
    for document in graph.docs:
        pointed: dict[str, list[str]] = {}
        for link in document.metadata["links"]:
            if link["direction"] == "out":
                pointed.setdefault(link["kind"], []).append(link["tag"])
        metadata = {"id": document.id, **pointed}
        documents.append(Document(id=document.id, page_content=document.page_content, metadata=metadata))
    other.add_documents(documents)
    retriever = GraphRetriever(
        store=other,
        edges=[(kind, "id") for kind in sorted(graph.schema.kinds)],
        strategy=Eager(k=RESULTS, start_k=4, adjacent_k=10, max_depth=3),
    )

    def ask(question: GraphQuestion) -> Answer:
        return [str(document.id) for document in retriever.invoke(question.text)], False

    return ask


if __name__ == "__main__":
    main()
