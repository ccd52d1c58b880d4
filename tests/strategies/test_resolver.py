"""One resolver of names: every way to say a name means the thing, and what is unsure is offered."""

from __future__ import annotations

import pytest
from internals import GRADES, Resolution, call_plan, make_unit_vector, parse_filter, resolve_name, run
from langchain_core.documents import Document

from linkstore import Link, LinkStore, add_links

DIMENSION = 256


def make_documents() -> list[Document]:
    def make(id: str, type: str, text: str = "It is old.", **names: object) -> Document:
        return Document(id=id, page_content=text, metadata={"type": type, **names})

    documents = [
        make("lh/77120", "Lighthouse", name="SS Karl Ove Rock"),
        make("lh/77121", "Lighthouse", name="Málaga Mole"),
        make("lh/77122", "Lighthouse", name="North Mole"),
        make("lh/77123", "Lighthouse", name="South Mole"),
        make("kp/1", "Keeper", name="Ingrid Halvorsen"),
        make("kp/2", "Keeper", name="Iris Halvorsen"),
        make("kp/3", "Keeper", name="Pádraig O'Shea"),
        make("org/1", "Authority", title="Northern Pilots and Lights Board", aliases=["the Lights"]),
        make("org/2", "Authority", title="ILC"),
        make("rule/R-7", "Rule", name="R-7"),
        make("rule/R-8", "Rule", name="R-8"),
        make("log", "Log", "Stormy Tuesday was when the lamp failed."),
        make("doc/x", "Log", "An entry.", url="https://lights.example/log/9"),
    ]
    documents += [
        make("buoy/n", "Buoy", name="ZA354"),
        make("job/1", "Job", title="OUT-2024-008"),
        make("job/2", "Job", title="OUT-2024-009"),
        make("act/1", "Act", title="Whales Act 2007", alias=["LA 2007"]),
        make("act/2", "Act", title="Wrecks Act 2007"),
        make("gift/1", "Gift", title="A bell", inventory="G.1931.27", since="2021-03-05"),
        make("mesh", "Mesh", title="SM_Kelp_05"),
        make("b/1", "Build", title="Build 0.8.2 Switch"),
        make("b/2", "Build", title="Build 0.8.2 PC"),
        make("note/1", "Note", title="Amendment 4 to HB 1/2022"),
    ]
    add_links(documents[11], Link.incoming(kind="mention", tag="the great failure"))
    return documents


@pytest.fixture(scope="module")
def store():
    with LinkStore() as store:
        store.add_documents(make_documents())
        yield store


def resolve(store: LinkStore, name: str, **filter: str) -> Resolution:
    plan = resolve_name(name, make_unit_vector(DIMENSION), parse_filter(filter))
    return run(call_plan(store.backend, plan))


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("lh/77120", "lh/77120"),
        ("[LH/77120]", "lh/77120"),
        ("77120", "lh/77120"),
        ("No. 77120", "lh/77120"),
        ("LH77120", "lh/77120"),
        ("https://lights.example/log/9", "doc/x"),
        ("SS Karl Ove Rock", "lh/77120"),
        ("karl ove rock", "lh/77120"),
        ("the Karl Ove Rock's", "lh/77120"),
        ("lighthouse Karl Ove Rock", "lh/77120"),
        ("Karl Ove Rocks", "lh/77120"),
        ("Karl Ove Rokc", "lh/77120"),
        ("malaga mole", "lh/77121"),
        ("north-mole", "lh/77122"),
        ("Halvorsen, Ingrid", "kp/1"),
        ("Pádraig OShea", "kp/3"),
        ("P. O'Shea", "kp/3"),
        ("Northern Pilots & Lights Board", "org/1"),
        ("NPLB", "org/1"),
        ("lights", "org/1"),
        ("Pilots and Lights", "org/1"),
        ("Inner Lakes Commission", "org/2"),
        ("r 7", "rule/R-7"),
        ("rule R-8", "rule/R-8"),
        ("za-354", "buoy/n"),
        ("354", "buoy/n"),
        ("8 of 2024", "job/1"),
        ("OUT 2024 9", "job/2"),
        ("wrekcs act 2007", "act/2"),
        ("g 1931 27", "gift/1"),
        ("Kelp_05", "mesh"),
        ("kelp 5", "mesh"),
        ("0.8.2 on Switch", "b/1"),
        ("Stormy Tuesday", "log"),
        ("The Great Failure", "log"),
    ],
)
def test_every_way_to_say_a_name_means_the_thing(store: LinkStore, name: str, id: str) -> None:
    resolution = resolve(store, name)
    assert resolution.document is not None, resolution
    assert resolution.document.id == id
    assert resolution.grade in GRADES


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("Mole", {"lh/77121", "lh/77122", "lh/77123"}),
        ("I. Halvorsen", {"kp/1", "kp/2"}),
        ("Halvorsen", {"kp/1", "kp/2"}),
        ("Captain Ingrid Halvorsen", {"kp/1"}),
        ("Nplb", {"org/1"}),
        ("Act 2007", {"act/1", "act/2"}),
    ],
)
def test_what_is_unsure_is_offered_and_not_taken(store: LinkStore, name: str, ids: set[str]) -> None:
    resolution = resolve(store, name)
    assert resolution.document is None
    assert ids <= {document.id for document in resolution.candidates}


@pytest.mark.parametrize(
    "name",
    [
        *("R-9", "77124", "Zealand", "West Bay", "", "[]", "\ud800", "the", "ZZZ", "Ingmar Nilsen", "kp"),
        *("Lotteries Act 2007", "Amendment 1 to HB 4/2022", "2021-03-05", "ZA345", "G 1931 28", "2007"),
        *("0.2.8 on Switch", "0.8.2 on PS5", "Kelp_06", "on Switch 8"),
    ],
)
def test_what_has_another_name_is_not_meant(store: LinkStore, name: str) -> None:
    assert resolve(store, name).document is None


def test_a_type_decides_between_names(store: LinkStore) -> None:
    assert resolve(store, "Lights", type="Rule") == Resolution()
    document = resolve(store, "Ingrid", type="Keeper").document
    assert document is not None
    assert document.id == "kp/1"


@pytest.mark.parametrize("left_out", [document.id for document in make_documents()[:9]])
def test_a_thing_that_is_not_there_is_not_mistaken_for_another(left_out: str) -> None:
    documents = make_documents()
    (absent,) = (document for document in documents if document.id == left_out)
    with LinkStore() as store:
        store.add_documents([document for document in documents if document is not absent])
        name = str(absent.metadata.get("name") or absent.metadata.get("title"))
        for spelling in (name, name.lower(), f"the {name}", f"{name}'s", f"{absent.metadata['type']} {name}"):
            assert resolve(store, spelling).document is None, spelling
