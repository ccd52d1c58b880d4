"""``calibrate_min_similarity``, compared with what all pairs say; and how a store uses it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import numpy as np
import pytest
from documented import linkstore
from internals import MIN_SIMILARITY_NOTE, PageEntry, WriteBatch, normalize_vectors
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore import LinkStore
from linkstore.errors import EvaluationError, StoreBusyError, StoreFormatError, StrategyError
from linkstore.evaluate import GoldQuestion, calibrate_min_similarity
from linkstore.strategies import AllPaths, Eager, Mmr, PageRank, Similarity

TOPICS, EACH = 40, 5


class Topics(Embeddings):
    """``"topic 3 text 1"`` is near the other texts of topic 3, and far from those of other topics."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        topic = next((word for word in text.split() if word.isdigit()), "0")
        rest = text.split(topic, 1)[-1].split()
        own = np.random.default_rng([int(topic)]).normal(size=32)
        noise = np.random.default_rng([int(topic), sum(map(ord, " ".join(rest)))]).normal(size=32)
        return (own + 0.4 * noise).tolist()


def texts() -> list[str]:
    return [f"topic {topic} text {number}" for topic in range(TOPICS) for number in range(EACH)]


def questions() -> list[GoldQuestion]:
    return [
        GoldQuestion(question=f"topic {topic} asked", gold=(f"topic {topic} text 0", f"topic {topic} text 1"))
        for topic in range(TOPICS)
    ]


@pytest.fixture
def store():
    with LinkStore(Topics()) as made:
        made.add_documents([Document(id=text, page_content=text) for text in texts()])
        yield made


def vectors(some: list[str]) -> np.ndarray:
    return normalize_vectors(Topics().embed_documents(some))


def test_documents_alone_propose_nothing(store):
    """They do not say how similar a question and its answer are."""
    with pytest.raises(EvaluationError, match="proposed from questions with their answers"):
        calibrate_min_similarity(store, [])


def test_where_noise_is_as_similar_as_answers_nothing_is_proposed(store):
    """As the texts of a store of records are: the minimum that keeps the questions would stop nothing."""
    mixed = [replace(one, gold=(f"topic {TOPICS - 1 - at} text 0",)) for at, one in enumerate(questions())]
    found = calibrate_min_similarity(store, mixed)
    assert found.min_similarity is None
    assert found.noise > 0.5
    assert str(found).startswith("no min_similarity to propose: ")
    assert (
        calibrate_min_similarity(store, mixed, noise=1.0).min_similarity is not None
    )  # the caller allows it
    store.configure(min_similarity=found.min_similarity)
    assert store.search_settings.min_similarity is None


@pytest.mark.parametrize(("noise", "keep"), [(0.01, 0.99), (0.0001, 0.9), (0.3, 1.0), (0.0, 0.5), (1.0, 1.0)])
def test_with_questions_both_shares_are_those_of_all_pairs(store, noise, keep):
    """Compared with a search through all numbers of three digits."""
    found = calibrate_min_similarity(store, questions(), noise=noise, keep=keep)
    asked = vectors([one.question for one in questions()])
    table = asked @ vectors(texts()).T
    gold = np.zeros(table.shape, np.bool_)
    for row, one in enumerate(questions()):
        gold[row, [texts().index(answer) for answer in one.gold]] = True
    assert found.pairs == (~gold).sum()
    assert found.answers == gold.sum()

    best = np.where(gold, table, -1).max(axis=1)

    def shares(floor: float) -> tuple[float, float, float]:
        return (table[~gold] >= floor).mean(), (best >= floor).mean(), (table[gold] >= floor).mean()

    measured = found.noise, found.asked, found.gold
    assert measured == pytest.approx(shares(found.min_similarity), abs=1e-3)
    assert found.questions == len(questions())
    numbers = [at / 1000 for at in range(-1000, 1001)]
    least = min(number for number in numbers if shares(number)[0] <= noise)
    most = max(number for number in numbers if shares(number)[1] >= keep)
    expected = (least + most) / 2 if least < most else most
    assert found.min_similarity == pytest.approx(expected, abs=0.0016)


def test_the_best_document_of_an_answer_counts():
    """A page answers if one of its chunks does, and none of its chunks is noise."""
    pages = {"one": ("topic 1 a", "topic 2 b"), "two": ("topic 3 c", "topic 4 d")}
    with LinkStore(Topics()) as store:
        store.add_documents([Document(id=id, page_content=id) for ids in pages.values() for id in ids])
        entries = [PageEntry(source="s", url=url, digest="d", ids=ids) for url, ids in pages.items()]
        store.backend.run(store.backend.write(WriteBatch(put_pages=entries)))
        asked = [GoldQuestion(question="topic 1 q", gold=("one",))]
        found = calibrate_min_similarity(store, asked, noise=0.0, keep=1.0)
    similar = vectors(["topic 1 q"]) @ vectors([id for ids in pages.values() for id in ids]).T
    best, other, *unrelated = similar[0].tolist()
    assert max(other, *unrelated) < found.min_similarity < best
    assert (found.noise, found.gold, found.pairs, found.answers) == (0.0, 1.0, 2, 1)


def test_what_cannot_be_calibrated_is_an_error(store):
    with LinkStore(Topics()) as empty, pytest.raises(EvaluationError, match="the store has 0 documents"):
        calibrate_min_similarity(empty, questions())
    for wrong in ({"noise": -0.1}, {"noise": 1.1}, {"keep": 2}, {"noise": float("nan")}):
        with pytest.raises(EvaluationError, match="must be a share from 0 to 1"):
            calibrate_min_similarity(store, questions(), **wrong)
    with pytest.raises(EvaluationError, match="nowhere"):
        calibrate_min_similarity(store, [GoldQuestion(question="topic 1 q", gold=("nowhere",))])


def test_the_sample_follows_its_seed(store, monkeypatch):
    monkeypatch.setattr("linkstore.evaluate.calibration.SAMPLE_SIZE", 50)
    one, again, other = (calibrate_min_similarity(store, questions(), seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one.noise != other.noise
    assert one.min_similarity == pytest.approx(other.min_similarity, abs=0.1)


# --- what a store does with it --------------------------------------------------------------------


OFF_TOPIC = "topic 999 nothing"


@pytest.mark.parametrize(
    "strategy", [Eager(), Mmr(), PageRank(lexical=0), AllPaths(lexical=0)], ids=lambda one: type(one).__name__
)
def test_searches_use_the_default_of_the_store_unless_told_otherwise(store, strategy):
    assert store.search_settings.min_similarity is None
    before = store.search(OFF_TOPIC, strategy=strategy)
    assert before
    store.configure(min_similarity=0.75)
    assert store.search_settings.min_similarity == 0.75
    hits = store.search(OFF_TOPIC, strategy=strategy)
    assert not hits
    assert "no document reaches min_similarity 0.75" in (hits.reason or "")
    assert "min_similarity=0.75" in hits.strategy
    found = store.search("topic 7 asked", strategy=strategy)
    assert {str(hit.document.id).split()[1] for hit in found} == {"7"}
    for own in (-1.0, -0.99):
        told = type(strategy)(**({"lexical": 0} if hasattr(strategy, "lexical") else {}), min_similarity=own)
        assert len(store.search(OFF_TOPIC, strategy=told)) == len(before)
    store.configure(min_similarity=None)
    assert store.search_settings.min_similarity is None
    assert [hit.document.id for hit in store.search(OFF_TOPIC, strategy=strategy)] == [
        hit.document.id for hit in before
    ]


def test_plain_similarity_search_has_no_minimum(store):
    store.configure(min_similarity=0.9)
    assert len(store.search(OFF_TOPIC, strategy=Similarity(k=4))) == 4
    assert len(store.similarity_search(OFF_TOPIC)) == 4
    assert store.traversal_search(OFF_TOPIC) == []
    assert asyncio.run(store.asearch(OFF_TOPIC, strategy=Eager())).hits == ()


def test_the_default_is_the_stores_and_outlives_the_process(tmp_path):
    with LinkStore.open(tmp_path / "kb", embedding=Topics()) as one:
        one.add_documents([Document(id=text, page_content=text) for text in texts()])
        asyncio.run(one.aconfigure(min_similarity=0.5))
        with LinkStore.open(tmp_path / "kb", embedding=Topics()) as two:
            assert two.search_settings.min_similarity == 0.5
            two.configure(min_similarity=0.625)
        assert one.search_settings.min_similarity == 0.5  # what it was when it was opened, or set
    with LinkStore.open(tmp_path / "kb", embedding=Topics()) as three:
        assert three.search_settings.min_similarity == 0.625
        assert three.verify().sound


@pytest.mark.parametrize("wrong", [1.01, -2, float("nan"), "0.5", True])
def test_only_a_similarity_can_be_set(store, wrong):
    with pytest.raises(StrategyError, match="min_similarity must be a number from -1 to 1"):
        store.configure(min_similarity=wrong)
    assert store.search_settings.min_similarity is None


def test_a_note_that_linkstore_did_not_write_is_an_error(store, tmp_path):
    backend = store.backend
    for value in ("low", "2", "[]", "true"):
        before = backend.run(backend.note(MIN_SIMILARITY_NOTE))
        backend.run(backend.set_note(MIN_SIMILARITY_NOTE, value, before))
        with pytest.raises(StoreFormatError, match="not a number from -1 to 1"):
            LinkStore(Topics(), backend=backend)


def test_two_at_once_do_not_overwrite_each_other_unseen(store, monkeypatch):
    backend = store.backend
    note = backend.note

    def outdated(name):
        backend.run(backend.set_note(name, "0.1", None))
        monkeypatch.setattr(backend, "note", note)
        yield from ()
        return None

    monkeypatch.setattr(backend, "note", outdated)
    with pytest.raises(StoreBusyError, match="at the same time"):
        store.configure(min_similarity=0.2)


# --- without a minimum -------------------------------------------------------------------


@pytest.fixture(scope="module")
def manual():
    """A store of more documents than a first stage looks for."""
    parts = ("pump", "valve", "gasket", "filter", "boiler", "burner", "thermostat", "pipe")
    tasks = ("cleaned", "replaced", "inspected", "tightened", "measured", "lubricated", "drained")
    with LinkStore() as made:
        made.add_documents(
            Document(
                id=f"{part}-{task}-{year}",
                page_content=f"How the {part} of the heating system is {task} in its year {year} of service.",
            )
            for part in parts
            for task in tasks
            for year in (1, 2)
        )
        yield made


@pytest.mark.parametrize("strategy", [PageRank(), AllPaths()])
def test_a_question_about_something_else_finds_the_nearest_and_hears_the_doubt(manual, strategy):
    hits = manual.search("sourdough recipes without yeast", strategy=strategy)
    assert hits
    assert "no document has the words sourdough, recipes, yeast" in hits.doubt
    assert "no document has the words sourdough" in hits.documents()[0].metadata["linkstore"]["doubt"]
    assert "nothing here is about this: no document has the words sourdough" in hits.explain()
    many = manual.search(" ".join(f"sour{number}dough" for number in range(20)), strategy=strategy)
    assert "sour7dough and 12 more, and the most similar" in many.doubt
    own = manual.search("sourdough recipes without yeast", strategy=replace(strategy, min_similarity=-1.0))
    assert own.doubt is None, "a minimum of the caller's decides instead"


@pytest.mark.parametrize(
    "question",
    [
        "yeast",  # one word says little
        "why does the burner sneeze",  # so does one that is unknown
        "what can I do then",  # no word to look up
        "?",
        "claening the vallve",  # slips
        "thermostaat inspektion",
        "pump-cleaned-1",  # an id
        "sourdough yeast pump-cleaned-1",
    ],
)
def test_where_it_is_not_sure_a_question_finds_the_nearest(manual, question):
    assert manual.search(question)


def test_a_small_store_says_too_that_a_question_is_about_something_else(place):
    with LinkStore.open(place[0]) as store:
        hits = store.search("sourdough recipes without yeast")
    assert len(hits) == 4
    assert "sourdough" in hits.doubt


def test_a_result_says_how_well_it_matches(manual):
    strong = manual.search("How is the pump cleaned?")
    assert strong.match.startswith("strong match: the best similarity is 0.")
    assert manual.search("pump-cleaned-1").match.startswith("strong match: the best")
    weak = manual.search("when is the year over")
    best = max(hit.similarity for hit in weak)
    assert weak.match == f"weak match: the best similarity is {best:.2f}, which is less than 0.35"
    assert manual.search("sourdough recipes without yeast").match.startswith("probably nothing here")
    plain = manual.search("pump", strategy=Similarity())
    assert plain.match == f"the best similarity is {plain[0].similarity:.2f}"


# --- the command line --------------------------------------------------------------------


@pytest.fixture
def place(tmp_path):
    with LinkStore.open(tmp_path / "kb") as made:
        made.add_documents(
            [
                Document(id=id, page_content=text)
                for id, text in (
                    ("tower", "The Space Needle is an observation tower in Seattle."),
                    ("soup", "Simmer the onions slowly in butter before adding stock."),
                    ("bond", "Interest on government bonds is paid twice a year."),
                    ("whale", "Humpback whales migrate between polar and tropical waters."),
                )
            ]
        )
    asked = tmp_path / "questions.jsonl"
    asked.write_text(
        '{"question": "How tall is the tower in Seattle?", "gold": ["tower"]}\n'
        '{"question": "When is interest on bonds paid?", "gold": ["bond"]}\n'
    )
    return str(tmp_path / "kb"), str(asked)


def test_the_command_proposes_saves_and_clears(place):
    store, asked = place
    code, out, err = linkstore("eval", "--calibrate", "--store", store, "--questions", asked)
    assert (code, "of 2 gold answers; 100.0 % of 2 questions" in out, "the store records none" in err) == (
        0,
        True,
        True,
    )
    code, out, err = linkstore(
        "eval", "--calibrate", "--store", store, "--questions", asked, "--save", "--json"
    )
    found = json.loads(out)
    assert (code, found["gold"], found["noise"], found["pairs"]) == (0, 1.0, 0.0, 6)
    assert found["recorded"] == found["min_similarity"]
    with LinkStore.open(store) as opened:
        assert opened.search_settings.min_similarity == found["min_similarity"]
        direct = calibrate_min_similarity(
            opened,
            [
                GoldQuestion(question="How tall is the tower in Seattle?", gold=("tower",)),
                GoldQuestion(question="When is interest on bonds paid?", gold=("bond",)),
            ],
        )
        assert direct.min_similarity == found["min_similarity"]
    question = "Which drummer joined the quartet?"
    code, out, err = linkstore("query", question, "--store", store, "--json")
    assert (code, out, "no document reaches min_similarity" in err) == (0, "[]\n", True)
    assert (
        len(json.loads(linkstore("query", question, "--store", store, "--json", "--min-similarity", "-1")[1]))
        == 4
    )
    assert linkstore("eval", "--calibrate", "--store", store, "--clear")[0] == 0
    assert len(json.loads(linkstore("query", question, "--store", store, "--json")[1])) == 4


def test_the_command_says_what_it_cannot_propose(place):
    store, _ = place
    code, out, err = linkstore("eval", "--calibrate", "--store", store, "--save")
    assert code == 0
    assert "no min_similarity to propose without --questions" in out
    assert "nothing to save; the store records none" in err
    assert (
        json.loads(linkstore("eval", "--calibrate", "--store", store, "--json")[1])["min_similarity"] is None
    )


def test_a_query_says_how_well_its_results_match(place):
    store, _ = place
    said = {
        "How high is the observation tower in Seattle?": "strong match: the question names a document",
        "how to bake sourdough bread": "probably nothing here is about this: no document has the words",
    }
    for question, told in said.items():
        code, out, err = linkstore("query", question, "--store", store)
        assert (code, "score 1.000" in out, told in err) == (0, True, True)


def test_the_command_refuses_what_does_not_go_together(place):
    store, asked = place
    for wrong in (
        ("--clear", "--save"),
        ("--clear", "--questions", asked),
        ("--questions", "missing.jsonl"),
        ("--noise", "2"),
    ):
        assert linkstore("eval", "--calibrate", "--store", store, *wrong)[0] == 2
    assert (
        linkstore("query", "x", "--store", store, "--strategy", "similarity", "--min-similarity", "0.1")[0]
        == 2
    )
