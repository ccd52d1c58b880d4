"""The tools of a store as LangChain's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from linkstore.agents.tool_answers import ToolLimits, ToolScope
from linkstore.agents.tool_specs import ToolSpec, format_argument_error, format_error, make_specs
from linkstore.core.arguments import require
from linkstore.core.calls import arun, run
from linkstore.core.filters import Filter
from linkstore.errors import LinkStoreError
from linkstore.store.linkstore import LinkStore

ToolOutput = tuple[str, Mapping[str, Any]]


def graph_tools(
    store: LinkStore,
    *,
    limits: ToolLimits | None = None,
    filter: Filter | None = None,
    about: str = "",
    prefix: str = "",
) -> list[BaseTool]:
    """Make tools with which an agent searches a store and follows its links.

    They are ``search``, ``follow``, ``read``, ``links`` and ``schema``, sync and async. Each returns text
    for the model, and the same as a JSON object in the ``artifact`` of its message. None of them writes.

    A mistake of the model, such as an unknown id or kind of link, or too many hops, comes back as text that
    says what to do; so does a store that is busy or cannot be reached. Other errors are raised.

    Args:
        store: What they read.
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
    return [_make_tool(spec) for spec in make_specs(scope, about, prefix)]


def _make_tool(spec: ToolSpec) -> BaseTool:
    # LangChain passes a plain string, as in tool.invoke("tower"), as a positional argument.
    def call(*first: str, **arguments: Any) -> ToolOutput:
        with raise_for_model():
            answer = run(spec.operation(*first, **arguments))
        return answer.text, answer.data

    async def acall(*first: str, **arguments: Any) -> ToolOutput:
        with raise_for_model():
            answer = await arun(spec.operation(*first, **arguments))
        return answer.text, answer.data

    return StructuredTool.from_function(
        func=call,
        coroutine=acall,
        name=spec.name,
        description=spec.description,
        args_schema=spec.arguments,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=format_argument_error,
    )


@contextmanager
def raise_for_model() -> Iterator[None]:
    """Raise errors as LangChain hands them to the model, unless the model can do nothing about them."""
    try:
        yield
    except LinkStoreError as error:
        text = format_error(error)
        if text is None:
            raise
        raise ToolException(text) from error
