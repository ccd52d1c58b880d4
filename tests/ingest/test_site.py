"""Built sites: redirects, inventories, and versions side by side in one store."""

from __future__ import annotations

import zlib

import pytest
from internals import Link, Site, UnreadablePageError, find_refresh_target, get_links, read_inventory

from linkstore import LinkStore
from linkstore.errors import LinkError, SourceConflictError
from linkstore.ingest import FolderSource, index
from linkstore.strategies import Eager

LINKS = ("hyperlink",)


@pytest.fixture
def store():
    with LinkStore() as opened:
        yield opened


def write(root, pages):
    for name, content in pages.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def page(title, body="", head=""):
    return f"<title>{title}</title>{head}<main><h1>{title}</h1><p>About {title}.</p>{body}</main>"


def refresh(target, text="Moved."):
    return f'<meta http-equiv="Refresh" content="0; url={target}"><p>{text} <a href="{target}">on</a>'


def owners(store, tag, kind="hyperlink"):
    """The ids of the documents that a link to this tag leads to."""
    link = Link.incoming(kind=kind, tag=tag)
    return [document.id for document in store.scan() if link in get_links(document)]


def test_an_old_page_leads_to_where_it_sends_its_reader(store, tmp_path):
    write(
        tmp_path,
        {
            "new.html": page("New", '<h2 id="part">Part</h2><p>A part.</p>'),
            "old.html": refresh("new.html"),
            "older/index.html": refresh("../old.html"),
            "part.html": refresh("new.html#part"),
            "a.html": page("A", '<p><a href="older/">b</a> <a href="part.html">c</a></p>'),
        },
    )
    summary = index(store, FolderSource(tmp_path), links=LINKS)

    assert (summary.pages.added, summary.dangling.internal) == (2, 0)
    assert owners(store, "/old.html") == owners(store, "/older") == ["new.html"]
    assert owners(store, "/part.html") == ["new.html#part"]
    assert owners(store, "/old.html#part") == ["new.html#part"]


def test_a_page_that_sends_its_reader_nowhere_stays_a_page(store, tmp_path):
    write(
        tmp_path,
        {
            "a.html": refresh("b.html", "Circle."),
            "b.html": refresh("a.html", "Circle."),
            "self.html": refresh("self.html"),
            "away.html": refresh("https://other.org/"),
            "gone.html": refresh("missing.html"),
            "clock.html": '<meta http-equiv="refresh" content="5"><p>It is noon.</p>',
            "long.html": refresh("a.html", "A whole text. " * 50),
        },
    )
    assert index(store, FolderSource(tmp_path), links=LINKS).pages.added == 7


def test_a_file_of_redirects_names_old_urls(store, tmp_path):
    lines = (
        "# comment",
        "/old  /new.html  301",
        "/older /old 302!",
        "/to-part /new#part",
        "/all/* /new.html",
        "/u/:id /new.html",
        "/proxied /new.html 200",
        "/conditional /new.html 302 Country=de",
        "/circle /round",
        "/round /circle",
        "/new.html /shadowed",
        "nonsense",
        "/late /new.html # why",
    )
    write(
        tmp_path,
        {
            "new.html": page("New", '<h2 id="part">Part</h2><p>A part.</p>'),
            "_redirects": "\n".join(lines).encode() + b"\n\xff\xfe /new.html\n",
        },
    )
    index(store, FolderSource(tmp_path), links=LINKS)

    for old in ("/old", "/older", "/late"):
        assert owners(store, old) == ["new.html"], old
    for none in ("/all/*", "/u/:id", "/proxied", "/conditional", "/circle", "/shadowed"):
        assert owners(store, none) == [], none


def test_a_redirect_that_comes_or_goes_changes_the_page_it_leads_to(store, tmp_path):
    write(tmp_path, {"new.html": page("New"), "other.html": page("Other")})
    index(store, FolderSource(tmp_path), links=LINKS)
    write(tmp_path, {"_redirects": "/old /new.html"})

    assert index(store, FolderSource(tmp_path), links=LINKS).pages.updated == 1
    (tmp_path / "_redirects").unlink()
    assert index(store, FolderSource(tmp_path), links=LINKS).pages.updated == 1
    assert owners(store, "/old") == []


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=a.html", "a.html"),
        ("0; URL='a b.html'", "a b.html"),
        ("5, a.html", "a.html"),
        ("0.5 a.html", "a.html"),
        ("0;url=", None),
        ("3", None),
        ("", None),
    ],
)
def test_what_a_refresh_says(content, target):
    assert find_refresh_target(f'<meta http-equiv=refresh content="{content}">'.encode()) == target


def inventory(*lines, body=None):
    head = b"# Sphinx inventory version 2\n# Project: P\n# Version: 1\n# The rest is compressed.\n"
    return head + (zlib.compress("\n".join(lines).encode()) if body is None else body)


def test_the_names_that_sphinx_documents_lead_to_where_they_are_described(store, tmp_path):
    body = '<dl><dt id="os.path.join">os.path.join(a)</dt><dd><p>Join.</p></dd></dl>'
    write(
        tmp_path,
        {
            "os.path.html": page("os.path", f'<h2 id="functions">Functions</h2>{body}'),
            "objects.inv": inventory(
                "os.path.join py:function 1 os.path.html#$ -",
                "operator new cpp:function 1 os.path.html#functions -",
                "a label with spaces std:label -1 os.path.html#functions A title",
                "os.path py:module 0 os.path.html#module-os.path -",
                "broken",
                "x" + " " * 500_000,
                "other py:function 1 missing.html#$ -",
            ),
        },
    )
    index(store, FolderSource(tmp_path), links=LINKS)

    assert owners(store, "os.path.join", "symbol") == ["os.path.html#functions"]
    assert owners(store, "operator new", "symbol") == ["os.path.html#functions"]
    assert owners(store, "os.path", "symbol") == ["os.path.html"], "an anchor that is not there: the page"
    assert store.survey().links["symbol"] == 3
    named = Link.outgoing(kind="symbol", tag="os.path.join")
    hits = store.search("x", strategy=Eager(start_k=0, depth=0), initial_links=[named])
    assert hits[0].document.id == "os.path.html#functions"


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", b"# Sphinx inventory version 1\n\n\n\n", inventory(body=b"no zlib"), b"\n" * 9],
)
def test_a_broken_inventory_is_reported_and_nothing_else_is_lost(store, tmp_path, content):
    write(tmp_path, {"a.html": page("A"), "objects.inv": content})
    summary = index(store, FolderSource(tmp_path), links=LINKS)

    assert list(summary.skipped) == ["objects.inv"]
    assert summary.pages.added == 1


def test_an_inventory_cannot_fill_the_memory():
    with pytest.raises(UnreadablePageError, match="more than"):
        read_inventory(inventory(body=zlib.compress(b"\0" * (65 * 2**20))))


@pytest.fixture
def versions(tmp_path):
    for version in ("3.12", "3.13"):
        head = f'<link rel="canonical" href="https://docs.org/{version}/{{}}">'
        write(
            tmp_path / version,
            {
                "index.html": page("Home", '<p><a href="json.html#load">load</a></p>', head.format("")),
                "json.html": page(
                    f"json {version}",
                    '<h2 id="load">load</h2><p>See <a href="https://docs.org/3.12/json.html#load">'
                    "then</a>.</p>",
                    head.format("json.html"),
                ),
            },
        )
    return tmp_path


def led_to(store, start):
    out = {link for link in get_links(store.get_by_ids([start])[0]) if link.direction == "out"}
    return {name for link in out for name in owners(store, link.tag)}


def test_versions_lie_side_by_side_without_mixing_their_links(store, versions):
    for version in ("3.12", "3.13"):
        summary = index(store, FolderSource(versions / version, prefix=version), links=LINKS)
        assert summary.pages.added == 2

    assert led_to(store, "3.13/index.html") == {"3.13/json.html#load"}
    assert led_to(store, "3.12/index.html") == {"3.12/json.html#load"}
    assert led_to(store, "3.13/json.html#load") == {"3.12/json.html#load"}, "by its absolute URL"
    metadata = store.get_by_ids(["3.13/json.html#load"])[0].metadata
    assert (metadata["site"], metadata["url"], metadata["page"]) == (
        "3.13",
        "3.13/json.html#load",
        "3.13/json.html",
    )
    hits = store.search("json", filter={"site": "3.12"})
    assert {hit.document.metadata["site"] for hit in hits} == {"3.12"}


def test_the_pages_of_one_version_come_and_go_by_themselves(store, versions):
    for version in ("3.12", "3.13"):
        index(store, FolderSource(versions / version, prefix=version), links=LINKS)
    (versions / "3.13" / "json.html").unlink()

    summary = index(store, FolderSource(versions / "3.13", prefix="3.13"), links=LINKS)
    assert (summary.pages.unchanged, summary.pages.removed) == (1, 1)
    assert index(store, FolderSource(versions / "3.12", prefix="3.12"), links=LINKS).pages.unchanged == 2
    assert owners(store, "/3.12/json.html") == ["3.12/json.html"]


def test_without_a_prefix_the_second_version_is_refused_and_the_first_stays(store, versions):
    index(store, FolderSource(versions / "3.12"), links=LINKS)
    before = list(store.scan())
    with pytest.raises(SourceConflictError, match=r"'index.html' was already indexed"):
        index(store, FolderSource(versions / "3.13"), links=LINKS)
    assert list(store.scan()) == before


def test_a_site_that_gets_a_prefix_leaves_its_old_names(store, versions):
    index(store, FolderSource(versions / "3.12"), links=LINKS)
    summary = index(store, FolderSource(versions / "3.12", prefix="3.12"), links=LINKS, prune=True)

    assert (summary.pages.added, summary.pages.removed) == (2, 2)
    assert [document.id for document in store.scan()] == [
        "3.12/index.html",
        "3.12/json.html",
        "3.12/json.html#load",
    ]


def test_links_between_versions_by_relative_urls_lead_from_one_to_the_other():
    site = Site(prefix="en/3.13")
    assert site.tag("../3.12/a.html", page="b.html") == "/en/3.12/a.html"
    assert site.tag("a.html#x", page="c/b.html") == "/en/3.13/c/a.html#x"
    assert site.tag("/a.html", page="c/b.html") == "/en/3.13/a.html"
    assert site.page_tag("index.html") == "/en/3.13"
    assert site.page_tag("/en/3.13/a.html") == site.page_tag("a.html") == "/en/3.13/a.html"
    assert site.tag("https://other.org/x") == "https://other.org/x"


def test_a_site_with_prefix_and_base_answers_to_its_public_urls():
    site = Site(prefix="v2", bases=("https://docs.org/v2/",))
    assert site.page_tags("a/index.html") == ("/v2/a", "https://docs.org/v2/a/")
    assert site.tag("https://docs.org/v1/x.html") == "https://docs.org/v1/x.html"
    assert site.tag("../v1/x.html", page="a.html") == "https://docs.org/v1/x.html"
    assert Site(bases=("https://docs.org/v2/",)).page_tags("a.html") == ("/a.html",)


@pytest.mark.parametrize("prefix", ["..", "a/../..", "a?b", "a#b", "//", "a//b", "."])
def test_a_prefix_must_be_a_path(prefix):
    with pytest.raises(LinkError, match="is not a path"):
        Site(prefix=prefix)


@pytest.mark.parametrize(("prefix", "spelled"), [("/v1/", "v1"), ("a b", "a%20b"), ("é", "%C3%A9"), ("", "")])
def test_a_prefix_has_one_spelling(prefix, spelled):
    assert Site(prefix=prefix).prefix == spelled


@pytest.mark.parametrize(
    "head",
    [
        '<link rel="canonical" href="https://bank.example/login">',
        '<base href="https://bank.example/"><link rel="canonical" href="login">',
        '<link rel="canonical" href="//bank.example/login">',
    ],
)
def test_a_planted_page_cannot_be_one_of_another_site(store, tmp_path, head):
    own = '<link rel="canonical" href="https://mine.example/{}.html">'
    pages = {f"{name}.html": page(name, head=own.format(name)) for name in "abc"}
    write(tmp_path, {**pages, "evil.html": page("Evil", head=head)})

    def claimed():
        found = next(one for one in store.scan() if one.id == "evil.html")
        return {link.tag for link in get_links(found) if link.leads_in and "://" in link.tag}

    summary = index(store, FolderSource(tmp_path), links=LINKS)
    assert claimed() == set()
    assert "evil.html" in summary.skipped["(claims)"]
    index(store, FolderSource(tmp_path, claims="any"), links=LINKS)
    assert claimed() == {"https://bank.example/login"}


@pytest.mark.parametrize("head", ['<base href="https://bank.example/">', '<base href="/x/">'])
def test_a_base_never_says_what_a_page_is(store, tmp_path, head):
    write(
        tmp_path,
        {"a.html": page("A", head=head), "b.html": page("B", head=f"{head}<link rel=canonical href=''>")},
    )
    index(store, FolderSource(tmp_path), links=("hyperlink",))
    for one in store.scan():
        assert {link.tag for link in get_links(one) if link.leads_in} == {f"/{one.id}"}
