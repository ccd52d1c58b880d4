"""Writes small PDF files by hand (ISO 32000-1): text, links, an outline, names, and what is broken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

FIRST_PAGE = 10
"""The number of the object of the first page; its text is the next one."""
LINE = 20
TOP = 742


def write_pdf(
    pages: Sequence[Sequence[str]],
    *,
    links: Sequence[tuple[int, int, str]] = (),
    outline: Sequence[tuple[str, str]] = (),
    names: Sequence[tuple[str, str]] = (),
    info: str = "",
    trailer: str = "",
    objects: Iterable[tuple[int, bytes]] = (),
) -> bytes:
    """Write a file.

    Args:
        pages: The lines of each page.
        links: Page and line, from 0, and the rest of the annotation, such as ``/Dest [10 0 R /Fit]``.
        outline: Titles with their destinations, on one level.
        names: Named destinations.
        info: Entries of the information dictionary.
        trailer: Further entries of the trailer.
        objects: Further objects, which take the place of others of their number.
    """
    kids = " ".join(map(refer, range(len(pages))))
    written: dict[int, bytes] = {
        1: b"<< /Type /Catalog /Pages 2 0 R /Outlines 5 0 R /Names << /Dests 6 0 R >> >>",
        2: f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>".encode(),
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
        4: f"<< {info} >>".encode(),
        6: f"<< /Names [{' '.join(f'({name}) {place}' for name, place in sorted(names))}] >>".encode(),
    }
    for number, lines in enumerate(pages):
        shown = " ".join(
            f"1 0 0 1 72 {TOP - LINE * at} Tm ({escape(line)}) Tj" for at, line in enumerate(lines)
        )
        annotations = " ".join(
            f"<< /Type /Annot /Subtype /Link /Border [0 0 0] {box(at)} {rest} >>"
            for page, at, rest in links
            if page == number
        )
        written[FIRST_PAGE + 2 * number] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 3 0 R >> >>"
            f" /Contents {FIRST_PAGE + 2 * number + 1} 0 R /Annots [{annotations}] >>"
        ).encode()
        written[FIRST_PAGE + 2 * number + 1] = stream(f"BT /F 10 Tf {shown} ET".encode("latin-1"))
    first = FIRST_PAGE + 2 * len(pages)
    for at, (title, place) in enumerate(outline):
        following = f"/Next {first + at + 1} 0 R" if at + 1 < len(outline) else ""
        written[first + at] = f"<< /Title ({title}) /Parent 5 0 R {following} /Dest {place} >>".encode()
    ends = f"/First {first} 0 R /Last {first + len(outline) - 1} 0 R" if outline else ""
    written[5] = f"<< /Type /Outlines {ends} >>".encode()
    written.update(objects)
    return assemble(written, trailer)


def assemble(objects: dict[int, bytes], trailer: str) -> bytes:
    """Write objects one after another, and the table of where each is."""
    body, offsets = b"%PDF-1.7\n", {}
    for number, content in sorted(objects.items()):
        offsets[number] = len(body)
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(
        b"%010d 00000 n \n" % offsets[number] if number in offsets else b"0000000000 65535 f \n"
        for number in range(max(offsets) + 1)
    )
    size = max(offsets) + 1
    end = f"trailer\n<< /Size {size} /Root 1 0 R /Info 4 0 R {trailer} >>\nstartxref\n{len(body)}\n%%EOF\n"
    return body + b"xref\n0 %d\n" % size + table + end.encode()


def refer(page: int) -> str:
    """Return a reference to a page, from 0."""
    return f"{FIRST_PAGE + 2 * page} 0 R"


def to_line(page: int, line: int) -> str:
    """Return a destination, as LaTeX writes it: a little above a line."""
    return f"[{refer(page)} /XYZ 72 {TOP - LINE * line + 10} null]"


def box(line: int) -> str:
    """Return where a line is."""
    return f"/Rect [72 {TOP - LINE * line - 2} 540 {TOP - LINE * line + 9}]"


def escape(text: str) -> str:
    """Return a text as it stands in a string."""
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def stream(content: bytes, more: str = "") -> bytes:
    """Write a stream."""
    return b"<< /Length %d %b >>\nstream\n%b\nendstream" % (len(content), more.encode(), content)
