"""From a question to a query about typed links, by a chat model, and to its exact answer.

The model writes Cypher, of which models have read much, from what :mod:`linkstore.agents.graph_prompt` shows
it. A relationship that the schema allows in the other direction only is turned, and a name that the question
lacks is refused, and so is a query without a name, a value or a negation that the question has. Where the
schema allows a relationship in both directions, the model is shown the paths in the other order once more,
and must mean the same. A query that cannot be read, names what is not there, or finds nothing, is asked for
once more, with the reason. The answer is that of the query, which is returned beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from linkstore.agents.cypher_schema import fit_schema, is_turnable
from linkstore.agents.graph_prompt import (
    Name,
    find_gap,
    find_names,
    is_in_question,
    write_leads,
    write_reading,
    write_task,
)
from linkstore.agents.match_tool import describe_store
from linkstore.agents.model_calls import ModelReply, OutputModel
from linkstore.agents.tool_answers import ToolScope
from linkstore.core.arguments import require
from linkstore.core.calls import Operation, arun, call, run
from linkstore.core.cypher import read_cypher
from linkstore.core.cypher_query import CypherQuery, make_query
from linkstore.core.filters import Filter
from linkstore.core.graph_answer import GraphAnswer
from linkstore.core.graph_query import GraphQuery
from linkstore.errors import FilterError, QueryError, SchemaError, StrategyError, UnknownNameError
from linkstore.store.graph import answer_query, look_up_name
from linkstore.store.schema_graph import read_schema
from linkstore.strategies.first_stage import Similarity

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from linkstore.store.linkstore import LinkStore

TRIES: Final = 2
"""A query without an answer is asked for once more."""
NAMED: Final = 50
"""How many documents of the default search are looked at for names in the question."""
COMPARED: Final = 1_000
"""How many of the most similar ones, which are all of a small store."""


_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"')
"""A text among the values of a field, in a description."""


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
        reading: What the query says, in words, where X is what it asks for; empty if it cannot be read.
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
    reading: str = ""
    problem: str | None = None
    tries: int = 0
    calls: int = 0
    prompt_tokens: int | None = None
    output_tokens: int | None = None


def ask_graph(
    store: LinkStore, question: str, model: BaseChatModel, *, filter: Filter | None = None
) -> GraphReply:
    """Have a model write a query for a question, and answer it exactly: see :meth:`LinkStore.match`.

    The model sees the types, fields and relations, examples made of them, and the paths that lead from what
    the question names. A relationship that the schema allows in the other direction only is turned; a name
    that is not in the question is refused. These queries have no answer:

    - The question has the name of a document, or one of the values of fields that the model was shown, and
      the query has not.
    - The question has a word such as *not*, *without* or *nicht*, and the query excludes and compares
      nothing.
    - The schema allows a relation in both directions, as ``REPORTS_TO`` between persons, and the model means
      something else when it is shown the paths in the other order. Only such questions cost this call.

    Args:
        store: A store with a schema.
        question: The question.
        model: A chat model. It is asked once more if its query has no result, with the reason.
        filter: Only documents with such metadata exist for the query, and for its description.

    Raises:
        ArgumentError: If one of the arguments is something else.
        FilterError: If the filter is invalid.
        SchemaError: If the store records no schema.
        AgentError: If the model cannot be asked.
    """
    return run(_Asking(store, question, model, filter).ask())


async def aask_graph(
    store: LinkStore, question: str, model: BaseChatModel, *, filter: Filter | None = None
) -> GraphReply:
    """Have a model write a query for a question, and answer it exactly: see :func:`ask_graph`."""
    return await arun(_Asking(store, question, model, filter).ask())


class _Asking:
    """The queries that are asked for to answer one question: see :func:`ask_graph`."""

    def __init__(self, store: LinkStore, question: str, model: BaseChatModel, filter: Filter | None) -> None:
        require(str, "a question in words", question=question)
        self._question, self._model = question, OutputModel(model)
        self._scope = ToolScope(store, filter=filter)
        self._reply = GraphReply(question=question)
        self._paid: list[ModelReply[WrittenQuery]] = []
        self._names: list[Name] = []

    def ask(self) -> Operation[GraphReply]:
        """Ask for a query, and for another one if there is a problem."""
        recorded = yield from read_schema(self._scope.backend)
        if recorded is None:
            raise SchemaError(
                "the store records no schema, so a model cannot know its relations; record one:"
                " store.schema.set(Schema.infer(store))"
            )
        self._schema = recorded.schema
        store, question = self._scope.store, self._question
        _, types = yield from describe_store(self._scope)
        values = set(_QUOTED.findall(types))
        within, every = self._scope.filter, Similarity()  # a name that no text has is not found by its words
        hits = yield from call(store.search, store.asearch, question, k=NAMED, filter=within)
        near = yield from call(
            store.search, store.asearch, question, k=COMPARED, strategy=every, filter=within
        )
        self._names = find_names(question, [hit.document for hit in (*hits, *near)], self._schema.type_field)
        task, shown = SystemMessage(write_task(self._schema, types)), write_leads(self._names, self._schema)
        base: list[BaseMessage] = [task, HumanMessage(f"{shown}Question: {question}")]
        messages = base
        for tries in range(1, TRIES + 1):
            reply = yield from self._request(messages)
            self._reply = GraphReply(question=question, tries=tries)
            try:
                yield from self._answer(reply, values, task)
                break
            except (QueryError, UnknownNameError, FilterError, StrategyError) as error:
                self._reply = replace(self._reply, problem=str(error))
            leads = "" if shown else write_leads(self._names, self._schema)
            reason = f"That query has no result: {self._reply.problem}\n{leads}Write one that has one."
            messages = [*base, AIMessage(reply.text), HumanMessage(reason)]
        costs = ("calls", "prompt_tokens", "output_tokens")
        paid: dict[str, Any] = {name: _add([getattr(reply, name) for reply in self._paid]) for name in costs}
        return replace(self._reply, **paid)

    def _request(self, messages: Sequence[BaseMessage]) -> Operation[ModelReply[WrittenQuery]]:
        reply = yield from self._model.request(WrittenQuery, messages)
        self._paid.append(reply)
        return reply

    def _answer(
        self, reply: ModelReply[WrittenQuery], values: set[str], task: BaseMessage
    ) -> Operation[None]:
        """Carry out a query, if it says all of the question.

        Raises:
            QueryError: If it does not, or nothing matches: another query may do better.
        """
        cypher = yield from self._read(reply)
        reading = write_reading(cypher)
        self._reply = replace(self._reply, query=make_query(cypher), reading=reading)
        if gap := find_gap(self._question, cypher, self._names, values):
            raise QueryError(gap)
        answer = yield from self._match(cypher)
        leads = write_leads(self._names, self._schema, turned=True)
        if answer.total and leads and is_turnable(cypher, self._schema):
            again = yield from self._request([task, HumanMessage(f"{leads}Question: {self._question}")])
            other = yield from self._match((yield from self._read(again)))
            if (other.total, other.ids) != (answer.total, answer.ids):
                problem = f"asked again, the model wrote another query than: {reading}"
                self._reply = replace(self._reply, problem=problem)
                return  # a further query would depend on the order of the paths as well
        self._reply = replace(self._reply, answer=answer)
        if not answer.total:
            raise QueryError(answer.reason or "nothing matches")

    def _read(self, reply: ModelReply[WrittenQuery]) -> Operation[CypherQuery]:
        """Read a query, and find what its names mean, such as misspelt ones, if the question had none known.

        Raises:
            QueryError: If it cannot be read, or has a name that the model made up.
        """
        if reply.output is None:
            raise QueryError(reply.problem)
        self._reply = replace(self._reply, cypher=self._reply.cypher or reply.output.cypher)
        cypher, scope = read_cypher(reply.output.cypher, forgiving=True), self._scope
        nodes = [node for part in cypher.parts for node in part.nodes.values()]
        looked_up: list[Name] = []
        for name in dict.fromkeys(node.name for node in nodes if node.name is not None):
            if not is_in_question(name, self._question):
                raise QueryError(f"the question does not name {name!r}, so the query may not either")
            resolution, type_field = yield from look_up_name(scope.backend, name, None, scope.filter)
            if resolution.document is not None:
                looked_up.append((name, str(resolution.document.metadata.get(type_field))))
        self._names = self._names or looked_up
        return fit_schema(cypher, self._schema)

    def _match(self, cypher: CypherQuery) -> Operation[GraphAnswer]:
        scope = self._scope
        return (yield from answer_query(scope.backend, make_query(cypher), scope.filter, scope.ceiling))


def _add(counts: Sequence[int | None]) -> int | None:
    return sum(filter(None, counts)) if set(counts) != {None} else None
