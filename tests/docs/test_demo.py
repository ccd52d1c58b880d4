"""The demo: what it claims is measured, on the site that ships."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documented import ROOT, linkstore
from internals import DEMO_ANSWER, DEMO_K, DEMO_LINKS, QUESTION, compare, site

from linkstore import LinkStore, get_links
from linkstore.ingest import FolderSource, index
from linkstore.strategies import PageRank, Similarity


@pytest.fixture(scope="module")
def store():
    with LinkStore.open(":memory:") as opened, site() as folder:
        index(opened, FolderSource(folder), links=DEMO_LINKS)
        yield opened


@pytest.fixture(scope="module")
def comparison(store):
    """What similarity alone finds, and what the default search finds by links besides."""
    return compare(store)


def test_similarity_alone_misses_the_answer(comparison):
    similar, _ = comparison
    assert len(similar) == DEMO_K == PageRank().k
    assert DEMO_ANSWER not in {hit.document.metadata["page"] for hit in similar}


def test_the_answer_is_not_just_below_the_cut(store):
    """Twice as many of the nearest documents would not bring it."""
    nearest = store.search(QUESTION, strategy=Similarity(k=2 * DEMO_K))

    assert DEMO_ANSWER not in {hit.document.metadata["page"] for hit in nearest}


def test_one_hyperlink_leads_to_the_answer(comparison):
    """It is the best of what only the links found, by the default search, and its path says how."""
    similar, linked = comparison
    best = linked[0]

    assert best.document.metadata["page"] == DEMO_ANSWER
    assert "Lower Queen Anne" in best.document.page_content
    assert (best.depth, best.path[-1].kind) == (1, "hyperlink")
    assert best.path[-1].label == "the neighbourhood around it"
    assert best.path[0].id in {hit.document.id for hit in similar}


def test_the_answers_page_does_not_give_itself_away():
    """It does not name what is asked about, so no search for these words finds it."""
    with site() as folder:
        text = (folder / "uptown.html").read_text().partition("<main>")[2].partition("</main>")[0]

    assert not re.search(
        r"needle|fair|1962|landmark|tower|\beats?\b|people eat|\bnear\b", text, re.IGNORECASE
    )


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

    assert (code, err) == (0, "indexing 15 pages\n")
    similar, linked = out.split("Not among the 10 nearest")
    assert DEMO_ANSWER not in similar
    assert DEMO_ANSWER in linked
    assert "“the neighbourhood around it”" in linked
    assert f'linkstore query "{QUESTION}" --store {place}\n' in out
    assert linkstore("query", QUESTION, "--store", str(place))[0] == 0


def test_the_command_for_queries_shows_the_same_by_default(tmp_path):
    """On a site that is indexed as the README says, so with all kinds of links."""
    with site() as folder:
        linkstore("index", str(folder), "--store", str(tmp_path / "kb"))
    _, out, _ = linkstore("query", QUESTION, "--store", str(tmp_path / "kb"))
    pages = re.findall(r"^   (\S+\.html)$", out, re.MULTILINE)
    assert pages.index(DEMO_ANSWER) < 5
    assert "hyperlink “the neighbourhood around it” → uptown.html" in out


def test_the_readme_and_the_notebooks_ask_the_same():
    asked = [ROOT / "README.md", ROOT / "notebooks" / "sources" / "quickstart.py"]
    assert all(QUESTION in path.read_text() for path in asked)


def test_the_demo_command_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert linkstore("demo")[0] == 0
    assert not list(Path(tmp_path).iterdir())


def test_the_demo_command_refuses_a_site_that_is_not_there():
    code, out, err = linkstore("demo", "../seattle")

    assert (code, out) == (2, "")
    assert "seattle" in err
    assert "sqlite" in err
