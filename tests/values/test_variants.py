"""Spellings of one name: what meets, and what does not."""

from __future__ import annotations

import random

import pytest
from internals import NameNormalizer, normalize_name
from langchain_core.documents import Document
from stores import embedding

from linkstore import Link, LinkStore, add_links, get_links
from linkstore.errors import LinkError
from linkstore.strategies import Eager

ALIASES = {"Compound Alpha": ["ALPHA", "CA-1"]}


def naming(id: str, *names: str, kind: str = "entity") -> Document:
    made = Document(id=id, page_content=f"about {id}")
    add_links(made, *(Link.bidir(kind=kind, tag=name) for name in names))
    return made


@pytest.mark.parametrize(
    "spellings",
    [
        (
            "Compound Alpha",
            "compound-alpha",
            "COMPOUND_ALPHA",
            " Compound \u2011 Alpha ",
            "compound\u2014alpha",
        ),
        ("Yahoo!", "yahoo", '"Yahoo"', "\u201cYahoo\u201d", "YAHOO."),
        ("Covid-19", "COVID 19", "covid_19"),
        ("Stra\u00dfe", "STRASSE", "strasse"),
        ("\ufb01le", "file", "FILE"),
        ("\u00e9t\u00e9", "e\u0301te\u0301", "\u00c9T\u00c9"),
    ],
)
def test_spellings_that_meet_by_the_rule(spellings):
    assert len({normalize_name(one) for one in spellings}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C", "C++"),
        ("C", "C#"),
        (".NET", "Net"),
        ("3.5", "35"),
        ("A1", "A2"),
        ("\u00e9t\u00e9", "ete"),
        ("U.S", "US"),
    ],
)
def test_names_that_do_not_meet(one, other):
    assert normalize_name(one) != normalize_name(other)


def test_the_rule_is_idempotent():
    """On random texts of all that it looks at: what it gives it leaves alone."""
    rng = random.Random(5)
    signs = "aB9 -_\u2011\u2014.,!?\"'\u201c\u2018()+#\u00df\u0301\u200b\u00ad\u0130\ufb01"
    for _ in range(5000):
        text = "".join(rng.choices(signs, k=rng.randint(1, 8)))
        try:
            once = normalize_name(text)
        except LinkError:
            assert not text.strip(" \u200b\u00ad")
        else:
            assert normalize_name(once) == once
            assert once


def test_variants_meet_in_one_group():
    variants = NameNormalizer({"entity"}, ALIASES)
    documents = [
        naming("a", "Compound Alpha"),
        naming("b", "compound-alpha", "ALPHA"),
        naming("c", "CA-1"),
        naming("d", "Beta"),
        naming("e", "ALPHA", kind="keyword"),
    ]
    with LinkStore(embedding()) as store:
        store.add_documents(variants.copies(documents))
        (met,) = store.links.neighbours("a").outgoing
        assert (met.link.tag, sorted(met.ids)) == ("compound alpha", ["b", "c"])
        assert store.links.neighbours("e").outgoing[0].link.tag == "ALPHA"  # of another kind
        found = store.search("about a", strategy=Eager(start_k=0), initial_roots=["c"])
        assert sorted(hit.document.id for hit in found) == ["a", "b", "c"]
    assert get_links(documents[1])[0].tag == "compound-alpha", "what was given stays as it was"


def test_a_stored_corpus_is_joined_without_embedding_it_again():
    variants = NameNormalizer(["entity"], ALIASES)
    documents = [
        naming(f"{n:04}", ("Compound Alpha", "ALPHA", "compound_alpha", "Beta")[n % 4]) for n in range(1100)
    ]
    with LinkStore(embedding()) as store:
        store.add_documents(documents)
        before = variants.report(store)
        store.embeddings.__dict__["embed_documents"] = None  # nothing may be embedded
        assert variants.rewrite(store) == 1100
        assert store.survey().groups == 2
        assert variants.rewrite(store) == 0
        assert variants.report(store) == before
        assert store.get_by_ids(["0001"])[0].metadata["links"][0]["label"] == "ALPHA"
        assert store.verify().sound


def test_the_report_names_merges_with_their_spellings():
    variants = NameNormalizer({"entity"}, ALIASES)
    documents = [
        naming("a", "Compound Alpha"),
        naming("b", "ALPHA"),
        naming("c", "ALPHA"),
        naming("d", "Beta"),
    ]
    report = variants.report(documents)
    (merge,) = report
    assert (merge.name, dict(merge.spellings)) == ("compound alpha", {"ALPHA": 2, "Compound Alpha": 1})
    assert str(merge) == "compound alpha: 'ALPHA' 2, 'Compound Alpha' 1"
    assert variants.report(variants.copies(documents)) == report


@pytest.mark.parametrize(
    "aliases",
    [
        {"a": ["x"], "b": ["X"]},
        {"a": ["b"], "b": ["c"]},
        {"a": "bc"},
        {"": ["b"]},
        {"a": [" \u200b"]},
    ],
)
def test_aliases_that_contradict_each_other_are_refused(aliases):
    with pytest.raises(LinkError):
        NameNormalizer({"entity"}, aliases)


def test_kinds_are_a_list():
    with pytest.raises(LinkError, match="list of kinds"):
        NameNormalizer("entity")


def test_links_that_become_one_are_one():
    made = Document(id="a", page_content="a")
    strong, weak = (
        Link.bidir(kind="entity", tag=tag, weight=weight) for tag, weight in (("X-1", 0.9), ("x 1", 0.4))
    )
    add_links(made, weak, strong)
    (document,) = NameNormalizer({"entity"}).copies([made])
    (link,) = get_links(document)
    assert (link.tag, link.weight) == ("x 1", 0.9)
