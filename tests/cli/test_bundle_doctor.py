"""``linkstore doctor`` for bundles of the Open Knowledge Format."""

from __future__ import annotations

import json

import pytest
from documented import linkstore
from internals import find_field_problems

from linkstore.cli import exits

GOOD = "---\ntype: Note\ngenerated: {by: a/1}\n---\n# One\n\nA note.\n"


def examine(tmp_path, pages, *words):
    """Return the exit code, and the findings about bundles: their severities with their examples."""
    folder, place = tmp_path / "bundle", str(tmp_path / "kb")
    folder.mkdir()
    for name, text in {"index.md": "# All\n\n* [A](a.md)\n", "a.md": GOOD, **pages}.items():
        (folder / name).write_text(text)
    assert linkstore("index", str(folder), "--store", place)[0] == 0
    code, out, _ = linkstore("doctor", "--store", place, "--json", *words)
    findings = [finding for finding in json.loads(out)["findings"] if finding["check"] == "bundle"]
    return code, [(finding["severity"], finding["examples"]) for finding in findings]


def test_a_bundle_as_it_should_be_needs_no_attention(tmp_path):
    assert examine(tmp_path, {}, "--strict") == (0, [])


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("# No front matter\n\nText.\n", "has no type"),
        ("---\ntitle: B\n---\nText.\n", "has no type"),
        ("---\ntype: [\n---\nText.\n", "has no type"),
    ],
)
def test_a_page_without_a_type_is_an_alarm(tmp_path, page, name):
    code, findings = examine(tmp_path, {"b.md": page, "index.md": "# All\n\n[A](a.md) [B](b.md)\n"})

    assert code == exits.ALARM_FOUND
    ((severity, (example,)),) = findings
    assert severity == "alarm"
    assert example.startswith("b.md: ")
    assert name in example


@pytest.mark.parametrize(
    ("pages", "example"),
    [
        ({"a.md": f"{GOOD}\n[b](b.md)\n"}, "a.md → /b.md"),
        ({"a.md": GOOD.replace("type", "sources: [{resource: b.md}]\ntype")}, "a.md → /b.md"),
        ({"b.md": f"{GOOD}\nSee [this](b.md).\n"}, "b.md"),
        ({"a.md": GOOD.replace("type", "stale_after: 2020-01-31\ntype")}, "a.md"),
        ({"a.md": GOOD.replace("type", "stale_after: soon\ntype")}, "a.md: stale_after 'soon' is not a date"),
        (
            {"a.md": GOOD.replace("type", "status: active\ntype")},
            "a.md: status 'active' is not one of draft, stable, deprecated",
        ),
    ],
    ids=["a dead link", "a dead source", "an orphan", "a stale page", "no date", "an unknown status"],
)
@pytest.mark.parametrize("strict", [True, False])
def test_what_may_be_meant_is_a_hint_and_an_error_only_if_strict(tmp_path, pages, example, strict):
    code, findings = examine(tmp_path, pages, *(["--strict"] if strict else []))

    assert findings == [("hint", [example])]
    assert code == (exits.ALARM_FOUND if strict else 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "old"},
        {"verified": [{"by": "human:a"}, {"at": "2026-01-01"}]},
        {"generated": "yesterday"},
        {"sources": [{"id": "a"}]},
        {"sources": "a.md"},
        {"type": "Attested Computation"},
    ],
)
def test_each_field_of_another_form_is_a_problem(fields):
    assert len(list(find_field_problems({"type": "Note", **fields}))) == 1


def test_notes_that_are_exported_as_a_bundle_raise_no_alarm(tmp_path):
    notes, place, out = tmp_path / "notes", str(tmp_path / "kb"), str(tmp_path / "out")
    notes.mkdir()
    (notes / "a.md").write_text(
        "---\nstatus: active\nsources: [A book]\nverified: true\n---\n# A\n\nA note.\n"
    )
    linkstore("index", str(notes), "--store", place)
    assert linkstore("export", "--format", "okf", "--store", place, "--output", out)[0] == 0
    linkstore("index", out, "--store", f"{place}2")

    assert linkstore("doctor", "--store", f"{place}2")[0] == 0
