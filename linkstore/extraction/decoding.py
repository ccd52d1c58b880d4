"""Decodes a page by the encoding that it declares (HTML Living Standard, section 13.2.3)."""

from __future__ import annotations

from typing import Final

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom

_NAMES: Final = """
    utf-8 utf-8-sig utf-16 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be
    cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp866 cp874 cp437 cp850 cp852
    iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9 iso8859-10
    iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 koi8-r koi8-u mac-roman mac-cyrillic tis-620
    gb18030 big5hkscs euc_jp iso2022_jp cp932 shift_jis cp949 euc_kr iso2022_kr
"""
_OF_TEXT: Final = frozenset(name.replace("-", "").replace("_", "") for name in _NAMES.split())
"""What pages are written in. Python knows more names, some of no encodings of text (``zlib``), and decodes
some in quadratic time (``punycode``)."""
_LOOKED_AT: Final = 1024


def decode_html(
    content: bytes, *, declared: str | None = None, fallback: str = "utf-8", errors: str = "strict"
) -> str:
    """Decode a page by its byte-order mark, else as its server says, its ``<meta charset>`` or ``fallback``.

    A declared encoding that is unknown, or none that pages are written in, counts for nothing; nor does
    UTF-16 where the declaration can be read as ASCII.

    Args:
        content: The page.
        declared: The ``Content-Type`` that its server gives it, if any.
        fallback: The encoding of a page that declares none.
        errors: What is done with bytes that are not in the encoding, as for ``bytes.decode``.

    Raises:
        UnicodeDecodeError: If the bytes are not in that encoding and ``errors`` is ``"strict"``.
        LookupError: If ``fallback`` is not an encoding.
    """
    marked, mark = read_bom(content)
    if marked is not None and mark is not None:
        return content[len(mark) :].decode(marked, errors)
    return content.decode(declared_encoding(content, declared) or fallback, errors)


def declared_encoding(content: bytes, header: str | None = None) -> str | None:
    """The encoding that a page without byte-order mark is in, by its server or itself; None if unknown."""
    by_server, by_itself = http_content_type_encoding(header), html_body_declared_encoding(content)
    for name in (by_server, by_itself):
        if name is None or name.replace("-", "").replace("_", "") not in _OF_TEXT:
            continue
        wide = name.startswith(("utf-16", "utf-32"))
        return "utf-8" if wide and (name != by_server or b"\0" not in content[:_LOOKED_AT]) else str(name)
    return None
