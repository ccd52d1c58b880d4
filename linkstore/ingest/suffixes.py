"""Suffixes of the files that are pages, and hints for unread files."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Final

HTML_SUFFIXES: Final = frozenset({".html", ".htm", ".xhtml", ".xht", ".shtml"})
_LANGUAGE_CODES: Final = """
    ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gl he hi hr hu hy id is it ja ka kk km ko
    lt lv mk mn ms my nb ne nl nn no pl pt ro ru si sk sl sq sr sv ta te th tr uk ur uz vi zh
"""
_LANGUAGES: Final = frozenset(_LANGUAGE_CODES.split())
"""Languages (ISO 639-1) that end the names of pages; none that is also the suffix of other files (``br``)."""
_LONGEST_REGION: Final = 4
"""Letters of a region or script after a language, as in ``zh-hant``."""
GZIP_SUFFIX: Final = ".gz"
MARKDOWN_SUFFIXES: Final = frozenset({".md", ".markdown"})
NOTE_SUFFIXES: Final = MARKDOWN_SUFFIXES | {".mdx"}
TEXT_SUFFIX: Final = ".txt"
NOTEBOOK_SUFFIX: Final = ".ipynb"
RST_SUFFIX: Final = ".rst"
PDF_SUFFIX: Final = ".pdf"
_EXTRAS: Final = {RST_SUFFIX: ("docutils", "rst"), PDF_SUFFIX: ("pypdfium2", "pdf")}
"""The module that reads files with a suffix, and the extra that has it."""
_WITH_EXTRAS: Final = frozenset(suffix for suffix, (module, _) in _EXTRAS.items() if find_spec(module))
SITE_SUFFIXES: Final = HTML_SUFFIXES | MARKDOWN_SUFFIXES | {TEXT_SUFFIX, NOTEBOOK_SUFFIX} | _WITH_EXTRAS
"""The suffixes of files that are pages of a folder."""
READ_AS: Final = {".mdx": "vault", **dict.fromkeys(sorted(SITE_SUFFIXES - MARKDOWN_SUFFIXES), "folder")}
"""The kind of source that reads what another one leaves out, by suffix."""
_OTHER_SUFFIXES: Final = """
    .adoc .asciidoc .asp .aspx .canvas .creole .djvu .doc .docx .epub .fb2 .jsp .mediawiki .mht .mhtml
    .odt .org .pdf .php .pod .pptx .qmd .rdoc .rmd .rst .rtf .tex .textile .wiki
"""
DATA_SUFFIXES: Final = frozenset({".csv", ".json", ".jsonl", ".ndjson", ".ods", ".tsv", ".xls", ".xlsx"})
READ_DATA: Final = "data are not read; write each row as a line of JSON with id and text, and give the .jsonl"
"""What to do with tables and records."""
FOR_PEOPLE: Final = SITE_SUFFIXES | NOTE_SUFFIXES | frozenset(_OTHER_SUFFIXES.split()) | DATA_SUFFIXES
"""Files that are pages to a reader, whether or not they are read here."""
NOT_HTML: Final = NOTE_SUFFIXES | {TEXT_SUFFIX, NOTEBOOK_SUFFIX, RST_SUFFIX, PDF_SUFFIX}
_SUGGESTIONS: Final = {
    RST_SUFFIX: "reStructuredText is read with pip install 'langchain-linkstore[rst]'; or build it"
    " (sphinx-build -b html), and give the folder of HTML",
    PDF_SUFFIX: "PDF is read with pip install 'langchain-linkstore[pdf]'",
    **dict.fromkeys(DATA_SUFFIXES, READ_DATA),
    ".xml": "it is no dump of a wiki; if it is a sitemap, give its URL, or the folder of the pages",
    **dict.fromkeys((".epub", ".zip"), "unpack it, and give the folder"),
}


def get_suffix(name: str) -> str:
    """Return the suffix of a file's type, in lower case: ``.html`` of ``p.html.en.gz``."""
    start, suffix = posixpath.splitext(name.lower().removesuffix(GZIP_SUFFIX))
    language, _, region = suffix[1:].replace("_", "-").partition("-")
    before = posixpath.splitext(start)[1] if language in _LANGUAGES and len(region) <= _LONGEST_REGION else ""
    return before if before in HTML_SUFFIXES else suffix


def suggest_source(path: str | Path) -> str:
    """Suggest what to give instead of an unsuitable file, or return an empty string."""
    suffix = get_suffix(PurePath(path).name)
    if suffix in _SUGGESTIONS and suffix not in _WITH_EXTRAS:
        return _SUGGESTIONS[suffix]
    if suffix in SITE_SUFFIXES | NOTE_SUFFIXES:
        return "it is a single page; index it as one, or give its folder"
    if suffix in FOR_PEOPLE:
        return f"{suffix} is not read; convert it to HTML or Markdown, and give the folder"
    return ""


def describe_unread(unread: Mapping[str, int]) -> str:
    """Describe unread files by kind, such as ``12 .mdx``, with the options that read them."""
    counts = ", ".join(f"{count:,} {kind}" for kind, count in unread.items())
    ways: dict[str, list[str]] = {}
    for kind in unread:
        if kind in READ_AS:
            ways.setdefault(READ_AS[kind], []).append(kind)
    hints = [f"--as {way} reads {', '.join(kinds)}" for way, kinds in ways.items()]
    hints += [] if DATA_SUFFIXES.isdisjoint(unread) else [READ_DATA]
    hints += (
        f"pip install 'langchain-linkstore[{extra}]' reads {suffix}"
        for suffix, (_, extra) in _EXTRAS.items()
        if suffix in unread and suffix not in _WITH_EXTRAS
    )
    return "; ".join((counts, *hints))
