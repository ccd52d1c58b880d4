"""The numbered cases of docs/contract.md are exactly those that the conformance suite holds."""

from __future__ import annotations

import re
from pathlib import Path

import conformance
from conformance import BackendConformance, SmallStoreCases
from conformance.lexical import LexicalCases

CONTRACT = Path(__file__).parents[2] / "docs" / "contract.md"
NUMBER = re.compile(r"[A-Z]-\d+")


def stated() -> list[str]:
    return re.findall(r"^- \*\*([A-Z]-\d+)\*\* ", CONTRACT.read_text(), re.MULTILINE)


class Whole(BackendConformance, SmallStoreCases, LexicalCases):
    """What a backend can be held to."""


def cases() -> dict[str, str]:
    names = (name for name in dir(Whole) if name.startswith("test_"))
    return {name: getattr(Whole, name).__doc__ or "" for name in names}


def cited(docstring: str) -> list[str]:
    found = re.match(r"\[([^\]]+)\] ", docstring)
    return NUMBER.findall(found.group(1)) if found else []


def test_every_case_cites_a_number() -> None:
    assert [name for name, docstring in cases().items() if not cited(docstring)] == []


def test_the_numbers_stated_are_the_numbers_held() -> None:
    held = {number for docstring in cases().values() for number in cited(docstring)}
    assert held == set(stated())


def test_numbers_are_stated_once_and_count_up() -> None:
    numbers = stated()
    letters = list(dict.fromkeys(number[0] for number in numbers))
    expected = [
        f"{letter}-{n}"
        for letter in letters
        for n in range(1, 1 + sum(number[0] == letter for number in numbers))
    ]
    assert numbers == expected


def test_no_case_hides_another() -> None:
    """The suite joins its parts by inheritance: two tests of one name would be one test."""
    parts = [getattr(conformance, name) for name in conformance.__all__ if name != "BackendConformance"]
    own = [name for part in parts for name in vars(part) if name.startswith("test_")]
    assert len(own) == len(set(own)) == len(cases())
