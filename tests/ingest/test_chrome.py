"""What the pages of a folder share is stored once, and links without suffixes lead to their pages."""

from __future__ import annotations

import pytest
from internals import get_links
from memory_store import MemoryStore

from linkstore.ingest import FolderSource, index

MENU = "".join(f'<li><a href="p{n}.html">Page number {n}</a></li>' for n in range(12))
FRAME = """<title>{0}</title><div><h1>The Handbook</h1><ul id=list>{1}</ul></div>
<div><h2>Summary</h2><p>What is said of {0}.</p><h2 id=more>More</h2><p>Even more on {0}.</p></div>
<h3>Corrections</h3><p id=mail>If you see anything wrong here, write to us.</p>"""


@pytest.fixture
def store():
    return MemoryStore()


def write(folder, pages):
    for name, content in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def site(names):
    return {f"{name}.html": FRAME.format(name, MENU) for name in names}


def on_page(store, page):
    return [one for one in store.scan() if one.metadata["page"] == page]


def tags(document):
    return {link.tag for link in get_links(document) if link.kind == "hyperlink" and link.leads_in}


def test_what_most_pages_begin_and_end_with_is_kept_on_one_of_them(store, tmp_path):
    write(tmp_path, site(["index", *(f"p{n}" for n in range(12))]))
    index(store, FolderSource(tmp_path), links=("hyperlink",))
    texts = {one.page_content for page in range(12) for one in on_page(store, f"p{page}.html")}
    assert not any("Page number" in text or "write to us" in text or "Corrections" in text for text in texts)
    assert any("What is said of p3." in text and "Summary" in text for text in texts)
    home = "\n".join(one.page_content for one in on_page(store, "index.html"))
    assert "Page number 11" in home
    assert "write to us" in home
    first, last = on_page(store, "p3.html")[0], on_page(store, "p3.html")[-1]
    assert "/p3.html#list" in tags(first)
    assert "/p3.html#mail" in tags(last)
    assert "Even more on p3." in last.page_content


def test_few_pages_do_not_tell_what_all_share(store, tmp_path):
    write(tmp_path, site(f"p{n}" for n in range(5)))
    index(store, FolderSource(tmp_path), links=())
    assert sum("write to us" in one.page_content for one in store.scan()) == 5


def test_what_all_share_is_told_by_the_small_pages_among_large_ones(store, tmp_path):
    end = '<p class="f">Copyright of all of these pages, written to us by nobody.</p>'
    filler = "<p>" + "filler " * 30_000
    pages = {f"p{n:02}.html": f"<h1>T{n}</h1><p>Page {n}.</p>{filler * (1 - n % 2)}{end}" for n in range(32)}
    write(tmp_path, pages)
    index(store, FolderSource(tmp_path), links=())
    assert not any(
        "Copyright" in one.page_content for one in store.scan() if one.metadata["page"] != "p00.html"
    )


def test_pages_that_are_all_alike_keep_their_text(store, tmp_path):
    write(
        tmp_path, {f"p{n}.html": f"<h1>Gone</h1><!--{n}--><p>There is nothing here.</p>" for n in range(12)}
    )
    index(store, FolderSource(tmp_path), links=())
    assert {one.page_content for one in store.scan()} == {
        f"Gone (p{n})\n\nThere is nothing here." for n in range(12)
    }


def test_headings_that_all_pages_have_stay_with_what_is_below_them(store, tmp_path):
    pages = {f"p{n}.html": f"<h2>Name</h2><p>f{n}</p><h2>Errors</h2><p>E{n}</p>" for n in range(12)}
    write(tmp_path, pages)
    index(store, FolderSource(tmp_path), links=())
    text = "\n".join(one.page_content for one in on_page(store, "p4.html"))
    assert "Name" in text
    assert "Errors" in text


def test_pages_are_read_again_if_what_they_share_changes(store, tmp_path):
    write(tmp_path, site(f"p{n}" for n in range(12)))
    index(store, FolderSource(tmp_path), links=())
    assert index(store, FolderSource(tmp_path), links=()).pages.unchanged == 12
    write(tmp_path, {f"p{n}.html": FRAME.format(f"p{n}", MENU) + "<p>© 2026" for n in range(12)})
    assert index(store, FolderSource(tmp_path), links=()).pages.updated == 12
    assert sum("©" in one.page_content for one in store.scan()) == 1


@pytest.mark.parametrize("href", ["/guide/setup#x", "setup#x", "../guide/setup/#x", "setup.html#x"])
@pytest.mark.parametrize("suffix", [".html", ".htm"])
def test_links_without_suffixes_lead_to_their_pages(store, tmp_path, href, suffix):
    href = href.replace(".html", suffix)
    write(
        tmp_path,
        {
            f"guide/setup{suffix}": "<h1>Setup</h1><p>How.</p><h2 id=x>X</h2><p>x</p>",
            f"guide/a{suffix}": f'<h1>A</h1><p><a href="{href}">Set up</a> <a href="b">no page</a></p>',
        },
    )
    summary = index(store, FolderSource(tmp_path), links=("hyperlink",))
    (link,) = [
        link
        for link in get_links(on_page(store, f"guide/a{suffix}")[0])
        if link.leads_out and link.label == "Set up"
    ]
    assert [one.page_content for one in store.scan() if link.tag in tags(one)] == ["Setup > X\n\nx"]
    assert summary.dangling.internal == 1


def test_a_folder_goes_before_a_page_of_the_same_name(store, tmp_path):
    write(
        tmp_path,
        {
            "a.html": '<p><a href="guide">guide</a> <a href="b">b</a></p>',
            "b.html": "<p>b</p>",
            "guide.html": "<p>A page.</p>",
            "guide/index.html": "<p>A folder.</p>",
        },
    )
    index(store, FolderSource(tmp_path), links=("hyperlink",))
    assert [one.page_content for one in store.scan() if "/guide" in tags(one)] == ["guide\n\nA folder."]
    assert len([one for one in store.scan() if "/b" in tags(one)]) == 1


def test_what_is_left_out_is_counted(store, tmp_path):
    pages = site(["index", *(f"p{n}" for n in range(11))])
    pages["p0.html"] = "<nav>" + "menu " * 99 + "</nav>" + pages["p0.html"]
    write(tmp_path, pages)
    left_out = index(store, FolderSource(tmp_path), links=()).left_out
    assert left_out.pages == 11, "the first page keeps what all have"
    first, second = list(left_out.most.items())[:2]
    assert first == ("p0.html", second[1] + 4 * 99)
    assert len(left_out.most) == 10
    assert left_out.letters == first[1] + 10 * second[1]


def test_a_page_that_has_only_its_heading_does_not_keep_the_banner_of_all_others(store, tmp_path):
    frame = (
        "<title>{0} - Manual</title><header><b>The System 8.0</b><h1><a href='/'>The System</a></h1></header>"
        "<nav><a href='a.html'>Back</a> <a href='b.html'>On</a></nav><article><h1>{0}</h1>{1}</article>"
        "<footer>Made for The System 8.0.</footer>"
    )
    said = "<p>What can be said of {0} stands in this paragraph, which is a long one of its own.</p>"
    pages = {f"p{n}.html": frame.format(f"Module p{n}", said.format(f"p{n}")) for n in range(20)}
    bare = {f"q{n}.html": frame.format(f"An index of all that is in q{n}", "") for n in range(3)}
    write(tmp_path, {**pages, **bare})
    index(store, FolderSource(tmp_path), links=())
    assert [one.page_content for one in on_page(store, "q1.html")] == ["An index of all that is in q1"]
    assert {one.metadata["page"] for one in store.scan() if "System" in one.page_content} == {"p0.html"}
