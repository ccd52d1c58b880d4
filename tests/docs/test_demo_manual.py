"""The demo's manual: each question that it shows is one that a link answers."""

from __future__ import annotations

import json
import re
import tarfile

import pytest
from documented import ROOT, linkstore
from internals import DEMO_K, DEMO_LINKS, MANUAL_QUESTIONS, MAX_SHOWN, site

from linkstore import LinkStore
from linkstore.ingest import FolderSource, index
from linkstore.strategies import Similarity


@pytest.fixture(scope="module")
def manual():
    with LinkStore.open(":memory:") as opened, site("sqlite") as folder:
        index(opened, FolderSource(folder), links=DEMO_LINKS)
        yield opened


@pytest.mark.parametrize(("question", "answer"), MANUAL_QUESTIONS.items())
def test_a_link_brings_the_page_that_answers_a_question_on_the_manual(manual, question, answer):
    """It is among the first pages by default, with a link to it, and not among those by similarity."""
    similar = [page.page for page in manual.search(question, strategy=Similarity(k=DEMO_K)).by_page()]
    linked = manual.search(question).by_page()[:MAX_SHOWN]
    best = next(page.hits[0] for page in linked if page.page == answer)

    assert answer not in similar[:MAX_SHOWN]
    assert best.depth
    assert best.path[-1].kind == "hyperlink"
    assert best.path[-1].label


def test_most_pages_that_answer_are_first_by_default(manual):
    ranks = [
        [page.page for page in manual.search(question).by_page()].index(answer)
        for question, answer in MANUAL_QUESTIONS.items()
    ]

    assert (ranks.count(0), max(ranks)) == (7, 1)


def test_the_questions_on_the_manual_are_among_those_that_were_tried():
    """The benchmark counts all of them, so that ten good ones do not pass for the rule."""
    tried = json.loads((ROOT / "benchmarks" / "_demo_questions.json").read_text())
    pages = {asked["question"]: {page for group in asked["pages"] for page in group} for asked in tried}

    assert len(pages) == len(tried)
    assert all(answer in pages[question] for question, answer in MANUAL_QUESTIONS.items())


def test_every_link_between_pages_of_the_manual_leads_to_one(manual):
    internal = [tag for kind, tag, _ in manual.survey().dangling if kind == "hyperlink"]

    assert len(internal) < 50
    with site("sqlite") as folder:
        assert all((folder / tag.removeprefix("/").partition("#")[0]).is_file() for tag in internal)


def test_the_manual_is_small_and_of_files_only():
    path = ROOT / "linkstore" / "cli" / "sqlite.tar.xz"
    with tarfile.open(path) as archive:
        members = archive.getmembers()

    assert path.stat().st_size < 1_000_000
    assert all(member.isfile() and re.fullmatch(r"(\w+/)?[\w-]+\.html", member.name) for member in members)


def test_the_demo_command_shows_each_question_on_the_manual(tmp_path):
    code, out, _ = linkstore("demo", "sqlite", "--copy", str(tmp_path / "manual"))
    assert (code, out) == (0, "")
    assert (tmp_path / "manual" / "wal.html").is_file()

    code, out, _ = linkstore("demo", "sqlite")
    assert code == 0
    assert [line for line in out.splitlines() if line in MANUAL_QUESTIONS] == [*MANUAL_QUESTIONS]
    assert "fileformat.html#wal_index_format ─ “WAL-index File Format” → WAL-mode File Format" in out
