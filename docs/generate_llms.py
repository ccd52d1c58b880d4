"""Writes what language models read of the built site: ``llms.txt``, and each page as Markdown.

Run after the site is built: ``python docs/generate_llms.py site``. ``llms.txt`` lists the pages in the order
of the navigation, with the first sentence of each (https://llmstxt.org). The Markdown of ``x/index.html`` is
``x/index.html.md``, without the invisible marks of measured figures.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parent
_MARK = re.compile(r"<!--.*?-->", re.DOTALL)
_ANCHOR = re.compile(r" \{ #\S+ \}$", re.MULTILINE)
_MODULE = re.compile(r"^::: (\S+).*", re.MULTILINE | re.DOTALL)
_OURS = {"linkstore", "linkstore_extractors"}
_SENTENCE = re.compile(r"(.+?[.:])(?=\s|$)", re.DOTALL)
_LONGEST = 240


def main() -> None:
    """Write the files into the built site that the first argument names."""
    site = Path(sys.argv[1])
    for path in sorted(DOCS.rglob("*.md")):
        twin = site / f"{address_of(path)}index.html.md"
        twin.parent.mkdir(parents=True, exist_ok=True)
        twin.write_text(read_page(path), encoding="utf-8")
    (site / "llms.txt").write_text(render(), encoding="utf-8")


def render() -> str:
    """The text of ``llms.txt``."""
    navigation = yaml.safe_load((DOCS / ".nav.yml").read_text(encoding="utf-8"))["nav"]
    title, summary = describe(DOCS / "index.md")
    lines, listed = [f"# {title}", "", f"> {summary}"], {DOCS / "index.md"}
    for section, entries in group(navigation):
        pages = [path for entry in entries for path in find_pages(entry) if path not in listed]
        listed.update(pages)
        if pages:
            lines += ["", f"## {section}", "", *map(render_page, dict.fromkeys(pages))]
    return "\n".join(lines) + "\n"


def group(navigation: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """The sections of the navigation, with the pages before the first one as a section of their own."""
    yield "Start", [entry for entry in navigation if isinstance(entry, str)]
    for entry in navigation:
        if isinstance(entry, dict):
            yield from entry.items()


def find_pages(entry: Any) -> list[Path]:
    """The pages that an entry of the navigation names: a file, a pattern, or a folder under a title."""
    if isinstance(entry, dict):
        return [path for value in entry.values() for path in find_pages(value)]
    if isinstance(entry, list):
        return [path for one in entry for path in find_pages(one)]
    path = DOCS / entry
    if path.is_dir():
        return sorted(path.glob("*.md"))
    return [path] if path.is_file() else sorted(DOCS.glob(entry if entry.endswith(".md") else f"{entry}.md"))


def render_page(path: Path) -> str:
    """The line of a page."""
    title, summary = describe(path)
    link = f"- [{title}]({address_of(path)}index.html.md)"
    return f"{link}: {summary}" if summary else link


def describe(path: Path) -> tuple[str, str]:
    """The title of a page and its first sentence."""
    text = read_page(path)
    title = next((line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")), path.stem)
    paragraphs = (part.strip() for part in text.split("\n\n") if "|" not in part)
    first = next((part for part in paragraphs if re.match(r"(?!```)[A-Za-z`*\[]", part)), "")
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(first.split()))
    sentence = _SENTENCE.match(plain)
    summary = (sentence[1] if sentence else plain).rstrip(":")
    return title, summary if len(summary) <= _LONGEST else f"{summary[:_LONGEST].rsplit(' ', 1)[0]} …"


def read_page(path: Path) -> str:
    """The text of a page without invisible marks, and with the docstrings of a module that it documents."""
    text = _MARK.sub("", path.read_text(encoding="utf-8"))
    named = _MODULE.search(text)
    whole = text.replace(named[0], render_module(named[1])) if named else text
    return _ANCHOR.sub("", whole)


def render_module(name: str) -> str:
    """The docstrings of a module and of its public names, as Markdown."""
    module = import_module(name)
    parts = [inspect.getdoc(module) or ""]
    for public in getattr(module, "__all__", [one for one in vars(module) if not one.startswith("_")]):
        value = getattr(module, public)
        home = getattr(value, "__module__", "").partition(".")[0]
        if (inspect.isclass(value) or inspect.isfunction(value)) and home in _OURS:
            parts += [f"## {public}", inspect.getdoc(value) or ""]
    return "\n\n".join(parts)


def address_of(path: Path) -> str:
    """The address of a page below the site's root, which ends with a slash or is empty."""
    folder = path.parent if path.stem == "index" else path.with_suffix("")
    address = folder.relative_to(DOCS).as_posix()
    return "" if address == "." else f"{address}/"


if __name__ == "__main__":
    main()
