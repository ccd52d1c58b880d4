"""Capitalised phrases that few documents share become links; GLiNER's entities do as an extra."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import (
    EntityExtractor,
    EntitySettings,
    GlinerExtractor,
    Link,
    SharedPhrases,
    UpkeepExtractor,
    find_phrases,
    tokenize,
)
from langchain_core.documents import Document

from linkstore.errors import ExtractionError, MissingExtraError


def text(content, **metadata):
    return Document(page_content=content, metadata=metadata)


def tags(content):
    return [tag for tag, _ in find_phrases(content)]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("He met Steven Spielberg in New York.", ["steven spielberg", "new york"]),
        ("The University of the West Indies lies there", ["university of the west indies", "west indies"]),
        ("After Leonardo da Vinci, nobody", ["leonardo da vinci"]),
        ("Home of the Space Needle", ["home of the space needle", "space needle"]),
        ("Simon and Garfunkel. He sang.", ["simon and garfunkel"]),
        ("J. R. R. Tolkien met C. S. Lewis.", ["j r r tolkien", "c s lewis"]),
        ("Dr. Watson of St. Pancras", ["dr watson of st pancras", "dr watson", "st pancras"]),
        ("Martin Luther King Jr. Day", ["martin luther king jr day"]),
        ("Expo 1962 in Seattle, Washington", ["expo 1962"]),
        ("Élan Vital, Андрей Тарковский", ["élan vital", "андрей тарковский"]),
        ("The Beatles. In Paris. Such Was The", []),
        ("A line\nbreak: Space\nNeedle, but Space\n\nNeedle", ["space needle"]),
        ("lower case words only, 1962 2000", []),
        (" ".join(["Word"] * 9), []),
    ],
)
def test_a_phrase_is_two_or_more_words_written_as_a_name_is(content, found):
    assert tags(content) == found


@given(st.text(max_size=80))
def test_tags_are_folded_words_of_the_text(content):
    for tag, written in find_phrases(content):
        assert written in content
        assert tag == " ".join(tokenize(written))


def test_documents_that_share_a_phrase_meet_in_its_group():
    extractor = EntityExtractor()
    corpus = [text("Mount Rainier is high."), text("See Mount  Rainier or MOUNT RAINIER"), text("Mount Hood")]
    extractor.observe(corpus)

    assert extractor.extract(corpus[0]) == (Link.bidir(kind="entity", tag="mount rainier"),)
    assert extractor.extract(corpus[1])[0].label == "MOUNT RAINIER"
    assert extractor.extract(corpus[1])[0].weight == 0.3
    assert extractor.extract(corpus[2]) == ()
    assert isinstance(extractor, UpkeepExtractor)


def test_what_one_document_holds_or_many_do_joins_nothing():
    extractor = EntityExtractor(EntitySettings(most_documents=3))
    corpus = [text("United States")] * 4 + [text("Space Needle, Space Needle")]
    extractor.observe(corpus)
    assert {extractor.extract(one) for one in corpus} == {()}


def test_titles_count_also_those_of_one_word():
    extractor = EntityExtractor()
    corpus = [text("a town", title="Springfield"), text("a city", title="Springfield (Ohio)", aliases=["Sp"])]
    extractor.observe(corpus)
    assert [extractor.extract(one)[0].tag for one in corpus] == ["springfield"] * 2
    assert extractor.extract(corpus[0])[0].label is None


def test_a_review_names_the_documents_that_hold_what_changed():
    extractor = EntityExtractor()
    review = extractor.review({"mount hood": 1, "mount adams": 1}, {"mount hood": 1, "mount rainier": 1})
    found = [review(text(one)) for one in ["Mount Rainier", "Mount Hood", "Mount Adams", "Mount Hood"]]

    assert found == [True, False, True, False]
    assert [link.tag for link in extractor.extract(text("Mount Hood, Mount Rainier"))] == ["mount hood"]


@pytest.mark.parametrize("settings", [{"most_documents": 1}, {"weight": 0}, {"weight": 2}, {"kind": ""}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ExtractionError):
        EntitySettings(**settings)


@given(st.lists(st.sets(st.sampled_from("abcdef")), max_size=8), st.integers(2, 4), st.integers(0, 7))
def test_sharing_counts_documents_exactly_also_when_asked_on_the_way(documents, most, asked_after):
    sharing = SharedPhrases(2, most)
    for number, words in enumerate(documents):
        sharing.add(sorted(words))
        if number == asked_after:
            sharing.select_shared(["a"])
    counts = {word: sum(word in words for words in documents) for word in "abcdef"}
    assert sharing.select_shared(list("fedcba")) == [word for word in "fedcba" if 2 <= counts[word] <= most]


def test_sharing_keeps_its_counts_over_many_blocks(monkeypatch):
    monkeypatch.setattr("linkstore_extractors.entities._BLOCK", 3)
    sharing = SharedPhrases(2, 3)
    for number in range(20):
        sharing.add([f"p{number}", f"p{number // 2}", "all"])
    assert sharing.select_shared(["all", "p1", "p12", "p19"]) == ["p1"]


class FakeModel:
    """Finds the words it knows, as GLiNER answers."""

    def __init__(self):
        self.asked = []

    def predict_entities(self, content, labels, **options):
        self.asked.append((content, labels, options))
        known = ["Space Needle", "Bo", "1962", "Seattle"]
        found = [
            {"text": word, "start": content.find(word), "end": 0, "score": 0.9, "label": "x"}
            for word in known
            if word in content
        ]
        return found[::-1]


def test_gliner_gives_the_entities_its_model_finds_in_order():
    model = FakeModel()
    extractor = GlinerExtractor(model, labels=["place"], threshold=0.4)
    links = extractor.extract(text("Seattle's Space Needle of 1962, by Bo. Seattle."))

    assert links == (
        Link.bidir(kind="entity", tag="seattle"),
        Link.bidir(kind="entity", tag="space needle"),
    )
    assert [(link.label, link.weight) for link in links] == [("Seattle", 0.3), ("Space Needle", 0.3)]
    assert model.asked[0][1:] == (["place"], {"threshold": 0.4})
    assert extractor.extract_query("Where is Seattle?") == links[:1]


def test_links_of_gliner_can_say_how_sure_its_model_is():
    links = GlinerExtractor(FakeModel(), scored=True).extract(text("The Space Needle."))
    assert [(link.weight, link.data) for link in links] == [(0.3, {"type": "x", "confidence": 0.9})]


def test_gliner_reads_long_texts_in_pieces_cut_between_words():
    model = FakeModel()
    content = "word " * 1000 + "Then. " + "word " * 230 + "Space Needle " + "x" * 3000
    assert [link.tag for link in GlinerExtractor(model).extract(text(content))] == ["space needle"]
    pieces = [piece for piece, _, _ in model.asked]
    assert "".join(pieces) == content
    assert max(map(len, pieces)) <= 1200
    assert GlinerExtractor(FakeModel()).extract(text("  ")) == ()


def test_gliner_refuses_settings_out_of_range():
    for settings in ({"labels": []}, {"threshold": 2}, {"weight": 0}, {"kind": ""}):
        with pytest.raises(ExtractionError):
            GlinerExtractor(FakeModel(), **settings)


def test_a_missing_gliner_names_the_extra(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "linkstore_extractors.gliner.find_spec", lambda name: None if name == "gliner" else find_spec(name)
    )
    with pytest.raises(MissingExtraError, match=r"langchain-linkstore\[gliner\]"):
        GlinerExtractor()
