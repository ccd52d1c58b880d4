"""What else there is to measure of contexts: a needle, an ablation, decay, and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore import Link, LinkStore, add_links
from linkstore.context import ContextCompiler, Decay
from linkstore.strategies import PageRank, Similarity, Strategy

Row = dict[str, Any]
_PLACES: Final = ("Oslo", "Lima", "Cairo", "Hanoi", "Quito", "Riga", "Accra", "Dhaka", "Turin", "Perth")
_THINGS: Final = ("vault", "archive", "greenhouse", "observatory", "workshop", "cellar", "studio", "depot")


def needle(embedding: Embeddings) -> list[Row]:
    """Ten needles, each asked for among distractors of the same making, at 200 tokens; none is pinned."""
    rows = []
    for distractors in (100, 1_000, 10_000):
        with LinkStore.open(":memory:", embedding) as store:
            store.add_documents([_distractor(n) for n in range(distractors)])
            store.add_documents([_needle(place) for place in _PLACES])
            compiler = ContextCompiler(store, budget=200)
            found = [
                f"needle {place}" in {item.id for item in compiler.compile(_question(place)).items}
                for place in _PLACES
            ]
        rows.append({"distractors": distractors, "found, %": 100 * sum(found) / len(found)})
    return rows


def _needle(place: str) -> Document:
    return Document(
        id=f"needle {place}", page_content=f"The password of the safe in {place} is {place[::-1]}-4711."
    )


def _question(place: str) -> str:
    return f"What is the password of the safe in {place}?"


def _distractor(n: int) -> Document:
    place, thing = _PLACES[n % len(_PLACES)], _THINGS[n // len(_PLACES) % len(_THINGS)]
    return Document(
        id=f"d{n}",
        page_content=f"Report {n}: the {thing} in {place} was inspected; item {n * 7 % 997} needs no repair.",
    )


def ablation(embedding: Embeddings) -> list[Row]:
    """Two-hop items: the second document shares no word with the question, only a link with the first."""
    documents = [_distractor(n) for n in range(200)]
    for n, place in enumerate(_PLACES):
        first = Document(
            id=f"first {place}", page_content=f"The safe in {place} was built by firm number {n}."
        )
        second = Document(
            id=f"second {place}", page_content=f"Holders of record {n * 31 % 97}: K. Brandt and sons."
        )
        add_links(first, Link.outgoing(kind="hyperlink", tag=f"firm {n}"))
        add_links(second, Link.incoming(kind="hyperlink", tag=f"firm {n}"))
        documents += [first, second]
    ways: Mapping[str, Strategy] = {
        "vector": Similarity(),
        "graph": PageRank(first_stage_weight=0.0),
        "both": PageRank(),
    }
    with LinkStore.open(":memory:", embedding) as store:
        store.add_documents(documents)
        return [{"search": name, **_both_found(store, strategy)} for name, strategy in ways.items()]


def _both_found(store: LinkStore, strategy: Strategy) -> Row:
    compiler = ContextCompiler(store, budget=200, strategy=strategy)
    taken = [
        {item.id for item in compiler.compile(f"Who owns the builder of the safe in {place}?").items}
        for place in _PLACES
    ]
    return {
        f"{part}, %": 100
        * sum(f"{part} {place}" in ids for place, ids in zip(_PLACES, taken, strict=True))
        / 10
        for part in ("first", "second")
    }


def decay(_: Embeddings) -> list[Row]:
    """Strength by age, for the default half-lives and those published."""
    ages = {"1 hour": timedelta(hours=1), "1 day": timedelta(days=1), "7 days": timedelta(days=7)}
    ages |= {"30 days": timedelta(days=30), "60 days": timedelta(days=60)}
    return [
        {
            "memory": f"{memory}, {name}",
            "half-life, days": one.half_life[memory] / timedelta(days=1),
            **{label: f"{one.strength(memory, age):.3f}" for label, age in ages.items()},
        }
        for name, one in {"default": Decay(), "published": Decay.published()}.items()
        for memory in ("semantic", "episodic")
    ]


def duration(embedding: Embeddings) -> list[Row]:
    """Least ms of CPU of a compilation beyond its search, when all candidates have been counted before."""
    rows = []
    with LinkStore.open(":memory:", embedding) as store:
        store.add_documents([_passage(n) for n in range(5_000)])
        for candidates in (200, 1_000):
            for budget in (800, 8_000):
                strategy = Similarity(k=candidates)
                compiler = ContextCompiler(
                    store,
                    budget=budget,
                    candidates=candidates,
                    strategy=strategy,
                    exact_candidates=candidates,
                )
                greedy = ContextCompiler(store, budget=budget, candidates=candidates, strategy=strategy)
                search = _ms(lambda text, used=strategy: store.search(text, strategy=used))
                rows.append(
                    {
                        "candidates": candidates,
                        "budget": budget,
                        "search, ms": search,
                        "compile, ms": _ms(greedy.compile) - search,
                        "compile all exactly, ms": _ms(compiler.compile) - search,
                    }
                )
    return rows


def _passage(n: int) -> Document:
    words = Random(n)
    length = words.randint(20, 150)
    return Document(id=f"p{n}", page_content=" ".join(f"w{words.randrange(4_000)}" for _ in range(length)))


def _ms(action: Callable[[str], Any], question: str = "w1 w2 w3", rounds: int = 7) -> float:
    action(question)
    times = []
    for _ in range(rounds):
        started = time.process_time()
        action(question)
        times.append((time.process_time() - started) * 1e3)
    return min(times)


PARTS: Final[Mapping[str, Callable[[Embeddings], list[Row]]]] = {
    "needle": needle,
    "ablation": ablation,
    "decay": decay,
    "time": duration,
}
