"""Evaluating strategies: what is read, what is measured, and what the command says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from documented import linkstore
from internals import (
    STRATEGIES,
    StrategyRun,
    compute_outcomes,
    compute_recalls,
    compute_reciprocal_ranks,
    count_rescues,
    make_estimate,
    resample_means,
    with_links,
)
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from oracle import OracleBackend, OracleReader, refuse_words

from linkstore import Link, LinkStore, get_links
from linkstore.cli import exits
from linkstore.errors import CapabilityError, EvaluationError, StrategyError
from linkstore.evaluate import GoldQuestion, evaluate, read_corpus, read_questions
from linkstore.strategies import DEFAULT_STRATEGY, Eager, Similarity, Words

ROWS = (
    {"id": "needle", "title": "Space Needle", "text": "A tower in Seattle, built for the fair of 1962."},
    {"id": "uptown", "title": "Uptown", "text": "Small theatres and record shops line its streets."},
    {"id": "soup", "title": "Minestrone", "text": "A thick soup of vegetables, with pasta or rice."},
)
LINKED = (
    ROWS[0] | {"links": [{"kind": "hyperlink", "tag": "uptown", "direction": "out", "label": "around it"}]},
    ROWS[1] | {"links": [{"kind": "hyperlink", "tag": "uptown", "direction": "in"}]},
    ROWS[2] | {"links": [{"kind": "keyword", "tag": "soup", "direction": "bidir"}]},
)
QUESTIONS = (
    {"question": "Which tower was built for the fair?", "gold": ["needle"]},
    {"question": "What lies around the tower of the fair?", "gold": ["needle", "uptown"]},
)


def lines(path: Path, rows) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def corpus(tmp_path) -> str:
    return lines(tmp_path / "corpus.jsonl", LINKED)


@pytest.fixture
def questions(tmp_path) -> str:
    return lines(tmp_path / "questions.jsonl", QUESTIONS)


class Axes(Embeddings):
    """A text that says ``x=N`` points along axis N, any other along axis 0, so that nearness is known."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        vector = np.full(8, 0.01)
        vector[int(text.partition("x=")[2][:1] or 0)] = 1.0
        return vector.tolist()


class TestMeasures:
    """Against values computed by hand."""

    ranks = ((1, 7, None), (3,), (None,), (21, 2))

    def test_recall_is_the_share_of_each_question_s_gold(self):
        assert compute_recalls(self.ranks, 2).tolist() == [1 / 3, 0, 0, 1 / 2]
        assert compute_recalls(self.ranks, 10).tolist() == [2 / 3, 1, 0, 1 / 2]
        assert compute_recalls(self.ranks, 21).tolist() == [2 / 3, 1, 0, 1]

    def test_the_reciprocal_rank_is_that_of_the_first_gold_document(self):
        assert compute_reciprocal_ranks(self.ranks).tolist() == [1, 1 / 3, 0, 1 / 2]

    def test_rescued_is_what_the_baseline_misses_and_the_ranking_has_early(self):
        baseline = ((1, None, None), (25,), (None,), (2, 3))

        found, missed = count_rescues(self.ranks, baseline, within=10, missed=20)

        assert (found.tolist(), missed.tolist()) == ([1, 1, 0, 0], [2, 1, 1, 0])

    def test_the_same_seed_draws_the_same_questions_whatever_the_columns(self):
        columns = np.random.default_rng(0).random((50, 3))

        whole, again = resample_means(columns, seed=7), resample_means(columns, seed=7)

        assert np.array_equal(whole, again)
        assert np.allclose(resample_means(columns[:, :1], seed=7), whole[:, :1])
        assert not np.array_equal(whole, resample_means(columns, seed=8))

    def test_an_interval_is_that_of_the_mean(self):
        values = np.random.default_rng(1).normal(5, 2, size=(400, 1))

        found = make_estimate(float(values.mean()), resample_means(values, seed=0)[:, 0])

        error = 1.96 * values.std() / 20
        assert found.low == pytest.approx(values.mean() - error, abs=0.03)
        assert found.high == pytest.approx(values.mean() + error, abs=0.03)

    def test_a_gain_is_paired_so_what_both_lack_does_not_blur_it(self):
        baseline = [(1,) if n % 2 else (None,) for n in range(100)]
        better = [(1,) if n % 2 else (2,) if n < 20 else (None,) for n in range(100)]

        outcome = compute_outcomes([_run("better", better), _run("similarity", baseline)], baseline, seed=0)

        gain = outcome[0].gains["recall@2"]
        assert gain.value == pytest.approx(0.10)
        assert 0.03 < gain.low < gain.value < gain.high < 0.17
        assert outcome[0].rescue_rate is not None
        assert outcome[0].rescue_rate.value == pytest.approx(10 / 50)
        assert outcome[1].gains["recall@2"].high == 0

    def test_nothing_is_rescued_where_nothing_is_missed(self):
        (outcome,) = compute_outcomes([_run("x", [(1,), (2,)])], [(1,), (2,)], seed=0)

        assert outcome.rescue_rate is None
        assert outcome.to_dict()["rescue_rate_interval"] is None


def _run(name: str, ranks) -> StrategyRun:
    return StrategyRun(name=name, settings="", ranks=ranks, ms_per_query=2.0, ms_without_embedding=1.0)


class TestEvaluating:
    @pytest.fixture
    def store(self):
        """d1 to d5 lie along axes 1 to 5; d1 links to d5."""
        documents = [Document(id=f"d{n}", page_content=f"x={n} word{n}") for n in range(1, 6)]
        documents[0].metadata["links"] = [Link.outgoing(kind="k", tag="t")]
        documents[4].metadata["links"] = [Link.incoming(kind="k", tag="t")]
        with LinkStore.open(":memory:", Axes()) as opened:
            opened.add_documents(documents)
            yield opened

    asked = (
        GoldQuestion(question="x=1 word1", gold=("d1",)),
        GoldQuestion(question="x=2 word1", gold=("d2", "d1")),
        GoldQuestion(question="x=1 word4", gold=("d5",)),
    )

    def test_ranks_are_those_of_the_gold_documents(self, store):
        found = evaluate(store, self.asked, {"near": Similarity(), "far": Eager(start_k=1), "words": Words()})

        assert [outcome.name for outcome in found.outcomes] == ["near", "far", "words"]
        assert found["near"].ranks[0] == (1,)
        assert found["near"].ranks[1][0] == 1
        assert found["far"].ranks == ((1,), (1, None), (2,))
        assert found["words"].ranks == ((1,), (2, 1), (5,))
        assert found["far"].measures["recall@2"].value == pytest.approx((1 + 0.5 + 1) / 3)
        assert found["far"].measures["mrr"].value == pytest.approx((1 + 1 + 0.5) / 3)
        assert found.questions == 3

    def test_strategies_are_asked_for_twenty_hits_whatever_their_own_limit(self, store):
        found = evaluate(store, self.asked, {"near": Similarity(k=1)})

        assert found["near"].measures["recall@20"].value == 1
        assert "k=20" in found["near"].settings

    def test_the_default_is_the_retriever_s_own_strategy(self, store):
        found = evaluate(store, self.asked, ["pagerank"])

        assert found["pagerank"].settings == str(DEFAULT_STRATEGY.with_k(20))

    def test_every_name_can_be_measured(self, store):
        found = evaluate(store, self.asked)

        assert tuple(outcome.name for outcome in found.outcomes) == STRATEGIES
        for outcome in found.outcomes:
            assert all(0 <= one.low <= one.value <= one.high <= 1 for one in outcome.measures.values())
            assert 0 < outcome.ms_without_embedding < outcome.ms_per_query

    def test_the_same_seed_gives_the_same_intervals(self, store):
        first, again = (evaluate(store, self.asked, ["eager"], seed=3)["eager"] for _ in range(2))

        assert (first.measures, first.gains) == (again.measures, again.gains)

    def test_each_question_is_embedded_once_however_many_strategies_there_are(self, store, monkeypatch):
        asked: list[str] = []
        embed = Axes.embed_query
        monkeypatch.setattr(Axes, "embed_query", lambda self, text: asked.append(text) or embed(self, text))

        evaluate(store, self.asked, ["similarity", "eager", "mmr"])

        assert asked == ["x=1 word1", *(question.question for question in self.asked)]

    def test_progress_is_told_after_each_question(self, store):
        told: list[tuple[int, int, str]] = []

        evaluate(store, self.asked, ["similarity"], progress=lambda *one: told.append(one))

        assert told == [(n, 3, one.question) for n, one in enumerate(self.asked, 1)]

    def test_documents_are_put_into_a_store_of_their_own(self):
        documents = [Document(id="d1", page_content="x=1")]

        found = evaluate(documents, self.asked[:1], ["similarity"], embedding=Axes())

        assert found["similarity"].measures["mrr"].value == 1

    @pytest.mark.parametrize(
        ("questions", "strategies", "says"),
        [
            (
                (GoldQuestion(question="x=1", gold=("d1", "no", "nor")),),
                ["similarity"],
                "2 of 3 gold.*'no', 'nor'",
            ),
            ((), ["similarity"], "no question"),
            (asked, ["similarity", "sparse"], "unknown strategy sparse; known: similarity"),
            (asked, [], "no strategy"),
            (asked, {}, "no strategy"),
        ],
    )
    def test_what_cannot_be_measured_is_refused(self, store, questions, strategies, says):
        with pytest.raises(EvaluationError, match=says):
            evaluate(store, questions, strategies)

    def test_a_store_keeps_its_embedding(self, store):
        with pytest.raises(EvaluationError, match="a store already has an embedding"):
            evaluate(store, self.asked, embedding=Axes())


class TestWords:
    """The strategy behind ``words``."""

    @pytest.fixture
    def store(self):
        with LinkStore(Axes(), backend=OracleBackend()) as opened:
            texts = ["x=1 tower tower", "x=2 tower fair", "x=3 soup"]
            opened.add_texts(texts, [{"n": 2}] * 3, ids=["a", "b", "c"])
            yield opened

    def test_hits_are_the_documents_with_the_words_by_bm25(self, store):
        hits = store.search("tower or fair", strategy=Words())

        assert [hit.document.id for hit in hits] == ["b", "a"]
        assert hits[0].score > hits[1].score > 0
        assert hits[0].similarity == pytest.approx(store.search("tower", strategy=Similarity())[1].similarity)
        assert [hit.document.id for hit in store.search("tower or fair", strategy=Words(k=1))] == ["b"]
        assert [hit.document.id for hit in store.search("fair", strategy=Words(), filter={"n": 1})] == []

    def test_a_backend_without_lexical_search_is_refused(self, store, monkeypatch):
        monkeypatch.setattr(OracleReader, "lexical", refuse_words)

        with pytest.raises(CapabilityError):
            evaluate(store, [GoldQuestion(question="tower", gold=("a",))], ["similarity", "words"])

    def test_an_empty_result_has_a_reason(self, store):
        assert store.search("unheard", strategy=Words()).reason == "no document contains a word of the query"
        for name in ("seed_filter", "result_filter"):
            passing = store.search("fair", strategy=Words(), **{name: {"n": 1}})
            assert "passes the filter" in str(passing.reason)
        within = store.search("fair", strategy=Words(), filter={"n": 1}).reason
        assert within == "no document contains a word of the query"  # as in a store of what passes
        assert "stop words" in str(store.search("what is it", strategy=Words()).reason)

    def test_links_and_settings_that_cannot_work_are_refused(self, store):
        with pytest.raises(StrategyError):
            Words(k=0)
        with pytest.raises(StrategyError, match="does not take initial_roots"):
            store.search("x=1", strategy=Words(), initial_roots=["a"])


class TestRows:
    def test_a_document_is_its_title_and_its_text(self, corpus):
        needle, uptown, soup = read_corpus(corpus)

        assert needle.page_content == "Space Needle\nA tower in Seattle, built for the fair of 1962."
        assert needle.metadata["title"] == "Space Needle"
        assert get_links(needle)[0].label == "around it"
        assert [link.direction for one in (needle, uptown, soup) for link in get_links(one)] == [
            "out",
            "in",
            "bidir",
        ]

    def test_empty_lines_and_further_keys_are_passed_over(self, tmp_path):
        path = tmp_path / "q.jsonl"
        path.write_text('\n{"question": "a?", "gold": ["x", "y", "x"], "answer": 1}\n  \n')

        assert read_questions(path) == [GoldQuestion(question="a?", gold=("x", "y"))]

    @pytest.mark.parametrize(
        ("row", "says"),
        [
            ("{", "Invalid JSON"),
            ("[]", "should be an object, but this is []"),
            ('{"title": "", "text": "x"}', "'id': Field required"),
            ('{"id": 7, "title": "", "text": "x"}', "'id': Input should be a valid string, but this is 7"),
            ('{"id": "", "title": "", "text": "x"}', "'id' must not be empty"),
            ('{"id": "b", "text": "x"}', "'title': Field required"),
            (
                '{"id": "b", "title": "x", "text": null}',
                "'text': Input should be a valid string",
            ),
            ('{"id": "b", "title": " ", "text": ""}', "neither a title nor a text"),
            ('{"id": "b", "title": "", "text": "x", "links": ["u"]}', "'links.0': Input should be"),
            ('{"id": "b", "title": "", "text": "x", "links": [{"kind": "k"}]}', "invalid link"),
            ('{"id": "a", "title": "", "text": "x"}', "the id 'a' is already on line 1"),
            ('{"id": "\\ud800", "title": "", "text": "x"}', "Invalid JSON"),
        ],
    )
    def test_a_bad_row_is_an_error_that_names_file_and_line(self, tmp_path, row, says):
        path = tmp_path / "c.jsonl"
        path.write_text('{"id": "a", "title": "A", "text": "a"}\n\n' + row + "\n")

        with pytest.raises(EvaluationError, match=r"c\.jsonl, line 3: ") as caught:
            read_corpus(path)

        assert says in str(caught.value)

    @pytest.mark.parametrize(
        ("row", "says"),
        [
            ('{"gold": ["a"]}', "'question': Field required"),
            ('{"question": " ", "gold": ["a"]}', "'question' is empty"),
            ('{"question": "a?"}', "'gold': Field required"),
            ('{"question": "a?", "gold": []}', "'gold': List should have at least 1 item"),
            ('{"question": "a?", "gold": [1]}', "'gold.0': Input should be a valid string"),
        ],
    )
    def test_so_is_a_bad_question(self, tmp_path, row, says):
        (tmp_path / "q.jsonl").write_text(row)

        with pytest.raises(EvaluationError, match=r"q\.jsonl, line 1: ") as caught:
            read_questions(tmp_path / "q.jsonl")

        assert says in str(caught.value)

    @pytest.mark.parametrize("read", [read_corpus, read_questions])
    def test_an_empty_file_is_no_data(self, tmp_path, read):
        (tmp_path / "empty").write_text("\n")

        with pytest.raises(EvaluationError, match="has no rows"):
            read(tmp_path / "empty")


class TestLinks:
    def test_links_that_documents_carry_stay_unless_others_are_named(self, corpus):
        documents = read_corpus(corpus)

        assert with_links(documents) == documents
        assert [len(get_links(one)) for one in with_links(documents, ["hyperlink"])] == [1, 1, 0]
        assert [len(get_links(one)) for one in with_links(documents, [])] == [0, 0, 0]
        assert len(get_links(documents[2])) == 1, "the documents given stay as they are"

    def test_extractors_are_run_over_the_corpus(self, tmp_path):
        text = "The observation tower of {} opened in May. The observation tower is open on Sundays."
        rows = [{"id": name, "title": name, "text": text.format(name)} for name in ("Riga", "Oslo", "Bern")]
        documents = read_corpus(lines(tmp_path / "c.jsonl", [*rows, *ROWS]))

        linked = with_links(documents, ["keyword", "hyperlink"])

        assert {link.kind for one in linked for link in get_links(one)} == {"keyword"}
        assert not any(get_links(one) for one in documents)

    def test_a_name_that_nobody_knows_is_refused(self, corpus):
        with pytest.raises(EvaluationError, match=r"kind hyperlinks.*carried: hyperlink, keyword;"):
            with_links(read_corpus(corpus), ["hyperlinks"])


class TestCommand:
    def test_json_has_the_measures_of_each_strategy(self, corpus, questions):
        code, out, err = linkstore(
            *("eval", "--corpus", corpus, "--questions", questions),
            *("--strategies", "similarity,pagerank", "--json"),
        )

        assert (code, err) == (0, "")
        found = json.loads(out)
        assert set(found) == {"gold", "strategies", "comparison"}
        assert set(found["strategies"]) == {"similarity", "pagerank"}
        default = found["strategies"]["pagerank"]
        for name in ("recall@2", "recall@5", "recall@10", "recall@20", "mrr"):
            assert 0 <= default[name] <= 1
            assert default["intervals"][name][0] <= default[name] <= default["intervals"][name][1]
        assert default["recall@20"] == 1
        assert default["ms_per_query"] > 0
        assert default["gain_over_dense"]["recall@5"]["value"] == pytest.approx(0)

    def test_a_person_gets_a_table(self, corpus, questions):
        code, out, _ = linkstore(
            "eval",
            "--corpus",
            corpus,
            "--questions",
            questions,
            "--strategies",
            "similarity",
            "--strategies",
            "words",
        )

        assert code == 0
        assert "2 questions" in out
        for shown in ("similarity", "words", "R@2", "R@20", "MRR", "gain in R@5", "95 % intervals"):
            assert shown in out
        assert "eager" not in out

    def test_a_store_that_is_there_can_be_asked(self, corpus, questions, tmp_path):
        with LinkStore.open(tmp_path / "kb") as store:
            store.add_documents(read_corpus(corpus))

        code, out, _ = linkstore("eval", "--store", str(tmp_path / "kb"), "--questions", questions, "--json")

        assert code == 0
        assert set(json.loads(out)["strategies"]) == set(STRATEGIES)

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (("--corpus", "CORPUS", "--store", "kb"), "either --corpus or --store"),
            (("--store", "kb", "--links", "mention"), "--links needs --corpus"),
            (("--corpus", "nowhere"), "'--corpus': file 'nowhere' does not exist"),
            (
                ("--corpus", "CORPUS", "--questions", "nowhere"),
                "'--questions': file 'nowhere' does not exist",
            ),
            (("--corpus", "CORPUS", "--strategies", "x"), "--strategies: unknown x; known: similarity,"),
            (("--corpus", "CORPUS", "--links", "x"), "no document carries links of kind x"),
            (("--corpus", "QUESTIONS"), "line 1: 'id': Field required"),
            (("--corpus", "CORPUS", "--questions", "CORPUS"), "line 1: 'question': Field required"),
        ],
    )
    def test_what_makes_no_sense_is_a_usage_error(self, corpus, questions, words, says):
        files = {"CORPUS": corpus, "QUESTIONS": questions}
        given = [files.get(word, word) for word in words]
        if "--questions" not in given:
            given += ["--questions", questions]

        code, out, err = linkstore("eval", *given)

        assert (code, out) == (exits.USAGE, "")
        assert says in err

    def test_gold_that_is_not_in_the_corpus_is_named(self, corpus, tmp_path):
        asked = lines(tmp_path / "bad.jsonl", [{"question": "a?", "gold": ["needle", "space"]}])

        code, _, err = linkstore("eval", "--corpus", corpus, "--questions", asked)

        assert code == exits.USAGE
        assert "1 of 2 gold answers are not in the store: 'space'" in err
