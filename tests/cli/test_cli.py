"""The command line: what it prints, and the code it ends with."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree as ET

import pytest
from documented import linkstore
from internals import CoreStore, __version__, make_application, make_snippet
from langchain_core.documents import Document
from typer.main import get_command

from linkstore import Link, LinkStore, add_links, get_links
from linkstore.cli import exits
from linkstore.errors import StoreBusyError, StoreFullError

TOWER = "The Space Needle is an observation tower in Seattle, built for the fair of 1962."
UPTOWN = "Small theatres, record shops and bars line its streets."


def pages() -> list[Document]:
    tower = Document(id="tower", page_content=TOWER, metadata={"url": "/needle#top", "title": "Needle"})
    tower.metadata["page"] = "/needle"
    uptown = Document(id="uptown", page_content=UPTOWN, metadata={"url": "/uptown", "title": "Uptown"})
    uptown.metadata["page"] = "/uptown"
    add_links(
        tower,
        Link.incoming(kind="hyperlink", tag="/needle"),
        Link.outgoing(kind="hyperlink", tag="/uptown", label="the district around it"),
        Link.outgoing(kind="hyperlink", tag="/gone"),
        Link.outgoing(kind="hyperlink", tag="https://example.org/"),
    )
    add_links(uptown, Link.incoming(kind="hyperlink", tag="/uptown"))
    return [tower, uptown]


@pytest.fixture
def store(tmp_path):
    """A store of two linked pages."""
    with LinkStore.open(tmp_path / "kb") as opened:
        opened.add_documents(pages())
    return str(tmp_path / "kb")


def test_query_finds_by_similarity_and_by_links(store):
    """The path says which link led to the second hit."""
    code, out, err = linkstore(
        "query", "a tower", "--store", store, "--start-k", "1", "--depth", "1", "--json"
    )

    first, second = json.loads(out)
    assert (code, err) == (0, "")
    assert (first["id"], first["depth"], first["url"], first["title"]) == (
        "tower",
        0,
        "/needle#top",
        "Needle",
    )
    assert (second["id"], second["depth"], second["snippet"]) == ("uptown", 1, UPTOWN)
    assert first["score"] == pytest.approx(first["similarity"], abs=1e-6)
    assert second["path"] == [
        {"id": "tower", "url": "/needle#top", "kind": None, "tag": None, "label": None},
        {
            "id": "uptown",
            "url": "/uptown",
            "kind": "hyperlink",
            "tag": "/uptown",
            "label": "the district around it",
        },
    ]


def test_query_prints_title_url_snippet_and_path_for_a_person(store):
    code, out, _ = linkstore("query", "a tower", "--store", store, "--start-k", "1", "--depth", "1")

    assert code == 0
    for shown in (
        "1. Needle  score",
        "   /needle\n   - #top\n     " + TOWER,
        "2. Uptown",
        "hyperlink “the district around it”",
    ):
        assert shown in out
    assert "\x1b" not in out, "no colours when the output is no terminal"


def test_query_prints_chunks_for_a_person_who_asks_for_them(store):
    words = ("query", "a tower", "--store", store, "--start-k", "1", "--depth", "1", "--chunks")
    code, out, _ = linkstore(*words)

    assert code == 0
    assert "1. Needle  score" in out
    assert "   /needle#top\n   " + TOWER in out


def test_a_page_is_printed_once_with_its_three_best_sections(tmp_path):
    """Also where no link says which documents are of one page."""
    with LinkStore.open(tmp_path / "kb") as opened:
        opened.add_documents(
            [
                Document(
                    id=f"{page}{n}",
                    page_content=f"about the red tower {page} {n}",
                    metadata={
                        "title": f"Title {page}",
                        "url": f"/{page}#part{n}",
                        "page": page,
                        "headings": [f"Title {page}", f"Part {n}"],
                    },
                )
                for page in "ab"
                for n in range(5)
            ]
        )
    code, out, _ = linkstore("query", "red tower", "--store", str(tmp_path / "kb"))

    assert code == 0
    assert (out.count(". Title a  score"), out.count(". Title b  score")) == (1, 1)
    assert out.count("   - Part") == 6
    every = linkstore("query", "red tower", "--store", str(tmp_path / "kb"), "--json")[1]
    assert len(json.loads(every)) == 10


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--depth", "0", "--start-k", "1"), ["tower"]),
        (("--depth", "1", "--start-k", "1", "-k", "1"), ["tower"]),
        (("--strategy", "similarity"), ["tower", "uptown"]),
        (("--strategy", "similarity", "-k", "1"), ["tower"]),
        (("--strategy", "mmr", "--start-k", "1"), ["tower", "uptown"]),
        (("--depth", "1", "--start-k", "1", "--kinds", "hyperlink=0"), ["tower"]),
        (("--depth", "1", "--start-k", "1", "--kinds", "hyperlink=0.5"), ["tower", "uptown"]),
        (("--depth", "1", "--start-k", "1", "--direction", "backward"), ["tower"]),
        (("--filter", '{"title": "Uptown"}'), ["uptown"]),
    ],
)
def test_query_options_reach_the_strategy(store, options, found):
    code, out, _ = linkstore("query", "a tower", "--store", store, "--json", *options)

    assert (code, [hit["id"] for hit in json.loads(out)]) == (0, found)


@pytest.mark.parametrize("name", ["/needle", "needle", "tower"])
def test_near_starts_from_a_page_too(store, name):
    """Without it, the search starts from nothing."""
    words = ("query", "a tower", "--store", store, "--json", "--depth", "1", "--start-k", "0")
    code, out, _ = linkstore(*words, "--near", name)

    assert (code, [hit["id"] for hit in json.loads(out)]) == (0, ["tower", "uptown"])
    assert json.loads(linkstore(*words)[1]) == []


def test_near_needs_a_page_and_links(store):
    assert "nosuch" in linkstore("query", "tower", "--store", store, "--near", "nosuch")[2]
    code, _, err = linkstore(
        "query", "tower", "--store", store, "--near", "needle", "--strategy", "similarity"
    )
    assert (code, "--near" in err) == (exits.USAGE, True)


def test_explain_says_what_was_left_out(store):
    _, out, _ = linkstore(
        "query", "a tower", "--store", store, "--depth", "1", "--start-k", "1", "-k", "1", "--explain"
    )
    _, hits, notes = linkstore(
        "query",
        "a tower",
        "--store",
        store,
        "--depth",
        "1",
        "--start-k",
        "1",
        "-k",
        "1",
        "--explain",
        "--json",
    )

    assert "k: 1 in the result" in out
    assert "k: 1 in the result" in notes, "beside JSON, the explanation goes to stderr"
    assert len(json.loads(hits)) == 1


def test_chains_are_printed_as_triples(store):
    options = ("--strategy", "all-paths", "--start-k", "1", "--json", "--explain")
    code, out, explained = linkstore("query", "a tower", "--store", store, *options)
    chains = {hit["id"]: hit.get("chains") for hit in json.loads(out)}
    assert (code, chains["tower"], len(chains["uptown"])) == (0, None, 1)
    (triple,) = chains["uptown"][0]
    assert (triple["subject"], triple["kind"], triple["object"]) == ("tower", "hyperlink", "uptown")
    assert "tower —[hyperlink" in explained


def test_a_misspelled_name_is_an_error_of_usage(store):
    code, out, err = linkstore("query", "x", "--store", store, "--kinds", "hyperlnk")
    assert (code, out) == (2, "")
    assert "did you mean 'hyperlink'?" in err


@pytest.mark.parametrize(
    ("filter", "told"),
    [('{"titel": "none"}', "did you mean 'title'?"), ('{"title": "Needel"}', "did you mean 'Needle'?")],
)
def test_a_filter_that_nothing_passes_is_told_what_was_meant(store, filter, told):
    code, out, err = linkstore("query", "x", "--store", store, "--filter", filter)
    assert (code, out) == (0, "")
    assert told in err


def test_no_hit_is_said_with_its_reason_and_is_no_error(store, tmp_path):
    with LinkStore.open(tmp_path / "empty"):
        pass

    assert linkstore("query", "x", "--store", store, "--filter", '{"title": "none"}') == (
        0,
        "",
        "no hit: no document passes the filter; no document has 'none' in 'title'; there are 'Needle',"
        " 'Uptown'\n",
    )
    code, out, err = linkstore("query", "x", "--store", str(tmp_path / "empty"), "--json")
    assert (code, json.loads(out), err) == (0, [], "no hit: the store is empty\n")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("query", " ", "--store", "STORE"), exits.USAGE, "the query is empty"),
        (("query", "\udcff", "--store", "STORE"), exits.USAGE, "not valid UTF-8"),
        (("query", "x", "--store", "STORE", "--filter", "{"), exits.USAGE, "--filter is not valid JSON"),
        (("query", "x", "--store", "STORE", "--filter", "[]"), exits.USAGE, "must be a JSON object"),
        (("query", "x", "--store", "STORE", "--filter", '{"a": {"$x": 1}}'), exits.USAGE, "unknown operator"),
        (("query", "x", "--store", "STORE", "--kinds", "a=b"), exits.USAGE, "must be a number"),
        (("query", "x", "--store", "STORE", "--kinds", "a=2"), exits.USAGE, "from 0 to 1"),
        (("query", "x", "--store", " "), exits.USAGE, "--store is empty"),
        (("query", "x", "--store", "nosuch://host"), exits.USAGE, "no backend is known"),
        (
            ("query", "x", "--store", "STORE/none"),
            exits.NOT_FOUND,
            "make one with: linkstore index SOURCE --store STORE/none",
        ),
        (("doctor", "--store", "STORE/none"), exits.NOT_FOUND, "STORE/none"),
        (("doctor", "--verify", "--store", "STORE/none"), exits.NOT_FOUND, "STORE/none"),
        (("index", "STORE/none", "--store", "STORE"), exits.USAGE, "STORE/none"),
        (
            ("index", "STORE", "--store", "STORE-new", "--embedding", "x"),
            exits.EMBEDDING_MISSING,
            "unknown embedding",
        ),
        (("index", " ", "--store", "STORE"), exits.USAGE, "SOURCE is empty"),
        (
            ("facts", "--store", "STORE", "--facts", "STORE", "--model", "such"),
            exits.OTHER,
            "name its provider too, as in openai:",
        ),
        (("links", "nobody", "--store", "STORE"), exits.OTHER, "no document has the id or URL 'nobody'"),
        (
            ("delete", "tower", "nobody", "--store", "STORE"),
            exits.OTHER,
            "no document has the id or URL 'nobody'",
        ),
        (("delete", "--chunk", "nobody", "--store", "STORE"), exits.OTHER, "no document has the id nobody"),
        (("delete", "--store", "STORE"), exits.USAGE, "nothing to delete"),
        (("mcp", "--store", "STORE", "--tool", "nope"), exits.USAGE, "there is no tool 'nope'"),
        (("match", "--store", "STORE", "--query", "MATCH s"), exits.USAGE, "the query cannot be read at 's'"),
    ],
)
def test_an_error_is_one_line_with_a_fixed_exit_code(store, words, code, says):
    ended, out, err = linkstore(*(word.replace("STORE", store) for word in words))

    assert (ended, out) == (code, "")
    assert err.startswith("linkstore: ")
    assert says.replace("STORE", store) in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["links", "delete"])
def test_a_name_is_not_found_in_a_store_that_never_had_a_document(command, tmp_path):
    LinkStore.open(tmp_path / "empty").close()
    code, out, err = linkstore(command, "tower", "--store", str(tmp_path / "empty"))

    assert (code, out) == (exits.OTHER, "")
    assert err.startswith("linkstore: no document has the id or URL 'tower'")


@pytest.mark.parametrize(
    "option", [("-k", "0"), ("-k", "99999"), ("--depth", "-1"), ("--depth", "33"), ("--start-k", "-1")]
)
def test_numbers_out_of_range_are_refused_with_the_range(store, option):
    code, out, err = linkstore("query", "x", "--store", store, *option)

    assert (code, out) == (exits.USAGE, "")
    assert f"Invalid value for '{option[0]}': Input should be" in err


@pytest.mark.parametrize(
    "words", [(), ("nosuch",), ("query",), ("query", "x", "--strategy", "x", "--store", "y")]
)
def test_wrong_usage_ends_with_code_2(words, monkeypatch):
    monkeypatch.delenv("LINKSTORE_STORE", raising=False)

    assert linkstore(*words)[0] == exits.USAGE


def test_the_store_may_be_named_by_the_environment(store, monkeypatch):
    monkeypatch.setenv("LINKSTORE_STORE", store)

    assert linkstore("doctor")[0] == 0


def test_a_damaged_store_ends_with_code_5(store, tmp_path):
    for file in (tmp_path / "kb").glob("linkstore.db*"):
        file.write_bytes(b"This is no database. " * 500)

    code, _, err = linkstore("doctor", "--store", store)

    assert (code, err.count("\n")) == (exits.DAMAGED, 1)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreBusyError("busy"), exits.BUSY),
        (StoreFullError("full"), exits.OTHER),
        (PermissionError(13, "Permission denied"), exits.OTHER),
    ],
)
def test_errors_of_the_machine_end_in_one_line_too(store, monkeypatch, error, code):
    def fail(self):
        raise error

    monkeypatch.setattr(CoreStore, "survey", fail)

    assert linkstore("doctor", "--store", store) == (code, "", f"linkstore: {error}\n")


def test_doctor_counts_what_the_store_holds(store):
    code, out, _ = linkstore("doctor", "--store", store, "--json")
    counts = {
        "documents": 2,
        "pages": 0,
        "links": {"hyperlink": 5},
        "groups": 4,
        "dangling": {"hyperlink": 1},
        "external": 1,
    }
    assert (code, {name: json.loads(out)[name] for name in counts}) == (0, counts)
    assert "hyperlink" in linkstore("doctor", "--store", store)[1]


@pytest.mark.parametrize("name", ["tower", "/needle#top", "/needle", "needle/", "needle/index.html"])
def test_links_are_shown_both_ways_by_id_or_url(store, name):
    code, out, _ = linkstore("links", name, "--store", store, "--json")

    (found,) = json.loads(out)
    assert code == 0
    assert (found["id"], found["url"]) == ("tower", "/needle#top")
    assert [(link["tag"], link["to"]) for link in found["outgoing"]] == [
        ("/uptown", ["uptown"]),
        ("/gone", []),
        ("https://example.org/", []),
    ]
    assert [(link["tag"], link["from"]) for link in found["incoming"]] == [("/needle", [])]


def test_the_links_of_all_sections_of_a_page_are_shown(tmp_path):
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text("# A\n\nOne [b](b.md).\n\n## More\n\nTwo [c](c.md).\n")
    for name in "bc":
        (tmp_path / "kb" / f"{name}.md").write_text(f"# {name}\n\nText.\n")
    place = str(tmp_path / "store")
    assert linkstore("index", str(tmp_path / "kb"), "--store", place)[0] == 0
    out = linkstore("links", "a.md", "--store", place)[1]
    assert "/b.md" in out
    assert "/c.md" in out


def test_a_folder_of_files_is_not_migrated_into(store, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n")
    code, _, err = linkstore("migrate", store, str(tmp_path / "notes"))
    assert (code, [path.name for path in (tmp_path / "notes").iterdir()]) == (exits.USAGE, ["a.md"])
    assert "has other files, and is no store" in err


def test_the_default_store_is_left_out_of_a_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("# A\n\nText.\n")
    assert linkstore("index", "a.md")[0] == 0
    assert (tmp_path / ".linkstore" / ".gitignore").read_text() == "*\n"


def test_links_are_shown_for_a_person(store):
    _, out, _ = linkstore("links", "tower", "--store", store)

    assert "hyperlink /uptown “the district around it” → uptown" in out
    assert "hyperlink /gone → nothing here" in out
    assert "hyperlink /uptown ← tower" in linkstore("links", "uptown", "--store", store)[1]


def test_urls_are_shown_in_their_own_letters(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "東京.md").write_text("# 東京\n\nSee [it](日本.md) and [that](न.md).\n")
    (tmp_path / "docs" / "日本.md").write_text("# 日本\n\nText.\n")
    store = str(tmp_path / "kb")
    linkstore("index", str(tmp_path / "docs"), "--store", store)

    assert "hyperlink /日本.md “it” → 日本.md" in linkstore("links", "東京.md", "--store", store)[1]
    assert linkstore("links", "--broken", "--store", store)[1] == "東京.md\n  /न.md “that”\n"


def test_a_person_is_named_a_few_of_many_links(tmp_path):
    words = [Document(id=f"w{number}", page_content=f"word {number}") for number in range(9)]
    for document in words:
        add_links(document, Link.bidir(kind="keyword", tag="word"))
    with LinkStore.open(tmp_path / "kb") as opened:
        opened.add_documents(words)

    _, out, _ = linkstore("links", "w0", "--store", str(tmp_path / "kb"))
    _, full, _ = linkstore("links", "w0", "--store", str(tmp_path / "kb"), "--json")

    assert "and 3 more" in out
    assert len(json.loads(full)[0]["outgoing"][0]["to"]) == 8


def test_there_are_few_commands():
    """Also those of groups: one that is a part of another is an option of it."""
    application = get_command(make_application())
    names = [
        name
        for name, command in application.commands.items()
        for name in (getattr(command, "commands", None) or {name: command})
    ]
    assert len(application.commands) <= len(names) <= 18, names


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("links", "tower", "--broken"), "one of --broken, --suggest and --relink"),
        (("links", "tower", "-k", "3"), "-k goes with --suggest only"),
        (("links", "--broken", "--links", "entity"), "--links goes with --relink only"),
        (("doctor", "--verify", "--repair"), "--verify does not go with --repair"),
        (("doctor", "--verify", "--source", "site"), "--source does not go with --verify"),
        (("eval", "--profile", "--calibrate"), "--profile does not go with --calibrate"),
        (("eval", "--profile", "--strategies", "eager"), "--strategies does not go with --profile"),
        (("eval", "--noise", "0"), "--noise goes with --calibrate only"),
        (("eval",), "give --questions"),
        (("delete",), "give pages, --chunk ID, or --erase"),
    ],
)
def test_options_of_different_tasks_do_not_go_together(store, words, said):
    code, out, err = linkstore(*words, "--store", store)
    assert (code, out) == (exits.USAGE, "")
    assert said in err


def test_delete_removes_documents_or_none(store):
    assert linkstore("delete", "tower", "nobody", "--store", store)[0] == exits.OTHER
    assert json.loads(linkstore("doctor", "--store", store, "--json")[1])["documents"] == 2

    assert linkstore("delete", "tower", "uptown", "--store", store) == (
        0,
        "",
        "deleted 0 pages, 2 documents; the next index restores what the source still has\n",
    )
    assert json.loads(linkstore("doctor", "--store", store, "--json")[1])["documents"] == 0


@pytest.mark.parametrize("option", ["--verify", "--repair"])
def test_a_sound_store_is_said_to_be_sound(store, option):
    assert linkstore("doctor", option, "--store", store) == (0, "the store is sound\n", "")
    assert json.loads(linkstore("doctor", option, "--store", store, "--json")[1]) == {
        "sound": True,
        "findings": [],
    }


def test_control_characters_of_a_page_do_not_reach_the_terminal(tmp_path):
    """An indexed page cannot recolour, clear or retitle the reader's terminal."""
    with LinkStore.open(tmp_path / "kb") as opened:
        title = {"title": "\x1b]0;owned\x07", "url": "/\x1b[2J"}
        opened.add_documents([Document(id="x", page_content="red \x1b[31mtext", metadata=title)])

    for words in (("query", "red text"), ("query", "red text", "--explain"), ("links", "x")):
        _, out, _ = linkstore(*words, "--store", str(tmp_path / "kb"))
        assert out
        assert not {"\x1b", "\x07", "\x9b"} & set(out)


FORGED = "a\u20281. Forged  score 1.000\u202e\U000e0041"


@pytest.mark.parametrize("words", [("query", "red"), ("query", "red", "--explain"), ("links", FORGED)])
def test_an_id_cannot_forge_a_line_or_turn_the_text(tmp_path, words):
    with LinkStore.open(tmp_path / "kb") as opened:
        opened.add_documents([Document(id=FORGED, page_content="red text", metadata={"url": f"\n{FORGED}"})])

    code, out, _ = linkstore(*words, "--store", str(tmp_path / "kb"))
    assert code == 0
    assert not any(line.lstrip().startswith("1. Forged") for line in out.splitlines())
    assert not {"\u202e", "\u2028", "\U000e0041"} & set(out)
    assert r"a\u20281. Forged  score 1.000\u202e\U000e0041" in out


@pytest.mark.parametrize(
    "words", [("query", "red"), ("query", "red", "--json"), ("links", "東京"), ("doctor",)]
)
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437"])
def test_a_terminal_without_our_signs_is_enough(tmp_path, words, encoding):
    """Such as one of Windows: cp1252 lacks the arrows, cp437 the quotes."""
    one = Document(id="東京", page_content="red “text” … 😀", metadata={"title": "Tōkyō → 2"})
    add_links(one, Link.bidir(kind="keyword", tag="é", label="“é”"))
    with LinkStore.open(tmp_path / "kb") as opened:
        opened.add_documents([one])

    run = [sys.executable, "-c", "from linkstore.cli import main; main()"]
    done = subprocess.run(
        [*run, *words, "--store", str(tmp_path / "kb")],
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    said = b"strong match: the question names a document; the best similarity is 0.70\n"
    assert (done.returncode, done.stderr.removeprefix(said)) == (0, b"")
    printed = done.stdout.decode(encoding)
    if "--json" in words:
        assert json.loads(printed)[0]["id"] == "東京"
        assert "😀" in json.loads(printed)[0]["snippet"]


def test_lines_break_at_words_in_a_terminal(store, monkeypatch):
    from rich.console import Console

    from linkstore.cli import output

    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=31, color_system=None, highlight=False)
    with monkeypatch.context() as patched:
        patched.setattr(output, "get_stdout", lambda: console)
        patched.setenv("FORCE_COLOR", "1")  # plain lines need no console
        linkstore("query", "tower", "--store", store, "-k", "1", "--explain")

    words = set(TOWER.split())
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 31
    assert sum(word in words for line in lines for word in line.split()) >= len(TOWER.split())
    assert not output.get_stdout().is_terminal
    assert output.get_stdout().soft_wrap, "a file is not wrapped"


def test_the_version_is_printed():
    assert linkstore("--version") == (0, f"linkstore {__version__}\n", "")


def test_the_command_runs_as_a_process(store):
    words = [sys.executable, "-c", "from linkstore.cli import main; main()"]
    done = subprocess.run([*words, "doctor", "--store", store], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("documents")


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("the monorail", "monorails"),
        ("glass floors", "floor"),
        ("nothing of this", "Alpha"),
        ("", "Alpha"),
    ],
)
def test_a_snippet_shows_the_words_around_the_query(query, part):
    text = (
        "Alpha " + "filler words here " * 40 + "the two monorails run " + "more of them " * 40 + "glass floor"
    )

    shown = make_snippet(text, query, width=60)

    assert part in shown if query != "glass floors" else "glass" in shown
    assert len(shown) <= 60 + len("…  …")
    assert all(word in text.split() for word in shown.replace("…", "").split()), "whole words only"


def test_a_snippet_prefers_many_different_words_of_the_query():
    text = "tower tower tower " + "x " * 200 + "tower of glass " + "y " * 200

    assert "glass" in make_snippet(text, "glass tower", width=40)


def test_a_snippet_takes_time_with_the_length_of_the_query_and_no_more():
    """A question may be a whole document: each of its words was compared with each of the text."""
    text = " ".join(f"text{number}" for number in range(2_000))

    def search(count):
        assert make_snippet(text, " ".join(f"word{number}" for number in range(count))).startswith("text0")

    started = time.process_time()
    search(20_000)
    assert time.process_time() - started < 2  # 40 million comparisons take longer


def test_a_snippet_counts_longer_forms_of_a_word_of_the_query():
    text = "filler words here " * 40 + "two monorails run, " + "more of them " * 40
    assert "monorails" in make_snippet(text, "monorail", width=60)
    assert "monorails" not in make_snippet(text, "mon", width=60), "three letters begin too many words"


def test_a_short_text_is_its_own_snippet():
    assert make_snippet("two\n  words", "words") == "two words"


def test_broken_links_are_listed_by_page(store):
    code, out, err = linkstore("links", "--broken", "--store", store)
    assert (code, out) == (0, "/needle\n  /gone\n")
    assert err == (
        "links to pages that robots.txt or --deny left out are listed, too: they were not fetched\n"
        "links to other sites: 1, not looked at\n"
    )

    _, out, _ = linkstore("links", "--broken", "--store", store, "--json")
    assert json.loads(out) == [{"page": "/needle", "id": "tower", "tag": "/gone", "label": None}]
    linkstore("delete", "tower", "--store", store)
    assert linkstore("links", "--broken", "--store", store) == (
        0,
        "",
        "all links within the indexed sites lead to a page\n",
    )
    for words in (("links",), ("links", "tower", "--broken")):
        assert linkstore(*words, "--store", store)[0] == exits.USAGE


def links_of(place) -> dict[str, set[tuple[object, ...]]]:
    with LinkStore.open(place, create=False) as opened:
        return {
            one.id: {(x.kind, x.tag, x.direction, x.label, x.weight) for x in get_links(one)}
            for one in opened.scan()
        }


def test_an_export_is_indexed_again_with_the_same_links(store, tmp_path):
    target = tmp_path / "out.jsonl"
    code, out, err = linkstore("export", "--store", store, "-o", str(target))
    assert (code, out, err) == (0, "", f"wrote {target}\n")
    assert linkstore("index", str(target), "--store", str(tmp_path / "again"), "-q")[0] == 0

    assert links_of(tmp_path / "again") == links_of(store)
    with LinkStore.open(tmp_path / "again") as again, LinkStore.open(store) as first:
        assert [(one.id, one.page_content) for one in again.scan()] == [
            (one.id, one.page_content) for one in first.scan()
        ]


def test_a_site_goes_through_an_export_unchanged(tmp_path):
    assert linkstore("demo", "--copy", str(tmp_path / "site"))[0] == 0
    for source, place in (("site", "first"), ("out.jsonl", "again")):
        assert linkstore("index", str(tmp_path / source), "--store", str(tmp_path / place), "-q")[0] == 0
        linkstore("export", "--store", str(tmp_path / place), "-o", str(tmp_path / "out.jsonl"))

    assert links_of(tmp_path / "first") == links_of(tmp_path / "again") != {}


def graph(place, folder) -> tuple[dict[str, dict[str, str]], dict[tuple[str, str], dict[str, str]]]:
    """The nodes and edges of a store's graph, with their data."""
    target = folder / "out.graphml"
    assert linkstore("export", "--store", str(place), "--format", "graphml", "-o", str(target))[0] == 0
    root = ET.parse(target).getroot()
    space = "{http://graphml.graphdrawing.org/xmlns}"
    assert {key.get("id") for key in root.iter(f"{space}key")} >= {
        data.get("key") for data in root.iter(f"{space}data")
    }

    def data(one):
        return {part.get("key"): part.text for part in one}

    nodes = {one.get("id"): data(one) for one in root.iter(f"{space}node")}
    edges = {(one.get("source"), one.get("target")): data(one) for one in root.iter(f"{space}edge")}
    assert {end for edge in edges for end in edge} <= nodes.keys()
    return nodes, edges


def test_a_graph_has_documents_groups_and_links(store, tmp_path):
    nodes, edges = graph(store, tmp_path)

    assert nodes["d:tower"] == {"type": "document", "title": "Needle", "url": "/needle#top"}
    assert edges["d:tower", "g:hyperlink:/uptown"]["label"] == "the district around it"
    assert ("g:hyperlink:/uptown", "d:uptown") in edges


def test_a_graph_holds_whatever_ids_and_labels_there_are(tmp_path):
    name = 'a"<&>\x0b\n\ufffe東京'
    one = Document(id='a"<&>\ufffe東京', page_content="x", metadata={"title": name})
    add_links(one, Link.bidir(kind="keyword", tag=name, label=name, weight=0.5))
    with LinkStore.open(tmp_path / "kb") as opened:
        opened.add_documents([one])

    nodes, edges = graph(tmp_path / "kb", tmp_path)
    assert (len(nodes), len(edges)) == (2, 2)
    assert {data["weight"] for data in edges.values()} == {"0.5"}


def test_an_export_that_cannot_be_written_leaves_nothing(store, tmp_path):
    code, _, err = linkstore("export", "--store", store, "-o", str(tmp_path / "none/out"))
    assert (code, err.count("\n")) == (exits.USAGE, 1)


def test_the_demo_gives_its_site(tmp_path):
    code, out, err = linkstore("demo", "--copy", str(tmp_path / "site"))
    assert (code, out) == (0, "")
    assert f"linkstore open {tmp_path / 'site'}" in err
    assert (tmp_path / "site/uptown.html").is_file()
    assert linkstore("demo", "--copy", str(tmp_path / "site"))[0] == exits.USAGE


def test_ctrl_c_says_that_the_command_stopped(store, monkeypatch):
    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(CoreStore, "survey", stop)
    assert linkstore("doctor", "--store", store) == (exits.INTERRUPTED, "", "stopped\n")


def test_the_shell_can_complete_commands():
    words = [sys.executable, "-c", "from linkstore.cli import main; main()"]
    env = {
        **os.environ,
        "_LINKSTORE_COMPLETE": "complete_bash",
        "COMP_WORDS": "linkstore ex",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=env)
    assert done.stdout.split() == ["export"]


def test_context_prints_what_fits_the_budget(store):
    """All there is, one page, and nothing."""
    asked = ("context", "tower in Seattle", "--store", store)
    code, out, err = linkstore(*asked, "--explain", "--headers")
    assert code == 0
    assert out == f"[Uptown </uptown>]\n{UPTOWN}\n\n[Needle </needle#top>]\n{TOWER}\n"
    assert "2 documents, selected by rank, ordered by precedence" in err
    compiled = json.loads(linkstore(*asked, "-b", "25", "--selection", "knapsack", "--json")[1])
    assert compiled["selection"] == "knapsack"
    assert [item["id"] for item in compiled["items"]] == ["tower"]
    assert compiled["text"] == TOWER
    assert compiled["tokens"] <= compiled["budget"] == 25
    code, out, err = linkstore(*asked, "--budget", "1")
    assert (code, out) == (0, "")
    assert "the context is empty: no document or sentence fits into the budget of 1 tokens" in err


def test_suggest_lists_links_that_may_be_missing_and_writes_them(tmp_path):
    place = tmp_path / "kb"
    pages = {"may": "Begin with pest control.", "beans": "See pest control.", "pests": "Slugs eat lettuce."}
    titles = {"may": "Work in May", "beans": "Beans", "pests": "Pest control"}
    with LinkStore.open(place) as store:
        for url, text in pages.items():
            links = [Link.incoming(kind="hyperlink", tag=url)]
            if url == "beans":
                links.append(Link.outgoing(kind="hyperlink", tag="pests", label="pest control"))
            metadata = {"page": url, "title": titles[url], "links": [link.to_dict() for link in links]}
            store.add_texts([text], [metadata], ids=[url])
    code, out, _ = linkstore("links", "--suggest", "--store", str(place), "-k", "1")
    assert code == 0
    assert "may → pests" in out
    assert "names it “pest control”: Begin with pest control." in out
    code, out, err = linkstore("links", "--suggest", "--store", str(place), "-k", "1", "--dismiss", "1")
    assert (code, "dismissed: may → pests" in err) == (0, True)
    assert "may → pests" not in linkstore("links", "--suggest", "--store", str(place))[1]
    assert linkstore("links", "--suggest", "--store", str(place), "--dismiss", "9")[0] == exits.USAGE
    assert "may → pests" in linkstore("links", "--suggest", "--store", str(place), "--dismiss", "none")[1]
    code, out, err = linkstore("links", "--suggest", "--store", str(place), "-k", "1", "--apply", "--json")
    assert (code, json.loads(out)[0]["target"]) == (0, "pests")
    assert "wrote 1 link in 2 documents" in err
    assert "suggested" in linkstore("links", "may", "--store", str(place))[1]


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, exits.INTERRUPTED), (signal.SIGTERM, exits.TERMINATED)],
    ids=["ctrl-c", "term"],
)
def test_index_watch_follows_the_files_until_ctrl_c(tmp_path, number, code):
    """What watches the folder makes a KeyboardInterrupt of every signal; the exit code tells them apart."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.md").write_text("# Alpha\n\nThe first note.")
    command = [
        sys.executable,
        "-m",
        "linkstore",
        "index",
        str(site),
        "--store",
        str(tmp_path / "kb"),
        "--watch",
    ]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for what runs behind
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    assert process.stderr is not None
    assert "watching" in process.stderr.readline()
    assert "1 page: 1 added, 0 updated, 0 removed" in process.stderr.readline()
    (site / "b.md").write_text("# Beta\n\nThe second note.")
    assert "2 pages: 1 added, 0 updated, 0 removed" in process.stderr.readline()
    process.send_signal(number)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == code
    assert "the store has 2 pages" in rest
    assert "Traceback" not in rest
    with LinkStore.open(tmp_path / "kb") as store:
        assert store.survey().documents == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--watch", "--every", "1h"], "give one of --watch, --every and --dry-run"),
        (["--watch", "--dry-run"], "give one of"),
        (["--every", "soon"], "30m, 1h or 1d, not 'soon'"),
        (["--every", "0m"], "not '0m'"),
    ],
)
def test_what_cannot_be_repeated_is_said(tmp_path, options, message):
    code, _, err = linkstore("index", str(tmp_path), "--store", str(tmp_path / "kb"), *options)
    assert code == exits.USAGE
    assert message in err


def test_only_folders_and_vaults_are_watched(tmp_path):
    (tmp_path / "pages.jsonl").write_text("{}")
    place, store = str(tmp_path / "pages.jsonl"), str(tmp_path / "kb")
    code, _, err = linkstore("index", place, "--store", store, "--watch")
    assert (code, "for a jsonl, --every 1h" in err) == (exits.USAGE, True)
