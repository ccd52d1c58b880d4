"""Titles named in texts become links, by rules that are stated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import (
    MAX_NAME_WORDS,
    MOST_NAME_WORDS,
    NAMING_KINDS,
    Automaton,
    Link,
    MentionExtractor,
    MentionSettings,
    UpkeepExtractor,
    find_written_forms,
    make_haystack,
    make_name_tag,
    tokenize,
)
from langchain_core.documents import Document

from linkstore.errors import ExtractionError

WORDS = ["\u037a", "New", "York", "City", "new", "york", "O'Neill", "Élan", "is", "İzmir", "ß", "½", "1984"]
WORDS += [
    "हिन्दी",
    "தமிழ்",
    "\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd",
    "soft\u00adhyphen",
    "\u0645\u06cc\u200c\u062e",
    "\u0301",
]
TEXTS = st.text(max_size=40) | st.lists(
    st.sampled_from([*WORDS, ",", " ", "  ", "-", "\u2019", "'", "—", "\n"]), max_size=30
).map(" ".join)


def titled(title, text="", *, aliases=None, **metadata):
    metadata |= {"title": title} if aliases is None else {"title": title, "aliases": aliases}
    return Document(id=title, page_content=text, metadata=metadata)


def mentioned(text, *titles, **settings):
    """(tag, label) of the mentions that a text has of these titles."""
    extractor = MentionExtractor(MentionSettings(**settings))
    extractor.observe([titled(title) for title in titles])
    return [(link.tag, link.label) for link in extractor.extract(Document(page_content=text))]


def test_a_title_named_in_a_text_is_a_link_with_the_words_as_written():
    films = titled("E.T. the Extra-Terrestrial", "A film by Steven  Spielberg.")
    man = titled("Steven Spielberg", "A director.")
    extractor = MentionExtractor()
    extractor.observe([films, man])

    assert extractor.extract(films) == (
        Link.incoming(kind="mention", tag="e t the extra terrestrial"),
        Link.outgoing(kind="mention", tag="steven spielberg"),
    )
    assert extractor.extract(films)[1].label == "Steven  Spielberg"
    assert extractor.extract(films)[1].weight == 1.0


def test_aliases_are_names_too():
    city = titled("New York City", aliases=["Big Apple", "Gotham", 7, None, "The"])
    extractor = MentionExtractor()
    extractor.observe([city])

    assert extractor.keys(city) == {"new york city", "big apple", "gotham"}
    assert [link.tag for link in extractor.extract(Document(page_content="The Big Apple, Gotham"))] == [
        "big apple",
        "gotham",
    ]


@pytest.mark.parametrize(
    "metadata", [{}, {"title": None}, {"title": 3}, {"title": "A b", "aliases": "Gotham"}]
)
def test_what_is_no_name_is_passed_over(metadata):
    assert MentionExtractor().keys(Document(page_content="", metadata=metadata)) == frozenset()


@pytest.mark.parametrize(
    ("title", "tag"),
    [
        ("Mercury (planet)", "mercury"),
        ("Mercury (planet) (1999)", None),
        ("Straße 7", "strasse 7"),
        ("O\u2019Neill, Eugene", "o'neill eugene"),
        ("Rio", None),
        ("1984", None),
        ("The Who", None),
        ("It", None),
        ("(brackets only)", None),
        ("", None),
        ("one two three four five six seven eight", "one two three four five six seven eight"),
        ("one two three four five six seven eight nine", None),
        ("x" * 65, None),
        ("東京都庁", "東京都庁"),
    ],
)
def test_trivial_names_are_none(title, tag):
    expected = "mercury planet" if title.endswith("(1999)") else tag
    assert make_name_tag(title) == expected


def test_names_are_what_queries_are_searched_for():
    assert MentionExtractor().kinds <= set(NAMING_KINDS)
    assert MOST_NAME_WORDS <= MAX_NAME_WORDS
    assert make_name_tag("The  Café - Société (film)") == " ".join(tokenize("the café société"))


def test_the_longest_name_counts_and_names_may_stand_side_by_side():
    found = mentioned("New York City New York Yankees", "New York", "New York City", "City New", "Yankees")
    assert [tag for tag, _ in found] == ["new york city", "new york", "yankees"]


def test_only_whole_words_are_names_whatever_stands_between_them():
    text = "Mercury,\nNevada; no Mercury Nevadan, no xMercury Nevada"
    assert mentioned(text, "Mercury, Nevada") == [("mercury nevada", "Mercury,\nNevada")]
    assert mentioned("Mercury Nevadan, xMercury Nevada", "Mercury, Nevada") == []
    assert mentioned("the newer Yorks", "new", "York", "New York") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [("the time of mercury", []), ("TIME and Mercury", ["time", "mercury"]), ("of 東京都庁", ["東京都庁"])],
)
def test_a_single_word_must_be_written_as_a_name_is(text, found):
    assert [tag for tag, _ in mentioned(text, "Time", "Mercury", "東京都庁")] == found


def test_words_of_a_longer_name_need_no_capitals():
    assert mentioned("a space needle", "Space Needle") == [("space needle", "space needle")]


def test_the_first_mention_that_counts_gives_the_label():
    assert mentioned("time, Time, TIME", "Time") == [("time", "Time")]


def test_a_name_that_many_bear_names_none_of_them_but_stays_theirs():
    bearers = [Document(id=str(n), page_content="", metadata={"title": "Springfield"}) for n in range(3)]
    extractor = MentionExtractor(MentionSettings(shared=2))
    extractor.observe(bearers[:2])
    text = Document(page_content="Springfield")
    assert [link.tag for link in extractor.extract(text)] == ["springfield"]

    extractor.observe(bearers[2:])
    assert extractor.extract(text) == ()
    assert extractor.extract(bearers[0]) == (Link.incoming(kind="mention", tag="springfield"),)


def test_a_document_mentions_itself_only_where_another_bears_the_name():
    one, other = titled("Springfield", "Springfield is a town."), titled("Springfield (Ohio)")
    extractor = MentionExtractor()
    extractor.observe([one])
    assert [link.direction for link in extractor.extract(one)] == ["in"]

    extractor.observe([other])
    assert [link.direction for link in extractor.extract(one)] == ["in", "out"]


def test_of_a_page_in_chunks_the_first_bears_the_name():
    def chunk(name, url):
        return Document(
            id=name, page_content="Fremont", metadata={"title": "Fremont", "page": "f.html", "url": url}
        )

    chunks = [chunk("f.html", "f.html"), chunk("f.html#a", "f.html#a"), chunk("f.html~2", "f.html")]
    extractor = MentionExtractor()
    extractor.observe(chunks)

    assert [extractor.extract(one) for one in chunks] == [
        (Link.incoming(kind="mention", tag="fremont"),),
        (),
        (),
    ]
    assert [link.tag for link in extractor.extract(Document(page_content="In Fremont"))] == ["fremont"]


def test_a_review_names_the_texts_that_hold_what_changed():
    extractor = MentionExtractor()
    new = titled("Space Needle")
    review = extractor.review({"kept": 2, "gone tower": 1}, {"kept": 2, "space needle": 1})
    texts = ["the Space Needle", "the Gone Tower", "the kept Needle"]
    found = [review(one) for one in [new, *(Document(page_content=text) for text in texts)]]

    assert found == [False, True, True, False]
    assert [link.tag for link in extractor.extract(Document(page_content=texts[0]))] == ["space needle"]


def test_without_names_nothing_is_found():
    assert MentionExtractor().extract(Document(page_content="Any text.")) == ()
    assert not Automaton([]).occurs("Any text.")
    assert isinstance(MentionExtractor(), UpkeepExtractor)


@pytest.mark.parametrize("settings", [{"shared": 0}, {"weight": 0}, {"weight": 1.5}, {"kind": ""}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ExtractionError):
        MentionSettings(**settings)


@given(TEXTS)
def test_a_haystack_has_the_words_of_the_text(text):
    words = tokenize(text)
    assert make_haystack(text).decode() == (f" {'  '.join(words)} " if words else "")


@given(TEXTS, st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), max_size=5))
def test_the_automaton_finds_what_reading_word_by_word_finds(text, given_names):
    names = {" ".join(tokenize(name)) for name in given_names} - {""}
    words, expected, at = tokenize(text), [], 0
    while at < len(words):
        fits = [n for n in range(len(words), at, -1) if " ".join(words[at:n]) in names]
        expected += [" ".join(words[at : fits[0]])] if fits else []
        at = fits[0] if fits else at + 1

    matches = Automaton(sorted(names)).find(text)
    assert [name for name, _, _ in matches] == expected
    written = find_written_forms(text, [(start, end) for _, start, end in matches])
    for (name, _, _), label in zip(matches, written, strict=True):
        assert label is None or (label in text and " ".join(tokenize(label)) == name)
        assert label is not None or not text.isascii()
