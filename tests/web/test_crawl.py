"""A website is crawled politely, once, and again only where it has changed."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from email.utils import formatdate
from importlib import import_module
from itertools import count
from time import time

import pytest
from hostile_urls import HOSTILE, NAMES
from internals import get_links
from memory_store import MemoryStore
from web_site import PUBLIC, Names, Reply, Time, Wires, html, moved, network, running

from linkstore.errors import (
    FetchError,
    ForbiddenUrlError,
    SiteUnavailableError,
    SourceNotFoundError,
    StrategyError,
)
from linkstore.ingest import (
    FolderSource,
    NothingIndexedError,
    Partition,
    WebSettings,
    WebsiteSource,
    batches,
    index,
    workers,
)
from linkstore.ingest import workers as readahead

crawling = import_module("linkstore.ingest.web.crawl")
START = "http://docs.test/"


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def serve():
    """Starts sites: ``serve({path: answer})``."""
    open_sites = []

    def start(pages):
        context = running({"/robots.txt": Reply(status=404), **pages})
        open_sites.append(context)
        return context.__enter__()

    yield start
    for context in open_sites:
        context.__exit__(None, None, None)


def crawl(store, site, url=START, *, time=None, net=None, dry_run=False, prefix="", **settings):
    return index(
        store,
        WebsiteSource(
            url, **{"rate": 1000.0, "prefix": prefix, **settings}, network=net or network(site, time)
        ),
        links=("hyperlink",),
        dry_run=dry_run,
    )


def stored(store):
    return sorted(url.removeprefix("http://docs.test") for _, url in store.stored)


def links(store):
    """(page, tag) of links in and links out, paths only."""
    found = {(d.metadata["page"], x.tag, x.direction) for d in store.scan() for x in get_links(d)}
    into = {(page.removeprefix("http://docs.test"), tag) for page, tag, way in found if way == "in"}
    return into, {(page.removeprefix("http://docs.test"), tag) for page, tag, way in found if way == "out"}


def validated(body, etag='"1"', headers=None):
    """A page with an ETag, which answers 304 as long as that is the one."""

    def answer(asked):
        if asked.headers.get("if-none-match") == etag:
            return Reply(status=304, headers={"ETag": etag})
        return Reply(headers={"Content-Type": "text/html", "ETag": etag, **(headers or {})}, body=body)

    return answer


def test_pages_are_found_by_their_links_and_each_is_asked_for_once(serve, store):
    site = serve(
        {
            "/": html("", "a", "b/", "/a#section", "http://elsewhere.test/", "mailto:x@y.z"),
            "/a": html("", "b/?", "/"),
            "/b/": html("", "../a", "c.html"),
            "/b/c.html": html("", "./", "index.html"),
        }
    )
    summary = crawl(store, site)

    assert sorted(site.paths) == ["/", "/a", "/b/", "/b/c.html"]
    assert stored(store) == ["/", "/a", "/b/", "/b/c.html"]
    assert {asked.host for asked in site.asked} == {"docs.test"}
    assert summary.pages.added == 4
    assert summary.skipped == {}
    assert summary.dangling.internal == 1, "/a#section"
    into, out = links(store)
    assert {("/", "/"), ("/a", "/a"), ("/b/", "/b"), ("/b/c.html", "/b/c.html")} <= into
    assert {("/a", "/b"), ("/b/", "/a"), ("/", "http://elsewhere.test/")} <= out


def test_a_site_crawled_has_the_same_links_as_its_folder_has(serve, store, tmp_path):
    pages = {
        "/guide/": html("", "first.html#one", "deep/", title="Guide"),
        "/guide/first.html": html("<b id=one>x</b>", "../guide/", "/guide/deep/#two", title="First"),
        "/guide/deep/": html("<b id=two>x</b>", "../first.html?q=1#one", "https://other.org/x", title="Deep"),
    }
    for path, page in pages.items():
        file = tmp_path / path.removeprefix("/guide/") / ("index.html" if path.endswith("/") else "")
        file.parent.mkdir(exist_ok=True)
        file.write_text(page.replace("?q=1", ""))
    site = serve({path: page.replace("?q=1", "") for path, page in pages.items()})
    folder = MemoryStore()

    crawl(store, site, "http://docs.test/guide/")
    index(folder, FolderSource(tmp_path, bases=(f"{START}guide/",)), links=("hyperlink",))

    def groups(one):
        return sorted(
            (link.tag, link.direction, link.label, document.page_content)
            for document in one.scan()
            for link in get_links(document)
        )

    assert groups(store) == groups(folder)
    assert len(groups(store)) > 6


def test_only_what_lies_below_the_start_page_belongs_to_the_site(serve, store):
    site = serve(
        {
            "/docs/": html("", "a", "/blog/", "//docs.test/docs/b", "http://docs.test:80/docs/c"),
            **{f"/docs/{name}": html() for name in "abc"},
            "/blog/": html(),
        }
    )
    crawl(store, site, f"{START}docs/")
    assert stored(store) == ["/docs/", "/docs/a", "/docs/b", "/docs/c"]


@pytest.mark.parametrize("start", ["docs/", "docs"])
def test_the_folder_of_the_start_page_is_the_site_wherever_it_redirects(serve, store, start):
    site = serve(
        {
            "/docs": moved("/docs/"),
            "/docs/": html("", "a", "/blog/"),
            "/docs/a": html(),
            "/blog/": html(),
        }
    )
    crawl(store, site, f"{START}{start}")
    assert stored(store) == ["/docs/", "/docs/a"]


def test_patterns_allow_and_deny_as_in_robots_txt(serve, store):
    names = ["/a/1", "/a/2.txt", "/a/x/3", "/b/4", "/b/5?print=1", "/c"]
    site = serve(
        {"/": html("", *names, "http://wiki.test/x", "http://wiki.test/y")} | dict.fromkeys(names, html())
    )
    site.pages |= {"wiki.test/x": html(), "wiki.test/y": html()}
    crawl(store, site, allow=("/a/", "/b", "http://wiki.test/x"), deny=("*.txt$", "/*print=", "/a/x"))
    assert stored(store) == ["/", "/a/1", "/b/4", "http://wiki.test/x"]


def test_robots_txt_is_obeyed_and_its_delay_kept(serve, store):
    robots = "User-agent: *\nDisallow: /\n\nUser-agent: linkstore\nDisallow: /private/\nCrawl-delay: 2\n"
    site = serve(
        {
            "/robots.txt": Reply(body=robots),
            "/": html("", "/private/x", "/a", "/r"),
            "/a": html(),
            "/r": moved("/private/y"),
            "/private/x": html(),
            "/private/y": html(),
        }
    )
    time = Time()
    summary = crawl(store, site, time=time)
    assert stored(store) == ["/", "/a"]
    assert not [path for path in site.paths if "private" in path]
    assert summary.skipped == {}
    assert min(time.slept) == 2.0, "once robots.txt is read, two seconds lie between requests"
    assert len(time.slept) == len(site.asked) - 1


def test_what_robots_txt_forbids_now_is_removed(serve, store):
    site = serve({"/": html("", "/a"), "/a": html()})
    crawl(store, site)
    site.pages["/robots.txt"] = Reply(body="User-agent: *\nDisallow: /a\n")
    assert crawl(store, site).pages.removed == 1
    assert stored(store) == ["/"]


@pytest.mark.parametrize(
    ("pages", "error", "message"),
    [
        ({"/robots.txt": Reply(body="User-agent: *\nDisallow: /\n")}, SourceNotFoundError, "robots.txt"),
        ({"/robots.txt": Reply(status=503)}, FetchError, "the server answers 503 .for "),
        ({"/": Reply(status=404)}, SourceNotFoundError, "404"),
        ({"/": Reply(status=500)}, SiteUnavailableError, "500"),
        ({"/": Reply(headers={"Content-Type": "image/png"}, body=b"x")}, SourceNotFoundError, "image/png"),
        ({"/": moved("http://127.0.0.1/")}, ForbiddenUrlError, "loopback"),
    ],
)
def test_a_site_that_cannot_be_started_is_an_error_and_nothing_is_removed(
    serve, store, pages, error, message
):
    site = serve({"/": html("", "a"), "/a": html()})
    crawl(store, site)
    before = dict(store.stored)
    site.pages |= pages
    with pytest.raises(error, match=message):
        crawl(store, site)
    assert store.stored == before


def sitemap(*urls, index_of=()):
    inner = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    inner += "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in index_of)
    tag = "sitemapindex" if index_of else "urlset"
    return (
        f'<?xml version="1.0"?>\n<{tag} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{inner}</{tag}>'
    )


XML = {"Content-Type": "application/xml"}
GZ = {"Content-Type": "application/gzip"}
HTML = {"Content-Type": "text/html"}


@pytest.mark.parametrize("start", ["", "sitemap.xml", "sitemap.xml.gz"])
def test_sitemaps_are_found_packed_and_nested(serve, store, start):
    more = gzip.compress(sitemap(f"{START}c", "http://elsewhere.test/d").encode(), mtime=0)
    top = sitemap(index_of=(f"{START}one.xml", f"{START}two.xml.gz", "http://elsewhere.test/three.xml"))
    site = serve(
        {
            "/": html(),
            "/sitemap.xml": Reply(headers=XML, body=top),
            "/sitemap.xml.gz": Reply(
                headers={"Content-Type": "application/gzip"}, body=gzip.compress(top.encode(), mtime=0)
            ),
            "/one.xml": Reply(headers=XML, body=sitemap(f"{START}a", f"{START}b")),
            "/two.xml.gz": Reply(headers=GZ, body=more),
            **dict.fromkeys(["/a", "/b", "/c"], html()),
        }
    )
    summary = crawl(store, site, f"{START}{start}", max_depth=0)
    assert stored(store) == ["/", "/a", "/b", "/c"] if not start else ["/a", "/b", "/c"]
    assert summary.skipped == {}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<!DOCTYPE x [<!ENTITY a 'aaaa'>]><urlset>&a;</urlset>", "document type"),
        ("<urlset><url><loc>", "not a sitemap"),
        ("<html><p>Not found", "not a sitemap"),
        ("hello", "not a sitemap"),
        (gzip.compress(bytes(2**26), mtime=0), "200 times"),
        (Reply(status=403), "403"),
    ],
)
def test_a_bad_sitemap_is_reported_and_the_rest_indexed(serve, store, body, message):
    site = serve(
        {
            "/robots.txt": Reply(body=f"Sitemap: {START}map.xml\nSitemap: {START}list.txt"),
            "/map.xml": body if isinstance(body, Reply) else Reply(headers=XML, body=body),
            "/list.txt": Reply(headers={"Content-Type": "text/plain"}, body=f"{START}a\n{START}b\n"),
            "/": html(),
            "/a": html(),
            "/b": html(),
        }
    )
    summary = crawl(store, site)
    assert stored(store) == ["/", "/a", "/b"]
    assert list(summary.skipped) == [f"{START}map.xml"]
    assert message in summary.skipped[f"{START}map.xml"]


def test_sitemaps_that_name_ever_more_sitemaps_come_to_an_end(serve, store):
    pages = {
        f"/{n}.xml": Reply(headers=XML, body=sitemap(index_of=(f"{START}{n + 1}.xml",))) for n in range(50)
    }
    site = serve({**pages, "/": html()})
    with pytest.raises(NothingIndexedError):
        crawl(store, site, f"{START}0.xml")
    assert site.paths == ["/0.xml", "/1.xml", "/2.xml", "/3.xml"]


def test_a_second_run_fetches_only_what_changed(serve, store):
    site = serve(
        {
            "/": html("", "a", "b", "c"),
            "/a": validated(html("", "d")),
            "/b": validated(html("old")),
            "/c": validated(html()),
            "/d": validated(html()),
        }
    )
    crawl(store, site)
    puts = len(store.puts)
    site.forget()
    site.pages["/b"] = validated(html("new", "e"), etag='"2"')
    site.pages["/e"] = html()
    del site.pages["/c"]
    summary = crawl(store, site)

    counts = summary.pages
    assert (counts.added, counts.updated, counts.unchanged, counts.removed) == (1, 1, 3, 1)
    assert sorted(site.paths) == ["/", "/a", "/b", "/c", "/d", "/e"]
    conditional = {one.path for one in site.asked if "if-none-match" in one.headers}
    assert conditional == {"/a", "/b", "/c", "/d"}
    assert store.puts[puts:] == [[f"{START}b", f"{START}e"]]
    assert summary.skipped == {}, "a page that is gone is no bad input"


def test_last_modified_serves_as_well_and_a_page_without_either_is_compared(serve, store):
    date = "Sat, 21 Nov 2026 08:00:00 GMT"

    def dated(asked):
        if asked.headers.get("if-modified-since") == date:
            return Reply(status=304)
        return Reply(headers={"Content-Type": "text/html", "Last-Modified": date}, body=html())

    served = count()
    noisy = lambda _: html(head=f"<script>token={next(served)}</script>")  # noqa: E731
    site = serve({"/": html("", "dated", "noisy"), "/dated": dated, "/noisy": noisy})
    crawl(store, site)
    summary = crawl(store, site)
    assert summary.pages.unchanged == 3
    assert len(store.puts) == 1


def test_another_scope_reads_everything_again_and_writes_what_changed(serve, store):
    site = serve({"/": html("", "a"), "/a": validated(html("", "deep/b")), "/deep/b": html()})
    crawl(store, site, deny=("/deep/",))
    assert stored(store) == ["/", "/a"]
    crawl(store, site)
    assert stored(store) == ["/", "/a", "/deep/b"]
    assert store.puts == [[START, f"{START}a"], [f"{START}deep/b"]]
    site.forget()
    assert crawl(store, site).pages.unchanged == 3
    assert {one.path for one in site.asked if "if-none-match" in one.headers} == {"/a"}


def test_a_page_of_the_same_text_with_another_etag_is_asked_by_that_the_next_time(serve, store):
    site = serve({"/": html("", "a"), "/a": validated(html("same"), etag='"1"')})
    crawl(store, site)
    site.pages["/a"] = validated(html("same"), etag='"2"')
    crawl(store, site)
    site.forget()
    crawl(store, site)
    assert [one.headers.get("if-none-match") for one in site.asked if one.path == "/a"] == ['"2"']
    assert len(store.puts) == 1


def test_pages_that_the_settings_leave_out_go_however_many_they_are(serve, store):
    site = serve({"/": html("", "old/a", "old/b", "old/c"), **{f"/old/{name}": html(name) for name in "abc"}})
    crawl(store, site)
    assert crawl(store, site, deny=("/old/",)).pages.removed == 3
    assert stored(store) == ["/"]


@pytest.mark.parametrize("body", ["", "<!-- gone -->", "<html><body></body></html>"])
def test_a_page_that_has_no_text_any_more_is_removed(serve, store, body):
    site = serve({"/": html("", "a", "b"), "/a": html("kept"), "/b": html("secret")})
    crawl(store, site)
    site.pages["/b"] = body
    summary = crawl(store, site)
    assert (stored(store), summary.pages.removed) == (["/", "/a"], 1)
    assert list(summary.skipped) == [f"{START}b"]


RUN = """
import sys
from linkstore import LinkStore
from linkstore.ingest import index
from linkstore.ingest import WebSettings, WebsiteSource
with LinkStore.open(sys.argv[2]) as store:
    source = WebsiteSource(sys.argv[1], rate=1000.0, allow_private=True)
    print(index(store, source).chunks)
"""


def test_a_run_in_another_process_writes_nothing_of_a_site_that_stayed_the_same(serve, tmp_path):
    """Digests do not depend on the order of sets, which differs between processes."""
    entries = "".join(f"<li><a href='/{name}'>Entry {name}</a></li>" for name in ("one", "two", "three"))
    page = html("About tables.").replace("</body>", f"<nav><ul>{entries}</ul></nav></body>")
    site = serve({"/": page})
    chunks = [
        subprocess.run(
            [sys.executable, "-c", RUN, f"http://127.0.0.1:{site.port}/", str(tmp_path / "kb")],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    assert chunks[0] != "0"
    assert chunks[1:] == ["0"]


def test_an_interrupted_run_is_gone_on_with_without_fetching_again_what_was_stored(serve, store, monkeypatch):
    monkeypatch.setattr(batches, "_BATCH_DOCUMENTS", 1)
    monkeypatch.setattr(crawling, "_WAITING", 0)
    chain = {
        f"/p{n}": validated(html(f"page {n}", f"p{n + 1}" if n < 10 else "", title=f"Page {n}"))
        for n in range(11)
    }
    site = serve({"/": html("", "p0"), **chain, "/p6": Reply(status=503)})

    def interrupt(seconds):
        if seconds > 0.1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crawl(store, site, net=network(site, sleep=interrupt))
    assert stored(store) == ["/", *[f"/p{n}" for n in range(6)]]

    site.forget()
    site.pages["/p6"] = chain["/p6"]
    counts = crawl(store, site).pages
    assert stored(store) == sorted(["/", *chain])
    assert (counts.added, counts.unchanged) == (5, 7)
    assert site.paths == ["/", *[f"/p{n}" for n in (6, 7, 8, 9, 10, 0, 1, 2, 3, 4, 5)]], "the new ones first"
    unchanged = [one.path for one in site.asked if "if-none-match" in one.headers]
    assert unchanged == [f"/p{n}" for n in range(6)]


def test_a_redirect_makes_the_old_url_a_name_of_the_page(serve, store):
    site = serve(
        {
            "/": html("", "old", "older", "gone-away", "stub"),
            "/old": moved("/new", 302),
            "/older": moved("/old", 308),
            "/new": html(),
            "/stub": '<meta http-equiv="refresh" content="0; url=target/">',
            "/target/": html(),
            "/gone-away": moved("http://elsewhere.test/"),
        }
    )
    summary = crawl(store, site)
    into, _ = links(store)
    assert {tag for page, tag in into if page == "/new"} == {"/new", "/old", "/older"}
    assert {tag for page, tag in into if page == "/target/"} == {"/target", "/stub"}
    assert summary.skipped == {
        f"{START}gone-away": "it redirects to http://elsewhere.test/, which does not belong to the crawl;"
        f" linked from {START}"
    }
    assert summary.dangling.internal == 1


def test_a_redirect_that_is_met_late_still_becomes_a_name_of_its_page(serve, store):
    site = serve(
        {
            "/": html("", "new", "x"),
            "/new": validated(html()),
            "/x": html("", "old"),
            "/old": moved("/new"),
        }
    )
    summary = crawl(store, site)
    into, _ = links(store)
    assert {tag for page, tag in into if page == "/new"} == {"/new", "/old"}
    assert summary.pages.added == 3
    assert summary.dangling.internal == 0

    again = crawl(store, site)
    assert (again.pages.unchanged, again.pages.updated) == (3, 0)
    site.pages["/old"] = html("a page of its own now")
    crawl(store, site)
    into, _ = links(store)
    assert {page for page, tag in into if tag == "/old"} == {"/old"}


@pytest.mark.parametrize("late", [False, True])
def test_a_copy_that_names_its_canonical_page_is_not_stored_twice(serve, store, late):
    canonical = '<link rel="canonical" href="/page">'
    site = serve(
        {
            "/": html("", *(["page", "page?print=1", "copy"] if late else ["page?print=1", "copy", "page"])),
            "/page": html("the same", head=canonical),
            "/page?print=1": html("for print", head=canonical),
            "/copy": html("the same", head=canonical),
        }
    )
    crawl(store, site)
    assert stored(store) == ["/", "/page"]
    into, _ = links(store)
    assert {tag for page, tag in into if page == "/page"} == {"/page", "/page?print=1", "/copy"}
    assert crawl(store, site).pages.unchanged == 2


def test_a_canonical_url_with_nothing_behind_it_is_another_name_and_a_false_one_is_not(serve, store):
    site = serve(
        {
            "/": html("", "a", "b", "c", "d"),
            "/a": html("a", head='<link rel="canonical" href="/A-page">'),
            "/b": html("b", head='<link rel="canonical" href="/">'),
            "/c": html("c", head='<link rel="canonical" href="/d">'),
            "/d": html("d", head='<link rel="canonical" href="/c">'),
        }
    )
    crawl(store, site)
    assert stored(store) == ["/", "/a", "/b", "/c", "/d"]
    into, _ = links(store)
    assert {tag for page, tag in into if page == "/a"} == {"/a", "/A-page"}
    assert {tag for page, tag in into if page == "/b"} == {"/b"}
    assert crawl(store, site).pages.unchanged == 5


def test_a_page_cannot_take_the_name_of_another_site(serve, store):
    site = serve({"/": html(head='<link rel="canonical" href="https://bank.test/">')})
    crawl(store, site)
    assert links(store)[0] == {("/", "/")}


def test_base_href_and_frames_are_followed(serve, store):
    site = serve(
        {
            "/": html("", "a.html", head='<base href="/sub/">') + '<iframe src="framed.html"></iframe>',
            "/sub/a.html": html(),
            "/sub/framed.html": html(),
        }
    )
    crawl(store, site)
    assert stored(store) == ["/", "/sub/a.html", "/sub/framed.html"]
    assert ("/", "/sub/a.html") in links(store)[1]


@pytest.mark.parametrize(
    ("status", "headers", "waits"),
    [
        (503, {"Retry-After": "7"}, [7.0]),
        (429, {"Retry-After": formatdate(time() - 60, usegmt=True)}, [1.0]),
        (500, {}, [1.0]),
        (502, {"Retry-After": "soon"}, [1.0]),
    ],
)
def test_a_request_is_made_again_when_the_server_asks_for_it(serve, store, status, headers, waits):
    answers = iter([Reply(status=status, headers=headers)])
    site = serve({"/": html("", "a"), "/a": lambda _: next(answers, html("now"))})
    time = Time()
    summary = crawl(store, site, time=time, rate=1e6)
    assert stored(store) == ["/", "/a"]
    assert summary.skipped == {}
    assert [seconds for seconds in time.slept if seconds > 0.1] == waits


def test_waits_grow_and_end_and_the_stored_page_is_kept(serve, store):
    site = serve({"/": html("", "a"), "/a": html("kept")})
    crawl(store, site)
    site.pages["/a"] = Reply(status=503)
    time = Time()
    summary = crawl(store, site, time=time, rate=1e6)
    assert [seconds for seconds in time.slept if seconds > 0.1] == [1.0, 2.0, 4.0]
    assert summary.skipped == {f"{START}a": "the server answers 503"}
    assert stored(store) == ["/", "/a"]


def test_a_server_that_wants_too_much_patience_is_not_waited_for(serve, store):
    site = serve({"/": html("", "a"), "/a": Reply(status=503, headers={"Retry-After": "9999"})})
    time = Time()
    summary = crawl(store, site, time=time)
    assert max(time.slept) < 1
    assert list(summary.skipped) == [f"{START}a"]


def test_a_site_that_is_gone_in_the_middle_ends_the_run_and_removes_nothing(serve, store):
    names = [f"p{n}" for n in range(30)]
    site = serve({"/": html("", *names), **{f"/{name}": html(name) for name in names}})
    crawl(store, site)
    site.pages |= {f"/{name}": Reply(status=503) for name in names}
    with pytest.raises(SiteUnavailableError, match="10 requests in a row"):
        crawl(store, site, retries=0)
    assert len(stored(store)) == 31
    site.pages |= {f"/{name}": Reply(status=500) for name in names}
    assert len(crawl(store, site, retries=0).skipped) == 30, "broken pages alone do not end it"


def test_requests_are_spaced(serve, store):
    site = serve({"/": html("", *"abc"), **{f"/{name}": html(name) for name in "abc"}})
    time = Time()
    crawl(store, site, time=time, rate=0.5)
    assert time.slept == [2.0] * (len(site.asked) - 1)


def test_endless_calendars_and_loops_end_at_the_cap(serve, store):
    def day(asked):
        n = int(asked.path.rpartition("=")[2])
        return html(f"day {n}", f"/day?n={n + 1}", f"/day?n={n + 2}", "/", title=f"Day {n}")

    site = serve({"/": html("", "day?n=0")})
    site.pages |= {f"/day?n={n}": day for n in range(500)}
    summary = crawl(store, site, max_pages=20)
    assert len(stored(store)) == 20
    ((name, reason),) = summary.skipped.items()
    assert name == "further URLs"
    assert "max_pages" in reason
    assert crawl(store, site, max_pages=20).pages.unchanged == 20, "stored pages come first"
    assert len(stored(store)) == 20
    crawl(store, site, max_pages=30)
    assert len(stored(store)) == 30


def test_endless_redirects_end_at_the_cap(serve, store):
    site = serve({"/": html("", "r0"), **{f"/r{n}": moved(f"/r{n + 1}") for n in range(400)}})
    summary = crawl(store, site, max_pages=1)
    assert stored(store) == ["/"]
    assert len(site.paths) < 100
    assert "more than 10 redirects" in str(summary.skipped) or "max_pages" in str(summary.skipped)


def test_depth_is_counted_from_the_start(serve, store):
    site = serve({"/": html("", "1"), "/1": validated(html("", "2")), "/2": html("", "3"), "/3": html()})
    crawl(store, site, max_depth=1)
    assert stored(store) == ["/", "/1"]
    crawl(store, site, max_depth=2)
    assert stored(store) == ["/", "/1", "/2"]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(headers={"Content-Type": "application/pdf"}, body=b"%PDF"), "application/pdf, not HTML"),
        (
            Reply(
                headers={"Content-Type": "text/html", "Content-Encoding": "gzip"},
                body=gzip.compress(bytes(2**25), mtime=0),
            ),
            "200 times",
        ),
        (
            Reply(headers={"Content-Type": "text/html; charset=utf-8"}, body=b"<p>\xe9"),
            "bad encoding",
        ),
        (Reply(headers=HTML, body=b"<p>\0\0\0"), "binary"),
        (Reply(headers=HTML), "empty"),
        (Reply(headers=HTML, body="<p></p>"), "no text"),
        (Reply(status=403, headers=HTML), "403"),
        (Reply(status=404), "404"),
        (Reply(status=204), "204"),
        (moved("file:///etc/passwd"), "does not belong"),
        (moved("http://docs.test:81/"), "does not belong"),
    ],
)
def test_what_is_no_page_is_reported_by_name_and_the_rest_kept(serve, store, reply, message):
    site = serve({"/": html("", "bad", "good", "x.pdf", "y.png"), "/bad": reply, "/good": html()})
    summary = crawl(store, site)
    assert stored(store) == ["/", "/good"]
    assert list(summary.skipped) == [f"{START}bad"]
    assert message in summary.skipped[f"{START}bad"]
    assert not {"/x.pdf", "/y.png"} & set(site.paths), "files are told by their names"


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("text/html; charset=koi8-r", "<h1>Пётр</h1><p>x".encode("koi8-r")),
        ("text/html; charset=koi8-r", b'<meta charset="utf-8">' + "<h1>Пётр</h1><p>x".encode("koi8-r")),
        ("text/html; charset=koi8-r", "\ufeff<h1>Пётр</h1><p>x".encode()),
        ("text/html", '<meta charset="cp1251"><h1>Пётр</h1><p>x'.encode("cp1251")),
        ("text/html; charset=nonsense", "<h1>Пётр</h1><p>x".encode()),
        ('TEXT/HTML;Charset="utf-8"', "<h1>Пётр</h1><p>x".encode()),
        ("application/xhtml+xml; charset=utf-16le", "<html><h1>Пётр</h1><p>x".encode("utf-16le")),
    ],
)
def test_the_charset_is_that_of_the_mark_then_the_header_then_the_page(serve, store, header, body):
    site = serve({"/": Reply(headers={"Content-Type": header}, body=body)})
    crawl(store, site)
    assert [document.metadata["title"] for document in store.scan()] == ["Пётр"]


def test_two_spellings_of_a_page_are_one_and_the_second_helps_where_the_first_fails(serve, store):
    site = serve(
        {"/": html("", "a", "a/", "b/", "b/index.html"), "/a": html("a"), "/b/index.html": html("b")}
    )
    summary = crawl(store, site)
    assert stored(store) == ["/", "/a", "/b/index.html"]
    assert site.paths == ["/", "/a", "/b/", "/b/index.html"]
    assert summary.skipped == {}


def test_pages_are_named_in_their_own_letters_and_asked_for_percent_encoded(serve, store):
    tokyo = "/%E6%9D%B1%E4%BA%AC"
    site = serve(
        {
            "/": html("", "東京", "%e6%9d%b1%e4%ba%ac", "%FF%20x"),
            tokyo: validated(html("Tokyo", "/")),
            "/%FF%20x": html("Bytes"),
        }
    )
    crawl(store, site)
    assert sorted(site.paths) == ["/", tokyo, "/%FF%20x"]
    assert stored(store) == ["/", "/%FF%20x", "/東京"]
    assert {document.metadata["url"] for document in store.scan()} >= {f"{START}東京"}
    _, out = links(store)
    assert ("/", tokyo) in out

    site.asked.clear()
    again = crawl(store, site)
    assert again.pages.unchanged == 3
    assert again.pages.removed == 0

    site.pages[tokyo] = Reply(status=503)
    broken = crawl(store, site, retries=0)
    assert f"{START}東京" in broken.skipped
    assert broken.pages.removed == 0
    assert stored(store) == ["/", "/%FF%20x", "/東京"]


def test_a_dry_run_writes_nothing_and_counts(serve, store):
    site = serve({"/": html("", "a"), "/a": html()})
    summary = crawl(store, site, dry_run=True)
    assert summary.dry_run
    assert summary.pages.added == 2
    assert store.stored == {}


def test_sites_lie_side_by_side_below_prefixes(serve, store):
    site = serve({"/": html("", "a"), "/a": html()})
    crawl(store, site, prefix="one")
    assert {("/", "/one/a")} <= links(store)[1]
    assert {("/a", "/one/a"), ("/a", "http://docs.test/a")} <= links(store)[0]


def test_a_page_full_of_hostile_links_leads_nowhere(serve, store):
    urls = [url.replace("{port}", "80") for url in HOSTILE]
    anchors = "".join(f"<a href='{url}'>x</a><iframe src='{url}'></iframe>" for url in urls if "'" not in url)
    map_ = sitemap(*(url.replace("&", "&amp;").replace("<", "&lt;") for url in urls if url.isprintable()))
    robots = "\n".join(f"Sitemap: {url}" for url in urls if url.isprintable() and url.isascii())
    site = serve(
        {
            "/robots.txt": Reply(body=f"{robots}\nSitemap: {START}map.xml"),
            "/map.xml": Reply(headers=XML, body=map_),
            "/": html(f"{anchors}") + f"<base href='{urls[0]}'>",
            "/good": html(),
        }
    )
    wires = Wires(site)
    crawl(
        store,
        site,
        net=network(connect=wires, resolve=Names({name: [found] for name, found in NAMES.items()})),
    )
    assert {host for host, _ in wires.connected} == {PUBLIC}
    assert all(one.host == "docs.test" for one in site.asked)


@pytest.mark.parametrize(
    "wrong",
    [
        {"allow": ("docs/",)},
        {"deny": ("",)},
        {"rate": 0},
        {"max_pages": 0},
        {"retries": -1},
        {"user_agent": "é"},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong):
    with pytest.raises(StrategyError):
        WebSettings(**wrong)


def test_what_is_remembered_of_a_page_is_small(serve, store):
    names = [f"chapter-{n}.html" for n in range(100)]
    site = serve({"/": html("", *names), **{f"/{name}": html(name, *names, title=name) for name in names}})
    crawl(store, site)
    sizes = sorted(len(page.outline) for page in store.stored.values())
    assert sizes[-2] < 500, "each URL stands in one digest"
    assert len(json.loads(store.stored[START, START].outline)["children"]) == 100


def test_a_page_that_is_nested_too_deep_is_reported(serve, store):
    site = serve({"/": html("", "deep", "a"), "/deep": "<div>" * 400_000 + "<p>text", "/a": html()})
    assert list(crawl(store, site).skipped) == [f"{START}deep"]
    assert stored(store) == ["/", "/a"]


def test_a_robots_txt_that_asks_for_a_day_between_requests_is_taken_at_its_word(serve, store):
    site = serve({"/robots.txt": Reply(body="User-agent: *\nCrawl-delay: 1e99\n"), "/": html()})
    with pytest.raises(FetchError, match="s between requests, more than 120"):
        crawl(store, site)
    assert site.paths == []


def test_names_of_no_encodings_of_text_count_for_nothing(serve, store):
    """Codecs that are not encodings of text, named by the server or the page."""
    names = ["undefined", "hex", "idna", "punycode", "zlib"]
    bodies = {
        f"/{name}": Reply(headers={"Content-Type": f"text/html; charset={name}"}, body=b"<p>\xff\xfe-x")
        for name in names
    }
    bodies |= {f"/m{name}": f'<meta charset="{name}"><p>\xe9-x' for name in names}
    site = serve({"/": html("", *[path[1:] for path in bodies]), **bodies})
    summary = crawl(store, site)
    assert (summary.skipped, summary.encodings.guessed) == ({}, len(names))
    texts = {one.page_content.rpartition("\n")[2] for one in store.scan()}
    assert texts >= {"ÿþ-x", "é-x"}


def test_a_page_that_fails_while_late_names_are_mended_stays(serve, store):
    """The second pass over pages with late names knows what the first could not read."""
    site = serve(
        {
            "/": html("", "new", "x", "flaky"),
            "/new": html(),
            "/x": html("", "old"),
            "/old": moved("/new"),
            "/flaky": html(),
        }
    )
    crawl(store, site, max_depth=1)
    site.pages["/flaky"] = Reply(status=500)
    crawl(store, site)
    assert "/flaky" in stored(store)
    assert ("/new", "/old") in links(store)[0]


def test_a_crawl_that_is_cut_short_removes_nothing(serve, store):
    names = [f"p{n}" for n in range(8)]
    site = serve({"/": html("", *names), **{f"/{name}": html(name) for name in names}})
    crawl(store, site)
    before = stored(store)
    site.pages["/p7"] = Reply(status=404)
    summary = crawl(store, site, max_pages=3)

    assert (summary.pages.removed, stored(store)) == (0, before)
    assert summary.unseen == ("further URLs",)
    assert crawl(store, site).pages.removed == 1, "a complete crawl knows what is gone"


def test_a_server_that_fails_removes_nothing_and_is_named(serve, store):
    site = serve(
        {"/": html("", "a", "b", "c"), "/a": html("", "d"), "/b": html(), "/c": html(), "/d": html()}
    )
    crawl(store, site)
    before = stored(store)
    site.pages |= {"/a": Reply(status=500), "/c": Reply(status=404)}
    summary = crawl(store, site, retries=0)

    assert summary.unseen == ("http://docs.test/a",)
    assert set(before) - set(stored(store)) == {"/c"}, "each stored page was asked for by itself"


def test_a_server_that_fails_hides_pages_that_are_to_be_read_anew(serve, store):
    """With other options nothing is known of the stored pages; what only a broken page links is not gone."""
    site = serve({"/": html("", "a", "b"), "/a": html("", "d"), "/b": html(), "/d": html()})
    crawl(store, site)
    before = stored(store)
    site.pages["/a"] = Reply(status=503)
    summary = crawl(store, site, retries=0, encoding="latin-1")

    assert (summary.pages.removed, stored(store)) == (0, before)


def test_late_names_remove_nothing(serve, store):
    """A page that failed while others were read anew must outlive the second look at some of them."""
    site = serve({"/": html("", "a", "b", "x"), "/a": html(), "/b": html(), "/x": html("", "b")})
    crawl(store, site)
    before = stored(store)
    site.pages |= {"/a": Reply(status=500), "/x": Reply(status=301, headers={"Location": "/b"})}
    crawl(store, site, retries=0, encoding="latin-1")

    assert set(before) - set(stored(store)) <= {"/x"}


def test_a_crawl_read_by_processes_gives_the_same_documents_links_and_report(serve, monkeypatch):
    monkeypatch.setattr(readahead, "PATIENCE", 0.0)
    asked: list[int] = []
    send = workers.ReadingPool.send
    monkeypatch.setattr(
        workers.ReadingPool, "send", lambda self, *given: asked.append(1) or send(self, *given)
    )
    pages = {f"/p{n}": html(f"<h2 id=s>Part {n}</h2>", f"p{n + 1}#s", f"p{n * 3 % 20}") for n in range(19)}
    pages |= {"/": html("", "p0", "binary"), "/p19": html("last", "/"), "/binary": "\0" * 100}
    found = []
    for jobs in (1, 2):
        store = MemoryStore()
        site = serve(pages)
        summary = index(
            store,
            WebsiteSource(START, rate=1000.0, network=network(site, None)),
            links=("hyperlink", "section"),
            jobs=jobs,
        )
        found.append(([(one.id, one.page_content, one.metadata) for one in store.scan()], summary))
        assert bool(asked) == (jobs == 2)
    assert found[0] == found[1]
    assert len(found[0][0]) > 20


def test_a_page_that_always_fails_hides_nothing_until_it_is_stored(serve, store):
    pages = {"/": html("", "a", "b"), "/a": html("a"), "/b": Reply(status=500)}
    site = serve(pages)
    for _ in range(2):
        summary = crawl(store, site, retries=0)
        assert (stored(store), summary.unseen) == (["/", "/a"], ())
        assert "500" in summary.skipped[f"{START}b"]
    site.pages["/b"] = html("b")
    crawl(store, site, retries=0)
    site.pages["/b"] = Reply(status=500)
    summary = crawl(store, site, retries=0)
    assert (stored(store), summary.unseen) == (["/", "/a", "/b"], (f"{START}b",))


def test_parameters_that_say_who_asks_make_no_pages(serve, store):
    queries = ("utm_source=x", "utm_source=y&fbclid=3", "PHPSESSID=0a1b", "a=1&gclid=x")
    site = serve({"/": html("", *(f"t?{one}" for one in queries), "t;jsessionid=4F")})
    site.pages |= {f"/t{query}": html(f"text{query}") for query in ("", "?a=1")}
    summary = crawl(store, site)
    assert stored(store) == ["/", "/t", "/t?a=1"]
    assert (summary.dangling.internal, summary.skipped) == (0, {})


def test_a_site_that_makes_up_urls_without_end_is_left_and_keeps_nothing_that_is_gone(serve, store):
    count = 0

    def endless(_):
        nonlocal count
        count += 1
        return Reply(
            headers={"Content-Type": "text/html"},
            body=f"<p>Always the <a href='trap?at={count}'>same</a> text.</p>",
        )

    site = serve({"/": html("", "trap?at=0", "gone"), "/gone": html("soon gone")})
    site.pages |= dict.fromkeys((f"/trap?at={n}" for n in range(200)), endless)
    summary = crawl(store, site)
    assert stored(store) == ["/", "/gone", "/trap?at=0"]
    assert count < 30
    assert "the last 20 had one text" in summary.skipped["/trap?…"]
    assert summary.unseen == ()
    del site.pages["/gone"]
    assert crawl(store, site).pages.removed == 1
    assert stored(store) == ["/", "/trap?at=0"]


def test_a_crawl_that_is_cut_short_removes_what_the_server_says_is_gone(serve, store):
    pages = {"/": html("", *(f"p{n}" for n in range(9)))} | {f"/p{n}": html(f"p{n}") for n in range(9)}
    site = serve(pages)
    crawl(store, site)
    del site.pages["/p3"]
    site.pages["/"] = html("", *(f"p{n}" for n in range(30)))
    site.pages |= {f"/p{n}": html(f"p{n}") for n in range(9, 30)}
    summary = crawl(store, site, max_pages=10)
    assert "/p3" not in stored(store)
    assert (summary.pages.removed, summary.unseen) == (1, ("further URLs",))


def test_pages_that_were_stored_otherwise_are_asked_too(serve, store):
    """Also those that no page links to any more."""
    site = serve({"/": html("", "a"), "/a": html("a", "b"), "/b": html("b")})
    crawl(store, site)
    site.pages["/a"] = html("a")
    index(
        store, WebsiteSource(START, rate=1000.0, network=network(site, None)), links=("hyperlink", "citation")
    )
    assert stored(store) == ["/", "/a", "/b"]


MARKDOWN = {"Content-Type": "text/markdown"}
TEXT = {"Content-Type": "text/plain; charset=iso-8859-1"}


def test_markdown_and_files_of_text_are_pages_too(serve, store):
    site = serve(
        {
            "/": html("", "a.md", "n.txt", "x.log"),
            "/a.md": Reply(headers=MARKDOWN, body="# A\n\nSee [b](b.md).\n"),
            "/b.md": Reply(headers=TEXT, body="# B\n\nText.\n"),
            "/n.txt": Reply(headers=TEXT, body="A note\n\nGr\u00fc\u00dfe.".encode("latin-1")),
            "/x.log": Reply(headers=TEXT, body="a log"),
        }
    )
    summary = crawl(store, site)
    assert stored(store) == ["/", "/a.md", "/b.md", "/n.txt"]
    assert set(summary.skipped) == {f"{START}x.log"}
    assert any("Gr\u00fc\u00dfe" in one.page_content for one in store.scan())


def negotiate(markdown, page):
    """A page that answers with Markdown whom prefers it, as documentation hosts do."""

    def answer(asked):
        if asked.headers["accept"].startswith("text/markdown"):
            return Reply(headers=MARKDOWN, body=markdown)
        return Reply(headers={"Content-Type": "text/html"}, body=page)

    return answer


def test_markdown_is_asked_for_and_read_with_links_from_its_url(serve, store):
    """But for the start, whose navigation names pages that its text does not."""
    home = '<main><h1>Home</h1><p>The text of home.</p></main><nav><a href="guide/far">far</a></nav>'
    site = serve(
        {
            "/": negotiate("# Home in Markdown\n\nNo link.\n", home),
            "/guide/far": negotiate(
                "# Far\n\nSee [near](near#top), [above](../up) and [all](/all?x=1).\n", html("Far as HTML")
            ),
            "/guide/near": html("near"),
            "/up": moved("/up/"),
            "/up/": negotiate("# Up\n\nOnce moved.\n", html("Up as HTML")),
            "/all?x=1": html("all"),
        }
    )
    crawl(store, site)

    assert stored(store) == ["/", "/all?x=1", "/guide/far", "/guide/near", "/up/"]
    texts = {one.metadata["url"].removeprefix(START.rstrip("/")): one.page_content for one in store.scan()}
    assert texts["/"] == "Home\n\nThe text of home."
    assert texts["/guide/far"] == "Far\n\nSee near, above and all."
    assert texts["/up/"] == "Up\n\nOnce moved."
    _, out = links(store)
    assert {("/guide/far", "/guide/near#top"), ("/guide/far", "/up"), ("/guide/far", "/all?x=1")} <= out


def test_a_single_page_is_read_as_markdown_too(serve, store):
    site = serve({"/a": negotiate("# In Markdown\n\nText.\n", html("As HTML"))})
    crawl(store, site, url=f"{START}a", follow_links=False)

    assert [one.page_content for one in store.scan()] == ["In Markdown\n\nText."]


def test_of_a_list_the_pages_are_indexed_that_it_names(serve, store):
    listed = "# Site\n\n- [A](/a.html.md): first\n- [B](b)\n- [Away](http://elsewhere.test/x)\n"
    site = serve(
        {
            "/llms.txt": Reply(headers={"Content-Type": "text/plain"}, body=listed),
            "/a.html.md": Reply(headers=MARKDOWN, body="# A\n\nSee [b](b) and [c](c).\n"),
            "/b": html("b", "a.html", "c"),
            "/c": html("c"),
        }
    )
    summary = crawl(store, site, url=f"{START}llms.txt")
    assert stored(store) == ["/a.html.md", "/b"]
    assert "1 of the pages that it names" in summary.skipped[f"{START}llms.txt"]
    into, out = links(store)
    assert {("/a.html.md", "/a.html"), ("/a.html.md", "/a.html.md")} <= into
    assert ("/b", "/a.html") in out


def test_a_page_is_indexed_alone_where_links_are_not_followed(serve, store):
    site = serve({"/": html("", "a"), "/a": html("a", "b"), "/b": html("b"), "/sitemap.xml": "no"})
    crawl(store, site, url=f"{START}a", follow_links=False)
    assert stored(store) == ["/a"]
    assert {asked.path for asked in site.asked} == {"/robots.txt", "/a"}


def test_pages_of_a_list_whose_entries_move_on_are_no_copies(serve, store):
    """What was on the first page is on the second now, and the text of each has been that of another."""

    def listed(entries):
        pages = {"/": html("", *(f"news?page={n}" for n in range(1, len(entries) + 1)))}
        return pages | {f"/news?page={n}": html(text) for n, text in enumerate(entries, start=1)}

    site = serve(listed(["first", "second", "third"]))
    crawl(store, site)
    for entries in (["new", "first", "second", "third"], ["newer", "new", "first", "second", "third"]):
        site.pages.update(listed(entries))
        crawl(store, site)
        found = {one.metadata["page"].rpartition("=")[2]: one.page_content for one in store.scan()}
        assert [entry in found[f"{n}"] for n, entry in enumerate(entries, start=1)] == [True] * len(entries)


def test_the_stored_one_of_several_copies_stays(serve, store):
    site = serve({"/": html("", "x?a=1"), "/x?a=1": validated(html("same")), "/x?a=0": html("same")})
    crawl(store, site)
    site.pages["/"] = html("", "x?a=0", "x?a=1")
    assert crawl(store, site).pages.removed == 0
    assert stored(store) == ["/", "/x?a=1"]
    into, _ = links(store)
    assert ("/x?a=1", "/x?a=0") in into


@pytest.mark.parametrize("start", ["sitemap.xml", "llms.txt"])
def test_a_list_is_crawled_in_parts_which_ask_for_their_own_pages(serve, store, start):
    names = [f"p{n}" for n in range(12)]
    site = serve(
        {
            "/sitemap.xml": Reply(headers=XML, body=sitemap(*(f"{START}{name}" for name in names))),
            "/llms.txt": Reply(
                headers={"Content-Type": "text/plain"},
                body="".join(f"- [x]({START}{one})\n" for one in names),
            ),
            "/beyond": html(),
            **{f"/p{n}": html(f"page {n}", f"/p{(n + 1) % 12}", "/beyond") for n in range(12)},
        }
    )
    source = WebsiteSource(f"{START}{start}", rate=3000.0, max_depth=0, network=network(site))
    for number in (1, 2, 3):
        index(store, source, partition=Partition(number, 3))
    asked = [path for path in site.paths if path.startswith("/p")]
    assert sorted(asked) == sorted(f"/{name}" for name in names), "each page once, by one of the parts"
    whole = MemoryStore()
    index(whole, source)
    assert [*store.scan()] == [*whole.scan()]
    assert store.pages.digests(source.name).keys() == whole.pages.digests(source.name).keys()
    assert source.divide(Partition(1, 3)).rate == 1000


def test_a_crawl_by_links_is_not_divided(serve, store):
    site = serve(
        {"/": html("", "a"), "/a": html(), "/sitemap.xml": Reply(headers=XML, body=sitemap(f"{START}a"))}
    )
    for url, depth in ((START, 0), (f"{START}sitemap.xml", None)):
        source = WebsiteSource(url, rate=1000.0, max_depth=depth, network=network(site))
        with pytest.raises(StrategyError, match=r"cannot be divided.*max_depth=0"):
            index(store, source, partition=Partition(1, 2))
    assert store.stored == {}


@pytest.mark.parametrize(
    ("meta", "header", "kept"),
    [
        ('<meta name="ROBOTS" content="NoIndex, follow">', "", False),
        ("<meta name=linkstore content=none>", "", False),
        ('<meta name="googlebot" content="noindex">', "", True),
        ('<meta name="robots" content="index, nofollow, max-snippet:-1">', "", True),
        ("", "noarchive, noindex", False),
        ("", "linkstore: none", False),
        ("", "googlebot: nofollow, noindex", True),
        ("", "unavailable_after: 25 Jun 2010 15:00:00 PST", True),
    ],
)
def test_a_page_that_asks_not_to_be_indexed_is_left_out_and_its_links_followed(
    serve, store, meta, header, kept
):
    page = Reply(
        body=f"<html><head>{meta}</head><h1>A</h1><p>Text of a.</p><a href=b.html>b</a></html>".encode(),
        headers={"content-type": "text/html", **({"x-robots-tag": header} if header else {})},
    )
    site = serve(
        {
            "/": html("<h1>T</h1><p>Text.</p><a href=a.html>a</a>"),
            "/a.html": page,
            "/b.html": html("<p>b</p>"),
        }
    )
    summary = crawl(store, site)
    assert stored(store) == ["/", *(["/a.html"] if kept else []), "/b.html"]
    assert sum(summary.unread.values()) == (not kept)
    crawl(store, site, ignore_noindex=True)
    assert stored(store) == ["/", "/a.html", "/b.html"]
    crawl(store, site)
    assert ("/a.html" in stored(store)) == kept


def test_a_site_whose_start_page_asks_not_to_be_indexed_is_indexed(serve, store):
    no = '<meta name="robots" content="noindex">'
    pages = {"/": html(f"{no}<p>Text.</p><a href=a.html>a</a>"), "/a.html": html(f"{no}<p>a</p>")}
    summary = crawl(store, serve(pages))
    assert stored(store) == ["/", "/a.html"]
    assert not summary.unread


def titled(store):
    found = {document.metadata["page"]: document.metadata["title"] for document in store.scan()}
    return {page.removeprefix("http://docs.test"): title for page, title in sorted(found.items())}


def book(version, names):
    """Pages of a book: their common beginning in <title>, and a banner that is a heading."""
    banner = f"<div><h1>Tomcat {version}</h1></div>"
    return {
        f"/tomcat-{version}/{name}.html": Reply(
            headers={"Content-Type": "text/html", "ETag": '"1"'},
            body=f"<title>Tomcat {version} ({version}.1.60) - {name}</title>{banner}<h2>Intro</h2>"
            f"<p>What {name} of {version} is.</p>",
        )
        for name in names
    }


def test_what_the_pages_of_a_branch_say_beside_their_titles_is_not_in_them(serve, store):
    names = ("Realm", "Valve", "Cluster", "Proxy", "Logging")
    pages = {**book(9, names), **book(10, names)}
    pages |= {f"/java/{n}.html": f"<title>{n} (Java SE 17)</title><p>On {n} there.</p>" for n in names}
    pages |= {f"/new/{n}.html": f"<title>News - {n}</title><p>Of {n}, in short.</p>" for n in names[:3]}
    sitemap = "".join(f"<url><loc>http://docs.test{path}</loc></url>" for path in pages)
    site = serve({**pages, "/sitemap.xml": f"<urlset>{sitemap}</urlset>"})
    crawl(store, site, f"{START}sitemap.xml", max_depth=0)
    assert titled(store) == {
        **{f"/{part}/{name}.html": name for part in ("tomcat-9", "tomcat-10", "java") for name in names},
        **{f"/new/{name}.html": f"News - {name}" for name in names[:3]},
    }


def test_the_names_of_branches_are_known_to_the_next_run(serve, store):
    pages = book(9, ("Realm", "Valve", "Cluster", "Proxy"))
    links = "".join(f'<a href="{path}">{path}</a> ' for path in pages)
    site = serve({**{path: validated(page.body) for path, page in pages.items()}, "/": html(links)})
    crawl(store, site)
    site.pages["/tomcat-9/Realm.html"] = pages["/tomcat-9/Realm.html"].body.replace("What", "Now what")
    assert crawl(store, site).pages.updated == 1
    assert titled(store)["/tomcat-9/Realm.html"] == "Realm"


def test_a_site_that_stops_answering_keeps_the_pages_whose_titles_waited(serve, store, monkeypatch):
    monkeypatch.setattr(batches, "_BATCH_DOCUMENTS", 1)
    pages = {f"/{number}": html(f"Page {number}.") for number in range(3)}
    broken = {f"/{number}": Reply(status=503) for number in range(3, 20)}
    site = serve({"/": html("", *pages, *broken), **pages, **broken})
    with pytest.raises(SiteUnavailableError):
        crawl(store, site, time=Time())
    assert stored(store) == ["/", *pages]
