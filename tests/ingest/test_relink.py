"""Links made of the whole corpus stay what they would be if all were linked from scratch."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count

import pytest
from documented import linkstore
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import (
    BEGUN_SOURCE,
    CORPUS_LINKS,
    CorpusLinks,
    EntityExtractor,
    EntitySettings,
    Linkers,
    MentionExtractor,
    MentionSettings,
    PageDocuments,
    Relinked,
    Site,
)
from langchain_core.documents import Document
from oracle import OracleBackend
from stores import embedding, times

from linkstore import Link, LinkStore, get_links
from linkstore.cli import exits
from linkstore.errors import DocumentError, ExtractionError
from linkstore.ingest import FolderSource, index, link_corpus, relink

TITLES = ["New York", "New York City", "City Hall", "Mercury", "Mercury (planet)", "Old Tower", "mercury"]
SENTENCES = [
    "She lives in New York City.",
    "New York and Mercury, seen from Old Tower.",
    "The mercury fell at City Hall.",
    "Grand Central Depot burned.",
    "Of Mercury and Grand Central Depot.",
    "Nothing is named here.",
]


def kept_up(kinds=("mention", "entity")):
    made = [MentionExtractor(MentionSettings(shared=2)), EntityExtractor(EntitySettings(most_documents=2))]
    return [one for one in made if one.kinds & set(kinds)]


def links_of(store, kinds=("mention", "entity")):
    """Every link of these kinds: document → (kind, tag, direction, label, weight)."""
    return {
        document.id: {
            (link.kind, link.tag, link.direction, link.label, link.weight)
            for link in get_links(document)
            if link.kind in kinds
        }
        for document in store.scan()
    }


def document(name, title, text, *links):
    metadata = {"title": title, "links": [link.to_dict() for link in links]}
    return Document(id=name, page_content=text, metadata=metadata)


def page(number, title, sentences):
    name = f"p{number}.html"
    made = document(name, TITLES[title], " ".join(SENTENCES[one] for one in sentences))
    return PageDocuments(url=name, digest="1", documents=(made,))


@pytest.fixture(params=["embedded", "oracle"])
def store(request):
    backend = OracleBackend() if request.param == "oracle" else None
    with LinkStore(embedding(), backend=backend) as opened:
        yield opened


PAGE = st.builds(
    page,
    st.integers(0, 5),
    st.integers(0, len(TITLES) - 1),
    st.lists(
        st.integers(0, len(SENTENCES) - 1), min_size=1, max_size=2
    ),  # documents without text are left out
)
STEP = st.lists(PAGE, max_size=3, unique_by=lambda one: one.url) | st.sets(
    st.integers(0, 5).map("p{}.html".format), min_size=1, max_size=2
)
RUN = st.lists(STEP, min_size=1, max_size=3)


@settings(max_examples=times(30, 500))
@given(
    st.lists(RUN, min_size=1, max_size=4),
    st.sampled_from([3, 10_000]),
    st.sampled_from([["mention"], ["entity"], ["mention", "entity"]]),
)
def test_following_changes_gives_the_links_of_linking_from_scratch(runs, many, kinds):
    """In any order of adds, updates and removals, in runs of any length."""
    with LinkStore.open(":memory:", embedding()) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(relink, "MANY_CHANGES", many)
        for run in runs:
            upkeep = CorpusLinks(store, kept_up(kinds))
            for step in run:
                if isinstance(step, set):
                    upkeep.remove(sorted(step), "site")
                else:
                    upkeep.put("site", step)
            upkeep.finish()
            followed = links_of(store)
            assert store.pages.digests(BEGUN_SOURCE) == {}
            assert link_corpus(store, kept_up(kinds)).changed == 0
            assert links_of(store) == followed
        with LinkStore.open(":memory:", embedding()) as fresh:
            bare = [document(one.id, one.metadata["title"], one.page_content) for one in store.scan()]
            fresh.add_documents(bare)
            link_corpus(fresh, kept_up(kinds))
            assert links_of(fresh) == followed
        assert store.verify().sound


def test_linking_makes_the_links_and_embeds_nothing(store, monkeypatch):
    own = Link.outgoing(kind="hyperlink", tag="u", label="there", weight=0.5)
    stale = Link.outgoing(kind="mention", tag="stale")
    store.add_documents(
        [
            document("a", "Space Needle", "A tower at Seattle Center.", own, stale),
            document("b", "Seattle Center", "Home of the Space Needle, with Pacific Science Centre."),
            document("c", "Elsewhere", "It lies near Pacific Science Centre."),
        ]
    )
    vectors = [record.vector.tolist() for record in store.backend.run(store.backend.scan(None, 9))]
    monkeypatch.setattr(store, "_embedding", None)

    assert link_corpus(store) == Relinked(documents=3, changed=3, links={"entity": 6, "mention": 5})
    assert links_of(store, ("mention",)) == {
        "a": {
            ("mention", "space needle", "in", None, 1.0),
            ("mention", "seattle center", "out", "Seattle Center", 1.0),
        },
        "b": {
            ("mention", "seattle center", "in", None, 1.0),
            ("mention", "space needle", "out", "Space Needle", 1.0),
        },
        "c": {("mention", "elsewhere", "in", None, 1.0)},
    }
    assert links_of(store, ("hyperlink",))["a"] == {("hyperlink", "u", "out", "there", 0.5)}
    assert [r.vector.tolist() for r in store.backend.run(store.backend.scan(None, 9))] == vectors
    assert link_corpus(store) == Relinked(documents=3)


def test_only_the_kinds_asked_for_are_replaced(store):
    store.add_documents([document("a", "Space Needle", "Space Needle"), document("b", "B", "Space Needle")])
    link_corpus(store)
    before = links_of(store, ("entity",))
    link_corpus(store, [MentionExtractor(MentionSettings(weight=0.5))])

    assert links_of(store, ("entity",)) == before
    assert ("mention", "space needle", "out", "Space Needle", 0.5) in links_of(store)["b"]


def test_links_of_other_extractors_cannot_be_made_anew(store):
    for other in ("citation", "keyword"):
        with pytest.raises(ExtractionError, match="use mention or entity"):
            link_corpus(store, [other])


def test_replacing_links_leaves_unknown_and_unchanged_documents_alone(store):
    store.add_documents([Document(id="a", page_content="a", metadata={"n": 1})])
    new = Link.outgoing(kind="k", tag="t")

    assert store.links.replace({"k"}, {"a": (), "gone": (new,)}).updated == 0
    assert store.links.replace({"k"}, {"a": (new,)}).updated == 1
    assert store.links.replace({"k"}, {"a": (new,)}).updated == 0
    assert store.get_by_ids(["a"])[0].metadata == {"n": 1, "links": [new.to_dict()]}
    assert store.links.replace({"k"}, {"a": ()}).updated == 1
    assert store.get_by_ids(["a"])[0].metadata == {"n": 1, "links": []}


def write(folder, **pages):
    folder.mkdir(exist_ok=True)
    for name, (title, text) in pages.items():
        (folder / f"{name}.html").write_text(f"<title>{title}</title><h1>{title}</h1><p>{text}</p>")


def index_linked(store, folder):
    return index(store, FolderSource(folder), name="site", links=("hyperlink", *CORPUS_LINKS))


def outgoing(store, name):
    links = get_links(store.get_by_ids([name])[0])
    return {link.tag for link in links if link.kind == "mention" and link.leads_out}


def test_a_folder_is_linked_as_it_changes(store, tmp_path):
    """A new title finds its old mentions, a new text its titles; a removed title's mentions go."""
    site = tmp_path / "site"
    write(site, a=("Alpha Page", "Names the Beta Page and Gamma Page."), b=("Beta Page", "Nothing."))
    assert index_linked(store, site).links["mention"] == 3
    assert outgoing(store, "a.html") == {"beta page"}

    write(site, c=("Gamma Page", "Names Alpha Page."))
    assert index_linked(store, site).links["mention"] == 5
    assert outgoing(store, "a.html") == {"beta page", "gamma page"}
    assert outgoing(store, "c.html") == {"alpha page"}

    (site / "b.html").unlink()
    index_linked(store, site)
    assert outgoing(store, "a.html") == {"gamma page"}
    assert not [group for group in store.survey().dangling if group[0] == "mention"]
    assert store.verify().sound


def test_a_run_that_changes_nothing_reads_no_texts(store, tmp_path, monkeypatch):
    site = tmp_path / "site"
    write(site, a=("Alpha Page", "Names the Beta Page."), b=("Beta Page", "Nothing."))
    index_linked(store, site)
    monkeypatch.setattr(store, "scan", None)
    assert index_linked(store, site).pages.unchanged == 2


def test_following_writes_only_what_differs(store):
    names = [f"Place Number{n} Hall" for n in range(50)]
    pages = [
        PageDocuments(url=f"{n}", digest="1", documents=(document(f"{n}", name, f"Near {names[n - 1]}."),))
        for n, name in enumerate(names)
    ]
    upkeep = CorpusLinks(store, kept_up())
    upkeep.put("site", pages)
    assert upkeep.finish().changed == 50

    new = PageDocuments(url="new", digest="1", documents=(document("new", "Place Number7", "x"),))
    upkeep = CorpusLinks(store, kept_up())
    upkeep.put("site", [new])
    assert upkeep.finish() == Relinked(documents=51, changed=1, links={"mention": 1})
    assert upkeep.finish() == Relinked()


def test_an_interrupted_run_is_made_good_by_the_next(store):
    upkeep = CorpusLinks(store, kept_up())
    upkeep.put("site", [page(0, 0, [0]), page(1, 1, [1])])
    assert links_of(store) == {"p0.html": set(), "p1.html": set()}
    assert store.pages.digests(BEGUN_SOURCE).keys() == {"mention", "entity"}

    assert CorpusLinks(store, kept_up()).finish().changed == 2
    assert store.pages.digests(BEGUN_SOURCE) == {}
    assert links_of(store)["p0.html"]


def test_what_the_store_refuses_is_not_counted(store):
    bad = Document(id="p0.html", page_content="New York City", metadata={"title": float("nan")})
    upkeep = CorpusLinks(store, kept_up())
    with pytest.raises(DocumentError):
        upkeep.put("site", [PageDocuments(url="p0.html", digest="1", documents=(bad,))])
    assert store.pages.digests(BEGUN_SOURCE)
    assert upkeep.finish() == Relinked()
    assert store.pages.digests(BEGUN_SOURCE) == {}

    upkeep.put("site", [page(0, 1, [0])])
    upkeep.finish()
    assert link_corpus(store, kept_up()).changed == 0


def test_a_document_that_another_page_replaces_is_counted_out(store):
    for url, title in (("p0.html", 0), ("other.html", 5)):
        upkeep = CorpusLinks(store, kept_up())
        upkeep.put("site", [replace(page(0, title, [1]), url=url)])
        upkeep.finish()
    followed = links_of(store)
    assert link_corpus(store, kept_up()).changed == 0
    assert followed["p0.html"] == {("mention", "old tower", "in", None, 1.0)}


def test_without_such_extractors_pages_are_passed_on_and_nothing_else(store):
    upkeep = CorpusLinks(store, [])
    upkeep.put("site", [page(0, 0, [0])])
    upkeep.remove(["p0.html"], "site")
    assert upkeep.finish() == Relinked()
    assert store.pages.digests() == {}


def test_ingest_knows_which_extractors_are_kept_up():
    linkers = Linkers(["mention", "citation", "entity", "keyword"], Site())
    assert [type(one).__name__ for one in linkers.kept_up] == ["MentionExtractor", "EntityExtractor"]


def test_batches_are_read_and_written_by_the_hundred(store, monkeypatch):
    monkeypatch.setattr(relink, "_BATCH", 7)
    numbers = count()
    store.add_documents([document(f"{next(numbers)}", "Space Needle", "At City Hall") for _ in range(40)])
    assert link_corpus(store).changed == 40
    assert link_corpus(store).changed == 0


def test_the_command_line_links_what_is_in_a_store(tmp_path):
    site, kb = tmp_path / "site", str(tmp_path / "kb")
    write(site, a=("Alpha Page", "Names the Beta Page."), b=("Beta Page", "Nothing."))
    assert linkstore("index", str(site), "--store", kb)[0] == 0

    code, out, err = linkstore("links", "--relink", "--store", kb, "--links", "mention", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"documents": 2, "changed": 2, "links": {"mention": 3}}
    code, out, _ = linkstore("links", "--relink", "--store", kb)
    assert code == 0
    assert "documents 2," in out

    assert linkstore("links", "--relink", "--store", kb, "--links", "nothing")[0] == exits.USAGE
    assert linkstore("links", "--relink", "--store", str(tmp_path / "none"))[0] == exits.NOT_FOUND
