"""The Space Needle example of GraphVectorStore's users: one hop finds what similarity misses."""

from __future__ import annotations

import warnings

import pytest
from internals import HIT_KEY, HtmlInput, HtmlLinkExtractor
from space_needle import ARTICLES, NEEDLE, NEIGHBORHOOD, QUESTION, articles, posts

from linkstore import LinkStore


@pytest.fixture(scope="module")
def store():
    """With the built-in embedding, which is used when none is given."""
    with LinkStore.from_documents([*articles(), *posts()]) as made:
        yield made


def ids(found) -> list[str]:
    return [one.id for one in found]


def retrieving(store, depth):
    return store.as_retriever(search_type="traversal", search_kwargs={"k": 3, "depth": depth})


def test_similarity_misses_the_neighborhood_and_one_hop_finds_it(store) -> None:
    near = ids(retrieving(store, 0).invoke(QUESTION))
    assert len(near) == 3
    assert NEIGHBORHOOD not in near

    found = retrieving(store, 1).invoke(QUESTION)
    assert ids(found) == [*near, NEIGHBORHOOD]
    assert [step["id"] for step in found[-1].metadata[HIT_KEY]["path"]] == [NEEDLE, NEIGHBORHOOD]
    assert found[-1].metadata[HIT_KEY]["path"][-1]["label"] == "Lower Queen Anne"


async def test_the_same_without_blocking(store) -> None:
    for depth in (0, 1):
        retriever = retrieving(store, depth)
        assert await retriever.ainvoke(QUESTION) == retriever.invoke(QUESTION)


def test_the_methods_of_graph_vector_store_find_it_too(store) -> None:
    assert NEIGHBORHOOD in ids(store.traversal_search(QUESTION, k=3, depth=1))
    diverse = store.mmr_traversal_search(QUESTION, k=6, fetch_k=3, depth=1)
    assert NEIGHBORHOOD in ids(diverse)
    assert NEIGHBORHOOD not in ids(store.mmr_traversal_search(QUESTION, k=6, fetch_k=3, depth=0))


def test_soup_gives_the_same_links_and_so_does_code_of_langchain_community() -> None:
    bs4 = pytest.importorskip("bs4")

    def soup(html):
        return bs4.BeautifulSoup(html, "html.parser")

    assert articles(soup) == articles()
    pytest.importorskip("langchain_community")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain_community.graph_vectorstores.extractors import HtmlInput as TheirInput
    for url, html in ARTICLES.items():
        extractor = HtmlLinkExtractor()
        theirs = extractor.extract_one(TheirInput(soup(html), url))
        assert theirs == extractor.extract_one(HtmlInput(soup(html), url))
        assert theirs == extractor.extract_one(HtmlInput(content=html, base_url=url))
