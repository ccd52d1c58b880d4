"""The documentation runs, links only to what is there, and matches the command line."""

from __future__ import annotations

import re
import runpy

import pytest
from documented import ROOT, blocks, run_markdown

from linkstore.backends.embedded import schema
from linkstore.cli import exits

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
            continue
        other = (page.parent / target).resolve() if target else page
        assert other.exists(), f"{named(page)} links to {target}, which is not there"
        if fragment:
            assert fragment in anchors(other), f"{named(page)} links to {target}#{fragment}"


def anchors(page) -> set[str]:
    """The fragments of a page's headings, as sites make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings}


def test_the_command_line_reference_is_what_help_says():
    """If this fails, run ``make docs``."""
    generated = runpy.run_path(str(DOCS / "generate_cli.py"))

    assert (DOCS / "cli.md").read_text() == "\n".join(generated["pages"]())


def test_every_exit_code_is_documented():
    codes = {value for name, value in vars(exits).items() if name.isupper() and not name.startswith("_")}
    documented = set(map(int, re.findall(r"^\| (\d+) \|", (DOCS / "cli.md").read_text(), re.MULTILINE)))

    assert documented == codes | {0}


def test_every_table_of_the_database_is_documented():
    tables = set(re.findall(r"^CREATE TABLE (\w+)", schema.TABLES, re.MULTILINE))
    documented = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "file-format.md").read_text(), re.MULTILINE))

    assert documented == tables
