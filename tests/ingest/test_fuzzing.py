"""A sample of what ``make fuzz`` tries: no input breaks a reader, or takes it beyond its bounds."""

from __future__ import annotations

import pytest
from fuzzing.inputs import drawn
from fuzzing.readers import READERS
from fuzzing.trying import attempt

SAMPLE = range(40)


@pytest.mark.parametrize("name", READERS)
def test_no_input_of_the_sample_breaks_a_reader(name):
    assert [made for made in (attempt(name, number) for number in SAMPLE) if made.problem] == []


def test_an_input_is_told_by_its_number():
    pieces = READERS["html"].pieces
    assert drawn(pieces, 7) == drawn(pieces, 7)
    assert len({drawn(pieces, number) for number in SAMPLE}) == len(SAMPLE)


def test_a_reader_that_breaks_is_found(monkeypatch):
    def broken(text):
        raise KeyError(text[:3])

    monkeypatch.setitem(READERS, "url", type(READERS["url"])(READERS["url"].pieces, broken))
    assert attempt("url", 0).problem.startswith("KeyError")
