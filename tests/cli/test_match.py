"""``linkstore match``: typed links from the command line."""

from __future__ import annotations

import json

import harbour
import pytest
from documented import linkstore

from linkstore import LinkStore
from linkstore.cli import exits


@pytest.fixture
def store(tmp_path):
    with LinkStore.open(tmp_path / "kb") as opened:
        opened.schema.set(harbour.SCHEMA)
        opened.add_documents(harbour.harbour(status=("active", "withdrawn")))
    return str(tmp_path / "kb")


def test_steps_lead_from_a_name_to_documents_with_their_links(store):
    code, out, err = linkstore("match", "Albatross", "OF_CLASS", "BOUND_BY", "--store", store)
    assert code == 0
    assert out.splitlines()[:2] == ["r1", "  s1 —[OF_CLASS]→ c1 —[BOUND_BY]→ r1"]
    assert err == "3 results\n'Albatross' is s1\n"
    _, out, _ = linkstore(
        "match", "s1", "<PERMITS", "--where", '{"status": "active"}', "--store", store, "--json"
    )
    answer = json.loads(out)
    assert ([hit["id"] for hit in answer["hits"]], answer["total"]) == (["p1"], 1)
    _, out, err = linkstore("match", "s1", "<PERMITS", "--count", "--store", store)
    assert (out, err) == ("2\n", "2 results\n")


def test_a_whole_query_joins_branches_and_groups(store):
    query = {"branches": [{"start_type": "Permit"}], "returns": "groups", "field": "status"}
    _, out, _ = linkstore("match", "--query", json.dumps(query), "--store", store)
    assert out == "active: 2\nwithdrawn: 1\n"
    cypher = "MATCH (p:Permit)-[:PERMITS]->({id: 's1'}) WHERE p.status = 'active' RETURN count(p)"
    assert linkstore("match", "--query", cypher, "--store", store)[:2] == (0, "1\n")
    code, _, err = linkstore("match", "--query", "MATCH (p) DELETE p", "--store", store)
    assert (code, "cannot be read at 'DELETE p'; of Cypher it takes MATCH" in err) == (2, True)


def test_an_empty_result_says_why(store):
    code, out, err = linkstore("match", "s1", "BOUND_BY", "--store", store)
    assert (code, out) == (0, "")
    assert "1 document before, 0 after; links here: <PERMITS, OF_CLASS" in err


def test_paths_and_impact(store):
    _, out, _ = linkstore("match", "s1", "--to", "s2", "-k", "1", "--store", store)
    assert out == "2  s1 —[OF_CLASS]→ c1 ←[OF_CLASS]— s2\n"
    _, out, _ = linkstore("match", "c1", "--impact", "--store", store, "--json")
    impact = json.loads(out)
    assert impact == {"linking": ["s1", "s2"], "dangling": ["s1", "s2"], "orphaned": []}
    _, out, _ = linkstore("match", "a", "--impact", "--store", store)
    assert out.splitlines()[-2:] == ["documents that nothing else links to: 1", "  r4"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give a START"),
        (("s1", "--query", "{}"), "give a START"),
        (("s1", "OF_CLASS", "--to", "s2"), "give one of STEPs"),
        (("s1", "--to", "s2", "--impact"), "give one of STEPs"),
        (("--query", "[]"), "must be a JSON object"),
    ],
)
def test_what_does_not_go_together_is_said(store, arguments, says):
    code, _, err = linkstore("match", *arguments, "--store", store)
    assert code == exits.USAGE
    assert says in err


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    (folder / ".obsidian").mkdir(parents=True)
    (folder / "C# notes.md").write_text("# Sharp\n\nSee [[Plan#Now]].\n\n## Uses\n\nText.\n")
    parts = "".join(f"## Part {number}\n\nText {number}.\n\n" for number in range(60))
    front = "---\ntitle: The plan\naliases: [Zeppelin]\n---\n"
    (folder / "Plan.md").write_text(f"{front}# The plan\n\nSee [[C# notes]].\n\n## Now\n\nText.\n\n{parts}")
    place = str(tmp_path / "notes-kb")
    assert linkstore("index", str(folder), "--store", place)[0] == 0
    return place


@pytest.mark.parametrize("name", ["The plan", "the plan", "Zeppelin", "Plan", "Plan.md"])
def test_a_name_of_a_page_means_the_page_and_not_its_sections(notes, name):
    code, out, err = linkstore("match", name, "hyperlink", "--store", notes)
    assert (code, out.splitlines()[:1]) == (0, ["C%23%20notes.md  Sharp"]), err


@pytest.mark.parametrize("name", ["C# notes", "C# notes.md", "c# notes.md", "C%23%20notes.md"])
def test_a_file_with_a_number_sign_is_named_as_it_is_called(notes, name):
    code, out, err = linkstore("match", name, "hyperlink", "--store", notes)
    assert (code, out.splitlines()[:1]) == (0, ["Plan.md#now  The plan"]), err
    code, out, _ = linkstore("match", name, "--to", "The plan", "--store", notes)
    assert (code, bool(out)) == (0, True)
    code, out, _ = linkstore("links", name, "--store", notes, "--json")
    assert (code, [entry["id"] for entry in json.loads(out)]) == (
        0,
        ["C%23%20notes.md", "C%23%20notes.md#uses"],
    )


def test_a_section_of_a_file_with_a_number_sign_is_named_alone(notes):
    for name in ("C# notes.md#uses", "C# notes#uses"):
        code, out, _ = linkstore("links", name, "--store", notes, "--json")
        assert (code, [entry["id"] for entry in json.loads(out)]) == (0, ["C%23%20notes.md#uses"])
    assert linkstore("delete", "C# notes.md", "--store", notes)[0] == 0


def test_what_is_not_there_is_an_error(store):
    code, _, err = linkstore("match", "s1", "OF_CLAS", "--store", store)
    assert code == exits.USAGE
    assert "did you mean 'OF_CLASS'" in err
