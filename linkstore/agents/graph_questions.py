"""From a question to a query about typed links, by a chat model, and to its exact answer.

The model names the things of the question and the type of its answer. Then it chooses among the paths of
relations that the schema has between both, so that a small model cannot write one that leads nowhere. A query
that names what is not there, or finds nothing, is asked for once more, with the reason. The answer is that of
the query, which is returned beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from linkstore.agents.match_tool import describe_store
from linkstore.agents.model_calls import MalformedOutput, OutputModel
from linkstore.agents.tool_answers import ToolScope
from linkstore.core.arguments import require
from linkstore.core.calls import Operation, arun, run
from linkstore.core.filters import Filter
from linkstore.core.graph_answer import GraphAnswer
from linkstore.core.graph_query import GraphQuery
from linkstore.errors import FilterError, QueryError, SchemaError, StrategyError, UnknownNameError
from linkstore.store.graph import answer_query
from linkstore.store.schema_graph import read_schema

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from linkstore.store.linkstore import LinkStore
    from linkstore.store.schema import Schema

Output = TypeVar("Output", bound=BaseModel)
_Arrow = tuple[str, str, bool, str]
"""A type, a relation, whether it is followed backward, and the type that it leads to."""
TRIES: Final = 2
"""A query without an answer is asked for once more."""
MAX_HOPS: Final = 4
"""The longest paths that are offered."""
MAX_PATHS: Final = 12
_TASK: Final = """\
Prepare a query for a graph database that answers the question: name the things in the question to start from,
and the type of the answer.

The database.{description}

Use only these types and fields. Names of things are written as in the question, without the word for their
type."""
_CHOICE: Final = """\
Choose how the answer of a question is connected in a graph with a thing that the question names. A path is a
chain of relations with the types that they lead to; a relation with < is followed against its direction.
Choose the path whose relations the question speaks of."""
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
    """A condition on the metadata of the answer."""

    field: str = Field(max_length=60, description="A field of the type of the answer.")
    operator: Operator = Field(default="equals", description="How it is compared.")
    value: str = Field(max_length=120, description="A value, as the field writes it.")


class ProposedThing(BaseModel):
    """A thing that a question names."""

    name: str = Field(max_length=120, description="Its name in the question.")
    type: str = Field(description="Its type.")
    excluded: bool = Field(default=False, description="Whether the answer must not be connected with it.")


class ProposedQuery(BaseModel):
    """The ends of a query about typed links."""

    things: list[ProposedThing] = Field(max_length=3, description="Things that the question names.")
    result_type: str = Field(description="The type of what the question asks for.")
    where: list[ProposedCondition] = Field(
        default_factory=list, max_length=3, description="Conditions on the answer itself; mostly none."
    )
    returns: Literal["documents", "count"] = Field(
        default="documents", description="count only where the question is how many."
    )


class ChosenPath(BaseModel):
    """The path from a thing to the answer of a question."""

    path: str = Field(description="The path whose relations the question speaks of.")


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
    scope, asker = ToolScope(store, filter=filter), _Asker(OutputModel(model), question)
    recorded = yield from read_schema(scope.backend)
    if recorded is None:
        raise SchemaError(
            "the store records no schema, so a model cannot know its relations; record one:"
            " store.schema.set(Schema.infer(store))"
        )
    description = yield from describe_store(scope)
    reply, messages = GraphReply(question=question), asker.begin(description.text.partition(" Relations:")[0])
    for _ in range(TRIES):
        query, problem, output = yield from asker.write_query(recorded.schema, description.fields, messages)
        answer = None
        if query is not None:
            try:
                answer = yield from answer_query(scope.backend, query, scope.filter, scope.ceiling)
                problem = None if answer.total else answer.reason or "nothing matches"
            except (QueryError, UnknownNameError, FilterError, StrategyError) as error:
                problem = str(error)
        reply = replace(reply, query=query, answer=answer, problem=problem, tries=reply.tries + 1)
        if problem is None:
            break
        reason = f"This query has no result: {problem}\nOutput one that has one."
        messages = [*messages, AIMessage(output), HumanMessage(reason)]
    return replace(
        reply, calls=asker.calls, prompt_tokens=asker.prompt_tokens, output_tokens=asker.output_tokens
    )


class _Asker:
    """Asks a model about one question, and counts what it takes."""

    def __init__(self, model: OutputModel, question: str) -> None:
        self._model, self._question = model, question
        self.calls = 0
        self.prompt_tokens: int | None = None
        self.output_tokens: int | None = None

    def begin(self, description: str) -> list[BaseMessage]:
        task = _TASK.format(description=description)
        return [SystemMessage(task), HumanMessage(f"Question: {self._question}")]

    def write_query(
        self, schema: Schema, fields: Sequence[str], messages: list[BaseMessage]
    ) -> Operation[tuple[GraphQuery | None, str | None, str]]:
        """Return a query, or why there is none, and what the model output."""
        types = sorted(schema.types)
        choices: dict[str, Sequence[str]] = {"type": types, "result_type": types}
        choices |= {"field": fields} if fields else {"where": ()}
        proposed, output = yield from self._request(ProposedQuery, messages, choices)
        if isinstance(proposed, MalformedOutput):
            return None, proposed.problem, output
        branches: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for thing in proposed.things:
            paths = list_paths(schema, thing.type, proposed.result_type)
            if not paths:
                problem = f"no relations lead from {thing.type} to {proposed.result_type}"
                return None, problem, output
            path, choice = yield from self._choose(thing, proposed.result_type, paths)
            output = f"{output}\n{choice}".strip()
            if path is None:
                return None, f"no path from {thing.type} to {proposed.result_type} was chosen", output
            branch = {"start": thing.name, "start_type": thing.type, "path": paths[path]}
            branches[thing.excluded].append(branch)
        try:
            return GraphQuery.from_dict(_make_query(proposed, branches[False], branches[True])), None, output
        except (QueryError, FilterError) as error:
            return None, str(error), output

    def _choose(
        self, thing: ProposedThing, result_type: str, paths: Mapping[str, object]
    ) -> Operation[tuple[str | None, str]]:
        """Have a model choose among several paths."""
        if len(paths) == 1:
            return next(iter(paths)), ""
        listed = "\n".join(paths)
        text = (
            f"Question: {self._question}\n\nThe question names {thing.name} ({thing.type}), and asks for"
            f" {result_type}. Paths from {thing.type} to {result_type}:\n{listed}"
        )
        prompt: list[BaseMessage] = [SystemMessage(_CHOICE), HumanMessage(text)]
        chosen, output = yield from self._request(ChosenPath, prompt, {"path": list(paths)})
        if isinstance(chosen, MalformedOutput) or chosen.path not in paths:
            return None, output
        return chosen.path, output

    def _request(
        self, schema: type[Output], messages: list[BaseMessage], choices: Mapping[str, Sequence[str]]
    ) -> Operation[tuple[Output | MalformedOutput, str]]:
        (reply,) = yield from self._model.request(schema, [messages], choices=choices)
        if isinstance(reply, Exception):
            raise reply
        self.calls += reply.calls
        self.prompt_tokens = _add(self.prompt_tokens, reply.prompt_tokens)
        self.output_tokens = _add(self.output_tokens, reply.output_tokens)
        return reply.output, reply.text


def list_paths(schema: Schema, start: str, end: str) -> dict[str, list[dict[str, Any]]]:
    """Return the shortest paths of relations from a type to another, in words, with their steps.

    At most :data:`MAX_PATHS`, of at most :data:`MAX_HOPS` relations.
    """
    arrows = sorted(
        {
            arrow
            for relation in schema.relations
            for first in relation.from_types
            for second in relation.to_types
            for arrow in ((first, relation.kind, False, second), (second, relation.kind, True, first))
        }
    )
    hops = {end: 0}  # to the end, from each type that reaches it
    for length in range(1, MAX_HOPS + 1):
        for first, _, _, second in arrows:
            if hops.get(second, MAX_HOPS) < length:
                hops.setdefault(first, length)
    walks = chain.from_iterable(_walk(arrows, hops, start, length) for length in range(1, MAX_HOPS + 1))
    return {
        " ".join(f"{'<' if back else ''}{kind} {to}" for _, kind, back, to in walk): [
            {"relations": [kind], "backward": back, "type": to} for _, kind, back, to in walk
        ]
        for walk in islice(walks, MAX_PATHS)
    }


def _walk(
    arrows: Sequence[_Arrow], hops: Mapping[str, int], start: str, length: int
) -> Iterator[tuple[_Arrow, ...]]:
    """Yield the walks of a length to the end, in order, leaving out what cannot reach it."""
    if not length:
        yield from [()] if not hops[start] else ()
        return
    for arrow in arrows:
        if arrow[0] == start and hops.get(arrow[3], length) < length:
            yield from ((arrow, *rest) for rest in _walk(arrows, hops, arrow[3], length - 1))


def _add(first: int | None, second: int | None) -> int | None:
    return first if second is None else second + (first or 0)


def _make_query(
    proposed: ProposedQuery, branches: list[dict[str, Any]], excluded: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a query in its JSON form."""
    query: dict[str, Any] = {
        "branches": branches or [{"start_type": proposed.result_type}],
        "but_not": excluded,
        "result_type": proposed.result_type,
        "returns": proposed.returns,
    }
    conditions = [
        {condition.field: {_OPERATORS[condition.operator]: _read_value(condition.value)}}
        for condition in proposed.where
    ]
    if conditions:
        query["where"] = conditions[0] if len(conditions) == 1 else {"$and": conditions}
    return query


def _read_value(text: str) -> str | float | bool:
    """Return a number or truth value where a text is one in JSON, else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text
