"""The tools of a store: what a model is told of each, its operation, and how it is called.

A tool is a function. Its signature has the arguments, its docstring is what a model is told: what it does,
when to use it rather than its sibling, what it returns and how much, and what it changes. It has no values: a
small model would copy them. ``$names`` stand for what depends on the store, the limits and the other tools.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from string import Template
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)

from linkstore import errors
from linkstore.agents import match_tool, store_tools
from linkstore.agents.tool_answers import ToolAnswer, ToolLimits, ToolScope
from linkstore.core.arguments import read_docstring, require, require_list
from linkstore.core.calls import Operation, arun, run
from linkstore.core.filters import Filter

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from linkstore.store.linkstore import LinkStore


def graph_tools(
    store: LinkStore,
    *,
    only: Sequence[str] | None = None,
    limits: ToolLimits | None = None,
    filter: Filter | None = None,
    about: str = "",
    prefix: str = "",
) -> list[BaseTool]:
    """Make tools with which an agent searches a store and follows its links.

    They are ``search``, ``follow`` and ``read``, with a schema also ``match`` and ``schema``, and by name
    ``path``, sync and async. Each returns text for the model, and the
    same as a JSON object in the ``artifact`` of its message. None of them writes.

    A mistake of the model, such as an unknown id or kind of link, or too many hops, comes back as text that
    says what to do; so does a store that is busy or cannot be reached. Other errors are raised.

    Args:
        store: What they read.
        only: The names of the tools to make instead.
        limits: What they may do, and how much they may return.
        filter: Only documents with such metadata exist for the tools.
        about: What the store is about, in a few words; the model reads it in the description of ``search``.
        prefix: Goes before their names, so that an agent can have the tools of several stores.

    Raises:
        ArgumentError: If an argument has the wrong type.
        FilterError: If the filter is invalid.
    """
    require(str, "a string", about=about, prefix=prefix)
    scope = ToolScope(store, ToolLimits() if limits is None else limits, filter)
    return [tool.to_langchain() for tool in make_tools(scope, about, prefix, only)]


MAX_DESCRIBED: Final = 4_000
"""Maximum number of characters that describe the store in the description of ``match``."""
_NAMED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("query", "text", "q", "search_query"), "question"),
    **dict.fromkeys(("ids", "document", "document_id", "documents", "name", "names"), "id"),
    **dict.fromkeys(("kind", "relation", "relations", "link", "links"), "kinds"),
    "type": "result_type",
    "cypher": "query",
    "from": "start",
    "to": "end",
}
"""What models call arguments that a tool calls otherwise."""
_NOTHING: Final = ("", "null", "None", "none")
_JSON: Final = ('["', "[{", '{"', "[]", "{}")
"""How a list or an object begins that stands in a string."""
_READING: Final[Mapping[str, Callable[..., Operation[ToolAnswer]]]] = {
    "search": store_tools.search,
    "match": match_tool.match,
    "follow": store_tools.follow,
    "read": store_tools.read,
    "schema": store_tools.schema,
    "path": store_tools.path,
}
_PLAIN: Final = ("search", "follow", "read")
_TYPED: Final = (*_PLAIN, "match", "schema")
"""The tools for a store without a schema, and for one with it."""


class ToolArguments(BaseModel):
    """The arguments of a tool, forgiven where their meaning is clear."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def forgive(cls, given: Any) -> Any:
        """Rename arguments, read JSON in strings, and leave out optional ones that are empty.

        This changes the object itself, because LangChain passes on only what the object has.
        """
        if not isinstance(given, dict):
            return given
        for name in list(given):
            meant = _NAMED.get(name, name)
            if name not in cls.model_fields and meant in cls.model_fields and meant not in given:
                given[meant] = given.pop(name)
        for name, value in list(given.items()):
            own = cls.model_fields.get(name)
            if own and not own.is_required() and (value is None or value in _NOTHING):
                del given[name]
            elif isinstance(value, str) and name != "question" and value.lstrip().startswith(_JSON):
                with suppress(ValueError):
                    given[name] = json.loads(value)
        return given


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool, without LangChain, whose import of tools takes longer than all of linkstore.

    Args:
        name: As a model calls it.
        description: What a model is told of it.
        arguments: Its arguments.
        operation: What it does with them.
    """

    name: str
    description: str
    arguments: type[ToolArguments]
    operation: Callable[..., Operation[ToolAnswer]]

    def answer(self, arguments: dict[str, Any]) -> Operation[ToolAnswer]:
        """Answer a call with any arguments. What the model can correct is an answer that says so.

        Raises:
            LinkStoreError: If the model can do nothing about it.
        """
        try:
            valid = dict(self.arguments.model_validate(arguments))
        except ValidationError as error:
            return ToolAnswer(text=format_argument_error(error), data=None, is_error=True)
        return (yield from self._carry_out(**valid))

    def _carry_out(self, *first: str, **arguments: Any) -> Operation[ToolAnswer]:
        try:
            return (yield from self.operation(*first, **arguments))
        except errors.LinkStoreError as error:
            if text := format_error(error):
                return ToolAnswer(text=text, data=None, is_error=True)
            raise

    def to_langchain(self) -> BaseTool:
        """Return the tool as one of LangChain's."""
        from langchain_core.tools import StructuredTool, ToolException

        # LangChain passes a plain string, as in tool.invoke("tower"), as a positional argument.
        def answer(*first: str, **arguments: Any) -> Operation[tuple[str, Any]]:
            made = yield from self._carry_out(*first, **arguments)
            if made.is_error:
                raise ToolException(made.text)
            return made.text, made.data

        return StructuredTool.from_function(
            func=lambda *first, **arguments: run(answer(*first, **arguments)),
            coroutine=lambda *first, **arguments: arun(answer(*first, **arguments)),
            name=self.name,
            description=self.description,
            args_schema=self.arguments,
            response_format="content_and_artifact",
            handle_tool_error=True,
            handle_validation_error=format_argument_error,
        )


def make_tools(
    scope: ToolScope, about: str = "", prefix: str = "", only: Sequence[str] | None = None
) -> Iterator[Tool]:
    """Yield the tools that read.

    Args:
        scope: What they see and may do.
        about: What the store is about, for the description of ``search``.
        prefix: Goes before the names.
        only: The names of the tools, without the prefix; None: those that the store calls for.

    Raises:
        ArgumentError: If there is no such tool.
    """
    limits, schema = scope.limits, scope.store.schema.get()
    chosen = (_TYPED if schema else _PLAIN) if only is None else only
    require_list("names of tools", only=chosen)
    if unknown := set(chosen) - _READING.keys():
        raise errors.ArgumentError(f"there is no tool {min(unknown)!r}; the tools are {', '.join(_READING)}")
    described = run(match_tool.describe_store(scope))[0] if "match" in chosen else ""
    words: dict[str, object] = {name: f"{prefix}{name}" for name in _READING}
    words |= {
        "results": limits.results,
        "text": f"{limits.text:,}",
        "most_named": store_tools.MOST_NAMED,
        "subject": f"Its subject: {about.strip().rstrip('.')}. " if about.strip() else "",
        "store": described[:MAX_DESCRIBED],
    }
    types = WithJsonSchema({"type": "string", "enum": sorted(schema.types if schema else ())})
    changed = {"result_type": (Annotated[str | None, types], None) if schema else None}
    for name, operation in _READING.items():
        if name in chosen:
            yield make_tool(operation, scope, words, changed, prefix=prefix)


def make_writing_tools(scope: ToolScope) -> Iterator[Tool]:
    """Yield two more tools, which write: ``add`` and ``delete``."""
    schema = scope.store.schema.get()
    words = {"rules": f" {schema.describe()}" if schema else ""}
    for operation in (store_tools.add, store_tools.delete):
        yield make_tool(operation, scope, words)


def make_tool(
    operation: Callable[..., Operation[ToolAnswer]],
    scope: Any,
    words: Mapping[str, object],
    changed: Mapping[str, tuple[Any, Any] | None] | None = None,
    *,
    prefix: str = "",
) -> Tool:
    """Make a tool of a function.

    Args:
        operation: The function. Its first parameter is the scope.
        scope: What the tool sees and may do.
        words: What stands for the names in the docstring.
        changed: Other types and defaults of arguments than in the signature; None: the tool lacks the
            argument.
        prefix: Goes before the name.
    """
    description, explained = read_docstring(operation)
    name = f"{prefix}{operation.__name__}"
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(operation, eval_str=True).parameters.values())[1:]:
        default = ... if parameter.default is parameter.empty else parameter.default
        taken = (changed or {}).get(parameter.name, (parameter.annotation, default))
        if taken is not None:
            text = Template(explained[parameter.name].text).substitute(words)
            fields[parameter.name] = (taken[0], Field(default=taken[1], description=text))
    return Tool(
        name=name,
        description=Template(" ".join(description.split())).substitute(words),
        arguments=create_model(name, __base__=ToolArguments, **fields),
        operation=partial(operation, scope),
    )


_MISTAKES = (
    errors.DocumentError,
    errors.FilterError,
    errors.LinkError,
    errors.QueryError,
    errors.SchemaError,
    errors.StrategyError,
)


_WRONG: Final = {
    "missing": "is missing",
    "extra_forbidden": "is no argument of this tool",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
}
"""What is wrong with an argument, by pydantic's name for it."""


def format_error(error: errors.LinkStoreError) -> str | None:
    """Format an error for a model. Return None for one that the model can do nothing about."""
    if isinstance(error, errors.StoreBusyError | errors.StoreUnavailableError):
        return "The store does not answer now. Try again once; then tell the user that it is not available."
    named_kind = isinstance(error, errors.UnknownNameError) and error.sort == "link kind"
    if not named_kind and not isinstance(error, _MISTAKES):
        return None
    text = str(error)
    return f"Error: {text}" if text.endswith("?") else f"Error: {text}."


def format_argument_error(error: ValidationError) -> str:
    """Format arguments that do not fit for a model."""
    wrong = (
        f"{'.'.join(map(str, details['loc'])) or 'arguments'} {_WRONG.get(details['type'], details['msg'])}"
        for details in error.errors(include_url=False, include_context=False, include_input=False)
    )
    return f"Error: the arguments do not fit: {'; '.join(wrong)}. Call the tool again with other arguments."
