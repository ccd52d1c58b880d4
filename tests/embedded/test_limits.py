"""What a store can hold at most: more is refused before it is written, and says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from internals import (
    MAX_NAME_WORDS,
    MAX_QUESTION_CHARACTERS,
    MAX_QUESTION_WORDS,
    NAMING_KINDS,
    Trail,
    WriteBatch,
    extract_question_terms,
    parse_links,
)
from stores import backend, exact, nearest, put, record, sql, vectors

from linkstore.engines.embedded import schema, writing
from linkstore.errors import DocumentError, StoreLimitError
from linkstore.strategies import Question, names

ASKED = vectors([10_000])[0]


def linked(n: int, *links: dict):
    metadata = {"links": list(links)}
    return replace(record(n), metadata=metadata, links=parse_links(metadata))


@pytest.mark.parametrize("counter", ["last_key", "last_group"])
def test_a_change_whose_numbers_would_not_fit_is_refused_whole(tmp_path, counter) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 5)
    sql(tmp_path / "kb", f"UPDATE setting SET value = {schema.MOST_KEYS - 1} WHERE name = '{counter}'")
    with pytest.raises(StoreLimitError, match=r"at most 2,147,483,646 can be: copy its documents"):
        put(store, 5, 8)
    assert [found.id for found in store.run(store.scan(None, 100))] == [f"d{n}" for n in range(5)]
    store._closed = True  # nobody loads two thousand million rows here
    store._database.close()


@pytest.mark.parametrize("part", ["text", "metadata", "links"])
def test_a_document_that_is_too_large_is_refused_with_its_name(tmp_path, monkeypatch, part) -> None:
    monkeypatch.setattr(schema, "MOST_TEXT_BYTES", 1000)
    store = backend(tmp_path / "kb")
    good = record(1)
    large = {
        "text": replace(good, id="big", text="é" * 501),
        "metadata": replace(good, id="big", metadata={"x": "é" * 500}),
        "links": replace(
            linked(2, *({"kind": "k", "tag": f"{n}", "direction": "out"} for n in range(30))), id="big"
        ),
    }[part]
    with pytest.raises(DocumentError, match=f"'big' cannot be stored: of {part} it has 1,[0-9]{{3}} bytes"):
        store.run(store.write(WriteBatch(put=[good, large])))
    assert store.run(store.scan(None, 10)) == []
    store.run(store.write(WriteBatch(put=[good, replace(good, id="fits", text="é" * 500)])))
    assert len(store.run(store.scan(None, 10))) == 2
    store.close()


def test_words_that_grow_beyond_the_text_are_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(schema, "MOST_WORDS_BYTES", 1000)
    store = backend(tmp_path / "kb")
    with pytest.raises(DocumentError, match="of words it has"):
        store.run(store.write(WriteBatch(put=[replace(record(1), text="\ufdfa " * 100)])))
    store.close()


def test_words_are_found_before_the_store_is_locked(tmp_path, monkeypatch) -> None:
    store = backend(tmp_path / "kb")
    real, asked = writing.extract_document_terms, []

    def extracted(text, metadata, id):
        assert not store._database._is_writing_here()
        asked.append(text)
        return real(text, metadata, id)

    monkeypatch.setattr(writing, "extract_document_terms", extracted)
    put(store, 0, 20)
    put(store, 10, 15, version=1)
    assert len(asked) == 25
    assert store.run(store.verify()).sound
    store.close()


def test_more_kinds_than_16_bits_can_number_work(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    for start in range(0, 34_000, 8500):
        kinds = ({"kind": f"kind{n}", "tag": "x", "direction": "bidir"} for n in range(start, start + 8500))
        store.run(store.write(WriteBatch(put=[linked(start, *kinds)])))
    assert nearest(store, ASKED) == exact(range(0, 34_000, 8500), ASKED)
    assert len(store.run(store.survey()).links) == 34_000
    store.run(store.flush())
    store.close()
    store = backend(tmp_path / "kb")
    assert len(store.run(store.survey()).links) == 34_000
    assert store.run(store.verify()).sound
    store.close()


def test_work_for_a_question_is_bounded_however_long_it_is() -> None:
    short = " ".join(f"w{n}" for n in range(MAX_QUESTION_WORDS))
    assert extract_question_terms(short) == (tuple(short.split()), 0)
    assert extract_question_terms(f"{short} one_more w0 elsewhere") == (tuple(short.split()), 2)
    for length in (10**5, 10**6):
        text = " ".join(f"w{n}" for n in range(length // 6))
        assert len(text) > MAX_QUESTION_CHARACTERS
        assert len(extract_question_terms(text)[0]) == MAX_QUESTION_WORDS
        question, none = Question(vector=ASKED, text=text), names.NONE_FOUND.refs
        fetch = next(names.find_named_documents(Trail(), question, {}, (), none, NAMING_KINDS, 5, 3))
        assert len(fetch.tags) <= names.MAX_SEARCHED_WORDS * MAX_NAME_WORDS * len(NAMING_KINDS)
