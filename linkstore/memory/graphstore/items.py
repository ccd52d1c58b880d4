"""Items of a LangGraph store as documents: the item itself, and one document for each further text.

The first text that is searched by meaning is embedded with the item, so that most items are one document.
A further text names its item and the writing that it belongs to; one that an interrupted write left behind
belongs to no item.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from langchain_core.documents import Document
from langgraph.store.base import Item, PutOp, SearchItem, get_text_at_path, tokenize_path

from linkstore.arguments import require
from linkstore.links import LINKS_KEY
from linkstore.memory.graphstore.order import age_weights
from linkstore.memory.graphstore.places import ITEM_OF, TEXT_OF, Namespace, item_id, links_of, part_id
from linkstore.metadata import stored_metadata
from linkstore.plans import Stored

WHOLE = "$"
"""The path of a whole value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An item as it is stored.

    Args:
        id: Of its document.
        namespace: Where it is.
        key: Its name there.
        value: What was put.
        created: When it was put first.
        updated: When it was put last.
        ttl: Minutes that it lives after it was put or read; None: for ever.
        writing: Names the write that stored it.
        parts: How many documents of further texts it has.
    """

    id: str
    namespace: Namespace
    key: str
    value: dict[str, Any]
    created: datetime
    updated: datetime
    ttl: float | None
    writing: str
    parts: int

    @classmethod
    def of(cls, stored: Stored) -> Self:
        """The item in a document."""
        fields = stored.metadata
        return cls(
            id=stored.id,
            namespace=tuple(fields["namespace"]),
            key=fields["key"],
            value=fields["value"],
            created=datetime.fromisoformat(fields["created_at"]),
            updated=datetime.fromisoformat(fields["updated_at"]),
            ttl=fields["ttl"],
            writing=fields["writing"],
            parts=fields["parts"],
        )

    @property
    def document_ids(self) -> list[str]:
        """The ids of all its documents."""
        return [self.id, *(part_id(self.namespace, self.key, number) for number in range(1, self.parts + 1))]

    def expires(self, accessed: datetime | None) -> datetime | None:
        """When it expires, if it was last read at a time; None: never, or after the end of the calendar."""
        if self.ttl is None:
            return None
        used = self.updated if accessed is None else max(self.updated, accessed)
        try:
            return used + timedelta(minutes=self.ttl)
        except OverflowError:
            return None

    def item(self) -> Item:
        """As LangGraph gives it."""
        return Item(
            value=self.value,
            key=self.key,
            namespace=self.namespace,
            created_at=self.created,
            updated_at=self.updated,
        )

    def found(self, score: float | None) -> SearchItem:
        """As LangGraph gives it in the answer to a search."""
        return SearchItem(self.namespace, self.key, self.value, self.created, self.updated, score)


def documents_of(op: PutOp, fields: Sequence[str], created: datetime, updated: datetime) -> list[Document]:
    """The documents of an item that is put, its own first.

    Args:
        op: With a value.
        fields: Paths of the texts to search by meaning, unless ``op`` says otherwise.
        created: When the item was put first.
        updated: When it is put.

    Raises:
        DocumentError: If the value is not JSON.
    """
    id = item_id(op.namespace, op.key)
    require(Mapping, "a dict", value=op.value or {})
    value = dict(stored_metadata(op.value or {}, id))
    texts = indexed_texts(value, fields, op.index)
    writing = uuid.uuid4().hex
    metadata = {
        "namespace": list(op.namespace),
        "key": op.key,
        "value": value,
        "created_at": created.isoformat(),
        "updated_at": updated.isoformat(),
        "ttl": op.ttl,
        "writing": writing,
        "parts": max(0, len(texts) - 1),
    }
    tick, within = age_weights(created)
    weights = {ITEM_OF: tick, TEXT_OF: within} if texts else {ITEM_OF: tick}
    links = links_of(op.namespace, weights=weights, expires=op.ttl is not None)
    documents = [_document(id, texts[0] if texts else f"item {id}", metadata, links)]
    links = links_of(op.namespace, weights={TEXT_OF: 1.0}, expires=False)
    for number, text in enumerate(texts[1:], 1):
        of = {"item": id, "writing": writing}
        documents.append(_document(part_id(op.namespace, op.key, number), text, of, links))
    return documents


def indexed_texts(value: Mapping[str, Any], fields: Sequence[str], asked: Any) -> list[str]:
    """The texts of a value that are searched by meaning, each once; texts without a word have no meaning.

    Args:
        value: Of an item.
        fields: Paths to the texts, as LangGraph has them; ``"$"`` is the whole value as JSON.
        asked: What the caller said: False for none, a list of other paths, or None.
    """
    if asked is False:
        return []
    paths = fields if asked is None else asked
    texts = [text for path in paths for text in _texts_at(dict(value), path)]
    return [text for text in dict.fromkeys(texts) if any(map(str.isalnum, text))]


def _texts_at(value: dict[str, Any], path: str) -> list[str]:
    return get_text_at_path(value, path if path == WHOLE else tokenize_path(path))


def _document(id: str, text: str, metadata: dict[str, Any], links: Sequence[Any]) -> Document:
    return Document(
        id=id,
        page_content=text,
        metadata={**metadata, LINKS_KEY: [link.to_dict() for link in links]},
    )
