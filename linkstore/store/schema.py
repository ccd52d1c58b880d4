"""A schema of a store: types of documents, and the kinds of link that lead from one type to another.

A schema is optional. A store that has one checks documents before it writes them. ``describe()`` is its text
for the prompt of a model.

The type of a document is the value of a metadata field, ``"type"`` unless the schema says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import orjson

from linkstore.core.arguments import quote_value
from linkstore.core.links import LINKS_KEY, Link, merge_links
from linkstore.errors import SchemaError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.store.schema_graph import ScannableSource

Mode = Literal["strict", "warn"]
"""How a store treats documents that its schema does not allow: refuse them, or write and record them."""
MODES: Final[tuple[Mode, ...]] = ("strict", "warn")
TYPE_FIELD: Final = "type"
"""The metadata field that holds the type of a document, by default."""
VALID_FROM: Final = "valid_from"
VALID_UNTIL: Final = "valid_until"
"""The fields that say from and until when a document or link is valid, by default."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A kind of link, and the types of the documents that it joins.

    Args:
        kind: Kind of the links.
        from_types: Types of the documents that links lead from: one, or several.
        to_types: Types of the documents that they lead to.
        both_ways: Whether links may be bidirectional. Default False. Then documents of all these types may
            have them.
        may_dangle: Whether a link may lead to a document that is not in the store yet. Default False.
    """

    kind: str
    from_types: frozenset[str]
    to_types: frozenset[str]
    both_ways: bool = field(default=False, kw_only=True)
    may_dangle: bool = field(default=False, kw_only=True)

    def __init__(
        self,
        kind: str,
        from_types: str | Iterable[str],
        to_types: str | Iterable[str],
        *,
        both_ways: bool = False,
        may_dangle: bool = False,
    ) -> None:
        object.__setattr__(self, "kind", _check_name("kind", kind))
        object.__setattr__(self, "from_types", _check_type_names(kind, from_types))
        object.__setattr__(self, "to_types", _check_type_names(kind, to_types))
        object.__setattr__(self, "both_ways", bool(both_ways))
        object.__setattr__(self, "may_dangle", bool(may_dangle))

    @property
    def types(self) -> frozenset[str]:
        """All types that the relation joins."""
        return self.from_types | self.to_types

    def __str__(self) -> str:
        arrow = f"←[{self.kind}]→" if self.both_ways else f"—[{self.kind}]→"
        return f"{_join_names(self.from_types)} {arrow} {_join_names(self.to_types)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the relation as a plain JSON dict."""
        return {
            "kind": self.kind,
            "from_types": sorted(self.from_types),
            "to_types": sorted(self.to_types),
            "both_ways": self.both_ways,
            "may_dangle": self.may_dangle,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in a document that a schema does not allow.

    Args:
        id: The document.
        text: What is wrong.
    """

    id: str
    text: str

    def __str__(self) -> str:
        return f"document {self.id!r}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Types of documents, and the relations between them.

    Args:
        types: Names of the document types.
        relations: What links them. Several relations may have the same kind.
        version: A number that grows when the schema of a store is replaced. Default 1.
        type_field: The metadata field that holds the type of a document. Default ``"type"``.
        valid_from: The field of metadata, and of the data of links, that holds the first day on which a
            document or link is valid. Default ``"valid_from"``.
        valid_until: The field that holds the last day. Default ``"valid_until"``.

    Raises:
        SchemaError: If a relation names a type that is not among ``types``, or the version is less than 1.
    """

    types: frozenset[str]
    relations: tuple[Relation, ...] = ()
    version: int = 1
    type_field: str = TYPE_FIELD
    valid_from: str = VALID_FROM
    valid_until: str = VALID_UNTIL

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", _check_type_names("types", self.types))
        of_set = isinstance(self.relations, AbstractSet)  # its order differs from process to process
        relations = sorted(self.relations, key=str) if of_set else self.relations
        object.__setattr__(self, "relations", tuple(relations))
        if isinstance(self.version, bool) or not isinstance(self.version, int) or self.version < 1:
            raise SchemaError(
                f"the version of a schema must be an integer of at least 1, not {self.version!r}"
            )
        _check_name("type_field", self.type_field)
        _check_name("valid_from", self.valid_from)
        _check_name("valid_until", self.valid_until)
        for relation in self.relations:
            if not isinstance(relation, Relation):
                raise SchemaError(
                    f"a schema takes relations such as Relation('cites', 'paper', 'paper'), not {relation!r}"
                )
            for missing in sorted(relation.types - self.types):
                raise SchemaError(
                    f"the relation {relation} names the type {missing!r}, which is not among the types"
                    f" {_join_names(self.types)} of the schema; add it to types"
                )

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of link that the schema allows."""
        return frozenset(relation.kind for relation in self.relations)

    def next(self, **changes: Any) -> Self:
        """Return a copy with the next version number and other fields as given."""
        return replace(self, **{"version": self.version + 1, **changes})

    def type_of(self, metadata: Mapping[str, Any]) -> str | None:
        """Return the type of a document, or None if it has none."""
        value = metadata.get(self.type_field)
        return value if isinstance(value, str) else None

    def of_kind(self, kind: str) -> tuple[Relation, ...]:
        """Return the relations of a kind."""
        return tuple(relation for relation in self.relations if relation.kind == kind)

    def problems(self, id: str, metadata: Mapping[str, Any], links: Iterable[Link]) -> Iterator[Problem]:
        """Yield the problems of one document under the schema, as far as the document alone shows them."""
        own = self.type_of(metadata)
        if own is None:
            yield Problem(
                id=id, text=f"it has no type: metadata[{self.type_field!r}] is missing or not a string"
            )
        elif own not in self.types:
            yield Problem(id=id, text=f"its type {own!r} is unknown; the types are {_join_names(self.types)}")
        else:
            yield from (
                Problem(id=id, text=text) for link in links if (text := self._describe_wrong(own, link))
            )

    def _describe_wrong(self, type: str, link: Link) -> str | None:
        """Return the problem of a link of a document of this type, or None."""
        relations = self.of_kind(link.kind)
        if not relations:
            return (
                f"{_describe_link(link)} has an unknown kind; the kinds are "
                f"{_join_names(self.kinds) or 'none'}"
            )
        if any(_is_allowed(relation, type, link) for relation in relations):
            return None
        allowed = "; ".join(map(str, relations))
        if any(type in relation.types for relation in relations):
            return (
                f"{_describe_link(link)} has the wrong direction for the type "
                f"{type!r}; the schema has {allowed}"
            )
        return f"{_describe_link(link)} joins other types than {type!r}; the schema has {allowed}"

    def document(
        self,
        type: str,
        id: str,
        text: str,
        relations: Iterable[tuple[str, str] | tuple[str, str, Mapping[str, Any]]] = (),
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> Document:
        """Make a document of a type with its links, and the links by which others can lead to it.

        Its id is the tag under which relations lead to it, so the order of adding documents does not matter::

            schema.document("Drug", "DRG-1", "Zalamizole is an azole.", [("BELONGS_TO", "CLS-3")])

        Args:
            type: One of the types.
            id: The id of the document.
            text: Its text.
            relations: The kind of each link, the id of the document that it leads to and, if wanted, data.
            metadata: Further metadata.

        Raises:
            SchemaError: If the schema does not allow the type or a relation.
        """
        from langchain_core.documents import Document

        links = []
        for item in relations:
            if not isinstance(item, tuple | list) or len(item) not in (2, 3):
                raise SchemaError(
                    f"document {id!r}: a relation is (kind, id) or (kind, id, data), such as"
                    f" ('BELONGS_TO', 'CLS-3'), not {quote_value(item)[:80]}"
                )
            kind, to, *data = item
            both = any(relation.both_ways and type in relation.types for relation in self.of_kind(kind))
            leaving = Link(
                kind=kind, tag=to, direction="bidir" if both else "out", data=data[0] if data else None
            )
            links.append(leaving)
        entered = (
            relation.kind
            for relation in self.relations
            if type in relation.to_types and not relation.both_ways
        )
        links += [Link.incoming(kind=kind, tag=id) for kind in dict.fromkeys(entered)]
        document_metadata = {**(metadata or {}), self.type_field: type}
        problems = [problem.text for problem in self.problems(id, document_metadata, links)]
        if problems:
            raise SchemaError(f"document {id!r}: {'; '.join(problems)}")
        document_metadata[LINKS_KEY] = [link.to_dict() for link in merge_links(links)]
        return Document(id=id, page_content=text, metadata=document_metadata)

    def leads_on(self, type: str, link: Link) -> bool:
        """Say whether an outgoing link of a document of this type must lead to a document in the store."""
        return link.direction == "out" and not any(
            relation.may_dangle for relation in self.of_kind(link.kind) if type in relation.from_types
        )

    def ends_of(self, type: str, kind: str) -> frozenset[str]:
        """Return the types that links of a kind lead to from documents of a type."""
        ends = frozenset[str]()
        for relation in self.of_kind(kind):
            if type in relation.from_types:
                ends |= relation.to_types
            if relation.both_ways and type in relation.to_types:
                ends |= relation.from_types
        return ends

    def reachable(self, type: str) -> frozenset[str]:
        """Return the types that links can lead to from documents of a type, including this type."""
        reached, new = {type}, {type}
        while new:
            new = {
                end for source in new for kind in self.kinds for end in self.ends_of(source, kind)
            } - reached
            reached |= new
        return frozenset(reached)

    def describe(self) -> str:
        """Describe the schema as text for the prompt of a model."""
        lines = [
            f"Document types (metadata field {self.type_field!r}): {_join_names(self.types)}",
            "Links between documents:",
        ]
        lines += [f"- {relation}" for relation in sorted(self.relations, key=str)] or ["- none"]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as a plain JSON dict."""
        return {
            "version": self.version,
            "type_field": self.type_field,
            "valid_from": self.valid_from,
            "valid_until": self.valid_until,
            "types": sorted(self.types),
            "relations": [relation.to_dict() for relation in self.relations],
        }

    @classmethod
    def infer(cls, source: ScannableSource | Iterable[Document], type_field: str = TYPE_FIELD) -> Schema:
        """Draft a schema from the documents of a store.

        Relations join the types that links join now. A kind some of whose links lead nowhere may dangle.
        Documents without a type are left out. The time and memory grow with the number of links.

        Args:
            source: A store, or documents.
            type_field: The metadata field that holds the type of a document.

        Raises:
            SchemaError: If no document has a type.
        """
        from linkstore.store.schema_graph import infer_schema

        return infer_schema(source, type_field)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Make a schema from the dict that :meth:`to_dict` returned.

        Raises:
            SchemaError: If it is not one.
        """
        try:
            relations = tuple(Relation(**relation) for relation in given.get("relations", ()))
            return cls(**{**given, "relations": relations})
        except (TypeError, AttributeError) as error:
            raise SchemaError(f"not a schema: {error}; see Schema.to_dict") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSchema:
    """A schema as a store records it.

    Args:
        schema: The schema.
        mode: What is done with documents that it does not allow.
    """

    schema: Schema
    mode: Mode

    def to_json(self) -> str:
        """Return the schema as text."""
        return orjson.dumps({"schema": self.schema.to_dict(), "mode": self.mode}).decode()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Make a schema from the text that :meth:`to_json` returned.

        Raises:
            SchemaError: If the text is something else.
        """
        try:
            record = orjson.loads(text)
            mode = record["mode"]
            schema = Schema.from_dict(record["schema"])
        except (ValueError, TypeError, KeyError) as error:
            raise SchemaError(
                f"the schema that the store records cannot be read: {error}; set it again"
            ) from error
        return cls(schema=schema, mode=check_mode(mode))


def check_mode(mode: str) -> Mode:
    """Return the mode, if it is one.

    Raises:
        SchemaError: If it is not.
    """
    for choice in MODES:
        if mode == choice:
            return choice
    raise SchemaError(f"the mode of a schema must be {' or '.join(map(repr, MODES))}, not {mode!r}")


def _is_allowed(relation: Relation, type: str, link: Link) -> bool:
    match link.direction:
        case "out":
            return type in relation.from_types
        case "in":
            return type in relation.to_types
        case _:
            return relation.both_ways and type in relation.types


def _describe_link(link: Link) -> str:
    return f"its link ({link.direction}, kind {link.kind!r}, tag {link.tag!r})"


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _check_type_names(what: str, names: str | Iterable[str]) -> frozenset[str]:
    if not isinstance(names, Iterable):
        raise SchemaError(f"{what}: name one type or several, not {names!r}")
    listed = [names] if isinstance(names, str) else list(names)
    if not listed:
        raise SchemaError(f"{what}: name at least one type")
    return frozenset(_check_name("type", name) for name in listed)


def _check_name(what: str, name: object) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise SchemaError(f"a {what} must be a non-empty printable string, not {name!r}")
    return name
