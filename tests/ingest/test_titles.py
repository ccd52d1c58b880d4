"""Pages whose title says too little are called by their own name too."""

from __future__ import annotations

import pytest
from internals import PageTitles, find_titles, get_page_name, read_html_page
from memory_store import MemoryStore

from linkstore.ingest import FolderSource, VaultSource, index


def titled(store):
    return {document.metadata["page"]: document.metadata["title"] for document in store.scan()}


def written(folder, pages):
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("title", "url", "found"),
    [
        ("Section 4.19", "functions-math.html", "Section 4.19 (functions-math)"),
        ("Index", "guide/index.html", "Index (guide)"),
        ("Overview", "api/overview.html", "Overview (api)"),
        ("Chapter IV", "pride/04.html", "Chapter IV (04)"),
        ("7", "lists/seven.html", "7 (seven)"),
        ("Index", "index.html", "Index"),
        ("Contents", "https://docs.example/3.13/", "Contents (3.13)"),
        ("Index", "%E6%9D%B1%E4%BA%AC/index.html", "Index (東京)"),
        ("Civil law", "law.html", "Civil law"),
        ("2001: A Space Odyssey", "film.html", "2001: A Space Odyssey"),
        ("Mix", "mix.html", "Mix"),
    ],
)
def test_a_title_that_is_a_number_or_a_word_for_no_page_in_particular(title, url, found):
    assert PageTitles().make_descriptive(title, url) == found


def test_a_title_that_several_pages_have_is_followed_by_their_names(tmp_path):
    heading = '<h1>Member List<a class="headerlink" href="#m">&#182;</a></h1>'
    page = f"<title>Codec: Member List</title>{heading}<p>All members of {{0}}, {{0}} and {{0}}.</p>"
    pages = {f"class{name}-members.html": page.format(name) for name in ("Decoder", "Encoder")}
    pages["other.html"] = "<h1>Other</h1><p>Its own title.</p>"
    store = MemoryStore()
    index(store, FolderSource(written(tmp_path, pages)))
    assert titled(store) == {
        "classDecoder-members.html": "Member List (classDecoder-members)",
        "classEncoder-members.html": "Member List (classEncoder-members)",
        "other.html": "Other",
    }


def test_the_name_of_the_site_is_not_in_the_title(tmp_path):
    names = ("g.list", "g.copy", "g.rename", "r.info", "v.info")
    pages = {
        f"{name}.html": f"<title>{name} - GRASS manual</title><h2>NAME</h2><p>It {name}s.</p>"
        for name in names
    }
    pages["index.html"] = "<title>GRASS Manual</title><h1>GRASS</h1><p>All of the commands.</p>"
    store = MemoryStore()
    index(store, FolderSource(written(tmp_path, pages)))
    assert titled(store) == {f"{name}.html": name for name in names} | {"index.html": "GRASS"}
    more = {f"{name}.html": f"<title>{name} - Other manual</title><p>It {name}s.</p>" for name in "abcdef"}
    index(store, FolderSource(written(tmp_path, pages | more)))
    assert titled(store)["g.list.html"] == "g.list - GRASS manual"


def test_a_letter_of_an_index_is_no_title():
    page = "<title>C++ Notes Index</title><h1>Index</h1><p>All terms.</p><h1>B</h1><p>b</p><h1>C</h1><p>c</p>"
    assert read_html_page(page.encode()).title == "Index"


def test_pages_with_the_same_title_and_file_are_told_apart_by_a_folder(tmp_path):
    page = "<h1>{}</h1><p>Text of {}.</p>"
    pages = {f"{version}/tutorial.html": page.format("Tutorial", version) for version in ("3.12", "3.13")}
    pages |= {f"prop_{kind}/LABELS.html": page.format("LABELS", kind) for kind in ("tgt", "test")}
    pages |= {f"{of}/{version}/api.html": page.format("API", of + version) for of in "xy" for version in "12"}
    store = MemoryStore()
    index(store, FolderSource(written(tmp_path, pages)))
    assert titled(store) == {
        "3.12/tutorial.html": "Tutorial (3.12)",
        "3.13/tutorial.html": "Tutorial (3.13)",
        "prop_test/LABELS.html": "LABELS (prop_test)",
        "prop_tgt/LABELS.html": "LABELS (prop_tgt)",
        "x/1/api.html": "API (x/1)",
        "x/2/api.html": "API (x/2)",
        "y/1/api.html": "API (y/1)",
        "y/2/api.html": "API (y/2)",
    }


@pytest.mark.parametrize("source", [FolderSource, VaultSource])
def test_a_page_without_a_heading_of_the_first_level_has_the_name_of_its_file(tmp_path, source):
    pages = {
        "Graph view.md": "All notes, see [[Search]].\n\n## Settings\n\nOpen them.\n",
        "Search.md": "Finds notes.\n\n## Search\n\nWords.\n",
        "de/Search.md": "### Suche\n\nFindet Notizen.\n",
        "Front.md": "---\ntitle: Matter\n---\n## Settings\n\nText.\n",
    }
    if source is FolderSource:
        pages["go_spec.html"] = "<h2>Introduction</h2><p>This is the reference.</p>"
    store = MemoryStore()
    index(store, source(written(tmp_path, pages)))
    heads = {document.page_content.partition("\n")[0] for document in store.scan()}
    assert heads >= {"Graph view > Settings", "Search", "Search (de) > Suche", "Matter > Settings"}
    assert ("go_spec > Introduction" in heads) == (source is FolderSource)


@pytest.mark.parametrize("source", [FolderSource, VaultSource])
@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Heading\n\nText.\n\n## Section\n\nMore.", "Heading"),
        ("Heading\n=======\n\nText.", "Heading"),
        ("Text.\n\n## Section\n\nMore.", "Matter"),
        ("# First part\n\nText.\n\n# Second part\n\nMore.", "Matter"),
        ("Text.\n\n# Section\n\nMore.", "Matter"),
        ("## Section\n\nText.\n\n# Late\n\nMore.", "Matter"),
    ],
)
def test_a_page_that_begins_with_its_only_main_heading_is_called_by_it(tmp_path, source, text, title):
    store = MemoryStore()
    index(store, source(written(tmp_path, {"file.md": f"---\ntitle: Matter\n---\n{text}\n"})))
    assert titled(store) == {"file.md": title}
    assert {one.page_content.partition("\n")[0].partition(" > ")[0] for one in store.scan()} == {title}


@pytest.mark.parametrize(
    "heading",
    ['<h1 align="center">Fastify</h1>', "Fastify\n=======", "# Fastify {#top}", "# Fastify #", "# *Fastify*"],
)
def test_equal_titles_of_markdown_are_told_apart_however_they_are_written(tmp_path, heading):
    pages = {f"{name}.md": f"{heading}\n\n## {name}\n\nText of {name}.\n" for name in ("Hooks", "Routes")}
    store = MemoryStore()
    index(store, FolderSource(written(tmp_path, pages)))
    assert titled(store) == {"Hooks.md": "Fastify (Hooks)", "Routes.md": "Fastify (Routes)"}


def test_the_name_of_a_part_of_a_site_is_not_in_the_title(tmp_path):
    names = ("Realm", "Valve", "Cluster", "Proxy", "Logging")
    pages = {f"{n}.html": f"<title>Tomcat 10 (10.1) - {n}</title><p>On {n} here.</p>" for n in names}
    pages |= {f"java/{n}.html": f"<title>{n} (Java SE 17)</title><p>On {n}.</p>" for n in names}
    store = MemoryStore()
    index(store, FolderSource(written(tmp_path, pages)))
    found = titled(store)
    assert {found[f"{name}.html"] for name in names} == set(names)
    assert {found[f"java/{name}.html"] for name in names} == {f"{name} (java)" for name in names}


def test_a_page_is_read_again_when_another_takes_its_title(tmp_path):
    store = MemoryStore()
    written(tmp_path, {"a.md": "# Notes\n\nOne.", "b.md": "# Else\n\nTwo.", "c.md": "# Third\n\nThree."})
    index(store, VaultSource(tmp_path))
    assert titled(store) == {"a.md": "Notes", "b.md": "Else", "c.md": "Third"}
    written(tmp_path, {"b.md": "---\ntitle: Notes\n---\n\nTwo."})
    assert index(store, VaultSource(tmp_path)).pages.updated == 2
    assert titled(store) == {"a.md": "Notes (a)", "b.md": "Notes (b)", "c.md": "Third"}
    (head,) = (one for one in store.scan() if one.id == "a.md")
    assert head.page_content == "Notes (a)\n\nOne."
    assert head.metadata["headings"] == ["Notes (a)"]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("a/b.html", "b"),
        ("a/index.html", "a"),
        ("index.html", ""),
        ("https://docs.example/v1.2/", "v1.2"),
        ("https://docs.example/", ""),
        ("a/readme.md", "a"),
        ("a%0Ab.html", ""),
    ],
)
def test_the_name_of_a_page(url, name):
    assert get_page_name(url) == name


def test_titles_are_told_by_the_beginning_of_a_page():
    page = '<title> A &amp;\n b</title><h1 class="x">C<a href="#c">¶</a> <i>d</i></h1>'
    assert find_titles(page) == {"A & b", "C¶ d"}
    assert find_titles("---\ntitle: 'A'\n---\n# B", markdown=True) == {"B"}
    assert find_titles("---\ntitle: 'A'\n---\n# B\n\n# C", markdown=True) == {"A"}
    assert find_titles("---\ntitle: 'A'\n---\n## B", markdown=True) == {"A"}
    assert find_titles("---\ntitle: 'A'\n---\nText.\n\n# B", markdown=True) == {"A"}
    assert find_titles("---\ntitle: 'A'\n---\n![](x.png)\n\n# B", markdown=True) == {"B"}
    assert find_titles("text\n\n# B #\n\n# C", markdown=True) == {"B"}
    assert find_titles("```\n# not this\n```\n\n# B", markdown=True) == {"B"}
    assert find_titles("<title>" * 1000) == frozenset()
