"""``linkstore index``: what it says of a folder of pages."""

from __future__ import annotations

import contextlib
import io
import json
import logging

import pytest
import typer
from documented import linkstore
from internals import PageDocuments, StorePages, add_command, open_or_make, show_progress
from langchain_core.documents import Document
from rich.console import Console

from linkstore import LinkStore
from linkstore.cli import exits
from linkstore.errors import EmbeddingError


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

    code, out, _ = linkstore("doctor", "--store", str(folder.parent / "kb"), "--json")
    counts = json.loads(out)
    assert (code, counts["pages"], counts["documents"]) == (0, 4, 4)


def test_a_second_source_does_not_replace_the_pages_of_the_first(folder):
    index(folder, "--source", "one")
    code, _, err = linkstore("index", str(folder), "--store", str(folder.parent / "kb"), "--source", "two")

    assert (code, err.count("\n")) == (exits.USAGE, 1)
    assert "'a.html' was already indexed from the source 'one'" in err
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
    [
        ("site.adoc", "convert it to HTML or Markdown"),
        ("missing", "does not exist"),
        ("missing.jsonl", "does not exist"),
    ],
)
def test_what_is_no_source_is_refused_with_what_is(folder, place, words):
    (folder.parent / "site.adoc").write_text("x")
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


@pytest.mark.parametrize(
    ("name", "content", "step"),
    [
        (
            "sitemap.xml",
            "<urlset><url><loc>https://e.org/</loc></url></urlset>",
            "if it is a sitemap, give its URL",
        ),
        ("site.zip", "PK", "unpack it, and give the folder"),
        ("rows.csv", "a,b", "write each row as a line of JSON"),
        ("rows.json", "[]", "write each row as a line of JSON"),
        ("example.com", None, "for the website, give https://example.com"),
        ("localhost:8931", None, "give http://localhost:8931 --allow-private"),
    ],
)
def test_what_is_no_source_is_told_the_one_next_step(tmp_path, monkeypatch, name, content, step):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / name).write_text(content)
    code, _, err = linkstore("index", name, "--store", "kb")
    assert code == exits.USAGE
    assert step in err
    assert "give one of" not in err


def test_a_store_is_not_made_among_the_pages(folder, monkeypatch):
    code, _, err = linkstore("index", str(folder), "--store", str(folder))
    assert (code, "is the folder of the pages; give another" in err) == (exits.USAGE, True)
    monkeypatch.chdir(folder)
    assert f"another: --store {folder.resolve()}.kb\n" in linkstore("index", ".", "--store", ".")[2]
    assert not (folder / "linkstore.db").exists()


def test_a_wrong_path_makes_no_store(folder):
    code, _, err = linkstore("index", str(folder / "none"), "--store", str(folder.parent / "kb"))

    assert (code, err.count("\n")) == (exits.USAGE, 1)
    assert not (folder.parent / "kb").exists()


def test_the_progress_bar_counts_where_the_end_is_not_known():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)

    with show_progress(console=console) as advance:
        advance(7, 0, "a")

    assert "7/?" in console.file.getvalue()
    assert "100%" not in console.file.getvalue()


def test_the_progress_bar_shows_how_far_it_is():
    console = Console(file=io.StringIO(), force_terminal=True, width=100)

    with show_progress(console=console) as advance:
        advance(1, 2, "a.html")
        advance(2, 2, "b.html")

    assert "2/2" in console.file.getvalue()


def run(folder, *options: str) -> tuple[int, str, str]:
    return linkstore("index", str(folder), "--store", str(folder.parent / "kb"), *options)


def test_most_of_a_source_goes_only_if_it_is_said(folder):
    index(folder)
    for name in ("a", "b"):
        (folder / f"{name}.html").unlink()
    (folder / "c.html").write_text("<h1>C</h1><p>Another page.</p>")

    code, out, err = run(folder)
    assert (code, err.count("\n")) == (exits.SOURCE_INCOMPLETE, 1)
    assert "2 of the 2 stored pages" in err
    assert "--prune" in err
    assert "1 added" in out
    assert index(folder, "--prune")["pages"] == {"added": 0, "updated": 0, "unchanged": 1, "removed": 2}


def test_what_could_not_be_seen_is_named_and_ends_with_its_own_code(folder):
    (folder / "sub").mkdir()
    (folder / "sub/c.html").write_text("<h1>C</h1><p>Another page.</p>")
    index(folder)
    (folder / "sub/c.html").unlink()

    code, out, err = run(folder)
    assert code == exits.SOURCE_INCOMPLETE
    assert "0 removed" in out
    assert err == "1 part of the source could not be seen (sub/); what is stored of that was kept\n"


@pytest.mark.parametrize("options", [(), ("--json",), ("--dry-run",)])
def test_nothing_to_index_is_one_line_and_leaves_no_store(tmp_path, options):
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.adoc").write_text("text")
    code, _, err = run(site, *options)

    assert (code, err.count("\n")) == (exits.NOTHING_TO_INDEX, 1)
    assert "it holds only 1 other file (1 .adoc); pages are .htm, .html, .ipynb, .markdown, .md" in err
    assert not (tmp_path / "kb").exists()


def test_json_lines_of_unknown_fields_are_one_line_and_a_report(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f'{{"id": "{number}", "body": "x"}}\n' for number in range(5000)))
    report = tmp_path / "report.jsonl"
    code, out, err = run(path, "--report", str(report))

    assert (code, out, err.count("\n")) == (exits.NOTHING_TO_INDEX, "", 1)
    known = "known are answers, id, links, metadata, page, text, title, url"
    assert f"unknown body; {known} (and 4,999 more like this)" in err
    assert not (tmp_path / "kb").exists()
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert len(lines) == 5000
    assert lines[7] == {"name": "7", "reason": lines[7]["reason"], "unseen": False}


def test_the_limit_of_a_page_is_one_of_a_line_too(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"id": "short", "text": "x"}}\n{{"id": "long", "text": "{99 * "x"}"}}\n')
    _, out, _ = run(path, "--max-bytes", "99")
    assert "line 2: it has more than 99 bytes (--max-bytes; Python: max_bytes=" in out


def test_long_lists_are_cut(folder):
    for number in range(30):
        (folder / f"x{number}.html").write_bytes(b"")
    _, out, _ = run(folder)

    assert out.count("skipped ") == 10
    assert "(+21 more; --report FILE writes all)" in out


def test_a_report_that_cannot_be_written_is_refused_before_the_work(folder):
    code, _, err = run(folder, "--report", str(folder / "none/report"))

    assert (code, err.count("\n")) == (exits.USAGE, 1)
    assert not (folder.parent / "kb").exists()


def test_an_embedding_that_fails_leaves_no_store(folder, monkeypatch):
    def fail(self, source, pages):
        raise EmbeddingError("no key")

    monkeypatch.setattr(StorePages, "put", fail)
    assert run(folder)[0] == exits.EMBEDDING_MISSING
    assert not (folder.parent / "kb").exists()


def test_a_run_that_is_stopped_says_what_it_kept(folder, monkeypatch):
    from internals import Linkers

    read = Linkers.make_documents

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Linkers, "make_documents", stop)
    code, out, err = run(folder)
    assert (code, out) == (exits.INTERRUPTED, "")
    assert err == "stopped; the store has 0 pages. Run the same command again to go on\n"
    assert not (folder.parent / "kb").exists()

    monkeypatch.setattr(Linkers, "make_documents", read)
    index(folder)
    (folder / "c.html").write_text("<h1>C</h1><p>Another page.</p>")
    monkeypatch.setattr(Linkers, "make_documents", stop)
    code, _, err = run(folder)
    assert (code, "the store has 2 pages" in err) == (exits.INTERRUPTED, True)


def test_claims_are_believed_if_it_is_said(folder):
    (folder / "c.html").write_text(
        '<link rel="canonical" href="https://bank.example/"><h1>C</h1><p>A page.</p>'
    )
    skipped = index(folder)["skipped"]
    assert "c.html does https://bank.example/" in skipped["(claims)"]
    assert "--trust-claims" in skipped["(claims)"]
    store = str(folder.parent / "kb")
    assert linkstore("links", "https://bank.example/", "--store", store)[0] == exits.OTHER

    assert "(claims)" not in index(folder, "--trust-claims")["skipped"]
    assert linkstore("links", "https://bank.example/", "--store", store)[0] == 0


def test_a_command_can_be_quiet_or_tell_all(folder, tmp_path):
    assert run(folder, "-q") == (0, "", "")
    (folder / "a.html").write_text("<h1>Alpha</h1><p>Another text.</p>")
    (folder / "b.html").unlink()
    log = tmp_path / "log"
    _, _, err = run(folder, "-v", "--log-file", str(log))

    for line in ("stored a.html: 1 document\n", "removed b.html", "skipped broken.html: "):
        assert line in err
        assert line in log.read_text()
    assert run(folder, "-q", "-v")[0] == exits.USAGE
    assert run(folder, "--log-file", str(folder / "none/log"))[0] == exits.USAGE


@pytest.mark.parametrize(
    ("quietly", "verbose", "told"),
    [
        (False, False, ["1 of 2", "it failed"]),
        (False, True, ["1 of 2", "it failed"]),
        (True, False, ["it failed"]),
    ],
    ids=["as it is", "verbose", "quiet"],
)
def test_who_waits_for_an_index_is_told_how_far_it_is(capsys, quietly, verbose, told) -> None:
    def waiting() -> None:
        logging.getLogger("linkstore.index").info("1 of 2")
        logging.getLogger("linkstore.index").warning("it failed")

    app = typer.Typer()
    add_command(app, "waiting", waiting)
    app(["--quiet"] * quietly + ["--verbose"] * verbose, standalone_mode=False)
    assert capsys.readouterr().err.splitlines() == told


def stored(folder) -> set[str]:
    with LinkStore.open(folder.parent / "kb", create=False) as store:
        return {document.id for document in store.scan()}


@pytest.fixture
def long(folder):
    """A page of three documents beside the others."""
    (folder / "long.html").write_text(
        "<h1>Long</h1><p>Words.</p>" + "".join(f"<h2 id=s{n}>S {n}</h2><p>Words.</p>" for n in (1, 2))
    )
    index(folder)
    return {"long.html", "long.html#s1", "long.html#s2"}


def test_a_page_is_deleted_as_a_whole_and_comes_back(folder, long):
    store = str(folder.parent / "kb")
    code, _, err = linkstore("delete", "long.html", "--store", store)
    assert (code, err.startswith("deleted 1 page, 3 documents; the next index restores")) == (0, True)
    assert not stored(folder) & long

    assert index(folder)["pages"] == {"added": 1, "updated": 0, "unchanged": 2, "removed": 0}
    assert stored(folder) >= long


def test_a_page_is_found_by_its_url(folder, long):
    assert linkstore("delete", "/long.html", "--store", str(folder.parent / "kb"))[0] == 0
    assert not stored(folder) & long


def test_one_document_of_a_page_is_deleted_only_if_it_is_said_and_comes_back(folder, long):
    store = str(folder.parent / "kb")
    code, _, err = linkstore("delete", "long.html#s1", "--store", store)
    assert (code, "--chunk long.html#s1" in err) == (exits.USAGE, True)
    assert stored(folder) >= long
    assert linkstore("delete", "--chunk", "long.html#s1", "--store", store)[0] == 0
    assert stored(folder) & long == long - {"long.html#s1"}

    assert index(folder)["pages"] == {"added": 0, "updated": 1, "unchanged": 2, "removed": 0}
    assert stored(folder) >= long


def test_what_python_deletes_comes_back_too(folder, long):
    with LinkStore.open(folder.parent / "kb") as store:
        store.delete(["long.html"])
    assert index(folder)["pages"]["updated"] == 1
    assert stored(folder) >= long
    with LinkStore.open(folder.parent / "kb") as store:
        assert store.pages.remove(["long.html", "none"]).removed == 3
    assert index(folder)["pages"]["added"] == 1


def test_a_url_of_two_pages_deletes_neither(folder):
    head = '<link rel="canonical" href="https://old.example/x">'
    for name in ("c", "d"):
        (folder / f"{name}.html").write_text(f"{head}<h1>{name}</h1><p>A page.</p>")
    index(folder, "--trust-claims")
    code, _, err = linkstore("delete", "https://old.example/x", "--store", str(folder.parent / "kb"))

    assert (code, "name the one to delete: c.html, d.html" in err) == (exits.USAGE, True)
    assert {"c.html", "d.html"} <= stored(folder)


def test_a_run_that_writes_nothing_leaves_what_another_makes_meanwhile(tmp_path):
    """It removes only what it made itself."""
    place = str(tmp_path / "kb")
    with open_or_make(place) as store:
        with LinkStore.open(place) as other:
            other.add_texts(["a hub"])
        assert store.pages.digests("s") == {}
    with LinkStore.open(place, create=False) as made:
        assert made.survey().documents == 1


@pytest.mark.parametrize("fails", [False, True], ids=["ends", "fails"])
def test_a_store_that_was_made_and_not_written_to_is_removed(tmp_path, fails):
    """Whatever ends the run; one with a document stays."""
    for text in (None, "a hub"):
        place = tmp_path / "kb"
        with contextlib.suppress(ZeroDivisionError), open_or_make(str(place)) as store:
            store.pages.put("s", [])
            assert place.exists()
            if text:
                page = PageDocuments("p", "1", (Document(id="d", page_content=text),))
                store.pages.put("s", [page])
            if fails:
                raise ZeroDivisionError
        assert place.exists() == (text is not None)
