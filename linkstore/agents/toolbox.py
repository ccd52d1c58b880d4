"""The tools of a store, independent of their caller: one operation each, driven sync or async."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
)

from linkstore.agents import document_tools, link_tools
from linkstore.agents.tool_answers import StoreView, ToolAnswer, ToolLimits
from linkstore.core.arguments import require
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.plans import Operation
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
from linkstore.store.linkstore import LinkStore, require_store
from linkstore.strategies.base import HopDirection

T = TypeVar("T")


class Toolbox:
    """The operations behind the tools of a store.

    Args:
        store: What they read.
        limits: What they may do, and how much they may return.
        filter: Only documents that pass it exist for the tools.

    Raises:
        ArgumentError: If this is not a store, or these are not limits.
        FilterError: If the filter is invalid.
    """

    def __init__(
        self, store: LinkStore, limits: ToolLimits | None = None, filter: Filter | None = None
    ) -> None:
        require_store(store=store)
        self.store = store
        self.limits = ToolLimits() if limits is None else limits
        require(ToolLimits, "a ToolLimits", limits=self.limits)
        parse_filter(filter)  # raise now, and not in a call
        self.view = StoreView(store, filter)

    @property
    def ceiling(self) -> int:
        """How many links in a row ``search`` may follow: the lower of the limits' and the store's."""
        most = self.store.max_depth
        return self.limits.max_depth if most is None else min(most, self.limits.max_depth)

    @property
    def usual_hops(self) -> int:
        """How many links ``search`` follows unless it is told: 2, or the ceiling if that is lower."""
        return min(2, self.ceiling)

    def search(self, question: str, hops: int | None = None) -> Operation[ToolAnswer]:
        """Search: see :func:`.search_documents`; ``hops`` is ``usual_hops`` by default."""
        chosen = self.usual_hops if hops is None else hops
        return document_tools.search_documents(self.view, question, chosen, self.limits, self.ceiling)

    def follow(
        self, id: str, kinds: Sequence[str] | None = None, direction: HopDirection = "forward"
    ) -> Operation[ToolAnswer]:
        """Follow links: see :func:`linkstore.agents.link_tools.follow_links`."""
        if not self.ceiling:
            raise StrategyError("the ceiling is 0: no links may be followed here; use search and read")
        return link_tools.follow_links(self.view, id, kinds, direction, self.limits)

    def read(self, id: str, offset: int = 0) -> Operation[ToolAnswer]:
        """Read a document: see :func:`linkstore.agents.document_tools.read_document`."""
        return document_tools.read_document(self.view, id, offset, self.limits)

    def links(self, id: str) -> Operation[ToolAnswer]:
        """List links: see :func:`linkstore.agents.link_tools.list_links`."""
        return link_tools.list_links(self.view, id, self.limits)

    def schema(self) -> Operation[ToolAnswer]:
        """Describe the schema: see :func:`linkstore.agents.link_tools.describe_schema`."""
        return link_tools.describe_schema(self.store.backend, self.ceiling)

    def add(
        self,
        id: str,
        text: str,
        metadata: Mapping[str, Any] | None = None,
        links: Sequence[Mapping[str, Any]] | None = None,
    ) -> Operation[ToolAnswer]:
        """Add a document: see :func:`linkstore.agents.document_tools.add_document`."""
        return document_tools.add_document(self.view, id, text, metadata, links)

    def delete(self, id: str) -> Operation[ToolAnswer]:
        """Delete a document: see :func:`linkstore.agents.document_tools.delete_document`."""
        return document_tools.delete_document(self.view, id)


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
_ToolDescription = tuple[Callable[..., Operation[ToolAnswer]], str, dict[str, Any]]
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
    operation: Callable[..., Operation[ToolAnswer]]
    writes: bool = False


def make_specs(toolbox: Toolbox, about: str = "", prefix: str = "") -> Iterator[ToolSpec]:
    """Yield the tools of a toolbox.

    Args:
        toolbox: Carries them out.
        about: What the store is about, for the description of ``search``.
        prefix: Goes before the names.
    """
    for operation, description, fields in _describe_tools(toolbox, about):
        name = operation.__name__
        yield ToolSpec(
            name=f"{prefix}{name}",
            description=description,
            arguments=create_model(f"{prefix}{name}", __config__=_STRICT, **fields),
            operation=operation,
        )


def make_writing_specs(toolbox: Toolbox) -> Iterator[ToolSpec]:
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


def _describe_tools(toolbox: Toolbox, about: str) -> Iterator[_ToolDescription]:
    yield _describe_search(toolbox, about)
    yield _describe_follow(toolbox)
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


def _describe_search(toolbox: Toolbox, about: str) -> _ToolDescription:
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


def _describe_follow(toolbox: Toolbox) -> _ToolDescription:
    kinds = Field(default=None, description="Only links of these kinds; the tool schema lists them.")
    walk = Field(default="forward", description="forward: along the links; backward: against them.")
    return (
        toolbox.follow,
        "Go where the links of a document lead. Returns the documents at their other ends.",
        {"id": (_Id, ...), "kinds": (_Kinds, kinds), "direction": (HopDirection, walk)},
    )


def format_error(error: LinkStoreError) -> str | None:
    """Format an error for a model. Return None for one that the model can do nothing about."""
    if isinstance(error, StoreBusyError | StoreUnavailableError):
        return "The store does not answer now. Try again once; then tell the user that it is not available."
    named_kind = isinstance(error, UnknownNameError) and error.sort == "link kind"
    if not named_kind and not isinstance(error, _MISTAKES):
        return None
    text = str(error)
    return f"Error: {text}" if text.endswith("?") else f"Error: {text}."


def format_argument_error(error: ValidationError) -> str:
    """Format arguments that do not fit for a model."""
    wrong = (
        f"{'.'.join(map(str, one['loc'])) or 'arguments'} {_WRONG.get(one['type'], one['msg'])}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    )
    return f"Error: the arguments do not fit: {'; '.join(wrong)}. Call the tool again with other arguments."
