"""Links between documents, and what their fields may hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, runtime_checkable

from langchain_core.documents import Document

from linkstore.core.arguments import copy_json, quote_value, require
from linkstore.core.text import is_unicode
from linkstore.errors import LinkError

DIRECTIONS: Final[frozenset[str]] = frozenset({"in", "out", "bidir"})
MAX_TAG_BYTES: Final = 8192
"""Longest kind or tag, in bytes of UTF-8."""
Direction = Literal["in", "out", "bidir"]
SUGGESTED: Final = "suggested"
"""The kind of links that ``store.links.suggest`` proposed; a search follows it only by name."""
LINKS_KEY: Final = "links"
"""The metadata key under which a document carries its links, as plain JSON dicts."""
_MAX_CACHED_TAG: Final = 100
"""Maximum length of the tag of a link that is cached for further documents."""
SECTION: Final = "section"
"""The kind of links between chunks of one page or source. Their label says which chunk they lead to."""


def has_ordinary_fields(kind: object, tag: object, direction: object, label: object, weight: object) -> bool:
    """Say whether the fields of a link are valid at first sight. Other fields can be valid, too.

    This test takes less than half the time of :func:`find_link_problem`, and most links pass it.
    """
    return (
        type(kind) is str
        and type(tag) is str
        and type(direction) is str
        and direction in DIRECTIONS
        and 0 < len(kind) <= MAX_TAG_BYTES
        and 0 < len(tag) <= MAX_TAG_BYTES
        and kind.isascii()
        and tag.isascii()
        and "\0" not in tag
        and "\0" not in kind
        and (label is None or (type(label) is str and label.isascii()))
        and type(weight) is float
        and 0.0 <= weight <= 1.0
    )


def find_link_problem(
    kind: object, tag: object, direction: object, label: object, weight: object
) -> str | None:
    """Return the problem with a link's fields, or None."""
    for name, value in (("kind", kind), ("tag", tag)):
        problem = _find_tag_problem(value)
        if problem:
            return f"{name} {problem}"
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        return "direction must be 'in', 'out' or 'bidir'"
    if label is not None and type(label) is not str:
        return "label must be a string or None"
    if label and not is_unicode(label):
        return "label is not valid Unicode (it has a lone surrogate)"
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        return "weight must be a number from 0 to 1"
    return None


def _find_tag_problem(value: object) -> str | None:
    """Return the problem with a kind or tag, or None."""
    if type(value) is not str or not value:
        return "must be a non-empty string"
    if "\0" in value:
        return "contains a NUL character"
    if value.isascii() and len(value) <= MAX_TAG_BYTES:
        return None
    if not is_unicode(value):
        return "is not valid Unicode (it has a lone surrogate)"
    size = len(value.encode())
    return f"is {size} bytes long; at most {MAX_TAG_BYTES} are allowed" if size > MAX_TAG_BYTES else None


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Link:
    """A typed, directed pointer of one document.

    Equality, order and hash look at kind, tag and direction only.

    Args:
        kind: Namespace of the tag, such as ``"hyperlink"``; 1 byte to 8 KiB of UTF-8.
        tag: Identifier shared by the documents of a link group, such as a URL; 1 byte to 8 KiB of UTF-8.
        direction: ``"out"``: the document points at the tag; ``"in"``: links to the tag lead to the
            document; ``"bidir"``: both.
        label: Text shown for the link, such as its anchor text.
        weight: Weight of the link in ranking, from 0 to 1; default 1.
        data: What else is known of the relation, such as ``{"since": "2021-03-01"}``: a JSON object, kept as
            a copy. Dates, UUIDs and the like are written as in the metadata of documents. A ``link_filter``
            of a search tests it. An empty one is None.

    Raises:
        LinkError: If a field is invalid.
    """

    kind: str
    tag: str
    direction: Direction
    label: str | None = field(default=None, compare=False)
    weight: float = field(default=1.0, compare=False)
    data: Mapping[str, Any] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.data is not None:
            object.__setattr__(self, "data", self._copy_data() or None)
        if has_ordinary_fields(self.kind, self.tag, self.direction, self.label, self.weight):
            return
        problem = find_link_problem(self.kind, self.tag, self.direction, self.label, self.weight)
        if problem:
            raise LinkError(f"invalid link {_quote_link(self)}: {problem}")

    def _copy_data(self) -> dict[str, Any]:
        try:
            return copy_json(self.data)
        except ValueError as error:
            raise LinkError(f"invalid link {_quote_link(self)}: data{error}") from error

    @classmethod
    def incoming(
        cls,
        *,
        kind: str,
        tag: str,
        label: str | None = None,
        weight: float = 1.0,
        data: Mapping[str, Any] | None = None,
    ) -> Link:
        """Make an incoming link: documents that point at this tag lead to the document."""
        return _make_link(cls, kind, tag, "in", label, weight, data)

    @classmethod
    def outgoing(
        cls,
        *,
        kind: str,
        tag: str,
        label: str | None = None,
        weight: float = 1.0,
        data: Mapping[str, Any] | None = None,
    ) -> Link:
        """Make an outgoing link: it leads to the documents that have an incoming link with this tag."""
        return _make_link(cls, kind, tag, "out", label, weight, data)

    @classmethod
    def bidir(
        cls,
        *,
        kind: str,
        tag: str,
        label: str | None = None,
        weight: float = 1.0,
        data: Mapping[str, Any] | None = None,
    ) -> Link:
        """Make a bidirectional link: outgoing and incoming at once."""
        return _make_link(cls, kind, tag, "bidir", label, weight, data)

    @property
    def leads_out(self) -> bool:
        """Whether the link leads from its document to others."""
        return self.direction != "in"

    @property
    def leads_in(self) -> bool:
        """Whether the link leads from other documents to its document."""
        return self.direction != "out"

    def to_dict(self) -> dict[str, Any]:
        """Return the link as a plain JSON dict, without an absent label, a weight of 1 or absent data."""
        out: dict[str, Any] = {"kind": self.kind, "tag": self.tag, "direction": self.direction}
        if self.label is not None:
            out["label"] = self.label
        if self.weight != 1.0:
            out["weight"] = self.weight
        if self.data is not None:
            out["data"] = deepcopy(self.data)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Link:
        """Read a link from what :meth:`to_dict` wrote.

        Raises:
            LinkError: If a field is missing, unknown or invalid.
            ArgumentError: If it is not a dict.
        """
        try:
            if len(data) == 3:
                tag, direction = data["tag"], data["direction"]
                if (
                    type(tag) is str
                    and type(direction) is str
                    and len(tag) <= _MAX_CACHED_TAG >= len(direction)
                ):
                    return _make_plain_link(data["kind"], tag, direction)
            return _parse_quickly(data) or cls(**data)
        except KeyError as error:
            raise LinkError(f"invalid link {_quote_link(data)}: the field {error} is missing") from error
        except (TypeError, AttributeError) as error:
            require(Mapping, "a dict with kind, tag and direction", data=data)
            raise LinkError(f"invalid link {_quote_link(data)}: {error}") from error


@runtime_checkable
class LinkLike(Protocol):
    """The attributes of langchain-community's deprecated ``Link``, which is accepted as a link."""

    @property
    def kind(self) -> str:
        """Namespace of the tag."""
        ...

    @property
    def tag(self) -> str:
        """Identifier shared by the documents of a link group."""
        ...

    @property
    def direction(self) -> str:
        """``"in"``, ``"out"`` or ``"bidir"``."""
        ...


AnyLink = Link | LinkLike | Mapping[str, Any]
"""A link in any accepted form: a Link, a dict, or langchain-community's Link."""


def as_link(value: AnyLink) -> Link:
    """Read one link in any accepted form.

    Raises:
        LinkError: If ``value`` is not a valid link.
    """
    if type(value) is dict:
        return Link.from_dict(value)
    if isinstance(value, Link):
        return value
    if isinstance(value, Mapping):
        return Link.from_dict(value)
    if isinstance(value, LinkLike):
        return Link(kind=value.kind, tag=value.tag, direction=value.direction)  # type: ignore[arg-type]
    raise LinkError(
        f"invalid link {_quote_link(value)}: expected a Link or a dict with kind, tag and direction"
    )


def merge_links(links: Iterable[AnyLink]) -> tuple[Link, ...]:
    """Return links without duplicates, in order of first appearance.

    Equal links merge into one with the highest weight, the first label and the first data. The data of two
    links are not mixed, because nobody stated the mixture. Two statements need two tags or kinds.
    """
    merged: dict[tuple[str, str, str], Link] = {}
    read = Link.from_dict
    for value in links:
        link = value if type(value) is Link else read(value) if type(value) is dict else as_link(value)
        key = (link.kind, link.tag, link.direction)
        first = merged.setdefault(key, link)
        if first is not link:
            merged[key] = _merge_pair(first, link)
    return tuple(merged.values())


def get_links(document: Document) -> tuple[Link, ...]:
    """Return the links that a document carries, duplicates merged.

    Raises:
        LinkError: If a link is invalid. The message names the document and the link.
        ArgumentError: If it is not a document.
    """
    require(Document, "a Document of LangChain", document=document)
    return parse_links(document.metadata, document.id)


def parse_links(metadata: Mapping[str, Any], document_id: str | None = None) -> tuple[Link, ...]:
    """Return the links in a document's metadata, duplicates merged.

    Raises:
        LinkError: If a link is invalid. The message contains ``document_id``.
    """
    stored = metadata.get(LINKS_KEY)
    if not stored:
        return ()
    if not isinstance(stored, Iterable) or isinstance(stored, str | Mapping):
        raise LinkError(
            f"document {document_id!r}: metadata['{LINKS_KEY}'] is a {type(stored).__name__};"
            " expected a list of links"
        )
    try:
        # A set comes in another order in every process.
        return merge_links(sorted(map(as_link, stored)) if isinstance(stored, AbstractSet) else stored)
    except LinkError as error:
        raise LinkError(f"document {document_id!r}: {error}") from error


def add_links(document: Document, *links: AnyLink | Iterable[AnyLink]) -> None:
    """Add links to a document, in place, and merge duplicates.

    Args:
        document: Its ``metadata["links"]`` becomes a list of plain dicts.
        links: Links, or iterables of links.

    Raises:
        LinkError: If a link is invalid. The document is then unchanged.
    """
    try:
        merged = merge_links((*get_links(document), *_flatten_links(links)))
    except LinkError as error:
        raise LinkError(_name_document(document, error)) from error
    document.metadata[LINKS_KEY] = [link.to_dict() for link in merged]


def copy_with_links(document: Document, *links: AnyLink | Iterable[AnyLink]) -> Document:
    """Return a copy of the document with links added, and leave the original unchanged."""
    require(Document, "a Document of LangChain", document=document)
    copy = document.model_copy(update={"metadata": dict(document.metadata)})
    add_links(copy, *links)
    return copy


def strip_links(document: Document) -> Document:
    """Return a copy of the document without links in its metadata, or the document itself if it has none."""
    require(Document, "a Document of LangChain", document=document)
    if LINKS_KEY not in document.metadata:
        return document
    kept = {name: value for name, value in document.metadata.items() if name != LINKS_KEY}
    return document.model_copy(update={"metadata": kept})


def _flatten_links(links: Iterable[Any]) -> Iterable[Any]:
    for item in links:
        if isinstance(item, Link | Mapping | LinkLike):
            yield item
        elif isinstance(item, Iterable) and not isinstance(item, str):
            yield from item
        else:
            yield item


@lru_cache(maxsize=32_768)
def _make_plain_link(kind: str, tag: str, direction: Direction) -> Link:
    """Make a link without label and weight, or return the cached one: popular tags come again and again."""
    return _make_link(Link, kind, tag, direction, None, 1.0, None)


def _make_link(
    cls: type[Link],
    kind: str,
    tag: str,
    direction: Direction,
    label: str | None,
    weight: float,
    data: Mapping[str, Any] | None,
) -> Link:
    """Make a link of these fields, quickly if none of them is unusual."""
    if cls is Link and data is None and has_ordinary_fields(kind, tag, direction, label, weight):
        return _make_unchecked_link(kind, tag, direction, label, weight)
    return cls(kind=kind, tag=tag, direction=direction, label=label, weight=weight, data=data)


def _parse_quickly(data: Mapping[str, Any]) -> Link | None:
    """Return the link of a dict with nothing unusual in it, or None for any other dict, good or bad.

    Reading links is a large part of adding documents. This is five times faster than the
    constructor, which has the last word on everything else.
    """
    get = data.get
    kind, tag, direction = get("kind"), get("tag"), get("direction")
    label, weight = get("label"), get("weight", 1.0)
    fields = 3 + (label is not None) + ("weight" in data)
    if len(data) == fields and has_ordinary_fields(kind, tag, direction, label, weight):
        return _make_unchecked_link(kind, tag, direction, label, weight)
    return None


def _make_unchecked_link(kind: object, tag: object, direction: object, label: object, weight: object) -> Link:
    """Make a link of fields that are known to be valid."""
    link = _new(Link)
    _set_kind(link, kind)
    _set_tag(link, tag)
    _set_direction(link, direction)
    _set_label(link, label)
    _set_weight(link, weight)
    _set_data(link, None)
    return link


def _merge_pair(first: Link, second: Link) -> Link:
    label = first.label if first.label is not None else second.label
    data = first.data if first.data is not None else second.data
    if label is first.label and data is first.data and second.weight <= first.weight:
        return first  # as with most: a page that links to another twice
    weight = max(first.weight, second.weight)
    return replace(first, label=label, data=data, weight=weight)


def _name_document(document: Document, error: LinkError) -> str:
    text = str(error)
    return text if text.startswith("document ") else f"document {document.id!r}: {text}"


def _quote_link(value: object) -> str:
    text = quote_value(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


_new = object.__new__
_set_kind, _set_tag, _set_direction, _set_label, _set_weight, _set_data = (
    getattr(Link, name).__set__ for name in ("kind", "tag", "direction", "label", "weight", "data")
)
