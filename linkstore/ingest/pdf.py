"""Reads PDF files: the text of their pages, their outline as headings, and their links. Needs ``pypdfium2``.

Fragments are those of RFC 8118: ``page=12`` leads to a page, counted from 1, and ``page=12&view=FitH,412`` to
a line of it, so many points from its top, where an entry of the outline or a link leads. Named destinations
answer to ``nameddest=chapter.3``.
"""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from math import inf
from typing import Any, Final, NamedTuple

from linkstore.core.processes import Lock
from linkstore.errors import MissingExtraError
from linkstore.extract.blocks import Block, count_letters, fold_whitespace
from linkstore.extract.noise import CONTENTS, FOOTERS, HEADERS
from linkstore.extract.protocol import Hyperlink
from linkstore.ingest.html.pages import PageContent
from linkstore.ingest.source import EmptyPageError, UnreadablePageError

try:
    import pypdfium2 as pdfium
    from pypdfium2 import raw
except ImportError as error:
    raise MissingExtraError("reading PDF", "pdf") from error

_PDFIUM: Final = Lock()
"""PDFium is for one thread at a time."""
_HYPHEN: Final = re.compile(r"[\x02\ufffe\uffff]\s*")
"""What stands for a hyphen at the end of a line."""
_LEADER: Final = re.compile(r"(?:\.\s?){4,}\s*(?:\d+|[ivxlc]+)\s*\Z")
_NUMBER: Final = re.compile(r"\d+|\b[ivxlc]+\b")
_AT_ENDS: Final = re.compile(r"\A\d{1,5}\b|\b\d{1,5}\Z")
_BETWEEN_LETTERS: Final = re.compile(r"[\W_]+")
_BY_PROGRAM: Final = re.compile(r"^Microsoft \w+ - |\.(?:docx?|dvi|indd|odt|pdf|pptx?|qxd|rtf|tex)$")
_OFTEN: Final = 3
"""Pages that begin or end with one line, numbers aside, from which on it is a header or footer."""
_LONGEST_NUMBER: Final = 12
"""Letters before a heading that the outline may lack, such as "Chapter 12"."""
_LINES_OF_TITLE: Final = 3
"""Over how many lines a heading may go."""
_NEAR: Final = 4.0
"""Points by which a line may rise above the place that leads to it."""
_MOST_NAMES: Final = 5_000
"""Named destinations that are read of one file, since PDFium looks for each from the first one on."""
_LONGEST_NAME: Final = 1024
_DEEPEST: Final = 6
_MOST_PASSED_ON: Final = 16
"""Anchors on pages without text that lead to the next one with some."""


class _Place(NamedTuple):
    """Where something leads: a page, from 0, and where on it in points, infinitely high for all of it."""

    page: int
    left: float = 0.0
    top: float = inf


class _Line(NamedTuple):
    """A line of a page: where it begins in the page's text, what it says, and where it stands, in points."""

    start: int
    text: str
    left: float
    top: float


class _Link(NamedTuple):
    """A link on a page: the number of the line it is in, what it leads to, and its text."""

    line: int
    target: str | _Place
    label: str


class _Sheet(NamedTuple):
    """What is read of one page of a file. A line that is left out is empty."""

    height: float = 0.0
    lines: tuple[_Line, ...] = ()
    links: tuple[_Link, ...] = ()

    def find_line(self, place: _Place, title: str = "") -> int:
        """Return the number of the line at a place, or of the title that is looked for below it."""
        below = [at for at, line in enumerate(self.lines) if line.text and line.top <= place.top + _NEAR]
        if titled := [at for at in below if title and self.count_title_lines(at, title)]:
            return titled[0]
        if not below or place.top == inf:
            return below[0] if below else 0
        beside = [at for at in below if self.lines[at].left >= place.left - _NEAR] or below
        highest = max(self.lines[at].top for at in beside)
        return next(at for at in beside if self.lines[at].top >= highest - _NEAR)

    def count_title_lines(self, at: int, title: str) -> int:
        """Count the lines from one on that are a title, perhaps behind a number; 0 if they are not."""
        wanted = _fold(title)
        for count in range(1, _LINES_OF_TITLE + 1):
            text = _fold(" ".join(line.text for line in self.lines[at : at + count]))
            if wanted and text.endswith(wanted) and len(text) - len(wanted) <= _LONGEST_NUMBER:
                return count
        return 0

    def make_fragment(self, page: int, at: int) -> str:
        """Return the fragment that leads to a line."""
        above = any(line.text for line in self.lines[:at])
        return (
            f"page={page + 1}&view=FitH,{self.height - self.lines[at].top:.0f}"
            if above
            else f"page={page + 1}"
        )


def read_pdf_page(content: bytes) -> PageContent:
    """Read a PDF file as one page, divided where its pages, its outline and its links say.

    Without an outline, each page is a section of its own. Lines that many pages begin or end with, and those
    of tables of contents, are left out.

    Args:
        content: The file.

    Raises:
        UnreadablePageError: If it is encrypted or broken, or has no page.
        EmptyPageError: If no page has text, as where all are pictures.
    """
    with _PDFIUM:
        try:
            document = pdfium.PdfDocument(content)
        except pdfium.PdfiumError as error:
            if error.err_code == raw.FPDF_ERR_PASSWORD:
                raise UnreadablePageError("it is encrypted; decrypt it, as with qpdf --decrypt") from error
            raise UnreadablePageError(f"it is no PDF file, or broken: {error}") from error
        try:
            return _read_document(document)
        finally:
            document.close()


def _read_document(document: Any) -> PageContent:
    sheets: list[_Sheet] = []
    broken: list[str] = []
    for number in range(len(document)):
        try:
            sheets.append(_read_sheet(document, number))
        except pdfium.PdfiumError as error:
            broken.append(f"page {number + 1}: {error}")
            sheets.append(_Sheet())
    sheets, left_out = _leave_out_frames(sheets)
    outline = [
        (place, _clean(mark.get_title()), min(mark.level + 1, _DEEPEST))
        for mark in document.get_toc()
        if (place := _read_place(document, raw.FPDFBookmark_GetDest(document, mark)))
    ]
    blocks = tuple(_make_blocks(sheets, outline, tuple(_read_names(document))))
    if not blocks:
        if broken:
            raise UnreadablePageError(f"none of its pages can be read; {broken[0]}")
        raise EmptyPageError("it has no text; if it is scanned, recognize its text first, as with ocrmypdf")
    title = _clean(_BY_PROGRAM.sub("", document.get_metadata_value("Title")))
    problem = f"{broken[0]}; pages that cannot be read: {len(broken)}" if broken else None
    return PageContent(title=title, named=title, blocks=blocks, left_out=left_out, problem=problem)


def _read_sheet(document: Any, number: int) -> _Sheet:
    page = document[number]
    texts = page.get_textpage()
    try:
        lines: list[_Line] = []
        start = 0
        for written in texts.get_text_range().split("\r\n"):
            if text := _HYPHEN.sub("", written.replace("\0", "")).strip():
                first = max(0, raw.FPDFText_GetCharIndexFromTextIndex(texts, start))
                left, _, _, top = texts.get_charbox(first)
                lines.append(_Line(start, text, left, top))
            start += len(written.encode("utf-16-le", "surrogatepass")) // 2 + len("\r\n")
        links = tuple(_read_links(document, page, texts, [line.start for line in lines]))
        return _Sheet(page.get_height(), tuple(lines), links)
    finally:
        texts.close()
        page.close()


def _read_links(document: Any, page: Any, texts: Any, starts: Sequence[int]) -> Iterator[_Link]:
    position, link, box = ctypes.c_int(0), raw.FPDF_LINK(), raw.FS_RECTF()
    last: _Link | None = None
    while starts and raw.FPDFLink_Enumerate(page, position, link):
        target = _read_target(document, link)
        if target is None or not raw.FPDFLink_GetAnnotRect(link, box):
            continue
        label = texts.get_text_bounded(box.left, box.bottom, box.right, box.top)
        if last is not None and last.target == target:  # a link over two lines is two
            last = last._replace(label=f"{last.label}\n{label}")
            continue
        if last is not None:
            yield last._replace(label=_clean(last.label))
        width, height = box.right - box.left, box.top - box.bottom
        at = texts.get_index(box.left + width / 2, box.bottom + height / 2, abs(width), abs(height))
        start = 0 if at is None else raw.FPDFText_GetTextIndexFromCharIndex(texts, at)
        last = _Link(max(0, bisect_right(starts, start) - 1), target, label)
    if last is not None:
        yield last._replace(label=_clean(last.label))


def _read_target(document: Any, link: Any) -> str | _Place | None:
    """Return what a link leads to: a place in its file, another file, or a URL."""
    if place := _read_place(document, raw.FPDFLink_GetDest(document, link)):
        return place
    action = raw.FPDFLink_GetAction(link)
    kind = raw.FPDFAction_GetType(action) if action else None
    written = b""
    if kind == raw.PDFACTION_URI:
        written = _fill(lambda *buffer: raw.FPDFAction_GetURIPath(document, action, *buffer))
    elif kind == raw.PDFACTION_REMOTEGOTO:
        written = _fill(lambda *buffer: raw.FPDFAction_GetFilePath(action, *buffer))
    return written.decode("utf-8", "replace").strip("\0 ") or None


def _fill(read: Callable[[Any, int], int]) -> bytes:
    """Return what a function of PDFium writes into a buffer, once it has said how long it is."""
    size = read(None, 0)
    buffer = ctypes.create_string_buffer(size)
    read(buffer, size)
    return buffer.raw


def _read_place(document: Any, destination: Any) -> _Place | None:
    """Return where a destination is, None if it is on no page."""
    page = raw.FPDFDest_GetDestPageIndex(document, destination) if destination else -1
    if not 0 <= page < len(document):
        return None
    has_x, has_y, has_zoom = raw.FPDF_BOOL(), raw.FPDF_BOOL(), raw.FPDF_BOOL()
    x, y, zoom = raw.FS_FLOAT(), raw.FS_FLOAT(), raw.FS_FLOAT()
    raw.FPDFDest_GetLocationInPage(destination, has_x, has_y, has_zoom, x, y, zoom)
    return _Place(page, x.value if has_x else 0.0, y.value if has_y else inf)


def _read_names(document: Any) -> Iterator[tuple[_Place, str]]:
    """Yield the named destinations of a file, each with where it is."""
    buffer = ctypes.create_string_buffer(_LONGEST_NAME)
    for number in range(min(raw.FPDF_CountNamedDests(document), _MOST_NAMES)):
        size = ctypes.c_long(_LONGEST_NAME)
        place = _read_place(document, raw.FPDF_GetNamedDest(document, number, buffer, size))
        if place and size.value > 0:  # else its name is longer
            yield place, buffer.raw[: size.value].decode("utf-16-le", "replace").rstrip("\0")


def _leave_out_frames(sheets: Sequence[_Sheet]) -> tuple[list[_Sheet], Mapping[str, int]]:
    """Return pages without headers, footers and tables of contents, and how many letters these have.

    A header has the same words on several pages, or the number of the page on many.
    """
    ends = [(number, sheet.lines) for number, sheet in enumerate(sheets) if sheet.lines]
    words = Counter(_NUMBER.sub("", lines[at].text) for _, lines in ends for at in (0, -1))
    numbers = Counter(
        int(written) - page for page, lines in ends for at in (0, -1) for written in _find_numbers(lines[at])
    )
    numbered = {distance for distance, count in numbers.items() if count >= max(_OFTEN, len(ends) / 4)}
    letters: Counter[str] = Counter()
    kept: list[_Sheet] = []
    for page, sheet in enumerate(sheets):
        lines = list(sheet.lines)
        for at, line in enumerate(lines):
            kind = HEADERS if at == 0 else FOOTERS if at == len(lines) - 1 else ""
            if kind and words[_NUMBER.sub("", line.text)] < _OFTEN:
                distances = {int(written) - page for written in _find_numbers(line)}
                kind = "" if numbered.isdisjoint(distances) else kind
            kind = kind or (CONTENTS if _LEADER.search(line.text) else "")
            if kind:
                letters[kind] += count_letters(line.text)
                lines[at] = line._replace(text="")
        kept.append(sheet._replace(lines=tuple(lines)))
    return kept, letters


def _find_numbers(line: _Line) -> list[str]:
    """Return the numbers that a line begins or ends with."""
    return _AT_ENDS.findall(line.text)


def _make_blocks(
    sheets: Sequence[_Sheet], outline: Sequence[tuple[_Place, str, int]], names: Sequence[tuple[_Place, str]]
) -> Iterator[Block]:
    """Yield the blocks of all pages: a new one begins with a page, and where outline and links lead."""
    headings: defaultdict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
    if not outline and len(sheets) > 1:
        outline = [(_Place(page), f"Page {page + 1}", 1) for page in range(len(sheets))]
    for place, title, level in outline:
        if title and any(line.text for line in sheets[place.page].lines):
            headings[place.page, sheets[place.page].find_line(place, title)].append((title, level))
    targets = {link.target for sheet in sheets for link in sheet.links if isinstance(link.target, _Place)}
    lines = {place: sheets[place.page].find_line(place) for place in targets}
    cuts: defaultdict[int, set[int]] = defaultdict(set)
    for page, at in chain(headings, ((place.page, at) for place, at in lines.items())):
        cuts[page].add(at)
    anchors: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for place, name in names:
        anchors[place.page].append((sheets[place.page].find_line(place), f"nameddest={name}"))
    fragments = {place: sheets[place.page].make_fragment(place.page, at) for place, at in lines.items()}
    passed_on: list[str] = []
    for page, sheet in enumerate(sheets):
        starts = sorted({sheet.find_line(_Place(page)), *cuts[page]})
        for start, end in zip(starts, [*starts[1:], len(sheet.lines)], strict=True):
            fragment, titles = sheet.make_fragment(page, start), headings[page, start]
            for title, level in titles:
                yield Block(title, level, anchors=(fragment,), fragment=fragment, starts=True)
            skipped = max((sheet.count_title_lines(start, title) for title, _ in titles), default=0)
            texts = [line.text if at >= skipped else "" for at, line in enumerate(sheet.lines[start:end])]
            before = list(accumulate(map(count_letters, texts), initial=0))
            own = [(0, anchor) for anchor in (*passed_on, *([] if titles else [fragment]))]
            own += [(before[at - start], anchor) for at, anchor in anchors[page] if start <= at < max(end, 1)]
            hyperlinks = [
                (before[link.line - start], Hyperlink(_make_href(link.target, fragments), link.label))
                for link in sheet.links
                if start <= link.line < end and sheet.lines[link.line].text
            ]
            passed_on = [anchor for _, anchor in own][-_MOST_PASSED_ON:]
            if text := "\n".join(filter(None, texts)):
                passed_on = []
                yield Block(
                    text,
                    anchors=tuple(anchor for _, anchor in own),
                    links=tuple(hyperlink for _, hyperlink in hyperlinks),
                    starts=not titles,
                    places=tuple(at for at, _ in (*own, *hyperlinks)),
                )


def _make_href(target: str | _Place, fragments: Mapping[_Place, str]) -> str:
    return target if isinstance(target, str) else f"#{fragments[target]}"


def _clean(text: str) -> str:
    return fold_whitespace(_HYPHEN.sub("", text.replace("\0", "")))


def _fold(text: str) -> str:
    return _BETWEEN_LETTERS.sub("", text).casefold()
