"""``linkstore eval``: measures how well strategies find the answers to questions."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.options import JsonOption, listed
from linkstore.cli.output import write_json
from linkstore.cli.stores import opened

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.evaluation import Evaluation, GoldKind, GoldQuestion, Progress

Corpus = Annotated[
    str | None, typer.Option(metavar="FILE", help='JSON Lines of {"id", "title", "text", "links"?}.')
]
Questions = Annotated[
    str,
    typer.Option(metavar="FILE", help='JSON Lines of {"question", "gold": [pages, sections or ids]}.'),
]
Store = Annotated[
    str | None,
    typer.Option("--store", "-s", metavar="PLACE", help="An existing store, instead of --corpus."),
]
Embedding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="wordllama, minilm or openai:MODEL; default wordllama, or that of the store."
    ),
]
Gold = Annotated[
    Literal["page", "section", "id"] | None,
    typer.Option(help="What gold answers are; default: recognized. Any chunk of a page or section counts."),
]
Strategies = Annotated[
    list[str] | None,
    typer.Option(metavar="NAMES", help="Strategies to compare, such as dense,bm25,default; default all."),
]
Links = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Kinds of links to keep, and extractors to run; default all kinds, else mention,entity.",
    ),
]

Calibrate = Annotated[
    bool, typer.Option("--calibrate", help="Print coefficients for linkstore context instead.")
]


def evaluate(
    questions: Questions,
    corpus: Corpus = None,
    store: Store = None,
    embedding: Embedding = None,
    strategies: Strategies = None,
    links: Links = None,
    gold: Gold = None,
    calibrate: Calibrate = False,
    json: JsonOption = False,
) -> None:
    """Measure how well strategies find answers to questions.

    Prints recall among the first 2, 5, 10 and 20 hits and mean reciprocal rank, with 95 % intervals; the gain
    over dense search; the share of the answers missed by 20 hits of dense search that are among the first 10;
    and the time per query.
    """
    _require_one_source(corpus, store, links)
    _require_file(questions, "--questions")
    from linkstore.evaluation import STRATEGIES, compared, read_questions

    names = listed(strategies or STRATEGIES)
    unknown = [name for name in names if name not in STRATEGIES]
    if unknown:
        raise UsageError(f"--strategies: unknown {', '.join(unknown)}; known: {', '.join(STRATEGIES)}")
    asked = read_questions(questions)
    if calibrate:
        write_json(_calibrated(corpus, store, links, asked, embedding, gold))
        return
    if corpus is not None:
        found = _on_corpus(_linked(corpus, links), asked, names, embedding, gold)
    else:
        found = _on_store(str(store), asked, names, embedding, gold)
    comparison = compared(found)
    if json:
        write_json(found.to_dict() | {"comparison": comparison and comparison.to_dict()})
    else:
        from linkstore.cli.tables import show_evaluation

        show_evaluation(found, comparison)


def _calibrated(
    corpus: str | None,
    place: str | None,
    links: Sequence[str] | None,
    questions: Sequence[GoldQuestion],
    embedding: str | None,
    gold: GoldKind | None,
) -> dict[str, float]:
    """Return the coefficients of the value of candidates, fitted to the questions."""
    from linkstore.embeddings import DEFAULT_EMBEDDING, get_embedding
    from linkstore.evaluation import calibrate

    if corpus is not None:
        chosen = get_embedding(embedding or DEFAULT_EMBEDDING)
        return calibrate(_linked(corpus, links), questions, gold=gold, embedding=chosen)
    with opened(str(place), embedding=embedding) as store:
        return calibrate(store, questions, gold=gold)


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


def _linked(corpus: str, links: Sequence[str] | None) -> list[Document]:
    from linkstore.evaluation import read_corpus, with_links

    return with_links(read_corpus(corpus), None if links is None else listed(links))


def _on_corpus(
    documents: Sequence[Document],
    questions: Sequence[GoldQuestion],
    names: Sequence[str],
    embedding: str | None,
    gold: GoldKind | None,
) -> Evaluation:
    from linkstore.embeddings import DEFAULT_EMBEDDING, get_embedding
    from linkstore.evaluation import evaluate

    chosen = get_embedding(embedding or DEFAULT_EMBEDDING)
    with _progress() as progress:
        return evaluate(documents, questions, names, gold=gold, embedding=chosen, progress=progress)


def _on_store(
    place: str,
    questions: Sequence[GoldQuestion],
    names: Sequence[str],
    embedding: str | None,
    gold: GoldKind | None,
) -> Evaluation:
    from linkstore.evaluation import evaluate

    with opened(place, embedding=embedding) as store, _progress() as progress:
        return evaluate(store, questions, names, gold=gold, progress=progress)


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """Show a progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from linkstore.cli.progress import progress_bar

    with progress_bar(unit="questions") as advance:
        yield lambda done, total, question: advance(done, total, question)
