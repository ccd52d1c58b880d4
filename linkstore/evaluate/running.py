"""Runs every strategy on every question of a file, and measures ranks and times.

Each line of a corpus is a document, ``{"id", "title", "text", "links"?}``, where links are a list of
``{"kind", "tag", "direction", "label"?, "weight"?}``. Each line of questions is ``{"question", "gold"}``,
where gold is a list of the pages, sections or ids that answer the question. Other keys and empty lines are
ignored.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, get_args

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from pydantic import BaseModel, Field, ValidationError

from linkstore.core.arguments import as_path, require, require_list
from linkstore.core.arrays import normalize_vector
from linkstore.core.calls import Progress, split_batches
from linkstore.core.documents import is_storable
from linkstore.core.links import LINKS_KEY, merge_links
from linkstore.core.plans import select_stored
from linkstore.errors import EvaluationError, LinkError
from linkstore.evaluate.metrics import (
    MAX_RANK,
    STRATEGIES,
    Evaluation,
    Ranks,
    StrategyRun,
    compare_with_baseline,
    compute_outcomes,
    make_strategies,
)
from linkstore.store.linkstore import LinkStore
from linkstore.store.search import choose_strategy
from linkstore.strategies.base import Question, Strategy
from linkstore.strategies.first_stage import Similarity

T = TypeVar("T")
MOST_QUOTED: Final = 80
"""Characters of a row that a message quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldQuestion:
    """A question and its gold answers.

    Args:
        question: The question as text.
        gold: URLs of pages or sections, or ids of documents, each once; at least one.
    """

    question: str
    gold: tuple[str, ...]


def read_corpus(path: str | Path) -> list[Document]:
    """Read documents from a file of rows.

    The text of a document is its title, a line break and its text, which is embedded. The title is also
    ``metadata["title"]``, the links are ``metadata["links"]``.

    Raises:
        EvaluationError: If a row cannot be used or an id comes twice. The message names file and line.
        OSError: If the file cannot be read.
    """
    documents = []
    line_of: dict[str, int] = {}
    for line, document in _read_rows(as_path("path", path), _DocumentRow):
        id = str(document.id)
        if id in line_of:
            raise EvaluationError(f"{path}, line {line}: the id {id!r} is already on line {line_of[id]}")
        line_of[id] = line
        documents.append(document)
    if not documents:
        raise EvaluationError(f"{path} has no rows; a corpus needs at least one document")
    return documents


def read_questions(path: str | Path) -> list[GoldQuestion]:
    """Read questions with their gold answers from a file of rows, where a repeated answer counts once.

    Raises:
        EvaluationError: If a row cannot be used. The message names file and line.
        OSError: If the file cannot be read.
    """
    questions = [question for _, question in _read_rows(as_path("path", path), _QuestionRow)]
    if not questions:
        raise EvaluationError(f"{path} has no rows; an evaluation needs at least one question")
    return questions


class _Row(BaseModel, ABC, Generic[T], strict=True):
    """A row of a file, and what it stands for."""

    @abstractmethod
    def make(self) -> T: ...


class _DocumentRow(_Row[Document]):
    """A row of a corpus."""

    id: str
    title: str
    text: str
    links: list[dict[str, Any]] = []

    def make(self) -> Document:
        if not self.id or "\0" in self.id:
            raise EvaluationError(f"'id' must not be empty or hold a NUL, but is {self.id!r}")
        whole = f"{self.title}\n{self.text}".strip()
        if not whole:
            raise EvaluationError(f"document {self.id!r} has neither a title nor a text")
        carried = [link.to_dict() for link in merge_links(self.links)]
        return Document(id=self.id, page_content=whole, metadata={"title": self.title, LINKS_KEY: carried})


class _QuestionRow(_Row[GoldQuestion]):
    """A row of questions."""

    question: str
    gold: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1)

    def make(self) -> GoldQuestion:
        if not self.question.strip():
            raise EvaluationError("'question' is empty")
        return GoldQuestion(question=self.question, gold=tuple(dict.fromkeys(self.gold)))


def _read_rows(path: Path, kind: type[_Row[T]]) -> Iterator[tuple[int, T]]:
    """Yield what each row stands for, with its line number from 1."""
    with path.open("rb") as file:
        for line, text in enumerate(file, 1):
            try:
                if text.strip():
                    yield line, kind.model_validate_json(text).make()
            except ValidationError as error:
                wrong = error.errors(include_url=False)[0]
                named = f"{'.'.join(map(str, wrong['loc']))!r}: " if wrong["loc"] else ""
                value = repr(wrong["input"])[:MOST_QUOTED]
                problem = f"{named}{wrong['msg']}, but this is {value}"
                raise EvaluationError(f"{path}, line {line}: {problem}") from error
            except (EvaluationError, LinkError) as error:
                raise EvaluationError(f"{path}, line {line}: {error}") from error


GoldKind = Literal["page", "section", "id"]
"""Kinds of gold answers."""
GOLD_KINDS: Final[tuple[str, ...]] = get_args(GoldKind)
_LOOKUP_BATCH: Final = 1000
_MAX_NAMED_ANSWERS: Final = 5
"""Number of missing answers that a message lists."""
_FURTHER_CHUNK: Final = re.compile(r"~\d+\Z")
"""The end of the ids of further chunks of a section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldUnits:
    """The documents that each gold answer stands for.

    Args:
        kind: Kind of the answers.
        documents: By answer, the ids of its documents; finding any of them is finding the answer.
    """

    kind: GoldKind
    documents: Mapping[str, frozenset[str]]


def find_gold_units(store: LinkStore, questions: Sequence[GoldQuestion], kind: GoldKind | None) -> GoldUnits:
    """Look up the documents of every gold answer.

    Args:
        store: Where the documents are.
        questions: Questions with their answers.
        kind: What the answers name. None: pages, if every answer is the URL of an indexed page, else
            sections, if every answer is a section of one, else ids of documents.

    Raises:
        EvaluationError: If an answer is not in the store, or ``kind`` is unknown.
    """
    require_list("questions", questions=questions)
    for question in questions:
        require(GoldQuestion, "a GoldQuestion", question=question)
    if kind is not None and kind not in GOLD_KINDS:
        raise EvaluationError(f"gold must be one of {', '.join(GOLD_KINDS)}, not {kind!r}")
    wanted = list(dict.fromkeys(answer for question in questions for answer in question.gold))
    pages = _find_page_documents(
        store, {answer.partition("#")[0] for answer in wanted} if kind != "id" else ()
    )
    if kind == "page" or (kind is None and all(answer in pages for answer in wanted)):
        return _make_units("page", wanted, {answer: pages.get(answer, ()) for answer in wanted})
    sections = {answer: _select_section(answer, pages.get(answer.partition("#")[0], ())) for answer in wanted}
    if kind == "section" or (kind is None and all(sections.values())):
        return _make_units("section", wanted, sections)
    ids = _find_known_ids(store, wanted)
    return _make_units("id", wanted, {answer: [answer] if answer in ids else [] for answer in wanted})


def _make_units(kind: GoldKind, wanted: Sequence[str], found: Mapping[str, Iterable[str]]) -> GoldUnits:
    documents = {answer: frozenset(found[answer]) for answer in wanted}
    missing = [answer for answer in wanted if not documents[answer]]
    if missing:
        named = ", ".join(map(repr, missing[:_MAX_NAMED_ANSWERS])) + (
            ", …" if len(missing) > _MAX_NAMED_ANSWERS else ""
        )
        what = {"page": "the URL of an indexed page", "section": "the URL of a section of an indexed page"}
        raise EvaluationError(
            f"{len(missing)} of {len(wanted)} gold answers are not in the store: {named}; with gold={kind!r}"
            f" each must be {what.get(kind, 'the id of a document')}"
        )
    return GoldUnits(kind=kind, documents=documents)


def _find_page_documents(store: LinkStore, urls: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Map the URL of each indexed page to the ids of its documents."""
    ids_of: dict[str, tuple[str, ...]] = {}
    for some in split_batches(filter(is_storable, urls), _LOOKUP_BATCH):
        entries = store.backend.run(store.backend.pages(None, some))
        ids_of.update({entry.url: entry.ids for entry in entries})
    return ids_of


def _select_section(answer: str, ids: Sequence[str]) -> list[str]:
    """Return the chunks of a page that belong to a section.

    Their id is the section's, or that and ``~N``.
    """
    return [id for id in ids if _FURTHER_CHUNK.sub("", id) == answer or id == answer]


def _find_known_ids(store: LinkStore, answers: Sequence[str]) -> set[str]:
    """Return the answers that are ids of documents."""
    ids: set[str] = set()
    for some in split_batches(filter(is_storable, answers), _LOOKUP_BATCH):
        ids.update(store.backend.run(store.backend.answer(select_stored(some))))
    return ids


def evaluate(
    source: LinkStore | Sequence[Document],
    questions: Sequence[GoldQuestion],
    strategies: Sequence[str] | Mapping[str, Strategy] = STRATEGIES,
    *,
    gold: GoldKind | None = None,
    embedding: Embeddings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure how well strategies find the documents that answer questions.

    Each question is embedded once, then asked of all strategies in turn, for 20 hits. Before, the first
    question is asked of each once, unmeasured. Dense search is always run, as the baseline of gains.

    Args:
        source: A store, which stays as it is, or documents, which are put into one in memory.
        questions: Questions with their answers.
        strategies: Names as of ``linkstore eval --strategies``, or strategies by names of your own.
        gold: What answers name: ``"page"``, where any chunk of the page counts as found, ``"section"``,
            where any chunk of the section does, or ``"id"``, one document. None: recognised from the
            questions.
        embedding: For documents only; default wordllama.
        seed: The seed of the intervals. The same seed gives the same intervals.
        progress: Called after each question.

    Raises:
        EvaluationError: If there is no question, a gold answer is not in the store, or a strategy is unknown.
        CapabilityError: If a strategy needs what the store's backend cannot do.
    """
    if isinstance(source, LinkStore):
        if embedding is not None:
            raise EvaluationError("a store already has an embedding; pass one only with documents")
        return _evaluate_store(source, questions, strategies, gold, seed, progress)
    require_list("documents, or a store", source=source)
    with LinkStore.open(":memory:", embedding) as store:
        store.add_documents(list(source))
        return _evaluate_store(store, questions, strategies, gold, seed, progress)


def _evaluate_store(
    store: LinkStore,
    questions: Sequence[GoldQuestion],
    strategies: Sequence[str] | Mapping[str, Strategy],
    gold: GoldKind | None,
    seed: int,
    progress: Progress | None,
) -> Evaluation:
    if isinstance(strategies, Mapping):
        chosen = {name: choose_strategy(strategy, None) for name, strategy in strategies.items()}
    else:
        chosen = make_strategies(strategies)
    if not chosen:
        raise EvaluationError("no strategy is given; pass at least one")
    if not questions:
        raise EvaluationError("no question is given; pass at least one")
    units = find_gold_units(store, questions, gold)
    runs = {name: _TimedStrategy(strategy.with_k(MAX_RANK)) for name, strategy in chosen.items()}
    baseline = _TimedStrategy(Similarity(k=MAX_RANK))
    embedding_ms = _ask_questions(store, questions, [*runs.values(), baseline], progress)
    results = [clocked.run(name, questions, units, embedding_ms) for name, clocked in runs.items()]
    outcomes = compute_outcomes(results, baseline.ranks(questions, units), seed)
    comparison = compare_with_baseline(outcomes, len(questions), seed)
    return Evaluation(questions=len(questions), gold=units.kind, outcomes=outcomes, comparison=comparison)


@dataclass(slots=True)
class _TimedStrategy:
    """A strategy, and what it found for each question, with the time it took."""

    strategy: Strategy
    hits: list[list[str]] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)

    def ask(self, store: LinkStore, question: Question) -> list[str]:
        hits = store.backend.run(store.backend.answer(self.strategy.plan(question)))
        return [str(hit.document.id) for hit in hits]

    def measure(self, store: LinkStore, question: Question) -> None:
        started = time.perf_counter()
        hits = self.ask(store, question)
        self.milliseconds.append((time.perf_counter() - started) * 1e3)
        self.hits.append(hits)

    def ranks(self, questions: Sequence[GoldQuestion], units: GoldUnits) -> Ranks:
        """Return the rank of the first document of each gold answer."""
        return tuple(
            tuple(_find_rank(units.documents[answer], hits) for answer in question.gold)
            for hits, question in zip(self.hits, questions, strict=True)
        )

    def run(
        self, name: str, questions: Sequence[GoldQuestion], units: GoldUnits, embedding_ms: Sequence[float]
    ) -> StrategyRun:
        whole = [search + embed for search, embed in zip(self.milliseconds, embedding_ms, strict=True)]
        return StrategyRun(
            name=name,
            settings=str(self.strategy),
            ranks=self.ranks(questions, units),
            ms_per_query=median(whole),
            ms_without_embedding=median(self.milliseconds),
        )


def _ask_questions(
    store: LinkStore,
    questions: Sequence[GoldQuestion],
    runs: Sequence[_TimedStrategy],
    progress: Progress | None,
) -> list[float]:
    """Ask every question of every strategy, and return how many ms each question took to embed."""
    asked, embedding_ms = _embed_questions(store, [question.question for question in questions])
    for run in runs:
        run.ask(store, asked[0])
    for done, question in enumerate(asked, 1):
        for run in runs:
            run.measure(store, question)
        if progress is not None:
            progress(done, len(asked), question.text)
    return embedding_ms


def _embed_questions(store: LinkStore, texts: Sequence[str]) -> tuple[list[Question], list[float]]:
    """Return the questions for strategies, and how many ms each took to embed."""
    asked, times = [], []
    store.embeddings.embed_query(texts[0])  # loads the model
    for text in texts:
        started = time.perf_counter()
        vector = store.embeddings.embed_query(text)
        times.append((time.perf_counter() - started) * 1e3)
        asked.append(Question(vector=normalize_vector(vector), text=text))
    return asked, times


def _find_rank(documents: Collection[str], hits: Sequence[str]) -> int | None:
    return next((rank for rank, id in enumerate(hits, 1) if id in documents), None)
