"""``linkstore evaluate``, ``profile`` and ``calibrate``: how well a store answers questions."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from linkstore.cli.commands import JsonOption, StoreOption
from linkstore.cli.exits import UsageError
from linkstore.cli.output import get_stdout, note, write_json
from linkstore.cli.stores import open_store, split_names

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.evaluate.calibration import LexicalWeight
    from linkstore.store.linkstore import LinkStore

GoldName = Literal["page", "section", "id"]
EXISTING: Final = typer.Option(exists=True, dir_okay=False)


def evaluate(
    questions: Annotated[Path, EXISTING],
    corpus: Annotated[Path | None, EXISTING] = None,
    store: Annotated[str | None, typer.Option("--store", "-s")] = None,
    embedding: str | None = None,
    strategies: list[str] | None = None,
    links: list[str] | None = None,
    gold: GoldName | None = None,
    json: JsonOption = False,
) -> None:
    """Measure how well strategies find answers to questions.

    Prints recall among the first 2, 5, 10 and 20 hits and mean reciprocal rank, with 95 % intervals; the gain
    over dense search; the share of the answers missed by 20 hits of dense search that are among the first 10;
    and the time per query.

    Args:
        questions (FILE): JSON Lines of {"question", "gold": [pages, sections or ids]}.
        corpus (FILE): JSON Lines of {"id", "title", "text", "links"?}.
        store (PLACE): An existing store, instead of --corpus.
        embedding (NAME): wordllama, minilm or openai:MODEL; default wordllama, or that of the store.
        strategies (NAMES): Strategies to compare, such as dense,bm25,default; default all.
        links (NAMES): Kinds of links to keep, and extractors to run; default all kinds, else mention,entity.
        gold: What gold answers are; default: recognized. Any chunk of a page or section counts.
    """
    if (corpus is None) == (store is None):
        raise UsageError("give either --corpus or --store")
    if store is not None and links:
        raise UsageError("--links needs --corpus; a store keeps its links")
    from linkstore.cli.progress import show_progress
    from linkstore.embeddings.names import DEFAULT_EMBEDDING, get_embedding
    from linkstore.evaluate import running
    from linkstore.evaluate.metrics import STRATEGIES, compare_with_baseline
    from linkstore.evaluate.profiling import with_links

    names = split_names(strategies or STRATEGIES)
    unknown = [name for name in names if name not in STRATEGIES]
    if unknown:
        raise UsageError(f"--strategies: unknown {', '.join(unknown)}; known: {', '.join(STRATEGIES)}")
    asked = running.read_questions(questions)
    with ExitStack() as stack:
        measured: LinkStore | list[Document]
        chosen = None
        if corpus is not None:
            measured = with_links(running.read_corpus(corpus), None if links is None else split_names(links))
            chosen = get_embedding(embedding or DEFAULT_EMBEDDING)
        else:
            measured = stack.enter_context(open_store(str(store), embedding=embedding))
        progress = stack.enter_context(show_progress("questions"))
        found = running.evaluate(measured, asked, names, gold=gold, embedding=chosen, progress=progress)
    comparison = compare_with_baseline(found)
    if json:
        write_json(found.to_dict() | {"comparison": comparison and comparison.to_dict()})
    else:
        from linkstore.cli.tables import show_evaluation

        show_evaluation(found, comparison)


def calibrate(
    store: StoreOption,
    questions: Annotated[Path | None, EXISTING] = None,
    gold: GoldName | None = None,
    noise: Annotated[float, typer.Option(min=0, max=1)] = 0.05,
    keep: Annotated[float, typer.Option(min=0, max=1)] = 0.99,
    save: bool = False,
    clear: bool = False,
    json: JsonOption = False,
) -> None:
    """Propose a minimum similarity for the start of searches, and how much words count in them.

    A search starts from no document below the minimum. Prints the proposal with the share of noise that
    reaches it: random pairs of documents or, with questions, pairs of a question and a document that does not
    answer it; and the shares of gold answers that reach it, and of questions with an answer that does. The
    weight of words is proposed for embeddings of which it is not known, from sentences that are taken out of
    their documents.

    Args:
        questions (FILE): JSON Lines of {"question", "gold": [pages, sections or ids]}; default: compare
            documents.
        gold: What gold answers are; default: recognized. Any chunk of a page or section counts.
        noise (SHARE): Share of noise that may reach the minimum.
        keep (SHARE): Share of questions of which an answer must reach it.
        save: Record the proposal as the store's default.
        clear: Remove the store's default instead.
    """
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
    questions: Annotated[Path | None, EXISTING] = None,
    gold: GoldName | None = None,
    json: JsonOption = False,
) -> None:
    """Show whether the links of a store can improve results.

    Prints links by kind, link groups by size, hubs, dangling links, and how many documents links reach. With
    questions and their answers, also prints how often links join the answers, and how much they can improve
    results.

    Args:
        questions (FILE): JSON Lines of {"question", "gold": [pages, sections or ids]}.
        gold: What gold answers are; default: recognized. Any chunk of a page or section counts.
    """
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
