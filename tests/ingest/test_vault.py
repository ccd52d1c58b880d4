"""Vaults of Markdown notes: which note a link means, tags, front matter, and what is broken."""

from __future__ import annotations

import json
import os

import pytest
from growing import grows_with_length
from internals import FrontMatterError, Link, NoteIndex, get_links, read_front_matter, render_note

from linkstore import LinkStore
from linkstore.ingest import VaultSource, WriteCounts, index

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


def led_to(store, start):
    """The ids of the documents that the hyperlinks of one lead to."""
    (document,) = store.get_by_ids([start])
    out = {link.tag for link in get_links(document) if link.direction == "out"}
    return {
        other.id
        for other in store.scan()
        for link in get_links(other)
        if link.leads_in and link.kind == "hyperlink" and link.tag in out
    }


def links_of(store, name, kind):
    (document,) = store.get_by_ids([name])
    return {link.tag for link in get_links(document) if link.kind == kind}


def test_a_vault_becomes_documents_with_links(store, tmp_path):
    write(
        tmp_path,
        {
            "Home.md": "---\ntags: [Start, a/b]\ncategories: Cities\naliases: [Entry]\ncreated: 2024-05-01\n"
            "---\n# Home\n\nSee [[Space Needle#The view|the view]], [[Seattle]] ![[Map]] #todo #not-2 #1\n",
            "places/Space Needle.md": "# Space Needle\n\nA tower.\n\n## The view\n\nFar. ^far\n\n[[Entry]]\n",
            "places/Seattle.md": "# Seattle\n\n[it](Space%20Needle.md#The%20view), [[Space Needle#^far]].\n",
            "Map.md": "# Map\n\nA map. ![[needle.png]] `[[Seattle]]` \\[[Seattle]]\n",
            ".obsidian/app.json": "{}",
            ".trash/Old.md": "# Old\n\nGone.\n",
            "search.md": "# Search\n\nOf notes [[#Search]].\n",
        },
    )
    summary = index(store, VaultSource(tmp_path), links=LINKS)

    assert (summary.pages, dict(summary.skipped)) == (WriteCounts(added=5), {})
    view = "places/Space%20Needle.md#the-view"
    assert led_to(store, "Home.md") == {view, "places/Seattle.md", "Map.md"}
    assert led_to(store, "places/Seattle.md") == {view}
    assert led_to(store, view) == {"Home.md"}, "by its alias"
    assert led_to(store, "search.md") == {"search.md"}
    assert links_of(store, "Map.md", "hyperlink") == {"/Map.md", "/Map.md#map"}
    assert links_of(store, "Home.md", "tag") == {"start", "a", "a/b", "todo", "not-2"}
    assert links_of(store, "Home.md", "category") == {"Cities"}
    metadata = store.get_by_ids(["Home.md"])[0].metadata
    assert (metadata["aliases"], metadata["created"], metadata["title"]) == (["Entry"], "2024-05-01", "Home")
    labels = {link.label for link in get_links(store.get_by_ids(["Home.md"])[0]) if link.direction == "out"}
    assert {"the view", "Seattle", "Map"} <= labels
    assert summary.dangling.internal == 0


def test_a_second_run_leaves_all_alone_but_what_other_notes_changed(store, tmp_path):
    write(
        tmp_path,
        {
            "a/Note.md": "# Note\n\nIn a.\n",
            "Start.md": "# Start\n\nSee [[Note]] and [[Later]].\n",
            "b.md": "# B\n\nNo links.\n",
        },
    )
    index(store, VaultSource(tmp_path), links=LINKS)
    assert index(store, VaultSource(tmp_path), links=LINKS).pages == WriteCounts(unchanged=3)

    write(tmp_path, {"Note.md": "# Another\n\nAt the root.\n"})
    assert index(store, VaultSource(tmp_path), links=LINKS).pages == WriteCounts(
        added=1, updated=1, unchanged=2
    )
    assert led_to(store, "Start.md") == {"Note.md"}, "the exact path comes first"

    (tmp_path / "Note.md").unlink()
    assert index(store, VaultSource(tmp_path), links=LINKS).pages == WriteCounts(
        updated=1, unchanged=2, removed=1
    )
    assert led_to(store, "Start.md") == {"a/Note.md"}

    write(tmp_path, {"c/Other.md": "---\naliases: Later\n---\n# Other\n\nText.\n"})
    index(store, VaultSource(tmp_path), links=LINKS)
    assert led_to(store, "Start.md") == {"a/Note.md", "c/Other.md"}


def test_the_name_of_a_note_may_have_a_number_sign(store, tmp_path):
    pages = {
        "C# notes.md": "# Sharp\n\nText.\n\n## In use\n\nText.\n",
        "start.md": "---\nsee: '[[C# notes]]'\n---\n# Start\n\nOf [[C# notes]].\n",
        "part.md": "# Part\n\nOf [[C# notes#In use]].\n",
        "url.md": "# URL\n\nOf [it](C%23%20notes.md#in-use).\n",
        "later.md": "# Later\n\nOf [[F# notes]], [[a#b#c#d#e#f]].\n",
    }
    write(tmp_path, pages)
    summary = index(store, VaultSource(tmp_path), links=LINKS)

    assert summary.dangling.internal == 2
    assert led_to(store, "start.md") == {"C%23%20notes.md"}
    assert led_to(store, "part.md") == led_to(store, "url.md") == {"C%23%20notes.md#in-use"}
    assert "Of C# notes > In use." in store.get_by_ids(["part.md"])[0].page_content

    write(tmp_path, {"F# notes.md": "# F\n\nText.\n", "F.md": "# Other\n\n## Notes\n\nText.\n"})
    index(store, VaultSource(tmp_path), links=LINKS)
    assert led_to(store, "later.md") == {"F.md"}, "as elsewhere, a number sign ends a name"
    (tmp_path / "F.md").unlink()
    index(store, VaultSource(tmp_path), links=LINKS)
    assert led_to(store, "later.md") == {"F%23%20notes.md"}


def test_a_dry_run_writes_nothing(store, tmp_path):
    write(tmp_path, {"a.md": "# A\n\nText [[b]].\n", "b.md": "# B\n\nText.\n"})
    assert index(store, VaultSource(tmp_path), dry_run=True).pages == WriteCounts(added=2)
    assert store.survey().documents == 0


RULES = (
    "Note.md",
    "b/Note.md",
    "a/b/Note.md",
    "zzzz/Note.md",
    "zzzz/x.md",
    "a/b/y.md",
    "dir/README.md",
    "v1.2.md",
)


@pytest.mark.parametrize(
    ("name", "page", "found"),
    [
        ("Note", "zzzz/x.md", "Note.md"),
        ("b/Note", "a/b/y.md", "b/Note.md"),
        ("zzzz/Note", "Note.md", "zzzz/Note.md"),
        ("NOTE.md", "Note.md", "Note.md"),
        ("./Note", "a/b/y.md", "a/b/Note.md"),
        ("../Note", "a/b/y.md", None),
        ("/b/Note", "a/b/y.md", "b/Note.md"),
        ("dir", "Note.md", "dir/README.md"),
        ("v1.2", "Note.md", "v1.2.md"),
        ("", "a/b/y.md", "a/b/y.md"),
        ("none", "Note.md", None),
        ("../../../x", "Note.md", None),
        ("Nick", "Note.md", "b/Note.md"),
        ("x", "Note.md", "zzzz/x.md"),
    ],
)
def test_which_note_a_name_means(name, page, found):
    assert NoteIndex(RULES, {"nick": ["zzzz/Note.md", "b/Note.md"]}).resolve_name(name, page) == found


def test_which_of_several_notes_a_name_means_without_one_at_the_root():
    notes = NoteIndex(("zzzz/Note.md", "a/b/Note.md", "b/Note.md", "b/c/x.md", "zzzz/x.md"), {})
    assert notes.resolve_name("Note", "zzzz/x.md") == "zzzz/Note.md", "the own folder"
    assert notes.resolve_name("Note", "b/c/x.md") == "b/Note.md", (
        "the shortest path; folders above count for nothing"
    )
    assert (
        NoteIndex(("zzzz/Note.md", "a/b/Note.md", "b/Note.md"), {}).resolve_name("a/b/note", "x.md")
        == "a/b/Note.md"
    )
    assert NoteIndex(("archive/Note.md", "a/b/Note.md"), {}).resolve_name("Note", "x.md") == "a/b/Note.md"
    assert NoteIndex(("x/a/b/Note.md", "b/Note2.md"), {}).resolve_name("b/Note", "y.md") == "x/a/b/Note.md"


@pytest.mark.parametrize(
    ("href", "page", "found"),
    [
        ("../Note", "b/x.md", "Note.md"),
        ("Note.md", "b/x.md", "b/Note.md"),
        ("/Note.md", "b/x.md", "Note.md"),
        ("dir/", "x.md", "dir/README.md"),
        ("Space%20Needle.md", "x.md", "deep/Space Needle.md"),
        ("missing.md", "x.md", None),
    ],
)
def test_which_note_a_link_means(href, page, found):
    paths = ("Note.md", "b/Note.md", "dir/README.md", "deep/Space Needle.md")
    assert NoteIndex(paths, {}).resolve_path(href, page) == found


NOTES = NoteIndex(("N.md", "a/M.md", "a/P Q.md"), {})


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("[[N]]", '<a href="N.md">N</a>'),
        ("[[p q#A B!|x]]", '<a href="a/P%20Q.md#a-b">x</a>'),
        ("[[N#A#B]]", '<a href="N.md#b">N &gt; A &gt; B</a>'),
        ("[[#A B]]", '<a href="#a-b">A B</a>'),
        ("[[N\\|x]]", '<a href="N.md">x</a>'),
        ("![[a.PNG|100]]", '<img src="a.PNG" alt="100">'),
        ("[[a.pdf]]", '<a href="a.pdf">a.pdf</a>'),
        ("[[Ghost]]", '<a href="Ghost.md">Ghost</a>'),
        ("[[]] [[ ]] [[N", "[[]] [[ ]] [[N"),
        ("[M](M)", '<a href="a/M.md">M</a>'),
        ("[o](https://o.org/A B)", "[o](https://o.org/A B)"),
        ("[o](https://o.org/A#B)", '<a href="https://o.org/A#B">o</a>'),
        ("[n](N.md#a-b)", '<a href="N.md#a-b">n</a>'),
        ("[i](other/x.html?q=1)", '<a href="other/x.html?q=1">i</a>'),
        ("a#b c", "a#b c"),
        ("#1984 #y1984", '#1984 <a href="x-linkstore-tag:y1984">#y1984</a>'),
        ("`[[N]] #t`", "<code>[[N]] #t</code>"),
        ("$[[1,2]]$ and $$[[3]]$$ cost $5 [[N]]", '$[[1,2]]$ and $$[[3]]$$ cost $5 <a href="N.md">N</a>'),
        ("a %%[[N]] #t%% b", "a  b"),
        ("100%% [[N]]", '100%% <a href="N.md">N</a>'),
    ],
)
def test_markup(markdown, html):
    assert render_note(markdown, "x.md", NOTES) == f"<p>{html}</p>\n"


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("> [!note]\n> Text.", "<blockquote>\n<p>Note\nText.</p>\n</blockquote>\n"),
        ("> [!tip]- Title\n> Text.", "<blockquote>\n<p>Title\nText.</p>\n</blockquote>\n"),
        ("A.\n%%\n[[N]]\n\n#t\n%%\nB.", "<p>A.</p>\n<p>B.</p>\n"),
        ("```\n%%\nx\n%%\n```", "<pre><code>%%\nx\n%%\n</code></pre>\n"),
    ],
)
def test_callouts_are_text_and_comments_are_not(markdown, html):
    assert render_note(markdown, "x.md", NOTES) == html


def test_links_in_properties_are_links_of_the_note(store, tmp_path):
    write(
        tmp_path,
        {
            "a.md": '---\nup: "[[b|B]]"\nrelated:\n  - "[[c]]"\n  - none\n---\n# A\n\nText.\n',
            "b.md": "# B\n\nText.\n",
            "c.md": "# Only a heading\n",
        },
    )
    summary = index(store, VaultSource(tmp_path), links=LINKS)
    assert (summary.pages, dict(summary.skipped)) == (WriteCounts(added=3), {})
    assert led_to(store, "a.md") == {"b.md", "c.md"}
    assert store.get_by_ids(["c.md"])[0].metadata["title"] == "Only a heading"


def test_a_note_in_utf_16_with_a_byte_order_mark_is_read(store, tmp_path):
    write(
        tmp_path, {"a.md": "---\naliases: Zoë\n---\n# Ä\n\nText.\n".encode("utf-16"), "b.md": "[[Zoë]] x\n"}
    )
    index(store, VaultSource(tmp_path), links=LINKS)
    assert led_to(store, "b.md") == {"a.md"}


def test_block_ids_name_their_blocks():
    text = "One. ^one\n\n- two ^two\n- three\n\n> quote\n\n^q\n\n2^10 is no id^x\n"
    html = render_note(text, "x.md", NOTES)

    assert '<p id="^one">One.</p>' in html
    assert '<li id="^two">two</li>' in html
    assert '<blockquote id="^q">' in html
    assert "2^10 is no id^x" in html


@pytest.mark.parametrize(
    ("front", "problem"),
    [
        ("title: a: b", "not valid YAML"),
        ("- a", "not a list of names"),
        ("a: &a [*a]", "without end"),
        (
            "\n".join(
                [
                    "a: &a [x,x,x,x,x,x,x,x,x]",
                    *(
                        f"{c}: &{c} [{','.join([f'*{p}'] * 9)}]"
                        for p, c in zip("abcdefgh", "bcdefghi", strict=True)
                    ),
                ]
            ),
            "values",
        ),
        ("a: &a {x: 1}\nb: {<<: [*a, *a]}", "merge keys"),
        ("a: !!python/object/apply:os.system [ls]", "not valid YAML"),
        ("a: " + "9" * 5000, "not of its type"),
        ("a: 2001-13-45", "not of its type"),
        ("a: !!timestamp soon", "not of its type"),
        ("a: !!bool maybe", "not of its type"),
        ('a: !!int ""', "not of its type"),
        ("a: 0x" + "f" * 5000, "too many digits"),
        (
            "a: " + "[" * 30_000 + "]" * 30_000,
            "more than 20 deep|maximum nesting depth",
        ),  # by the parser, if it is new
        ("{a: " * 15_000, "more than 20 deep"),
        ("- " * 30_000, "more than 20 deep"),
        ("x" * 70_000, "characters"),
        ('a: "\\ud800"', "not valid YAML"),
    ],
    ids=lambda given: given[:30],
)
def test_broken_front_matter_is_reported_and_the_note_kept(store, tmp_path, front, problem):
    with pytest.raises(FrontMatterError, match=problem):
        read_front_matter(front)
    write(tmp_path, {"a.md": f"---\n{front}\n---\n# A\n\nText.\n"})
    summary = index(store, VaultSource(tmp_path), links=LINKS)

    assert list(summary.skipped) == ["a.md (front matter)"]
    (document,) = store.scan()
    assert document.page_content == "A\n\nText."


def test_tags_and_headings_keep_the_vowel_signs_of_their_script(store, tmp_path):
    write(
        tmp_path,
        {
            "शब्द.md": "# शब्द\n\n#हिन्दी #தமிழ்/சொல் #שָׁלוֹם #می‌خواهم #ि #1\n\n"
            "More of it comes [यहाँ](#बाद-में).\n\n## बाद में\n\nText.\n\n## X {#मुंबई}\n\nText.\n",
            "b.md": "[x](शब्द.md#बाद-में) [y](शब्द.md#मुंबई)\n\n> [!सूचना] Read\n> this\n",
        },
    )
    index(store, VaultSource(tmp_path), links=LINKS)

    assert links_of(store, "शब्द.md", "tag") == {
        "हिन्दी",
        "தமிழ்",
        "தமிழ்/சொல்",
        "שָׁלוֹם",
        "می‌خواهم",
    }
    assert led_to(store, "शब्द.md") == {"शब्द.md#बाद-में"}
    assert led_to(store, "b.md") == {"शब्द.md#बाद-में", "शब्द.md#मुंबई"}
    (document,) = store.get_by_ids(["b.md"])
    assert document.page_content.endswith("Read this")


def test_front_matter_is_plain_json():
    read = read_front_matter(
        "d: 2024-01-02\nt: 2024-01-02 03:04:05\nn: .nan\n1: one\nnull: x\nset: !!set {a, b}\n"
        "big: 99999999999999999999\nalias: One\naliases: [Two, 3, null, {a: b}]\n"
        'tags: "#a, b c"\nslug: /s\nredirect_from: [/x, /y]'
    )
    json.dumps(read.fields, allow_nan=False).encode()
    assert (read.fields["d"], read.fields["1"], read.fields["n"]) == ("2024-01-02", "one", "nan")
    assert (read.aliases, read.tags, read.urls) == (("Two", "3", "One"), ("a", "b", "c"), ("/s", "/x", "/y"))


def test_notes_that_cannot_be_read_are_reported_and_the_rest_is_kept(store, tmp_path):
    write(
        tmp_path,
        {
            "latin.md": "# Café\n\nIn Köln.".encode("latin-1"),
            "empty.md": b"",
            "front.md": "---\ntitle: x\n---\n",
            "binary.md": bytes(range(256)),
            "good.md": "# Good\n\nText.\n",
        },
    )
    summary = index(store, VaultSource(tmp_path), links=LINKS)
    assert set(summary.skipped) == {"empty.md", "binary.md"}
    assert "x (front)" in {one.page_content for one in store.scan()}, (
        "a note of front matter alone has a title"
    )
    assert summary.encodings.guessed == 1
    assert "Café\n\nIn Köln." in {one.page_content for one in store.scan()}
    assert summary.pages == WriteCounts(added=3)


@pytest.mark.parametrize(
    "piece",
    [
        "[[",
        "![[a|",
        "#a",
        " #",
        "[x](",
        "^a ",
        "a [[N]] ",
        "\u00a0 ^",
        "$",
        "$a ",
        "%%",
        "%% ",
        "> [!a",
        "\n%%",
    ],
)
def test_a_line_takes_time_with_its_length_and_no_more(piece):
    assert grows_with_length(lambda length: render_note(piece * (length // len(piece)), "x.md", NOTES), 5_000)
    assert render_note("a" + " " * 100_000 + "b", "x.md", NOTES).startswith("<p>a")


def test_a_note_is_known_by_its_other_urls(store, tmp_path):
    write(
        tmp_path,
        {
            "docs/intro.mdx": "---\nslug: /start\n---\nimport X from 'y';\n\n# Intro\n\n"
            "<X>Text</X> [old](/old-page)\n",
            "docs/new.md": "---\nredirect_from: /old-page\n---\n# New\n\nSee [intro](../start).\n",
        },
    )
    index(store, VaultSource(tmp_path), links=LINKS)
    assert led_to(store, "docs/intro.mdx") == {"docs/new.md"}
    assert led_to(store, "docs/new.md") == {"docs/intro.mdx"}
    assert "import" not in store.get_by_ids(["docs/intro.mdx"])[0].page_content


def test_notes_that_share_a_tag_lead_to_each_other(store, tmp_path):
    write(tmp_path, {"a.md": "# A\n\nText #City.\n", "b.md": "---\ntags: city\n---\n# B\n\nText.\n"})
    index(store, VaultSource(tmp_path), links=LINKS)
    shared = Link.bidir(kind="tag", tag="city")
    assert [d.id for d in store.scan() if shared in get_links(d)] == ["a.md", "b.md"]


def test_vaults_lie_side_by_side_below_prefixes(store, tmp_path):
    write(tmp_path, {"en/Home.md": "# Home\n\nSee [[City]].\n", "en/City.md": "# City\n\nText.\n"})
    write(tmp_path, {"de/Home.md": "# Start\n\nSiehe [[City]].\n", "de/City.md": "# Stadt\n\nText.\n"})
    for language in ("en", "de"):
        index(store, VaultSource(tmp_path / language, prefix=language), links=LINKS)
    assert led_to(store, "de/Home.md") == {"de/City.md"}
    assert led_to(store, "en/Home.md") == {"en/City.md"}


def test_an_exact_path_that_comes_later_takes_over_from_the_own_folder(store, tmp_path):
    write(tmp_path, {"a/Note.md": "# Note\n\nIn a.\n", "a/x.md": "# X\n\nSee [[Note]].\n"})
    index(store, VaultSource(tmp_path), links=LINKS)
    assert led_to(store, "a/x.md") == {"a/Note.md"}
    write(tmp_path, {"Note.md": "# Note\n\nAt the root.\n"})
    index(store, VaultSource(tmp_path), links=LINKS)
    assert led_to(store, "a/x.md") == {"Note.md"}


def test_names_are_the_same_however_their_accents_are_written():
    composed, apart = "Caf\u00e9", "Cafe\u0301"
    assert NoteIndex((f"{apart}.md",), {}).resolve_name(composed, "x.md") == f"{apart}.md"


def test_a_name_that_is_no_unicode_is_a_name(store, tmp_path):
    try:
        (tmp_path / os.fsdecode(b"\xff.md")).write_text("Text without a title.\n\nSee [[x]].\n")
    except OSError:
        pytest.skip("this file system takes no such names")
    write(tmp_path, {"x.md": "# X\n\nText.\n"})
    summary = index(store, VaultSource(tmp_path), links=LINKS)
    assert (summary.pages, dict(summary.skipped)) == (WriteCounts(added=2), {})
    assert led_to(store, "%FF.md") == {"x.md"}


def test_embedded_pictures_are_not_text_but_for_their_labels(store, tmp_path):
    text = "Press ![[plus.svg#icon]] here ![[shot.png|300]], ![[shot.png]] and ![[a.avif|the tower]] [[B]]."
    write(tmp_path, {"A.md": f"# A\n\n{text}\n", "B.md": "# B\n\nText. ![[B]]\n"})
    index(store, VaultSource(tmp_path), links=LINKS)
    assert store.get_by_ids(["A.md"])[0].page_content == "A\n\nPress here , and the tower B."


def test_a_nested_tag_meets_the_tags_around_it(store, tmp_path):
    pages = {
        "a.md": "# A\n\nText #City/north/old.\n",
        "b.md": "---\ntags: city\n---\n# B\n\nText.\n",
        "c.md": "# C\n\nText #city/south/.\n",
    }
    write(tmp_path, pages)
    index(store, VaultSource(tmp_path))

    assert links_of(store, "a.md", "tag") == {"city", "city/north", "city/north/old"}
    assert links_of(store, "c.md", "tag") == {"city", "city/south"}
    shared = Link.bidir(kind="tag", tag="city")
    assert [d.id for d in store.scan() if shared in get_links(d)] == ["a.md", "b.md", "c.md"]


def test_tags_that_cannot_be_links_are_passed_over(store, tmp_path):
    text = (
        f'---\ntags: ["{"t" * 9000}", "nul\\0"]\ncategories: ["a\\0b", c]\n---\n# A\n\n#{"x" * 9000} #good\n'
    )
    write(tmp_path, {"a.md": text})
    summary = index(store, VaultSource(tmp_path), links=LINKS)
    assert (summary.pages, dict(summary.skipped)) == (WriteCounts(added=1), {})
    found = {(link.kind, link.tag) for document in store.scan() for link in get_links(document)}
    assert {one for one in found if one[0] != "hyperlink"} == {("tag", "good"), ("category", "c")}


@pytest.mark.parametrize(
    "pages",
    [
        {
            "Home.md": "# Home\n\n[[Getting Started]] and [[the setup|Getting-Started]].\n",
            "Getting-Started.md": "# Getting\n\nSee [[Home]].\n",
        },
        {
            "pages/ns___page.md": "alias:: NsAlias, Other Name\ntags:: [[City]], [[Other]], #Two\n\n- x\n",
            "pages/Other.md": "- [[ns/page]] [[NsAlias]] [[Other Name]] [[Jan 31st, 2024]]\n",
            "journals/2024_01_31.md": "- [[Other]]\n",
        },
        {
            "a.md": '+++\ntitle = "TOML Title"\ntags = ["x"]\n+++\n\nText [b]({{< relref "b.md" >}}).\n',
            "b.md": "---\ntitle: B\n---\nSee [[a]].\n",
        },
        {
            "Ann.md": "---\naliases: [Dr. Ann]\ntags: [person]\n---\n",
            "Bob.md": "Met [[Dr. Ann]] and [[Ann]].\n",
        },
    ],
    ids=["GitHub", "Logseq", "Hugo", "front matter alone"],
)
def test_notes_of_other_programs_lead_to_each_other(store, tmp_path, pages):
    write(tmp_path, pages)
    summary = index(store, VaultSource(tmp_path), links=LINKS)
    assert (summary.dangling.internal, dict(summary.skipped)) == (0, {})
    titles = {one.metadata["page"]: one.metadata["title"] for one in store.scan()}
    assert len(titles) == len(pages)
    if "a.md" in pages:
        assert titles["a.md"] == "TOML Title"
    if "pages/Other.md" in pages:
        assert links_of(store, "pages/ns___page.md", "tag") == {"city", "other", "two"}
        own, *others = sorted(links_of(store, "pages/ns___page.md", "hyperlink"), reverse=True)
        assert (own, others) == ("/pages/ns___page.md", ["/pages/Other.md"]), "City has no page"


def test_text_between_rulers_is_text(store, tmp_path):
    write(tmp_path, {"r.md": "---\n\nText between two rulers: it stays.\n\n---\n\nMore.\n"})
    index(store, VaultSource(tmp_path), links=LINKS)
    assert "between two rulers: it stays" in next(iter(store.scan())).page_content
