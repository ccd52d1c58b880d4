"""What a store holds in all, counted as the oracle counts, whatever was added, replaced and removed."""

from __future__ import annotations

import random

import pytest
from internals import LINKS_KEY, Link, Manifest, PageEntry, Record, Vocabulary, WriteBatch
from oracle import OracleBackend
from stores import backend, put, sql, times, vectors

from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings

SETTINGS = EmbeddedSettings(exact_below=30, durable=False)
"""So small that snapshots are taken: counts come from mapped files and from what came since."""
KINDS = ("hyperlink", "keyword", "category")


def drawn(chance: random.Random, count: int) -> Record:
    """A document among few tags, so that it often has several links with one tag."""
    number = chance.randrange(count)
    links = {
        Link(
            kind=chance.choice(KINDS),
            tag=f"t{int(chance.paretovariate(0.6)) % 40}",
            direction=chance.choice(("in", "out", "bidir")),
            weight=chance.choice((0.5, 1.0)),
        )
        for _ in range(chance.randrange(8))
    }
    metadata = {LINKS_KEY: [link.to_dict() for link in sorted(links)]}
    (vector,) = vectors([number])
    return Record(
        id=f"d{number}", text=f"doc {number}", metadata=metadata, vector=vector, links=tuple(sorted(links))
    )


def page(chance: random.Random, count: int) -> PageEntry:
    """A page of some documents, some of them another page's too, or not there."""
    ids = tuple(f"d{chance.randrange(count)}" for _ in range(chance.randrange(5)))
    return PageEntry(
        source=chance.choice("ab"), url=f"p{chance.randrange(12)}", digest="x", ids=tuple(dict.fromkeys(ids))
    )


@pytest.mark.parametrize("seed", range(times(6, 60)))
def test_the_counts_are_the_oracles(tmp_path, seed) -> None:
    chance = random.Random(seed)
    count = chance.choice((5, 40, 150))
    stores = EmbeddedBackend(tmp_path / "kb", settings=SETTINGS), OracleBackend()
    for store in stores:
        store.run(store.claim(Manifest(embedding="fake", dimension=len(vectors([0])[0]))))
    for _ in range(8):
        change = WriteBatch(
            put=[drawn(chance, count) for _ in range(chance.randrange(40))],
            remove=[f"d{chance.randrange(count)}" for _ in range(chance.randrange(10))],
            put_pages=[page(chance, count) for _ in range(chance.randrange(6))],
        )
        for store in stores:
            store.run(store.write(change))
        ours, theirs = (store.run(store.survey()) for store in stores)
        assert ours == theirs
        for kind in (*KINDS, "unheard of"):
            for take in (0, 3, 100):
                ours, theirs = (store.run(store.find_most_linked(kind, take)) for store in stores)
                assert ours == theirs, kind
    stores[0].close()


def test_names_that_are_not_recorded_are_found_and_recorded(tmp_path) -> None:
    """As after the rows of a table were lost."""
    store = backend(tmp_path / "kb")
    put(store, 0, 3)
    sql(tmp_path / "kb", "DELETE FROM note")
    store.close()
    store = backend(tmp_path / "kb")
    assert store.run(store.vocabulary()) == Vocabulary()
    (finding,) = store.run(store.verify()).findings
    assert (finding.count, "not recorded" in finding.problem) == (6, True)
    assert store.run(store.repair()).findings == (finding,)
    assert store.run(store.verify()).sound
    assert store.run(store.vocabulary()) == Vocabulary(
        kinds=frozenset({"keyword", "hyperlink"}), fields=frozenset({"n", "c", "v", "links"})
    )
    store.close()


def test_lost_names_that_this_client_has_cached_are_recorded_too(tmp_path) -> None:
    store, asked = backend(tmp_path / "kb"), Vocabulary(fields=frozenset({"n"}))
    put(store, 0, 3)
    assert store.run(store.vocabulary(asked)) == asked
    sql(tmp_path / "kb", "DELETE FROM note")
    assert not store.run(store.repair()).sound
    assert store.run(store.verify()).sound
    store.close()
