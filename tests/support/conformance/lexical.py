"""B: documents by their words."""

from __future__ import annotations

import random

import numpy as np
import pytest
from oracle import OracleBackend

from conformance.base import Cases
from conformance.probe import CLAIM, Probe, drive_by_run, make_record
from conformance.scope import LexicalScopeCases
from linkstore.core.filters import EVERYTHING, Filter, parse_filter
from linkstore.core.lexical import bm25_weight, extract_terms, inverse_frequency
from linkstore.core.plans import Ids, Lexical, LexicalMatches, Plan
from linkstore.engines.contract import Record
from linkstore.errors import CapabilityError

ScoredIds = list[tuple[str, float]]


class LexicalOrNotCases(Cases):
    """What holds also for a backend without lexical search."""

    def test_a_plan_may_ask_and_go_on_without(self, probe: Probe) -> None:
        """[B-1] Answer Lexical, or raise CapabilityError in the plan and nowhere else."""
        probe.put(make_record("a", text="needle"))

        def plan() -> Plan[list[str]]:
            try:
                found: LexicalMatches = yield Lexical(terms=("needle",), k=1)
            except CapabilityError:
                return ["a"]
            ids: list[str] = yield Ids(refs=found.refs)
            return ids

        assert probe.plan(plan()) == ["a"]


class LexicalCases(LexicalScopeCases):
    """Search by words, for backends that have it."""

    def test_documents_that_have_any_of_the_words(self, probe: Probe) -> None:
        """[B-2] Search text and title for whole words, folded, of any script."""
        probe.put(
            make_record("a", text="The Space Needle's towers"),
            make_record("b", text="haystack", title="A NEEDLE"),
            make_record("c", text="needles"),
            make_record("d", text="Москва и straße, naïve 東京"),
            make_record("e", text="needle_work and more needlework"),
        )
        for words, ids in {
            ("needle",): {"a", "b"},
            ("needle", "haystack"): {"a", "b"},
            extract_terms("Москвы"): {"d"},
            ("strasse",): {"d"},
            ("needle_work",): {"e"},
            extract_terms("東京の塔"): {"d"},
            ("nobody",): set(),
        }.items():
            assert {id for id, _ in find_matches(probe, words)} == ids, words

    def test_stop_words_and_what_is_no_word_find_nothing(self, probe: Probe) -> None:
        """[B-2] Do not look up words that no document's words can be."""
        probe.put(make_record("a", text="the needle of it"))
        assert find_matches(probe, ()) == []
        assert find_matches(probe, ("the",)) == []
        assert find_matches(probe, ("x" * 65,)) == []

    def test_scores_are_those_of_the_formula(self, probe: Probe) -> None:
        """[B-3] Compute BM25 over all documents, of the words that are looked up."""
        texts = {"a": "red red green", "b": "green blue blue blue blue", "c": "red", "d": "yellow"}
        probe.put(*(make_record(id, text=text) for id, text in texts.items()))
        average = 10 / 4
        red, green = inverse_frequency(4, 2), inverse_frequency(4, 2)
        expected = {
            "a": red * bm25_weight(2, 3, average) + green * bm25_weight(1, 3, average),
            "b": green * bm25_weight(1, 5, average),
            "c": red * bm25_weight(1, 1, average),
        }
        found = dict(find_matches(probe, ("red", "green")))
        assert found == {id: pytest.approx(score, rel=1e-6) for id, score in expected.items()}

    def test_best_first_then_by_id(self, probe: Probe) -> None:
        """[B-4] Return at most k, and at the cut prefer the smallest ids among ties."""
        probe.put(*(make_record(f"{n:03}", text="needle hay") for n in reversed(range(150))))
        probe.put(
            make_record("best", text="needle"),
            make_record("z", text="other"),
            make_record("zz", text="hay other"),
        )
        assert [id for id, _ in find_matches(probe, ("needle",), 4)] == ["best", "000", "001", "002"]
        assert find_matches(probe, ("needle",), 0) == []

    def test_a_filter_that_leaves_few_matches_still_gives_k(self, probe: Probe) -> None:
        """[B-5] Find documents that match worse than 200 others."""
        probe.put(*(make_record(f"{n:03}", text="needle", rare=False) for n in range(200)))
        probe.put(*(make_record(f"rare {n}", text="needle " + "hay " * (n + 1), rare=True) for n in range(3)))
        found = find_matches(probe, ("needle",), 2, {"rare": True})
        assert [id for id, _ in found] == ["rare 0", "rare 1"]
        assert find_matches(probe, ("needle",), 2, {"rare": None}) == []

    def test_words_follow_updates_and_deletes(self, probe: Probe) -> None:
        """[B-6] Update the statistics that scores are computed from, too."""
        rest = [make_record(f"{n}", text=f"filler number{n} text") for n in range(9)]
        probe.put(make_record("a", text="needle hay"), make_record("b", text="needle"), *rest)
        probe.put(make_record("a", text="hay hay"), make_record("c", text="needle needle"))
        probe.remove("b", "3")
        fresh = [make_record("a", text="hay hay"), make_record("c", text="needle needle")]
        fresh += [one for one in rest if one.id != "3"]
        assert find_matches(probe, ("needle", "hay")) == ask_oracle(fresh, ("needle", "hay"))

    def test_words_in_few_documents_are_all_looked_up(self, probe: Probe) -> None:
        """[B-7] Include words of every document, and omit words of none silently."""
        probe.put(*(make_record(f"{n}", text="common" + " rare" * (n == 7)) for n in range(20)))
        answer: LexicalMatches = probe.ask(Lexical(terms=("common", "rare", "nobody"), k=99))
        assert (len(answer.refs), answer.left_out) == (20, ())

    def test_the_documents_with_each_word_are_counted(self, probe: Probe) -> None:
        """[B-8] Count documents, and not how often they have a word; whatever k and the filter are."""
        probe.put(*(make_record(f"{n}", text="common common" + " rare" * (n == 7), n=n) for n in range(20)))
        asked = Lexical(terms=("common", "rare", "nobody"), k=1, filter=parse_filter({"n": 3}))
        answer: LexicalMatches = probe.ask(asked)
        counts = {word: count for word, count in answer.document_frequency.items() if count}
        assert counts == {"common": 20, "rare": 1}

    @pytest.mark.parametrize("seed", range(3))
    def test_random_texts_answer_as_the_oracle_does(self, probe: Probe, seed: int) -> None:
        """[B-2, B-3, B-4] Agree in ids, order and scores after updates and deletes."""
        chance = random.Random(seed)

        def written(n: int) -> Record:
            words = [f"w{min(int(chance.expovariate(0.15)), 40)}" for _ in range(chance.randrange(30))]
            return make_record(f"{n}", text=" ".join(words) or ".", n=n % 5)

        stored = {one.id: one for one in map(written, range(120))}
        probe.put(*stored.values())
        changed = {one.id: one for one in map(written, chance.sample(range(120), 40))}
        probe.put(*changed.values())
        gone = [f"{n}" for n in chance.sample(range(120), 20)]
        probe.remove(*gone)
        left = [one for id, one in {**stored, **changed}.items() if id not in gone]
        for _ in range(12):
            words = tuple(dict.fromkeys(f"w{chance.randrange(42)}" for _ in range(chance.randrange(1, 6))))
            for condition in (None, {"n": {"$in": [1, 3]}}):
                assert find_matches(probe, words, 15, condition) == ask_oracle(left, words, 15, condition)


def find_matches(
    probe: Probe, words: tuple[str, ...], k: int = 1000, condition: Filter | None = None
) -> ScoredIds:
    """Return ids and scores of the documents with any of the words."""
    return probe.plan(_plan_lexical(words, k, condition))


def ask_oracle(
    records: list[Record], words: tuple[str, ...], k: int = 1000, condition: Filter | None = None
) -> ScoredIds:
    """Return ids and scores from an oracle with these records."""
    held = Probe(OracleBackend(), drive_by_run)
    held.do(held.backend.claim(CLAIM))
    held.put(*records)
    return find_matches(held, words, k, condition)


def _plan_lexical(words: tuple[str, ...], k: int, condition: Filter | None) -> Plan[ScoredIds]:
    parsed = parse_filter(condition) if condition else EVERYTHING
    found: LexicalMatches = yield Lexical(terms=words, k=k, filter=parsed)
    assert found.refs.dtype == np.dtype(np.int64)
    assert found.score.dtype == np.dtype(np.float32)
    ids: list[str] = yield Ids(refs=found.refs)
    return list(zip(ids, found.score.tolist(), strict=True))
