"""The demo: what it claims is measured, on the site that ships."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documented import linkstore

from linkstore import LinkStore, get_links
from linkstore.cli.demo import DEMO_ANSWER, DEMO_K, DEMO_LINKS, QUESTION, compare, site
from linkstore.ingest import FolderSource, index
from linkstore.strategies import Similarity


@pytest.fixture(scope="module")
def store():
    with LinkStore.open(":memory:") as opened, site() as folder:
        index(opened, FolderSource(folder), links=DEMO_LINKS)
        yield opened


@pytest.fixture(scope="module")
def comparison(store):
    """What similarity alone finds, and what links find besides."""
    return compare(store)


def test_similarity_alone_misses_the_answer(comparison):
    similar, _ = comparison
    assert len(similar) == DEMO_K
    assert DEMO_ANSWER not in {hit.document.metadata["page"] for hit in similar}


def test_the_answer_is_not_just_below_the_cut(store):
    """One more of the nearest documents would not bring it."""
    nearest = store.search(QUESTION, strategy=Similarity(k=DEMO_K + 1))

    assert DEMO_ANSWER not in {hit.document.metadata["page"] for hit in nearest}


def test_one_hyperlink_leads_to_the_answer(comparison):
    """It is the best of what only the links found, and its path says how."""
    similar, linked = comparison
    best = linked[0]

    assert best.document.metadata["page"] == DEMO_ANSWER
    assert "Lower Queen Anne" in best.document.page_content
    assert (best.depth, best.path[-1].kind) == (1, "hyperlink")
    assert best.path[-1].label == "the neighbourhood around it"
    assert best.path[0].id in {hit.document.id for hit in similar}


def test_the_answers_page_does_not_give_itself_away():
    """It names neither the landmark nor the fair, so no search for these words finds it."""
    with site() as folder:
        text = (folder / "uptown.html").read_text().partition("<main>")[2].partition("</main>")[0]

    assert not re.search("needle|fair|1962|landmark|tower", text, re.IGNORECASE)


def test_every_link_of_the_site_leads_to_a_section_of_it(store):
    """Nothing dangles, in the text or in the navigation."""
    with site() as folder:
        for page in folder.glob("*.html"):
            for target in re.findall(r'href="([^"]*)"', page.read_text()):
                name, _, fragment = target.partition("#")
                assert not fragment or f'id="{fragment}"' in (folder / name).read_text(), (
                    f"{page.name}: {target}"
                )
                assert (folder / name).is_file(), f"{page.name}: {target}"
    assert store.survey().dangling == ()


def test_links_in_the_navigation_are_left_out(store):
    """Every page links to every page there; in the text few do."""
    ballard = store.search("Ballard", strategy=Similarity(k=50), filter={"page": "ballard.html"})

    assert ballard
    assert not [
        link
        for hit in ballard
        for link in get_links(hit.document)
        if link.leads_out and link.kind == "hyperlink"
    ]


def test_the_demo_command_shows_what_only_links_found(tmp_path):
    place = tmp_path / "kept"
    code, out, err = linkstore("demo", "--store", str(place))

    assert (code, err) == (0, "")
    similar, linked = out.split("Only by following")
    assert DEMO_ANSWER not in similar
    assert DEMO_ANSWER in linked
    assert "“the neighbourhood around it”" in linked
    assert linkstore("query", "Who built the monorail?", "--store", str(place))[0] == 0


def test_the_demo_command_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert linkstore("demo")[0] == 0
    assert not list(Path(tmp_path).iterdir())
