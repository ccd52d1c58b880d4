"""Identifiers are found where their leads stand, as their patterns alone find them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from linkstore_extractors import citations, identifiers

# Letters that are like others where case does not matter, and some that grow in lower case.
ODD = ("\u0130", "\u0131", "\u017f", "\u212a", "\u00df", "\u2019", "\u0307", "\u00e9", "\ud800")
HEADINGS = ("References", "REFERENCES:", "# Bibliography", "Works cited", "footnote\u017f", "l\u0131terature")
WORDS = """
    PEP pep Pep RFC rfc RFCs peps iso ISO ISO/IEC isbn cve- ghsa- draft- pmc CWE bcp - _ . 8 0001 12345
    9000 639-1 :2015 ( ) , pep-0008.html ISBN-13: 978-0-306-40615-7 0306406152 CVE-2021-44228
    GHSA-jfh8-c2jp-5v3q draft-ietf-quic-http-34 PMC12345 pmid:123 cwe-79 ecma-262 ECMA-262 EIP-1 JEP-3
    XEP-0001 arXiv:1706.03762 doi:10.1000/182 x w3.org/TR/css and
"""
PIECES = (
    *WORDS.split(),
    *ODD,
    *(f"{heading}\n" for heading in HEADINGS),
    *("[1] A. Author. Title of the thing. 2019.\n", "\n", " ", "  ", "PEPs 8, 9 and 10", "BCP 14"),
)


def texts():
    chance = random.Random(7)
    return ["".join(chance.choices(PIECES, k=chance.randint(1, 14))) for _ in range(4000)]


def test_leads_find_what_the_patterns_find(monkeypatch):
    found = [identifiers.find_identifiers(text) for text in texts()]
    without = tuple(replace(rule, lead="") for rule in identifiers.IDENTIFIERS)
    monkeypatch.setattr(identifiers, "IDENTIFIERS", without)
    assert found == [identifiers.find_identifiers(text) for text in texts()]
    assert len({mention.tag.partition(":")[0] for mentions in found for mention in mentions}) > 15


def test_lists_of_references_are_found_whatever_the_letters_of_their_heading(monkeypatch):
    found = [citations.find_references(text) for text in texts()]
    monkeypatch.setattr(citations, "_may_have_a_list", lambda text: True)
    assert found == [citations.find_references(text) for text in texts()]
    assert sum(map(len, (one.entries for one in found))) > 50


@pytest.mark.parametrize("rule", identifiers.IDENTIFIERS, ids=lambda rule: rule.name)
def test_a_lead_is_in_lower_case_and_a_hint_too(rule):
    assert rule.lead in rule.hints or not rule.lead
    assert rule.lead == rule.lead.lower()
