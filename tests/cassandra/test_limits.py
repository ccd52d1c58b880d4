"""What is too long for Cassandra is refused by name; what is too long for its index is found all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from internals import FIRST_TOKEN, CassandraSettings, DocumentScan, PageEntry, WriteBatch
from langchain_core.documents import Document
from stores import embedding

from linkstore import Link, LinkStore, add_links
from linkstore.core import calls
from linkstore.errors import BackendError, DocumentError, StoreBusyError
from linkstore.strategies import Similarity

LONGEST_ID = 65_000


@pytest.fixture
def opened(cassandra_session, keyspace) -> Iterator[LinkStore]:
    with LinkStore.cassandra(embedding(), session=cassandra_session, keyspace=keyspace) as store:
        yield store


@pytest.mark.parametrize("size", [LONGEST_ID + 1, LONGEST_ID + 70_000])
@pytest.mark.parametrize("linked", [False, True])
def test_a_longer_id_is_refused_by_name_and_nothing_is_written(opened, size, linked) -> None:
    name = "the long one " + "x" * (size - 13)
    long, good = Document(id=name, page_content="long"), Document(id="good", page_content="good")
    if linked:
        add_links(long, Link.bidir(kind="k", tag="t"))
    with pytest.raises((DocumentError, BackendError)) as error:
        opened.add_documents([good, long])
    assert "the long one" in error.value.message
    assert len(error.value.message) < 1_000
    assert opened.survey().documents == 0
    assert opened.verify().sound


def test_a_longer_id_is_an_id_that_no_document_has(opened) -> None:
    """As any other that is unknown: it can be asked for, started from and deleted."""
    name = "x" * 65_536
    opened.add_documents([Document(id="a", page_content="a")])
    assert [one.id for one in opened.get_by_ids([name, "a"])] == ["a"]
    assert [hit.document.id for hit in opened.search("a", initial_roots=[name])] == ["a"]
    opened.delete([name, "a"])
    assert opened.survey().documents == 0


def test_all_requests_of_a_call_share_its_deadline(opened, monkeypatch) -> None:
    executor, lost = opened.backend._executor, []
    run = executor.run
    monkeypatch.setattr(executor, "run", lambda requests: lost.append(requests.lost) or run(requests))
    backend, change = (
        opened.backend,
        WriteBatch(put_pages=[PageEntry(source="s", url="u", digest="d", ids=())]),
    )
    backend.run(backend.write(change))
    assert len(lost) > 3
    assert len(set(lost)) == 1
    assert None not in lost
    backend.run(backend.pages("s"))
    assert len(set(lost)) == 2


@pytest.mark.parametrize("letter", ["a", "😀"])
@pytest.mark.parametrize("size", [512, 513, 2_000, 20_000])
def test_a_field_is_found_by_equality_however_long_its_name_and_its_value(opened, size, letter) -> None:
    field, value = letter * size, letter.swapcase() * size
    opened.add_documents(
        [
            Document(id="name", page_content="a", metadata={field: "short"}),
            Document(id="value", page_content="b", metadata={"short": value}),
            Document(id="both", page_content="c", metadata={field: value}),
        ]
    )
    for wanted, expected in (
        ({field: "short"}, ["name"]),
        ({"short": value}, ["value"]),
        ({field: value}, ["both"]),
        ({field: value[:-1]}, []),
    ):
        found = opened.search("x", strategy=Similarity(k=3), filter=wanted)
        assert [hit.document.id for hit in found] == expected


@pytest.mark.parametrize("field", ["text", "metadata", "links"])
def test_a_document_too_large_for_the_server_is_refused_by_name(opened, field) -> None:
    """With its size and the limit; nothing of the change is written."""
    good, long = Document(id="good", page_content="good"), Document(id="the large one", page_content="text")
    if field == "text":
        long.page_content = "ä" * (8 << 20)
    elif field == "metadata":
        long.metadata["notes"] = ["x" * 1_000] * 16_000
    else:
        add_links(long, *(Link.bidir(kind="k", tag=f"{n}" + "t" * 8_000) for n in range(1_000)))
    with pytest.raises(DocumentError, match=r"'the large one' takes 1\d,\d{3},\d{3} bytes.*15,728,640"):
        opened.add_documents([good, long])
    assert list(opened.scan()) == []


def test_a_large_document_below_the_limit_is_stored(opened) -> None:
    opened.add_documents([Document(id="large", page_content="x" * (14 << 20))])
    assert len(opened.get_by_ids(["large"])[0].page_content) == 14 << 20


def test_a_search_of_a_small_store_of_large_documents_reads_those_that_it_returns(
    opened, monkeypatch
) -> None:
    """All are compared, but not by their texts."""
    opened.add_documents([Document(id=f"d{n}", page_content=f"{n} " + "x" * 100_000) for n in range(20)])
    read, run = [], opened.backend._executor.run

    def count(requests):
        answers = run(requests)
        read.extend(value for rows in answers for row in rows for value in row if isinstance(value, str))
        return answers

    monkeypatch.setattr(opened.backend._executor, "run", count)
    assert len(opened.search("3", strategy=Similarity(k=2))) == 2
    assert 200_000 < sum(map(len, read)) < 300_000


def long(id: str, text: str) -> Document:
    return Document(id=id, page_content=f"{text} " + "x" * 5_000)


def test_only_what_returns_a_long_text_reads_it(cassandra_session, keyspace) -> None:
    """Neither the first stage of a search, which reads no range of tokens either, nor verify and count do."""
    settings = CassandraSettings(lexical=False)
    store = LinkStore.cassandra(embedding(), session=cassandra_session, keyspace=keyspace, settings=settings)
    store.add_documents([long(f"d{n}", f"{n}") for n in range(20)])
    ran, run = [], store.backend._executor.run

    def note(requests):
        ran.extend(statement.cql for statement in requests.statements)
        return run(requests)

    store.backend._executor.run = note
    assert (store.survey().documents, store.verify().sound) == (20, True)
    assert not [text for text in ran if "$texts" in text]
    ran.clear()
    assert len(store.search("3", strategy=Similarity(k=2))) == 2
    assert len([text for text in ran if "$texts" in text]) == 1
    assert not [text for text in ran if "token(" in text or "WHERE" not in text]


def test_a_long_text_goes_with_its_document_and_with_its_length(opened, keyspace, cassandra_session) -> None:
    opened.add_documents([long(id, "long") for id in ("shortened", "deleted", "kept")])
    opened.add_documents([Document(id="shortened", page_content="short"), long("kept", "longer")])
    opened.delete(["deleted"])
    assert [one.page_content[:6] for one in opened.get_by_ids(["shortened", "kept"])] == ["short", "longer"]
    rows = cassandra_session.execute(f'SELECT id FROM "{keyspace}".linkstore_texts')
    assert [row.id for row in rows] == ["kept"]
    assert opened.verify().sound


def test_a_long_text_that_changes_during_a_search_is_not_mixed_with_what_was_read(opened) -> None:
    """What the document was is not stored any more, and what it is was not ranked."""
    opened.add_documents([long("a", "one")])
    run, backend = opened.backend._executor.run, opened.backend

    def change_first(requests):
        if requests.what == "read texts":
            backend._executor.run = run
            opened.add_documents([long("a", "two")])
        return run(requests)

    backend._executor.run = change_first
    with pytest.raises(StoreBusyError, match=r"document 'a' was changed or removed .* search again"):
        opened.search("one", strategy=Similarity(k=1))
    assert opened.search("one", strategy=Similarity(k=1))[0].document.page_content[:3] == "two"
    backend._executor.run = change_first
    assert [one.page_content[:3] for one in opened.scan()] == ["two"]


def test_a_page_of_documents_is_as_long_as_their_size_allows() -> None:
    """It begins with few rows, and grows."""
    rows = [(f"{n:04}", "x" * (100_000 if n < 200 else 10), n) for n in range(3_000)]
    scan, sizes = DocumentScan("", 1, FIRST_TOKEN), []

    def answer(requests):
        (statement,) = requests.statements
        after, end, limit = statement.values
        sizes.append(limit)
        return [[row for row in rows if after < row[-1] <= end][:limit]]

    read = []
    while page := calls.drive(scan.read(), answer):
        read += page
    assert read == rows
    assert sizes[:3] == [8, 20, 20]
    assert max(sizes) == 1_000
