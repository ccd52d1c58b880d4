"""Words have one spelling, whoever writes them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import STOP_WORDS, find_words, fold, split_sentences, tokenize


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("", ""),
        ("  Space \n Needle\t", "space needle"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("ﬁle № \uff14\uff12", "file no 42"),
        ("E\u0301COLE", "\u00e9cole"),
        ("non\u00a0breaking", "non breaking"),
        ("don\u2019t", "don't"),
        ("\u0130STANBUL \u0130stanbul istanbul", "istanbul istanbul istanbul"),
        ("zero\u200bwidth", "zero width"),
        ("in\u00advis\u200dib\ufe0fle \u202ebidi\u202c", "invisible bidi"),
    ],
)
def test_fold_gives_compatible_spellings_one_form(text, folded):
    assert fold(text) == folded


@given(st.text())
def test_folding_twice_is_the_same_as_once(text):
    assert fold(fold(text)) == fold(text)


PLAIN = st.characters(codec="ascii") | st.sampled_from("\u2013\u2014\u2018\u2019\u201c\u201d")


@given(st.text(alphabet=PLAIN))
def test_the_quick_way_for_plain_text_gives_what_unicode_folding_gives(text):
    assert fold(text) == fold(text + " é").removesuffix("é").strip()
    assert tokenize(text) == tokenize(text + " é")[:-1]


@given(st.text(alphabet=PLAIN | st.sampled_from("'_ aB1")))
def test_the_quick_way_to_the_words_of_plain_text_gives_what_the_pattern_gives(text):
    assert list(tokenize(text)) == re.findall(r"\w+(?:['\u2019]\w+)*", fold(text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        ("--- !?", ()),
        ("The Space-Needle, 1962.", ("the", "space", "needle", "1962")),
        ("don\u2019t 'quote'", ("don't", "quote")),
        ("snake_case and Ünïcode", ("snake_case", "and", "ünïcode")),
        ("塔 tower", ("塔", "tower")),
        ("हिन्दी भाषा।", ("हिन्दी", "भाषा")),
        ("தமிழ் மொழி", ("தமிழ்", "மொழி")),
        ("বাংলা, লিপি", ("বাংলা", "লিপি")),
        (
            "\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd \u05e2\u05d5\u05b9\u05dc\u05b8\u05dd",
            ("\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd", "\u05e2\u05d5\u05b9\u05dc\u05b8\u05dd"),
        ),
        (
            "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f",
            ("\u0645\u064f\u062d\u064e\u0645\u064e\u0651\u062f",),
        ),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", ("\u0645\u06cc\u062e\u0648\u0627\u0647\u0645",)),
        ("x\u0323y \u0301", ("x\u0323y",)),
    ],
)
def test_tokens_are_folded_words_in_order(text, words):
    assert tokenize(text) == words


def test_stop_words_are_tokens_themselves():
    assert all(tokenize(word) == (word,) for word in STOP_WORDS)
    assert {"the", "and", "don't"} <= STOP_WORDS
    assert "needle" not in STOP_WORDS


@given(
    st.text(
        alphabet=st.sampled_from("aZ1'\u2019 -,\u0301\u093f\u0939\u05b8\u05dc\u0130\u00ad\u200d\ufe0f\u212b")
    )
)
def test_words_as_written_are_the_words_of_the_text(text):
    written = [word for found in find_words(text) for word in tokenize(found[0])]
    assert written == list(tokenize(text))


def test_a_sentence_goes_on_after_an_initial_and_a_title():
    text = "Dr. J. Smith met Mrs. Keller, e.g. on Monday. They spoke.\nProf. Lind wrote."
    assert split_sentences(text) == [
        "Dr. J. Smith met Mrs. Keller, e.g. on Monday.",
        "They spoke.",
        "Prof. Lind wrote.",
    ]
