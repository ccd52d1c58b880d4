"""Strings that programs trip over, generated from a seed."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable

FRAGMENTS = (
    "'",
    "''",
    '"',
    '""',
    "`",
    "$$",
    "$",
    "?",
    "??",
    ":name",
    "%s",
    "%",
    "{}",
    "{0}",
    "\\",
    "\\u0000",
    "\\x00",
    "--",
    "//",
    "/* */",
    ";",
    ",",
    "(",
    ")",
    "[",
    "]",
    "'; DROP TABLE t; --",
    "' OR '1'='1",
    "APPLY BATCH;",
    "USING TTL 1",
    "token(id)",
    "null",
    "NULL",
    "None",
    "true",
    "NaN",
    "-1",
    "1e309",
    "0x00",
    "{'a': 1}",
    '{"$gt": ""}',
    "in",
    "out",
    "bidir",
    "id",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\u00a0",
    "\u200b",
    "\u2028",
    "\ufeff",
)
RIGHT_TO_LEFT = "אבגדהﷺابتثجح\u200f\u202e\u202b\u2067"
MARKS = "".join(map(chr, range(0x300, 0x370)))
EMOJI = ("😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇫🇷", "👍🏽", "1️⃣", "❤️", "\U0001f9d1\u200d\U0001f680")
CONTROLS = "".join(map(chr, [*range(1, 32), *range(127, 160)]))
TWICE = ("é", "Å", "ﬁ", "ǆ", "İ", "ß", "Ω", "한글", "ẛ̣")
"""Which have several spellings: composed or not, in capitals or not."""
PLANES = ((0x20, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x1FFFF), (0x20000, 0x3FFFF), (0xE0000, 0x10FFFF))
LENGTHS = (127, 128, 255, 256, 511, 512, 513, 1023, 1024, 1025, 4096, 8191, 8192)
LONGEST = 8192
"""Bytes of UTF-8; the longest tag that there may be."""


def strings(count: int, seed: int) -> list[str]:
    """So many different strings, each of 1 to :data:`LONGEST` bytes and without NUL."""
    source = random.Random(seed)
    found: dict[str, None] = {}
    makers = (_cql, _any_plane, _right_to_left, _combining, _emoji, _controls, _long)
    while len(found) < count:
        made = source.choice(makers)(source)
        for spelt in (made, *_spellings(source, made)):
            if 0 < len(spelt.encode()) <= LONGEST:
                found[spelt] = None
    return list(found)[:count]


def _some(source: random.Random, of: Callable[[], str], most: int) -> str:
    return "".join(of() for _ in range(source.randint(1, most)))


def _cql(source: random.Random) -> str:
    return _some(source, lambda: source.choice((*FRAGMENTS, "a", "Z", "7")), 6)


def _any_plane(source: random.Random) -> str:
    return _some(source, lambda: chr(source.randint(*source.choice(PLANES))), 12)


def _right_to_left(source: random.Random) -> str:
    return _some(source, lambda: source.choice((*RIGHT_TO_LEFT, "a", " ")), 12)


def _combining(source: random.Random) -> str:
    return _some(source, lambda: source.choice((*TWICE, "a", "o")) + source.choice(MARKS), 20)


def _emoji(source: random.Random) -> str:
    return _some(source, lambda: source.choice(EMOJI), 5)


def _controls(source: random.Random) -> str:
    return _some(source, lambda: source.choice((*CONTROLS, "a")), 8)


def _long(source: random.Random) -> str:
    """Of a length that is a limit somewhere, in bytes, or a little less."""
    start = f"{source.randrange(10**6)} "
    filling = source.choice(("a", "'", "é", "漢", "😀"))
    return start + filling * ((source.choice(LENGTHS) - len(start)) // len(filling.encode()))


def _spellings(source: random.Random, text: str) -> list[str]:
    """Other strings that some programs take for the same."""
    ways: list[Callable[[str], str]] = [
        lambda text: unicodedata.normalize("NFC", text),
        lambda text: unicodedata.normalize("NFD", text),
        lambda text: unicodedata.normalize("NFKC", text),
        str.upper,
        str.lower,
        lambda text: text + " ",
        lambda text: " " + text,
    ]
    return [way(text) for way in source.sample(ways, 2)] if source.random() < 0.4 else []
