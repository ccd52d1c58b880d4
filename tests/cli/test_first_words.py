"""What a person types first: a path, a URL, a question, a wrong word; and the store of a folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from documented import linkstore
from internals import complete_words, find_store, site

from linkstore import LinkStore
from linkstore.cli import exits


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory without a store."""
    monkeypatch.delenv("LINKSTORE_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def indexed(here):
    """The same with the store that commands make by default."""
    with site() as pages:
        assert linkstore("index", str(pages))[0] == 0
    return here


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["."], ["open", "."]),
        (["docs/", "--no-browser"], ["open", "docs/", "--no-browser"]),
        (["nowhere.md"], ["open", "nowhere.md"]),
        (["https://docs.example.org"], ["open", "https://docs.example.org"]),
        (["example.org"], ["open", "example.org"]),
        (["query", "docs"], ["query", "docs"]),
        (["--version"], ["--version"]),
        (["version"], ["--version"]),
        (["help"], ["--help"]),
        (["help", "query"], ["query", "--help"]),
        ([], []),
    ],
)
def test_words_that_begin_with_a_source_open_it(here, words, completed):
    (here / "docs").mkdir()
    assert complete_words(words) == completed


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["serch", "x"], "linkstore query x"),
        (["search", "two words", "x"], "linkstore query 'two words' x"),
        (["idnex", "docs"], "linkstore index docs"),
        (["remove", "a.html"], "linkstore delete a.html"),
        (["verify"], "linkstore doctor --verify"),
        (["how", "does", "it", "work"], "linkstore query how does it work"),
        (["What is a hub?"], "linkstore query 'What is a hub?'"),
        (["$(rm x)", "y"], "linkstore query '$(rm x)' y"),
        (["nothing"], "linkstore --help lists the commands"),
        ([""], "linkstore --help lists the commands"),
    ],
)
def test_a_word_that_is_no_command_suggests_one(here, words, advice):
    code, out, err = linkstore(*words)
    assert (code, out) == (exits.USAGE, "")
    assert err.endswith(f"{advice}\n")


def test_a_folder_with_the_name_of_a_command_is_not_in_its_way(here):
    (here / "query").mkdir()
    assert complete_words(["query", "x"]) == ["query", "x"]
    assert complete_words(["./query"]) == ["open", "./query"]


def test_the_default_store_is_found_from_the_folders_below(indexed, monkeypatch):
    (indexed / "a" / "b").mkdir(parents=True)
    assert find_store() == ".linkstore"
    monkeypatch.chdir(indexed / "a" / "b")
    code, out, err = linkstore("doctor", "--json")
    assert (code, json.loads(out)["pages"]) == (0, 15)
    assert str(indexed / ".linkstore") in err


def test_the_nearest_default_store_is_taken_and_other_files_of_its_name_are_not(indexed, monkeypatch):
    below = indexed / "a" / "b"
    below.mkdir(parents=True)
    (indexed / "a" / ".linkstore").write_text("a file")
    (below / ".linkstore").mkdir()
    monkeypatch.chdir(below)
    assert find_store() == str(indexed / ".linkstore")


def test_without_any_store_the_message_says_how_to_make_one(here):
    code, out, err = linkstore("query", "a", "hub")
    assert (code, out) == (exits.NOT_FOUND, "")
    assert "there is no store here" in err
    assert "linkstore open SOURCE" in err
    assert not (here / ".linkstore").exists()


def test_where_the_working_directory_is_gone_there_is_no_default_store(here):
    gone = here / "gone"
    gone.mkdir()
    code = "import os, sys; os.rmdir(os.getcwd()); from linkstore.cli import main; main(['doctor'])"
    run = subprocess.run([sys.executable, "-c", code], cwd=gone, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "Traceback" not in run.stderr


def test_an_environment_variable_and_an_option_go_before_the_default_store(indexed, monkeypatch, tmp_path):
    with LinkStore.open(tmp_path / "other") as store:
        store.add_texts(["alone"])
    assert json.loads(linkstore("doctor", "--json", "--store", "other")[1])["documents"] == 1
    monkeypatch.setenv("LINKSTORE_STORE", "other")
    assert json.loads(linkstore("doctor", "--json")[1])["documents"] == 1


def test_a_question_needs_no_quotes(indexed):
    question = ["Where", "do", "people", "eat", "near", "the", "Space", "Needle?"]
    assert linkstore("query", *question) == linkstore("query", " ".join(question))
    assert linkstore("context", *question)[1] == linkstore("context", " ".join(question))[1]


def test_a_query_says_how_many_were_found_only_by_links(indexed):
    question = ("query", "Where do people eat near the Space Needle?")
    hits = json.loads(linkstore(*question, "--json")[1])
    count = sum(hit["depth"] > 0 for hit in hits)
    assert count
    assert f"; {count} of {len(hits)} were found only by links\n" in linkstore(*question, "--chunks")[2]
    assert "found only by links" not in linkstore(*question, "--strategy", "similarity")[2]


@pytest.mark.parametrize("command", ["open", "serve"])
def test_help_has_four_groups_and_an_example_of_each_command(command):
    _, out, _ = linkstore("-h")
    assert [line for line in out.splitlines() if line.endswith(":")] == [
        "Options:",
        "Begin:",
        "Ask:",
        "Look after a store:",
        "Take it elsewhere:",
    ]
    assert "query what is a hub" in out
    assert f"Example: linkstore {command}" in linkstore(command, "-h")[1]


def test_open_indexes_and_shows_and_ctrl_c_ends_it(here):
    with site() as pages:
        command = [sys.executable, "-m", "linkstore", str(pages), "--no-browser", "--port", "0"]
        process = subprocess.Popen(
            command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
        )
        assert process.stderr is not None
        lines: list[str] = []
        while not any("#token=" in line for line in lines):
            line = process.stderr.readline()
            assert line, lines
            lines.append(line)
        time.sleep(0.5)  # until the server runs
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == exits.INTERRUPTED
    assert "15 added" in out
    assert err == "stopped\n"
    assert (here / ".linkstore").is_dir()


def test_open_of_a_source_without_pages_ends_before_the_page_is_shown(here):
    (here / "empty").mkdir()
    code, _, err = linkstore("open", "empty", "--no-browser")
    assert code == exits.NOTHING_TO_INDEX
    assert "#token" not in err
    assert not (here / ".linkstore").exists()


def test_open_of_a_store_shows_it_and_indexes_nothing(indexed, monkeypatch):
    shown = []
    monkeypatch.setattr("linkstore.cli.serve.serve", lambda place, **_: shown.append(place))
    assert linkstore("open", ".linkstore")[0] == 0
    assert linkstore("open")[0] == 0
    assert shown == [".linkstore", ".linkstore"]
    assert json.loads(linkstore("doctor", "--json")[1])["pages"] == 15


def test_a_store_may_lie_in_the_folder_that_is_indexed(here):
    (here / "a.html").write_text("<h1>A hub</h1><p>It is not followed.</p>")
    for pages in ("1 added", "0 added"):
        code, out, _ = linkstore("index", ".")
        assert code == 0
        assert pages in out
