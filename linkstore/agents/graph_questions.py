"""From a question to a query about typed links, by a chat model, and to its exact answer.

The model sees the types, fields and relations of the store, and may use no others. A query that is malformed,
names what is not there, or finds nothing is asked for once more, with the reason. Nothing is guessed beyond
that: the answer is that of the query, which is returned beside it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from linkstore.agents.match_tool import StoreDescription, describe_store
from linkstore.agents.model_calls import MalformedOutput, ModelReply, OutputModel
from linkstore.agents.tool_answers import ToolScope
from linkstore.core.arguments import require
from linkstore.core.calls import Operation, arun, run
from linkstore.core.filters import Filter
from linkstore.core.graph_answer import GraphAnswer
from linkstore.core.graph_query import GraphQuery
from linkstore.errors import FilterError, QueryError, UnknownNameError
from linkstore.store.graph import answer_query

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from linkstore.store.linkstore import LinkStore

TRIES: Final = 2
"""A query without an answer is asked for once more."""
_INSTRUCTIONS: Final = """\
Write a query for a graph database that answers the question. It starts from things that the question names,
and follows relations from there. A relation is followed along its arrow as NAME, and against its arrow as
<NAME. Every branch must lead to the result.

The database.{description}

Use only these types, fields and relations. Names of things stand in the query as the question writes them,
without the word for their type."""
Operator = Literal["equals", "not equals", "less than", "at most", "more than", "at least"]
_OPERATORS: Final[dict[str, str]] = {
    "equals": "$eq",
    "not equals": "$ne",
    "less than": "$lt",
    "at most": "$lte",
    "more than": "$gt",
    "at least": "$gte",
}


class ProposedCondition(BaseModel):
    """A condition on the metadata of the results."""

    field: str = Field(max_length=60, description="A field of the result.")
    operator: Operator = Field(default="equals", description="How it is compared.")
    value: str = Field(max_length=120, description="A value, as the field writes it.")


class ProposedBranch(BaseModel):
    """Where to start, and which relations lead from there to the result."""

    start: str = Field(
        default="", max_length=120, description="The name of a thing in the question; empty: all of a type."
    )
    start_type: str = Field(default="", description="The type of the start.")
    path: list[str] = Field(
        default_factory=list, max_length=4, description="Relations from the start to the result, in order."
    )


class ProposedQuery(BaseModel):
    """A query about typed links."""

    branches: list[ProposedBranch] = Field(max_length=3, description="One for each thing that is named.")
    but_not: list[ProposedBranch] = Field(
        default_factory=list, max_length=2, description="Branches that must not lead to it; often none."
    )
    result_type: str = Field(default="", description="The type of the result.")
    where: list[ProposedCondition] = Field(
        default_factory=list, max_length=3, description="Conditions on the result; often none."
    )
    returns: Literal["documents", "count"] = Field(
        default="documents", description="count only for how many."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReply:
    """The answer to a question, by the query that a model wrote.

    Args:
        question: The question.
        query: The last query; None if the model wrote none that can be read.
        answer: Its answer; None if it could not be carried out.
        problem: Why there is no result, in words; None if there is one.
        tries: How many queries were asked for.
        calls: How many calls of the model it took.
        prompt_tokens: Tokens of its prompts, None if the model does not say.
        output_tokens: Tokens of its outputs, None if the model does not say.
    """

    question: str
    query: GraphQuery | None = None
    answer: GraphAnswer | None = None
    problem: str | None = None
    tries: int = 0
    calls: int = 0
    prompt_tokens: int | None = None
    output_tokens: int | None = None


def ask_graph(
    store: LinkStore, question: str, model: BaseChatModel, *, filter: Filter | None = None
) -> GraphReply:
    """Have a model write a query for a question, and answer it exactly: see :meth:`LinkStore.match`.

    Args:
        store: A store whose links have types, best with a schema.
        question: The question.
        model: A chat model. It is asked once more if its query has no result.
        filter: Only documents with such metadata exist for the query, and for its description.

    Raises:
        ArgumentError: If one of the arguments is something else.
        FilterError: If the filter is invalid.
        AgentError: If the model cannot be asked.
    """
    return run(_ask(store, question, model, filter))


async def aask_graph(
    store: LinkStore, question: str, model: BaseChatModel, *, filter: Filter | None = None
) -> GraphReply:
    """Have a model write a query for a question, and answer it exactly: see :func:`ask_graph`."""
    return await arun(_ask(store, question, model, filter))


def _ask(
    store: LinkStore, question: str, model: BaseChatModel, filter: Filter | None
) -> Operation[GraphReply]:
    require(str, "a question in words", question=question)
    scope, outputs = ToolScope(store, filter=filter), OutputModel(model)
    description = yield from describe_store(scope)
    task = _INSTRUCTIONS.format(description=description.text.partition(" Examples:")[0])
    messages: list[BaseMessage] = [SystemMessage(task), HumanMessage(f"Question: {question}")]
    reply = GraphReply(question=question)
    for _ in range(TRIES):
        (output,) = yield from outputs.request(ProposedQuery, [messages], choices=_list_choices(description))
        if isinstance(output, Exception):
            raise output
        reply = yield from _answer(scope, reply, output)
        if reply.problem is None:
            break
        messages = [
            *messages,
            AIMessage(output.text),
            HumanMessage(f"This query has no result: {reply.problem}\nOutput a query that has one."),
        ]
    return reply


def _list_choices(description: StoreDescription) -> dict[str, list[str]]:
    """Return the values that fields of a query may have; none: the field is left out."""
    relations = [name for kind in description.relations for name in (kind, f"<{kind}")]
    types = ["", *description.types] if description.types else []
    return {"path": relations, "start_type": types, "result_type": types}


def _answer(scope: ToolScope, before: GraphReply, reply: ModelReply[ProposedQuery]) -> Operation[GraphReply]:
    """Carry out the query of a reply, and count what it took."""
    query, answer, problem = None, None, None
    if isinstance(reply.output, MalformedOutput):
        problem = reply.output.problem
    else:
        try:
            query = GraphQuery.from_dict(_make_query(reply.output))
            answer = yield from answer_query(scope.backend, query, scope.filter, scope.ceiling)
            if not answer.total:
                problem = answer.reason or "nothing matches"
        except (QueryError, UnknownNameError, FilterError) as error:
            problem = str(error)
    return GraphReply(
        question=before.question,
        query=query,
        answer=answer,
        problem=problem,
        tries=before.tries + 1,
        calls=before.calls + reply.calls,
        prompt_tokens=_add(before.prompt_tokens, reply.prompt_tokens),
        output_tokens=_add(before.output_tokens, reply.output_tokens),
    )


def _add(first: int | None, second: int | None) -> int | None:
    return first if second is None else second + (first or 0)


def _make_query(proposed: ProposedQuery) -> dict[str, Any]:
    """Return the query in its JSON form, without what was left empty."""
    query: dict[str, Any] = {
        "branches": list(map(_make_branch, proposed.branches)),
        "but_not": list(map(_make_branch, proposed.but_not)),
        "returns": proposed.returns,
    }
    if proposed.result_type:
        query["result_type"] = proposed.result_type
    conditions = [
        {condition.field: {_OPERATORS[condition.operator]: _read_value(condition.value)}}
        for condition in proposed.where
    ]
    if conditions:
        query["where"] = conditions[0] if len(conditions) == 1 else {"$and": conditions}
    return query


def _make_branch(proposed: ProposedBranch) -> dict[str, Any]:
    return {name: value for name, value in proposed.model_dump().items() if value}


def _read_value(text: str) -> str | float | bool:
    """Return a number or truth value where a text is one in JSON, else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text
