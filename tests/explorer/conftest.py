"""A small site as a store, and one whose every text is hostile."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import playwright.sync_api
import pytest
from browsing import BROWSER, FLAGS, Watched
from hostile_texts import hostile_texts
from langchain_core.documents import Document

from linkstore import Link, LinkStore, add_links, explorer

PAGES = {
    "guide": ("Guide", "How to install the program on your machine.", ["install", "faq"]),
    "install": ("Installing", "Run the installer and wait until it ends.", ["faq"]),
    "faq": ("Questions", "Why does the installer ask for a password?", ["guide"]),
    "history": ("History", "The first release came out in 1999.", []),
}


def page(name: str, title: str, text: str, links: list[str]) -> Document:
    metadata = {"title": title, "url": f"https://site.example/{name}", "page": f"https://site.example/{name}"}
    made = Document(id=name, page_content=text, metadata=metadata | {"lang": "en", "date": "2024-05-01"})
    add_links(made, Link.incoming(kind="hyperlink", tag=name))
    for other in links:
        add_links(made, Link.outgoing(kind="hyperlink", tag=other, label=f"see {other}"))
    return made


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The folder of a store of four pages."""
    folder = tmp_path_factory.mktemp("site") / "kb"
    with LinkStore.open(folder) as store:
        store.add_documents([page(name, *rest) for name, rest in PAGES.items()])
    return folder


@pytest.fixture(scope="module")  # while it is open, an event loop runs in this thread
def browser():
    if BROWSER is None:
        if os.environ.get("LINKSTORE_REQUIRE_BROWSER"):
            pytest.fail("chromium is missing")
        pytest.skip("chromium is not installed")
    with playwright.sync_api.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def tab(browser, request):
    """Makes a watched tab, with options of the browser's context."""
    made = []

    def open_tab(address: str, **options) -> Watched:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        made.append(context)
        watched = Watched(context.new_page(), address)
        watched.tab.set_default_timeout(30_000)
        watched.tab.goto(address)
        return watched

    yield open_tab
    for context in made:
        context.close()


@pytest.fixture
def store(site):
    with LinkStore.open(site) as opened:
        yield opened


@pytest.fixture(scope="session")
def hostile(tmp_path_factory) -> Path:
    """The folder of a store with a hostile text as id, title, heading, text, link, label and metadata."""
    folder = tmp_path_factory.mktemp("hostile") / "kb"
    documents = []
    for number, text in enumerate(hostile_texts()):
        clean = text.replace("\x00", "")
        made = Document(
            id=clean,
            page_content=f"word {clean}",
            metadata={"title": clean, "url": clean, "headings": [clean], "note": clean, "kind": clean[:40]},
        )
        add_links(
            made,
            Link.incoming(kind="hyperlink", tag=f"{number}"),
            Link.outgoing(kind="hyperlink", tag=f"{(number + 1) % 500}", label=clean),
            Link.outgoing(kind=clean[:60] or "x", tag=clean, label=clean),
        )
        documents.append(made)
    with LinkStore.open(folder) as store:
        store.add_documents(documents)
    return folder


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """The sources of the script with their libraries."""
    if shutil.which("npm") is None:
        if os.environ.get("LINKSTORE_REQUIRE_BROWSER"):
            pytest.fail("npm is missing")
        pytest.skip("npm is not installed")
    sources = tmp_path_factory.mktemp("page") / "web"
    shutil.copytree(
        Path(explorer.__file__).parent / "web", sources, ignore=shutil.ignore_patterns("node_modules")
    )
    install = ["npm", "ci", "--silent", "--no-fund", "--no-audit"]
    subprocess.run(install, cwd=sources, check=True, timeout=300)
    return sources
