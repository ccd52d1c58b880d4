"""Reads pages of reStructuredText, by way of the HTML that docutils writes (extra ``rst``).

What Sphinx adds to it is read for its text: a directive that docutils does not know becomes a term with what
is in it, a role a literal text. ``:doc:``, ``:ref:`` to a page and ``toctree`` become links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from linkstore.errors import MissingExtraError
from linkstore.ingest.html.pages import (
    PageContent,
    UnreadablePageError,
    decode_page,
    parse_page,
    read_page_content,
)

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
    found = decode_page(content, encoding)
    text = "\n".join(_read_sphinx(_ROLE.sub(_write_role, found.text.expandtabs()).split("\n")))
    try:
        html = publish_parts(text, writer="html5", settings_overrides=_SETTINGS)["whole"]
    except Exception as error:
        raise UnreadablePageError(f"docutils cannot read it: {type(error).__name__}: {error}") from error
    page = read_page_content(parse_page(html))
    return replace(page, replaced=found.replaced, guessed=found.guessed)


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
        found = _DIRECTIVE.fullmatch(lines[at])
        at += 1
        if found is None or _is_known(found[2]):
            yield lines[at - 1]
            continue
        while at < len(lines) and _OPTION.fullmatch(lines[at]):
            at += 1
        if found[2] == "toctree":
            yield ""
            while at < len(lines) and (not lines[at].strip() or lines[at][: len(found[1]) + 1].isspace()):
                entry = _ENTRY.fullmatch(lines[at])
                if entry is not None:
                    page = entry[2] or entry[3]
                    yield f"{found[1]}- `{entry[1] or page} <{page}.rst>`__"
                at += 1
            yield ""
        elif found[3].strip():
            said = f"{found[2]} " if found[2] in _SAID else ""
            yield f"{found[1]}{said}{found[3].strip()}"  # a term, for what is below it is indented
            at += at < len(lines) and not lines[at].strip()
        else:
            yield f"{found[1]}.. container:: {found[2].replace(':', '-')}"
