"""The README does what it says."""

from __future__ import annotations

import re

from documented import ROOT, blocks, run_markdown

README = ROOT / "README.md"


def test_every_block_of_the_readme_runs_and_prints_what_it_shows(tmp_path):
    assert run_markdown(README, tmp_path) >= 5


def test_the_first_result_is_within_30_lines():
    first = next(block for block in blocks(README) if block.language == "console")

    assert "by default: page 1" in first.text
    assert first.line + first.text.count("\n") + 2 <= 30


def test_nobody_is_told_to_install_a_strangers_package():
    """The name linkstore belongs to another distribution; ours is langchain-linkstore."""
    texts = [README, ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]

    strangers = re.compile(r"(?<!plugin )install linkstore\b")  # a plugin is ours
    assert not [str(path) for path in texts if strangers.search(path.read_text())]
