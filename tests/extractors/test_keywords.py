"""Keyword extractors: by statistics over the corpus, by KeyBERT and by YAKE."""

from __future__ import annotations

import importlib.util
import json
from functools import partial
from importlib.machinery import ModuleSpec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import (
    STOP_WORDS,
    Frequencies,
    KeyBertExtractor,
    KeywordExtractor,
    KeywordSettings,
    WordLlamaEmbeddings,
    YakeExtractor,
    add_links,
    find_candidates,
    find_runs,
    fold,
    get_links,
)
from langchain_core.documents import Document

from linkstore.errors import ExtractionError, MissingExtraError
from linkstore.extract import CorpusExtractor, LinkExtractor, QueryExtractor

CORPUS = [
    "The Space Needle is an observation tower in Seattle. Visitors of the tower see Mount Rainier.",
    "Lower Queen Anne is a neighbourhood of Seattle. The Space Needle stands close to it.",
    "Mount Rainier is an active volcano. Its glaciers feed five rivers.",
    "Pike Place Market is a public market in Seattle. Fish is thrown there.",
    "A volcano such as Mount Rainier is watched by geologists.",
    "The monorail runs to Pike Place Market from the tower.",
    "Glaciers shrink, and rivers carry less water in summer.",
    "Coffee was roasted at the public market first.",
]
TEXTS = st.lists(st.text(max_size=80) | st.sampled_from(CORPUS), max_size=8)


def observed(texts: list[str] = CORPUS, **options: object) -> KeywordExtractor:
    extractor = KeywordExtractor(KeywordSettings(**options))  # type: ignore[arg-type]
    extractor.observe(texts)
    return extractor


def tags(extractor: KeywordExtractor, text: str) -> list[str]:
    return [link.tag for link in extractor.extract(text)]


def test_it_speaks_all_three_protocols() -> None:
    extractor = KeywordExtractor()
    assert isinstance(extractor, LinkExtractor)
    assert isinstance(extractor, CorpusExtractor)
    assert isinstance(extractor, QueryExtractor)


def test_shared_words_and_phrases_become_keywords_and_phrases_stay_whole() -> None:
    assert set(tags(observed(), CORPUS[0])) == {"space needle", "mount rainier", "tower", "seattle"}
    assert set(tags(observed(), CORPUS[3])) == {"pike place market", "public market", "seattle"}


def test_documents_that_share_a_keyword_meet_in_one_group() -> None:
    extractor = observed()
    first, second = (Document(page_content=text) for text in CORPUS[:2])
    for document in (first, second):
        add_links(document, extractor.extract(document))
    shared = set(get_links(first)) & set(get_links(second))
    assert {link.tag for link in shared} == {"space needle", "seattle"}
    assert {(link.kind, link.direction) for link in shared} == {("keyword", "bidir")}


def test_a_label_is_the_keyword_as_first_written() -> None:
    links = {
        link.tag: link.label
        for link in observed().extract("Mount Rainier, MOUNT RAINIER and the SEATTLE rain")
    }
    assert links == {"mount rainier": "Mount Rainier", "seattle": "SEATTLE"}


def test_a_word_of_one_document_only_is_no_keyword() -> None:
    assert "coffee" not in tags(observed(), "coffee")
    assert "coffee" in tags(observed(min_documents=1), "coffee")


def test_the_rarer_of_two_keywords_weighs_more() -> None:
    extractor = observed(["x alpha beta."] * 2 + ["x beta."] * 3 + ["gamma delta."] * 20)
    weights = {link.tag: link.weight for link in extractor.extract("About alpha, about beta.")}
    assert 0 < weights["beta"] < weights["alpha"] <= 1


def test_a_keyword_of_too_many_documents_is_left_out_by_share_and_by_number() -> None:
    texts = ["common rare"] * 4 + ["common"] * 2 + ["other"] * 94
    assert tags(observed(texts, cohesion=1), "common, rare") == ["rare", "common"]
    assert tags(observed(texts, cohesion=1, max_share=0.05), "common, rare") == ["rare"]
    assert tags(observed(texts, cohesion=1, max_documents=4), "common, rare") == ["rare"]


def test_in_a_small_corpus_five_documents_are_never_too_many() -> None:
    assert tags(observed(["tower"] * 5), "tower") == ["tower"]
    assert tags(observed(["tower"] * 6), "tower") == []


def test_what_is_repeated_early_and_capitalised_comes_first() -> None:
    texts = ["zeta eta.", "zeta eta.", *["filler"] * 20]
    extractor = observed(texts, cohesion=1)
    assert tags(extractor, "About eta and zeta, then zeta.") == ["zeta", "eta"]
    assert tags(extractor, "About eta and Zeta.") == ["zeta", "eta"]
    assert tags(extractor, "About zeta." + " the" * 30 + " eta") == ["zeta", "eta"]


def test_a_capital_that_only_opens_a_sentence_counts_for_nothing() -> None:
    extractor = observed(["zeta"] * 2 + ["filler"] * 9)
    opening, inside, lower = (
        extractor.extract(text)[0].weight for text in ("Zeta is it.", "It is Zeta.", "It is zeta.")
    )
    assert opening == lower < inside


def test_no_more_keywords_than_asked_for() -> None:
    words = [f"word{letter}" for letter in "abcdefghijkl"]
    texts = [", ".join(words)] * 2 + ["filler"] * 20
    assert len(tags(observed(texts), texts[0])) == 8
    assert tags(observed(texts, max_keywords=2), texts[0]) == ["worda", "wordb"]


def test_stop_words_numbers_and_single_letters_are_no_keywords() -> None:
    assert find_candidates(find_runs("The 1962 fair, and a B or 42; __")) == {"fair"}
    assert "fair 1962" in find_candidates(find_runs("fair 1962"))


def test_hyphens_join_words_and_punctuation_parts_them() -> None:
    assert find_candidates(find_runs("open-source tools. Link groups")) == {
        "open", "source", "tools", "open source", "source tools", "open source tools",
        "link", "groups", "link groups",
    }  # fmt: skip


def test_overlong_words_are_skipped() -> None:
    assert find_candidates(find_runs("data " + "QUJD" * 3000 + " rest")) == {"data", "rest"}


def test_case_and_unicode_form_make_no_difference() -> None:
    extractor = observed(["Kaﬀee STRASSE"] * 2 + ["filler"] * 20)
    assert tags(extractor, "kaffee straße") == ["kaffee strasse"]


def test_a_question_names_known_keywords_only_in_its_order() -> None:
    links = observed().extract_query("What is near the space needle, Atlantis or pike-place market?")
    assert [(link.tag, link.label, link.direction) for link in links] == [
        ("space needle", "space needle", "out"),
        ("pike place market", "pike place market", "out"),
    ]
    assert all(0 < link.weight <= 1 for link in links)


def test_nothing_to_read_gives_no_links() -> None:
    assert observed().extract("") == ()
    assert observed().extract_query("") == ()


def test_without_a_corpus_there_is_an_error_and_not_nothing() -> None:
    extractor = KeywordExtractor()
    for extract in (partial(extractor.extract, CORPUS[0]), partial(extractor.extract_query, "Space Needle")):
        with pytest.raises(ExtractionError, match=r"observed 0 documents.*give all documents to observe\(\)"):
            extract()
    extractor.observe(["Nothing is known of it."])
    assert extractor.extract(CORPUS[0]) == ()


def test_observing_in_parts_is_observing_at_once_also_across_a_restart() -> None:
    first = observed(CORPUS[:4])
    saved = json.loads(json.dumps(first.statistics()))
    second = KeywordExtractor.from_statistics(saved)
    second.observe(Document(page_content=text) for text in CORPUS[4:])
    whole = observed()
    assert second.statistics() == whole.statistics()
    assert [second.extract(text) for text in CORPUS] == [whole.extract(text) for text in CORPUS]
    assert [link.weight for link in second.extract(CORPUS[0])] == [
        link.weight for link in whole.extract(CORPUS[0])
    ]


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"version": 2, "documents": 1, "frequencies": {}},
        {"version": 1, "documents": "1", "frequencies": {}},
        {"version": 1, "documents": 1, "frequencies": []},
        {"version": 1, "documents": 1, "frequencies": {"a": 2}},
        {"version": 1, "documents": 1, "frequencies": {"a": "1"}},
    ],
)
def test_damaged_statistics_are_refused(damaged: dict[str, object]) -> None:
    with pytest.raises(ExtractionError, match="observe the corpus again"):
        KeywordExtractor.from_statistics(damaged)


@pytest.mark.parametrize(
    "bad",
    [
        {"max_keywords": 0},
        {"min_documents": 0},
        {"max_documents": 1},
        {"max_share": 0.0},
        {"max_share": 1.5},
        {"cohesion": 2.0},
        {"max_candidates": 0},
    ],
)
def test_settings_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ExtractionError, match=next(iter(bad))):
        KeywordSettings(**bad)  # type: ignore[arg-type]


def test_the_table_stays_within_its_limit_and_keeps_what_is_frequent() -> None:
    frequencies = Frequencies(limit=100)
    for number in range(1000):
        frequencies.add({"frequent", *({"half"} if number % 2 else ()), f"rare {number}", f"scarce {number}"})
        assert len(frequencies) <= 100
    assert (frequencies["frequent"], frequencies["half"]) == (1000, 500)


def test_words_always_together_cohere_and_words_that_merely_meet_do_not() -> None:
    frequencies = Frequencies(limit=1000)
    for text in ["new york"] * 5 + ["new idea"] * 20 + ["old york"] * 20 + ["pike place"] * 5 + ["x y"] * 50:
        frequencies.add(find_candidates(find_runs(text)))
    assert frequencies.cohesion(["pike", "place"]) == pytest.approx(1)
    assert frequencies.cohesion(["new", "york"]) < 0
    assert frequencies.cohesion(["york", "place"]) == -1


@settings(max_examples=150)
@given(texts=TEXTS, text=st.text(max_size=120) | st.sampled_from(CORPUS))
def test_any_text_gives_valid_links_the_same_every_time(texts: list[str], text: str) -> None:
    texts = [*texts, text]  # without any there is an error
    extractor = observed(texts)
    links = extractor.extract(text)
    again = observed(texts).extract(text)
    assert [link.to_dict() for link in links] == [link.to_dict() for link in again]
    assert len({link.tag for link in links}) == len(links) <= 8
    for link in (*links, *extractor.extract_query(text)):
        assert link.tag == fold(link.tag)
        assert 0 < link.weight <= 1
        assert not STOP_WORDS & set(link.tag.split())


@pytest.mark.parametrize(
    ("factory", "module", "extra"),
    [(KeyBertExtractor, "keybert", "keybert"), (YakeExtractor, "yake", "yake")],
)
def test_a_missing_package_names_the_extra(
    factory: type[KeyBertExtractor | YakeExtractor],
    module: str,
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find_spec = importlib.util.find_spec

    def found(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == extra else find_spec(name, package)

    monkeypatch.setattr("linkstore_extractors.scored.find_spec", found)
    with pytest.raises(MissingExtraError, match=rf"langchain-linkstore\[{extra}\]"):
        factory()


@pytest.mark.skipif(importlib.util.find_spec("yake") is None, reason="the extra 'yake' is not installed")
def test_yake_finds_keywords_of_one_text() -> None:
    extractor = YakeExtractor(max_keywords=3)
    links = extractor.extract(Document(page_content=CORPUS[0]))
    assert links[0].tag == "space needle"
    assert links[0].label == "Space Needle"
    assert len(links) == 3
    assert all(type(link.weight) is float and 0 < link.weight <= 1 for link in links)
    assert [link.weight for link in links] == sorted((link.weight for link in links), reverse=True)
    asked = extractor.extract_query("Where is the Space Needle?")[0]
    assert (asked.tag, asked.direction) == ("space needle", "out")
    assert extractor.extract("") == ()


@pytest.mark.skipif(
    importlib.util.find_spec("keybert") is None, reason="the extra 'keybert' is not installed"
)
def test_keybert_takes_any_langchain_embedding() -> None:
    extractor = KeyBertExtractor(WordLlamaEmbeddings(), max_keywords=4, diversity=0.2)
    links = extractor.extract(Document(page_content=CORPUS[0]))
    assert len(links) == 4
    assert {link.tag for link in links} <= find_candidates(find_runs(CORPUS[0]))
    assert "observation tower" in {link.tag for link in links}
    assert all(type(link.weight) is float and 0 < link.weight <= 1 for link in links)
    assert extractor.extract_query("Where is the Space Needle?")[0].direction == "out"
    assert extractor.extract("of the") == ()


def test_words_of_many_documents_begin_and_end_no_phrase() -> None:
    """Articles and prepositions of a language whose stop words are not known."""
    texts = [
        "l'accès à la clé à distance",
        "clé à distance",
        *["distance à la clé"] * 4,
        *["vue à la part"] * 30,
    ]
    extractor = observed(texts, max_share=0.2)
    assert tags(extractor, "la clé à") == ["clé"]
    few = observed(["clé à distance"] * 3 + ["vue"] * 30)
    assert tags(few, "clé à distance") == ["clé à distance"]


def test_japanese_words_stand_between_hiragana() -> None:
    texts = ["設定ファイルを編集します。", "この設定ファイルは大切です。", *["filler"] * 20]
    assert tags(observed(texts), "設定ファイルの編集") == ["設定ファイル"]
