"""Scans wikitext once from left to right: links, templates, tags and references become marked text.

The scanner keeps a stack of open constructs. A construct that is closed is replaced by its visible text; one
that is never closed is not markup and stays as it is written. So nothing is read twice, and the time is
proportional to the length of the text. The rules are those of MediaWiki's preprocessor and parser, as far as
readers see them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import pairwise
from typing import Final

from linkstore.extract.elements import split_names
from linkstore.extract.protocol import Hyperlink
from linkstore.ingest.wiki.layout import (
    ANCHOR,
    BREAK,
    GONE,
    LINK,
    REFERENCE,
    Article,
    extract_marks,
    find_caption,
    find_element_id,
    find_gallery_captions,
    get_attribute,
    render_text,
    shield_text,
    strip_marks,
)
from linkstore.ingest.wiki.templates import (
    ANCHORS,
    VISIBLE_ANCHORS,
    TemplateLink,
    keep_marks,
    normalise_name,
    render_template,
)
from linkstore.ingest.wiki.titles import LinkRole, LinkTarget, make_anchor

# Each alternative begins with a literal character: Python then looks for those first. What repeats stops at
# the characters with which markup begins, and never goes back.
_TOKEN: Final = re.compile(
    r"\[(?P<plain_link>\[([^\[\]{}|<>\n]++)(?:\|([^\[\]{}|<>\n]*+))?\]\]"
    r"([a-z\u00df-\u00f6\u00f8-\u024f\u0430-\u045f]*+))"
    r"|\{(?P<plain_template>\{(?P<call>[^{}\[\]<>]*+)\}\})"
    r"|\{(?P<open_braces>\{++)"
    r"|\}(?P<close_braces>\}++)"
    r"|\[(?P<open_link>\[(?!\[))"
    r"|\[(?P<open_external>(?:https?:|ftp:)?//[^\s\[\]<>\"|{}]++)"
    r"|\](?P<close_brackets>\]*+)"
    r"|\|(?P<bar>)"
    r"|<(?P<plain_reference>(?i:ref)(?P<named>(?:\s[^<>/]*+(?:/(?!>)[^<>/]*+)*+)?)>"
    r"(?P<content>[^<\[]*+(?:\[(?!\[)[^<\[]*+)*+)</(?i:ref)\s*>)"
    r"|<(?P<tag>(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9-]*+)(?P<attributes>[^<>]*+)>)"
    r"|<(?P<comment>!--)"
    r"|:(?P<bare_url>//)"
)
"""The outermost groups have the names of the methods of :class:`Scanner` that read them."""
_TRAIL: Final = re.compile(r"[a-z\u00df-\u00f6\u00f8-\u024f\u0430-\u045f]*")
_REST_OF_URL: Final = re.compile(r"[^\s\[\]<>\"{}|\x01-\x08]++")
_ADDRESS: Final = re.compile(r"(?:https?:|ftp:)?//[^\x01-\x08|]+$")
_BEHIND_URL: Final = ".,;:!?'"
_PIPE_TRICK: Final = re.compile(r"^[^:]*:|\s*\([^()]*\)$|\s*\uff08[^\uff08\uff09]*\uff09$")
_LINK: Final = LinkRole.LINK
_SCHEMES: Final = ("https", "http", "ftp")
_NAME: Final = re.compile(r"\bname\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'/<>]+))", re.IGNORECASE)

_LITERAL: Final = frozenset({"nowiki", "math", "chem", "ce"})
"""Tags whose content is text without markup."""

_CODE: Final = frozenset({"pre", "syntaxhighlight", "source"})
"""Likewise, line by line."""

_SILENT: Final = split_names(
    "timeline score graph mapframe maplink templatedata hiero inputbox categorytree includeonly ask "
    "templatestyles dynamicpagelist"
)
"""Tags whose content is not for readers."""

_RAW: Final = _LITERAL | _CODE | _SILENT
"""Tags whose content is not wikitext."""

_FRAMES: Final = frozenset({"ref", "references", "gallery", "imagemap", "poem"})
"""Tags whose content is wikitext with rules of its own."""

_HEADINGS: Final = {f"h{level}": "=" * level for level in range(1, 7)}

_INLINE_NAMES: Final = """
    b i u s em strong small big sub sup span font tt code kbd var samp cite q abbr dfn del ins strike bdi
    bdo ruby rb rt rp mark time data wbr noinclude onlyinclude section translate languages tvar nobr
"""
_BLOCK_NAMES: Final = "p div blockquote center table ul ol dl hr aside"

_SHOWN: Final = {
    "br": BREAK,
    "li": "\n* ",
    **dict.fromkeys(_INLINE_NAMES.split(), ""),
    **dict.fromkeys(_BLOCK_NAMES.split(), "\n\n"),
    **dict.fromkeys(("tr", "caption", "dd", "dt"), "\n"),
    **dict.fromkeys(("td", "th"), " "),
}
"""The text that replaces other tags; any other name is not a tag."""

MOST_OPEN: Final = 100
"""More open links, templates and tags than this are read as text."""

OPEN_LINK, OPEN_TEMPLATE, OPEN_EXTERNAL = "[[", "{{", "["
_WEAKER: Final[dict[str, frozenset[str]]] = {
    OPEN_EXTERNAL: frozenset(),
    OPEN_LINK: frozenset({OPEN_EXTERNAL}),
    OPEN_TEMPLATE: frozenset({OPEN_EXTERNAL, OPEN_LINK}),
    **dict.fromkeys(_FRAMES, frozenset({OPEN_EXTERNAL, OPEN_LINK, OPEN_TEMPLATE})),
}
"""Constructs that are not markup if they are still open when another one closes."""


class Scanner:
    """Scans the wikitext of one page.

    Args:
        resolve: What the target of a link names.
        page: The page's title.
    """

    def __init__(self, resolve: Callable[[str], LinkTarget | None], page: str) -> None:
        self._resolve = resolve
        self._page = page
        self._found = Article()
        self._out = ScanOutput()
        self._add, self._add_link = self._out.pieces.append, self._found.links.append
        self._never_closed: set[str] = set()
        self._handlers: dict[int | None, Callable[[re.Match[str]], int]] = {
            number: getattr(self, f"_{name}")
            for name, number in _TOKEN.groupindex.items()
            if hasattr(self, f"_{name}")
        }

    def scan(self, text: str) -> Article:
        """Read a text. A scanner reads only one."""
        text = strip_marks(text)
        handlers, append = self._handlers, self._add
        at = 0
        for token in _TOKEN.finditer(text):
            start = token.start()
            if start >= at:
                if start > at:
                    append(text[at:start])
                at = handlers[token.lastindex](token)
        append(text[at:])
        self._found.text = "".join(self._out.pieces)
        return self._found

    # Links

    def _plain_link(self, token: re.Match[str]) -> int:
        """Write a link without markup in it, as most are."""
        written, label, trail = token.group(2, 3, 4)
        target = self._resolve(written)
        if (
            target is not None
            and target.role is _LINK
            and (label or (label is None and written[0] not in " :"))
        ):
            text = (label or written) + trail
            self._add_link(Hyperlink(target.href, text if text.isalnum() else render_text(text)))
            self._add(LINK + text)
        else:
            self._add(self._render_link(written, [] if label is None else [label], trail) + trail)
        return token.end()

    def _open_link(self, token: re.Match[str]) -> int:
        self._out.push(OPEN_LINK, token[0])
        return token.end()

    def _open_external(self, token: re.Match[str]) -> int:
        self._out.push(OPEN_EXTERNAL, token[0], name=token["open_external"])
        return token.end()

    def _close_brackets(self, token: re.Match[str]) -> int:
        left = len(token["close_brackets"]) + 1
        while left and self._out.open:
            if self._out.open[-1].kind == OPEN_EXTERNAL:
                self._close_external(self._out.open.pop())
                left -= 1
            elif left >= 2 and self._out.can_close(OPEN_LINK):
                frame = self._out.open.pop()
                parts = self._out.parts(frame)
                trail = _TRAIL.match(token.string, token.end())
                shown_link = self._render_link(parts[0], parts[1:], trail[0] if trail and left == 2 else "")
                self._out.replace(frame, shown_link)
                left -= 2
            else:
                break
        self._add("]" * left)
        return token.end()

    def _close_external(self, frame: Frame) -> None:
        label = self._out.content(frame)
        if "\n" in label:
            self._add("]")
            return
        self._out.replace(frame, f"{label.strip()}{LINK}")
        self._add_link(Hyperlink(unescape(frame.name), render_text(label)))

    def _render_link(self, written: str, labels: Sequence[str], trail: str) -> str:
        """Return the visible text of ``[[…]]``, and record its target."""
        target = self._resolve(written.replace(GONE, ""))
        if target is None and _ADDRESS.match(written):
            return self._in_brackets("|".join((written, *labels)))
        if target is None or (target.role is LinkRole.LINK and any(LINK in label for label in labels)):
            return f"[[{'|'.join((written, *labels))}]]"
        if target.role is LinkRole.LINK or target.role is LinkRole.NONE:
            label = "|".join(labels) if labels else written.strip().removeprefix(":")
            if labels and not label:
                label = _PIPE_TRICK.sub("", written.strip().removeprefix(":"))
            if target.role is LinkRole.NONE:
                return label
            self._add_link(Hyperlink(target.href, render_text(label + trail)))
            return LINK + label
        dropped = extract_marks("".join((written, *labels)))
        if target.role is LinkRole.CATEGORY:
            self._found.categories[target.title] = None
        elif target.role is LinkRole.FILE and (text := find_caption(list(labels))):
            return f"\n\n{keep_marks(text, list(labels))}\n\n"
        return dropped

    def _in_brackets(self, written: str) -> str:
        """Write an external link in one pair of brackets too many."""
        url, _, label = written.partition(" ")
        self._add_link(Hyperlink(unescape(url), render_text(label)))
        return f"[{LINK}{label or url}]"

    def _bare_url(self, token: re.Match[str]) -> int:
        text, start = token.string, token.start()
        scheme = next((literal for literal in _SCHEMES if text.endswith(literal, 0, start)), None)
        rest = _REST_OF_URL.match(text, token.end()) if scheme else None
        if scheme is None or rest is None or text[start - len(scheme) - 1 : start - len(scheme)].isalnum():
            self._add("://")
            return token.end()
        url = rest[0].rstrip(_BEHIND_URL)
        if "(" not in url:
            url = url.partition(")")[0]
        self._add_link(Hyperlink(unescape(f"{scheme}://{url}"), ""))
        self._add(f"://{url}{LINK}")
        return token.end() + len(url)

    # Templates

    def _plain_template(self, token: re.Match[str]) -> int:
        self._add(self._render(token["call"].split("|")))
        return token.end()

    def _open_braces(self, token: re.Match[str]) -> int:
        self._out.push(OPEN_TEMPLATE, token[0], braces=len(token["open_braces"]) + 1)
        return token.end()

    def _close_braces(self, token: re.Match[str]) -> int:
        left = len(token["close_braces"]) + 1
        while left >= 2 and self._out.can_close(OPEN_TEMPLATE):
            frame = self._out.open[-1]
            used = 3 if min(left, frame.braces) >= 3 else 2
            parts = self._out.parts(frame)
            if used == 2:
                text = self._render(parts)
            else:  # a parameter shows its default
                text = "".join((extract_marks(parts[0]), *parts[1:2], extract_marks("".join(parts[2:]))))
            frame.braces -= used
            self._out.replace(frame, "{" * frame.braces, text)
            frame.bars.clear()
            if frame.braces < 2:
                self._out.open.pop()
            left -= used
        self._add("}" * left)
        return token.end()

    def _render(self, parts: list[str]) -> str:
        if self._out.is_within("ref"):
            return extract_marks("".join(parts))  # references are read only when they are needed
        name = normalise_name(parts[0])
        if name in ANCHORS:
            return self._anchors(parts, visible=name in VISIBLE_ANCHORS)
        rendered = render_template(parts, self._page)
        if isinstance(rendered, str):
            return keep_marks(rendered, parts)
        pieces = (
            self._render_mention(piece) if isinstance(piece, TemplateLink) else piece for piece in rendered
        )
        return extract_marks("".join(parts)) + "".join(pieces)

    def _render_mention(self, mention: TemplateLink) -> str:
        target = self._resolve(mention.target)
        if "://" in mention.target:
            self._add_link(Hyperlink(mention.target, mention.label))
            return LINK
        if target is None or target.role is not LinkRole.LINK:
            return mention.label
        self._add_link(Hyperlink(target.href, mention.label))
        return LINK + mention.label

    def _anchors(self, parts: list[str], *, visible: bool) -> str:
        names = [name for part in parts[1:] if "=" not in part and (name := render_text(part))]
        self._found.anchors += (make_anchor(name) for name in names)
        return extract_marks("".join(parts)) + ANCHOR * len(names) + (names[0] if names and visible else "")

    def _bar(self, token: re.Match[str]) -> int:
        if not self._out.open or self._out.open[-1].kind not in {OPEN_LINK, OPEN_TEMPLATE}:
            return token.start()  # it is text, as are the characters after it
        self._out.open[-1].bars.append(len(self._out.pieces))
        self._add("|")
        return token.end()

    # Tags

    def _plain_reference(self, token: re.Match[str]) -> int:
        """Keep a reference without tags and links in it, as most are. It is read on demand."""
        attributes, content = token.group("named", "content")
        self._define(_find_reference_name(attributes) if attributes else "", content)
        return token.end()

    def _tag(self, token: re.Match[str]) -> int:
        end, name, attributes = token.group("end", "name", "attributes")
        name, is_end, is_empty = name.lower(), bool(end), attributes.endswith("/")
        if name in _FRAMES:
            return self._close_tag(token, name) if is_end else self._open_tag(token, name, is_empty=is_empty)
        if name in _SHOWN:
            element = "" if is_end else find_element_id(attributes)
            if element:
                self._found.anchors.append(make_anchor(element))
                self._add(ANCHOR)
            self._add("" if is_end and name == "li" else _SHOWN[name])
        elif name in _HEADINGS:
            line = _HEADINGS[name]
            self._add(f"{line}\n" if is_end else f"\n{line}")
        elif name in _RAW:
            return token.end() if is_end or is_empty else self._raw(token, name, attributes)
        else:
            self._add(token[0])
        return token.end()

    def _raw(self, token: re.Match[str], name: str, attributes: str) -> int:
        """Write an element whose content is not wikitext. Without an end tag, it is text."""
        end = (
            None
            if name in self._never_closed
            else re.compile(rf"</{name}\s*>", re.IGNORECASE).search(token.string, token.end())
        )
        if end is None:
            self._never_closed.add(name)
            self._add(token[0])
            return token.end()
        content = token.string[token.end() : end.start()]
        if name in _LITERAL or "inline" in attributes:
            self._add(shield_text(unescape(content) if name == "nowiki" else content, code=name != "nowiki"))
        elif name in _CODE:
            self._add(f"\n\n{shield_text(content.strip(chr(10)), lines=True, code=name != 'pre')}\n\n")
        return end.end()

    def _open_tag(self, token: re.Match[str], name: str, *, is_empty: bool) -> int:
        reference = _find_reference_name(token["attributes"]) if name == "ref" else ""
        if is_empty:
            if reference:
                self._cite(reference)
            return token.end()
        self._out.push(name, "", inside=token.end(), name=reference)
        return token.end()

    def _close_tag(self, token: re.Match[str], name: str) -> int:
        if not self._out.can_close(name):
            return token.end()
        frame = self._out.open.pop()
        content = self._out.content(frame)
        if name == "gallery":
            self._out.replace(
                frame,
                "\n\n".join(("", keep_marks("\n\n".join(find_gallery_captions(content)), [content]), "")),
            )
        elif name == "poem":
            self._out.replace(frame, "\n\n", content.strip("\n").replace("\n", BREAK), "\n\n")
        else:
            self._out.replace(frame, extract_marks(content))
        if name == "ref":
            self._define(frame.name, token.string[frame.inside : token.start()])
        return token.end()

    def _define(self, name: str, content: str) -> None:
        """Keep a reference, and cite it here unless this is a list of references."""
        references = self._found.references
        key = name or f"\x00{len(references)}"
        if content.strip():
            references.setdefault(key, content)
        if not self._out.open or not self._out.is_within("references"):
            self._cite(key)

    def _cite(self, key: str) -> None:
        self._add_link(Hyperlink(REFERENCE + key))
        self._add(LINK)

    def _comment(self, token: re.Match[str]) -> int:
        text, start = token.string, token.start()
        end = text.find("-->", token.end())
        if end < 0:
            return len(text)
        own_line = text[start - 1 : start] in {"\n", ""} and text[end + 3 : end + 4] == "\n"
        return end + (4 if own_line else 3)


def _find_reference_name(attributes: str) -> str:
    """Return the ``name`` among the attributes of ``<ref>``, empty without one."""
    return get_attribute(_NAME.search(attributes)) if "name" in attributes else ""


@dataclass(slots=True)
class Frame:
    """A construct of wikitext that is open.

    Args:
        kind: OPEN_LINK, OPEN_TEMPLATE, OPEN_EXTERNAL or the name of a tag.
        start: Where it begins in the output, itself included.
        braces: How many braces it has.
        inside: Where its content begins in the text.
        name: Its own name: of a reference; the URL of an external link.
        bars: Where its ``|`` stand in the output.
    """

    kind: str
    start: int
    braces: int
    inside: int
    name: str
    bars: list[int] = field(default_factory=list)


class ScanOutput:
    """The pieces of the text so far, and what is open in it.

    What opens stays in the text as it is written; only when it closes, what it shows takes its place. So
    what never closes is text without anybody going back to it.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.open: list[Frame] = []

    def push(self, kind: str, written: str, *, braces: int = 0, inside: int = 0, name: str = "") -> None:
        """Open a frame. With too many open, all of them become text."""
        if len(self.open) >= MOST_OPEN:
            self.open.clear()
        self.open.append(Frame(kind, len(self.pieces), braces, inside, name))
        self.pieces.append(written)

    def can_close(self, kind: str) -> bool:
        """Say whether an element of this kind can close here, and turn open markup within it into text."""
        weaker, depth = _WEAKER[kind], len(self.open)
        while depth and self.open[depth - 1].kind in weaker:
            depth -= 1
        if not depth or self.open[depth - 1].kind != kind:
            return False
        del self.open[depth:]
        return True

    def is_within(self, kind: str) -> bool:
        """Say whether a frame of this kind is open."""
        return any(frame.kind == kind for frame in self.open)

    def parts(self, frame: Frame) -> list[str]:
        """Return the content of an open link or template, divided at each ``|``."""
        bounds = [frame.start, *frame.bars, len(self.pieces)]
        return ["".join(self.pieces[begin + 1 : end]) for begin, end in pairwise(bounds)]

    def content(self, frame: Frame) -> str:
        """Return the content of an open frame."""
        return "".join(self.pieces[frame.start + 1 :])

    def replace(self, frame: Frame, *pieces: str) -> None:
        """Replace a frame by what it shows."""
        self.pieces[frame.start :] = pieces
