"""Decodes a page as browsers do (HTML Living Standard, section 13.2.3)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from w3lib.encoding import (
    html_body_declared_encoding,
    http_content_type_encoding,
    read_bom,
    resolve_encoding,
)

from linkstore.errors import StrategyError

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
_LOST: Final = "\ufffd"
_RIGHT: Final = re.compile(f"[^\0-\x7f{_LOST}]")
UTF_8: Final = "utf-8"
WESTERN: Final = "cp1252"
"""What browsers read a page in that declares nothing."""


class Decoded(NamedTuple):
    """The text of a page, and how sure it is."""

    text: str
    encoding: str
    """The name that Python has for what it was read in."""
    guessed: bool = False
    """Whether nothing declares an encoding, and it is not UTF-8."""
    replaced: int = 0
    """How many characters stand for bytes that are not in the encoding, as U+FFFD."""


def known_encoding(name: str) -> str:
    """Return Python's name for an encoding of text. That of Latin-1 means windows-1252, as on the web.

    Raises:
        StrategyError: If pages are not written in it.
    """
    found = resolve_encoding(name.strip())
    if found is None or not _is_of_text(found):
        raise StrategyError(
            f"no encoding {name!r}; give one such as utf-8, windows-1252, koi8-r or shift_jis"
        )
    return str(found)


def decode_html(content: bytes, *, declared: str | None = None, encoding: str | None = None) -> Decoded:
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
    said = declared_encoding(content, declared) if encoding is None else known_encoding(encoding)
    if said is not None:
        return decode_as(content, said)
    found = decode_as(content, UTF_8)
    if not found.replaced or found.replaced < len(_RIGHT.findall(found.text)):
        return found
    return decode_as(content, WESTERN)._replace(guessed=True)


def declared_encoding(content: bytes, header: str | None = None) -> str | None:
    """Return the encoding of a page without byte-order mark, by its server or itself, None if unknown."""
    by_server, by_itself = http_content_type_encoding(header), html_body_declared_encoding(content)
    for name in (by_server, by_itself):
        if name is None or not _is_of_text(name):
            continue
        wide = name.startswith(("utf-16", "utf-32"))
        return UTF_8 if wide and (name != by_server or b"\0" not in content[:_LOOKED_AT]) else str(name)
    return None


def decode_as(content: bytes, encoding: str) -> Decoded:
    """Decode a page in an encoding, and replace bytes that are not in it.

    Args:
        content: The page, without byte-order mark.
        encoding: A name that Python has.
    """
    try:
        return Decoded(content.decode(encoding), encoding)
    except UnicodeDecodeError:
        text = content.decode(encoding, "replace")
    own = content.decode(encoding, "ignore").count(_LOST)
    return Decoded(text, encoding, replaced=text.count(_LOST) - own)


def _is_of_text(name: str) -> bool:
    return name.replace("-", "").replace("_", "") in _OF_TEXT
