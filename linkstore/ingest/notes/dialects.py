"""Turns dialects of Markdown into what a parser of CommonMark reads.

Tabs and admonitions of MkDocs, whose content is indented, and the boxes between lines of ``:::`` of
Docusaurus and VitePress become ordinary paragraphs below their titles; components of JSX become links and
text; imports and exports of MDX are removed, where they begin a block at the first column, outside of code;
shortcodes of Hugo that name a page become links. There is no parser of JavaScript here: what does not look
like such a statement is text, for people do begin sentences with these words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby
from textwrap import dedent
from typing import Final

_MAY_BEGIN: Final = re.compile(r"^(?:import|export) ", re.MULTILINE)
_WORD: Final = r"[\w$]+"
_NAMES: Final = r"\{[^{}]{0,5000}\}"
_IMPORT: Final = re.compile(
    rf"import (?:\s*(?:type\s+)?(?:{_WORD}\s*,\s*)?(?:{_NAMES}|\*\s*as\s+{_WORD}|{_WORD})\s*from\s*)?"
    rf"\s*(?:'[^'\n]*'|\"[^\"\n]*\")(?:\s*(?:with|assert)\s*{_NAMES})?[ \t]*;?[ \t]*"
    r"(?://[^\n]*|/\*[^\n]*\*/[ \t]*)?"
    r"\r?(?:\n|\Z)"
)
_EXPORT: Final = re.compile(
    rf"export (?:\s*(?:const|let|var)\s+(?:{_WORD}\s*[=:;]|[\[{{])"
    rf"|\s*(?:default\s+)?(?:async\s+)?function\b\s*\*?\s*(?:{_WORD}\s*)?[(<]"
    r"|\s*(?:default\s+)?(?:abstract\s+)?class\b[^\n;.]*\{"
    rf"|\s*(?:type|interface|enum)\s+{_WORD}[^\n;.]*[={{]"
    rf"|\s*(?:type\s*)?{_NAMES}\s*(?:from\b|;|\r?\n|\Z)|\s*\*\s*(?:as\s+{_WORD}\s*)?from\s*['\"]"
    rf"|\s*default\s+(?:[\[({{<'\"`]|(?:async\s*)?(?:\([^()\n]*\)|{_WORD})\s*=>|[\w$.]+\s*(?:[(;]|\r?\n|\Z)))"
)
_TOKENS: Final = re.compile(
    r"//[^\n]*|/\*(?:.*?\*/|.*)|`(?:[^`\\]|\\.)*+`?|'(?:[^'\\\n]|\\.)*+'?|\"(?:[^\"\\\n]|\\.)*+\"?"
    r"|[(\[{]|[)\]}]|\n",
    re.DOTALL,
)
_GOES_ON: Final = re.compile(r"[=,({\[+\-*/%&|?:.<>]\Z|\b(?:extends|from)\Z")
_CONTINUES: Final = re.compile(r"[ \t.?:+|&)\]},=]|</")
_BLANK: Final = re.compile(r"[ \t\r]*(?:\n|\Z)")
_OPENING: Final = re.compile(
    r"""(?P<indent>[ ]*)(?:={3}[!+]{0,2}[ ]+"(?P<tab>[^"\n]{1,200})"|"""
    r"""(?:!{3}|\?{3}\+?)[ ]+(?P<kind>[\w-]{1,40})(?:[ ][\w -]{1,100})?"""
    r"""(?:[ ]+"(?P<title>[^"\n]{0,200})")?)[ ]*"""
)
_BOX: Final = re.compile(
    r"(?P<lead>[ >]*):{3,}[ ]*(?P<kind>[A-Za-z][\w-]{0,40})"
    r"(?:\[(?P<label>.{0,200})\]|[ ]+(?P<title>[^{}\n]{1,200}))?(?:[ ]*\{[^{}\n]{0,200}\})?[ ]*"
)
_BOX_END: Final = re.compile(r"[ >]*:{3,}[ ]*")
_STEP: Final = 4
_FENCE: Final = re.compile(r"[ >]*(`{3,}+|~{3,}+)(.*)")
_USED: Final = re.compile(r"</[A-Z]{1,30}[a-z]\w{0,60}>|<[A-Z]{1,30}[a-z]\w{0,60}\s[^<>]{0,1000}/>")
_NAME: Final = r"[A-Z][A-Za-z0-9_]{0,60}(?:\.[A-Z]\w{0,60})?"
_VALUE: Final = r"""(?:"[^"]{0,2000}"|'[^']{0,2000}'|\{[^{}\n]{0,500}\})"""
_TAG: Final = re.compile(
    rf"(?P<code>`[^`\n]{{1,1000}}`)|(?P<lead>^[ \t]*)?<(?P<close>/)?(?P<name>{_NAME})"
    rf"(?P<attributes>(?:\s+[A-Za-z_][\w:.-]{{0,60}}(?:={_VALUE})?){{0,40}})\s*(?P<empty>/)?>"
    r"(?P<end>[ \t]*$)?",
    re.MULTILINE,
)
_ATTRIBUTE: Final = re.compile(rf"([A-Za-z_][\w:.-]{{0,60}})=({_VALUE})")
_EXPRESSION: Final = re.compile(r"""(?<=\shref=)\{\s*(["'`])([^"'`{}<>\n]{0,2000})\1\s*\}""")
_SHORTCODE: Final = re.compile(r"\{\{[<%]\s*(?:rel)?ref\s+\"?([^\"\s<>%]{1,500})\"?\s*[>%]\}\}")


class FenceReader:
    """Tells which lines of a text, given in order, are of fenced code.

    Attributes:
        fence: What closes the code that the last line is in; empty outside of code.
    """

    def __init__(self) -> None:
        self.fence = ""

    def is_fenced(self, line: str) -> bool:
        """Say whether the next line is of fenced code."""
        match = _FENCE.match(line)
        if not self.fence:
            self.fence = match[1] if match else ""
            return match is not None
        if match is not None and match[1].startswith(self.fence) and not match[2].strip():
            self.fence = ""
        return True


def read_dialects(text: str, *, mdx: bool = False) -> str:
    """Return Markdown as CommonMark, whichever of the dialects is in it.

    Args:
        text: Markdown without front matter.
        mdx: Whether it is MDX. Components may also be in other Markdown.
    """
    text = _SHORTCODE.sub(r"\1", text) if "{{" in text else text
    text = remove_esm(text) if mdx else text
    text = unindent_tabs(open_boxes(text))
    return replace_components(text) if mdx or _USED.search(text) else text


def remove_esm(text: str) -> str:
    """Remove the imports and exports of MDX."""
    if _MAY_BEGIN.search(text) is None:
        return text
    kept: list[str] = []
    is_fenced = FenceReader().is_fenced
    begins, done, at = True, 0, 0
    sure = True
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        line = text[at:end]
        fenced = is_fenced(line)
        stop = at
        if begins and not fenced and line.startswith(("import ", "export ")):
            stop, sure = _find_statement_end(text, at, sure=sure)
        if stop > at:
            kept.append(text[done:at])
            done = at = stop
        else:
            begins, at = not line.strip() or line.startswith("#"), end
    return "".join((*kept, text[done:]))


def _find_statement_end(text: str, start: int, *, sure: bool) -> tuple[int, bool]:
    """Return the position behind the statement at a place, the place itself if there is none.

    An export ends with the line in which it is complete, else with its block. Once one was never complete,
    none is looked for beyond a blank line.
    """
    match = _IMPORT.match(text, start)
    if match is not None or _EXPORT.match(text, start) is None:
        return (match.end() if match else start), sure
    depth, line = 0, start
    block: int | None = None
    for token in _TOKENS.finditer(text, start):
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
        elif token[0] == "\n":
            statement, line = text[line : token.start()].rstrip(), token.end()
            ends = _BLANK.match(text, line) is not None
            if depth <= 0 and (ends or not (_GOES_ON.search(statement) or _CONTINUES.match(text, line))):
                return line, sure
            block = line if ends and block is None else block
            if ends and not sure:
                return line, sure
    return (len(text) if depth <= 0 or block is None else block), depth <= 0


def open_boxes(text: str) -> str:
    """Put the content between ``:::tip`` and ``:::`` below its title.

    An opening that is not closed stays.
    """
    if ":::" not in text:
        return text
    lines = text.split("\n")
    is_fenced = FenceReader().is_fenced
    opened: list[tuple[int, str, str]] = []
    for at, line in enumerate(lines):
        if is_fenced(line) or ":::" not in line:
            continue
        if opened and _BOX_END.fullmatch(line):
            start, lead, title = opened.pop()
            lines[start], lines[at] = f"{lead}\n{lead}{title.strip()}\n{lead}", lead
        elif box := _BOX.fullmatch(line):
            opened.append((at, box["lead"], box["label"] or box["title"] or box["kind"].capitalize()))
    return "\n".join(lines)


def unindent_tabs(text: str) -> str:
    """Put the content of ``=== "Tab"`` and ``!!! note`` below its title, no longer indented.

    Without this, CommonMark takes the content for code, in which there are no links.
    """
    if not any(sign in text for sign in ("=== ", "!!! ", "??? ", "???+ ", "===+ ")):
        return text
    return "\n".join(_unindent_lines(text.expandtabs(_STEP).split("\n")))


def _unindent_lines(lines: list[str]) -> Iterator[str]:
    opened: list[int] = []
    reader = FenceReader()
    for at, line in enumerate(lines):
        if not line.strip():
            yield line
            continue
        indent = len(line) - len(line.lstrip(" "))
        while opened and indent < opened[-1] + _STEP:
            opened.pop()
            if reader.fence:
                yield reader.fence
                reader.fence = ""
        inner = line[_STEP * len(opened) :]
        heading = None if reader.is_fenced(inner) else _OPENING.fullmatch(line)
        if heading and _has_content_below(lines, at, indent):
            opened.append(indent)
            lead = " " * (indent - _STEP * (len(opened) - 1))
            title = heading["tab"] or heading["title"] or (heading["kind"] or "").capitalize()
            yield from ("", f"{lead}{title}", "")
        else:
            yield inner


def _has_content_below(lines: list[str], at: int, indent: int) -> bool:
    """Say whether what follows a line, but for a blank line, is indented below it."""
    after = next((line for line in lines[at + 1 : at + 3] if line.strip()), "")
    return len(after) - len(after.lstrip(" ")) >= indent + _STEP


def replace_components(text: str) -> str:
    """Turn the components that lead somewhere into links, and keep only the text of others, not indented.

    Fenced code and text between back-ticks stay.
    """
    is_fenced = FenceReader().is_fenced
    open_links: list[str] = []
    pieces = []
    for fenced, lines in groupby(text.splitlines(keepends=True), key=is_fenced):
        part = "".join(lines)
        if not fenced:
            part = _EXPRESSION.sub(lambda match: f'"{escape(match[2])}"', part)
            part = _TAG.sub(lambda match: _replace_tag(match, open_links), part)
            part = "\n\n".join(map(dedent, part.split("\n\n")))
        pieces.append(part)
    return "".join(pieces)


def _replace_tag(found: re.Match[str], open_links: list[str]) -> str:
    name = found["name"]
    if found["code"] or name.isupper():  # <B> is HTML
        return found[0]
    alone = found["lead"] is not None and found["end"] is not None
    if found["close"]:
        if open_links and open_links[-1] == name:
            open_links.pop()
            return "</a>"
        return "\n\n" if alone else ""
    values = {key: _read_literal(value) for key, value in _ATTRIBUTE.findall(found["attributes"])}
    target = next(filter(None, map(values.get, ("href", "to"))), None)
    title = next(filter(None, map(values.get, ("title", "label", "name"))), None) or ""
    if target is None:
        label = escape(title)
    elif found["empty"] or title:
        label = f'<a href="{escape(target)}">{escape(title)}</a>'
    else:
        open_links.append(name)
        return f'<a href="{escape(target)}">'
    return f"\n\n{label}\n\n" if alone else label


def _read_literal(value: str) -> str | None:
    """Return the text of an attribute, or None for an expression that is more than one."""
    if value[0] == "{":
        value = value[1:-1].strip()
        if len(value) < 2 or value[0] not in "\"'`" or value[-1] != value[0] or "${" in value:
            return None
    return value[1:-1]
