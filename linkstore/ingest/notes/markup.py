"""The Markdown of notes: wikilinks, embeds, block ids and tags, as rules of markdown-it.

A wikilink becomes an ordinary link, a block id the ``id`` of its element, and a tag a link of a scheme of
our own, by which it is told from links.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from linkstore.extraction import Hyperlink
from linkstore.ingest.files import quoted
from linkstore.ingest.notes.markdown import slug, to_html
from linkstore.ingest.notes.notes import Notes

TAG_SCHEME: Final = "x-linkstore-tag:"
"""Stands before the tag in the ``href`` of what was ``#tag``."""

_LONGEST_LINK: Final = 1000
_LONGEST_COMMENT: Final = 10_000
_CALLOUT: Final = re.compile(r"\[!([\w-]{1,40})\][+-]?[ \t]*")
_PROPERTY_LINK: Final = re.compile(r"\[\[([^\[\]\n]{1,1000})\]\]")
_TAG: Final = re.compile(r"#([\w/-]*[^\W\d_][\w/-]*)")
_BLOCK_ID: Final = re.compile(r"(?:^|[ \t\n])\^([A-Za-z0-9-]+)[ \t]*$")
_TARGETS: Final = re.compile(
    r"\[\[([^\]|#\n]{0,1000})|\]\(\s*<?([^)>#\s]{1,1000})|^ {0,3}\[[^\]\n]{1,999}\]:\s*([^#\s]{1,1000})",
    re.MULTILINE,
)
_MEDIA: Final = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".bmp", ".mp3", ".mp4", ".webm", ".wav")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_IMPORTS: Final = re.compile(r"^(?:import|export)\s[^\n]*(?:\n(?!\s*\n)[^\n]+)*$", re.MULTILINE)


def note_html(text: str, path: str, notes: Notes) -> str:
    """The body of a note as HTML.

    Args:
        text: Its Markdown, without front matter.
        path: Where the note lies, from the root of the vault.
        notes: Of the vault.
    """
    mdx = path.lower().endswith(".mdx")
    if mdx:
        text = _IMPORTS.sub("", text)
    return to_html(text, _parser(), {"path": path, "notes": notes, "mdx": mdx})


def property_links(value: object, path: str, notes: Notes) -> Iterator[Hyperlink]:
    """The wikilinks in the properties of a note, its front matter.

    Args:
        value: Plain JSON.
        path: Where the note lies, from the root of the vault.
        notes: Of the vault.
    """
    if isinstance(value, str):
        for found in _PROPERTY_LINK.finditer(value):
            target, _, label = found[1].partition("|")
            href = _href(target, {"path": path, "notes": notes})
            if href is not None:
                yield Hyperlink(href=href, label=label.strip() or _shown(target))
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from property_links(one, path, notes)
    elif isinstance(value, list):
        for one in value:
            yield from property_links(one, path, notes)


def targets(text: str) -> set[str]:
    """What may be a link in the Markdown of a note, code included: a cheap look, not a parse."""
    return {next(filter(None, found.groups()), "") for found in _TARGETS.finditer(text)}


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.inline.ruler.before("image", "embed", _embed)
    parser.inline.ruler.before("wikilink", "math", _math)
    parser.inline.ruler.before("wikilink", "callout", _callout)
    parser.inline.ruler.before("wikilink", "comment", _comment)
    parser.block.ruler.before(
        "fence", "comment", _comment_block, {"alt": ["paragraph", "blockquote", "list", "reference"]}
    )
    parser.inline.ruler.push("tag", _tag)
    parser.core.ruler.push("block_ids", _block_ids)
    parser.core.ruler.push("note_links", _note_links)
    return parser


def _math(state: StateInline, silent: bool) -> bool:
    """``$…$``, in which brackets are not links."""
    if state.src[state.pos] != "$":
        return False
    sign = "$$" if state.src.startswith("$$", state.pos) else "$"
    start = state.pos + len(sign)
    end = state.src.find(sign, start, min(state.posMax, start + _LONGEST_LINK))
    inside = state.src[start:end] if end > start else ""
    if not inside.strip() or (sign == "$" and inside != inside.strip()):
        return False
    if not silent:
        _push(state, None, f"{sign}{inside}{sign}")
    state.pos = end + len(sign)
    return True


def _callout(state: StateInline, silent: bool) -> bool:
    """``[!note]`` at the start of a quotation gives it its title, unless that follows."""
    found = _CALLOUT.match(state.src) if state.pos == 0 else None
    if found is None:
        return False
    if not silent and found.end() < len(state.src) and state.src[found.end()] == "\n":
        _push(state, None, found[1].capitalize())
    state.pos = found.end()
    return True


def _comment(state: StateInline, silent: bool) -> bool:  # noqa: ARG001 (rules are called so)
    """``%% what nobody is shown %%``."""
    if not state.src.startswith("%%", state.pos):
        return False
    end = state.src.find("%%", state.pos + 2, min(state.posMax, state.pos + _LONGEST_COMMENT))
    if end < 0:
        return False
    state.pos = end + 2
    return True


def _comment_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A comment of several lines, the first of which begins with ``%%``."""
    begin = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith("%%", begin) or "%%" in state.src[begin + 2 : state.eMarks[start]]:
        return False
    last = start + 1
    while last < end and "%%" not in state.src[state.bMarks[last] : state.eMarks[last]]:
        last += 1
    if last < end and not silent:
        state.line = last + 1
    return last < end


def _wikilink(state: StateInline, silent: bool) -> bool:
    return _bracketed(state, silent, "[[")


def _embed(state: StateInline, silent: bool) -> bool:
    return _bracketed(state, silent, "![[")


def _bracketed(state: StateInline, silent: bool, opening: str) -> bool:
    """``[[note#heading|label]]``, from its opening brackets on."""
    start = state.pos + len(opening)
    if not state.src.startswith(opening, state.pos):
        return False
    end = state.src.find("]]", start, min(state.posMax, start + _LONGEST_LINK))
    inside = state.src[start:end] if end > start else ""
    if not inside.strip() or "\n" in inside or "[[" in inside:
        return False
    if not silent:
        target, _, label = inside.replace("\\|", "|").partition("|")
        _push(state, _href(target, state.env), label.strip() or _shown(target))
    state.pos = end + 2
    return True


def _shown(target: str) -> str:
    """What a wikilink without label shows."""
    return " > ".join(filter(None, (part.strip() for part in target.split("#")))) or target.strip()


def _href(target: str, env: Any) -> str | None:
    """The URL that a wikilink leads to, relative to its page; None for a file that is not a note."""
    name, _, place = target.partition("#")
    notes, page = env["notes"], env["path"]
    found = notes.named(name, page)
    suffix = posixpath.splitext(name.strip())[1]
    if found is None and suffix and not suffix[1:].isdigit() and " " not in suffix:
        found = name.strip().lstrip("/")
        if found.lower().endswith(_MEDIA):
            return None
    return _url(found or f"{name.strip().lstrip('/')}.md", _fragment(place.rpartition("#")[2]), page)


def _fragment(place: str) -> str:
    place = place.strip()
    return place if place.startswith("^") else slug(place)


def _url(path: str, fragment: str, page: str) -> str:
    relative = "" if path == page else quoted(posixpath.relpath(path, posixpath.dirname(page) or "."))
    return f"{relative}#{quote(fragment)}" if fragment else relative or quoted(posixpath.basename(page))


def _tag(state: StateInline, silent: bool) -> bool:
    """``#tag``, at the start of a word; digits alone are not a tag."""
    if state.src[state.pos] != "#" or (state.pos and not state.src[state.pos - 1].isspace()):
        return False
    found = _TAG.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        _push(state, f"{TAG_SCHEME}{quote(found[1])}", found[0])
    state.pos = found.end()
    return True


def _push(state: StateInline, href: str | None, label: str) -> None:
    if href is not None:
        state.push("link_open", "a", 1).attrSet("href", href)
    state.push("text", "", 0).content = label
    if href is not None:
        state.push("link_close", "a", -1)


def _block_ids(state: StateCore) -> None:
    """``^id`` at the end of a block names it; alone in a paragraph, it names the block before."""
    tokens = state.tokens
    for at, token in enumerate(tokens):
        last = token.children[-1] if token.type == "inline" and token.children else None
        found = _BLOCK_ID.search(last.content) if last is not None and last.type == "text" else None
        if found is None or last is None:
            continue
        alone = len(token.children or ()) == 1 and not found.start()
        last.content = last.content[: found.start()].rstrip()
        owner = _before(tokens, at - 1) if alone else _opening(tokens, at)
        if owner is not None:
            owner.attrSet("id", f"^{found[1]}")


def _opening(tokens: list[Token], at: int) -> Token | None:
    """The rendered element that contains a piece of text."""
    return next((one for one in reversed(tokens[:at]) if one.nesting == 1 and not one.hidden), None)


def _before(tokens: list[Token], at: int) -> Token | None:
    """The opening of the block before the one that opens here."""
    level = tokens[at].level
    for one in reversed(tokens[:at]):
        if one.level == level and one.nesting >= 0:
            return one
        if one.level < level:
            return None
    return None


def _note_links(state: StateCore) -> None:
    """Links between notes as authors write them, without suffix or by name, lead to the notes' files."""
    for token in state.tokens:
        for child in token.children or ():
            href = child.attrGet("href") if child.type == "link_open" else None
            if isinstance(href, str) and not _SCHEME.match(href):
                child.attrSet("href", _mended(href, state.env))


def _mended(href: str, env: Any) -> str:
    address, _, fragment = href.partition("#")
    fragment = unquote(fragment)
    if fragment != fragment.lower() or " " in fragment:
        fragment = _fragment(fragment)
    path, mark, query = address.partition("?")
    found = env["notes"].linked(path, env["path"]) if path else env["path"]
    if found is None or mark:
        return f"{path}{mark}{query}#{quote(fragment)}" if fragment else address
    return _url(found, fragment, env["path"])
