"""``linkstore facts``: what it prints, and the code it ends with."""

from __future__ import annotations

import json

import pytest
from documented import linkstore
from fact_cases import chunks
from rule_facts import model_by_rules

from linkstore import LinkStore
from linkstore.cli import exits

MODEL = ("--model", "by:rules")


def extract(place: str, *options: str) -> tuple[int, str, str]:
    """Run ``linkstore facts`` with the rules."""
    return linkstore("facts", *MODEL, "--store", place, "--facts", f"{place}-facts", *options)


@pytest.fixture
def place(tmp_path):
    with LinkStore.open(tmp_path / "kb") as store:
        store.add_documents(chunks())
    return str(tmp_path / "kb")


@pytest.fixture(autouse=True)
def by_rules(monkeypatch):
    """The model ``by:rules`` extracts facts as rules do."""
    known = {"by:rules": model_by_rules()}
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda name, **_: known[name])


def test_without_a_model_it_says_that_it_needs_one(place):
    code, out, err = linkstore("facts", "--store", place)
    assert (code, out) == (2, "")
    assert "--model" in err


def test_facts_are_extracted_once(place):
    first = extract(place)
    code, out, _ = extract(place, "--json")

    assert first[0] == code == 0
    assert "extracted 7 facts of 3 chunks" in first[1]
    assert (json.loads(out)["extracted"], json.loads(out)["unchanged"]) == (0, 3)


def test_a_dry_run_says_what_it_would_cost(place):
    code, out, _ = extract(place, "--dry-run")

    assert code == 0
    assert "would extract the facts of 3 chunks" in out
    assert "3 of a model" in out


def test_one_chunk_is_not_called_chunks(tmp_path):
    place = str(tmp_path / "one")
    with LinkStore.open(place) as store:
        store.add_documents(chunks()[:1])

    _, planned, _ = extract(place, "--dry-run")
    _, done, _ = extract(place)

    assert "would extract the facts of 1 chunk\n" in planned
    assert " of 1 chunk\n" in done


def test_the_facts_can_be_searched_as_a_store(place):
    extract(place)

    _, out, _ = linkstore("query", "born in Domrémy", "--store", f"{place}-facts", "--json", "-k", "3")

    assert "fact:joan:2" in [hit["id"] for hit in json.loads(out)]


def test_without_store_or_model_the_error_is_named(place, tmp_path):
    missing = extract(str(tmp_path / "none"))
    unknown = linkstore("facts", "--store", place, "--facts", "f", "--model", "nobody:knows")

    assert missing[0] == exits.NOT_FOUND
    assert unknown[0] == exits.OTHER
    assert "nobody:knows" in unknown[2]


def test_without_a_place_for_facts_it_says_that_it_needs_one(place):
    code, _, err = linkstore("facts", *MODEL, "--store", place)
    assert code == 2
    assert "--facts" in err


def test_facts_of_deleted_documents_go_and_can_be_erased(place, tmp_path):
    extract(place)
    with LinkStore.open(place) as store:
        gone = next(iter(store.scan()))
    linkstore("delete", "--chunk", gone.id, "--store", place)

    assert extract(place)[0] == 0
    for kept in (place, f"{place}-facts"):
        assert linkstore("delete", "--erase", "--store", kept)[0] == 0

    text = gone.page_content.split(".")[0].encode()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and text in path.read_bytes()]
