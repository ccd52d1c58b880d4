"""Hits of wikis say which article they are of."""

from __future__ import annotations

import json

import pytest
from documented import linkstore
from internals import _choose_zim_title, get_body, join_headings
from wikis import Written, dump_text

from linkstore import LinkStore
from linkstore.ingest import WikiDumpSource, index

TEXT = "A city of gardens and of rain. " * 10 + "\n\n== History ==\nFounded by monks, who built a bridge.\n"


def test_a_hit_in_a_section_names_its_article(tmp_path):
    (tmp_path / "wiki.xml").write_text(dump_text([Written("Zürich", TEXT), Written("Aa", "Text.")]))
    with LinkStore.open(tmp_path / "kb") as store:
        index(store, WikiDumpSource(tmp_path / "wiki.xml"))
        documents = {one.id: one for one in store.scan()}
    found = {name: one.metadata["title"] for name, one in documents.items()}
    assert found["Zürich#History"] == found["Zürich"] == "Zürich"
    words = ("query", "monks built a bridge", "--store", str(tmp_path / "kb"), "-k", "1")
    code, out, _ = linkstore(*words)
    assert code == 0
    assert out.startswith("1. Zürich")
    assert "History" in out
    assert join_headings(documents["Zürich#History"]) == "Zürich > History"
    assert get_body(documents["Zürich#History"]) == "Founded by monks, who built a bridge."
    assert json.loads(linkstore(*words, "--json")[1])[0]["title"] == "Zürich"


@pytest.mark.parametrize(
    ("title", "url", "heading", "found"),
    [
        ("Seattle", "A/Seattle", "History", "Seattle"),
        ("C (language)", "C_lang", "C", "C (language)"),
        ("Widgets — Docs 6", "w.html", "Widgets", "Widgets"),
        ("a b", "a%20b", "Heading", "Heading"),
        ("a", "a", "", "a"),
        ("", "a", "Heading", "Heading"),
    ],
)
def test_the_title_of_a_zim_entry(title, url, heading, found):
    assert _choose_zim_title(title, url, heading) == found
