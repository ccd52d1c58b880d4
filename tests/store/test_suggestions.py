"""Links that are missing: found where a page names another, never where they are linked already."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from internals import SUGGESTED, LinkSuggestion
from langchain_core.documents import Document

from linkstore import Link, LinkStore, add_links
from linkstore.strategies import Eager


def page(url: str, title: str, text: str, *links: Link) -> Document:
    document = Document(id=url, page_content=text, metadata={"page": url, "url": url, "title": title})
    add_links(document, Link.incoming(kind="hyperlink", tag=url), *links)
    return document


def to(url: str, label: str) -> Link:
    return Link.outgoing(kind="hyperlink", tag=url, label=label)


SITE = (
    page("garden", "The kitchen garden", "Sow beans in May. See pest control.", to("pests", "pest control")),
    page("pests", "Pest control", "Slugs eat lettuce. Companion planting helps."),
    page("may", "Work in May", "Sow beans, and begin with pest control before the slugs come."),
    page(
        "companions", "Companion planting", "Beans and maize; see pest control.", to("pests", "pest control")
    ),
    page("tools", "Tools", "A spade, a rake and a hoe."),
)


@pytest.fixture
def store():
    with LinkStore() as opened:
        opened.add_documents(SITE)
        yield opened


def pairs(found) -> list[tuple[str, str]]:
    return [(one.source_page, one.target_page) for one in found]


def test_what_is_named_without_a_link_is_suggested_first(store):
    found = store.links.suggest()
    first = found[0]
    assert (first.source, first.target) == ("may", "pests")
    assert (first.reason, first.phrase) == ("named", "pest control")
    assert "pest control" in first.passage


def test_a_dismissed_suggestion_stays_away_until_all_are_forgotten(store):
    june = page("june", "Work in June", "Mind companion planting, and begin with pest control.")
    store.add_documents([june])
    every = store.links.suggest(1000)
    near = next(one for one in every if one.reason == "near")
    turned = replace(near, source_page=near.target_page, target_page=near.source_page)
    store.links.dismiss(every[:1])
    store.links.dismiss([turned])  # two that are near have no order
    store.add_documents([*SITE, june])

    left = [one for one in every[1:] if one != near]
    assert left
    assert pairs(store.links.suggest(1000)) == pairs(left)
    assert pairs(store.links.suggest(1)) == pairs(left[:1])
    store.links.dismiss(None)
    assert pairs(store.links.suggest(1000)) == pairs(every)


def test_linked_pages_are_not_suggested(store):
    linked = {("garden", "pests"), ("companions", "pests")}
    found = pairs(store.links.suggest(1000))
    assert not linked & {*found, *((b, a) for a, b in found)}


def test_pages_that_name_nothing_are_near_and_come_last(store):
    found = store.links.suggest(1000)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    reasons = [one.reason for one in found]
    assert reasons == sorted(reasons, key=("named", "near").index)


def test_a_link_of_a_kind_that_no_author_writes_does_not_count(store):
    before = pairs(store.links.suggest())
    store.links.replace({"mention"}, {"may": [Link.outgoing(kind="mention", tag="pest control")]})
    assert pairs(store.links.suggest()) == before


def test_chunks_of_a_page_suggest_it_once():
    with LinkStore() as store:
        store.add_documents(SITE)
        more = [
            Document(
                id=f"may~{n}",
                page_content="More on pest control.",
                metadata={"page": "may", "url": f"may#{n}"},
            )
            for n in range(2, 6)
        ]
        store.add_documents(more)
        found = store.links.suggest(1000)
        assert pairs(found).count(("may", "pests")) == 1
        assert next(one for one in found if one.source_page == "may").source == "may"


def test_documents_without_pages_titles_or_links_raise_nothing():
    odd = [
        Document(
            id="a",
            page_content="a",
            metadata={"title": 7, "aliases": "no list", "page": ["not", "a", "string"]},
        ),
        Document(id="b", page_content="\x00 nothing", metadata={"title": "The The", "aliases": [None, "b"]}),
        Document(id="c", page_content="c" * 5000, metadata={"title": "x" * 5000}),
    ]
    with LinkStore() as store:
        assert store.links.suggest() == []
        store.add_documents(odd)
        assert all(one.reason == "near" for one in store.links.suggest())


def test_a_name_of_many_pages_names_none():
    twins = [page(f"p{n}", "Reference manual", f"Chapter {n}.") for n in range(8)]
    with LinkStore() as store:
        store.add_documents([*twins, page("q", "Start", "Read the reference manual.")])
        assert "named" not in {one.reason for one in store.links.suggest()}


CODE = 'for name in names:\n    shutil.PestControl(name, "slugs")\n    log.debug("%s", name)'


def suggest_named(title: str, *texts: str) -> list[LinkSuggestion]:
    """Return the suggestions for pages p0, p1, … that name another of this title, best first."""
    naming = [page(f"p{at}", f"Page {at}", text) for at, text in enumerate(texts)]
    with LinkStore() as store:
        store.add_documents([page("named", title, "Slugs eat lettuce."), *naming])
        return [one for one in store.links.suggest(1000) if one.reason == "named"]


def find_named(title: str, *texts: str) -> list[str]:
    return [one.source_page for one in suggest_named(title, *texts)]


def score_of(title: str, *texts: str) -> float:
    """Return the score of the page p0."""
    return next(one.score for one in suggest_named(title, *texts) if one.source_page == "p0")


def test_a_phrase_in_code_counts_less_than_one_that_is_spoken_of():
    assert find_named("PestControl", f"Begin in May.\n\n{CODE}", "Begin with PestControl.") == ["p1", "p0"]
    both = f"Begin in May.\n\n{CODE}\n\nSee PestControl."
    assert find_named("PestControl", f"Begin.\n\n{CODE}", both) == ["p1", "p0"]


def test_a_title_of_one_word_counts_less_where_the_site_writes_it_in_small_letters():
    texts = ("Use Periodic or PestControl.", "It is called at periodic intervals.")
    assert score_of("Periodic", *texts) < score_of("Periodic", texts[0], "Use Periodic.") / 3
    assert score_of("PestControl", *texts) > score_of("Periodic", *texts)
    assert score_of("utf8_mode", "Use utf8_mode.") == score_of("UTF8_mode", "Use UTF8_mode.")
    assert score_of("Slug food", "It is slug food.") == score_of("Slug food", "It is Slug Food.")


def test_hidden_links_are_found_again():
    """Of 60 pages that name the pages they link, hide a link in five: they are the first suggestions."""
    chance = random.Random(4)
    groups = ("amber", "birch", "coral", "dune", "elm", "fern")
    names = [f"{group} {letter}" for group in groups for letter in "FGHIJKLMNO"]
    chosen = sorted({(at, to) for at in range(60) for to in chance.sample(range(60), 4) if at != to})
    hidden = set(chance.sample(chosen, len(chosen) // 5))
    site = [
        page(
            f"p{at:02}",
            names[at],
            " ".join(f"Compare {names[b]}." for a, b in chosen if a == at),
            *(to(f"p{b:02}", names[b]) for a, b in chosen if a == at and (a, b) not in hidden),
        )
        for at in range(60)
    ]
    with LinkStore() as store:
        store.add_documents(site)
        found = {(int(a[1:]), int(b[1:])) for a, b in pairs(store.links.suggest(len(hidden)))}
    free = {(a, b) for a, b in hidden if (b, a) not in chosen or (b, a) in hidden}
    assert len(free & found) / len(free) > 0.9


def test_suggestions_are_written_as_links_of_a_kind_that_is_followed_when_asked_for(store):
    found = store.links.suggest(2)
    assert store.links.accept(found) == 4
    assert [(one.link.kind, one.ids) for one in store.links.neighbours("may").outgoing] == [
        (SUGGESTED, ("pests",))
    ]
    assert store.links.accept(found) == 0  # they are there

    def reached(kinds) -> set[str | None]:
        eager = Eager(start_k=0, depth=1, kinds=kinds)
        return {hit.document.id for hit in store.search("pests", strategy=eager, initial_roots=["may"])}

    assert reached(None) == {"may"}
    assert reached([SUGGESTED]) == {"may", "pests"}


def test_pages_that_only_a_suggestion_links_are_suggested_again(store):
    found = store.links.suggest(2)
    store.links.accept(found)
    assert store.links.suggest(2) == found


async def test_the_async_forms_answer_alike(store):
    found = await store.links.asuggest(3)
    assert found == store.links.suggest(3)
    assert await store.links.aaccept(found[:1]) == 2
