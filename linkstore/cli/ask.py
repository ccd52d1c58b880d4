"""``linkstore ask``: a chat model answers a question with citations; ``facts``: what it reads them from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from linkstore.cli.commands import EmbeddingOption, JsonOption, StoreOption, TextArgument
from linkstore.cli.exits import NOT_ANSWERED, SOURCE_INCOMPLETE, USAGE, Terminated, UsageError, get_exit_code
from linkstore.cli.output import MAX_SHOWN_SECTIONS, complain, inform, print_result, show, write_json
from linkstore.cli.query import check_question, show_results
from linkstore.cli.stores import open_backend, open_core_store, open_store
from linkstore.core.display import format_count
from linkstore.errors import AgentError, StoreNotFoundError

if TYPE_CHECKING:
    from linkstore.agents.answers import Answer
    from linkstore.agents.facts import FactSummary
    from linkstore.store.core import CoreStore
    from linkstore.store.linkstore import LinkStore

_NO_MODEL = (
    "an answer needs a chat model: give --model openai:gpt-4.1-mini and set OPENAI_API_KEY, --model"
    " ollama:qwen3 with a local Ollama, or --model openai:NAME --base-url http://127.0.0.1:8080/v1 with"
    " another local server; any provider of LangChain's init_chat_model will do, once its package"
    " (langchain-openai, langchain-ollama) is installed. Here is what a search finds:"
)
_FOUND = "Here is what a search finds:"
MethodName = Literal["json_schema", "function_calling", "json_mode", "words"]
BaseUrlOption = Annotated[
    str | None, typer.Option(metavar="URL", help="Where the model's server listens, as for a local one.")
]
TemperatureOption = Annotated[
    float | None, typer.Option(min=0, max=2, help="Of the output; default 0 for a local server.")
]
MaxTokensOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Tokens of an output; default 2,048 if local.")
]
TimeoutOption = Annotated[
    float | None, typer.Option(metavar="SECONDS", min=0.001, help="Of a call; default the provider's.")
]
ContextOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Tokens that the model takes; default: Ollama 4,096.")
]
FactsOption = Annotated[
    str | None, typer.Option(metavar="PLACE", help="The store of facts, made by linkstore facts.")
]
MethodOption = Annotated[
    MethodName | None, typer.Option(help="How structured output is asked for; default the provider's.")
]


def ask(
    text: TextArgument,
    store: StoreOption,
    embedding: EmbeddingOption = None,
    model: str | None = None,
    facts: FactsOption = None,
    passages: Annotated[int, typer.Option(min=1)] = 5,
    steps: Annotated[int, typer.Option(min=1)] = 8,
    tokens: Annotated[int | None, typer.Option(min=1)] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001)] = None,
    rate: float | None = None,
    price: tuple[float, float] | None = None,
    base_url: BaseUrlOption = None,
    temperature: TemperatureOption = None,
    max_tokens: MaxTokensOption = None,
    timeout: TimeoutOption = None,
    context: ContextOption = None,
    method: MethodOption = None,
    json: JsonOption = False,
) -> None:
    """Answer a question from a store.

    A chat model answers from the best passages, with its sources, in one call. Where they lack the answer, it
    reads on: it searches, follows links and keeps findings, or says that the sources do not have it. A
    terminal shows each step, as --verbose does elsewhere. Ctrl-C shows what was found until then. With
    --facts it also reads by facts.

    Args:
        model (NAME): Chat model, such as openai:gpt-4.1-mini or ollama:qwen3.
        passages (N): Passages that the first call is shown.
        steps (N): Maximum number of calls; 1: it does not read on.
        tokens (N): Maximum number of tokens; default no limit.
        seconds (N): Maximum time; default no limit.
        rate (N): Calls of the model per second; default no limit.
        price (IN OUT): Prices of a million tokens, sent and received, to tell the cost.
    """
    check_question(text)
    if model is None:
        inform(_NO_MODEL)
        with open_core_store(store) as opened_store:
            _show_passages(text, opened_store)
        raise typer.Exit(USAGE)
    from linkstore.agents.answers import Budget
    from linkstore.agents.chat_models import chat_model
    from linkstore.agents.reader import graph_reader

    chosen = chat_model(
        model,
        rate=rate,
        base_url=base_url,
        temperature=temperature,
        max_tokens=max_tokens,
        timeout=timeout,
        context=context,
        method=method,
    )
    budget = Budget(steps=steps, tokens=tokens, seconds=seconds)
    with ExitStack() as stack:
        opened_store = stack.enter_context(open_store(store, embedding=embedding))
        opened_facts = None if facts is None else stack.enter_context(_open_facts(facts, opened_store))
        reader = graph_reader(opened_store, chosen, facts=opened_facts, first=passages, budget=budget)
        answers: list[Answer] = []
        try:
            answers.extend(reader.stream(text))  # which keeps those that came before an error
        except (AgentError, KeyboardInterrupt) as error:
            if json or isinstance(error, Terminated):
                raise
            complain(error.message if isinstance(error, AgentError) else "stopped")
            if answers and answers[-1].statements:
                _show_answer(answers[-1])
            inform(_FOUND)
            _show_passages(text, opened_store)
            raise typer.Exit(get_exit_code(error)) from error
        answer = answers[-1]
        cost = None if price is None else answer.compute_cost(*price)
        if json:
            fields = {**asdict(answer), "answer": answer.text, "cost": cost}
            write_json({name: fields[name] for name in fields if name != "reading"})
        else:
            _show_answer(answer)
            if answer.outcome != "answered":
                inform(_FOUND)
                _show_passages(text, opened_store)
    calls, sent = format_count(answer.steps, "call"), format_count(answer.prompt_tokens, "token")
    spent = f"{calls}, {sent} sent and {answer.output_tokens:,} received"
    inform(spent if cost is None else f"{spent}, cost {cost:.4f}")
    if answer.outcome != "answered":
        raise typer.Exit(NOT_ANSWERED)


@contextmanager
def _open_facts(place: str, store: LinkStore, *, create: bool = False) -> Iterator[LinkStore]:
    """Open the store of facts at a place, with the embedding of the chunks."""
    from linkstore.store.linkstore import LinkStore

    with open_backend(place, create=create) as backend:
        yield LinkStore(store.embeddings, backend=backend)


def _show_passages(text: str, store: CoreStore) -> None:
    """Show what the default search finds."""
    from linkstore.strategies.pagerank import PageRank

    show_results(store.search(text, strategy=PageRank(per_page=MAX_SHOWN_SECTIONS)), text)


def _show_answer(answer: Answer) -> None:
    """Print the statements with numbers of their sources, then the sources."""
    numbers = {citation.id: number for number, citation in enumerate(answer.citations, 1)}
    for statement in answer.statements:
        cited = ", ".join(str(numbers[citation.id]) for citation in statement.citations)
        show(f"{' '.join(statement.text.split())} [{cited}]")
    if not answer.statements:
        show(answer.text)
    if answer.outcome == "partly":
        inform("the sources have only a part of the answer")
    if answer.stopped:
        inform(f"the budget of {answer.stopped} was used up; this is what was found until then")
    if numbers:
        show("")
    for citation in answer.citations:
        show(f"{numbers[citation.id]:>2}  {citation.title or citation.id}  {citation.url or citation.id}")


MAX_SHOWN_FAILURES = 10
"""Maximum number of chunks without facts that are listed."""


def facts(
    store: StoreOption,
    model: str | None = None,
    place: Annotated[str | None, typer.Option("--facts", metavar="PLACE")] = None,
    max_concurrency: Annotated[int, typer.Option(min=1)] = 8,
    rate: float | None = None,
    base_url: BaseUrlOption = None,
    timeout: TimeoutOption = None,
    method: MethodOption = None,
    dry_run: bool = False,
    json: JsonOption = False,
) -> None:
    """Extract atomic facts and key elements, for linkstore ask.

    They are extracted from the chunks of a store by a chat model, and kept in another store, so searches do
    not find them. A second run extracts the facts of new and changed chunks only. An interrupted run
    continues where it stopped.

    Args:
        model (NAME): Chat model, such as openai:gpt-4.1-mini.
        max_concurrency (N): Calls of the model at once.
        rate (N): Calls of the model per second; default no limit.
        place (PLACE): The store of facts; it is made if there is none.
        dry_run: Count the calls and tokens that it would cost, and write nothing.
    """
    from linkstore.agents.chat_models import chat_model
    from linkstore.agents.facts import ModelExtractor, index_facts
    from linkstore.store.linkstore import LinkStore

    if model is None:
        raise UsageError("facts are extracted by a chat model; give --model, such as openai:gpt-4.1-mini")
    if place is None:
        raise UsageError("facts are kept in a store of their own; give --facts, such as kb-facts")
    chosen = chat_model(model, rate=rate, base_url=base_url, timeout=timeout, method=method)
    extractor = ModelExtractor(chosen, max_concurrency=max_concurrency)
    with ExitStack() as stack:
        opened_store = stack.enter_context(open_store(store))
        try:
            opened_facts = stack.enter_context(_open_facts(place, opened_store, create=not dry_run))
        except StoreNotFoundError:
            if not dry_run:
                raise
            opened_facts = stack.enter_context(LinkStore(opened_store.embeddings))
        try:
            summary = index_facts(opened_store, extractor, facts=opened_facts, dry_run=dry_run)
        except KeyboardInterrupt as error:
            inform("stopped; run the same command again to go on")
            raise typer.Exit(get_exit_code(error)) from error
    print_result(summary, _show_fact_summary, json=json)
    if summary.failed:
        raise typer.Exit(SOURCE_INCOMPLETE)


def _show_fact_summary(summary: FactSummary) -> None:
    show(f"chunks    {summary.chunks:,}, {summary.unchanged:,} unchanged, {summary.removed:,} removed")
    if summary.dry_run:
        show(f"would extract the facts of {format_count(summary.extracted, 'chunk')}")
        tokens = format_count(summary.prompt_tokens, "token")
        show(f"calls     {summary.extracted:,} of a model, {tokens} in their prompts")
        return
    show(f"extracted {format_count(summary.facts, 'fact')} of {format_count(summary.extracted, 'chunk')}")
    if summary.doubtful:
        show(f"left out  {format_count(summary.doubtful, 'fact')} with names or numbers that the chunk lacks")
    for failed in summary.failed[:MAX_SHOWN_FAILURES]:
        inform(f"failed: {failed.chunk}: {failed.reason}")
    if len(summary.failed) > MAX_SHOWN_FAILURES:
        inform(f"and {len(summary.failed) - MAX_SHOWN_FAILURES:,} more; run the command again to retry them")
