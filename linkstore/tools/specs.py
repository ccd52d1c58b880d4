"""The descriptions of the tools for a model, and their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
)

from linkstore.errors import (
    DocumentError,
    LinkError,
    LinkStoreError,
    SchemaError,
    StoreBusyError,
    StoreUnavailableError,
    StrategyError,
    UnknownNameError,
)
from linkstore.plans import Operation
from linkstore.strategies.base import Walk
from linkstore.tools.answers import Answer
from linkstore.tools.toolbox import Toolbox

_Kinds = Annotated[
    list[str] | None, BeforeValidator(lambda given: [given] if isinstance(given, str) else given)
]
_MISTAKES = (DocumentError, LinkError, SchemaError, StrategyError)
_WRONG: Final = {
    "missing": "is missing",
    "extra_forbidden": "is no argument of this tool",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "dict_type": "must be an object",
    "list_type": "must be a list",
}
"""What is wrong with an argument, by pydantic's name for it."""
_STRICT = ConfigDict(extra="forbid")
_Id = Annotated[str, Field(description="The id of a document, without its brackets.")]
_Described = tuple[Callable[..., Operation[Answer]], str, dict[str, Any]]
"""A tool's operation, what a model is told of it, and its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool.

    Args:
        name: As a model calls it.
        description: What a model is told of it.
        arguments: What may be passed.
        operation: Of the toolbox; takes the arguments.
        writes: Whether it changes the store.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    operation: Callable[..., Operation[Answer]]
    writes: bool = False


def specs_of(toolbox: Toolbox, about: str = "", prefix: str = "") -> Iterator[ToolSpec]:
    """Yield the tools of a toolbox.

    Args:
        toolbox: Carries them out.
        about: What the store is about, for the description of ``search``.
        prefix: Goes before the names.
    """
    for operation, description, fields in _described(toolbox, about):
        name = operation.__name__
        yield ToolSpec(
            name=f"{prefix}{name}",
            description=description,
            arguments=create_model(f"{prefix}{name}", __config__=_STRICT, **fields),
            operation=operation,
        )


def writing_specs_of(toolbox: Toolbox) -> Iterator[ToolSpec]:
    """Yield two more tools, which write: ``add`` and ``delete``."""
    link = "kind, tag, direction (out, in or bidir) and, if wanted, label"
    fields: dict[str, Any] = {
        "id": (_Id, ...),
        "text": (str, Field(description="Its text.")),
        "metadata": (dict[str, Any] | None, Field(default=None, description="A JSON object.")),
        "links": (list[dict[str, Any]] | None, Field(default=None, description=f"Objects with {link}.")),
    }
    for operation, description, given in (
        (toolbox.add, "Add a document with its links, or replace the one with this id.", fields),
        (toolbox.delete, "Delete a document.", {"id": fields["id"]}),
    ):
        name = operation.__name__
        arguments: type[BaseModel] = create_model(name, __config__=_STRICT, **given)
        yield ToolSpec(
            name=name, description=description, arguments=arguments, operation=operation, writes=True
        )


def _described(toolbox: Toolbox, about: str) -> Iterator[_Described]:
    yield _search(toolbox, about)
    yield _follow(toolbox)
    yield (
        toolbox.read,
        f"Read the text of a document, at most {toolbox.limits.text:,} characters at once. Also names the"
        " documents before and after it.",
        {
            "id": (str, Field(description="The id of a document, or its URL.")),
            "offset": (int, Field(default=0, description="The character of the text to begin with.")),
        },
    )
    yield (
        toolbox.links,
        "List the links of a document, in both directions, without texts.",
        {"id": (_Id, ...)},
    )
    yield (
        toolbox.schema,
        "List the types of document, the kinds of link between them and the metadata fields of the store.",
        {},
    )


def _search(toolbox: Toolbox, about: str) -> _Described:
    ceiling, usual = toolbox.ceiling, toolbox.usual_hops
    subject = f" Its subject: {about.strip().rstrip('.')}." if about.strip() else ""
    hops = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 0, "maximum": ceiling})]
    more = (
        "How many links in a row to follow. More find documents that are related by way of others, and those"
        f" where several relations meet. At most {ceiling}."
    )
    return (
        toolbox.search,
        f"Search the knowledge store for a question.{subject} Returns at most {toolbox.limits.results}"
        " documents, each with its id, its URL, a part of its text, and the links that lead to it.",
        {
            "question": (str, Field(description="The question, in words.")),
            "hops": (hops, Field(default=usual, description=more)),
        },
    )


def _follow(toolbox: Toolbox) -> _Described:
    kinds = Field(default=None, description="Only links of these kinds; the tool schema lists them.")
    walk = Field(default="forward", description="forward: along the links; backward: against them.")
    return (
        toolbox.follow,
        "Go where the links of a document lead. Returns the documents at their other ends.",
        {"id": (_Id, ...), "kinds": (_Kinds, kinds), "direction": (Walk, walk)},
    )


def told(error: LinkStoreError) -> str | None:
    """Format an error for a model. Return None for one that the model can do nothing about."""
    if isinstance(error, StoreBusyError | StoreUnavailableError):
        return "The store does not answer now. Try again once; then tell the user that it is not available."
    named_kind = isinstance(error, UnknownNameError) and error.sort == "link kind"
    if not named_kind and not isinstance(error, _MISTAKES):
        return None
    text = str(error)
    return f"Error: {text}" if text.endswith("?") else f"Error: {text}."


def told_of_arguments(error: ValidationError) -> str:
    """Format arguments that do not fit for a model."""
    wrong = (
        f"{'.'.join(map(str, one['loc'])) or 'arguments'} {_WRONG.get(one['type'], one['msg'])}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    )
    return f"Error: the arguments do not fit: {'; '.join(wrong)}. Call the tool again with other arguments."
