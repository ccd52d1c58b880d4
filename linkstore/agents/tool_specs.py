"""What a model is told of the tools of a store, and the operation of each.

A description says what a tool does, when to use it rather than its sibling, what it returns and how much, and
what it changes. Each parameter has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
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

from linkstore.agents import document_tools, link_tools
from linkstore.agents.document_tools import GivenLink
from linkstore.agents.tool_answers import ToolAnswer, ToolLimits, ToolScope
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
from linkstore.store.schema import Schema
from linkstore.strategies.base import HopDirection

MAX_DESCRIBED: Final = 1_500
"""Maximum number of characters of a schema in the description of ``search``."""


_STRICT = ConfigDict(extra="forbid")
_NOTHING_CHANGED: Final = "Changes nothing."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool.

    Args:
        name: As a model calls it.
        description: What a model is told of it.
        arguments: What may be passed.
        operation: Takes the arguments.
        writes: Whether it changes the store.
    """

    name: str
    description: str
    arguments: type[BaseModel]
    operation: Callable[..., Operation[ToolAnswer]]
    writes: bool = False


def make_specs(scope: ToolScope, about: str = "", prefix: str = "") -> Iterator[ToolSpec]:
    """Yield the tools that read.

    Args:
        scope: What they see and may do.
        about: What the store is about, for the description of ``search``.
        prefix: Goes before the names.
    """
    limits, schema = scope.limits, scope.store.schema()
    name = {one: f"{prefix}{one}" for one in ("search", "similar", "follow", "read", "links", "schema")}
    id = _name_field("The document")
    yield _make_spec(
        document_tools.search,
        scope,
        prefix,
        _describe_search(limits, about, schema, name),
        **_list_search_fields(scope.ceiling, schema),
    )
    yield _make_spec(
        document_tools.similar,
        scope,
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
        link_tools.follow,
        scope,
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
        document_tools.read,
        scope,
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
        link_tools.links,
        scope,
        prefix,
        f"List the links of one document in both directions, without texts. Use it rather than"
        f" {name['follow']} to see which relations there are before you follow one. Returns at most"
        f" {limits.links} links, each with its kind, label and the ids at its other end. {_NOTHING_CHANGED}",
        id=id,
    )
    yield _make_spec(
        link_tools.schema,
        scope,
        prefix,
        "List the types of document, the kinds of link between them and the metadata fields of the store. Use"
        f" it rather than {name['search']} to learn which names {name['search']} and {name['follow']} take."
        f" Returns at most {link_tools.MOST_NAMED} names of each sort. {_NOTHING_CHANGED}",
    )
    yield _make_spec(
        link_tools.sources,
        scope,
        prefix,
        f"List the sources that the store was made from, such as sites and folders. Use it rather than"
        f" {name['schema']} to say where answers come from, or whether a source is there at all. Returns at"
        f" most {link_tools.MOST_NAMED} sources, each with its number of pages. {_NOTHING_CHANGED}",
    )


def make_writing_specs(scope: ToolScope) -> Iterator[ToolSpec]:
    """Yield two more tools, which write: ``add`` and ``delete``."""
    schema = scope.store.schema()
    rules = f" {schema.describe()}" if schema else ""
    yield _make_spec(
        document_tools.add,
        scope,
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
            list[GivenLink],
            Field(
                default=[],
                description="Its links, for example"
                ' [{"kind": "BELONGS_TO", "tag": "CLS-3", "direction": "out"}].',
            ),
        ),
    )
    yield _make_spec(
        document_tools.delete,
        scope,
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
    scope: ToolScope,
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
        operation=partial(operation, scope),
        writes=writes,
    )


def _describe_search(limits: ToolLimits, about: str, schema: Schema | None, name: Mapping[str, str]) -> str:
    subject = f" Its subject: {about.strip().rstrip('.')}." if about.strip() else ""
    told = (
        f"Search the knowledge store for a question.{subject} Use it first, and rather than {name['follow']}"
        f" if you do not know the document yet, or if two relations of a thing lead to the answer: name the"
        f" thing in the question. Returns at most {limits.results} documents, those first where"
        f" relations of the named thing meet, each with its id, its URL, a part of its text, and the links"
        f" that lead to it; or says that nothing was found. {_NOTHING_CHANGED}"
    )
    return f"{told} {schema.describe()[:MAX_DESCRIBED]}" if schema else told


def _list_search_fields(ceiling: int, schema: Schema | None) -> dict[str, Any]:
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
