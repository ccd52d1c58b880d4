"""Reads pages that are neither HTML nor Markdown: plain text and Jupyter notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import orjson

from linkstore.extract.blocks import Block
from linkstore.extract.protocol import Hyperlink
from linkstore.ingest.html.pages import PageContent, UnreadablePageError, decode_page
from linkstore.ingest.notes.markdown import read_markdown_page

_BETWEEN_PARAGRAPHS: Final = re.compile(r"\n(?:[ \t]*\n)+")
_URL: Final = re.compile(r"https?://[^\s<>\"'`|{}\\^\[\]]{1,2048}")
_BEHIND_URL: Final = ".,;:!?)*_"
_UNDERLINE: Final = re.compile(r"\s*([=\-~*#^\"])\1{2,}\s*")
_LONGEST_TITLE: Final = 100
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LONGEST_OUTPUT: Final = 2000
"""Characters of an output that are read."""
_FENCE: Final = re.compile(r"^\s*(`{3,})", re.MULTILINE)


def read_text_page(content: bytes, *, encoding: str | None = None) -> PageContent:
    """Read a page of plain text: paragraphs between empty lines, and the URLs in them.

    A line of its own at the beginning is the title, as is one that is underlined.

    Args:
        content: The file.
        encoding: Of the file. None (default) takes UTF-8, else windows-1252.

    Raises:
        UnreadablePageError: If the page is binary, mostly not in its encoding, or without text.
    """
    found = decode_page(content, encoding)
    text = found.text.replace("\r\n", "\n").replace("\f", "\n\n").strip("\n")
    paragraphs = [one.strip("\n") for one in _BETWEEN_PARAGRAPHS.split(text) if one.strip()]
    if not paragraphs:
        raise UnreadablePageError("it has no text")
    title, underline = (*paragraphs[0].split("\n"), "")[:2]
    alone = len(paragraphs) > 1 and "\n" not in paragraphs[0]
    blocks = []
    if len(title) <= _LONGEST_TITLE and (alone or _UNDERLINE.fullmatch(underline)):
        title = title.strip()
        blocks.append(Block(text=title, level=1))
        paragraphs[0] = "" if alone else "\n".join(paragraphs[0].split("\n")[2:])
    else:
        title = ""
    blocks += [Block(text=one, links=tuple(_find_links(one))) for one in paragraphs if one.strip()]
    return PageContent(title=title, blocks=tuple(blocks), replaced=found.replaced, guessed=found.guessed)


def _find_links(text: str) -> Iterator[Hyperlink]:
    for found in _URL.finditer(text):
        url = found[0].rstrip(_BEHIND_URL)
        yield Hyperlink(href=url, label=url)


def read_notebook_page(content: bytes) -> PageContent:
    """Read a Jupyter notebook (nbformat 4): its text, its code, and the texts that its cells gave.

    Args:
        content: The file.

    Raises:
        UnreadablePageError: If it is not a notebook, or without text.
    """
    try:
        notebook: Any = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise UnreadablePageError(f"it is not a notebook: invalid JSON: {error}") from error
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise UnreadablePageError("it is not a notebook of nbformat 4: it has no cells")
    metadata = notebook.get("metadata")
    language = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = language.get("name") if isinstance(language, dict) else None
    parts = [part for cell in cells if (part := _write_cell(cell, name if isinstance(name, str) else ""))]
    page = read_markdown_page("\n\n".join(parts).encode(errors="replace"), encoding="utf-8")
    return replace(page, guessed=False)


def _write_cell(cell: Any, language: str) -> str:
    """Return a cell as Markdown, empty if it shows nothing."""
    source = cell.get("source") if isinstance(cell, dict) else None
    text = "".join(filter(lambda one: isinstance(one, str), source)) if isinstance(source, list) else source
    if not isinstance(text, str) or not text.strip():
        return ""
    if cell.get("cell_type") == "markdown":
        return text
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    code = f"{fence}{language if cell.get('cell_type') == 'code' else ''}\n{text}\n{fence}"
    outputs = cell.get("outputs")
    said = "\n".join(filter(None, map(_read_output, outputs if isinstance(outputs, list) else ())))
    return f"{code}\n\n```````\n{said}\n```````" if said else code


def _read_output(output: Any) -> str:
    """Return the text of an output, empty for pictures, errors and what is written another way too."""
    if not isinstance(output, dict):
        return ""
    data = output.get("data")
    found = output.get("text") if output.get("output_type") == "stream" else None
    if isinstance(data, dict) and not any(kind.startswith("image/") for kind in data):
        found = data.get("text/plain")
    text = "".join(filter(lambda one: isinstance(one, str), found)) if isinstance(found, list) else found
    text = _COLOURS.sub("", text).strip("\n") if isinstance(text, str) else ""
    return text if len(text) <= _LONGEST_OUTPUT else f"{text[:_LONGEST_OUTPUT]}…"
