"""A dump of a wiki as it is, repeated with changed names: real text of any length."""

from __future__ import annotations

import bz2
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

PAGE: Final = re.compile(r"  <page>.*?</page>\n", re.DOTALL)
TITLE: Final = re.compile(r"<title>(.*?)</title>")
NAMED: Final = re.compile(
    r'(<title>|<redirect title=")([^<"]*)|(\[\[)([^\[\]|#<>\n]*)|\{\{[^{}|]*|<[^>]*>|([A-Z][a-z]{3,})'
)
"""A title; the target of a link; what keeps its words, as a template; a word in upper case."""


def write_copies(dump: Path, target: Path, copies: int) -> int:
    """Write a dump with so many copies of the pages of another, and return the number of pages.

    A copy numbers its pages' titles, and the targets of the links between them. Its words in upper case are
    exchanged for others of the dump, each for one and the same, so that no two copies have equal texts.
    Links to pages that the dump has not, and categories, stay as they are: they grow as in a large wiki.
    """
    content = bz2.decompress(dump.read_bytes()).decode()
    pages = PAGE.findall(content)
    titles = {title for page in pages for title in TITLE.findall(page)}
    names = sorted({found[4] for page in pages for found in NAMED.findall(page) if found[4]})
    with target.open("w", encoding="utf-8") as file:
        file.write(content[: content.index(pages[0])])
        for number in range(copies):
            rename = _renaming(number, titles, names)
            file.writelines(NAMED.sub(rename, page) for page in pages)
        file.write("</mediawiki>\n")
    return len(pages) * copies


def _renaming(number: int, titles: set[str], names: list[str]) -> Callable[[re.Match[str]], str]:
    position = {name: index for index, name in enumerate(names)}

    def rename(match: re.Match[str]) -> str:
        before, title, bracket, target, word = match.groups()
        if word:
            return names[(position[word] + number * 7919) % len(names)]
        if before:
            return f"{before}{title} {number}"
        if bracket and (target[:1].upper() + target[1:]).replace("_", " ").strip() in titles:
            return f"[[{target} {number}"
        return match.group()

    return rename
