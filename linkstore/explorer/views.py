"""The views of the page: what it can ask for by name, as plain JSON.

Of a document it shows the whole page, its links in both directions, and who is at their other ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from inspect import Parameter, signature
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import orjson

from linkstore.core.calls import call_plan, run
from linkstore.core.display import get_body, get_title, get_url, make_snippet
from linkstore.core.hit_graph import list_links_among
from linkstore.core.hits import get_page
from linkstore.core.links import LINKS_KEY, get_links
from linkstore.core.processes import Lock
from linkstore.errors import DocumentError, StrategyError
from linkstore.evaluate import examine
from linkstore.explorer.answers import (
    STRATEGIES,
    AskSettings,
    answer,
    count_facets,
    explain_absence,
    find_passage,
    get_name,
    list_depths,
    list_headings,
    split_at_words,
)
from linkstore.explorer.corpus import read_corpus
from linkstore.memory import ConversationMemory, SessionKey
from linkstore.strategies import Words
from linkstore.strategies.neighbours import find_neighbours

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.store import LinkStore
    from linkstore.strategies.neighbours import Neighbour

WRITING_VIEWS: Final = frozenset({"accept"})
LONGEST_QUESTION: Final = 10_000
_MOST_TURNS: Final = 500
_MOST_SUGGESTIONS: Final = 1000


class Views:
    """What the page can ask for, by name: each takes plain JSON and returns plain JSON.

    Args:
        store: The store that is shown.
        memory: The store of conversations that is shown; None for none.
        write: Whether the page may write links that it suggests.
        name: How the store is called.
    """

    def __init__(
        self,
        store: LinkStore,
        memory: LinkStore | None = None,
        *,
        write: bool = False,
        name: str = "linkstore",
    ) -> None:
        self.store, self.name, self.write = store, name, write
        self.memory = None if memory is None else ConversationMemory(memory)
        self._corpus: tuple[object, dict[str, Any]] | None = None
        self._lock = Lock()

    def show(self, name: str, given: Mapping[str, Any]) -> Any:
        """Return what a view shows.

        Raises:
            StrategyError: If there is no such view, or an argument is missing or unknown.
        """
        view = getattr(self, f"_show_{name}", None)
        if view is None or (name in WRITING_VIEWS and not self.write):
            raise StrategyError(f"there is no view {name!r}")
        arguments = signature(view).parameters
        for other in given.keys() - arguments.keys():
            raise StrategyError(f"the view {name!r} takes no {other!r}")
        return view(**{argument: _take(given, arguments[argument]) for argument in arguments})

    def _show_store(self) -> dict[str, Any]:
        survey = self.store.survey()
        return {
            "name": self.name,
            "documents": survey.documents,
            "pages": survey.pages,
            "links": dict(survey.links),
            "strategies": [
                {"name": name, "depths": list_depths(kind), "kinds": "kinds" in kind.__dataclass_fields__}
                for name, kind in STRATEGIES.items()
            ],
            "memory": self.memory is not None,
            "write": self.write,
        }

    def _show_answer(self, question: str, settings: AskSettings) -> dict[str, Any]:
        return answer(self.store, question, settings)

    def _show_facets(self, question: str, settings: AskSettings) -> dict[str, list[dict[str, Any]]]:
        return count_facets(self.store, question, settings)

    def _show_absence(self, question: str, settings: AskSettings, id: str) -> dict[str, Any]:
        return explain_absence(self.store, question, settings, id)

    def _show_document(self, id: str, question: str = "") -> dict[str, Any]:
        return describe_document(self.store, id, question)

    def _show_find(self, text: str) -> list[dict[str, Any]]:
        return find_documents(self.store, text)

    def _show_corpus(self) -> dict[str, Any]:
        """Return the graph of the store, read anew if the store has changed."""
        with self._lock:
            survey = self.store.survey()
            if self._corpus is None or self._corpus[0] != survey:
                self._corpus = survey, run(read_corpus(self.store.backend))
            return self._corpus[1]

    def _show_checkup(self) -> dict[str, Any]:
        return examine(self.store).to_dict()

    def _show_suggestions(self, page: str = "", k: int = 50) -> list[dict[str, Any]]:
        suggestions = self.store.links.suggest(_MOST_SUGGESTIONS)
        own = [link for link in suggestions if page in ("", link.source_page, link.target_page)]
        return [asdict(link) for link in own[:k]]

    def _show_accept(self, source: str, target: str) -> dict[str, Any]:
        suggestions = self.store.links.suggest(_MOST_SUGGESTIONS)
        wanted = [link for link in suggestions if (link.source, link.target) == (source, target)]
        if not wanted:
            raise DocumentError(f"no link from {source!r} to {target!r} is suggested any more")
        return {"changed": self.store.links.accept(wanted)}

    def _get_memory(self) -> ConversationMemory:
        if self.memory is None:
            raise StrategyError("no memory is shown; start with --memory PLACE")
        return self.memory

    def _show_sessions(self) -> list[dict[str, Any]]:
        memory = self._get_memory()
        return [
            {
                "path": key.path,
                "label": ", ".join(part for part in (key.user_id, key.agent_id, key.run_id) if part),
                "turns": len(memory.turns(key)),
            }
            for key in memory.sessions()
        ]

    def _show_turns(self, session: str) -> list[dict[str, Any]]:
        turns = self._get_memory().turns(SessionKey.from_path(session), _MOST_TURNS)
        return [turn.to_dict() for turn in turns]

    def _show_recall(self, session: str, question: str) -> dict[str, Any]:
        recall = self._get_memory().recall(SessionKey.from_path(session), question)
        return {
            "question": recall.question,
            "resolved": recall.resolved,
            "entities": list(recall.entities),
            "focus": list(recall.focus),
            "turns": [
                {"score": score, "turn": turn.to_dict()}
                for score, turn in zip(recall.scores, recall.turns, strict=True)
            ],
            "prompt": recall.prompt,
            "reason": recall.reason,
        }


def _take(given: Mapping[str, Any], argument: Parameter) -> Any:
    """Return the value of an argument: a string, an integer or settings."""
    kind: type = {"int": int, "AskSettings": dict}.get(argument.annotation, str)
    value = given.get(argument.name, {} if kind is dict else argument.default)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise StrategyError(f"{argument.name} must be given, as a {kind.__name__}")
    if isinstance(value, str) and len(value) > LONGEST_QUESTION:
        raise StrategyError(
            f"{argument.name} has {len(value):,} characters; up to {LONGEST_QUESTION:,} are read"
        )
    return AskSettings.of(value) if isinstance(value, dict) else value


_LONGEST_PAGE: Final = 500_000
"""How many characters of a page are shown at most."""
_MOST_LINKS: Final = 1000
"""How many links of a page are listed at most in each direction."""
_PREVIEW: Final = 240
_FOUND: Final = 20


def describe_document(store: LinkStore, id: str, question: str = "") -> dict[str, Any]:
    """Return the whole page of a document with its links, as plain JSON.

    Args:
        store: Where it is.
        id: The id of one of its documents.
        question: Its words are marked in this document.

    Raises:
        DocumentError: If the document does not exist.
    """
    documents = store.get_by_ids([id])
    if not documents:
        raise DocumentError(f"document {id!r} does not exist in the store")
    document, page = documents[0], get_page(documents[0])
    ids = store.pages.ids(None, [page]).get(page, ())
    chunks = store.get_by_ids(list(ids)) if id in ids else documents
    ends = accumulate(len(chunk.page_content) for chunk in chunks)
    shown = [chunk for chunk, end in zip(chunks, ends, strict=True) if end <= _LONGEST_PAGE or chunk.id == id]
    metadata = {name: value for name, value in document.metadata.items() if name != LINKS_KEY}
    return {
        "id": id,
        "page": page,
        "title": get_title(document),
        "name": get_name(document),
        "url": get_url(document),
        "chunks": [
            {
                "id": chunk.id,
                "headings": list_headings(chunk),
                "text": get_body(chunk)[:_LONGEST_PAGE],
                "url": get_url(chunk),
            }
            for chunk in shown
        ],
        "left_out": len(chunks) - len(shown),
        "words": list(dict.fromkeys(split_at_words(get_body(document), question)[1::2])),
        "passage": find_passage(get_body(document), question),
        "metadata": orjson.loads(orjson.dumps(metadata)),
        **_describe_links(store, [document, *(chunk for chunk in shown if chunk.id != id)]),
    }


def _describe_links(store: LinkStore, chunks: Sequence[Document]) -> dict[str, Any]:
    """Return the links of a page in both directions, and the documents at their other ends."""
    around = run(call_plan(store.backend, find_neighbours(*(chunk.id or "" for chunk in chunks))))
    if around is None:
        raise DocumentError(f"document {chunks[0].id!r} does not exist in the store any more")
    incoming = [near for near in around.incoming if near.link.direction != "bidir"]
    others = dict.fromkeys(id for near in (*around.outgoing, *incoming) for id in near.ids)
    read = {document.id: document for document in store.get_by_ids(list(others)[: 2 * _MOST_LINKS])}
    at = {(link.kind, link.tag): chunk.id for chunk in chunks for link in get_links(chunk)}
    label = {
        (id, link.kind, link.tag): link.label
        for id, document in read.items()
        for link in get_links(document)
        if link.leads_out
    }
    own = {(near.link.kind, near.link.tag) for near in around.incoming}
    return {
        "outgoing": [
            {**_describe_link(near, id), "label": near.link.label, "at": at[near.link.kind, near.link.tag]}
            for near in around.outgoing
            for id in near.ids
            if id in read
        ][:_MOST_LINKS],
        "incoming": [
            {**_describe_link(near, id), "label": label.get((id, near.link.kind, near.link.tag))}
            for near in incoming
            for id in near.ids
            if id in read
        ][:_MOST_LINKS],
        "nowhere": [
            {"kind": near.link.kind, "tag": near.link.tag, "label": near.link.label}
            for near in around.outgoing
            if not near.ids and not near.more and (near.link.kind, near.link.tag) not in own
        ],
        "hubs": [near.link.label or near.link.tag for near in (*around.outgoing, *incoming) if near.more],
        "others": {
            id: {
                "title": get_title(document),
                "name": get_name(document),
                "page": get_page(document),
                "text": make_snippet(get_body(document), "", _PREVIEW),
            }
            for id, document in read.items()
        },
        "between": [[edge.source, edge.target] for edge in list_links_among(read.values())],
    }


def _describe_link(near: Neighbour, id: str) -> dict[str, Any]:
    return {"kind": near.link.kind, "tag": near.link.tag, "id": id}


def find_documents(store: LinkStore, text: str) -> list[dict[str, Any]]:
    """Return up to 20 documents for what somebody types: an id, a part of a page's name, or words."""
    typed = text.strip()
    if not typed:
        return []
    documents = {id.id: id for id in store.get_by_ids([typed])}
    folded = typed.casefold()
    pages = sorted(name for name in store.pages.digests() if folded in name.casefold())[:_FOUND]
    first = [ids[0] for ids in store.pages.ids(None, pages).values() if ids]
    documents |= {id.id: id for id in store.get_by_ids(first)}
    for hit in store.search(typed, strategy=Words(k=_FOUND)):
        documents.setdefault(hit.document.id, hit.document)
    return [
        {"id": id, "title": get_name(document), "page": get_page(document)}
        for id, document in list(documents.items())[:_FOUND]
    ]
