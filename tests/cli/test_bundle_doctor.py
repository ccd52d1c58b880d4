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
        ("---\ntype: Note\nstale_after: soon\n---\nText.\n", "'soon' is not a date"),
    ],
)
def test_a_page_with_invalid_fields_is_an_alarm(tmp_path, page, name):
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
    ],
    ids=["a dead link", "a dead source", "an orphan", "a stale page"],
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
