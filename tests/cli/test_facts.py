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


@pytest.fixture
def place(tmp_path):
    with LinkStore.open(tmp_path / "kb") as store:
        store.add_documents(chunks())
    return str(tmp_path / "kb")


@pytest.fixture(autouse=True)
def by_rules(monkeypatch):
    """The model ``by:rules`` extracts facts as the rules of the benchmarks do."""
    known = {"by:rules": model_by_rules()}
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda name, **_: known[name])


def test_without_a_model_it_says_that_it_needs_one(place):
    code, out, err = linkstore("facts", "--store", place)
    assert (code, out) == (2, "")
    assert "--model" in err


def test_facts_are_extracted_once(place):
    first = linkstore("facts", *MODEL, "--store", place)
    code, out, _ = linkstore("facts", *MODEL, "--store", place, "--json")

    assert first[0] == code == 0
    assert "extracted 7 facts of 3 chunks" in first[1]
    assert (json.loads(out)["extracted"], json.loads(out)["unchanged"]) == (0, 3)


def test_a_dry_run_says_what_it_would_cost(place):
    code, out, _ = linkstore("facts", *MODEL, "--store", place, "--dry-run")

    assert code == 0
    assert "would extract the facts of 3 chunks" in out
    assert "3 of a model" in out


def test_one_chunk_is_not_called_chunks(tmp_path):
    place = str(tmp_path / "one")
    with LinkStore.open(place) as store:
        store.add_documents(chunks()[:1])

    _, planned, _ = linkstore("facts", *MODEL, "--store", place, "--dry-run")
    _, done, _ = linkstore("facts", *MODEL, "--store", place)

    assert "would extract the facts of 1 chunk\n" in planned
    assert " of 1 chunk\n" in done


def test_the_facts_can_be_searched_as_a_store(place):
    linkstore("facts", *MODEL, "--store", place)

    _, out, _ = linkstore("query", "born in Domrémy", "--store", f"{place}/facts", "--json", "-k", "3")

    assert "fact:joan:2" in [hit["id"] for hit in json.loads(out)]


def test_a_report_shows_what_the_index_of_facts_has(place):
    none = linkstore("facts", "--report", "--store", place)
    linkstore("facts", *MODEL, "--store", place)
    code, out, _ = linkstore("facts", "--report", "--store", place)
    as_json = json.loads(linkstore("facts", "--report", "--store", place, "--json")[1])

    assert none[0] == exits.NOT_FOUND
    assert "there are no facts of" in none[2]
    assert code == 0
    assert out.splitlines()[0] == "facts     7 of 3 chunks"
    assert "3 joan of arc" in out
    assert (as_json["facts"], as_json["top"][0]) == (7, ["joan of arc", 3])


def test_without_store_or_model_the_error_is_named(place, tmp_path):
    missing = linkstore("facts", *MODEL, "--store", str(tmp_path / "none"))
    unknown = linkstore("facts", "--store", place, "--model", "nobody:knows")

    assert missing[0] == exits.NOT_FOUND
    assert unknown[0] == exits.OTHER
    assert "nobody:knows" in unknown[2]


def test_facts_of_deleted_documents_are_named_and_can_be_erased(place, tmp_path):
    linkstore("facts", *MODEL, "--store", place)
    with LinkStore.open(place) as store:
        gone = next(iter(store.scan()))

    for command in (["delete", "--chunk", gone.id], ["delete", "--erase"]):
        code, _, err = linkstore(*command, "--store", place)
        assert code == 0
        assert f"linkstore delete --erase --store {place}/facts" in " ".join(err.split())
    linkstore("facts", *MODEL, "--store", place)
    assert linkstore("delete", "--erase", "--store", f"{place}/facts")[0] == 0

    text = gone.page_content.split(".")[0].encode()
    assert not [path for path in (tmp_path / "kb").rglob("*") if path.is_file() and text in path.read_bytes()]


def test_a_store_without_facts_is_compacted_without_a_word_on_facts(place):
    assert "facts" not in linkstore("delete", "--erase", "--store", place)[2]


def test_facts_that_cannot_be_opened_are_not_passed_over(place, tmp_path):
    linkstore("facts", *MODEL, "--store", place)
    (tmp_path / "kb" / "facts" / "linkstore.db").write_bytes(b"no database" * 1_000)

    code, _, err = linkstore("delete", "--erase", "--store", place)

    assert code == exits.DAMAGED
    assert "kb/facts" in "".join(err.split())
