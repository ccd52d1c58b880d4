"""A page stands alone: its policy fits its script, no text of a store ends its data, and it is small."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from pathlib import Path
from random import Random

import pytest
from hostile_texts import hostile_texts
from scripts import evaluate

from linkstore import LinkStore
from linkstore.explorer import page as pages
from linkstore.explorer import render

PACKAGE = Path(pages.__file__).parent
BUNDLE_LIMIT = 300_000
SCRIPT = re.compile(r'<script type="module">(.*?)</script>', re.DOTALL)
STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
DATA = re.compile(r'<script type="application/json" id="linkstore-data">(.*?)</script>', re.DOTALL)


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_allows_the_script_and_the_styles_of_the_page(store):
    made = render(store.search("install"), "install")
    (script,), (style,) = SCRIPT.findall(made), STYLE.findall(made)
    assert f"script-src 'sha256-{digest(script)}'" in made
    assert f"style-src 'sha256-{digest(style)}'" in made
    assert "connect-src" not in made


def test_the_bundle_is_small_and_names_no_other_place():
    bundle = [(PACKAGE / "static" / name).read_text() for name in ("explorer.js", "explorer.css")]
    assert sum(map(len, bundle)) <= BUNDLE_LIMIT
    for text in bundle:
        named = set(re.findall(r"https?://[a-z0-9.-]+\.[a-z]{2,}", text))
        assert named <= {"https://www.sigmajs.org", "http://www.w3.org", "https://anywidget.dev"}, named
        assert "</script" not in text.lower()
        assert "<!--" not in text


def test_no_text_of_a_store_ends_the_data_of_a_page(hostile):
    with LinkStore.open(hostile) as store:
        for made in (render(store), render(store.search("word"), hostile_texts()[1])):
            (data,) = DATA.findall(made)
            assert "<" not in data
            assert json.loads(data)["mode"] in ("answer", "corpus")
            assert len(re.findall("<script", made.replace(SCRIPT.search(made)[1], ""))) == 2


def test_a_page_of_a_large_store_is_cut_to_its_limit(store, monkeypatch):
    monkeypatch.setattr(pages, "_FEWEST_PAGES", 1)
    whole = len(render(store).encode())
    monkeypatch.setattr(pages, "DRAWN_PAGES", 4)
    monkeypatch.setattr(pages, "MOST_BYTES", whole - 1)
    made = render(store)
    assert len(made.encode()) < whole
    corpus = json.loads(DATA.findall(made)[0])["corpus"]
    assert (corpus["pages"], len(corpus["nodes"])) == (4, 2)


def test_the_bundle_is_what_the_sources_give(sources, tmp_path):
    subprocess.run(["npm", "run", "--silent", "check"], cwd=sources, check=True, timeout=300)
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=sources, check=True, timeout=120)
    for name in ("explorer.js", "explorer.css"):
        assert (tmp_path / name).read_text() == (PACKAGE / "static" / name).read_text(), (
            f"run make web: {name}"
        )


@pytest.mark.parametrize("seed", range(5))
def test_communities_that_are_there_are_found_and_named(sources, seed):
    """Ten cliques of twelve pages with some links between them, and a page without links."""
    random = Random(seed)
    pairs = [(c * 12 + i, c * 12 + j) for c in range(10) for i in range(12) for j in range(12) if i != j]
    pairs += [(random.randrange(120), random.randrange(120)) for _ in range(60)]
    edges = [[source, target, 1] for source, target in pairs if source != target]
    nodes = [{"id": str(at), "title": f"page {at}", "rank": (at % 12 == 7) + 0.5} for at in range(121)]
    call = f"nameCommunities({json.dumps({'nodes': nodes, 'edges': edges})})"
    assert evaluate(sources, "communities", call) == [str(at // 12 * 12 + 7) for at in range(120)] + ["120"]
