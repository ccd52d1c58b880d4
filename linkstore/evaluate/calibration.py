"""Calibrates a minimum similarity, from questions, and the weight of words, from documents alone."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from linkstore.core.arguments import require
from linkstore.core.arrays import Floats, cosine_similarities, normalize_vector
from linkstore.core.display import format_percent
from linkstore.core.lexical import (
    bm25_weight,
    extract_document_terms,
    extract_question_terms,
    inverse_frequency,
)
from linkstore.core.plans import Find, Ids, Plan, ask
from linkstore.core.text import split_sentences
from linkstore.embeddings.names import DEFAULT_LEXICAL_WEIGHT
from linkstore.engines.contract import Record
from linkstore.errors import EvaluationError
from linkstore.evaluate.running import GoldKind, GoldQuestion, GoldUnits, find_gold_units
from linkstore.store.linkstore import LinkStore, require_store

Doubles = npt.NDArray[np.float64]
DEFAULT_NOISE: Final = 0.05
"""The share of noise that may reach the minimum."""
DEFAULT_KEEP: Final = 0.99
"""The share of questions of which an answer must reach it."""
SAMPLE_SIZE: Final = 1_000
"""Number of documents drawn at random, with equal probability."""
LEXICAL_WEIGHTS: Final = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
"""The weights of words that are compared."""
CLOZE_QUESTIONS: Final = 500
"""From how many documents a sentence is taken, at most,"""
FEWEST_CLOZE_QUESTIONS: Final = 50
"""and at least, for an estimate."""
SENTENCE_WORDS: Final = range(5, 31)
"""How many words such a sentence has, without stop words."""
MOST_NOISE: Final = 0.5
"""A minimum that more noise reaches, unless the caller allows it, stops too little to be proposed."""
_SAMPLE_BATCH: Final = 1_000
_FLOOR_STEPS: Final = 1_000
"""A minimum has three digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityThreshold:
    """A proposed minimum similarity, and what it lets through.

    Args:
        min_similarity: The proposal, with three digits. None if answers and noise are so alike that no
            minimum is worth setting; the shares are those of the best one then.
        noise: The share of unrelated pairs whose similarity reaches it.
        pairs: How many pairs of a question and a document that does not answer it were compared.
        gold: The share of gold answers that reach it, each by its best document.
        answers: How many gold answers there are.
        asked: The share of questions of which at least one answer reaches it.
        questions: How many questions there are.
    """

    min_similarity: float | None
    noise: float
    pairs: int
    gold: float
    answers: int
    asked: float
    questions: int

    def to_dict(self) -> dict[str, Any]:
        """Return the proposal as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        if self.min_similarity is None:
            return (
                "no min_similarity to propose: questions are no more similar to their answers than to other"
                f" documents, and {format_percent(self.noise)} of {self.pairs:,} pairs of a question and a"
                f" document that does not answer it would reach one that {format_percent(self.asked)} of"
                f" {self.questions:,} questions have an answer for"
            )
        return (
            f"min_similarity {self.min_similarity:.3f}: {format_percent(self.noise)} of {self.pairs:,} pairs"
            " of a question and a document that does not answer it reach it, and"
            f" {format_percent(self.gold)} of {self.answers:,} gold answers;"
            f" {format_percent(self.asked)} of {self.questions:,} questions have an answer that reaches it"
        )


def calibrate_min_similarity(
    store: LinkStore,
    questions: Sequence[GoldQuestion],
    *,
    gold: GoldKind | None = None,
    noise: float = DEFAULT_NOISE,
    keep: float = DEFAULT_KEEP,
    seed: int = 0,
) -> SimilarityThreshold:
    """Propose a minimum similarity for the searches of a store, by what its embedding says of its texts.

    Noise means the similarities of questions and documents that do not answer them. The proposal is the
    middle between the least number that at most the share ``noise`` of these similarities reaches, and the
    greatest that the best answers of the share ``keep`` of questions reach. If the second number is the lower
    one, the proposal is that, and more noise reaches it; if more than half of the noise does, nothing is
    proposed. A question needs one answer to start from, because links lead to the others. The store is read
    once from end to end, and stays as it is.

    Documents alone do not say how similar a question and its answer are, so nothing is proposed from them.

    Args:
        store: A store with at least 2 documents.
        questions: Questions with their answers.
        gold: What answers name, see :func:`~linkstore.evaluate.evaluate`.
        noise: From 0 to 1; default 0.05.
        keep: From 0 to 1; default 0.99.
        seed: For the sample of documents.

    Returns:
        The proposal, which :meth:`~linkstore.LinkStore.configure` records.

    Raises:
        EvaluationError: If there are no questions, the store has too few documents, a share is not from 0 to
            1, or a gold answer is not in the store.
    """
    require_store(store=store)
    for name, share in (("noise", noise), ("keep", keep)):
        require((int, float), "a share from 0 to 1", **{name: share})
        if not 0 <= share <= 1:
            raise EvaluationError(f"{name} must be a share from 0 to 1, not {share!r}")
    if not questions:
        raise EvaluationError("a minimum similarity is proposed from questions with their answers; give some")
    heard = sample_similarities(store, questions, gold, seed)
    threshold, most = _find_least_reached(heard.unrelated, noise), _find_most_reached(heard.best, keep)
    threshold = round((threshold + most) / 2, 3) if threshold < most else most
    calibration = heard.at(min(max(threshold, -1.0), 1.0))
    return (
        replace(calibration, min_similarity=None)
        if calibration.noise > max(noise, MOST_NOISE)
        else calibration
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalWeight:
    """A proposed weight of words, and what speaks for it.

    Args:
        weight: The proposal.
        found: For each weight compared, the mean reciprocal rank, from 0 to 1, of the documents that
            sentences were taken from.
        sentences: How many sentences there were.
    """

    weight: float
    found: Mapping[float, float]
    sentences: int

    def to_dict(self) -> dict[str, Any]:
        """Return the proposal as plain JSON."""
        compared = [{"weight": weight, "mrr": mrr} for weight, mrr in self.found.items()]
        return {"lexical_weight": self.weight, "sentences": self.sentences, "compared": compared}

    def __str__(self) -> str:
        return (
            f"lexical_weight {self.weight:g}: with it, {self.sentences:,} sentences find the documents that"
            f" they were taken from with a mean reciprocal rank of {format_percent(self.found[self.weight])};"
            f" without words {format_percent(self.found[0.0])}"
        )


def estimate_lexical_weight(store: LinkStore, *, seed: int = 0) -> LexicalWeight:
    """Propose the weight of words in the searches of a store, by what its embedding says of its texts.

    Sentences are taken out of documents drawn at random, and each is a question that the rest of its document
    answers (the inverse cloze task of K. Lee et al., "Latent Retrieval for Weakly Supervised Open Domain
    Question Answering", ACL 2019). All of these documents are ranked as by the first stage of a search, by
    similarity and words, with each of :data:`LEXICAL_WEIGHTS`. Of the weights that are not worse than the
    best one by more than one standard error (L. Breiman et al., "Classification and Regression Trees", 1984),
    the proposal is the one nearest to 1, the weight without any knowledge.

    The store is read once from end to end, and stays as it is. At most 500 sentences and as many documents
    are embedded.

    Args:
        store: A store with at least 50 documents of several sentences.
        seed: For the sample of documents.

    Returns:
        The proposal, which :meth:`~linkstore.LinkStore.configure` records.

    Raises:
        EvaluationError: If the store has too few documents.
    """
    require_store(store=store)
    cloze = _take_sentences(_sample_documents(store, seed), seed)
    if len(cloze) < FEWEST_CLOZE_QUESTIONS:
        raise EvaluationError(
            f"{len(cloze)} documents drawn from the store have several sentences, one of them of"
            f" {SENTENCE_WORDS.start} to {SENTENCE_WORDS.stop - 1} words; an estimate of the weight of words"
            f" needs at least {FEWEST_CLOZE_QUESTIONS}"
        )
    meaning = _compare_cloze(store, cloze)
    words = _match_cloze(cloze)
    reciprocals: dict[float, Doubles] = {}
    for weight in LEXICAL_WEIGHTS:
        scores = meaning + np.float32(weight) * words
        reciprocals[weight] = 1 / (1 + (scores > np.diag(scores)[:, None]).sum(axis=1))
    best = max(reciprocals.values(), key=np.mean)
    worse = {weight: best - doubles for weight, doubles in reciprocals.items()}
    good = [weight for weight, by in worse.items() if np.mean(by) <= np.std(by) / math.sqrt(len(by))]
    return LexicalWeight(
        weight=min(good, key=lambda weight: abs(weight - DEFAULT_LEXICAL_WEIGHT)),
        found={weight: float(np.mean(doubles)) for weight, doubles in reciprocals.items()},
        sentences=len(cloze),
    )


def _take_sentences(documents: list[Record], seed: int) -> list[tuple[str, Record]]:
    """Take one sentence of some words out of each document that has others, and return it with the rest."""
    chance = random.Random(seed)  # noqa: S311 - a sample, no secret
    chance.shuffle(documents)
    cloze: list[tuple[str, Record]] = []
    for record in documents:
        sentences = split_sentences(record.text)
        fit = [
            sentence for sentence in sentences if len(extract_question_terms(sentence)[0]) in SENTENCE_WORDS
        ]
        if len(set(fit)) > 1 and len(cloze) < CLOZE_QUESTIONS:
            taken = chance.choice(fit)
            rest = " ".join(sentence for sentence in sentences if sentence != taken)
            cloze.append((taken.strip(), replace(record, text=rest)))
    return cloze


def _compare_cloze(store: LinkStore, cloze: Sequence[tuple[str, Record]]) -> Floats:
    """Return (n, n) similarities of sentences and documents, over the greatest of each sentence."""
    rest = np.stack(
        [
            normalize_vector(document)
            for document in store.embeddings.embed_documents([record.text for _, record in cloze])
        ]
    )
    asked = np.stack([normalize_vector(store.embeddings.embed_query(taken)) for taken, _ in cloze])
    similarity: Floats = asked @ rest.T
    best = similarity.max(axis=1, keepdims=True)
    compared: Floats = (similarity / np.where(best > 0, best, 1)).astype(np.float32)
    return compared


def _match_cloze(cloze: Sequence[tuple[str, Record]]) -> Floats:
    """Return (n, n) BM25 of sentences and documents, over the greatest of each sentence."""
    terms = [Counter(extract_document_terms(record.text, record.metadata, record.id)) for _, record in cloze]
    having = Counter(word for term in terms for word in term)
    length = np.array([term.total() for term in terms], dtype=np.float64)
    score = np.zeros((len(cloze), len(cloze)))
    for row, (taken, _) in enumerate(cloze):
        for word in extract_question_terms(taken)[0]:
            count = np.array([term[word] for term in terms], dtype=np.float64)
            weight = bm25_weight(count, length, float(length.mean()))
            score[row] += inverse_frequency(len(cloze), having[word]) * weight
    best = score.max(axis=1, keepdims=True)
    return (score / np.where(best > 0, best, 1)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class SimilaritySample:
    """Similarities of questions and documents that do not answer them (n,), and of the answers of each."""

    unrelated: Floats
    answered: tuple[Floats, ...]

    @property
    def best(self) -> Floats:
        """(q,) the similarity of the best answer of each question."""
        return np.array([answers.max() for answers in self.answered], dtype=np.float32)

    def at(self, threshold: float) -> SimilarityThreshold:
        """Return the shares that a minimum lets through."""
        answered = np.concatenate(self.answered)
        return SimilarityThreshold(
            min_similarity=threshold,
            noise=_share_reaching(self.unrelated, threshold),
            pairs=len(self.unrelated),
            gold=_share_reaching(answered, threshold),
            answers=len(answered),
            asked=_share_reaching(self.best, threshold),
            questions=len(self.answered),
        )


def sample_similarities(
    store: LinkStore, questions: Sequence[GoldQuestion], gold: GoldKind | None, seed: int
) -> SimilaritySample:
    """Compare documents with questions that they do not answer, and questions with their gold answers."""
    drawn = _sample_documents(store, seed)
    ids, vectors = [record.id for record in drawn], np.stack([record.vector for record in drawn])
    units = find_gold_units(store, questions, gold)
    unrelated, answered = [], []
    for question in questions:
        asked = normalize_vector(store.embeddings.embed_query(question.question))
        own = frozenset[str]().union(*(units.documents[answer] for answer in question.gold))
        others = [at for at, id in enumerate(ids) if id not in own]
        unrelated.append(cosine_similarities(vectors[others], asked))
        plan = _find_best_of_answers(question, units, asked)
        answered.append(store.backend.run(store.backend.answer(plan)))
    heard = SimilaritySample(np.concatenate(unrelated), tuple(answered))
    if not len(heard.unrelated):
        raise EvaluationError("every document answers every question, so there is no noise to compare with")
    return heard


def _sample_documents(store: LinkStore, seed: int) -> list[Record]:
    """Draw documents at random in one pass (reservoir sampling).

    Source: J. Vitter, "Random sampling with a reservoir", ACM TOMS 11 (1985), algorithm R.
    """
    chance = random.Random(seed)  # noqa: S311 - a sample, no secret
    drawn: list[Record] = []
    seen, after = 0, None
    while batch := store.backend.run(store.backend.scan(after, _SAMPLE_BATCH)):
        for record in batch:
            seen += 1
            if len(drawn) < SAMPLE_SIZE:
                drawn.append(record)
            elif (at := chance.randrange(seen)) < SAMPLE_SIZE:
                drawn[at] = record
        after = batch[-1].id
    if len(drawn) < 2:
        raise EvaluationError(f"the store has {len(drawn)} documents; a minimum needs at least 2")
    return drawn


def _find_best_of_answers(question: GoldQuestion, units: GoldUnits, asked: Floats) -> Plan[Floats]:
    """Return the similarity of each gold answer: that of its best document."""
    answers = [units.documents[answer] for answer in question.gold]
    wanted = tuple(sorted(frozenset[str]().union(*answers)))
    candidates = yield from ask(Find(ids=wanted, vector=asked))
    ids = yield from ask(Ids(refs=candidates.refs))
    of = dict(zip(ids, candidates.similarity.tolist(), strict=True))
    return np.array([max(of[id] for id in answer if id in of) for answer in answers], dtype=np.float32)


def _find_least_reached(values: Floats, share: float) -> float:
    """Return the least number of three digits that at most this share of values reaches."""
    ordered = np.sort(values)[::-1]
    passing = math.floor(share * len(ordered))
    if passing >= len(ordered):
        return -1.0
    highest_below = float(ordered[passing])
    return (math.floor(highest_below * _FLOOR_STEPS) + 1) / _FLOOR_STEPS


def _find_most_reached(values: Floats, share: float) -> float:
    """Return the greatest number of three digits that at least this share of values reaches."""
    ordered = np.sort(values)[::-1]
    needed = min(math.ceil(share * len(ordered)), len(ordered))
    return math.floor(float(ordered[needed - 1]) * _FLOOR_STEPS) / _FLOOR_STEPS if needed else 1.0


def _share_reaching(values: Floats, threshold: float) -> float:
    return float(np.mean(values >= np.float32(threshold)))
