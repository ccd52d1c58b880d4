"""The tools of a store, independent of their caller: one operation each, with what a model is told of it.

A description says what a tool does, when to use it rather than its sibling, what it returns and how much, and
what it changes. Each parameter has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

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
from linkstore.core.arguments import quote_value, require
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.plans import Operation
from linkstore.errors import (
    DocumentError,
    FilterError,
    LinkError,
    LinkStoreError,
    SchemaError,
    StoreBusyError,
    StoreUnavailableError,
    StrategyError,
    UnknownNameError,
)
from linkstore.store.linkstore import LinkStore, require_store
from linkstore.store.schema import Schema
from linkstore.strategies.base import HopDirection

MAX_DESCRIBED: Final = 1_500
"""Maximum number of characters of a schema in the description of ``search``."""


class GivenLink(BaseModel):
    """A link of a document that is added."""

    model_config = ConfigDict(extra="forbid")

    kind: str = Field(description='What relates both documents, for example "BELONGS_TO".')
    tag: str = Field(
        description='Where they meet: usually the id of the document pointed at, for example "CLS-3".'
    )
    direction: Literal["out", "in", "bidir"] = Field(
        description='"out" for a link from this document, "in" for one to it, "bidir" for both.'
    )
    label: str | None = Field(default=None, description='Words for people, for example "is an azole".')
    weight: float | None = Field(
        default=None, description="From 0 to 1, how much it counts, for example 0.5."
    )
    data: dict[str, Any] | None = Field(
        default=None, description='A JSON object about the link, for example {"year": 2019}.'
    )


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

    def search(
        self,
        question: str,
        hops: int | None = None,
        start_type: str | None = None,
        result_type: str | None = None,
        where: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Operation[ToolAnswer]:
        """Search: see :func:`.search_documents`; ``hops`` is the ceiling by default."""
        ceiling = self.ceiling
        chosen = ceiling if hops is None else hops
        if isinstance(chosen, bool) or not isinstance(chosen, int) or chosen < 0:
            raise StrategyError(f"hops must be an integer from 0 to {ceiling}, not {quote_value(chosen)}")
        if chosen > ceiling:
            raise StrategyError(
                f"hops={quote_value(chosen)} is more than the ceiling of {ceiling}; ask for at most {ceiling}"
            )
        strategy = yield from document_tools.choose_search(
            self.view, chosen, self.limits, start_type, result_type, where
        )
        return (yield from document_tools.search_documents(self.view, question, strategy, self.limits))

    def similar(self, id: str) -> Operation[ToolAnswer]:
        """Find similar documents: see :func:`.find_similar`."""
        return document_tools.find_similar(self.view, id, self.limits)

    def follow(
        self, id: str, kinds: Sequence[str] | None = None, direction: HopDirection = "forward"
    ) -> Operation[ToolAnswer]:
        """Follow links: see :func:`linkstore.agents.link_tools.follow_links`."""
        if not self.ceiling:
            raise StrategyError("the ceiling is 0: no links may be followed here; use search and read")
        return link_tools.follow_links(self.view, id, kinds, direction, self.limits)

    def read(self, id: str | Sequence[str], offset: int = 0) -> Operation[ToolAnswer]:
        """Read documents: see :func:`.read_several`."""
        names = [id] if isinstance(id, str) else list(id)
        return document_tools.read_several(self.view, names, offset, self.limits)

    def links(self, id: str) -> Operation[ToolAnswer]:
        """List links: see :func:`linkstore.agents.link_tools.list_links`."""
        return link_tools.list_links(self.view, id, self.limits)

    def schema(self) -> Operation[ToolAnswer]:
        """Describe the schema: see :func:`linkstore.agents.link_tools.describe_schema`."""
        return link_tools.describe_schema(self.store.backend, self.ceiling)

    def sources(self) -> Operation[ToolAnswer]:
        """List the sources: see :func:`linkstore.agents.link_tools.list_sources`."""
        return link_tools.list_sources(self.view)

    def add(
        self,
        id: str,
        text: str,
        metadata: Mapping[str, Any] | None = None,
        links: Sequence[GivenLink] | None = None,
    ) -> Operation[ToolAnswer]:
        """Add a document: see :func:`linkstore.agents.document_tools.add_document`."""
        given = [link.model_dump(exclude_none=True) for link in links or ()]
        return document_tools.add_document(self.view, id, text, metadata, given)

    def delete(self, id: str) -> Operation[ToolAnswer]:
        """Delete a document: see :func:`linkstore.agents.document_tools.delete_document`."""
        return document_tools.delete_document(self.view, id)


_STRICT = ConfigDict(extra="forbid")
_NOTHING_CHANGED: Final = "Changes nothing."


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
    """Yield the tools of a toolbox that read.

    Args:
        toolbox: Carries them out.
        about: What the store is about, for the description of ``search``.
        prefix: Goes before the names.
    """
    limits, schema = toolbox.limits, toolbox.store.schema()
    name = {one: f"{prefix}{one}" for one in ("search", "similar", "follow", "read", "links", "schema")}
    id = _name_field("The document")
    yield _make_spec(
        toolbox.search,
        prefix,
        _describe_search(toolbox, about, schema, name),
        **_list_search_fields(toolbox, schema),
    )
    yield _make_spec(
        toolbox.similar,
        prefix,
        f"Find the documents whose texts are most similar to one document. Use it rather than"
        f" {name['search']} if you have a document and want others like it. Returns at most {limits.results}"
        f" documents as {name['search']} does, without links. {_NOTHING_CHANGED}",
        id=id,
    )
    kinds = Annotated[
        list[str] | None, BeforeValidator(lambda given: [given] if isinstance(given, str) else given)
    ]
    walk = 'Which way: "forward" along the links, "backward" against them, or "both"; for example "backward".'
    only = f'Only links of these kinds, for example ["cites"]; {name["schema"]} lists them. Default all.'
    yield _make_spec(
        toolbox.follow,
        prefix,
        f"Go where the links of one document lead, by one link. Use it rather than {name['search']} if you"
        f" know the document and the relation, and rather than {name['links']} if you want texts. Returns at"
        f" most {limits.results} documents at the other ends, each with id, URL and a part of its text."
        f" {_NOTHING_CHANGED}",
        id=id,
        kinds=(kinds, Field(default=None, description=only)),
        direction=(HopDirection, Field(default="forward", description=walk)),
    )
    yield _make_spec(
        toolbox.read,
        prefix,
        f"Read the text of a document, or of up to {limits.results} at once. Use it rather than"
        f" {name['search']}, which shows parts only, before you quote or rely on a document. Returns at most"
        f" {limits.text:,} characters in all, between tags, and the ids of the documents before and after it."
        f" {_NOTHING_CHANGED}",
        id=(
            str | list[str],
            Field(
                description='Its id, with or without brackets, its URL or its name, for example "CLS-3";'
                ' or a list of these, for example ["CLS-3", "CLS-4"].'
            ),
        ),
        offset=(
            int,
            Field(
                default=0,
                description="The character to begin with, for example 8000 to read on; for one document.",
            ),
        ),
    )
    yield _make_spec(
        toolbox.links,
        prefix,
        f"List the links of one document in both directions, without texts. Use it rather than"
        f" {name['follow']} to see which relations there are before you follow one. Returns at most"
        f" {limits.links} links, each with its kind, label and the ids at its other end. {_NOTHING_CHANGED}",
        id=id,
    )
    yield _make_spec(
        toolbox.schema,
        prefix,
        "List the types of document, the kinds of link between them and the metadata fields of the store. Use"
        f" it rather than {name['search']} to learn which names {name['search']} and {name['follow']} take."
        f" Returns at most {link_tools.MOST_NAMED} names of each sort. {_NOTHING_CHANGED}",
    )
    yield _make_spec(
        toolbox.sources,
        prefix,
        f"List the sources that the store was made from, such as sites and folders. Use it rather than"
        f" {name['schema']} to say where answers come from, or whether a source is there at all. Returns at"
        f" most {link_tools.MOST_NAMED} sources, each with its number of pages. {_NOTHING_CHANGED}",
    )


def make_writing_specs(toolbox: Toolbox) -> Iterator[ToolSpec]:
    """Yield two more tools, which write: ``add`` and ``delete``."""
    schema = toolbox.store.schema()
    rules = f" {schema.describe()}" if schema else ""
    yield _make_spec(
        toolbox.add,
        "",
        "Add a document with its links, or replace the whole document with this id. Use it rather than delete"
        f" to correct a document. Returns one line, which says whether it was added or replaced. Changes the"
        f" store.{rules}",
        writes=True,
        id=(str, Field(description='Its id, for example "DRG-17". A document that has it is replaced.')),
        text=(str, Field(description='Its text, for example "Zalamizole is an azole."')),
        metadata=(
            dict[str, Any] | None,
            Field(default=None, description='A JSON object, for example {"type": "Drug", "year": 2019}.'),
        ),
        links=(
            list[GivenLink] | None,
            Field(
                default=None,
                description="Its links, for example"
                ' [{"kind": "BELONGS_TO", "tag": "CLS-3", "direction": "out"}].',
            ),
        ),
    )
    yield _make_spec(
        toolbox.delete,
        "",
        "Delete a document. Use it rather than add only if nothing should take its place. Returns one line."
        " Changes the store, and cannot be undone.",
        writes=True,
        id=(str, Field(description='Its exact id, for example "DRG-17".')),
    )


def _name_field(what: str) -> tuple[Any, Any]:
    told = f'{what}: its id, with or without brackets, its URL or its name, for example "CLS-3".'
    return str, Field(description=told)


def _make_spec(
    operation: Callable[..., Operation[ToolAnswer]],
    prefix: str,
    description: str,
    *,
    writes: bool = False,
    **fields: Any,
) -> ToolSpec:
    name = f"{prefix}{operation.__name__}"
    return ToolSpec(
        name=name,
        description=description,
        arguments=create_model(name, __config__=_STRICT, **fields),
        operation=operation,
        writes=writes,
    )


def _describe_search(toolbox: Toolbox, about: str, schema: Schema | None, name: Mapping[str, str]) -> str:
    subject = f" Its subject: {about.strip().rstrip('.')}." if about.strip() else ""
    told = (
        f"Search the knowledge store for a question.{subject} Use it first, and rather than {name['follow']}"
        f" if you do not know the document yet, or if two relations of a thing lead to the answer: name the"
        f" thing in the question. Returns at most {toolbox.limits.results} documents, those first where"
        f" relations of the named thing meet, each with its id, its URL, a part of its text, and the links"
        f" that lead to it; or says that nothing was found. {_NOTHING_CHANGED}"
    )
    return f"{told} {schema.describe()[:MAX_DESCRIBED]}" if schema else told


def _list_search_fields(toolbox: Toolbox, schema: Schema | None) -> dict[str, Any]:
    ceiling = toolbox.ceiling
    hops = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 0, "maximum": ceiling})]
    more = (
        "How many links in a row may be followed, for example 2. Leave it out, unless only directly linked"
        f" documents are wanted (1), or only similar texts (0). At most {ceiling}."
    )
    fields: dict[str, Any] = {
        "question": (str, Field(description='In words, for example "Which rules apply to Zalamizole?"')),
        "hops": (hops, Field(default=ceiling, description=more)),
    }
    if schema is None:
        return fields
    relation = min(schema.relations, key=str, default=None)
    start = min(relation.from_types) if relation else min(schema.types)
    end = min(relation.to_types) if relation else min(schema.types)
    known = WithJsonSchema({"type": "string", "enum": sorted(schema.types)})
    condition = f'{{"{end}": {{"status": "active"}}}}'
    return {
        **fields,
        "start_type": (
            Annotated[str | None, known],
            Field(
                default=None,
                description=f'The type of the thing that the question names, for example "{start}".',
            ),
        ),
        "result_type": (
            Annotated[str | None, known],
            Field(default=None, description=f'The type of the documents to find, for example "{end}".'),
        ),
        "where": (
            dict[str, dict[str, Any]] | None,
            Field(
                default=None,
                description="By type, the metadata that documents on the way must have, for example"
                f" {condition}. Without it, what is no longer valid is left out.",
            ),
        ),
    }


_MISTAKES = (DocumentError, FilterError, LinkError, SchemaError, StrategyError)
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
}
"""What is wrong with an argument, by pydantic's name for it."""


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
