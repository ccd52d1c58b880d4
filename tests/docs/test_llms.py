"""What language models read of the documentation: a list of all pages, and each page as Markdown."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from documented import ROOT

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, DOCS / "generate_llms.py", folder], check=True)
    return folder


def test_every_page_is_listed_once_and_its_markdown_is_there(site):
    text = (site / "llms.txt").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[[^]]+\]\(([^)]+)\)", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert {site / name for name in listed} | {site / "index.html.md"} == set(site.rglob("*.md"))
    assert len(listed) == len(list(DOCS.rglob("*.md"))) - 1


def test_the_list_begins_with_title_and_summary_and_says_what_pages_are_about(site):
    lines = (site / "llms.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# linkstore"
    assert lines[2].startswith("> linkstore is a vector store for LangChain")
    told = [line for line in lines if line.startswith("- [")]
    assert sum(": " in line for line in told) > 0.9 * len(told)


def test_the_markdown_of_a_page_has_no_invisible_marks(site):
    for path in site.rglob("*.md"):
        assert "<!--" not in path.read_text(encoding="utf-8")
