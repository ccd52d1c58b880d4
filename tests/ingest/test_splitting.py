"""A long text is divided as LangChain's splitter divides it, in time that grows with its length."""

from __future__ import annotations

import random
import time

import pytest
from langchain_text_splitters import RecursiveCharacterTextSplitter

from linkstore.ingest.chunks import SEPARATORS, split_text

ALPHABETS = ("ab \n", "a\n\n\n ", "abcdef 。\n、", "a \t\n\u3000\uff0c\uff01", "abc")


def divided(text: str, longest: int) -> list[str]:
    """What LangChain's splitter makes of a text; what it leaves too long is cut."""
    splitter = RecursiveCharacterTextSplitter(
        separators=list(SEPARATORS), keep_separator="end", chunk_size=longest, chunk_overlap=0
    )
    return [
        piece[start : start + longest]
        for piece in splitter.split_text(text)
        for start in range(0, len(piece), longest)
    ]


@pytest.mark.parametrize("alphabet", range(len(ALPHABETS)))
def test_the_pieces_are_those_of_langchain(alphabet):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    for _ in range(1500):
        text = "".join(chosen.choices(ALPHABETS[alphabet], k=chosen.choice((1, 3, 10, 60, 200))))
        longest = chosen.choice((1, 2, 3, 5, 8, 20))
        assert split_text(text, longest) == divided(text, longest), (text, longest)


@pytest.mark.parametrize("unit", ["a\n", "word ", "x", "東京都は日本の首都である。", "a\n\n", "\n"])
def test_a_megabyte_is_divided_at_once(unit):
    text = unit * (10**6 // len(unit))
    begun = time.process_time()
    pieces = split_text(text, 1600)
    assert time.process_time() - begun < 0.5
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert max(map(len, pieces), default=0) <= 1600
