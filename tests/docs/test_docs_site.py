"""The site built from docs/ has no warning, no broken link and no page that its navigation forgets."""

from __future__ import annotations

import http.server
import re
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from documented import ROOT
from selectolax.lexbor import LexborHTMLParser

HOME = "https://docs.invalid/"
"""Where the site is taken to lie, to resolve its links."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the built site."""
    if find_spec("zensical") is None:
        pytest.skip("needs zensical, of the dependency group docs, which is not installed")
    root = tmp_path_factory.mktemp("site")
    for name in ("docs", "linkstore", "extractors"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "data"))
    for name in ("zensical.toml", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    built = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, plain(built.stdout + built.stderr)
    return root / "site"


@pytest.fixture(scope="module")
def site(folder):
    """The built site: path from its root → page."""
    return {
        path.relative_to(folder).as_posix(): LexborHTMLParser(path.read_text())
        for path in folder.rglob("*.html")
    }


def plain(text) -> str:
    """Without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def file_of(path) -> str:
    """The file that a path of the site shows."""
    path = unquote(path).lstrip("/")
    return f"{path}index.html" if not path or path.endswith("/") else path


def test_every_page_of_the_folder_is_a_page_of_the_site(site):
    written = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    expected = {
        (path.parent if path.stem == "index" else path.with_suffix("")) / "index.html" for path in written
    }

    assert {path.as_posix() for path in expected} == set(site) - {"404.html"}


def test_every_link_leads_to_a_page_and_to_an_anchor_that_is_there(site):
    """Links out of the site can only be looked at: they are https."""
    ids = {
        name: {node.attributes["id"] for node in page.css("[id]")} | {"", "__top"}
        for name, page in site.items()
    }
    broken = []
    for name, page in site.items():
        for link in page.css("article a[href], nav a[href]"):
            target = urljoin(HOME + name, link.attributes["href"])
            parts = urlsplit(target)
            if not target.startswith(HOME):
                ok = parts.scheme == "https" and "." in parts.netloc
            else:
                ok = unquote(parts.fragment) in ids.get(file_of(parts.path), ())
            if not ok:
                broken.append(f"{name}: {link.attributes['href']}")
    assert not broken


def test_the_navigation_names_every_page(site):
    home = site["index.html"]
    named = {
        file_of(urlsplit(urljoin(HOME, link.attributes["href"])).path)
        for link in home.css("nav.md-nav--primary a[href]")
    }

    assert named >= set(site) - {"404.html"}


def test_the_python_reference_describes_every_public_name(site):
    import linkstore
    from linkstore import strategies

    described = {node.attributes["id"] for page in site.values() for node in page.css("article [id]")}
    for module in (linkstore, strategies):
        for name in set(module.__all__) - {"__version__"}:
            assert any(anchor.endswith(f".{name}") for anchor in described), name


def test_no_page_shows_a_mark_of_a_figure(site):
    """Marks of measured figures are comments, and the tables between them stay tables."""
    for name, page in site.items():
        shown = page.body.text()
        assert not re.search(r"<!--|-->", shown), name
        assert not [cell.text() for cell in page.css("article p") if cell.text().startswith("|")], name


def test_no_page_loads_anything_from_elsewhere(site):
    """It can be read where there is no network, and tells nobody who reads it."""
    for name, page in site.items():
        sources = [node.attributes.get("src") for node in page.css("script[src], img[src]")]
        styles = [node.attributes.get("href") for node in page.css("link[rel=stylesheet]")]
        outside = [found for found in (*sources, *styles) if found and "://" in found]
        assert [found for found in outside if "colab-badge" not in found] == [], name


def test_what_docstrings_say_of_parameters_fits_the_signatures(caplog):
    """griffe warns of a parameter that a function does not have, where keywords are not taken on."""
    griffe = pytest.importorskip("griffe", reason="needs griffe, of the dependency group docs")
    loader = griffe.GriffeLoader(search_paths=[str(ROOT)], docstring_parser="google")
    with caplog.at_level("WARNING", logger="griffe"):
        for described in walk(loader.load("linkstore")):
            if described.docstring is not None and not takes_any(described):
                _ = described.docstring.parsed
    assert [record.getMessage() for record in caplog.records] == []


def walk(item):
    if not item.is_alias:
        yield item
        for member in item.members.values():
            yield from walk(member)


def takes_any(item) -> bool:
    """Whether keywords are passed on, or fields of a model from elsewhere are arguments."""
    if item.is_class:
        return any(model in str(base) for base in item.bases for model in ("Retriever", "ChatModel"))
    return item.is_function and any(parameter.name == "kwargs" for parameter in item.parameters)


@pytest.mark.parametrize("width", [1440, 390])
def test_no_block_of_code_is_wider_than_its_page(folder, width):
    """On a wide screen and on a phone, nothing of an example must be scrolled to."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, which is not installed")
    if not (browser := shutil.which("chromium")):
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as driver:
        page = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
            viewport={"width": width, "height": 900}
        )
        for name in ("tutorial", "schema", "how-to/use-in-langchain", "how-to/read-with-an-agent"):
            page.goto((folder / name / "index.html").as_uri())
            blocks = page.locator("pre > code")
            assert blocks.count() > 0
            assert blocks.evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth + 1)"), (
                name
            )


SOUGHT = {
    "install": "install/",
    "cassandra": "reference/cassandra/",
    "ollama": "how-to/use-a-local-model/",
    "filter": "how-to/filter/",
    "mcp": "how-to/serve-over-mcp/",
    "claude": "how-to/serve-over-mcp/",
    "obsidian": "how-to/index-a-vault/",
    "delete": "how-to/keep-in-order/",
    "pdf": "how-to/index-pdf-and-office/",
    "memory": "how-to/remember-conversations/",
}
"""What newcomers type, and the page that should come first."""


def test_the_search_of_the_site_finds_what_newcomers_type(folder):
    """It counts the beginnings of titles most."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, which is not installed")
    if not (browser := shutil.which("chromium")):
        pytest.skip("chromium is not installed")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web,
        sync_api.sync_playwright() as driver,
    ):
        threading.Thread(target=web.serve_forever, daemon=True).start()
        home = f"http://127.0.0.1:{web.server_port}/"
        tab = driver.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        tab.goto(home)
        tab.wait_for_load_state("networkidle")
        tab.keyboard.press("Control+k")
        first = {}
        for word, page in SOUGHT.items():
            tab.locator("input:visible").first.fill(word)
            link = tab.locator("ol a[href]").first
            # The list shows the results of the word before until a worker has answered.
            with suppress(AssertionError):
                sync_api.expect(link).to_have_attribute(
                    "href", re.compile(re.escape(home + page) + r"\?"), timeout=10_000
                )
            first[word] = link.get_attribute("href").removeprefix(home).partition("?")[0]
        web.shutdown()
    assert first == SOUGHT
