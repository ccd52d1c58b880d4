"""What holds of the index of facts on every engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from rule_facts import RuleExtractor

from linkstore import LinkStore, get_links
from linkstore.agents import Fact, aindex_facts, index_facts
from linkstore.agents import facts as fact_module
from linkstore.agents.facts import KEY_ELEMENT, Failed
from linkstore.errors import ExtractionError
from linkstore.store.pages import StorePages

JOAN = "Joan of Arc is a patron saint of France. She was born in Domrémy. In 1429, she relieved Orléans."
VOLTAIRE = "Voltaire wrote The Maid of Orleans. It was published in 1762."
ROUEN = "Rouen is a city in France. It lies on the Seine."


def chunk(id: str, text: str, title: str, *headings: str) -> Document:
    return Document(id=id, page_content=text, metadata={"title": title, "headings": list(headings)})


def chunks() -> list[Document]:
    return [
        chunk("joan", JOAN, "Joan of Arc", "Joan of Arc", "Life"),
        chunk("voltaire", VOLTAIRE, "Voltaire"),
        chunk("rouen", ROUEN, "Rouen"),
    ]


class Counting(RuleExtractor):
    """Rules that count the chunks they read, and may fail or stop at one."""

    def __init__(self, *, fails: str = "", stops_after: int | None = None) -> None:
        self.read: list[str] = []
        self._fails, self._stops_after = fails, stops_after

    def extract(self, chunks: Sequence[Document]) -> list[Sequence[Fact] | Failed]:
        replies: list[Sequence[Fact] | Failed] = []
        for chunk, facts in zip(chunks, super().extract(chunks), strict=True):
            if self._stops_after is not None and len(self.read) == self._stops_after:
                raise KeyboardInterrupt
            id = chunk.id or ""
            self.read.append(id)
            replies.append(Failed(chunk=id, reason="no reason") if id == self._fails else facts)
        return replies


def contents(store: LinkStore) -> dict[str, tuple[str, dict[str, Any]]]:
    """All documents of a store, by id."""
    return {str(one.id): (one.page_content, one.metadata) for one in store.scan()}


def fresh(documents: list[Document]) -> dict[str, tuple[str, dict[str, Any]]]:
    """What an index of facts of these chunks holds that was made in one go."""
    with LinkStore() as store, LinkStore() as facts:
        store.add_documents(documents)
        index_facts(store, RuleExtractor(), facts=facts)
        return contents(facts)


class _StoppedPages(StorePages):
    """The pages of a store that fails at its nth change of them."""

    def __init__(self, store: _Stopped) -> None:
        super().__init__(store.backend, store._embedding)
        self._store = store

    def put(self, *arguments: Any) -> Any:
        return self._store.counted(super().put, arguments)

    def remove(self, *arguments: Any) -> Any:
        return self._store.counted(super().remove, arguments)


class _Stopped(LinkStore):
    """A store that fails at its nth change of pages, before or after it is written."""

    left = 0
    before = True

    @property
    def pages(self) -> StorePages:
        return _StoppedPages(self)

    def counted(self, change: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        self.left -= 1
        if self.left == 0 and self.before:
            raise KeyboardInterrupt
        done = change(*arguments)
        if self.left == 0:
            raise KeyboardInterrupt
        return done


class _Beside(RuleExtractor):
    """Rules; while each chunk is read, another run from start to end writes other facts.

    Args:
        store: Holds the chunks.
        facts: Holds their facts.
        left: The change, of those of the first run, at which it is stopped.
    """

    def __init__(self, store: LinkStore, facts: _Stopped, left: int) -> None:
        self._store, self._facts, self._left = store, facts, left

    def extract(self, chunks: Sequence[Document]) -> list[Any]:
        own, self._facts.left = self._facts.left or self._left, 0
        index_facts(self._store, _Another(), facts=self._facts)
        self._facts.left = own
        return super().extract(chunks)


class _Another(RuleExtractor):
    """One fact for each chunk, always the same."""

    @property
    def name(self) -> str:
        return "another"

    def extract(self, chunks: Sequence[Document]) -> list[Any]:
        return [[Fact(text="Nothing is said.", key_elements=("Nothing",))] * 2 for _ in chunks]


class FactCases:
    @pytest.fixture
    def store(self) -> Iterator[LinkStore]:
        raise NotImplementedError

    @pytest.fixture
    def facts(self) -> Iterator[LinkStore]:
        raise NotImplementedError

    many = 600
    """Chunks, of which 32 are written at once."""
    changes = range(1, 3)
    """Which of its changes a run is stopped at."""

    def test_facts_are_documents_that_name_their_key_elements(self, store, facts):
        store.add_documents(chunks())

        summary = index_facts(store, RuleExtractor(), facts=facts)

        born = facts.get_by_ids(["fact:joan:2"])[0]
        named = {link.tag for link in get_links(born) if link.kind == KEY_ELEMENT}
        assert born.page_content == "Joan of Arc, Life: She was born in Domrémy."
        assert named == {"domrémy"}
        assert born.metadata["chunk"] == "joan"
        assert (summary.chunks, summary.extracted, summary.facts) == (3, 3, 7)
        assert facts.verify().sound

    def test_no_search_of_the_chunks_finds_a_fact(self, store, facts):
        store.add_documents(chunks())
        before = [(hit.document.id, hit.score) for hit in store.search("Who was Joan of Arc?")]
        survey = store.survey()

        index_facts(store, RuleExtractor(), facts=facts)

        assert [(hit.document.id, hit.score) for hit in store.search("Who was Joan of Arc?")] == before
        assert store.survey() == survey

    def test_an_unchanged_chunk_is_not_read_again(self, store, facts):
        store.add_documents(chunks())
        index_facts(store, RuleExtractor(), facts=facts)
        changed = chunk("rouen", "Rouen has a cathedral.", "Rouen")
        store.add_documents([changed])
        counting = Counting()

        summary = index_facts(store, counting, facts=facts)

        assert counting.read == ["rouen"]
        assert (summary.unchanged, summary.extracted) == (2, 1)
        assert not facts.get_by_ids(["fact:rouen:2"])
        assert contents(facts) == fresh([*chunks()[:2], changed])
        assert index_facts(store, counting, facts=facts).extracted == 0

    def test_a_chunk_that_is_gone_takes_its_facts_with_it(self, store, facts):
        store.add_documents(chunks())
        index_facts(store, RuleExtractor(), facts=facts)
        store.delete(["joan"])

        summary = index_facts(store, RuleExtractor(), facts=facts)

        assert contents(facts) == fresh(chunks()[1:])
        assert summary.removed == 1

    def test_a_run_that_was_stopped_goes_on_where_it_was(self, store):
        """Stopped before and after each of its changes; the result is that of one run."""
        wanted, stops = fresh(chunks()), 0
        for before in (True, False):
            for left in self.changes:
                store.add_documents(chunks())
                with self.stopped_facts() as facts:
                    facts.left, facts.before = left, before
                    try:
                        index_facts(store, RuleExtractor(), facts=facts)
                    except KeyboardInterrupt:
                        stops += 1
                    index_facts(store, RuleExtractor(), facts=facts)
                    assert contents(facts) == wanted
                    store.delete(["joan"])
                    facts.left = left
                    try:
                        index_facts(store, RuleExtractor(), facts=facts)
                    except KeyboardInterrupt:
                        stops += 1
                    index_facts(store, RuleExtractor(), facts=facts)
                    assert contents(facts) == fresh(chunks()[1:])
        assert stops > len(self.changes), "a run has at least two changes"

    def test_a_run_that_ends_does_not_hide_that_another_was_stopped(self, store, monkeypatch):
        """The other has written facts since."""
        monkeypatch.setattr(fact_module, "_CHUNKS_AT_ONCE", 1)
        store.add_documents(chunks())
        wanted, stops = fresh(chunks()), 0
        for before in (True, False):
            for left in self.changes:
                with self.stopped_facts() as facts:
                    facts.before = before
                    try:
                        index_facts(store, _Beside(store, facts, left), facts=facts)
                    except KeyboardInterrupt:
                        stops += 1
                    facts.left = 0
                    index_facts(store, RuleExtractor(), facts=facts)
                    assert contents(facts) == wanted
        assert stops

    def stopped_facts(self) -> _Stopped:
        """An empty store of facts that can be made to stop."""
        return _Stopped()

    def test_a_run_that_was_stopped_has_kept_what_was_read(self, store, facts):
        many = [chunk(f"d{n:03}", f"Document {n} tells of Paris.", f"Title {n}") for n in range(self.many)]
        store.add_documents(many)
        first = Counting(stops_after=self.many - 10)
        with pytest.raises(KeyboardInterrupt):
            index_facts(store, first, facts=facts)
        second = Counting()

        index_facts(store, second, facts=facts)

        assert 10 <= len(second.read) <= 10 + 32
        assert contents(facts) == fresh(many)

    def test_a_dry_run_counts_and_writes_nothing(self, store, facts):
        store.add_documents(chunks())

        summary = index_facts(store, RuleExtractor(), facts=facts, dry_run=True)

        assert (summary.extracted, summary.facts, summary.dry_run) == (3, 0, True)
        assert contents(facts) == {}

    def test_a_chunk_that_failed_is_tried_again(self, store, facts):
        store.add_documents(chunks())

        first = index_facts(store, Counting(fails="rouen"), facts=facts)
        second = Counting()
        index_facts(store, second, facts=facts)

        assert first.failed == (Failed(chunk="rouen", reason="no reason"),)
        assert first.extracted == 2
        assert second.read == ["rouen"]

    def test_if_all_chunks_fail_the_run_does(self, store, facts):
        store.add_documents(chunks()[2:])

        with pytest.raises(ExtractionError, match="no reason"):
            index_facts(store, Counting(fails="rouen"), facts=facts)

    def test_async_gives_the_same(self, store, facts):
        store.add_documents(chunks())

        asyncio.run(aindex_facts(store, RuleExtractor(), facts=facts))

        assert contents(facts) == fresh(chunks())

    def test_spellings_of_a_key_element_meet(self, store, facts):
        store.add_documents(chunks()[:1])
        elements = ("the Space Needle", "space-needle", "a", "\ud800", "x" * 100, " ")

        class Spelt(RuleExtractor):
            def extract(self, chunks: Sequence[Document]) -> list[Any]:
                return [[Fact(text="x y", key_elements=elements)] for _ in chunks]

        index_facts(store, Spelt(), facts=facts)

        [fact] = facts.scan()
        assert [(link.tag, link.label) for link in get_links(fact)] == [
            ("space needle", "Space Needle"),
            ("a", None),
        ]
