"""Evidence of a search, held against a store that changed since."""

from __future__ import annotations

import json

import pytest
from documented import linkstore

from linkstore import LinkStore
from linkstore.cli import exits
from linkstore.errors import LinkStoreError

TEXT = "# Locks\n\nA lock holds a gate shut.\n"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "locks.md").write_text(TEXT)
    (tmp_path / "site" / "gates.md").write_text("# Gates\n\nA gate is a door.\n")
    index(tmp_path)
    assert (
        linkstore("query", "lock", "-s", str(tmp_path / "kb"), "--evidence", str(tmp_path / "e.json"))[0] == 0
    )
    return tmp_path


def index(place):
    assert linkstore("index", str(place / "site"), "--store", str(place / "kb"))[0] == 0


def check(place, file="e.json"):
    """Return the exit code and the verdict on each page."""
    code, out, _ = linkstore("doctor", "-s", str(place / "kb"), "--evidence", str(place / file), "--json")
    return code, {row["id"].partition("#")[0]: row["verdict"] for row in json.loads(out)}


def test_what_the_store_has_as_it_was_is_unchanged(place):
    assert check(place) == (0, {"locks.md": "unchanged", "gates.md": "unchanged"})


def test_a_text_that_changed_or_went_is_told_with_an_exit_code(place):
    (place / "site" / "locks.md").write_text(TEXT.replace("shut", "open"))
    (place / "site" / "gates.md").unlink()
    linkstore("index", str(place / "site"), "--store", str(place / "kb"), "--prune")

    assert check(place) == (exits.ALARM_FOUND, {"locks.md": "changed", "gates.md": "gone"})


def test_a_passage_that_moved_within_its_page_is_found_there(place):
    with LinkStore.open(place / "kb") as store:
        quote = store.search("lock").to_evidence(["holds a gate shut"])
    (place / "quote.json").write_text(json.dumps(quote))
    assert check(place, "quote.json") == (0, {"locks.md": "unchanged"})
    (place / "site" / "locks.md").write_text(f"# Canals\n\nWater is high.\n\n{TEXT.replace('# ', '## ')}")
    index(place)

    assert check(place, "quote.json") == (0, {"locks.md": "moved"})


def test_evidence_whose_text_was_changed_is_not_believed(place):
    items = json.loads((place / "e.json").read_text())
    items[0]["text"] = items[0]["text"].replace("gate", "door")
    (place / "e.json").write_text(json.dumps(items))

    code, verdicts = check(place)
    assert code == exits.ALARM_FOUND
    assert sorted(verdicts.values()) == ["altered", "unchanged"]


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[1]", "[{}]", '[{"id": "a", "page": [], "start": 0, "end": 1, "text": "", "sha256": ""}]'],
)
def test_a_file_of_something_else_is_refused(place, content):
    (place / "other.json").write_text(content)
    code, _, err = linkstore("doctor", "-s", str(place / "kb"), "--evidence", str(place / "other.json"))
    assert code in {exits.OTHER, exits.USAGE}
    assert "evidence" in err


def test_a_quote_that_no_hit_has_is_refused(place):
    with LinkStore.open(place / "kb") as store, pytest.raises(LinkStoreError, match="word for word"):
        store.search("lock").to_evidence(["holds a gate open"])
