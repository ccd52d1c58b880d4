"""Where relations meet, which documents a question names, and what is valid now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from harbour import harbour
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.errors import StrategyError
from linkstore.strategies import AllPaths, Named, PageRank, Relations
from linkstore.strategies.relations import find_states, is_asked_for


def meetings(documents: list[Document], question: str, **settings: object) -> set[str]:
    with LinkStore() as store:
        store.add_documents(documents)
        hits = store.search(question, strategy=Relations(**settings))
        return {str(hit.document.id) for hit in hits if hit.contributions.get("meeting")}


def test_relations_of_what_is_named_meet_along_links_and_against_them() -> None:
    assert meetings(harbour(), "Which rules must the Albatross keep in its ports?") == {"r1", "r2"}
    assert meetings(harbour(), "rules cormorant") == {"r3"}
    assert meetings(harbour(), "Which rules are there?") == set()


@pytest.mark.parametrize(
    "states",
    [
        {"status": ("ACTIVE", "WITHDRAWN")},
        {"permit_state": ("granted", "not granted")},
        {"in_force": (True, False)},
        {"revoked": (False, True)},
        {"validUntil": ((datetime.now(UTC) + timedelta(days=9)).date().isoformat(), "2019-03-31")},
        {"status": ("active", "zzz")},
    ],
    ids=str,
)
def test_what_is_not_valid_now_leads_nowhere_and_is_told(states: dict[str, object]) -> None:
    assert meetings(harbour(**states), "What must the Albatross keep in its ports?") == {"r1"}
    with LinkStore() as store:
        store.add_documents(harbour(**states))
        hits = store.search("What must the Albatross keep in its ports?", strategy=Relations())
        (cut,) = (cut for cut in hits.cuts if cut.reason == "state")
        assert "[p2]" in cut.detail


def test_a_state_that_the_question_names_is_the_one_that_is_meant() -> None:
    documents = harbour(status=("active", "withdrawn"))
    assert meetings(documents, "Which rules did the Albatross keep by its withdrawn permits?") == {"r2"}
    assert meetings(documents, "Albatross rules, without its withdrawn permits") == {"r1"}


def test_of_states_that_nobody_knows_none_is_taken_for_valid() -> None:
    assert meetings(harbour(status=("B7", "K2")), "rules of the Albatross") == set()
    assert meetings(harbour(status="B7"), "rules of the Albatross") == {"r1", "r2"}


def test_types_and_conditions_decide_where_they_are_given() -> None:
    documents = harbour(status=("B7", "K2"))
    asked = {"start_type": "Ship", "result_type": "Rule", "where": {"Permit": {"status": "K2"}}}
    assert meetings(documents, "rules of the Albatross", **asked) == {"r2"}
    assert meetings(documents, "what binds a ship with grain?", **asked) <= {"r2"}
    with pytest.raises(StrategyError, match="where must have a condition"):
        Relations(where={"Permit": "K2"})  # type: ignore[dict-item]


def test_what_has_only_something_in_common_does_not_meet() -> None:
    """Notes that discuss the ship and a rule make no third relation; a second ship is another matter."""
    notes = Document(
        id="n",
        page_content="Notes.",
        metadata={
            "type": "Note",
            "links": [{"kind": "ABOUT", "tag": one, "direction": "out"} for one in ("s1", "r5")],
        },
    )
    documents = harbour()
    for one in documents:
        one.metadata["links"].append({"kind": "ABOUT", "tag": str(one.id), "direction": "in"})
    assert meetings([*documents, notes], "Which rules must the Albatross keep?") == {"r1", "r2"}


def test_documents_are_named_by_title_alias_id_first_words_and_rare_words() -> None:
    texts = [
        Document(id="doc/7f", page_content="On harbours.", metadata={"title": "The Long Sands"}),
        Document(id="b", page_content="Lights, as Nick kept them.", metadata={"aliases": ["Old Nick"]}),
        Document(id="reports/quarterly-2020", page_content="On money."),
        Document(id="d", page_content="Gannet was built in 1901."),
        Document(id="e", page_content="In that year Skua sailed."),
        *(Document(id=f"f{n}", page_content="The field of farming and ships.") for n in range(5)),
    ]
    with LinkStore() as store:
        store.add_documents(texts)
        for question, named in {
            "where are the long sands?": {"doc/7f"},
            "old nick's lamp": {"b"},
            "see reports/quarterly-2020, please": {"reports/quarterly-2020"},
            "when was gannet built": {"d"},
            "did skua sail": {"e"},
            "the field and farming": set(),
            "what sailed where": set(),
        }.items():
            assert {hit.document.id for hit in store.search(question, strategy=Named())} == named, question


@pytest.mark.parametrize("strategy", [PageRank(start_k=1, k=3), AllPaths(start_k=1, depth=1)], ids=repr)
def test_a_name_decides_before_common_words_do(strategy: PageRank | AllPaths) -> None:
    """The named document is a start, though others share more words with the question."""
    with LinkStore() as store:
        store.add_documents(
            [
                Document(id="named", page_content="Gannet: built of oak, and lost."),
                *(
                    Document(id=f"w{n}", page_content="Which rules apply to a ship in a port?")
                    for n in range(9)
                ),
            ]
        )
        found = store.search("Which rules apply to the ship Gannet in a port?", strategy=strategy)
        assert "named" in {hit.document.id for hit in found}


def test_what_says_nothing_about_validity_is_no_state() -> None:
    plain = {"title": "closed", "open_access": None, "n": 3, "colour": "withdrawn", "tags": ["expired"]}
    assert list(find_states(plain)) == []
    assert [told for *_, told in find_states({"status": "in force", "state": "no longer valid"})] == [
        "valid",
        "over",
    ]
    assert is_asked_for("the withdrawn ones", "WITHDRAWN")
    assert not is_asked_for("not the withdrawn ones", "WITHDRAWN")
    assert not is_asked_for("the ones", "WITHDRAWN")
