"""Citations: identifiers, reference lists, and what a document is."""

from __future__ import annotations

import pytest
from growing import grows_with_length
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import IDENTIFIERS, CitationExtractor, Link, find_identifiers, find_references, isbn13
from langchain_core.documents import Document

from linkstore.extract import LinkExtractor, QueryExtractor

EXTRACTOR = CitationExtractor()

NUMBERED = """Walking over links

Links help [1, 3-4]; see also RFC 9110 [2]. Arrays such as a[1] do not cite, nor does [9].

## References

[1] J. Smith and P. Jones. Deep learning for hyperlinked documents. In Proc. ACL, 2019.
[2] HTTP Semantics, https://www.rfc-editor.org/rfc/rfc9110
    with a second line
[3] Vaswani, A. et al. (2017). Attention is all you need. arXiv:1706.03762v5
4. "Link groups considered useful," Doe, 2020, doi:10.1000/XYZ.

## Copyright

This is no entry [1], and neither is
[5] J. Doe. What stands after the list. 2020.
"""
AUTHOR_YEAR = """Smith et al. (2019) showed this; so did others (Smith & Jones, 2019; Lee 2020b). In
May 2019 it rained. Müller's (2001) work is older.

Bibliography
============

Smith, J., Brown, K. and Jones, P. (2019). Walking over the links of
documents. Journal of X, 3(2), 1-9.

Lee, A. 2020a. What we know of hyperlinks. Proc. Y. https://doi.org/10.1145/1234567.

Lee, A. 2020b. What we do not know of hyperlinks! Proc. Z.

Müller, Ö. (2001) Wege durch das Netz. Verlag.
"""


def found(text: str) -> list[str]:
    return [mention.tag for mention in find_identifiers(text)]


def outgoing(text: str) -> dict[str, Link]:
    return {link.tag: link for link in EXTRACTOR.extract(text) if link.direction == "out"}


def incoming(text: str = "", **metadata: object) -> set[str]:
    links = EXTRACTOR.extract(Document(page_content=text, metadata=metadata))
    return {link.tag for link in links if link.direction == "in"}


def test_it_speaks_both_protocols() -> None:
    assert isinstance(EXTRACTOR, LinkExtractor)
    assert isinstance(EXTRACTOR, QueryExtractor)


@pytest.mark.parametrize(
    ("tag", "spellings"),
    [
        (
            "doi:10.1145/3292500.3330701",
            [
                "10.1145/3292500.3330701",
                "doi:10.1145/3292500.3330701",
                "DOI: 10.1145/3292500.3330701",
                "https://doi.org/10.1145/3292500.3330701",
                "http://dx.doi.org/10.1145/3292500.3330701",
                "https://dl.acm.org/doi/10.1145/3292500.3330701",
            ],
        ),
        ("doi:10.1000/xyz(2)", ["doi:10.1000/XYZ(2)"]),
        (
            "arxiv:2502.14802",
            [
                "arXiv:2502.14802",
                "arxiv 2502.14802v2",
                "https://arxiv.org/abs/2502.14802v1",
                "https://arxiv.org/pdf/2502.14802v1.pdf",
                "export.arxiv.org/abs/2502.14802",
                "arXiv preprint arXiv:2502.14802",
                "https://doi.org/10.48550/arXiv.2502.14802",
            ],
        ),
        ("arxiv:math/0309136", ["arXiv:math/0309136v1", "https://arxiv.org/abs/math.GT/0309136"]),
        ("arxiv:hep-th/9901001", ["arXiv:hep-th/9901001"]),
        (
            "pmid:12345678",
            ["PMID: 12345678", "PMID12345678", "https://pubmed.ncbi.nlm.nih.gov/12345678/"],
        ),
        ("pmcid:pmc7654321", ["PMC7654321", "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC7654321/"]),
        (
            "isbn:9780306406157",
            [
                "ISBN 0-306-40615-2",
                "ISBN-10: 0306406152",
                "ISBN-13: 978-0-306-40615-7",
                "isbn 978 0 306 40615 7",
                "urn:isbn:9780306406157",
            ],
        ),
        ("isbn:9780804429573", ["ISBN 0-8044-2957-X", "ISBN 080442957x"]),
        (
            "rfc:9110",
            [
                "RFC 9110",
                "rfc9110",
                "RFC-9110",
                "https://www.rfc-editor.org/rfc/rfc9110.html#name-methods",
                "https://datatracker.ietf.org/doc/html/rfc9110",
                "doi:10.17487/RFC9110",
            ],
        ),
        ("rfc:822", ["RFC 0822", "RFC822"]),
        (
            "pep:8",
            [
                "PEP 8",
                "PEP8",
                "pep-0008",
                "https://peps.python.org/pep-0008/",
                "python.org/dev/peps/pep-0008",
            ],
        ),
        ("cve:2025-67644", ["CVE-2025-67644", "https://nvd.nist.gov/vuln/detail/cve-2025-67644"]),
        ("cwe:79", ["CWE-79"]),
        ("ghsa:c3gv-9cxf-6f57", ["GHSA-c3gv-9cxf-6f57"]),
        (
            "w3c:trace-context",
            [
                "https://www.w3.org/TR/trace-context/",
                "https://www.w3.org/TR/2021/REC-trace-context-20211123/",
            ],
        ),
        ("iso:8601", ["ISO 8601", "ISO-8601", "ISO 8601:2004"]),
        ("iso:8859-1", ["ISO 8859-1", "ISO/IEC 8859-1:1998"]),
        ("bcp:14", ["BCP 14", "BCP14"]),
        ("draft:draft-ietf-quic-http", ["draft-ietf-quic-http-34", "draft-ietf-quic-http"]),
        ("draft:draft-nottingham-foo", ["draft-nottingham-foo-01"]),
        ("ecma:262", ["ECMA-262"]),
        ("eip:1559", ["EIP-1559"]),
        ("jep:444", ["JEP 444"]),
        ("xep:30", ["XEP-0030"]),
    ],
)
def test_every_spelling_of_an_identifier_gives_the_same_tag(tag: str, spellings: list[str]) -> None:
    for spelling in spellings:
        for around in ("{}", "see {}.", "({})", "[{}]", "as in {}, and", "{}; then", "<{}>", "“{}”"):
            assert found(around.format(spelling)) == [tag], around.format(spelling)


@pytest.mark.parametrize(
    "text",
    [
        "version 10.15.7/2 and 1.2.3, v2502.14802",
        "2502.14802 without its prefix",
        "2024-01-01, 12/10/2023",
        "a[1] = b[2][3]",
        "10.0.0.0/8 and 10.1234 and 10.1234/",
        "arXiv:2513.00001 has no month 13",
        "ISBN 0-306-40615-3 has a wrong check digit, ISBN 12345 is too short",
        "a pep talk, recipe 8, pep88888, RFC, prfc 12, RFC123456",
        "draft-mode-enabled, draft-a",
        "ISO 200 film, isometric, iso 8601 in lower case",
        "CVE-99-1, GHSA-aaaa-bbbb-cccc",
        "ecma-262 eip-1 in lower case",
    ],
)
def test_versions_dates_indices_and_lookalikes_are_no_identifiers(text: str) -> None:
    assert found(text) == []


def test_identifiers_stand_in_order_and_say_how_they_were_written() -> None:
    text = "RFC 9110, then https://doi.org/10.1000/xyz; last PEP 8."
    mentions = find_identifiers(text)
    assert [mention.tag for mention in mentions] == ["rfc:9110", "doi:10.1000/xyz", "pep:8"]
    assert [text[mention.start : mention.end] for mention in mentions] == [
        mention.written for mention in mentions
    ]


def test_rules_have_names_of_their_own_and_hints_in_lower_case() -> None:
    assert len({rule.name for rule in IDENTIFIERS}) == len(IDENTIFIERS)
    for rule in IDENTIFIERS:
        assert all(hint == hint.lower() for hint in rule.hints)


@given(st.text(alphabet="0123456789", min_size=9, max_size=9))
def test_an_isbn_10_becomes_the_isbn_13_of_the_same_book(stem: str) -> None:
    check = -sum((10 - place) * int(digit) for place, digit in enumerate(stem)) % 11
    isbn10 = stem + ("X" if check == 10 else str(check))
    converted = isbn13(isbn10)
    assert converted is not None
    assert converted[:12] == "978" + stem
    assert isbn13(converted) == converted
    wrong = isbn10[:-1] + ("0" if isbn10[-1] != "0" else "1")
    assert isbn13(wrong) is None
    assert found(f"ISBN {isbn10}") == [f"isbn:{converted}"] == found(f"ISBN {converted}")


def test_an_isbn_13_with_a_wrong_check_digit_is_none() -> None:
    assert isbn13("9780306406157") == "9780306406157"
    assert isbn13("9780306406158") is None
    assert isbn13("123") is None


def test_numbered_references_are_resolved_in_the_documents_own_list() -> None:
    links = outgoing(NUMBERED)
    assert list(links) == [
        "ref:deep learning for hyperlinked documents",
        "arxiv:1706.03762",
        "doi:10.1000/xyz",
        "rfc:9110",
    ]
    assert links["arxiv:1706.03762"].label == "Attention is all you need"
    assert links["doi:10.1000/xyz"].label == "Link groups considered useful"


def test_the_more_often_a_work_is_cited_the_more_its_link_weighs() -> None:
    links = outgoing(NUMBERED)
    assert links["rfc:9110"].weight == 0.75
    assert links["ref:deep learning for hyperlinked documents"].weight == 0.75
    assert links["doi:10.1000/xyz"].weight == 0.5
    assert outgoing("PEP 8, PEP 8 and PEP 8; PEP 20.")["pep:8"].weight == 0.875


def test_an_entry_that_the_text_never_cites_still_counts() -> None:
    assert outgoing("Text.\n\nReferences\n\n[1] J. Doe. A title of some length. 2020.\n") == {
        Link.outgoing(kind="citation", tag="ref:a title of some length").tag: Link.outgoing(
            kind="citation", tag="ref:a title of some length"
        )
    }


def test_author_year_references_are_resolved_in_the_documents_own_list() -> None:
    links = outgoing(AUTHOR_YEAR)
    assert {tag: link.weight for tag, link in links.items()} == {
        "ref:walking over the links of documents": 0.75,
        "ref:what we do not know of hyperlinks": 0.5,
        "ref:wege durch das netz": 0.5,
        "doi:10.1145/1234567": 0.5,
    }
    assert list(links)[:3] == [
        "ref:walking over the links of documents",
        "ref:what we do not know of hyperlinks",
        "ref:wege durch das netz",
    ]
    entries = find_references(AUTHOR_YEAR).entries
    assert [(entry.author, entry.year) for entry in entries] == [
        ("smith", "2019"),
        ("lee", "2020a"),
        ("lee", "2020b"),
        ("müller", "2001"),
    ]


@pytest.mark.parametrize(
    "heading",
    [
        "References",
        "## References",
        "**References**",
        "REFERENCES:",
        "7. References",
        "Works Cited",
        "# Literature",
    ],
)
def test_the_heading_of_the_list_may_be_written_in_many_ways(heading: str) -> None:
    text = f"Text [1].\n\n{heading}\n\n[1] J. Doe. A title of some length. 2020.\n"
    assert list(outgoing(text)) == ["ref:a title of some length"]


@pytest.mark.parametrize(
    "entry",
    [
        "[1] J. Doe and A. B. Roe. A title of some length. Proc. X, 2020.",
        "1. Doe, J. (2020). A title of some length. Journal of Y.",
        "1) Doe, J., Roe, A. et al. A title of some length. 2020.",
        "- [1] Doe, J. 2020. A title of some length. Publisher.",
        ".. [1] J. Doe, “A title of some length,” 2020.",
        '[^1]: J. Doe, "A Title of Some Length", 2020.',
        "Doe, J. (2020). *A title of some length*. Journal of Z.",
        "* Doe, J. (2020b). A title\n  of some length. https://example.org/x.y",
    ],
)
def test_the_title_is_found_in_entries_of_many_shapes(entry: str) -> None:
    assert list(outgoing(f"Text.\n\nReferences\n\n{entry}\n")) == ["ref:a title of some length"]


@pytest.mark.parametrize(
    "entry",
    [
        "[1] https://example.org/a/b.html",
        "[1] J. Doe. Short title. 2020.",
        "[1] Discussed in 2020: see there.",
    ],
)
def test_an_entry_without_identifier_or_telling_title_gives_no_link(entry: str) -> None:
    assert outgoing(f"Text [1].\n\nReferences\n\n{entry}\n") == {}


def test_without_a_list_brackets_and_years_cite_nothing() -> None:
    assert outgoing("See [1] and Smith (2019).") == {}
    assert find_references("References to nothing.\n").entries == ()


@pytest.mark.parametrize(
    ("metadata", "tag"),
    [
        ({"doi": "https://doi.org/10.1145/ABC"}, "doi:10.1145/abc"),
        ({"DOI": "10.1145/ABC"}, "doi:10.1145/abc"),
        ({"arxiv_id": "2502.14802v3"}, "arxiv:2502.14802"),
        ({"Entry ID": "http://arxiv.org/abs/1706.03762v5"}, "arxiv:1706.03762"),
        ({"pmid": 12345}, "pmid:12345"),
        ({"pmc": "PMC1234567"}, "pmcid:pmc1234567"),
        ({"isbn": ["0-306-40615-2"]}, "isbn:9780306406157"),
        ({"rfc": 9110}, "rfc:9110"),
        ({"pep": "0008"}, "pep:8"),
        ({"cve": "2025-67644"}, "cve:2025-67644"),
        ({"title": "PEP 8"}, "pep:8"),
        ({"title": "PEP 8 \u2013 Style Guide for Python Code"}, "pep:8"),
        ({"title": "RFC 9110: HTTP Semantics"}, "rfc:9110"),
        ({"title": "RFC 9110 - HTTP Semantics"}, "rfc:9110"),
        ({"url": "/pep-0008/"}, "pep:8"),
        ({"source": "rfcs/rfc9110.txt"}, "rfc:9110"),
        ({"title": "Attention Is All You Need"}, "ref:attention is all you need"),
        ({"title": "Attention is all you need | Some Site"}, "ref:attention is all you need"),
    ],
)
def test_a_document_says_what_it_is_in_metadata_title_or_url(metadata: dict[str, object], tag: str) -> None:
    assert tag in incoming("Text.", **metadata)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("PEP 8 \u2013 Style Guide\n\nText.", {"pep:8"}),
        ("# RFC 9110: HTTP Semantics\n\nText.", {"rfc:9110", "ref:rfc 9110 http semantics"}),
        ("# Attention is all you need\n\nText.", {"ref:attention is all you need"}),
        ("PEP 8 is a style guide.", set()),
        ("Attention is all you need\n\nText.", set()),
    ],
)
def test_without_metadata_the_first_line_may_say_what_a_document_is(text: str, tags: set[str]) -> None:
    assert incoming(text) == tags


@pytest.mark.parametrize(
    "metadata",
    [
        {"doi": "n/a", "isbn": "0-306-40615-3", "pep": None, "rfc": 1.5, "title": 3},
        {"title": "RFC 9110 explained"},
        {"title": "Introduction"},
        {"title": "PEP 8 \u2013 Style Guide for Python Code", "url": "/pep-0008#naming"},
        {"url": "/about-pep-0008"},
    ],
)
def test_what_is_no_such_identifier_or_a_part_of_a_page_declares_nothing(metadata: dict[str, object]) -> None:
    assert not {tag for tag in incoming("Text.", **metadata) if not tag.startswith("ref:rfc 9110 explained")}


def test_a_document_does_not_cite_itself() -> None:
    links = EXTRACTOR.extract(Document(page_content="PEP 8 says PEP 20.", metadata={"pep": 8}))
    assert [(link.direction, link.tag) for link in links] == [("in", "pep:8"), ("out", "pep:20")]


def test_a_cited_document_and_the_one_that_cites_it_meet() -> None:
    cited = EXTRACTOR.extract(
        Document(page_content="…", metadata={"title": "Deep Learning for Hyperlinked Documents"})
    )
    assert {link.tag for link in cited} & set(outgoing(NUMBERED))


def test_a_question_names_works_by_identifier() -> None:
    links = EXTRACTOR.extract_query("What does RFC 9110 say that rfc2616 and PEP 8 do not, RFC 9110 again?")
    assert [(link.tag, link.direction, link.weight) for link in links] == [
        ("rfc:9110", "out", 1.0),
        ("rfc:2616", "out", 1.0),
        ("pep:8", "out", 1.0),
    ]
    assert EXTRACTOR.extract_query("What is a link?") == ()


def test_the_kind_can_be_chosen() -> None:
    extractor = CitationExtractor(kind="cites")
    assert {link.kind for link in extractor.extract("PEP 8: Style\n\nRFC 1")} == {"cites"}


PIECES = st.sampled_from(
    [
        "[1]",
        "RFC 9110",
        "\n\nReferences\n\n",
        "[1] A. B. Title of a work. 2019\n",
        "Smith, J. (2019). ",
        "(2019)",
        "doi:10.1000/a.b)",
    ]
)


@settings(max_examples=300)
@given(st.lists(st.text(max_size=30) | PIECES, max_size=12).map("".join), st.text(max_size=30))
def test_any_text_gives_valid_links_the_same_every_time(text: str, title: str) -> None:
    document = Document(page_content=text, metadata={"title": title, "url": title, "doi": title})
    links = EXTRACTOR.extract(document)
    assert [link.to_dict() for link in links] == [link.to_dict() for link in EXTRACTOR.extract(document)]
    assert len(set(links)) == len(links)
    assert all(0.5 <= link.weight <= 1 for link in links)
    assert all(link.tag == link.tag.strip() for link in links)
    EXTRACTOR.extract_query(text)


@settings(max_examples=100)
@given(st.permutations(["RFC 1", "PEP 2", "CVE-2020-1234", "doi:10.1000/a", "arXiv:2502.14802", "BCP 14"]))
def test_links_stand_in_the_order_of_the_text(written: list[str]) -> None:
    links = EXTRACTOR.extract(f"Of {', then '.join(written)}.")
    assert [link.label for link in links] == written


@pytest.mark.parametrize(
    "piece",
    ["10.1234/", "[1,", "draft-a-", "References\n\n[1] a\n", "Aa et al. ", "GHSA-", "\n \n", '"', "((("],
)
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    end = "\n\nReferences\n\nSmith, J. 2019. Title of it all.\n"
    assert grows_with_length(lambda length: EXTRACTOR.extract(piece * (length // len(piece)) + end), 25_000)
