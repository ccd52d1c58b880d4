"""``filter`` as an access rule: what a tenant is told does not depend on what other tenants store."""

from __future__ import annotations

import random

import pytest
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.strategies import Eager, Mmr, PageRank, Similarity, Words

NAMES = ["ada", "bell", "curie", "darwin", "euler", "fermat", "gauss", "hooke"]
STRATEGIES = (
    Similarity(k=5),
    Words(k=5),
    Eager(start_k=3, depth=2, direction="both", hub_cap=6),
    Mmr(k=5, fetch_k=6),
    PageRank(),
    PageRank(hub_cap=4, reranker=lambda question, texts: [len(text) for text in texts]),
)
OTHERS = "tenant b"


class Embedding:
    """Letters counted: texts alike have vectors alike."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return [1 + text.count(letter) for letter in "abcdefghij"]


def documents(seed: int) -> list[Document]:
    rng = random.Random(seed)
    made = []
    for n in range(60):
        tenant = rng.choice(["a", OTHERS])
        title = " ".join(rng.sample(NAMES, rng.randint(1, 2)))
        links = [
            {"kind": "mention", "tag": title, "direction": "in"},
            {"kind": "hyperlink", "tag": f"/{n}", "direction": "in"},
            *({"kind": "hyperlink", "tag": f"/{rng.randrange(60)}", "direction": "out"} for _ in range(3)),
            {"kind": "keyword", "tag": rng.choice(NAMES), "direction": "bidir"},
        ]
        unique = {(one["kind"], one["tag"], one["direction"]): one for one in links}
        text = " ".join(rng.choices(NAMES, k=rng.randint(3, 12)))
        metadata = {"tenant": tenant, "title": title, "links": list(unique.values())}
        made.append(Document(id=f"{tenant} {n}", page_content=text, metadata=metadata))
    return made


def opened(found: list[Document]) -> LinkStore:
    store = LinkStore.open(":memory:", Embedding())
    store.add_documents(found)
    return store


@pytest.mark.parametrize("seed", range(4))
def test_a_tenant_is_told_what_its_own_store_would_tell(seed) -> None:
    found, rng = documents(seed), random.Random(seed)
    shared = opened(found)
    own = opened([one for one in found if one.metadata["tenant"] == "a"])
    starts = [
        {},
        {"initial_roots": [one.id for one in rng.sample(found, 3)]},
        {"initial_links": [{"kind": "keyword", "tag": rng.choice(NAMES), "direction": "out"}]},
    ]
    for strategy in STRATEGIES:
        for start in starts[: 1 if isinstance(strategy, Similarity | Words) else 3]:
            asked = {"strategy": strategy, "filter": {"tenant": "a"}, **start}
            question = " ".join(rng.choices(NAMES, k=3))
            told, expected = shared.search(question, **asked), own.search(question, **asked)
            assert told == expected
            assert told.explain() == expected.explain()
            assert told.documents() == expected.documents()


def test_a_hidden_document_takes_no_name_from_a_visible_one() -> None:
    mine = _titled("a 1", "a", "new york", "rooms near the station")
    asked = {"strategy": PageRank(), "filter": {"tenant": "a"}}
    alone = opened([mine]).search("hotels in new york city", **asked)
    shadowed = opened([mine, *(_titled(f"b {n}", OTHERS, title, "secret") for n, title in enumerate(TAKEN))])
    assert shadowed.search("hotels in new york city", **asked) == alone
    assert alone[0].contributions["walk"] > 0


TAKEN = ("new york city", "new york", "new york", "new york", "hotels")


def _titled(name: str, tenant: str, title: str, text: str) -> Document:
    links = [{"kind": "mention", "tag": title, "direction": "in"}]
    return Document(id=name, page_content=text, metadata={"tenant": tenant, "title": title, "links": links})


def test_ids_and_tags_of_others_cannot_be_probed() -> None:
    store = opened([_titled("a 1", "a", "ada", "ada"), _titled("b 1", OTHERS, "merger", "acme")])
    asked = {"strategy": Eager(start_k=1), "filter": {"tenant": "a"}}
    there, nowhere = (store.search("ada", initial_roots=[name], **asked) for name in ("b 1", "b 2"))
    assert there == nowhere
    links = ({"kind": "mention", "tag": tag, "direction": "out"} for tag in ("merger", "divorce"))
    there, nowhere = (store.search("ada", initial_links=[link], **asked) for link in links)
    assert there == nowhere
