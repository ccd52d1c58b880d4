"""Turns dialects of Markdown into what a parser of CommonMark reads.

Tabs and admonitions of MkDocs, whose content is indented, become ordinary paragraphs; components of JSX
become links and text; imports and exports of MDX are removed. MDX reads ``import`` and ``export`` as
JavaScript where they begin a block at the first column, outside of lists, quotations and code, up to a
blank line at which the statement is complete (as micromark's extension ``mdxjs-esm`` does). There is no
parser of JavaScript here: what does not look like such a statement is text, for people do begin sentences
with these words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape
from itertools import groupby, islice
from typing import Final

from pyromark import Markdown

_MAY_BEGIN: Final = re.compile(rb"^(?:import|export) ", re.MULTILINE)
_STATEMENT_NAME: Final = rb"[\w$\x80-\xff]+"
_NAMES: Final = rb"\{[^{}]{0,5000}\}"
_IMPORT: Final = re.compile(
    rb"import (?:\s*(?:type\s+)?(?:%(name)b\s*,\s*)?(?:%(names)b|\*\s*as\s+%(name)b|%(name)b)\s*from\s*)?"
    rb"\s*(?:'[^'\n]*'|\"[^\"\n]*\")"
    rb"(?:\s*(?:with|assert)\s*%(names)b)?[ \t]*;?[ \t]*(?://[^\n]*|/\*[^\n]*\*/[ \t]*)?\r?(?:\n|\Z)"
    % {b"name": _STATEMENT_NAME, b"names": _NAMES}
)
_EXPORT: Final = re.compile(
    rb"export (?:"
    rb"\s*(?:const|let|var)\s+(?:%(name)b\s*[=:;]|[\[{])"
    rb"|\s*(?:default\s+)?(?:async\s+)?function\b\s*\*?\s*(?:%(name)b\s*)?[(<]"
    rb"|\s*(?:default\s+)?(?:abstract\s+)?class\b[^\n;.]*\{"
    rb"|\s*(?:type|interface|enum)\s+%(name)b[^\n;.]*[={]"
    rb"|\s*(?:type\s*)?%(names)b\s*(?:from\b|;|\r?\n|\Z)"
    rb"|\s*\*\s*(?:as\s+%(name)b\s*)?from\s*['\"]"
    rb"|\s*default\s+(?:[\[({<'\"`]|(?:async\s*)?(?:\([^()\n]*\)|%(name)b)\s*=>|[\w$.]+\s*(?:[(;]|\r?\n|\Z))"
    rb")" % {b"name": _STATEMENT_NAME, b"names": _NAMES}
)
_TOKENS: Final = re.compile(
    rb"//[^\n]*|/\*(?:.*?\*/|.*)|`(?:[^`\\]|\\.)*+`?|'(?:[^'\\\n]|\\.)*+'?|\"(?:[^\"\\\n]|\\.)*+\"?"
    rb"|[(\[{]|[)\]}]|\n",
    re.DOTALL,
)
_GOES_ON: Final = re.compile(rb"[=,({\[+\-*/%&|?:.<>]\Z|\b(?:extends|from)\Z")
_CONTINUES: Final = re.compile(rb"[ \t.?:+|&)\]},=]|</")
_BLANK: Final = re.compile(rb"[ \t\r]*(?:\n|\Z)")
_FREE_EVENTS: Final = 120_000
_CHARACTERS_PER_EVENT: Final = 2
"""Events of a page that are looked at: _FREE, and 1 for every _EACH characters. Rendering ends earlier."""
_CONTAINERS: Final = frozenset({"List", "Item", "BlockQuote", "FootnoteDefinition", "CodeBlock", "HtmlBlock"})
_OPENING: Final = re.compile(
    r"""(?P<indent>[ ]*)(?:={3}[!+]{0,2}[ ]+"(?P<tab>[^"\n]{1,200})"|"""
    r"""(?:!{3}|\?{3}\+?)[ ]+(?P<kind>[\w-]{1,40})(?:[ ][\w -]{1,100})?(?:[ ]+"(?P<title>[^"\n]{0,200})")?)[ ]*"""  # noqa: E501
)
_INDENTED_FENCE: Final = re.compile(r" *(`{3,}|~{3,})")
_STEP: Final = 4
_FENCE: Final = re.compile(r" *(`{3,}+|~{3,}+)(.*)")
_USED: Final = re.compile(r"</[A-Z]{1,30}[a-z]\w{0,60}>|<[A-Z]{1,30}[a-z]\w{0,60}\s[^<>]{0,1000}/>")
_NAME: Final = r"[A-Z][A-Za-z0-9_]{0,60}(?:\.[A-Z]\w{0,60})?"
_VALUE: Final = r"""(?:"[^"]{0,2000}"|'[^']{0,2000}'|\{[^{}\n]{0,500}\})"""
_TAG: Final = re.compile(
    rf"(?P<code>`[^`\n]{{1,1000}}`)|<(?P<close>/)?(?P<name>{_NAME})"
    rf"(?P<attributes>(?:\s+[A-Za-z_][\w:.-]{{0,60}}(?:={_VALUE})?){{0,40}})\s*(?P<empty>/)?>"
)
_ATTRIBUTE: Final = re.compile(rf"([A-Za-z_][\w:.-]{{0,60}})=({_VALUE})")
_EXPRESSION: Final = re.compile(r"""(?<=\shref=)\{\s*(["'`])([^"'`{}<>\n]{0,2000})\1\s*\}""")
_TARGETS: Final = ("href", "to")
_TITLES: Final = ("title", "label", "name")


def remove_esm(text: str, parser: Markdown) -> str:
    """Remove the imports and exports of MDX.

    Args:
        text: MDX without front matter.
        parser: Of the rest of it.
    """
    source = text.encode()
    if _MAY_BEGIN.search(source) is None:
        return text
    reader = _StatementReader(source)
    kept: list[bytes] = []
    done = 0
    for start in _find_paragraph_starts(text, parser):
        end = reader.end(start) if start >= done else start
        if end > start:
            kept.append(source[done:start])
            done = end
    return b"".join((*kept, source[done:])).decode()


def _find_paragraph_starts(text: str, parser: Markdown) -> list[int]:
    """Return where the paragraphs of a page begin that are in nothing else, in bytes."""
    found: list[int] = []
    depth = 0
    for event, place in islice(
        parser.events_with_range(text), _FREE_EVENTS + len(text) // _CHARACTERS_PER_EVENT
    ):
        if not isinstance(event, dict):
            continue
        name, value = next(iter(event.items()))
        kind = value if isinstance(value, str) else next(iter(value), "") if isinstance(value, dict) else ""
        if name == "Start":
            if kind == "Paragraph" and not depth:
                found.append(place["start"])
            depth += kind in _CONTAINERS
        elif name == "End":
            depth -= kind in _CONTAINERS
    return found


class _StatementReader:
    """Finds where statements end."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._in_doubt = False
        """Whether a statement was never complete, so that none is looked for beyond a blank line."""

    def end(self, start: int) -> int:
        """Return the position behind the statements that begin at a place, the place itself if none does."""
        source = self._source
        if start and source[start - 1 : start] != b"\n":
            return start
        while True:
            found = _IMPORT.match(source, start)
            if found is None and _EXPORT.match(source, start) is None:
                return start
            start = found.end() if found else self._end_of_export(start)

    def _end_of_export(self, start: int) -> int:
        """Return the position behind the line in which an export is complete, else behind the block."""
        source, depth, line = self._source, 0, start
        block: int | None = None
        for found in _TOKENS.finditer(source, start):
            token = found[0]
            if token in b"([{":
                depth += 1
            elif token in b")]}":
                depth -= 1
            elif token == b"\n":
                said, line = source[line : found.start()].rstrip(), found.end()
                ends = _BLANK.match(source, line) is not None
                if depth <= 0 and (ends or not (_GOES_ON.search(said) or _CONTINUES.match(source, line))):
                    return line
                block = line if ends and block is None else block
                if ends and self._in_doubt:
                    return line
        if depth <= 0 or block is None:
            return len(source)
        self._in_doubt = True
        return block


def unindent_tabs(text: str) -> str:
    """Put the content of ``=== "Tab"`` and ``!!! note`` below its title, no longer indented.

    Without this, CommonMark takes the content for code, in which there are no links.
    """
    if "=== " not in text and "!!! " not in text and "??? " not in text and "???+ " not in text:
        return text
    return "\n".join(_unindent_lines(text.expandtabs(_STEP).split("\n")))


def _unindent_lines(lines: list[str]) -> Iterator[str]:
    opened: list[int] = []
    fence = ""
    for at, line in enumerate(lines):
        if not line.strip():
            yield line
            continue
        indent = len(line) - len(line.lstrip(" "))
        while opened and indent < opened[-1] + _STEP:
            opened.pop()
            if fence:
                yield fence
                fence = ""
        inner = line[_STEP * len(opened) :]
        found = _INDENTED_FENCE.match(inner)
        if fence:
            closes = found is not None and found[1].startswith(fence) and not inner.strip().strip(fence[0])
            fence = "" if closes else fence
        elif found is not None:
            fence = found[1]
        elif (heading := _OPENING.fullmatch(line)) and _has_content_below(lines, at, indent):
            opened.append(indent)
            lead = " " * (indent - _STEP * (len(opened) - 1))
            title = heading["tab"] or heading["title"] or (heading["kind"] or "").capitalize()
            yield from ("", f"{lead}{title}", "")
            continue
        yield inner


def _has_content_below(lines: list[str], at: int, indent: int) -> bool:
    """Say whether what follows a line, but for a blank line, is indented below it."""
    after = next((line for line in lines[at + 1 : at + 3] if line.strip()), "")
    return len(after) - len(after.lstrip(" ")) >= indent + _STEP


def make_fence_reader(opening: re.Pattern[str]) -> Callable[[str], bool]:
    """Make a function that is given the lines of a text in order, and says whether each is of fenced code.

    Args:
        opening: Finds what opens and closes fenced code, as groups its signs and what follows them.
    """
    fence = ""

    def is_fenced(line: str) -> bool:
        nonlocal fence
        found = opening.match(line)
        if not fence:
            fence = found[1] if found else ""
            return found is not None
        if found is not None and found[1].startswith(fence) and not found[2].strip():
            fence = ""
        return True

    return is_fenced


def has_jsx(text: str) -> bool:
    """Say whether Markdown has components in it, by their tags."""
    return _USED.search(text) is not None


def replace_jsx(text: str) -> str:
    """Turn the components that lead somewhere into links of Markdown, and keep only the text of others.

    Fenced code and text between back-ticks stay.
    """
    is_fenced = make_fence_reader(_FENCE)
    return "".join(
        "".join(lines) if fenced else _replace_components("".join(lines))
        for fenced, lines in groupby(text.splitlines(keepends=True), key=is_fenced)
    )


def _replace_components(text: str) -> str:
    text = _EXPRESSION.sub(lambda found: f'"{escape(found[2])}"', text)
    open_links: list[str] = []
    return _TAG.sub(lambda found: _replace_tag(found, open_links), text)


def _replace_tag(found: re.Match[str], open_links: list[str]) -> str:
    name = found["name"]
    if found["code"] or name.isupper():  # <B> is HTML
        return found[0]
    before = found.string[max(0, found.start() - 80) : found.start()].rpartition("\n")[2]
    after = found.string[found.end() : found.end() + 80].partition("\n")[0]
    alone = not before.strip() and not after.strip()
    if found["close"]:
        if open_links and open_links[-1] == name:
            open_links.pop()
            return "</a>"
        return "\n\n" if alone else ""
    values = {key: _read_literal(value) for key, value in _ATTRIBUTE.findall(found["attributes"])}
    target = next(filter(None, map(values.get, _TARGETS)), None)
    title = next(filter(None, map(values.get, _TITLES)), None) or ""
    if target is None:
        said = escape(title)
    elif found["empty"] or title:
        said = f'<a href="{escape(target)}">{escape(title)}</a>'
    else:
        open_links.append(name)
        return f'<a href="{escape(target)}">'
    return f"\n\n{said}\n\n" if alone else said


def _read_literal(value: str) -> str | None:
    """Return the text of an attribute, or None for an expression that is more than one."""
    if value[0] == "{":
        value = value[1:-1].strip()
        if len(value) < 2 or value[0] not in "\"'`" or value[-1] != value[0] or "${" in value:
            return None
    return value[1:-1]
