"""The profile of a store: counts of small stores by hand, and what the command says and draws."""

from __future__ import annotations

import json

import numpy as np
import pytest
from documented import linkstore
from internals import HUB_CAP, describe_verdict
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from oracle import OracleBackend

from linkstore import Link, LinkStore
from linkstore.cli import exits
from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import EvaluationError
from linkstore.evaluate import GoldQuestion, profile


class Numbered(Embeddings):
    """Text ``N`` points along axis N, with some of axis N + 1: neighbours are similar, others are not."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        vector = np.zeros(64)
        vector[int(text.split()[0])] = 1.0
        vector[int(text.split()[0]) + 1] = 0.1
        return vector.tolist()


def to(tag: str, kind: str = "hyperlink") -> Link:
    return Link.outgoing(kind=kind, tag=tag)


def at(tag: str, kind: str = "hyperlink") -> Link:
    return Link.incoming(kind=kind, tag=tag)


def both(tag: str, kind: str = "keyword") -> Link:
    return Link.bidir(kind=kind, tag=tag)


LINKS = {
    0: [at("0"), to("1"), to("2"), to("gone"), to("gone else")],
    1: [at("1"), both("red")],
    2: [at("2"), both("red"), to("2")],
    3: [both("red"), to("2")],
    4: [both("alone")],
    5: [],
}
"""0 → 1, 0 → 2, 3 → 2; 1, 2 and 3 share a keyword; 4 and 5 are joined to nobody, and 2 to itself."""


def filled(store: LinkStore, links=LINKS) -> LinkStore:
    store.add_documents(
        [
            Document(id=f"d{n}", page_content=str(n), metadata={"links": [one.to_dict() for one in given]})
            for n, given in links.items()
        ]
    )
    return store


@pytest.fixture(params=[OracleBackend, lambda: EmbeddedBackend(":memory:")], ids=["oracle", "embedded"])
def store(request):
    with LinkStore(Numbered(), backend=request.param()) as opened:
        yield filled(opened)


class TestCounts:
    def test_links_groups_edges_and_dangling_links_are_counted_by_kind(self, store):
        found = profile(store)

        hyperlink, keyword = found.links["hyperlink"], found.links["keyword"]
        assert (hyperlink.links, hyperlink.groups, hyperlink.edges, hyperlink.dangling) == (9, 5, 3, 2)
        assert (keyword.links, keyword.groups, keyword.edges, keyword.dangling) == (4, 2, 6, 0)
        assert (hyperlink.hubs, keyword.hubs) == (0, 0)

    def test_documents_are_reached_joined_or_isolated(self, store):
        found = profile(store)

        assert (found.documents, found.reached, found.isolated) == (6, 3, 2)
        assert found.reached_share == 0.5

    def test_link_groups_are_counted_by_the_documents_on_their_larger_side(self, store):
        found = profile(store)

        assert {**found.sizes, "1": 5, "3-5": 2, "2": 0} == found.sizes
        assert sum(found.sizes.values()) == 7
        first, second = found.largest[:2]
        assert {(first.tag, first.out, first.in_), (second.tag, second.out, second.in_)} == {
            ("red", 3, 3),
            ("2", 3, 1),
        }

    def test_an_empty_store_has_nothing_to_follow(self):
        with LinkStore.open(":memory:", Numbered()) as empty:
            found = profile(empty)

        assert (found.documents, found.reached_share, found.links, found.largest) == (0, 0.0, {}, ())
        assert found.verdict.startswith("Hardly linked")

    def test_nobody_is_led_to_the_hub_side_of_a_group(self):
        """But its members still lead to the other side."""
        members = range(2, HUB_CAP + 3)
        links = {0: [at("0"), both("all")], 1: [to("many")]}
        links |= {n: [at("many"), to("0")] for n in members}
        with LinkStore.open(":memory:", Constant()) as store:
            found = profile(filled(store, links))

        hyperlink = found.links["hyperlink"]
        assert (hyperlink.hubs, hyperlink.edges) == (2, HUB_CAP + 1)
        assert found.sizes[f">{HUB_CAP}"] == 2
        assert all(group.hub for group in found.largest[:2])
        assert found.reached == 1, "only what the many lead to"
        assert found.isolated == 0, "the many can be reached backwards, by whom they lead to: one at a time"


class Constant(Embeddings):
    def embed_documents(self, texts):
        return [[1.0, 0.0]] * len(texts)

    def embed_query(self, text):
        return [1.0, 0.0]


class TestGold:
    questions = (
        GoldQuestion(question="0", gold=("d0", "d2")),
        GoldQuestion(question="1", gold=("d1", "d3", "d5")),
        GoldQuestion(question="4", gold=("d4",)),
    )

    def test_edges_at_gold_are_counted_in_both_directions_once_for_each_pair(self, store):
        found = profile(store, self.questions).gold

        assert found is not None
        hyperlink, keyword, whole = (found.kinds[kind] for kind in ("hyperlink", "keyword", "all"))
        # First question: 0-1, 0-2, 2-3 with 0-2 joining. Second: 0-1, 2-3, none joining.
        assert (hyperlink.edges, hyperlink.joining, hyperlink.gold, hyperlink.linked) == (5, 1, 5, 2)
        # First question: 2-1, 2-3. Second: 1-2, 1-3, 2-3 with 1-3 joining.
        assert (keyword.edges, keyword.joining, keyword.linked) == (5, 1, 2)
        assert (whole.edges, whole.joining, whole.linked) == (8, 2, 4)
        assert keyword.precision == 1 / 5
        assert keyword.linked_share == 2 / 5

    def test_headroom_is_what_dense_search_misses_and_reach_what_a_link_leads_to(self):
        links = {n: [at(str(n))] for n in range(20)}
        links[0] = [to("15"), to("16")]
        questions = [
            GoldQuestion(question="0", gold=("d15", "d0")),
            GoldQuestion(question="0", gold=("d0", "d17")),
        ]
        with LinkStore.open(":memory:", Numbered()) as opened:
            found = profile(filled(opened, links), questions)

        assert found.gold is not None
        assert (found.gold.questions, found.gold.missed, found.gold.within_reach) == (2, 2, 1)
        assert (found.gold.headroom, found.gold.reach) == (0.5, 0.5)
        assert "Dense search misses 50 % of the gold answers among its first 5" in found.verdict
        assert "one link from its first 10 leads to 50 %" in found.verdict

    def test_gold_that_is_not_there_is_refused(self, store):
        with pytest.raises(EvaluationError, match="'d9'"):
            profile(store, [GoldQuestion(question="0", gold=("d0", "d9"))])

    def test_questions_with_one_answer_have_no_precision(self, store):
        found = profile(store, self.questions[2:])

        assert found.gold is not None
        assert found.gold.kinds == {}
        assert found.gold.recall_at_5 == 1
        assert found.verdict.startswith("Too few questions to tell")


@pytest.mark.parametrize(
    ("share", "says"), [(0.6, "Well linked: 60 %"), (0.3, "Partly linked"), (0.05, "Hardly linked")]
)
def test_without_gold_the_verdict_is_about_structure(share, says):
    assert describe_verdict(share, None, None).startswith(says)


class TestCommand:
    @pytest.fixture
    def kb(self, tmp_path) -> str:
        with LinkStore.open(tmp_path / "kb") as store:
            filled(store)
        return str(tmp_path / "kb")

    @pytest.fixture
    def questions(self, tmp_path) -> str:
        rows = [{"question": one.question, "gold": list(one.gold)} for one in TestGold.questions]
        (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return str(tmp_path / "q.jsonl")

    def test_a_person_gets_tables_bars_and_a_verdict(self, kb, questions):
        code, out, err = linkstore("eval", "--profile", "--store", kb, "--questions", questions)

        assert (code, err) == (0, "")
        for shown in ("6 documents: 3 (50.0 %)", "2 isolated", "hyperlink", "keyword red", "recall@5"):
            assert shown in out
        assert "Too few questions to tell" in out
        assert "…" not in out  # no terminal, no cut cells

    def test_json_has_all_of_it(self, kb, questions):
        code, out, _ = linkstore("eval", "--profile", "--store", kb, "--questions", questions, "--json")

        found = json.loads(out)
        assert code == 0
        assert found["links"]["hyperlink"] == {
            "links": 9,
            "groups": 5,
            "hubs": 0,
            "edges": 3,
            "dangling": 2,
        }
        assert (found["isolated"], found["reached_in_one_hop"], found["reached_share"]) == (2, 3, 0.5)
        assert found["group_sizes"]["3-5"] == 2
        assert found["gold"]["kinds"]["all"]["precision"] == 0.25
        assert found["verdict"]

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (("--questions", "nowhere"), "file 'nowhere' does not exist"),
        ],
    )
    def test_what_makes_no_sense_is_a_usage_error(self, kb, words, says):
        code, _, err = linkstore("eval", "--profile", "--store", kb, *words)

        assert code == exits.USAGE
        assert says in err
