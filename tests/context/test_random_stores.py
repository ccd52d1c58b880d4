"""Random stores: what holds of every context, whatever documents, links and settings there are."""

from random import Random

import pytest
from context_cases import document, leads, named, words
from internals import ORDERS, PRECEDENCE, PageDocuments

from linkstore import LinkStore
from linkstore.context import ContextCompiler
from linkstore.errors import BudgetError

WORDS = ("hub", "link", "tag", "walk", "seed", "中文", "é", "🙂", "a\nb", "--")


def some_text(rng):
    return f"{rng.choice(['T > U', 'T', ''])}\n\n{' '.join(rng.choices(WORDS, k=rng.randint(1, 40)))}".strip()


def some_links(rng, number, of):
    kinds = ("requires", "hyperlink", "causes", "mention")
    links = [named(kind, f"{number}") for kind in kinds]
    return links + [
        leads(rng.choice(kinds), f"{rng.randrange(of + 2)}") for _ in range(rng.choice((0, 0, 1, 2)))
    ]


def filled(store, rng, size):
    """Pages of chunks, some alike, some pinned, with links among them; returns what each requires."""
    documents = []
    for number in range(size):
        page = f"p{number // 4}"
        alike = documents and rng.random() < 0.1
        text = documents[-1].page_content if alike else some_text(rng)
        memory = {"memory": "procedural"} if rng.random() < 0.02 else {}
        links = some_links(rng, number, size)
        documents.append(
            document(f"{page}#{number}", text, *links, page=page, url=f"{page}#{number}", **memory)
        )
    for at in range(0, size, 4):
        own = tuple(documents[at : at + 4])
        store.pages.put("s", [PageDocuments(url=own[0].metadata["page"], digest="1", documents=own)])
    by_number = {str(number): str(one.id) for number, one in enumerate(documents)}
    return {
        str(one.id): [
            (link["kind"], by_number[link["tag"]])
            for link in one.metadata["links"]
            if link["direction"] == "out" and link["tag"] in by_number
        ]
        for one in documents
    }


def reaches(edges, start, goal):
    seen, stack = set(), [start]
    while stack:
        for other in edges.get(stack.pop(), ()):
            if other == goal:
                return True
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return False


@pytest.mark.parametrize("seed", range(12))
def test_every_context_keeps_its_promises(seed):
    rng = Random(seed)
    with LinkStore.open(":memory:") as store:
        links = filled(store, rng, rng.randint(1, 60))
        for budget in (60, 90, 150, 400, 2_000):
            settings = {
                "order": rng.choice(ORDERS),
                "selection": rng.choice(("rank", "knapsack")),
                "header": rng.choice((None, lambda one: f"# {one.id}")),
            }
            tokenizer = rng.choice((None, words))
            if tokenizer is None:
                budget *= 4
            compiler = ContextCompiler(store, budget=budget, tokenizer=tokenizer, **settings)
            try:
                compiled = compiler.compile("hub of links")
            except BudgetError:
                assert budget < 400  # what is pinned needs more
            else:
                _check(compiled, compiler, links)


def _check(compiled, compiler, links):
    count = compiler.counter.count
    assert compiled.tokens == count([compiled.text])[0] <= compiled.budget
    taken = [item.id for item in compiled.items]
    assert len(set(taken)) == len(taken)
    stands_for = {name: item.id for item in compiled.items for name in (item.id, *item.repeats)}
    for name in taken:
        for kind, other in links[name]:
            assert kind != "requires" or other in stands_for, f"{name} requires {other}"
    assert {one.id for one in compiled.left_out}.isdisjoint(taken)
    if compiled.order == "precedence":
        _check_order(taken, links)


def _check_order(taken, links):
    """What must come before comes before, but for cycles."""
    place = {name: at for at, name in enumerate(taken)}
    before = {name: set() for name in taken}
    for name in taken:
        for kind, other in links[name]:
            if other in place and other != name:
                first, second = (name, other) if PRECEDENCE[kind] == "source" else (other, name)
                before[second].add(first)
    for name, others in before.items():
        for other in others:
            assert place[other] < place[name] or reaches(before, other, name)
