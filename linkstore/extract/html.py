"""What HTML pages have in common, for the link extractor and for ingest.

A page is decoded as browsers do (HTML Living Standard, section 13.2.3), bounded, and parsed. Functions read
its head, its links and its anchors.

A parser takes time by the depth of the elements, opens formatting elements again in each paragraph that
follows (``<p><b id=1><b id=2>…<p>x<p>x…``), and compares each attribute of an element with the others. So a
page of a few kilobytes can take gigabytes, or minutes. One pass over the tags counts them, how deep they lie,
and which formatting elements are not closed. What it does not see ends with the time that a page may take:
see :mod:`linkstore.ingest.workers`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom, resolve_encoding

from linkstore.errors import ExtractionError, StrategyError
from linkstore.extract.block_reader import read_blocks
from linkstore.extract.blocks import fold_whitespace
from linkstore.extract.elements import Tree, find_node_anchors, get_link_label, get_link_target
from linkstore.extract.noise import find_noise, find_suspects, find_unseen

_DEEP: Final = 64
"""A depth from which on that of the parsed page is looked at."""
_ENCODING_NAMES: Final = """
    utf-8 utf-8-sig utf-16 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be
    cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp866 cp874 cp437 cp850 cp852
    iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9 iso8859-10
    iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 koi8-r koi8-u mac-roman mac-cyrillic tis-620
    gb18030 big5hkscs euc_jp iso2022_jp cp932 shift_jis cp949 euc_kr iso2022_kr
"""
_TEXT_ENCODINGS: Final = frozenset(name.replace("-", "").replace("_", "") for name in _ENCODING_NAMES.split())
"""What pages are written in. Python knows more names, some of no encodings of text (``zlib``), and decodes
some in quadratic time (``punycode``)."""
_SNIFFED: Final = 1024
_REPLACEMENT: Final = "\ufffd"
_NON_ASCII: Final = re.compile(f"[^\0-\x7f{_REPLACEMENT}]")
UTF_8: Final = "utf-8"
WESTERN: Final = "cp1252"
"""What browsers read a page in that declares nothing."""
_LINK_SELECTOR: Final = "a[href], area[href]"
"""Also selects ``<a xlink:href>`` of SVG."""
_ANCHOR_SELECTOR: Final = "[id], a[name]:not([id])"
_UNSEEN_SELECTOR: Final = "script, style, iframe"
_ROBOTS: Final = frozenset({"robots", "linkstore"})
_NO_INDEX: Final = frozenset({"noindex", "none"})
_XHTML: Final = re.compile(r"\s*(?:<\?xml\b|<!doctype[^>]*\bxhtml\b)", re.IGNORECASE)
_VOID: Final = (
    "area|base|basefont|bgsound|br|col|embed|frame|hr|image|img|input|keygen|link|meta|param|source|track|wbr"
)
_CLOSED: Final = re.compile(rf"<(?!(?:{_VOID})[\s/])([a-z][\w:.-]*+)((?:\s[^<>]*[\s\"'])?)/>", re.IGNORECASE)
"""An element that holds nothing. One whose last value is not in quotation marks may end in a slash."""
DEEPEST_ELEMENT: Final = 512
"""Maximum depth of elements; browsers move deeper ones out to this depth."""
MOST_TAGS: Final = 2**20
"""Maximum number of tags: a manual of 20 megabytes on one page has half of them."""
MOST_ATTRIBUTES: Final = 1000
"""Maximum number of attributes of one element."""
MOST_OPTIONS: Final = 5000
"""Maximum number of options of one ``<select>``: a parser compares each with those before it."""
MOST_REOPENED: Final = 3 * 10**5
"""Maximum number of formatting elements that are opened again, with their attributes."""
_ALIKE: Final = 3
"""Maximum number of equal formatting elements that are opened again (HTML Living Standard, 13.2.4.3)."""
_ENDING_ALONE: Final = frozenset(
    b"area base basefont bgsound br col embed frame head hr image img input keygen link meta param "
    b"source track wbr html body h1 h2 h3 h4 h5 h6 p tr td th caption tbody thead tfoot colgroup "
    b"option".split()
)
"""Elements that hold none, or that end by themselves: between two in each other there is always another."""
_RUBY: Final = frozenset({b"rb", b"rt", b"rp"})
_ITEMS: Final = frozenset({b"li", b"dd", b"dt"})
_FORMATTING: Final = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_MARKUP: Final = re.compile(
    rb"<(?:!--(?s:.*?)(?:-->|\Z)"
    rb"|(?P<raw>script|style|textarea|title|xmp|iframe|noembed|noframes)\b[^>]*+>(?s:.*?)(?:</(?P=raw)|\Z)"
    rb"|(?P<end>/?)(?P<name>[a-z][^\s/>]*+)"
    rb"(?P<attributes>(?:[^>\"']++|\"[^\"]*+\"|'[^']*+'|[\"'])*+)(?:>|\Z))"
)
"""A comment; an element that holds text only; a tag, with its attributes. In lower case, and bytes, which
takes half the time."""
_ATTRIBUTE: Final = re.compile(rb"[^\s\"'>/=]+(?=[\s>/=]|\Z)(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")


class DecodedText(NamedTuple):
    """The text of a page, and how sure it is."""

    text: str
    encoding: str
    """The name that Python has for what it was read in."""
    guessed: bool = False
    """Whether nothing declares an encoding, and it is not UTF-8."""
    replaced: int = 0
    """How many characters stand for bytes that are not in the encoding, as U+FFFD."""


def find_encoding(name: str) -> str:
    """Return Python's name for an encoding of text. That of Latin-1 means windows-1252, as on the web.

    Raises:
        StrategyError: If pages are not written in it.
    """
    resolved = resolve_encoding(name.strip())
    if resolved is None or not _is_text_encoding(resolved):
        raise StrategyError(
            f"no encoding {name!r}; give one such as utf-8, windows-1252, koi8-r or shift_jis"
        )
    return str(resolved)


def decode_html(content: bytes, *, declared: str | None = None, encoding: str | None = None) -> DecodedText:
    """Decode a page by its byte-order mark, else as told, as its server says, or as it says itself.

    A page that declares nothing is UTF-8, or windows-1252 if more of it is wrong as UTF-8 than right. A
    declared encoding that is unknown, or that pages are not written in, counts for nothing. Nor does UTF-16
    where the declaration can be read as ASCII. A byte that is not in the encoding is replaced.

    Args:
        content: The page.
        declared: The ``Content-Type`` that its server gives it, if any.
        encoding: The encoding, whatever it declares.

    Raises:
        StrategyError: If ``encoding`` is unknown.
    """
    marked, mark = read_bom(content)
    if marked is not None and mark is not None:
        return decode_as(content[len(mark) :], marked)
    resolved = find_declared_encoding(content, declared) if encoding is None else find_encoding(encoding)
    if resolved is not None:
        return decode_as(content, resolved)
    text = decode_as(content, UTF_8)
    if not text.replaced or text.replaced < len(_NON_ASCII.findall(text.text)):
        return text
    return decode_as(content, WESTERN)._replace(guessed=True)


def find_declared_encoding(content: bytes, header: str | None = None) -> str | None:
    """Return the encoding of a page without byte-order mark, by its server or itself, None if unknown."""
    by_server, by_itself = http_content_type_encoding(header), html_body_declared_encoding(content)
    for name in (by_server, by_itself):
        if name is None or not _is_text_encoding(name):
            continue
        wide = name.startswith(("utf-16", "utf-32"))
        return UTF_8 if wide and (name != by_server or b"\0" not in content[:_SNIFFED]) else str(name)
    return None


def decode_as(content: bytes, encoding: str) -> DecodedText:
    """Decode a page in an encoding, and replace bytes that are not in it.

    Args:
        content: The page, without byte-order mark.
        encoding: A name that Python has.
    """
    try:
        return DecodedText(content.decode(encoding), encoding)
    except UnicodeDecodeError:
        text = content.decode(encoding, "replace")
    own = content.decode(encoding, "ignore").count(_REPLACEMENT)
    return DecodedText(text, encoding, replaced=text.count(_REPLACEMENT) - own)


def _is_text_encoding(name: str) -> bool:
    return name.replace("-", "").replace("_", "") in _TEXT_ENCODINGS


def parse_html(content: str | bytes) -> Tree:
    """Parse a page. Bytes are decoded leniently, as browsers do.

    Args:
        content: HTML, whole or in part. Bytes are read in the encoding that their byte-order mark or
            ``<meta charset>`` names, else as UTF-8 or windows-1252. What does not decode becomes U+FFFD.

    Returns:
        The page. Scripts, styles and frames in it are empty.

    Raises:
        UnboundedPageError: If the page would take far more time or memory to parse than its length says.
    """
    text = decode_html(content).text if isinstance(content, bytes) else content
    if _XHTML.match(text):  # there, a slash closes an element, which would else hold what follows
        text = _CLOSED.sub(_close_element, text)
    page = text.encode(errors="replace")
    depth = estimate_depth(page)
    tree = Tree(page)
    if depth > _DEEP:
        _check_depth(tree)
    for element in tree.css(_UNSEEN_SELECTOR):
        if (inner := element.first_child) is not None:
            inner.decompose()
    return tree


def _close_element(found: re.Match[str]) -> str:
    """Write the end of an element, unless it is a link, which has a text."""
    name, attributes = found[1], found[2]
    is_link = name in {"a", "A"} and "href" in attributes.lower()
    return found[0] if is_link else f"<{name}{attributes}></{name}>"


def _check_depth(tree: Tree) -> None:
    waiting = [(tree.root, 0)] if tree.root is not None else []
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST_ELEMENT + 2:  # <html> and <body> around them
            raise UnboundedPageError(f"its elements lie more than {DEEPEST_ELEMENT} deep")
        waiting += [(child, depth + 1) for child in node.iter()]


def find_base_href(tree: Tree) -> str | None:
    """Return the value of ``<base href>``, or None."""
    return _find_attribute(tree, "base[href]", "href")


def find_canonical_href(tree: Tree) -> str | None:
    """Return the value of ``<link rel=canonical>``, or None."""
    return _find_attribute(tree, "link[rel~=canonical i][href]", "href")


def find_head_title(tree: Tree) -> str:
    """Return the text of ``<title>``, empty without one."""
    node = None if tree.head is None else tree.head.css_first("title")
    return "" if node is None else fold_whitespace(node.text())


def forbids_indexing(tree: Tree | None, header: str = "") -> bool:
    """Say whether a page or its server asks robots not to index it (https://www.robotstxt.org/meta.html).

    What is said to a single search engine does not count.

    Args:
        tree: The page, None if it is not HTML.
        header: The value of ``X-Robots-Tag``, if any, such as ``"noindex"`` or ``"googlebot: noindex"``.
    """
    heeded = True
    for part in header.lower().split(","):
        name, colon, rule = part.rpartition(":")
        heeded = name.strip() in _ROBOTS if colon else heeded
        if heeded and rule.strip() in _NO_INDEX:
            return True
    metas = () if tree is None else tree.css("meta[name][content]")
    return any(
        (meta.attributes.get("name") or "").strip().lower() in _ROBOTS
        and not _NO_INDEX.isdisjoint((meta.attributes.get("content") or "").lower().replace(",", " ").split())
        for meta in metas
    )


def find_page_anchors(tree: Tree) -> Iterator[str]:
    """Yield the fragments a page owns, in order: every ``id``, and the ``name`` of every ``<a>``."""
    for node in tree.css(_ANCHOR_SELECTOR):
        yield from find_node_anchors(node)


def find_page_links(tree: Tree, *, noise: bool = False) -> dict[str, str]:
    """Return the hyperlinks of a page in order, each ``href`` once, with the first anchor text it has.

    Link noise is left out, unless asked for.

    Args:
        tree: The page. Its permalinks are removed, unless noise is asked for.
        noise: Whether to keep what is navigation.
    """
    hyperlinks: Iterator[tuple[str, str]]
    if noise:
        nodes = ((node, get_link_target(node.attributes)) for node in tree.css(_LINK_SELECTOR))
        hyperlinks = ((href, get_link_label(node)) for node, href in nodes if href)
    else:
        suspects = find_suspects(tree)
        blocks, boxes = read_blocks(tree, frozenset(suspects), find_unseen(tree))
        left_out = find_noise(blocks, boxes, suspects, find_head_title(tree)).left_out
        kept = (block for at, block in enumerate(blocks) if at not in left_out)
        hyperlinks = ((link.href, link.label) for block in kept for link in block.links)
    links: dict[str, str] = {}
    for href, label in hyperlinks:
        if not links.get(href):
            links[href] = label
    return links


def _find_attribute(tree: Tree, selector: str, name: str) -> str | None:
    node = None if tree.head is None else tree.head.css_first(selector)
    value = None if node is None else node.attributes.get(name)
    return value.strip() or None if value else None


class UnboundedPageError(ExtractionError):
    """A page would take far more time or memory to parse than its length says."""


def estimate_depth(page: bytes) -> int:
    """Estimate the greatest depth of the elements of a page, but for those ending by themselves.

    Args:
        page: HTML, in UTF-8.

    Raises:
        UnboundedPageError: If it has too many tags, or its elements lie too deep, have too many attributes,
            or are opened again too often by tags that are not closed.
    """
    elements, formatting, options = _OpenElements(), _OpenFormatting(), 0
    tags = reopened = 0
    for match in _MARKUP.finditer(page.lower()):
        end, name, attributes = match.group("end", "name", "attributes")
        if name is None:
            continue
        tags += 1
        if len(attributes) > MOST_ATTRIBUTES:
            _check("attributes of an element", _count_attributes(attributes), MOST_ATTRIBUTES)
        if name in _FORMATTING and not (name == b"a" and elements.opened[b"svg"]):  # one of many shapes there
            formatting.read(name, attributes, end=bool(end))
            continue
        reopened += formatting.weight
        if name == b"option" and elements.opened[b"select"]:
            options += not end
        elif name == b"select":
            options = 0
        elements.read(name, attributes, end=bool(end))
        if options > MOST_OPTIONS:
            _check("options of a <select>", options, MOST_OPTIONS)
    _check("tags", tags, MOST_TAGS)
    _check("formatting elements opened again, with their attributes", reopened, MOST_REOPENED)
    return elements.deepest


class _OpenFormatting:
    """Formatting elements that a parser opens again, until they are closed."""

    def __init__(self) -> None:
        self._open: defaultdict[bytes, list[bytes]] = defaultdict(list)
        self.weight = 0
        """How many attributes they have, and one more for each."""

    def read(self, name: bytes, attributes: bytes, *, end: bool) -> None:
        """Read the tag of one."""
        same = self._open[name]
        if end and same:
            self.weight -= 1 + _count_attributes(same.pop())
        elif not end and same.count(attributes) < _ALIKE:
            same.append(attributes)
            self.weight += 1 + _count_attributes(attributes)
            _check("attributes of formatting elements not closed", self.weight, MOST_ATTRIBUTES)


class _OpenElements:
    """Elements that have started more often than they have ended."""

    def __init__(self) -> None:
        self.opened: Counter[bytes] = Counter()
        self._depth = 0
        self._item = 0
        self.deepest = 0

    def read(self, name: bytes, attributes: bytes, *, end: bool) -> None:
        """Read the tag of one."""
        opened = self.opened
        if name in _ENDING_ALONE or (name in _RUBY and opened[b"ruby"]):
            return
        if name in _ITEMS:  # <li> ends no <dd>, nor the other way round
            self._depth += not end and self._item not in {0, name[0]}
            self._item = 0 if end else name[0]
        elif end:
            self._depth -= opened[name] > 0
            opened[name] -= opened[name] > 0
            self._item = 0
        elif not (attributes.endswith(b"/") and (opened[b"svg"] or opened[b"math"])):
            opened[name] += 1
            self._depth += 1
            self._item = 0
        if self._depth > self.deepest:
            self.deepest = self._depth
            _check("elements deep in each other", self.deepest, DEEPEST_ELEMENT)


def _check(what: str, count: int, most: int) -> None:
    if count > most:
        raise UnboundedPageError(f"it has too many {what}: more than {most:,} are not read")


@lru_cache  # an element that is closed has the attributes that it was opened with
def _count_attributes(attributes: bytes) -> int:
    return len({attribute.partition(b"=")[0] for attribute in _ATTRIBUTE.findall(attributes)})
