"""Files of JSON lines and LangChain documents become documents with links, and follow changes."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from pathlib import Path

import pytest
from documented import linkstore
from internals import write_json_lines
from langchain_core.documents import Document
from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter

from linkstore import Link, LinkStore, add_links, get_links
from linkstore.cli import exits
from linkstore.errors import DocumentError, SourceNotFoundError, StrategyError
from linkstore.ingest import (
    DocumentsSource,
    FolderSource,
    JsonLinesSource,
    RemovalRefusedError,
    WriteCounts,
    index,
)


@pytest.fixture
def store():
    with LinkStore() as opened:
        yield opened


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pages.jsonl"


def write(path, *lines):
    path.write_bytes(b"\n".join(one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines))


def out(store, name):
    (document,) = store.get_by_ids([name])
    return {(link.kind, link.tag) for link in get_links(document) if link.direction == "out"}


def led_to(store, name):
    wanted = out(store, name)
    return {d.id for d in store.scan() for li in get_links(d) if li.leads_in and (li.kind, li.tag) in wanted}


TOWER = {
    "id": "tower",
    "text": "A tower.",
    "title": "Tower",
    "url": "https://c.org/tower",
    "links": ["city#history", {"url": "/", "label": "home"}, {"id": 7}, "mailto:me@c.org"],
    "metadata": {"height": 184, "nested": {"a": [1, None]}},
}
CITY = {"id": "city", "text": "A city.", "url": "https://c.org/city#history", "links": ["tower"]}
SEVEN = {"id": 7, "text": "Seven.", "links": ["tower", "a b/ü:1", "https://c.org/tower"]}
ODD = {"id": "a b/ü:1", "text": "Odd.", "links": [{"kind": "cites", "tag": "x", "direction": "out"}]}


def test_each_line_becomes_a_document_with_links(store, path):
    write(path, TOWER, b"", CITY, SEVEN, b"  ", ODD)
    summary = index(store, JsonLinesSource(path))

    assert (summary.pages, dict(summary.skipped)) == (WriteCounts(added=4), {})
    (tower,) = store.get_by_ids(["tower"])
    assert tower.page_content == "A tower."
    metadata = {key: value for key, value in tower.metadata.items() if key != "links"}
    assert metadata == {**TOWER["metadata"], "title": "Tower", "url": TOWER["url"]}
    assert led_to(store, "tower") == {"city", "7"}
    assert led_to(store, "city") == {"tower"}
    assert led_to(store, "7") == {"tower", "a b/ü:1"}, "by id, which the tower does not answer to, and by URL"
    assert out(store, "a b/ü:1") == {("cites", "x")}
    assert {link.label for link in get_links(tower)} == {None, "home"}


def test_a_second_run_takes_up_what_changed(store, path):
    write(path, TOWER, CITY, SEVEN)
    index(store, JsonLinesSource(path))
    assert index(store, JsonLinesSource(path)).pages == WriteCounts(unchanged=3)
    write(path, CITY, {**TOWER, "text": "Another."}, ODD)
    assert index(store, JsonLinesSource(path), dry_run=True).pages == WriteCounts(
        added=1, updated=1, unchanged=1, removed=1
    )
    assert index(store, JsonLinesSource(path)).pages == WriteCounts(
        added=1, updated=1, unchanged=1, removed=1
    )
    assert store.get_by_ids(["tower"])[0].page_content == "Another."


BROKEN = (
    (b"{", "line 2", "invalid JSON"),
    (b"\xff\xfe", "line 2", "invalid JSON"),
    (b"[" * 100_000, "line 2", "invalid JSON"),
    (b"[1]", "line 2", "not an object"),
    ({"text": "x"}, "line 2", "not an object"),
    ({"id": True, "text": "x"}, "line 2", "not an object"),
    ({"id": " ", "text": "x"}, "line 2", "not an object"),
    ({"id": "x"}, "x", 'no "text"'),
    ({"id": "x", "text": " "}, "x", 'no "text"'),
    ({"id": "x", "text": 1}, "x", '"text" is a int'),
    ({"id": "x", "text": "x", "titel": "y"}, "x", "unknown titel; known are answers, id, links"),
    ({"id": "x", "text": "x", "links": "a"}, "x", '"links" is a str'),
    ({"id": "x", "text": "x", "links": [1]}, "x", "the link '1' is not a URL"),
    ({"id": "x", "text": "x", "links": [{"id": "a", "url": "b"}]}, "x", "is not a URL"),
    ({"id": "x", "text": "x", "links": [{"url": 1}]}, "x", '"url" is a int'),
    ({"id": "x", "text": "x", "links": [{"kind": "", "tag": "t", "direction": "in"}]}, "x", "invalid link"),
    ({"id": "x", "text": "x", "metadata": {"links": [1]}}, "x", "invalid link"),
    ({"id": "x", "text": "x", "metadata": []}, "x", '"metadata" is a list'),
    ({"id": "tower", "text": "x"}, "line 2", "an earlier line has the same id"),
)


@pytest.mark.parametrize(("line", "name", "reason"), BROKEN)
def test_bad_lines_are_reported_by_number_and_the_rest_is_kept(store, path, line, name, reason):
    write(path, TOWER, line, CITY)
    summary = index(store, JsonLinesSource(path))

    assert list(summary.skipped) == [name]
    assert reason in summary.skipped[name]
    assert "line 2" in f"{name} {summary.skipped[name]}"
    assert summary.pages == WriteCounts(added=2)


def test_what_cannot_be_told_apart_from_broken_lines_stays(store, path):
    write(path, TOWER, CITY, SEVEN)
    index(store, JsonLinesSource(path))
    write(path, TOWER, json.dumps(CITY).encode()[:20])

    summary = index(store, JsonLinesSource(path))
    assert (summary.pages, list(summary.skipped)) == (WriteCounts(unchanged=1), ["line 2"])
    assert store.survey().documents == 3
    write(path, TOWER, {**CITY, "text": ""})
    assert index(store, JsonLinesSource(path)).pages == WriteCounts(unchanged=1, removed=1)
    assert {document.id for document in store.scan()} == {"tower", "city"}


def test_long_lines_are_read_up_to_a_limit_and_the_next_one_is_found(store, path):
    long = {"id": "long", "text": "word " * 200_000}
    write(path, TOWER, long, {"id": "longer", "text": "x" * (3 * 2**20)}, CITY)
    summary = index(store, JsonLinesSource(path, max_bytes=2**20))

    assert list(summary.skipped) == ["line 3"]
    assert "1,048,576 bytes (--max-bytes;" in summary.skipped["line 3"]
    with pytest.raises(StrategyError, match="max_bytes"):
        JsonLinesSource(path, max_bytes=0)
    assert {document.id for document in store.scan()} == {"tower", "long", "city"}


def test_progress_knows_about_how_many_lines_there_are(store, path):
    write(path, *({"id": f"{n}", "text": "same"} for n in range(1000)))
    totals = set()
    index(store, JsonLinesSource(path), progress=lambda done, total, _: totals.add(total))
    assert totals <= set(range(900, 1101))


def test_documents_that_cannot_be_stored_are_reported_and_those_beside_them_stored(store, path):
    write(
        path,
        *({"id": f"{n}", "text": f"text {n}"} for n in range(9)),
        {"id": "big", "text": "t", "metadata": {"n": 2**64 - 1}},
    )
    summary = index(store, JsonLinesSource(path))
    assert summary.pages.added + len(summary.skipped) == 10
    assert summary.pages.added >= 9


def test_an_empty_file_removes_everything_and_a_missing_one_nothing(store, path):
    write(path, TOWER)
    index(store, JsonLinesSource(path))
    with pytest.raises(SourceNotFoundError):
        index(store, JsonLinesSource(path.with_name("missing.jsonl")))
    path.write_bytes(b"")
    with pytest.raises(RemovalRefusedError):
        index(store, JsonLinesSource(path))
    assert index(store, JsonLinesSource(path), prune=True).pages == WriteCounts(removed=1)


def test_the_command_line_indexes_json_lines_and_vaults(tmp_path, path):
    write(path, TOWER, b"broken", SEVEN)
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "A.md").write_text("# A\n\nSee [[B]].\n")
    (vault / "B.md").write_text("# B\n\nText.\n")
    store = ("--store", str(tmp_path / "kb"), "--json")

    code, printed, _ = linkstore("index", str(path), *store)
    assert (code, json.loads(printed)["pages"]["added"], json.loads(printed)["skipped"].keys()) == (
        exits.SOURCE_INCOMPLETE,
        2,
        {"line 2"},
    )
    code, printed, _ = linkstore("index", str(vault), "--prefix", "notes", *store)
    assert {"source": str(vault), "url": "notes/B.md", "links": 1} in json.loads(printed)["linked"]
    code, printed, _ = linkstore("index", str(vault), "--as", "folder", "--source", "x", "--dry-run", *store)
    assert (code, json.loads(printed)["pages"]["added"]) == (0, 2)
    code, _, err = linkstore("index", str(vault), "--as", "wax", *store)
    assert (code, "known: website, jsonl, zim, wiki, vault, folder" in err) == (exits.USAGE, True)


LOADED = [
    Document(page_content="One.", metadata={"source": "https://o.org/a", "page": 1}),
    Document(page_content="Two.", metadata={"source": "https://o.org/a", "page": 2}),
    Document(page_content="Three.", metadata={"source": Path("/x/y.txt"), "at": dt.date(2024, 1, 2)}),
    Document(page_content="Four.", id="four"),
    Document(page_content="Five."),
]


def describe(document):
    fields = {key: value for key, value in document.metadata.items() if key != "links"}
    return document.id, document.page_content, fields, get_links(document)


def part(id, page, text="Text."):
    return {"id": id, "text": text, "page": page}


def test_a_store_that_is_exported_and_indexed_has_the_same_pages(store, path, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/a.md").write_text("# A\n\nText.\n\n## Zoo\n\nSee [b](b.md#last).\n\n## Ant\n\nText.\n")
    (tmp_path / "site/b.md").write_text("---\nowner: me\n---\n# B\n\nText.\n\n## Last\n\nText.\n")
    index(store, FolderSource(tmp_path / "site"))
    store.add_texts(["Of no page."], ids=["a.md!"])
    path.write_bytes(b"".join(write_json_lines(store)))

    with LinkStore() as again:
        assert index(again, JsonLinesSource(path)).pages.added == 3
        assert index(again, JsonLinesSource(path)).pages == WriteCounts(unchanged=3)
        assert list(map(describe, again.scan())) == list(map(describe, store.scan()))
        pages = list(store.pages.digests())
        assert again.pages.ids(None, pages) == store.pages.ids(None, pages)
        assert again.pages.ids(None, ["a.md"]) == {"a.md": ("a.md", "a.md#zoo", "a.md#ant")}


def test_a_page_of_several_lines_is_replaced_as_a_whole(store, path):
    write(path, part("a", "p"), part("b", "p"), {"id": "c", "text": "Text."})
    assert index(store, JsonLinesSource(path)).pages.added == 2

    write(path, part("b", "p", "New."), part("d", "p"), {"id": "c", "text": "Text."})
    assert index(store, JsonLinesSource(path)).pages == WriteCounts(updated=1, unchanged=1)
    assert store.pages.ids(None, ["p"]) == {"p": ("b", "d")}


def test_a_bad_line_does_not_part_a_page(store, path):
    write(path, part("a", "p"), part("a", "p"), b"{", part("b", "p"), part("c", ["p"]))
    summary = index(store, JsonLinesSource(path))

    assert store.pages.ids(None, ["p"]) == {"p": ("a", "b")}
    assert [*summary.skipped] == ["line 2", "line 3", "line 5"]
    assert "\"page\" is ['p']" in summary.skipped["line 5"]


@pytest.mark.parametrize("first", [part("a", "p"), {"id": "p", "text": "Text."}])
def test_lines_of_a_page_that_stand_apart_are_reported(store, path, first):
    write(path, first, {"id": "c", "text": "Text."}, part("b", "p"))
    summary = index(store, JsonLinesSource(path))

    assert store.pages.ids(None, ["p"]) == {"p": (first["id"],)}
    assert "stand together" in summary.skipped["p"]


def test_documents_of_loaders_are_indexed_as_they_are(store):
    summary = index(store, DocumentsSource(iter(LOADED), "loader"))

    assert (summary.pages, dict(summary.skipped)) == (WriteCounts(added=5), {})
    by_text = {document.page_content: document for document in store.scan()}
    assert by_text["One."].id.startswith("https://o.org/a#")
    assert by_text["Four."].id == "four"
    assert by_text["Three."].metadata == {"source": "/x/y.txt", "at": "2024-01-02", "links": []}
    arriving = [
        d.page_content for d in store.scan() if any(li.tag == "https://o.org/a" for li in get_links(d))
    ]
    assert arriving == ["One."], "the first of a page answers to links to it"
    assert index(store, DocumentsSource(LOADED, "loader")).pages == WriteCounts(unchanged=5)
    assert LOADED[0].metadata == {"source": "https://o.org/a", "page": 1}, "left as it was"


@pytest.mark.parametrize("given", [["a text"], Document(page_content="a single one")])
def test_what_is_no_document_is_refused_by_its_number(store, given):
    with pytest.raises(DocumentError, match="document 1 must be a Document, not "):
        index(store, DocumentsSource(given, "loader"))


def test_documents_that_do_not_come_again_go(store):
    index(store, DocumentsSource(LOADED, "loader"))
    index(store, DocumentsSource([Document(page_content="Other.")], "other"))
    changed = [Document(page_content="One, changed.", metadata=LOADED[0].metadata), *LOADED[1:3]]
    assert index(store, DocumentsSource(changed, "loader"), prune=True).pages == WriteCounts(
        added=1, updated=1, unchanged=1, removed=3
    ), "its neighbour is linked with the changed one"
    assert store.survey().documents == 4


def along(store, label):
    """For each text, those of the documents that its section links with a label lead to."""
    documents = list(store.scan())
    named = {
        link.tag: d.page_content
        for d in documents
        for link in get_links(d)
        if (link.kind, link.direction) == ("section", "in")
    }
    return {
        d.page_content: [named[link.tag] for link in get_links(d) if link.label == label] for d in documents
    }


BOOK = " ".join(f"Sentence number {n} of the book tells of the river and of mill {n * 7}." for n in range(40))
SPLITTERS = {
    "recursive": RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=80),
    "with start": RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=80, add_start_index=True),
    "characters": CharacterTextSplitter(separator=" ", chunk_size=300, chunk_overlap=0),
}


@pytest.mark.parametrize("name", SPLITTERS)
def test_chunks_of_one_source_are_linked_both_ways(store, name):
    chunks = SPLITTERS[name].split_documents(
        [
            Document(BOOK, metadata={"source": "book.txt"}),
            Document(BOOK[:700].upper(), metadata={"source": "b.txt"}),
        ]
    )
    index(store, DocumentsSource(chunks, "s"))

    texts = [[d.page_content for d in chunks if d.metadata["source"] == of] for of in ("book.txt", "b.txt")]
    following = {one: [other] for part in texts for one, other in itertools.pairwise(part)}
    before = {other: [one] for part in texts for one, other in itertools.pairwise(part)}
    ends = {text: [] for part in texts for text in part}
    assert along(store, "next") == {**ends, **following}
    assert along(store, "previous") == {**ends, **before}


def test_chunks_that_come_in_another_order_are_linked_by_their_start_index(store):
    chunks = SPLITTERS["with start"].split_documents(
        [Document(BOOK, metadata={"source": "book.pdf", "page": page}) for page in (1, 2)]
    )
    pages = [[d.page_content for d in chunks if d.metadata["page"] == page] for page in (1, 2)]
    half = len(chunks) // 2
    index(store, DocumentsSource([*chunks[:half][::-1], *chunks[half:]], "s"))

    in_order = [d for d in store.scan() if d.metadata["page"] == 1]
    by_place = {d.metadata["start_index"]: get_links(d) for d in in_order}
    starts = sorted(by_place)
    names = {link.tag: start for start in starts for link in by_place[start] if link.leads_in}
    assert len(starts) == len(pages[0])
    for start, following in itertools.pairwise(starts):
        assert [names[li.tag] for li in by_place[start] if li.label == "next"] == [following]


def test_documents_without_origin_or_with_another_are_not_linked(store):
    documents = [
        Document("a"),
        Document("b"),
        Document("c", metadata={"source": "x"}),
        Document("d", metadata={"source": "y"}),
    ]
    index(store, DocumentsSource(documents, "s"))
    assert not [link for d in store.scan() for link in get_links(d)]


def test_a_blank_chunk_does_not_part_its_neighbours(store):
    chunks = [Document(one, metadata={"source": "y"}) for one in ("a", " ", "b")]
    index(store, DocumentsSource(chunks, "s"))
    assert along(store, "next") == {"a": ["b"], "b": []}


def test_links_of_documents_stay_and_extractors_of_documents_add_theirs(store):
    document = Document(page_content="See RFC 9110.", id="a")
    add_links(document, Link.outgoing(kind="cites", tag="x", label="y", weight=0.5))
    index(store, DocumentsSource([document], "s"))
    (stored,) = store.get_by_ids(["a"])
    assert {link.kind for link in get_links(stored)} == {"cites", "citation"}
    assert len(get_links(document)) == 1


def test_broken_documents_are_reported_and_the_rest_is_kept(store):
    endless: dict = {}
    endless["self"] = endless
    documents = [
        Document(page_content="", id="empty"),
        Document(page_content="x", id="endless", metadata={"a": endless}),
        Document(page_content="x", id="linked", metadata={"links": [1]}),
        Document(page_content="good", id="good"),
        Document(page_content="again", id="good"),
        Document(page_content="x", id="nul\0"),
    ]
    summary = index(store, DocumentsSource(documents, "s"))
    assert set(summary.skipped) == {"empty", "endless", "linked", "document 5", "nul\0"}
    assert [document.page_content for document in store.scan()] == ["good"]


def test_what_was_acknowledged_stays_when_a_loader_fails_and_the_next_run_goes_on(store):
    def failing():
        for n in range(1200):
            yield Document(page_content=f"text {n}", id=f"{n:04}")
        raise OSError("the connection is gone")

    with pytest.raises(OSError, match="connection"):
        index(store, DocumentsSource(failing(), "s"))
    kept = store.survey().documents
    assert kept == 1024, "two batches"
    assert store.verify().sound
    documents = [Document(page_content=f"text {n}", id=f"{n:04}") for n in range(1200)]
    assert index(store, DocumentsSource(documents, "s")).pages == WriteCounts(added=176, unchanged=1024)


def test_ctrl_c_keeps_what_was_written_and_removes_nothing(store):
    documents = [Document(page_content=f"text {n}", id=f"{n:04}") for n in range(1100)]
    index(store, DocumentsSource(documents[:3], "s"))

    def stop(done, total, name):
        if done == 1050:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index(store, DocumentsSource(documents[2:], "s"), progress=stop)
    ids = {document.id for document in store.scan()}
    assert {"0000", "0001", "0002", "1000"} <= ids
    assert index(store, DocumentsSource(documents[2:], "s")).pages.removed == 2


def test_progress_without_a_known_end(store):
    heard = []
    index(store, DocumentsSource(iter(LOADED), "s"), progress=lambda *told: heard.append(told[:2]))
    assert heard == [(n, 0) for n in range(1, 6)]


def names_of(store, name):
    (found,) = store.get_by_ids([name])
    return {link.tag for link in get_links(found) if link.leads_in}


CLAIM = {"kind": "hyperlink", "tag": "https://bank.example/", "direction": "in"}


@pytest.mark.parametrize(
    "claim",
    [
        {"url": "https://bank.example/"},
        {"url": "https:\\\\bank.example/"},
        {"links": [CLAIM]},
        {"metadata": {"links": [CLAIM]}},
        {"links": [{**CLAIM, "direction": "bidir"}]},
    ],
)
def test_a_line_is_not_believed_to_be_of_another_site(store, path, claim):
    own = {"id": "a", "text": "Own.", "url": "https://mine.example/a"}
    write(path, own, {"id": "evil", "text": "Evil.", **claim})
    summary = index(store, JsonLinesSource(path))
    assert names_of(store, "a") == {"https://mine.example/a"}
    assert "https://bank.example/" not in names_of(store, "evil")
    assert "1 page names an address on another site as its own" in summary.skipped["(claims)"]
    assert "as evil does" in summary.skipped["(claims)"]

    trusted = index(store, JsonLinesSource(path, claims="any"))
    assert trusted.pages == WriteCounts(updated=1, unchanged=1)
    assert "https://bank.example/" in names_of(store, "evil")


def test_a_document_is_not_believed_to_be_of_another_site(store):
    pages = ("https://mine.example/a", "https://mine.example/b", "https://bank.example/")
    documents = [
        Document(id=str(n), page_content=f"Text {n}.", metadata={"source": url})
        for n, url in enumerate(pages)
    ]
    summary = index(store, DocumentsSource(documents, "s"))
    assert [names_of(store, str(n)) for n in range(3)] == [{pages[0]}, {pages[1]}, set()]
    assert "https://bank.example/" in summary.skipped["(claims)"]
    index(store, DocumentsSource(documents, "s", claims="any"))
    assert names_of(store, "2") == {"https://bank.example/"}


PAGE = (
    "<!doctype html><html><title>A</title><h1>A</h1><p>Text, see <a href='b.html#x'>the other</a>.</p></html>"
)


def test_a_whole_page_of_html_has_its_hyperlinks(store):
    """As loaders of raw pages give it, with the URL as its source."""
    documents = [
        Document(page_content=PAGE, metadata={"source": "https://docs.test/a.html"}),
        Document(page_content="Plain text.", metadata={"source": "https://docs.test/b.html"}),
    ]
    index(store, DocumentsSource(documents, "loaded"))
    links = {(link.direction, link.tag, link.label) for doc in store.scan() for link in get_links(doc)}
    assert ("out", "https://docs.test/b.html#x", "the other") in links
