"""Markdown as people write it stays within the budget of a page: none of it is read as plain text."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from internals import NoteIndex, read_markdown_page, render_note

WORDS = (
    "a build cache fixes the flags of http in lib module node no option path reads stream test to url with"
)


def words(chosen: random.Random, least: int, most: int) -> str:
    return " ".join(chosen.choices(WORDS.split(), k=chosen.randint(least, most)))


def changelog(chosen: random.Random):
    """Releases with lists of changes, each with its commit, author and number, as those of Node.js."""
    for release in range(10_000):
        yield f"\n<a id='{release}'></a>\n## 2024-01-01, Version {release}.0.0, @someone\n\n### Commits\n"
        for number in range(40):
            commit = f"{chosen.getrandbits(40):010x}"
            yield (
                f"* [[`{commit}`](https://github.com/example/node/commit/{commit})] -"
                f" **{words(chosen, 1, 1)}**: {words(chosen, 3, 9)} (A. Name)"
                f" [#{number}](https://github.com/example/node/pull/{number})"
            )


def keep_a_changelog(chosen: random.Random):
    """Short entries below short headings, with links at the end of each."""
    for release in range(20_000):
        yield f"\n## [1.{release}.0] - 2024-01-01\n"
        for kind in ("Added", "Fixed"):
            yield f"\n### {kind}\n"
            for _ in range(3):
                yield f"- `{words(chosen, 1, 1)}`: {words(chosen, 6, 20)} ([#12]({release}.md))"


def readme(chosen: random.Random):
    """Sections of prose, code, lists and badges."""
    for number in range(10_000):
        yield f"\n## {words(chosen, 2, 6).title()} {number}\n"
        yield f"[![build](https://img.example/{number}.svg)](https://ci.example/{number})\n"
        yield f"{words(chosen, 30, 80)} **{words(chosen, 1, 2)}** *{words(chosen, 1, 2)}*, see [that](b.md)."
        yield "\n```python\n" + "\n".join(words(chosen, 2, 8) for _ in range(8)) + "\n```\n"
        yield from (f"- {words(chosen, 4, 12)} `{words(chosen, 1, 2)}`" for _ in range(5))


def table(chosen: random.Random):
    """One table of options, with links and code in its cells."""
    yield "# Options\n\n| name | type | default | since | meaning |\n|---|---|---|---|---|"
    for number in range(100_000):
        yield (
            f"| [`--{words(chosen, 1, 1)}-{number}`](#o{number}) | string | `{number}` | 1.{number % 9} |"
            f" {words(chosen, 6, 20)} |"
        )


def numbers(chosen: random.Random):
    """One table of measurements."""
    yield "# Times\n\n" + "| n " * 8 + "|\n" + "|---" * 8 + "|"
    while True:
        yield "| " + " | ".join(f"{chosen.random():.3f}" for _ in range(8)) + " |"


def page(lines, length: int) -> str:
    """Lines up to a length."""
    text: list[str] = []
    left = length
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        text.append(line)
    return "\n".join(text)


@pytest.mark.parametrize(
    "shape", [changelog, keep_a_changelog, readme, table], ids=lambda shape: shape.__name__
)
def test_a_megabyte_of_ordinary_markdown_is_read_as_markdown(shape):
    text = page(shape(random.Random(7)), 1_000_000)
    assert len(text) > 990_000
    assert read_markdown_page(text.encode()).left_out == {}
    assert len(render_note(text, "x.md", NoteIndex((), {}))) > len(text)


@pytest.mark.parametrize("shape", [table, numbers], ids=lambda shape: shape.__name__)
def test_a_table_of_2000_rows_is_read_as_one(shape):
    text = "\n".join(islice(shape(random.Random(7)), 2001))
    found = read_markdown_page(text.encode())
    assert len(found.blocks) == 2002
