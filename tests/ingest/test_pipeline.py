"""A folder of pages becomes documents with links, and follows the folder's changes."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections import Counter
from concurrent.futures import CancelledError

import pytest
from internals import (
    BadInput,
    Dangling,
    Folder,
    HtmlLinkExtractor,
    HyperlinkExtractor,
    Link,
    SourcePage,
    detect_bases,
    get_links,
    list_pages,
)
from langchain_core.documents import Document
from listed import Listed, offering
from memory_store import MemoryStore

from linkstore.errors import DocumentError, ExtractionError, SourceNotFoundError, StoreFullError
from linkstore.ingest import ChunkLimits, FolderSource, NothingIndexedError, WriteCounts, aindex, index

LINKS = ("hyperlink", "section")


@pytest.fixture
def store():
    return MemoryStore()


def write(root, pages):
    for name, content in pages.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def page(title, body="", head=""):
    return (
        f"<html><head><title>{title}</title>{head}</head><body><main><h1>{title}</h1><p>text</p>{body}</main>"
    )


@pytest.fixture
def site(tmp_path):
    canonical = '<link rel="canonical" href="https://docs.example.org/{}">'
    section = '<section id="s"><h2>S</h2><p>See <a href="../b/">b</a>, <a href="https://docs.example.org/b/index.html#t">t</a></p></section>'
    write(
        tmp_path,
        {
            "index.html": page(
                "Home", '<a href="a/">a</a> <a href="gone.html">gone</a>', canonical.format("")
            ),
            "a/index.html": page("A", section, canonical.format("a/")),
            "b/index.html": page(
                "B", '<h2 id="t">T</h2><p><a href="https://o.org/">o</a></p>', canonical.format("b/")
            ),
            "notes/README.md": "# Notes\n\nSee [more](more.md#part) and [a](../a/).\n",
            "notes/more.md": "# More\n\n## Part\n\nBack to [notes](./).\n",
            "_static/x.html": page("X"),
            ".hidden/y.html": page("Y"),
            "search.html": page("Search"),
            "searchindex.js": "",
            "style.css": "p {}",
        },
    )
    return tmp_path


def reached(store, name):
    """The ids that the hyperlinks of a document lead to."""
    documents = list(store.scan())
    out = {link.tag for link in get_links(next(d for d in documents if d.id == name)) if link.leads_out}
    return {
        d.id
        for d in documents
        for link in get_links(d)
        if link.leads_in and link.tag in out and link.kind == "hyperlink"
    }


def test_pages_become_documents_that_say_where_they_lie(store, site):
    summary = index(store, FolderSource(site), links=LINKS)
    assert summary.pages == WriteCounts(added=5)
    by_id = {document.id: document for document in store.scan()}
    assert list(by_id) == [
        "a/index.html",
        "a/index.html#s",
        "b/index.html",
        "b/index.html#t",
        "index.html",
        "notes/README.md",
        "notes/more.md",
    ]
    metadata = by_id["a/index.html#s"].metadata
    assert {key: metadata[key] for key in ("url", "title", "headings", "page")} == {
        "url": "a/index.html#s",
        "title": "A",
        "headings": ["A", "S"],
        "page": "a/index.html",
    }
    assert by_id["a/index.html#s"].page_content == "A > S\n\nSee b, t"
    json.dumps([document.metadata for document in by_id.values()])


def test_links_lead_from_chunk_to_chunk(store, site):
    index(store, FolderSource(site), links=("hyperlink",))
    assert reached(store, "index.html") == {"a/index.html"}
    assert reached(store, "a/index.html#s") == {"b/index.html", "b/index.html#t"}
    assert reached(store, "notes/README.md") == {"notes/more.md", "a/index.html"}
    assert reached(store, "notes/more.md") == {"notes/README.md"}


def test_the_summary_counts_chunks_links_and_what_leads_nowhere(store, site):
    summary = index(store, FolderSource(site), links=LINKS)
    assert summary.chunks == 7
    assert set(summary.links) == {"hyperlink", "section"}
    assert sum(summary.links.values()) == sum(len(d.metadata["links"]) for d in store.scan())
    assert summary.dangling == Dangling(internal=1, external=1)
    assert summary.skipped == {}


def test_a_second_run_leaves_everything_alone(store, site):
    index(store, FolderSource(site), links=LINKS)
    store.puts.clear()
    summary = index(store, FolderSource(site), links=LINKS)
    assert summary.pages == WriteCounts(unchanged=5)
    assert (summary.chunks, store.puts) == (0, [])


def test_only_what_changed_is_read_again_and_what_is_gone_is_removed(store, site):
    index(store, FolderSource(site), links=LINKS)
    write(site, {"b/index.html": page("B2"), "c.html": page("C")})
    (site / "notes/more.md").unlink()
    store.puts.clear()
    summary = index(store, FolderSource(site), links=LINKS)
    assert summary.pages == WriteCounts(added=1, updated=1, unchanged=3, removed=1)
    assert store.puts == [["b/index.html", "c.html"]]
    assert "b/index.html#t" not in {document.id for document in store.scan()}


def test_other_settings_read_everything_again(store, site):
    index(store, FolderSource(site), links=LINKS)
    assert index(store, FolderSource(site), links=("hyperlink",)).pages == WriteCounts(updated=5)
    limits = ChunkLimits(longest=100)
    assert index(store, FolderSource(site, limits=limits), links=("hyperlink",)).pages == WriteCounts(
        updated=5
    )


def test_the_same_folder_gives_the_same_documents(store, site):
    index(store, FolderSource(site), links=LINKS)
    other = MemoryStore()
    index(other, FolderSource(site), links=LINKS)
    assert list(other.scan()) == list(store.scan())


def test_sources_keep_to_themselves(store, site, tmp_path_factory):
    index(store, FolderSource(site), links=LINKS, name="one")
    other = tmp_path_factory.mktemp("other")
    write(other, {"z.html": page("Z")})
    assert index(store, FolderSource(other), links=LINKS, name="two").pages == WriteCounts(added=1)
    assert len(store.pages.digests("one")) == 5


def test_broken_pages_are_reported_and_nothing_else_is_lost(store, site):
    write(
        site,
        {
            "russian.html": b"<meta charset=utf-8>" + "<p>Привет, мир</p>".encode("koi8-r"),
            "empty.html": b"",
            "image.html": b"\x89PNG\r\n\x1a\n\x00\x00",
            "frames.html": b"<frameset><frame src=a.html></frameset>",
            "huge.html": b"<p>" + b"x" * 5000,
            "marked.html": "<p>marked</p>".encode("utf-16"),
        },
    )
    summary = index(store, FolderSource(site, max_bytes=4000), links=LINKS)
    assert set(summary.skipped) == {"russian.html", "empty.html", "image.html", "frames.html", "huge.html"}
    assert "5,003 bytes" in summary.skipped["huge.html"]
    assert "bad encoding" in summary.skipped["russian.html"]
    assert summary.pages == WriteCounts(added=6)


def test_a_page_that_breaks_keeps_what_was_stored_of_it(store, site):
    index(store, FolderSource(site), links=LINKS)
    write(site, {"b/index.html": b"\0" * 64})
    summary = index(store, FolderSource(site), links=LINKS)
    assert set(summary.skipped) == {"b/index.html"}
    assert summary.pages == WriteCounts(unchanged=4)
    assert "b/index.html" in {document.id for document in store.scan()}


def test_progress_hears_of_every_page(store, site):
    heard = []
    index(
        store,
        FolderSource(site),
        links=LINKS,
        progress=lambda done, total, name: heard.append((done, total, name)),
    )
    assert [done for done, _, _ in heard] == [1, 2, 3, 4, 5]
    assert {total for _, total, _ in heard} == {5}
    assert [name for _, _, name in heard] == [file.page for file in list_pages(Folder(site)).files]


def test_the_garbage_collector_runs_rarely_during_a_run_and_as_before_afterwards(store):
    before = gc.get_threshold()
    heard = []
    index(store, offering(("a",)), links=(), progress=lambda *_: heard.append(gc.get_threshold()[0]))
    assert heard == [20_000]
    assert gc.get_threshold() == before


def test_pages_are_handed_over_in_batches(store, tmp_path):
    body = "".join(f"<h2>{n}</h2><p>x</p>" for n in range(99))
    write(tmp_path, {f"p{n:02}.html": page(str(n), body) for n in range(12)})
    index(store, FolderSource(tmp_path), links=("section",))
    assert [len(batch) for batch in store.puts] == [6, 6]


def test_an_error_of_the_store_ends_the_run(store, site):
    def refuse(source, pages):
        raise StoreFullError("the disk is full")

    store.pages.put = refuse
    with pytest.raises(StoreFullError):
        index(store, FolderSource(site), links=LINKS)


class Subjects:
    """Needs the corpus: links documents that share their rarest word."""

    def __init__(self):
        self.seen = Counter()

    def observe(self, sources):
        self.seen.update(word for document in sources for word in set(document.page_content.split()))

    def extract(self, source):
        rarest = min(source.page_content.split(), key=lambda word: (self.seen[word], word))
        return (Link.bidir(kind="keyword", tag=rarest),)


class Shouts:
    """Reads documents; has no say about its source."""

    def extract(self, source):
        assert isinstance(source, Document)
        return (Link.incoming(kind="shout", tag=source.metadata["title"].upper()),)


def test_extractors_get_the_source_they_read(store, site):
    summary = index(store, FolderSource(site), links=(HyperlinkExtractor(), Shouts(), Subjects()))
    assert summary.links["shout"] == summary.links["keyword"] == 7
    assert summary.links["hyperlink"]


def test_an_extractor_of_the_corpus_sees_unchanged_pages_too(store, site):
    index(store, FolderSource(site), links=(Subjects(),))
    write(site, {"c.html": page("C")})
    again = Subjects()
    index(store, FolderSource(site), links=(again,))
    assert again.seen["Home"] == 1
    assert again.seen["text"] == 4


def test_an_extractor_of_other_sources_is_refused(store, site):
    with pytest.raises(ExtractionError, match="HtmlLinkExtractor reads"):
        index(store, FolderSource(site), links=(HtmlLinkExtractor(),))
    with pytest.raises(ExtractionError, match="no extractor named"):
        index(store, FolderSource(site), links=("no-such",))


def test_a_folder_must_be_there(store, tmp_path):
    with pytest.raises(SourceNotFoundError, match="does not exist"):
        index(store, FolderSource(tmp_path / "missing"))


def test_the_public_base_is_found_by_canonical_urls(site):
    assert detect_bases(list_pages(Folder(site)).files) == ("https://docs.example.org/",)


def test_canonical_urls_that_fit_no_path_give_no_base(tmp_path):
    head = '<link rel="canonical" href="https://o.org/same">'
    write(tmp_path, {f"{n}.html": page(str(n), head=head) for n in range(4)})
    assert detect_bases(list_pages(Folder(tmp_path)).files) == ()


def test_a_canonical_url_elsewhere_is_another_name_of_the_page(store, tmp_path):
    head = '<link rel="canonical" href="https://old.org/x?">'
    write(
        tmp_path, {"a.html": page("A", head=head), "b.html": page("B", '<a href="https://old.org/x">a</a>')}
    )
    index(store, FolderSource(tmp_path, bases=(), claims="any"), links=("hyperlink",))
    assert reached(store, "b.html") == {"a.html"}


def test_a_canonical_url_that_is_another_page_is_not_believed(store, tmp_path):
    head = '<link rel="canonical" href="https://d.org/">'
    write(tmp_path, {"index.html": page("Home", head=head), "a.html": page("A", head=head)})
    index(store, FolderSource(tmp_path, bases=("https://d.org/",)), links=("hyperlink",))
    owners = [d.id for d in store.scan() if Link.incoming(kind="hyperlink", tag="/") in get_links(d)]
    assert owners == ["index.html"]


def test_names_that_need_encoding_are_found_by_links(store, tmp_path):
    write(
        tmp_path,
        {"a b/é#1.html": page("É"), "index.html": page("I", '<a href="a%20b/%C3%A9%231.html">é</a>')},
    )
    index(store, FolderSource(tmp_path), links=("hyperlink",))
    assert reached(store, "index.html") == {"a%20b/é%231.html"}


def test_duplicate_ids_of_sections_give_distinct_documents(store, tmp_path):
    write(tmp_path, {"a.html": page("A", '<h2 id="x">X</h2><p>1</p><h2 id="x">X</h2><p>2</p>')})
    index(store, FolderSource(tmp_path), links=LINKS)
    assert [document.id for document in store.scan()] == ["a.html", "a.html#x", "a.html#x~2"]


def test_a_source_is_told_the_digests_it_gave_and_only_while_nothing_else_changed(store):
    index(store, offering(("a", "x:1"), ("b", "2")), links=())
    again = offering(("a", "x:1"), ("b", "3"))
    assert index(store, again, links=()).pages == WriteCounts(unchanged=1, updated=1)
    assert (again.known, again.reads) == ({"a": "x:1", "b": "2"}, ["b"])
    other = offering(("a", "x:1"), ("b", "3"))
    assert index(store, other, links=("citation",)).pages == WriteCounts(updated=2)
    assert (other.known, other.reads) == ({"a": "", "b": ""}, ["a", "b"])


def test_bad_input_keeps_the_page_of_that_name_and_only_that(store):
    index(store, offering(("a",), ("b",), ("c",)), links=())
    source = offering(BadInput(name="a", reason="gone wild"), ("b", "2", None), ("d", "1", ""))
    summary = index(store, source, links=())

    assert dict(summary.skipped) == {"a": "gone wild", "b": "it is torn", "d": "it has no text"}
    assert (summary.pages, set(store.pages.digests("listed"))) == (WriteCounts(removed=1), {"a", "b"})


def test_nothing_is_taken_for_gone_while_bad_input_may_hide_it(store):
    index(store, offering(("a",), ("b",)), links=())
    source = offering(("a",), BadInput(name="the rest", reason="cut off", hides=("",)))

    assert index(store, source, links=()).pages == WriteCounts(unchanged=1)
    assert set(store.pages.digests("listed")) == {"a", "b"}


def test_a_dry_run_reads_and_writes_nothing(store):
    index(store, offering(("a",), ("b",), ("c",)), links=())
    store.puts.clear()
    source = offering(("a",), ("b", "2"), ("d",), BadInput(name="e", reason="bad"))
    summary = index(store, source, links=(), dry_run=True)

    assert (summary.pages, summary.chunks) == (WriteCounts(added=1, updated=1, unchanged=1, removed=1), 2)
    assert (dict(summary.skipped), summary.dry_run) == ({"e": "bad"}, True)
    assert (store.puts, set(store.pages.digests("listed"))) == ([], {"a", "b", "c"})


def test_a_source_that_fails_keeps_what_was_written_and_removes_nothing(store):
    index(store, offering(("old",)), links=())

    class Failing(Listed):
        def pages(self, known):
            for n in range(700):
                yield self.page(f"{n:03}")
            raise OSError("cut off")

    with pytest.raises(OSError, match="cut off"):
        index(store, Failing(), links=())
    assert len(store.pages.digests("listed")) == 1 + 512
    rest = offering(*((f"{n:03}",) for n in range(700)))
    assert index(store, rest, links=()).pages == WriteCounts(added=188, unchanged=512, removed=1)


def test_pages_that_the_store_refuses_are_reported_and_those_beside_them_written(store):
    put = store.pages.put

    def picky(source, pages):
        if any(page.url == "bad" for page in pages):
            raise DocumentError("the document 'bad' cannot be stored")
        put(source, pages)

    store.pages.put = picky
    summary = index(store, offering(("a",), ("bad",), ("c",)), links=())
    assert (summary.pages, list(summary.skipped)) == (WriteCounts(added=2), ["bad"])
    assert set(store.pages.digests("listed")) == {"a", "c"}


def test_batches_are_bounded_by_characters_too(store):
    index(store, offering(*((f"{n}", "1", "x" * 2**20) for n in range(9))), links=())
    assert [len(batch) for batch in store.puts] == [4, 4, 1]


def test_progress_without_a_known_end_and_with_more_pages_than_expected(store):
    heard = []
    index(store, offering(("a",), ("b",)), links=(), progress=lambda *told: heard.append(told))
    assert heard == [(1, 1, "a"), (2, 2, "b")]


def test_a_document_without_id_is_reported(store):
    source = Listed()
    source.offered = [SourcePage(url="a", digest="1", read=lambda: [Document(page_content="x")])]
    with pytest.raises(NothingIndexedError, match="a: it has a document without id") as raised:
        index(store, source, links=())
    assert dict(raised.value.summary.skipped) == {"a": "it has a document without id"}


async def test_it_is_indexed_the_same_without_blocking_a_loop(store):
    summary = await aindex(store, offering(("a",), ("b",)), links=())
    assert summary.pages == WriteCounts(added=2)
    assert index(store, offering(("a",), ("b",)), links=()).pages == WriteCounts(unchanged=2)
    with pytest.raises(NothingIndexedError):
        await aindex(store, offering(), name="other", links=())


async def test_an_unknown_option_is_refused_in_both_forms(store):
    unknown = {"dry_rum": True}
    with pytest.raises(TypeError, match="dry_rum"):
        await aindex(store, offering(("a",)), links=(), **unknown)
    with pytest.raises(TypeError, match="dry_rum"):
        index(store, offering(("a",)), links=(), **unknown)
    assert store.pages.digests("listed") == {}


def test_an_event_ends_a_run_which_the_next_one_goes_on_with(store):
    stop = threading.Event()
    with pytest.raises(CancelledError):
        index(store, offering(("a",), ("b",)), links=(), stop=stop, progress=lambda *_: stop.set())
    assert list(store.pages.digests("listed")) == ["a"]
    assert index(store, offering(("a",), ("b",)), links=()).pages == WriteCounts(added=1, unchanged=1)


async def test_a_task_that_is_cancelled_ends_as_an_interrupted_run_does(store):
    reached, go_on = threading.Event(), threading.Event()

    def progress(done, total, name):
        if done == 3:
            reached.set()
            assert go_on.wait(30)

    source = offering(*((f"p{n}",) for n in range(1000)))
    task = asyncio.ensure_future(aindex(store, source, links=(), progress=progress))
    await asyncio.to_thread(reached.wait, 30)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    kept = store.pages.digests("listed")
    assert {"p0", "p1", "p2"} <= set(kept)
    assert len(kept) < 1000
    assert index(store, source, links=()).pages == WriteCounts(added=1000 - len(kept), unchanged=len(kept))
