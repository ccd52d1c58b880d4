"""Reads pages that are neither HTML nor Markdown: plain text, Jupyter notebooks and reStructuredText.

reStructuredText is read by way of the HTML that docutils writes (extra ``rst``). What Sphinx adds to it is
read for its text: a directive that docutils does not know becomes a term with what is in it, a role a literal
text; ``:doc:`` and ``toctree`` become links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, Final

import orjson

from linkstore.errors import MissingExtraError
from linkstore.extract.blocks import Block
from linkstore.extract.protocol import Hyperlink
from linkstore.ingest.html.pages import PageContent, decode_page, parse_page, read_page_content
from linkstore.ingest.notes.markdown import read_markdown_page
from linkstore.ingest.source import EmptyPageError, UnreadablePageError

_BETWEEN_PARAGRAPHS: Final = re.compile(r"\n(?:[ \t]*\n)+")
_URL: Final = re.compile(r"https?://[^\s<>\"'`|{}\\^\[\]]{1,2048}")
_BEHIND_URL: Final = ".,;:!?)*_"
_UNDERLINE: Final = re.compile(r"\s*([=\-~*#^\"])\1{2,}\s*")
_LONGEST_TITLE: Final = 100
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LONGEST_OUTPUT: Final = 2000
"""Characters of an output that are read."""
_FENCE: Final = re.compile(r"^\s*(`{3,})", re.MULTILINE)
_ROLE: Final = re.compile(
    r":([a-z][\w:+.-]{0,60}):`([^`<\n]{0,500}(?:\n[^`<\n]{1,500})?)(?:<([^`<>\n]{1,500})>)?`"
)
_ROLE_NAMES: Final = (
    "emphasis strong literal math subscript sub superscript sup title-reference title code pep rfc"
)
_KNOWN_ROLES: Final = frozenset(_ROLE_NAMES.split())
_DIRECTIVE: Final = re.compile(r"([ \t]*)\.\. ([A-Za-z][\w:+.-]{0,60})::[ \t]*(.{0,2000})")
_OPTION: Final = re.compile(r"[ \t]+:[\w -]{1,60}:.*")
_ENTRY: Final = re.compile(r"[ \t]+(?:(\S.*?)\s*<(\S+)>|(\S+))\s*")
_SAID: Final = frozenset({"versionadded", "versionchanged", "deprecated"})
_SETTINGS: Final = {
    "_disable_config": True,
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 6,
    "syntax_highlight": "none",
    "math_output": "LaTeX",
    "embed_stylesheet": False,
    "doctitle_xform": False,
    "initial_header_level": 1,
    "line_length_limit": 100_000,
}
"""No page reads other files, or ends a run."""


def read_text_page(content: bytes, *, encoding: str | None = None) -> PageContent:
    """Read a page of plain text: paragraphs between empty lines, and the URLs in them.

    A line of its own at the beginning is the title, as is one that is underlined.

    Args:
        content: The file.
        encoding: Of the file. None (default) takes UTF-8, else windows-1252.

    Raises:
        UnreadablePageError: If the page is binary, mostly not in its encoding, or without text.
    """
    decoded = decode_page(content, encoding)
    text = decoded.text.replace("\r\n", "\n").replace("\f", "\n\n").strip("\n")
    paragraphs = [paragraph.strip("\n") for paragraph in _BETWEEN_PARAGRAPHS.split(text) if paragraph.strip()]
    if not paragraphs:
        raise EmptyPageError("it has no text")
    title, underline = (*paragraphs[0].split("\n"), "")[:2]
    alone = len(paragraphs) > 1 and "\n" not in paragraphs[0]
    blocks = []
    if len(title) <= _LONGEST_TITLE and (alone or _UNDERLINE.fullmatch(underline)):
        title = title.strip()
        blocks.append(Block(text=title, level=1))
        paragraphs[0] = "" if alone else "\n".join(paragraphs[0].split("\n")[2:])
    else:
        title = ""
    blocks += [
        Block(text=paragraph, links=tuple(_find_links(paragraph)))
        for paragraph in paragraphs
        if paragraph.strip()
    ]
    return PageContent(title=title, blocks=tuple(blocks), replaced=decoded.replaced, guessed=decoded.guessed)


def _find_links(text: str) -> Iterator[Hyperlink]:
    for match in _URL.finditer(text):
        url = match[0].rstrip(_BEHIND_URL)
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
    text = _join_lines(cell.get("source")) if isinstance(cell, dict) else ""
    if not text.strip():
        return ""
    if cell.get("cell_type") == "markdown":
        return text
    longest = max((len(ticks) for ticks in _FENCE.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    code = f"{fence}{language if cell.get('cell_type') == 'code' else ''}\n{text}\n{fence}"
    outputs = cell.get("outputs")
    output = "\n".join(filter(None, map(_read_output, outputs if isinstance(outputs, list) else ())))
    return f"{code}\n\n```````\n{output}\n```````" if output else code


def _join_lines(text: Any) -> str:
    """Return a text of a notebook, which may be a list of its lines; empty if it is neither."""
    lines = text if isinstance(text, list) else [text]
    return "".join(line for line in lines if isinstance(line, str))


def _read_output(output: Any) -> str:
    """Return the text of an output, empty for pictures, errors and what is written another way too."""
    if not isinstance(output, dict):
        return ""
    data = output.get("data")
    content = output.get("text") if output.get("output_type") == "stream" else None
    if isinstance(data, dict) and not any(kind.startswith("image/") for kind in data):
        content = data.get("text/plain")
    text = _COLOURS.sub("", _join_lines(content)).strip("\n")
    return text if len(text) <= _LONGEST_OUTPUT else f"{text[:_LONGEST_OUTPUT]}…"


def read_rst_page(content: bytes, *, encoding: str | None = None) -> PageContent:
    """Read a page of reStructuredText.

    Args:
        content: The file.
        encoding: Of the file. None (default) takes UTF-8, else windows-1252.

    Raises:
        UnreadablePageError: If the page is binary, mostly not in its encoding, or without text.
        MissingExtraError: If the extra ``rst`` is not installed.
    """
    try:
        from docutils.core import publish_parts
    except ImportError as error:
        raise MissingExtraError("reading reStructuredText", "rst") from error
    decoded = decode_page(content, encoding)
    text = "\n".join(_read_sphinx(_ROLE.sub(_write_role, decoded.text.expandtabs()).split("\n")))
    try:
        html = publish_parts(text, writer="html5", settings_overrides=_SETTINGS)["whole"]
    except Exception as error:
        raise UnreadablePageError(f"docutils cannot read it: {type(error).__name__}: {error}") from error
    page = read_page_content(parse_page(str(html)))
    return replace(page, replaced=decoded.replaced, guessed=decoded.guessed)


def _write_role(found: re.Match[str]) -> str:
    """Write a role of Sphinx as a link or as a literal text."""
    role, text, target = found[1], " ".join((found[2] or "").split()), found[3]
    if role in _KNOWN_ROLES:
        return found[0]
    if role.endswith("doc"):
        page = target or text
        return f"`{text or page} <{page}.rst>`__"
    shown = text or (target or "")
    return f"``{shown.lstrip('~!')}``" if shown.strip("~! ") else found[0]


@cache
def _is_known(name: str) -> bool:
    from docutils.parsers.rst.languages import en

    return name.lower() in en.directives


def _read_sphinx(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a page, with what docutils does not know as terms and links."""
    at = 0
    while at < len(lines):
        match = _DIRECTIVE.fullmatch(lines[at])
        at += 1
        if match is None or _is_known(match[2]):
            yield lines[at - 1]
            continue
        while at < len(lines) and _OPTION.fullmatch(lines[at]):
            at += 1
        if match[2] == "toctree":
            yield ""
            while at < len(lines) and (not lines[at].strip() or lines[at][: len(match[1]) + 1].isspace()):
                entry = _ENTRY.fullmatch(lines[at])
                if entry is not None:
                    page = entry[2] or entry[3]
                    yield f"{match[1]}- `{entry[1] or page} <{page}.rst>`__"
                at += 1
            yield ""
        elif match[3].strip():
            label = f"{match[2]} " if match[2] in _SAID else ""
            yield f"{match[1]}{label}{match[3].strip()}"  # a term, for what is below it is indented
            at += at < len(lines) and not lines[at].strip()
        else:
            yield f"{match[1]}.. container:: {match[2].replace(':', '-')}"
