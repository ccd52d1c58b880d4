"""What bytes are text in, by what they and their server say."""

from __future__ import annotations

import codecs
import random
import zlib

import pytest
from growing import grows_with_length
from internals import UnreadablePageError, decode_html, read_html_page

from linkstore.errors import StrategyError
from linkstore.ingest import PageSettings, WebSettings

TEXT = "<p>Grüße, 東京</p>"


@pytest.mark.parametrize(
    ("content", "declared"),
    [
        (TEXT.encode(), None),
        (b"<meta charset=utf-16>" + TEXT.encode(), None),
        (b'<?xml version="1.0" encoding="UTF-16"?>' + TEXT.encode(), None),
        (TEXT.encode(), "text/html; charset=utf-16"),
        (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), None),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "text/html; charset=latin1"),
        (TEXT.encode("utf-16-le"), "text/html; charset=utf-16le"),
        (TEXT.encode("gb18030"), "text/html; charset=gb2312"),
        (TEXT.encode("shift_jis", "ignore"), "text/html; charset=Shift_JIS"),
        *(
            (f"<meta charset={name}>".encode() + TEXT.encode(), f"text/html; charset={name}")
            for name in (
                "punycode",
                "zlib",
                "hex",
                "idna",
                "unicode_escape",
                "utf-7",
                "x-user-defined",
                "foo",
            )
        ),
    ],
)
def test_a_page_is_decoded(content, declared):
    read = decode_html(content, declared=declared).text
    assert read.endswith("東京</p>")
    assert "<p>Gr" in read


@pytest.mark.parametrize(
    ("content", "declared", "text", "guessed", "replaced"),
    [
        ("<p>Grüße".encode("latin-1"), None, "<p>Grüße", True, 0),
        (b"<p>\x93quoted\x94", None, "<p>“quoted”", True, 0),
        (b"<meta charset=iso-8859-1><p>\x93quoted\x94", None, "<p>“quoted”", False, 0),
        ("<p>Grüße aus Köln ".encode() + b"caf\xe9", None, "<p>Grüße aus Köln caf\ufffd", False, 1),
        ("<p>Grüße, 東京".encode()[:-1], None, "<p>Grüße, 東\ufffd", False, 1),
        ("<meta charset=utf-8><p>Köln".encode("latin-1"), None, "<p>K\ufffdln", False, 1),
        ("<meta charset=koi8-r><p>Köln".encode(), "text/html; charset=utf-8", "<p>Köln", False, 0),
        (codecs.BOM_UTF16_LE + "<p>Köln".encode("utf-16-le")[:-1], None, "<p>Köl\ufffd", False, 1),
        ("<p>a \ufffd that the author wrote".encode(), None, "<p>a \ufffd that the author wrote", False, 0),
    ],
)
def test_a_byte_that_is_not_text_costs_that_byte(content, declared, text, guessed, replaced):
    found = decode_html(content, declared=declared)
    assert found.text.endswith(text)
    assert (found.guessed, found.replaced) == (guessed, replaced)


@pytest.mark.parametrize("name", ["koi8-r", "KOI8-R", " koi8-r "])
def test_what_is_asked_for_wins_over_all_but_the_mark(name):
    page = b"<meta charset=utf-8><p>" + "Привет".encode("koi8-r")
    assert decode_html(page, declared="text/html; charset=latin1", encoding=name).text.endswith("Привет")
    marked = "\ufeff<p>Привет".encode()
    assert decode_html(marked, encoding=name).text == "<p>Привет"


@pytest.mark.parametrize("name", ["zlib", "punycode", "foo", "", "utf-7"])
def test_an_encoding_that_no_page_is_in_is_refused_before_anything_is_read(name):
    for make in (PageSettings, WebSettings):
        with pytest.raises(StrategyError, match="give one such as utf-8"):
            make(encoding=name)


def test_compressed_data_is_no_page_although_each_byte_is_a_letter_of_windows_1252():
    packed = zlib.compress(random.Random(1).randbytes(3000))
    with pytest.raises(UnreadablePageError, match="binary"):
        read_html_page(packed)


@pytest.mark.parametrize("name", ["punycode", "idna", "iso-2022-jp", "gb18030", "utf-16", "big5"])
def test_decoding_takes_time_with_the_length_and_no_more(name):
    def read(length):
        content = f"<meta charset={name}><p>abc</p>-".encode() + b"b9" * (length // 2)
        return decode_html(content)

    assert grows_with_length(read, 20_000)


def test_what_is_binary_is_no_page_whatever_it_declares():
    for content in (b"\0\1\2\3" * 100, b"<meta charset=utf-16>\0\1" * 10):
        with pytest.raises(UnreadablePageError):
            read_html_page(content)
    assert read_html_page("<p>one</p><p>two</p>".encode("utf-16")).blocks[0].text == "one"
