"""Words, and which of a question's are looked up."""

from __future__ import annotations

import math
import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import (
    MAX_WORD_LENGTH,
    MIN_IDF,
    POSTINGS,
    bm25_weight,
    extract_document_terms,
    extract_question_terms,
    extract_terms,
    inverse_frequency,
    select_affordable,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Space Needle's height", ["space", "needle", "height"]),
        ("O'Neil\u2019s don't", ["oneil"]),
        ("Stra\u00dfe STRASSE", ["strasse", "strasse"]),
        ("PEP 484, snake_case; x.y", ["pep", "484", "snake_case", "x", "y"]),
        ("x" * MAX_WORD_LENGTH + " " + "y" * (MAX_WORD_LENGTH + 1), ["x" * MAX_WORD_LENGTH]),
        ("it is the", []),
        ("हिन्दी की किताब", ["हिन्दी", "की", "किताब"]),
        ("如何使用插槽", ["如何", "何使", "使用", "用插", "插槽"]),
        ("茶", ["茶"]),
        ("\uff8c\uff9f\uff98\uff9d\uff80の設定", ["プリ", "リン", "ンタ", "設定"]),
        ("\uff30ython\u3000\uff13のfor文", ["python", "3", "for", "文"]),
        ("りんごとは", ["りん", "んご", "ごと", "とは"]),
        ("东京's 3D模型", ["东京", "3d", "模型"]),
        ("커널을 설정", ["커널", "널을", "설정"]),
        ("ที่ดี", ["ที่ดี"]),
        ("Настройка сети", ["настройк", "сет"]),
        ("сетью: НАСТРОЙКИ", ["сет", "настройк"]),
        ("Ёлка елку", ["елк", "елк"]),
        ("Ελλάδα, ΕΛΛΑΔΑΣ, Ελλάδας", ["ελλαδ", "ελλαδ", "ελλαδ"]),
        ("підключення системою", ["підключення", "систем"]),
        ("MySQL-сервера", ["mysql", "сервер"]),
        ("漢" * (MAX_WORD_LENGTH + 1), ["漢漢"] * MAX_WORD_LENGTH),
    ],
)
def test_words_are_folded_and_say_something(text: str, words: list[str]) -> None:
    assert list(extract_terms(text)) == words


@given(st.text(max_size=80))
def test_words_are_their_own_words(text: str) -> None:
    """A question's words find the documents that have them: folding twice is folding once.

    A stem may have a stem of its own, so the words of scripts that have stems are left out.
    """
    once = tuple(
        word
        for word in extract_terms(text)
        if not re.search("[\u0370-\u03ff\u0430-\u0451\u1f00-\u1fff]", word)
    )
    assert extract_terms(" ".join(once)) == tuple(word for word in once if extract_terms(word) == (word,))
    assert all(word and not set(word) & set(" '\"") for word in once)


def test_a_name_counts_twice_beside_the_text() -> None:
    """The innermost heading, else the title; metadata that is no such thing is the user's own."""
    assert extract_document_terms("text", {"title": "Some Title"}, "d") == ("title", "title", "text")
    sectioned = {"title": "Title", "headings": ["Chapter", "The Section"]}
    assert extract_document_terms("text", sectioned, "d") == ("section", "section", "text")
    assert extract_document_terms("text", {"title": "Title", "headings": []}, "d") == (
        "title",
        "title",
        "text",
    )
    assert extract_document_terms("text", {"title": 7, "headings": "Chapter"}, "d") == ("text",)
    assert extract_document_terms("text", {"headings": [7], "title": "Title"}, "d") == ("text",)


def test_words_of_other_names_count_once_where_the_text_lacks_them() -> None:
    """Names in metadata, and a number that ends an id; a year or a short number is none."""
    terms = partial(extract_document_terms, "Asaphus kowalewskii, from Russia.")
    own = terms({}, "fossils/1987")
    assert terms({"name": "Asaphus", "aliases": ["stalk-eyed asaphus", 7]}, "") == (*own, "stalk", "eyed")
    assert terms({"label": "Snail eye"}, "mus:48-a/TR40417") == (*own, "snail", "eye", "tr40417")
    assert terms({}, "imo:9100037") == (*own, "9100037")
    for id in (
        "fossils/17",
        "9100037",
        "n/1234",
        "fossils/1987",
        "f#550e8400-e29b",
        "page/section-12345",
        "p12",
    ):
        assert terms({"name": None, "names": 3}, id) == own


def test_a_question_of_many_words_is_cut_and_says_by_how_many() -> None:
    words = [f"w{n}" for n in range(130)]
    assert extract_question_terms(" ".join(words)) == (tuple(words[:128]), 2)
    assert extract_question_terms(" ".join(words[:100] * 2)) == (tuple(words[:100]), 0)


def test_a_question_is_read_to_its_16384th_character() -> None:
    assert extract_question_terms(" " * 16_382 + "b c") == (("b",), 0)
    assert extract_question_terms(" " * 16_381 + "b c") == (("b", "c"), 0)


def test_words_longer_than_64_characters_are_ignored() -> None:
    assert extract_terms("a" * 64 + " " + "b" * 65) == ("a" * 64,)


def test_the_formula() -> None:
    assert inverse_frequency(100, 10) == math.log(90.5 / 10.5)
    assert inverse_frequency(100, 60) == MIN_IDF
    assert bm25_weight(1, 10, 10.0) == pytest.approx(1.0)
    assert bm25_weight(3, 20, 10.0) == pytest.approx(3 * 2.2 / (3 + 1.2 * (0.25 + 0.75 * 2)))


def test_the_rarest_words_are_looked_up_while_they_add_up_to_few() -> None:
    half = POSTINGS // 2
    assert select_affordable({"b": half, "a": half, "c": 1}) == (["a", "c"], ["b"])
    assert select_affordable({"b": half, "a": half}) == (["b", "a"], [])
    assert select_affordable({"common": POSTINGS + 1}) == (["common"], [])
    assert select_affordable({"common": POSTINGS + 1, "rare": 1, "none": 0}) == (["rare"], ["common"])
    assert select_affordable({}) == ([], [])
