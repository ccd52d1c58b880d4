"""PathBeam: answers as chains, on the oracle."""

from __future__ import annotations

from dataclasses import replace

import pytest
from searching import cuts, ids, paths, store

from linkstore.errors import StrategyError
from linkstore.filters import parse_filter
from linkstore.links import Link
from linkstore.strategies import PathBeam
from linkstore.testing.conformance.probe import at, record, to

ONE = PathBeam(k=1, pool=1)


def test_a_path_is_scored_by_the_mean_of_its_documents() -> None:
    search = store(record("a", 1.0, to("b")), record("b", 0.6, at("b"), to("c")), record("c", 0.2, at("c")))
    hits = search(ONE)
    assert paths(hits) == {"a": "a", "b": "a —[k b]→ b", "c": "a —[k b]→ b —[k c]→ c"}
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.8, 0.6], abs=1e-6)
    assert [hit.depth for hit in hits] == [0, 1, 2]
    assert [sum(hit.contributions.values()) for hit in hits] == pytest.approx([hit.score for hit in hits])
    assert hits[2].contributions == pytest.approx({"document": 0.2, "path": 0.4}, abs=1e-6)
    assert set(ids(search(replace(ONE, depth=1)))) == {"a", "b"}


def test_only_the_best_paths_go_on() -> None:
    search = store(
        record("a", 1.0, to("good"), to("bad")),
        record("good", 0.8, at("good"), to("x")),
        record("bad", 0.1, at("bad"), to("y")),
        record("x", 0.0, at("x")),
        record("y", 0.9, at("y")),
    )
    assert set(ids(search(replace(ONE, beam=1)))) == {"a", "good", "bad", "x"}
    assert set(ids(search(ONE))) == {"a", "good", "bad", "x", "y"}


def test_a_document_keeps_its_own_score_where_no_path_is_better() -> None:
    search = store(record("a", 0.5, to("b")), record("b", 0.9, at("b")))
    hits = search(PathBeam(k=1, pool=2))
    assert (ids(hits), hits[0].contributions) == (["b", "a"], {"document": pytest.approx(1.0)})


def test_a_path_does_not_come_back() -> None:
    search = store(record("a", 1.0, to("b"), at("a")), record("b", 0.5, at("b"), to("a")))
    assert paths(search(replace(ONE, depth=3))) == {"a": "a", "b": "a —[k b]→ b"}


def test_of_two_paths_the_better_leads() -> None:
    search = store(
        record("low", 0.5, to("c")), record("high", 0.9, to("c")), record("c", 0.0, at("c"), to("d"))
    )
    assert paths(search(PathBeam(k=2, pool=2)))["c"] == "high —[k c]→ c"


def test_weights_of_links_damp_what_they_lead_to() -> None:
    search = store(
        record("a", 1.0, to("full"), to("half", weight=0.5)),
        record("full", 0.6, at("full")),
        record("half", 0.6, at("half")),
    )
    scores = {hit.document.id: hit.score for hit in search(ONE)}
    assert scores == pytest.approx({"a": 1.0, "full": 0.8, "half": 0.65}, abs=1e-6)


def test_what_the_query_names_starts_a_path() -> None:
    search = store(
        record("near", 0.9),
        record("named", 0.1, Link.incoming(kind="mention", tag="the needle"), to("x")),
        record("x", 0.1, at("x")),
    )
    hits = search(ONE, text="where is the needle")
    assert paths(hits)["x"] == "—[mention the needle]→ named —[k x]→ x"


def test_it_says_why_there_is_nothing_and_what_was_left_out() -> None:
    search = store(record("a", 0.9, to("b"), tag="t"), record("b", 0.8, at("b")))
    assert "passes result_filter" in (search(ONE, result_filter=parse_filter({"tag": "no"})).reason or "")
    assert ("filter", 1, None) in cuts(search(ONE, result_filter=parse_filter({"tag": "t"})))
    assert store()(ONE).reason == "the store is empty"
    assert len(search(ONE.limited(1))) == 1


@pytest.mark.parametrize(
    "wrong", [{"k": -1}, {"depth": -1}, {"beam": 0}, {"pool": 0}, {"lexical": 101}], ids=str
)
def test_settings_out_of_range_are_refused(wrong) -> None:
    with pytest.raises(StrategyError, match=next(iter(wrong))):
        PathBeam(**wrong)
