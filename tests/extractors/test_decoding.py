"""What bytes are text in, by what they and their server say."""

from __future__ import annotations

import codecs

import pytest
from growing import grows_with_length

from linkstore.extraction.decoding import decode_html
from linkstore.ingest.html.pages import UnreadablePageError, read_html_page

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
    read = decode_html(content, declared=declared)
    assert read.endswith("東京</p>")
    assert "<p>Gr" in read


@pytest.mark.parametrize("name", ["punycode", "idna", "iso-2022-jp", "gb18030", "utf-16", "big5"])
def test_decoding_takes_time_with_the_length_and_no_more(name):
    def read(length):
        content = f"<meta charset={name}><p>abc</p>-".encode() + b"b9" * (length // 2)
        return decode_html(content, errors="replace")

    assert grows_with_length(read, 20_000)


def test_what_is_binary_is_no_page_whatever_it_declares():
    for content in (b"\0\1\2\3" * 100, b"<meta charset=utf-16>\0\1" * 10):
        with pytest.raises(UnreadablePageError):
            read_html_page(content)
    assert read_html_page("<p>one</p><p>two</p>".encode("utf-16")).blocks[0].text == "one"
