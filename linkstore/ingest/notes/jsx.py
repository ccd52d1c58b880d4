"""Components of JSX in Markdown (MDX), as links and text."""

from __future__ import annotations

import re
from html import escape
from typing import Final

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


def uses_jsx(text: str) -> bool:
    """Say whether Markdown has components in it, by their tags."""
    return _USED.search(text) is not None


def without_jsx(text: str) -> str:
    """Turn the components that lead somewhere into links of Markdown, and keep only the text of others.

    Fenced code and text between back-ticks stay.
    """
    parts: list[str] = []
    outside: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        if fence:
            parts.append(line)
            if found is not None and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found is not None:
            fence = found[1]
            parts += (_replaced("".join(outside)), line)
            outside.clear()
        else:
            outside.append(line)
    return "".join((*parts, _replaced("".join(outside))))


def _replaced(text: str) -> str:
    text = _EXPRESSION.sub(lambda found: f'"{escape(found[2])}"', text)
    open_links: list[str] = []
    return _TAG.sub(lambda found: _tag(found, open_links), text)


def _tag(found: re.Match[str], open_links: list[str]) -> str:
    name = found["name"]
    if found["code"] or name.isupper():  # <B> is HTML
        return found[0]
    alone = _is_alone(found)
    if found["close"]:
        if open_links and open_links[-1] == name:
            open_links.pop()
            return "</a>"
        return "\n\n" if alone else ""
    values = {key: _literal(value) for key, value in _ATTRIBUTE.findall(found["attributes"])}
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


def _is_alone(found: re.Match[str]) -> bool:
    """Say whether nothing else stands on the lines of a tag."""
    text = found.string
    before = text[max(0, found.start() - 80) : found.start()].rpartition("\n")[2]
    after = text[found.end() : found.end() + 80].partition("\n")[0]
    return not before.strip() and not after.strip()


def _literal(value: str) -> str | None:
    """Return the text of an attribute, or None for an expression that is more than one."""
    if value[0] == "{":
        value = value[1:-1].strip()
        if len(value) < 2 or value[0] not in "\"'`" or value[-1] != value[0] or "${" in value:
            return None
    return value[1:-1]
