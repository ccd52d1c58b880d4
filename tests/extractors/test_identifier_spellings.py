"""How works are named in running text."""

from __future__ import annotations

import pytest
from internals import CitationExtractor
from langchain_core.documents import Document


def cited(text):
    return [link.tag for link in CitationExtractor().extract(text) if link.direction == "out"]


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("See https://doi.org/10.1000%2F182.", ["doi:10.1000/182"]),
        ("See https://doi.org/10.1002/(SICI)1097%2D4571 there.", ["doi:10.1002/(sici)1097-4571"]),
        ("See ISBN 978\u20133\u201316\u2013148410\u20130", ["isbn:9783161484100"]),
        ("See ISBN\u00a0978\u20113\u201116\u2011148410\u20110.", ["isbn:9783161484100"]),
        ("By RFCs 2616 and 7230 it holds.", ["rfc:2616", "rfc:7230"]),
        ("RFCs 7230, 7231, and 9110", ["rfc:7230", "rfc:7231", "rfc:9110"]),
        ("PEPs 8 & 257, 12 others", ["pep:8", "pep:257", "pep:12"]),
        ("RFCs 123456 and rfcsomething 5", []),
    ],
)
def test_what_a_text_cites(text, tags):
    assert cited(text) == tags


@pytest.mark.parametrize("title", ["PEP 8 -- Style Guide", "PEP 8 - Style Guide", "PEP 8 \u2013 Style Guide"])
def test_what_a_title_says_the_document_is(title):
    found = CitationExtractor().extract(Document(page_content="Text.", metadata={"title": title}))
    assert "pep:8" in [link.tag for link in found if link.direction == "in"]
