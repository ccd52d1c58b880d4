"""``linkstore index``: what it says of a folder of pages."""

from __future__ import annotations

import io
import json

import pytest
from documented import linkstore
from rich.console import Console

from linkstore.cli import exits
from linkstore.cli.progress import progress_bar


@pytest.fixture
def folder(tmp_path):
    """Two pages that link to each other, and one that is no text."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_text(
        '<h1>Alpha</h1><p>The first page, before <a href="b.html">the second</a>.</p>'
    )
    (site / "b.html").write_text(
        '<h1>Beta</h1><p>The second page. <a href="gone.html">Gone</a>,'
        ' <a href="https://example.org/">elsewhere</a>.</p>'
    )
    (site / "broken.html").write_bytes(bytes(range(256)) * 40)
    return site


def index(folder, *options: str) -> dict:
    code, out, err = linkstore("index", str(folder), "--store", str(folder.parent / "kb"), "--json", *options)
    assert (code, err) == (0, ""), "nothing on stderr, and no progress where it is no terminal"
    return json.loads(out)


def test_the_summary_counts_pages_links_and_what_dangles(folder):
    summary = index(folder)

    assert summary["pages"] == {"added": 2, "updated": 0, "unchanged": 0, "removed": 0}
    assert summary["chunks"] == 2
    assert summary["links"]["hyperlink"] >= 5
    assert summary["dangling"] == {"internal": 1, "external": 1}
    assert list(summary["skipped"]) == ["broken.html"]


def test_a_second_run_takes_up_what_changed_and_removes_what_is_gone(folder):
    index(folder)
    (folder / "a.html").write_text("<h1>Alpha</h1><p>Another text.</p>")
    (folder / "b.html").unlink()

    assert index(folder)["pages"] == {"added": 0, "updated": 1, "unchanged": 0, "removed": 1}
    assert index(folder)["pages"] == {"added": 0, "updated": 0, "unchanged": 1, "removed": 0}


def test_the_summary_names_skipped_pages_for_a_person(folder):
    code, out, _ = linkstore("index", str(folder), "--store", str(folder.parent / "kb"))

    assert code == 0
    assert "2 added" in out
    assert "skipped   broken.html: " in out


def test_only_the_links_asked_for_are_extracted(folder):
    assert set(index(folder, "--links", "section")["links"]) <= {"section"}


def test_two_sources_share_a_store_below_prefixes(folder):
    index(folder, "--source", "one", "--prefix", "v1")
    index(folder, "--source", "two", "--prefix", "v2", "--links", "hyperlink")

    code, out, _ = linkstore("stats", "--store", str(folder.parent / "kb"), "--json")
    counts = json.loads(out)
    assert (code, counts["pages"], counts["documents"]) == (0, 4, 4)


def test_a_second_source_does_not_replace_the_pages_of_the_first(folder):
    index(folder, "--source", "one")
    code, _, err = linkstore("index", str(folder), "--store", str(folder.parent / "kb"), "--source", "two")

    assert (code, err.count("\n")) == (exits.USAGE, 1)
    assert "'a.html' is in the store already, from the source 'one'" in err
    assert "prefix" in err
    code, _, err = linkstore(
        "index", str(folder), "--store", str(folder.parent / "kb"), "--source", "two", "--dry-run"
    )
    assert (code, "from the source 'one'" in err) == (exits.USAGE, True)


def test_a_dry_run_says_what_would_be_done_and_makes_no_store(folder):
    summary = index(folder, "--dry-run")

    assert summary["dry_run"]
    assert (summary["pages"]["added"], summary["chunks"], list(summary["skipped"])) == (2, 2, ["broken.html"])
    assert not (folder.parent / "kb").exists()


def test_a_dry_run_leaves_a_store_as_it_is(folder):
    index(folder)
    (folder / "a.html").write_text("<h1>Alpha</h1><p>Another text.</p>")
    (folder / "b.html").unlink()

    for _ in range(2):
        assert index(folder, "--dry-run")["pages"] == {
            "added": 0,
            "updated": 1,
            "unchanged": 0,
            "removed": 1,
        }
    code, out, _ = linkstore("index", str(folder), "--store", str(folder.parent / "kb"), "--dry-run")
    assert (code, out.splitlines()[0]) == (0, "dry run   nothing was written")
    assert index(folder)["pages"]["updated"] == 1


def test_the_most_linked_pages_are_named(folder):
    (folder / "c.html").write_text('<h1>C</h1><p>See <a href="b.html">b</a>, <a href="a.html">a</a>.</p>')

    linked = index(folder)["linked"]
    assert [(page["url"], page["links"]) for page in linked] == [("b.html", 2), ("a.html", 1)]


@pytest.mark.parametrize(
    ("place", "words"),
    [("site.txt", "cannot tell what it is"), ("missing", "there is nothing"), ("missing.jsonl", "no ")],
)
def test_what_is_no_source_is_refused_with_what_is(folder, place, words):
    (folder.parent / "site.txt").write_text("x")
    code, _, err = linkstore("index", str(folder.parent / place), "--store", str(folder.parent / "kb"))

    assert (code, err.count("\n")) == (exits.USAGE, 1)
    assert words in err
    assert not (folder.parent / "kb").exists()


@pytest.mark.parametrize("options", [("--links", "nosuch"), ("--links", "hyperlink,nosuch")])
def test_an_unknown_extractor_makes_no_store(folder, options):
    code, _, err = linkstore("index", str(folder), "--store", str(folder.parent / "kb"), *options)

    assert (code, err.count("\n")) == (exits.USAGE, 1)
    assert "no extractor nosuch; installed: citation" in err
    assert not (folder.parent / "kb").exists()


def test_a_wrong_path_makes_no_store(folder):
    code, _, err = linkstore("index", str(folder / "none"), "--store", str(folder.parent / "kb"))

    assert (code, err.count("\n")) == (exits.USAGE, 1)
    assert not (folder.parent / "kb").exists()


def test_the_progress_bar_counts_where_the_end_is_not_known():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)

    with progress_bar(console) as advance:
        advance(7, 0, "a")

    assert "7/?" in console.file.getvalue()
    assert "100%" not in console.file.getvalue()


def test_the_progress_bar_shows_how_far_it_is():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)

    with progress_bar(console) as advance:
        advance(1, 2, "a.html")
        advance(2, 2, "b.html")

    assert "2/2" in console.file.getvalue()
