"""``linkstore ask``: answers a question from a store with a chat model, and cites its passages."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstore.cli.commands import JsonOption, StoreOption, TextArgument
from linkstore.cli.exits import NOT_ANSWERED, USAGE
from linkstore.cli.output import MAX_SHOWN_SECTIONS, note, show, write_json
from linkstore.cli.query import check_question, show_results
from linkstore.cli.stores import open_core_store, open_store
from linkstore.core.display import format_count

if TYPE_CHECKING:
    from linkstore.agents.answers import Answer

_NO_MODEL = (
    "an answer needs a chat model: give --model openai:gpt-4.1-mini and set OPENAI_API_KEY, or --model"
    " ollama:qwen3 with a local Ollama; any provider of LangChain's init_chat_model will do, once its package"
    " (langchain-openai, langchain-ollama) is installed. Here is what a search finds:"
)


def ask(
    text: TextArgument,
    store: StoreOption,
    model: str | None = None,
    steps: Annotated[int, typer.Option(min=1)] = 40,
    tokens: Annotated[int | None, typer.Option(min=1)] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001)] = None,
    rate: float | None = None,
    price: tuple[float, float] | None = None,
    json: JsonOption = False,
) -> None:
    """Answer a question from a store.

    A chat model reads: it plans, reads what the searches find, follows links, and answers with its sources,
    or says that they do not have the answer. With --verbose each step is logged. With an index of facts
    (linkstore facts) it also reads by facts and key elements.

    Args:
        model (NAME): Chat model, such as openai:gpt-4.1-mini or ollama:qwen3.
        steps (N): Maximum number of calls.
        tokens (N): Maximum number of tokens; default no limit.
        seconds (N): Maximum time; default no limit.
        rate (N): Calls of the model per second; default no limit.
        price (IN OUT): Prices of a million tokens, sent and received, to tell the cost.
    """
    check_question(text)
    if model is None:
        _show_passages(text, store)
        raise typer.Exit(USAGE)
    from linkstore.agents.reader import chat_model, graph_reader
    from linkstore.agents.state import Budget

    chosen = chat_model(model, rate=rate)
    budget = Budget(steps=steps, tokens=tokens, seconds=seconds)
    with open_store(store) as opened_store, graph_reader(opened_store, chosen, budget=budget) as reader:
        if reader.facts is None:
            note(
                "there are no facts of this store, so passages and links alone are read; see linkstore facts"
            )
        answer = reader.invoke(text)
    cost = None if price is None else answer.compute_cost(*price)
    if json:
        write_json(_make_fields(answer, cost))
    else:
        _show_answer(answer)
    calls, sent = format_count(answer.steps, "call"), format_count(answer.prompt_tokens, "token")
    spent = f"{calls}, {sent} sent and {answer.output_tokens:,} received"
    note(spent if cost is None else f"{spent}, cost {cost:.4f}")
    if answer.outcome != "answered":
        raise typer.Exit(NOT_ANSWERED)


def _show_passages(text: str, store: str) -> None:
    """Tell that a model is needed, and show what the default search finds."""
    from linkstore.strategies.pagerank import PageRank

    note(_NO_MODEL)
    with open_core_store(store) as opened_store:
        hits = opened_store.search(text, strategy=PageRank(per_page=MAX_SHOWN_SECTIONS))
    show_results(hits, text)


def _show_answer(answer: Answer) -> None:
    """Print the statements with numbers of their sources, then the sources."""
    numbers = {citation.id: number for number, citation in enumerate(answer.citations, 1)}
    for statement in answer.statements:
        cited = ", ".join(str(numbers[one.id]) for one in statement.citations)
        show(f"{' '.join(statement.text.split())} [{cited}]")
    if not answer.statements:
        show(answer.text)
        if answer.analysis:
            show(" ".join(answer.analysis.split()))
    if answer.stopped:
        note(f"the budget of {answer.stopped} was used up; this is what was found until then")
    if numbers:
        show("")
    for citation in answer.citations:
        show(f"{numbers[citation.id]:>2}  {citation.title or citation.id}  {citation.url or citation.id}")


def _make_fields(answer: Answer, cost: float | None) -> dict[str, Any]:
    fields = {**asdict(answer), "answer": answer.text, "cost": cost}
    return {name: fields[name] for name in fields if name != "ways"}
