"""Words have one spelling, whoever writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkstore.text import STOP_WORDS, fold, tokens


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
    ],
)
def test_fold_gives_compatible_spellings_one_form(text, folded):
    assert fold(text) == folded


@given(st.text())
def test_folding_twice_is_the_same_as_once(text):
    assert fold(fold(text)) == fold(text)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_the_quick_way_for_ascii_gives_what_unicode_folding_gives(text):
    assert fold(text) == fold(text + " é").removesuffix("é").strip()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        ("--- !?", ()),
        ("The Space-Needle, 1962.", ("the", "space", "needle", "1962")),
        ("don\u2019t 'quote'", ("don't", "quote")),
        ("snake_case and Ünïcode", ("snake_case", "and", "ünïcode")),
        ("塔 tower", ("塔", "tower")),
    ],
)
def test_tokens_are_folded_words_in_order(text, words):
    assert tokens(text) == words


def test_stop_words_are_tokens_themselves():
    assert all(tokens(word) == (word,) for word in STOP_WORDS)
    assert {"the", "and", "don't"} <= STOP_WORDS
    assert "needle" not in STOP_WORDS
