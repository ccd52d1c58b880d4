"""Names as people write them: numbers, short names, aliases, slips; and what several things are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from internals import is_slip
from langchain_core.documents import Document
from named import Named
from tool_cases import make_all_tools

from linkstore import LinkStore
from linkstore.strategies import AllPaths


def describe(id: str, text: str, name: str, aliases: Sequence[str] = ()) -> Document:
    return Document(id=id, page_content=text, metadata={"name": name, "aliases": list(aliases)})


HUTS = [
    describe("hut/30410", "Built of larch in 1931; forty beds.", "Rifugio Monte Orsaro", ["Orsarohütte"]),
    describe("hut/30417", "A red tin box for six below the summit.", "Bivacco Monte Orsaro"),
    describe("hut/30424", "On the shore; sixty beds and a chapel.", "Rifugio Lago Verde"),
    describe("hut/30431", "Closed in winter; the warden lives in Sion.", "Refuge Vieux Glacier"),
]
ENGINES = [
    describe("loco:46220", "LNR Duchess of Thornbury was scrapped at Crewe.", "LNR Duchess of Thornbury"),
    describe("loco:46221", "LNR Duchess of Alderley runs on Sundays.", "LNR Duchess of Alderley"),
    describe("loco:46222", "The Flying Fenman held a record.", "The Flying Fenman"),
    describe("loco:46223", "GWX Prince Palatine burnt oil.", "GWX Prince Palatine"),
    Document(id="e5", page_content="SS Coral Heron has two boilers by Hawthorn."),
]
PLANETS = [
    describe("mpc/31415", "Kasparova turns once in nine hours.", "(31415) Kasparova"),
    describe("mpc/27182", "Eulerina crosses the orbit of Mars.", "(27182) Eulerina"),
]
PROSE = [
    Document(id=f"p{number}", page_content=text, metadata={"title": text.split(":")[0]})
    for number, text in enumerate(
        [
            "Booking a bed: in winter, huts are closed and booking a bed takes a letter.",
            "Lighting a boiler: water first, and never lighting a boiler alone.",
            "On tin boxes: what a summit needs. The tin of boxes does not rust on the shore of a lake.",
        ]
    )
]


@pytest.fixture(scope="module")
def museum() -> Iterator[LinkStore]:
    with LinkStore() as store:
        store.add_documents([*HUTS, *ENGINES, *PLANETS, *PROSE])
        yield store


def name_documents(store: LinkStore, question: str) -> set[str]:
    return {str(hit.document.id) for hit in store.search(question, strategy=Named())}


@pytest.mark.parametrize(
    ("question", "id"),
    [
        ("how many beds has hut 30424?", "hut/30424"),
        ("What is known of 31415?", "mpc/31415"),
        ("who is the warden of vieux glacier?", "hut/30431"),
        ("When was the duchess of thornbury scrapped?", "loco:46220"),
        ("does the orsarohütte have a chapel", "hut/30410"),
        ("Flying Fenman's record", "loco:46222"),
        ("lago verde's beds", "hut/30424"),
        ("prince palatin fuel", "loco:46223"),
        ("what did duchess of thronbury weigh", "loco:46220"),
        ("coral heron boilers", "e5"),
    ],
)
def test_a_question_names_what_people_mean(museum: LinkStore, question: str, id: str) -> None:
    assert name_documents(museum, question) == {id}


@pytest.mark.parametrize(
    "question",
    [
        "how do I book a bed in winter",
        "how many beds are there",
        "started with a boiler in summer",
        "are red boxes of tin good",
        "did the vieux guide cross a glacier",
        "number 30425 please",
        "turning once in eight hours",
    ],
)
def test_ordinary_words_are_no_names(museum: LinkStore, question: str) -> None:
    """Words of titles in small letters, numbers of nothing, words of a name in another order."""
    short = {"hut/30410", "hut/30417", "hut/30424", "hut/30431", "loco:46220", "loco:46221", "loco:46222"}
    assert not name_documents(museum, question) & {*short, "mpc/31415", *(str(one.id) for one in PROSE)}


def test_a_short_name_of_two_things_is_a_choice(museum: LinkStore) -> None:
    hits = museum.search("beds on Monte Orsaro", strategy=Named())
    assert not hits
    assert hits.reason == (
        "the query names no document: 'monte orsaro' may mean [hut/30410] Rifugio Monte Orsaro, "
        "[hut/30417] Bivacco Monte Orsaro; name one by its id"
    )
    (cut,) = (
        cut for cut in museum.search("beds on Monte Orsaro", strategy=AllPaths()).cuts if cut.reason == "name"
    )
    assert cut.count == 2
    (tool,) = (tool for tool in make_all_tools(museum) if tool.name == "match")
    assert "'Monte Orsaro' may mean [hut/30410]" in tool.invoke(
        {"query": "MATCH (x {name: 'Monte Orsaro'}) RETURN x"}
    )


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("30424", "hut/30424"),
        ("hut 30424", "hut/30424"),
        ("MPC 27182", "mpc/27182"),
        ("the Vieux Glacier", "hut/30431"),
        ("Orsarohütte", "hut/30410"),
        ("palatine", "loco:46223"),
        ("flying fenman's", "loco:46222"),
        ("Kasparvoa", "mpc/31415"),
        ("Lagoo Verde", "hut/30424"),
        ("Coral Heron", "e5"),
        ("E5", "e5"),
        ("HUT/30424", "hut/30424"),
    ],
)
def test_a_tool_takes_a_name_as_people_write_it(museum: LinkStore, name: str, id: str) -> None:
    (read,) = (tool for tool in make_all_tools(museum) if tool.name == "read")
    assert f"[{id}]" in read.invoke({"id": name}).splitlines()[0]


def test_what_several_are_called_or_none_is_said(museum: LinkStore) -> None:
    (follow,) = (tool for tool in make_all_tools(museum) if tool.name == "follow")
    told = follow.invoke({"id": "duchess"})
    assert "'duchess' may mean [loco:46220] LNR Duchess of Thornbury, " in told
    for name in ("winter", "30425", "Kasparovski", "of the", "no such"):
        assert f"no document has the id or name {name!r}; take ids" in follow.invoke({"id": name})


def test_a_word_that_too_many_have_leads_to_a_choice() -> None:
    """Only some of the documents with the word are read, so nobody knows whether one alone is meant."""
    with LinkStore() as store:
        store.add_documents([describe(f"t{n}", "A tide " * (n < 60), f"Tide {n}") for n in range(61)])
        (follow,) = (tool for tool in make_all_tools(store) if tool.name == "follow")
        assert " and 45 more; name one by its id" in follow.invoke({"id": "Tide"})


@pytest.mark.parametrize(
    ("asked", "word", "alone"),
    [
        ("pacfic", "pacific", True),
        ("palatyne", "palatine", True),
        ("tied", "tide", False),
        ("heronn", "heron", False),
    ],
)
def test_one_letter_makes_a_slip(asked: str, word: str, alone: bool) -> None:
    assert is_slip(asked, word, alone=alone)
    assert is_slip(word, asked, alone=alone)


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ("tide", "tide"),
        ("tide", "tame"),
        ("9100019", "9100018"),
        ("barlow", "marlow"),
        ("tides", "tie"),
        ("ode", "odd"),
    ],
)
def test_other_differences_make_none(asked: str, word: str) -> None:
    assert not is_slip(asked, word, alone=False)
