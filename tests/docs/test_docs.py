"""The documentation runs, links only to what is there, and matches the command line."""

from __future__ import annotations

import re
import runpy
from urllib.parse import urlsplit

import pytest
from documented import ROOT, blocks, run_markdown

from linkstore.cli import exits
from linkstore.engines.embedded import schema

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NOT_RUN_HERE = {
    "contract.md",  # its example is for a backend that is yet to be written
    "use-cassandra.md",  # run on a real server by test_cassandra_store.py
    "migrate.md",  # likewise, by test_migration_cassandra.py
}
RUNNABLE = [
    page
    for page in PAGES
    if page.name not in NOT_RUN_HERE and any(block.language != "text" for block in blocks(page))
]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def named(path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", RUNNABLE, ids=named)
def test_every_block_runs_and_prints_what_it_shows(page, tmp_path):
    run_markdown(page, tmp_path)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=named)
def test_links_between_pages_lead_somewhere(page):
    for target, fragment in LINK.findall(page.read_text()):
        if "://" in target:
            assert is_address(target), f"{named(page)}: {target} is no address"
            continue
        other = (page.parent / target).resolve() if target else page
        assert other.exists(), f"{named(page)} links to {target}, which is not there"
        if (
            fragment and other.suffix == ".md" and other.parent.name != "api"
        ):  # those are made of docstrings when the site is built
            assert fragment in anchors(other), f"{named(page)} links to {target}#{fragment}"


def is_address(target) -> bool:
    """Whether a link out of the docs could be one: there is no network to try it."""
    parts = urlsplit(target)
    host = re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?", parts.netloc)
    return parts.scheme in {"https", "http"} and host is not None


def anchors(page) -> set[str]:
    """The fragments of a page's headings, as sites make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings}


GENERATED = runpy.run_path(str(DOCS / "generate.py"))["pages"]()


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_what_it_is_made_from(name):
    """If this fails, run ``make docs``."""
    assert (DOCS / name).read_text() == GENERATED[name]


def test_the_python_reference_has_no_page_of_a_module_that_is_gone():
    assert {f"api/{path.name}" for path in (DOCS / "api").glob("*.md")} <= set(GENERATED)


def test_the_home_page_leads_to_every_page_but_those_that_another_page_lists():
    """What is written and not named there is found by nobody who reads the folder."""
    named = {target for target, _ in LINK.findall((DOCS / "index.md").read_text())}
    there = {path.relative_to(DOCS).as_posix() for path in PAGES}

    missing = {name for name in there - named if not name.startswith(("api/", "decisions/"))} - {"index.md"}
    assert not missing, f"docs/index.md does not name {sorted(missing)}"


def test_the_list_of_decisions_has_each_with_its_title():
    listed = (DOCS / "decisions" / "index.md").read_text()
    for path in sorted((DOCS / "decisions").glob("0*.md")):
        title = path.read_text().partition("\n")[0].partition(". ")[2]
        assert f"\n- [{title}]({path.name})\n" in listed, path.name


def test_every_exit_code_is_documented():
    codes = {value for name, value in vars(exits).items() if name.isupper() and not name.startswith("_")}
    documented = set(map(int, re.findall(r"^\| (\d+) \|", (DOCS / "cli.md").read_text(), re.MULTILINE)))

    assert documented == codes | {0}


def test_every_table_of_the_database_is_documented():
    tables = set(re.findall(r"^CREATE TABLE (\w+)", schema.TABLES, re.MULTILINE))
    documented = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "file-format.md").read_text(), re.MULTILINE))

    assert documented == tables
