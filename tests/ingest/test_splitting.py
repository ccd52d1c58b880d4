"""A long text is divided as LangChain's splitter divides it, in time that grows with its length."""

from __future__ import annotations

import random
import time

import pytest
from internals import SEPARATORS, ChunkLimits, make_chunks, read_html_page, split_text
from langchain_text_splitters import RecursiveCharacterTextSplitter

from linkstore.extract import Page

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


def divide(html, longest=200):
    content = read_html_page(f"<h1>T</h1>{html}".encode())
    page = Page(url="p.html", title="T")
    return [
        chunk.text.removeprefix("T\n\n")
        for chunk in make_chunks(page, content.blocks, ChunkLimits(longest=longest))
    ]


def make_table(rows):
    cells = "".join(f"<tr><td>name {n}</td><td>what it means</td></tr>" for n in range(rows))
    return f"<table><thead><tr><th>Name</th><th>Meaning</th></tr></thead>{cells}</table>"


def test_each_part_of_a_divided_table_begins_with_its_header():
    parts = divide(make_table(20))
    assert len(parts) > 2
    assert all(part.startswith("Name | Meaning\nname ") for part in parts)
    assert "".join(parts).count("what it means") == 20


def test_a_table_that_fits_into_a_chunk_is_not_divided():
    parts = divide(f"<p>{'word ' * 15}</p><p>The names:</p>{make_table(5)}<p>{'word ' * 30}</p>")
    (part,) = (part for part in parts if "name 0" in part)
    assert part.startswith("The names:\nName | Meaning\nname 0")
    assert part.count("what it means") == 5
