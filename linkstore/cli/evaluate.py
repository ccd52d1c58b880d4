"""``linkstore evaluate``, ``profile`` and ``calibrate``: how well a store answers questions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.output import get_stdout, note, write_json
from linkstore.cli.stores import JsonOption, StoreOption, open_store, split_names

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.core.batches import Progress
    from linkstore.evaluate.calibration import LexicalWeight
    from linkstore.evaluate.metrics import Evaluation
    from linkstore.evaluate.running import GoldKind, GoldQuestion
    from linkstore.store.linkstore import LinkStore

CorpusOption = Annotated[
    str | None, typer.Option(metavar="FILE", help='JSON Lines of {"id", "title", "text", "links"?}.')
]
GoldQuestionsOption = Annotated[
    str,
    typer.Option(metavar="FILE", help='JSON Lines of {"question", "gold": [pages, sections or ids]}.'),
]
StoreInsteadOption = Annotated[
    str | None,
    typer.Option("--store", "-s", metavar="PLACE", help="An existing store, instead of --corpus."),
]
EvaluationEmbeddingOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="wordllama, minilm or openai:MODEL; default wordllama, or that of the store."
    ),
]
GoldOption = Annotated[
    Literal["page", "section", "id"] | None,
    typer.Option(help="What gold answers are; default: recognized. Any chunk of a page or section counts."),
]
StrategiesOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="Strategies to compare, such as dense,bm25,default; default all."),
]
CorpusLinksOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Kinds of links to keep, and extractors to run; default all kinds, else mention,entity.",
    ),
]


def evaluate(
    questions: GoldQuestionsOption,
    corpus: CorpusOption = None,
    store: StoreInsteadOption = None,
    embedding: EvaluationEmbeddingOption = None,
    strategies: StrategiesOption = None,
    links: CorpusLinksOption = None,
    gold: GoldOption = None,
    json: JsonOption = False,
) -> None:
    """Measure how well strategies find answers to questions.

    Prints recall among the first 2, 5, 10 and 20 hits and mean reciprocal rank, with 95 % intervals; the gain
    over dense search; the share of the answers missed by 20 hits of dense search that are among the first 10;
    and the time per query.
    """
    _require_one_source(corpus, store, links)
    _require_file(questions, "--questions")
    from linkstore.evaluate.metrics import STRATEGIES, compare_with_baseline
    from linkstore.evaluate.running import read_questions

    names = split_names(strategies or STRATEGIES)
    unknown = [name for name in names if name not in STRATEGIES]
    if unknown:
        raise UsageError(f"--strategies: unknown {', '.join(unknown)}; known: {', '.join(STRATEGIES)}")
    asked = read_questions(questions)
    if corpus is not None:
        found = _evaluate_corpus(_read_linked_corpus(corpus, links), asked, names, embedding, gold)
    else:
        found = _evaluate_opened(str(store), asked, names, embedding, gold)
    comparison = compare_with_baseline(found)
    if json:
        write_json(found.to_dict() | {"comparison": comparison and comparison.to_dict()})
    else:
        from linkstore.cli.tables import show_evaluation

        show_evaluation(found, comparison)


def _require_one_source(corpus: str | None, store: str | None, links: Sequence[str] | None) -> None:
    if (corpus is None) == (store is None):
        raise UsageError("give either --corpus or --store")
    if store is not None and links:
        raise UsageError("--links needs --corpus; a store keeps its links")
    if corpus is not None:
        _require_file(corpus, "--corpus")


def _require_file(path: str, option: str) -> None:
    if not Path(path).is_file():
        raise UsageError(f"{option}: the file {path} does not exist")


def _read_linked_corpus(corpus: str, links: Sequence[str] | None) -> list[Document]:
    from linkstore.evaluate.profiling import with_links
    from linkstore.evaluate.running import read_corpus

    return with_links(read_corpus(corpus), None if links is None else split_names(links))


def _evaluate_corpus(
    documents: Sequence[Document],
    questions: Sequence[GoldQuestion],
    names: Sequence[str],
    embedding: str | None,
    gold: GoldKind | None,
) -> Evaluation:
    from linkstore.embeddings.names import DEFAULT_EMBEDDING, get_embedding
    from linkstore.evaluate.running import evaluate

    chosen = get_embedding(embedding or DEFAULT_EMBEDDING)
    with _show_question_progress() as progress:
        return evaluate(documents, questions, names, gold=gold, embedding=chosen, progress=progress)


def _evaluate_opened(
    place: str,
    questions: Sequence[GoldQuestion],
    names: Sequence[str],
    embedding: str | None,
    gold: GoldKind | None,
) -> Evaluation:
    from linkstore.evaluate.running import evaluate

    with open_store(place, embedding=embedding) as store, _show_question_progress() as progress:
        return evaluate(store, questions, names, gold=gold, progress=progress)


@contextmanager
def _show_question_progress() -> Iterator[Progress | None]:
    """Show a progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from linkstore.cli.progress import show_progress_bar

    with show_progress_bar(unit="questions") as advance:
        yield lambda done, total, question: advance(done, total, question)


QuestionsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help='JSON Lines of {"question", "gold": [pages, sections or ids]}; default: compare documents.',
    ),
]
NoiseOption = Annotated[
    float, typer.Option(min=0, max=1, metavar="SHARE", help="Share of noise that may reach the minimum.")
]
KeepOption = Annotated[
    float,
    typer.Option(min=0, max=1, metavar="SHARE", help="Share of questions of which an answer must reach it."),
]
SaveOption = Annotated[bool, typer.Option("--save", help="Record the proposal as the store's default.")]
ClearOption = Annotated[bool, typer.Option("--clear", help="Remove the store's default instead.")]


def calibrate(
    store: StoreOption,
    questions: QuestionsOption = None,
    gold: GoldOption = None,
    noise: NoiseOption = 0.05,
    keep: KeepOption = 0.99,
    save: SaveOption = False,
    clear: ClearOption = False,
    json: JsonOption = False,
) -> None:
    """Propose a minimum similarity for the start of searches, and how much words count in them.

    A search starts from no document below the minimum. Prints the proposal with the share of noise that
    reaches it: random pairs of documents or, with questions, pairs of a question and a document that does not
    answer it; and the shares of gold answers that reach it, and of questions with an answer that does. The
    weight of words is proposed for embeddings of which it is not known, from sentences that are taken out of
    their documents.
    """
    if questions is not None and not Path(questions).is_file():
        raise UsageError(f"--questions: the file {questions} does not exist")
    if clear and (save or questions is not None):
        raise UsageError("--clear removes the defaults, and takes neither --save nor --questions")
    with open_store(store) as opened_store:
        if clear:
            _remove_defaults(opened_store)
            return
        from linkstore.evaluate.calibration import calibrate_floor
        from linkstore.evaluate.running import read_questions

        asked = () if questions is None else read_questions(questions)
        found = calibrate_floor(opened_store, asked, gold=gold, noise=noise, keep=keep)
        weight = _estimate_weight(opened_store)
        if save:
            opened_store.set_min_similarity(found.min_similarity)
            if weight is not None:
                opened_store.set_lexical_weight(weight.weight)
        recorded, used = opened_store.min_similarity, opened_store.lexical_weight
    if json:
        words = {"lexical_weight": used, "estimate": None if weight is None else weight.to_dict()}
        write_json(found.to_dict() | {"recorded": recorded} | words)
        return
    get_stdout().print(str(found))
    if weight is not None:
        get_stdout().print(str(weight))
    told = "records none" if recorded is None else f"records {recorded:g}"
    note(
        "recorded: searches of this store use it unless they set their own"
        if save
        else f"the store {told}; --save records this one"
    )


def _estimate_weight(store: LinkStore) -> LexicalWeight | None:
    """Estimate the weight of words if it is not known for the embedding, and the store has enough texts."""
    from linkstore.embeddings.names import LEXICAL_WEIGHT, embedding_name
    from linkstore.errors import EvaluationError
    from linkstore.evaluate.calibration import estimate_lexical_weight

    if embedding_name(store.embeddings) in LEXICAL_WEIGHT:
        return None
    try:
        return estimate_lexical_weight(store)
    except EvaluationError as error:
        note(f"the weight of words stays {store.lexical_weight:g}: {error}")
        return None


def _remove_defaults(store: LinkStore) -> None:
    """Remove the minimum similarity and the weight of words that a store records."""
    before = store.min_similarity
    store.set_min_similarity(None)
    store.set_lexical_weight(None)
    told = "no minimum similarity was recorded" if before is None else f"removed the minimum of {before:g}"
    note(f"{told}; words have the weight {store.lexical_weight:g}")


def profile(
    store: StoreOption,
    questions: Annotated[
        str | None,
        typer.Option(metavar="FILE", help='JSON Lines of {"question", "gold": [pages, sections or ids]}.'),
    ] = None,
    gold: GoldOption = None,
    json: JsonOption = False,
) -> None:
    """Show whether the links of a store can improve results.

    Prints links by kind, link groups by size, hubs, dangling links, and how many documents links reach. With
    questions and their answers, also prints how often links join the answers, and how much they can improve
    results.
    """
    if questions is not None and not Path(questions).is_file():
        raise UsageError(f"--questions: the file {questions} does not exist")
    from linkstore.evaluate.profiling import profile as profiled
    from linkstore.evaluate.running import read_questions

    asked = () if questions is None else read_questions(questions)
    with open_store(store) as opened_store:
        found = profiled(opened_store, asked, gold=gold)
    if json:
        write_json(found.to_dict())
    else:
        from linkstore.cli.tables import show_profile

        show_profile(found)
