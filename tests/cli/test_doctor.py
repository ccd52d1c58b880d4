"""``linkstore doctor``: what it prints, and the code it ends with."""

from __future__ import annotations

import json
import shutil

import pytest
from documented import linkstore
from internals import site
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.cli import exits

CLEAN = "nothing needs attention"


@pytest.fixture
def place(tmp_path):
    """A store of the demo's site, beside the site."""
    with site() as pages:
        shutil.copytree(pages, tmp_path / "site")
    code, _, err = linkstore("index", str(tmp_path / "site"), "--store", str(tmp_path / "kb"))
    assert (code, err) == (0, "")
    return tmp_path


def doctor(place, *words):
    return linkstore("doctor", "--store", str(place / "kb"), *words)


def findings(place, *words):
    code, out, _ = doctor(place, "--json", *words)
    said = json.loads(out)
    assert code == (0 if said["healthy"] else exits.ALARM_FOUND)
    return {(one["check"], one["text"].split(": ")[0]): one for one in said["findings"]}


def test_a_clean_store_needs_no_attention(place):
    code, out, err = doctor(place, "--source", str(place / "site"))
    assert (code, err) == (0, "")
    assert CLEAN in out
    assert "alarm" not in out


def test_a_source_that_was_not_compared_is_named(place):
    assert f"these sources were not compared: {(place / 'site').as_posix()}" in doctor(place)[1]


def test_pages_that_changed_came_or_went_are_named_with_an_exit_code(place):
    pages = sorted((place / "site").glob("*.html"))
    pages[0].write_text(pages[0].read_text().replace("</body>", "<p>A new line.</p></body>"))
    (place / "site" / "new.html").write_text("<title>New</title><p>A page on its own.</p>")
    pages[2].unlink()
    found = findings(place, "--source", str(place / "site"))
    assert [one["examples"] for one in found.values()] == [[pages[0].name], ["new.html"], [pages[2].name]]
    assert {check for check, _ in found} == {"stale"}
    linkstore("index", str(place / "site"), "--store", str(place / "kb"))
    assert {check for check, _ in findings(place, "--source", str(place / "site"))} == {"dangling"}


def test_a_source_that_moved_or_has_a_prefix_is_compared_by_its_name(place):
    kb = str(place / "other")
    linkstore("index", str(place / "site"), "--store", kb, "--source", "docs", "--prefix", "3.13")
    (place / "site").rename(place / "moved")
    code, out, err = linkstore("doctor", "--store", kb, "--source", f"docs={place / 'moved'}")
    assert (code, err) == (0, "")
    assert CLEAN in out


@pytest.mark.parametrize("kind", ["vault", "jsonl"])
def test_other_sources_are_compared_too(tmp_path, kind):
    source = tmp_path / ("notes" if kind == "vault" else "rows.jsonl")
    if kind == "vault":
        (source / ".obsidian").mkdir(parents=True)
        (source / "a.md").write_text("# A\n\nSee [[b]].\n")
        (source / "b.md").write_text("# B\n\nText.\n")
        (source / "empty.md").write_text("")
        changed = source / "a.md"
    else:
        rows = [{"id": "a", "text": "One."}, {"id": "b", "text": "Two."}]
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        changed = source
    linkstore("index", str(source), "--store", str(tmp_path / "kb"))
    assert findings(tmp_path, "--source", str(source)) == {}
    changed.write_text(changed.read_text().replace("One", "Another").replace("See", "Look at"))
    assert [one["count"] for one in findings(tmp_path, "--source", str(source)).values()] == [1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--source", "https://example.com"], "linkstore index https://example.com --dry-run"),
        (["--source", "nowhere"], "nowhere"),
        (["--source", "."], "the store has no source"),
    ],
)
def test_a_source_that_cannot_be_compared_is_refused(place, words, said):
    code, out, err = doctor(place, *words)
    assert (code, out) == (exits.USAGE, "")
    assert said in err


def test_a_store_must_be_given_and_exist(tmp_path, monkeypatch):
    monkeypatch.delenv("LINKSTORE_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    assert linkstore("doctor")[0] == exits.NOT_FOUND
    assert linkstore("doctor", "--store", str(tmp_path / "none"))[0] == exits.NOT_FOUND


def test_what_a_page_says_does_not_steer_the_terminal(tmp_path):
    with LinkStore.open(tmp_path / "kb") as store:
        store.add_documents(
            [
                Document(id="a", page_content="a", metadata={"type": "\x1b[31mred\nnext"}),
                Document(id="b", page_content="b", metadata={"type": "blue"}),
            ]
        )
    code, out, _ = doctor(tmp_path)
    assert code == exits.ALARM_FOUND
    assert "\x1b" not in out
    assert "red\\nnext" in out
