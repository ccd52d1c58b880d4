"""Makes chunks from a page's blocks: one for each section, more for a long one.

A long text is split between paragraphs, else between lines or words, else anywhere, into the pieces of
langchain-text-splitters' ``RecursiveCharacterTextSplitter`` with ``keep_separator="end"`` and no overlap; a
test compares them. A search backwards from each limit finds them in less than a tenth of the time of a
search for one separator after another.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from math import ceil
from typing import Final, NamedTuple

from linkstore.core.arguments import require_at_least
from linkstore.core.links import Link
from linkstore.core.text import TRAIL
from linkstore.core.urls import is_short_tag, list_fragments, quote_fragment
from linkstore.extract.blocks import Block, count_letters
from linkstore.extract.protocol import Chunk, Hyperlink, Page

SEPARATORS: Final = ("\n\n", "\n", " ", "。", "\uff01", "\uff1f", "\uff1b", "\uff0c", "、")
"""Separators at which a text is divided, best first; Chinese and Japanese have no spaces between words."""
_MANY_HEADINGS: Final = 200
_LEAST_BELOW: Final = 40
"""Characters for each heading, its own among them."""
_ENTRY: Final = re.compile(r"(\S.{0,79}?)\s+(?:[\u2013\u2014]|--?)\s")
_FEWEST_ENTRIES: Final = 2
_LONGEST_TERM: Final = 120
_LONGEST_HEADER: Final = 400
_NEAR: Final = 16
"""Number of pieces of a long block in which the label of the next link is searched."""


def split_text(text: str, longest: int) -> list[str]:
    """Split a text into pieces, without the white space around them.

    Args:
        text: Any text.
        longest: How many characters a piece has at most.
    """
    pieces = _split_pieces(text, 0, len(text), longest, SEPARATORS)
    return [piece[start : start + longest] for piece in pieces for start in range(0, len(piece), longest)]


def _split_pieces(text: str, start: int, end: int, longest: int, separators: Sequence[str]) -> Iterator[str]:
    """Yield a part of a text, in pieces. A piece without a separator may be too long."""
    occurring = (n for n, separator in enumerate(separators) if text.find(separator, start, end) >= 0)
    number = next(occurring, len(separators) - 1)
    separator, finer = separators[number], separators[number + 1 :]
    while start < end:
        at = text.find(separator, start, end)
        first = at + len(separator) if at >= 0 else end
        if first - start < longest:
            first = end if end - start <= longest else _find_last_end(text, separator, start, start + longest)
            if piece := text[start:first].strip():
                yield piece
        elif finer:
            yield from _split_pieces(text, start, first, longest, finer)
        else:
            yield text[start:first]
        start = first


def _find_last_end(text: str, separator: str, start: int, end: int) -> int:
    """Return where the last whole separator before ``end`` ends, if separators are counted from ``start``."""
    at = text.rfind(separator, start, end)
    if len(separator) > 1:
        before = text[start:at]
        at -= (len(before) - len(before.rstrip(separator[0]))) % len(separator)
    return at + len(separator)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkLimits:
    """How long chunks are, in characters, headings left out.

    Args:
        longest: A longer section is divided, as is a block that is longer alone; default 1,600, about
            400 tokens.
        shortest: A part is not ended at an anchor before it is this long; text of this length before
            the first heading is a chunk of its own, less belongs to the first section; default 200.

    Raises:
        StrategyError: If one is not an integer, or ``longest`` is less than 1.
    """

    longest: int = 1600
    shortest: int = 200

    def __post_init__(self) -> None:
        require_at_least(1, longest=self.longest)
        require_at_least(0, shortest=self.shortest)


DEFAULT_LIMITS: Final = ChunkLimits()


class _Section(NamedTuple):
    """A heading (None before the first one) and the blocks below it."""

    heading: Block | None
    headings: tuple[str, ...]
    above: int | None
    blocks: tuple[Block, ...]


class _ChunkPart(NamedTuple):
    """The blocks that become a chunk."""

    section: int
    blocks: tuple[Block, ...]
    anchors: tuple[str, ...]
    links: tuple[Hyperlink, ...]
    fragment: str | None


def make_chunks(page: Page, blocks: Sequence[Block], limits: ChunkLimits = DEFAULT_LIMITS) -> list[Chunk]:
    """Make the chunks of a page, in order.

    Args:
        page: What they have in common.
        blocks: The page's main content.
        limits: How long they are.
    """
    sections = _make_sections(_demote_idle_headings(_name_entries(blocks)), limits)
    parts = _make_parts(page, sections, limits)
    names = _name_parts(parts)
    first = {part.section: name for part, name in reversed(list(zip(parts, names, strict=True)))}
    return [
        Chunk(
            page=page,
            text=_format_chunk(page, sections[part.section].headings, part.blocks),
            index=index,
            fragment=part.fragment if index else None,
            headings=sections[part.section].headings,
            anchors=part.anchors,
            hyperlinks=part.links,
            section=names[index],
            parent=_find_parent(sections, part.section, first, names[index]),
            previous=names[index - 1] if index else None,
            next=names[index + 1] if index + 1 < len(names) else None,
        )
        for index, part in enumerate(parts)
    ]


def add_incoming_links(
    chunks: Sequence[Chunk], names: Mapping[str, Mapping[str, Sequence[str]]]
) -> list[Chunk]:
    """Return the chunks of a page, each with incoming links for the further names of the anchors in it.

    Args:
        chunks: In order.
        names: Kind of link → fragment → tags. A fragment that is on no chunk belongs to the first one, the
            empty one to none.
    """
    lying = {
        fragment: at
        for at, chunk in enumerate(chunks)
        for anchor in chunk.anchors
        for fragment in list_fragments(anchor)
    }
    links_at: dict[int, list[Link]] = {}
    for kind, tags_at in names.items():
        for fragment, tags in tags_at.items():
            if fragment:
                links = [Link.incoming(kind=kind, tag=tag) for tag in tags if is_short_tag(tag)]
                links_at.setdefault(lying.get(fragment, 0), []).extend(links)
    return [
        replace(chunk, links=(*chunk.links, *links_at[at])) if at in links_at else chunk
        for at, chunk in enumerate(chunks)
    ]


def _name_entries(blocks: Sequence[Block]) -> Sequence[Block]:
    """Give the entries of a reference headings, where several on one page only have sections such as "Name".

    An entry begins with a heading "Name", and below it the name, a dash and a purpose, as manual pages do.
    """
    starts = {
        at: match[1]
        for at, (block, below) in enumerate(pairwise(blocks))
        if block.level and block.text.casefold() == "name" and (match := _ENTRY.match(below.text))
    }
    if len(starts) < _FEWEST_ENTRIES:
        return blocks
    found_blocks: list[Block] = []
    level = 0
    for at, block in enumerate(blocks):
        if at in starts:
            level = block.level
            found_blocks.append(block._replace(text=starts[at], ahead=False))
            block = block._replace(anchors=(), links=(), fragment=None, starts=False, places=())
        elif 0 < block.level < level:
            level = 0
        found_blocks.append(block._replace(level=block.level + 1) if block.level and level else block)
    return found_blocks


def _demote_idle_headings(blocks: Sequence[Block]) -> Sequence[Block]:
    """Turn headings into lines if there are many of them and next to nothing below each.

    Such a page is a list, whatever its entries are written as, and is divided as one.
    """
    headings = [block for block in blocks if block.level]
    if len(headings) <= _MANY_HEADINGS or _count_characters(blocks) >= len(headings) * _LEAST_BELOW:
        return blocks
    return [
        block._replace(level=0, tight=bool(block.level), ahead=False)
        if block is not headings[0] and (block.level or block.ahead)
        else block
        for block in blocks
    ]


def _make_sections(blocks: Sequence[Block], limits: ChunkLimits) -> list[_Section]:
    sections: list[_Section] = []
    open_sections: list[tuple[int, int]] = []
    for heading, below in _group_by_heading(blocks, limits):
        while open_sections and heading is not None and open_sections[-1][0] >= heading.level:
            open_sections.pop()
        above = open_sections[-1][1] if open_sections else None
        trail = sections[above].headings if above is not None else ()
        if heading is not None:
            open_sections.append((heading.level, len(sections)))
            trail = (*trail, heading.text)
        sections.append(_Section(heading, trail, above, tuple(below)))
    return sections


def _group_by_heading(
    blocks: Sequence[Block], limits: ChunkLimits
) -> Iterator[tuple[Block | None, list[Block]]]:
    """Yield headings with the blocks below each.

    A short text before the first heading goes below it, and so does what a section has before its heading.
    """
    heading: Block | None = None
    below: list[Block] = []
    ahead: list[Block] = []
    for block in blocks:
        if block.ahead:
            ahead.append(block)
        elif not block.level:
            below.append(block)
        elif heading is None and _count_characters(below) < limits.shortest:
            heading, below, ahead = block, [*below, *ahead], []
        else:
            yield heading, below
            heading, below, ahead = block, ahead, []
    yield heading, [*below, *ahead]


def _make_parts(page: Page, sections: Sequence[_Section], limits: ChunkLimits) -> list[_ChunkPart]:
    """Return the parts of all sections.

    A heading without text does not make a part: its anchors and links go to the next one, or to the end of
    the last, and so does its text, as a line, unless it is among the headings there.
    """
    parts: list[_ChunkPart] = []
    waiting: list[Block] = []
    for number, section in enumerate(sections):
        if section.heading is not None:
            waiting.append(section.heading)
        if not section.blocks:
            continue
        named = {page.title, *section.headings}
        lines = [_write_as_line(block) for block in waiting if block.text not in named]
        owners = [block for block in waiting if block.text in named]
        waiting = []
        fragment = next((block.fragment for block in reversed(owners) if block.fragment), None)
        for blocks in _divide_section((*lines, *section.blocks), limits):
            starts = not owners and blocks[0].starts
            owners += blocks
            parts.append(
                _ChunkPart(
                    section=number,
                    blocks=blocks,
                    anchors=tuple(dict.fromkeys(anchor for block in owners for anchor in block.anchors)),
                    links=tuple(link for block in owners for link in block.links),
                    fragment=blocks[0].anchors[0] if starts else fragment,
                )
            )
            owners = []
    if waiting:
        parts.append(_add_at_end(parts.pop() if parts else None, waiting, len(sections) - 1))
    return parts


def _write_as_line(heading: Block) -> Block:
    return heading._replace(level=0, ahead=False, tight=True, fragment=None)


def _add_at_end(part: _ChunkPart | None, headings: Sequence[Block], number: int) -> _ChunkPart:
    """Return a part with headings at its end, or the one that they make where there is nothing else."""
    anchors = [anchor for block in headings for anchor in block.anchors]
    links = [link for block in headings for link in block.links]
    if part is None:
        lines = tuple(map(_write_as_line, headings[:-1]))
        return _ChunkPart(number, lines, tuple(dict.fromkeys(anchors)), tuple(links), headings[-1].fragment)
    return part._replace(
        blocks=(*part.blocks, *map(_write_as_line, headings)),
        anchors=tuple(dict.fromkeys((*part.anchors, *anchors))),
        links=(*part.links, *links),
    )


def _divide_section(blocks: tuple[Block, ...], limits: ChunkLimits) -> Iterator[tuple[Block, ...]]:
    """Divide blocks into parts of about equal length, none over the limit, cut at anchors where possible."""
    whole = _count_characters(blocks)
    if whole <= limits.longest:
        yield blocks
        return
    enough = whole / ceil(whole / limits.longest)
    part: list[Block] = []
    length = 0
    for unit in _join_tables(chain.from_iterable(_cut_block(block, limits) for block in blocks), limits):
        size = _count_characters(unit)
        full = length >= enough or length + size > limits.longest
        if part and (full or (unit[0].starts and length >= limits.shortest)):
            lead = _take_lead(part, unit[0], size, limits)
            yield tuple(part)
            part, length = lead, _count_characters(lead)
        part += unit
        length += size
    yield tuple(part)


def _join_tables(blocks: Iterable[Block], limits: ChunkLimits) -> Iterator[list[Block]]:
    """Yield the rows of each table that fits into a chunk together, and all other blocks alone."""
    rows: list[Block] = []
    for block in blocks:
        follows = block.tag == "tr" or (block.tag == "th" and rows and rows[-1].tag == "th")
        if not follows:
            yield from _group_rows(rows, limits)
            rows = []
        if block.tag in {"th", "tr"}:
            rows.append(block)
        else:
            yield [block]
    yield from _group_rows(rows, limits)


def _group_rows(rows: list[Block], limits: ChunkLimits) -> Iterator[list[Block]]:
    if _count_characters(rows) > limits.longest:
        yield from ([row] for row in rows)
    elif rows:
        yield rows


def _take_lead(part: list[Block], block: Block, size: int, limits: ChunkLimits) -> list[Block]:
    """Take the lead of the next block off the end of a part: a defined term, or a list's lead."""
    belongs = block.tight and not part[-1].tight and len(part) > 1
    if not belongs or len(part[-1].text) + size > limits.longest:
        return []
    return [part.pop()]


def _cut_block(block: Block, limits: ChunkLimits) -> Iterator[Block]:
    """Cut a block into pieces that are short enough. Each anchor and hyperlink goes where it stands."""
    if len(block.text) <= limits.longest:
        yield block
        return
    texts = split_text(block.text, limits.longest)
    # A splitter drops only white space, so the other characters show where a piece begins.
    begins = list(accumulate((count_letters(text) for text in texts[:-1]), initial=0))
    places = block.places or _guess_places(block, texts, begins)
    owners = [bisect_right(begins, place) - 1 for place in places]
    anchors: list[list[str]] = [[] for _ in texts]
    links: list[list[Hyperlink]] = [[] for _ in texts]
    for anchor, owner in zip(block.anchors, owners, strict=False):
        anchors[owner].append(anchor)
    for link, owner in zip(block.links, owners[len(block.anchors) :], strict=True):
        links[owner].append(link)
    for number, text in enumerate(texts):
        own = (tuple(anchors[number]), tuple(links[number]))
        if number == 0:
            yield block._replace(text=text, anchors=own[0], links=own[1], places=())
        else:
            starts = begins[number] in places[: len(block.anchors)]
            yield Block(text=text, anchors=own[0], links=own[1], starts=starts)


def _guess_places(block: Block, texts: Sequence[str], begins: Sequence[int]) -> tuple[int, ...]:
    """Guess places in a block without any: anchors at its start, a link at the next mention of its label."""
    places = [0 for _ in block.anchors]
    at = 0
    for link in block.links:
        near = range(at, min(at + _NEAR, len(texts)))
        at = next((i for i in near if link.label in texts[i]), at)
        places.append(begins[at])
    return tuple(places)


def _name_parts(parts: Sequence[_ChunkPart]) -> list[str]:
    """Give each part a name of its own: the first has none, others have their fragment, numbered if taken."""
    names: list[str] = []
    taken: dict[str, int] = {}
    for number, part in enumerate(parts):
        base = quote_fragment(part.fragment or "") if number else ""
        names.append(choose_unused_name(base, taken))
    return names


def choose_unused_name(base: str, taken: dict[str, int]) -> str:
    """Return ``base``, or the first of ``base~2``, ``base~3``, … that is not taken, and mark it as taken.

    Args:
        base: A name.
        taken: Each name that is taken, with the number up to which numbered ones of it are.
    """
    name, count = base, taken.get(base, 0)
    while name in taken:
        count += 1
        name = f"{base}~{count}" if count > 1 else base
    taken[base] = max(count, 1)
    taken.setdefault(name, 1)
    return name


def _find_parent(sections: Sequence[_Section], number: int, first: dict[int, str], own: str) -> str | None:
    above = sections[number].above
    while above is not None and (above not in first or first[above] == own):
        above = sections[above].above
    return None if above is None else first[above]


def _format_chunk(page: Page, headings: tuple[str, ...], blocks: tuple[Block, ...]) -> str:
    untitled = page.title and page.title not in headings
    trail = TRAIL.join((page.title, *headings) if untitled else headings)
    body = _shorten_term(blocks[0]) if blocks and blocks[0].tag != "dt" else ""
    for block in blocks:
        gap = "\n" if block.tight or block is blocks[0] else "\n\n"
        body = f"{body}{gap}{block.text}" if body else block.text
    return f"{trail}\n\n{body}" if trail and body else trail or body


def _shorten_term(block: Block) -> str:
    """Return the term that a part goes on to define, or the header of its table; an earlier part has it."""
    line, most = block.term.partition("\n")[0], _LONGEST_HEADER if block.tag == "tr" else _LONGEST_TERM
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _count_characters(blocks: Sequence[Block]) -> int:
    return sum(len(block.text) for block in blocks)
