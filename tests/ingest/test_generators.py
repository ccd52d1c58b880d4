"""Vaults that a generator publishes: links by URL find their notes. Templates are not notes."""

from __future__ import annotations

import json

import pytest
from internals import NoteIndex, Routes, describe_unread, get_links

from linkstore import LinkStore
from linkstore.ingest import VaultSource, index

LINKS = ("hyperlink",)
DOCS = {
    "01-intro.md": {},
    "02-guides/_index.md": {},
    "02-guides/01-setup.md": {},
    "02-guides/02 - Deep Dive.mdx": {},
    "02-guides/more/more.md": {},
    "02-guides/2024-01-x.md": {},
    "02-guides/8.0-news.md": {},
    "slugs/a.md": {"slug": "/start/here"},
    "slugs/b.md": {"slug": "bee"},
    "slugs/c.md": {"id": "sea"},
    "twice/1-x.md": {},
    "twice/2-x.md": {},
}


@pytest.fixture
def store():
    with LinkStore() as opened:
        yield opened


def write(root, pages):
    for name, content in pages.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def pages(store):
    return {document.metadata["page"] for document in store.scan()}


@pytest.mark.parametrize(
    ("href", "page", "found"),
    [
        ("./intro", "slugs/b.md", None),
        ("../intro", "slugs/b.md", "01-intro.md"),
        ("/intro", "slugs/b.md", "01-intro.md"),
        ("/docs/intro", "slugs/b.md", "01-intro.md"),
        ("/docs/intro/", "slugs/b.md", "01-intro.md"),
        ("/other/intro", "slugs/b.md", None),
        ("intro.md", "slugs/b.md", None),
        ("./setup", "02-guides/02 - Deep Dive.mdx", "02-guides/01-setup.md"),
        ("setup", "02-guides/02 - Deep Dive.mdx", "02-guides/01-setup.md"),
        ("guides/Deep%20Dive", "01-intro.md", "02-guides/02 - Deep Dive.mdx"),
        ("/docs/guides/more/", "01-intro.md", "02-guides/more/more.md"),
        ("/docs/guides/2024-01-x", "01-intro.md", "02-guides/2024-01-x.md"),
        ("/docs/guides/8.0-news", "01-intro.md", "02-guides/8.0-news.md"),
        ("/docs/guides/0-news", "01-intro.md", None),
        ("/docs/start/here", "01-intro.md", "slugs/a.md"),
        ("../guides/setup", "slugs/a.md", "02-guides/01-setup.md"),
        ("/docs/slugs/bee", "01-intro.md", "slugs/b.md"),
        ("sea", "slugs/b.md", "slugs/c.md"),
        ("/docs/twice/x", "01-intro.md", None),
        ("/docs/twice/1-x.md", "01-intro.md", "twice/1-x.md"),
    ],
)
def test_a_link_by_url_means_the_note_that_is_published_there(href, page, found):
    names = NoteIndex(DOCS, {}, Routes(DOCS, name="docs"))
    assert names.resolve_path(href, page) == found


@pytest.mark.parametrize(
    ("href", "page", "found"),
    [
        ("/docs/intro", "web/blog/2024-05-01-hello.md", "web/docs/01-intro.md"),
        ("/intro", "web/docs/x.md", "web/docs/01-intro.md"),
        ("/docs/from-root", "web/docs/01-intro.md", "web/docs/x.md"),
        ("/from-root", "web/docs/01-intro.md", "web/docs/x.md"),
        ("/blog/hello", "web/docs/x.md", "web/blog/2024-05-01-hello.md"),
        ("/blog/2024/05/02/plain", "web/docs/x.md", "web/blog/2024-05-02-plain.md"),
        ("/blog/2024/05/03/folder", "web/docs/x.md", "web/blog/2024-05-03-folder/index.md"),
        ("/docs/intro", "Home.md", None),
        ("/about", "web/docs/x.md", "web/about.md"),
    ],
)
def test_a_site_in_a_vault_has_its_own_root(href, page, found):
    notes = {
        "Home.md": {},
        "web/about.md": {},
        "web/docs/01-intro.md": {},
        "web/docs/x.md": {"slug": "/from-root"},
        "web/blog/2024-05-01-hello.md": {"slug": "hello"},
        "web/blog/2024-05-02-plain.md": {},
        "web/blog/2024-05-03-folder/index.md": {},
    }
    assert NoteIndex(notes, {}, Routes(notes, ("web",), "repository")).resolve_path(href, page) == found


def test_the_pages_of_docusaurus_meet_by_their_urls(store, tmp_path):
    written = {
        "docusaurus.config.ts": "",
        "docs/01-intro.md": "# Intro\n\nSee [setup](./guides/setup#run) and [more](/docs/first).\n",
        "docs/02-guides/01-setup.md": "# Setup\n\nBack to [it](../intro).\n\n## Run\n\nRun it.\n",
        "docs/02-guides/02-more.md": "---\nslug: /first\n---\n# More\n\n[Here](https://x.org/docs/intro).\n",
    }
    write(tmp_path, written)
    summary = index(store, VaultSource(tmp_path, bases=("https://x.org/",)), links=LINKS)
    assert (summary.dangling.internal, summary.dangling.external) == (0, 0)
    (start,) = store.get_by_ids(["docs/01-intro.md"])
    out = {link.tag for link in get_links(start) if link.leads_out}
    assert out == {"/docs/02-guides/01-setup.md#run", "/docs/02-guides/02-more.md"}


def test_templates_are_counted_and_are_not_notes(store, tmp_path):
    write(
        tmp_path,
        {
            "Home.md": "# Home\n\nSee [[Day]].\n",
            "Day.md": "# Day\n\nIn {{title}} of Vue.\n",
            "Made/Person.md": "# Person\n\nBorn: #person\n",
            "Templates/Meeting.md": "# {{title}}\n\nOn {{date:YYYY-MM-DD}}.\n",
            "Templates/Templater.md": "# <% tp.file.title %>\n\nText.\n",
            "Templates/About.md": "# About\n\nHow we use templates.\n",
            ".obsidian/templates.json": json.dumps({"folder": "/Made/"}),
        },
    )
    summary = index(store, VaultSource(tmp_path), links=LINKS)
    assert pages(store) == {"Home.md", "Day.md", "Templates/About.md"}
    assert summary.unread == {"templates of notes": 3}
    assert describe_unread(summary.unread) == "3 templates of notes"


@pytest.mark.parametrize("said", ["{", "[]", '{"folder": ""}', '{"folder": "/"}', '{"folder": 3}', "{}"])
def test_without_a_folder_of_templates_all_are_notes(store, tmp_path, said):
    write(tmp_path, {"a.md": "# A\n\nText.\n", "b/c.md": "# C\n\nText.\n", ".obsidian/templates.json": said})
    assert index(store, VaultSource(tmp_path)).pages.added == 2
