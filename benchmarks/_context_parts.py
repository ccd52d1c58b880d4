"""What else there is to measure of contexts: a needle, an ablation, decay, and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any, Final, cast
from unittest.mock import patch

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore import Link, LinkStore, add_links
from linkstore.context import ContextCompiler, Decay
from linkstore.context.candidates import Selection
from linkstore.strategies import PageRank, Similarity, Strategy, pagerank

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


def ablation(embedding: Embeddings, seed: int = 0) -> list[Row]:
    """Chains of two links: only the first document shares words with the question, the others have links.

    The chains, the kinds of their links and what stands between them are made at random.
    """
    chance = Random(seed)
    chains = [_chain(number, chance) for number in range(_CHAINS)]
    documents = [one for _, chain in chains for one in chain]
    documents += [_distractor(number) for number in range(400)]
    chance.shuffle(documents)
    ways: Mapping[str, Strategy | None] = {"vector": Similarity(), "graph": PageRank(), "both": None}
    with LinkStore.open(":memory:", embedding) as store:
        store.add_documents(documents)
        rows = []
        for name, strategy in ways.items():
            weight = 0.0 if name == "graph" else pagerank.FIRST_STAGE_WEIGHT
            with patch.object(pagerank, "FIRST_STAGE_WEIGHT", weight):
                rows += [
                    {"search, tokens": f"{name}, {budget}", **_chains_found(store, strategy, budget, chains)}
                    for budget in (80, 200, 400)
                ]
        return rows


_CHAINS: Final = 24
_SYLLABLES: Final = (
    "ba",
    "de",
    "fi",
    "go",
    "ku",
    "la",
    "me",
    "ni",
    "po",
    "ru",
    "sa",
    "te",
    "vi",
    "wo",
    "bre",
)
_ENTITIES: Final = ("firm", "foundry", "guild", "cooperative", "workshop", "yard")
_KINDS: Final = ("hyperlink", "mention", "citation")


def _chain(number: int, chance: Random) -> tuple[str, list[Document]]:
    """A question, and three documents of which each leads to the next."""
    place, builder, owner, person = (_name(chance) for _ in range(4))
    kind, entity = chance.choice(_KINDS), chance.choice(_ENTITIES)
    texts = (
        f"The safe in {place} was built by the {entity} {builder}, and is opened once a year.",
        f"{builder} has belonged to {owner} since {chance.randrange(1900, 2000)}; it has {number + 7} seats.",
        f"Holders of record {chance.randrange(97)}: {person} and sons, {chance.randrange(100)} per cent.",
    )
    documents = [Document(id=f"{number}-{at}", page_content=text) for at, text in enumerate(texts)]
    for at, (one, tag) in enumerate(zip(documents, (place, builder, owner), strict=True)):
        add_links(one, Link.incoming(kind=kind, tag=f"{number} {tag}"))
        if at < 2:
            add_links(one, Link.outgoing(kind=kind, tag=f"{number} {(builder, owner)[at]}"))
    return f"Who holds shares of the owner of the {entity} that built the safe in {place}?", documents


def _name(chance: Random) -> str:
    return "".join(chance.choices(_SYLLABLES, k=3)).capitalize()


def _chains_found(
    store: LinkStore, strategy: Strategy | None, budget: int, chains: Sequence[tuple[str, list[Document]]]
) -> Row:
    """In how many contexts each document of a chain is."""
    compiler = ContextCompiler(store, budget=budget, strategy=strategy)
    taken = [{item.id for item in compiler.compile(question).items} for question, _ in chains]
    return {
        part: sum(str(chain[at].id) in ids for (_, chain), ids in zip(chains, taken, strict=True))
        for at, part in enumerate(("first", "second", "third"))
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
                search = _ms(lambda text, used=strategy: store.search(text, strategy=used))
                row: Row = {"candidates": candidates, "budget": budget, "search, ms": search}
                for selection, label in (("rank", "compile, ms"), ("knapsack", "by a knapsack, ms")):
                    compiler = ContextCompiler(
                        store,
                        budget=budget,
                        candidates=candidates,
                        strategy=strategy,
                        selection=cast("Selection", selection),
                    )
                    row[label] = _ms(compiler.compile) - search
                rows.append(row)
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


PARTS: Final[Mapping[str, Callable[..., list[Row]]]] = {
    "needle": needle,
    "ablation": ablation,
    "decay": decay,
    "time": duration,
}
