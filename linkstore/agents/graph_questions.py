"""From a question to a query about typed links, by a chat model, and to its exact answer.

The model writes Cypher, of which models have read much, from what :mod:`linkstore.agents.graph_prompt` shows
it. A relationship that the schema allows in the other direction only is turned, and a name that the question
lacks is refused. A query that cannot be read, names what is not there, or finds nothing, is asked for once
more, with the reason. The answer is that of the query, which is returned beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from linkstore.agents.cypher_schema import fit_schema
from linkstore.agents.graph_prompt import Name, find_names, is_in_question, write_leads, write_task
from linkstore.agents.match_tool import describe_store
from linkstore.agents.model_calls import MalformedOutput, OutputModel
from linkstore.agents.tool_answers import ToolScope
from linkstore.core.arguments import require
from linkstore.core.calls import Operation, arun, call, run
from linkstore.core.cypher import CypherQuery, read_cypher
from linkstore.core.cypher_query import make_query
from linkstore.core.filters import Filter
from linkstore.core.graph_answer import GraphAnswer
from linkstore.core.graph_query import GraphQuery
from linkstore.errors import FilterError, QueryError, SchemaError, StrategyError, UnknownNameError
from linkstore.store.graph import answer_query, look_up_name
from linkstore.store.schema_graph import read_schema

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from linkstore.store.linkstore import LinkStore
    from linkstore.store.schema import Schema

TRIES: Final = 2
"""A query without an answer is asked for once more."""
NAMED: Final = 10
"""How many documents are looked at for names in the question."""


class WrittenQuery(BaseModel):
    """A query in Cypher."""

    cypher: str = Field(max_length=1_000, description="MATCH … WHERE … RETURN …")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReply:
    """The answer to a question, by the query that a model wrote.

    Args:
        question: The question.
        cypher: The last query as the model wrote it.
        query: What it says; None if it cannot be read.
        answer: Its answer; None if it could not be carried out.
        problem: Why there is no result, in words; None if there is one.
        tries: How many queries were asked for.
        calls: How many calls of the model it took.
        prompt_tokens: Tokens of its prompts, None if the model does not say.
        output_tokens: Tokens of its outputs, None if the model does not say.
    """

    question: str
    cypher: str = ""
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
        store: A store with a schema.
        question: The question.
        model: A chat model. It is asked once more if its query has no result.
        filter: Only documents with such metadata exist for the query, and for its description.

    Raises:
        ArgumentError: If one of the arguments is something else.
        FilterError: If the filter is invalid.
        SchemaError: If the store records no schema.
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
    scope, asked = ToolScope(store, filter=filter), OutputModel(model)
    recorded = yield from read_schema(scope.backend)
    if recorded is None:
        raise SchemaError(
            "the store records no schema, so a model cannot know its relations; record one:"
            " store.schema.set(Schema.infer(store))"
        )
    schema = recorded.schema
    description = yield from describe_store(scope)
    hits = yield from call(store.search, store.asearch, question, k=NAMED, filter=filter)
    names = find_names(question, [hit.document for hit in hits], schema.type_field)
    messages: list[BaseMessage] = [
        SystemMessage(write_task(schema, description.types)),
        HumanMessage(f"{write_leads(names, schema)}Question: {question}"),
    ]
    reply = GraphReply(question=question)
    for _ in range(TRIES):
        (output,) = yield from asked.request(WrittenQuery, [messages])
        if isinstance(output, Exception):
            raise output
        reply = replace(
            reply,
            cypher="" if isinstance(output.output, MalformedOutput) else output.output.cypher,
            query=None,
            answer=None,
            problem=output.output.problem if isinstance(output.output, MalformedOutput) else None,
            tries=reply.tries + 1,
            calls=reply.calls + output.calls,
            prompt_tokens=_add(reply.prompt_tokens, output.prompt_tokens),
            output_tokens=_add(reply.output_tokens, output.output_tokens),
        )
        if reply.problem is None:
            reply = yield from _answer(scope, schema, reply)
        if reply.problem is None:
            break
        leads = "" if names else write_leads((yield from _look_up_names(scope, reply)), schema)
        reason = f"That query has no result: {reply.problem}\n{leads}Write one that has one."
        messages = [*messages[:2], AIMessage(output.text), HumanMessage(reason)]
    return reply


def _look_up_names(scope: ToolScope, reply: GraphReply) -> Operation[list[Name]]:
    """Find what names in a query mean, such as misspelt ones."""
    try:
        nodes = read_cypher(reply.cypher, forgiving=True).pattern.nodes.values()
    except QueryError:
        return []
    names: list[Name] = []
    for name in dict.fromkeys(node.name for node in nodes if node.name is not None):
        if is_in_question(name, reply.question):
            resolution, type_field = yield from look_up_name(scope.backend, name, None, scope.filter)
            if resolution.document is not None:
                names.append((name, str(resolution.document.metadata.get(type_field))))
    return names


def _answer(scope: ToolScope, schema: Schema, reply: GraphReply) -> Operation[GraphReply]:
    """Carry out the query of a reply, or say what is wrong with it."""
    try:
        cypher = read_cypher(reply.cypher, forgiving=True)
        _check_names(cypher, reply.question)
        query = make_query(fit_schema(cypher, schema))
        reply = replace(reply, query=query)
        answer = yield from answer_query(scope.backend, query, scope.filter, scope.ceiling)
    except (QueryError, UnknownNameError, FilterError, StrategyError) as error:
        return replace(reply, problem=str(error))
    return replace(reply, answer=answer, problem=None if answer.total else answer.reason or "nothing matches")


def _check_names(cypher: CypherQuery, question: str) -> None:
    """Refuse names that a model made up."""
    for part in cypher.pattern.parts:
        for node in part.nodes.values():
            if node.name is not None and not is_in_question(node.name, question):
                raise QueryError(f"the question does not name {node.name!r}, so the query may not either")


def _add(first: int | None, second: int | None) -> int | None:
    return first if second is None else second + (first or 0)
