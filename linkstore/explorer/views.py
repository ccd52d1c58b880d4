"""The views of the page: what it can ask for by name, as plain JSON.

Of a document it shows its text, its links in both directions, and what is around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import orjson

from linkstore.core.calls import run
from linkstore.core.display import get_body, get_title, get_url
from linkstore.core.hit_graph import name_document
from linkstore.core.hits import get_page
from linkstore.core.links import LINKS_KEY
from linkstore.core.processes import Lock
from linkstore.errors import DocumentError, StrategyError
from linkstore.evaluate import examine
from linkstore.explorer.answers import STRATEGIES, AskSettings, answer, explain_absence, list_depths
from linkstore.explorer.corpus import read_corpus
from linkstore.memory import ConversationMemory, SessionKey
from linkstore.strategies import Words

if TYPE_CHECKING:
    from linkstore.store import LinkStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_core.documents import Document

    from linkstore.store import LinkStore
    from linkstore.strategies.neighbours import Neighbour

View = Callable[["Views", Mapping[str, Any]], Any]
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
        view = VIEWS.get(name)
        if view is None or (name in WRITING_VIEWS and not self.write):
            raise StrategyError(f"there is no view {name!r}")
        return view(self, given)

    def corpus(self) -> dict[str, Any]:
        """Return the graph of the store, read anew if the store has changed."""
        with self._lock:
            survey = self.store.survey()
            if self._corpus is None or self._corpus[0] != survey:
                self._corpus = survey, run(read_corpus(self.store.backend))
            return self._corpus[1]


def _take(given: Mapping[str, Any], name: str, kind: type, default: Any = None) -> Any:
    value = given.get(name, default)
    if value is None or not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise StrategyError(f"{name} must be given, as a {kind.__name__}")
    if isinstance(value, str) and len(value) > LONGEST_QUESTION:
        raise StrategyError(f"{name} has {len(value):,} characters; up to {LONGEST_QUESTION:,} are read")
    return value


def _show_store(views: Views, _: Mapping[str, Any]) -> dict[str, Any]:
    survey = views.store.survey()
    return {
        "name": views.name,
        "documents": survey.documents,
        "pages": survey.pages,
        "links": dict(survey.links),
        "strategies": [
            {"name": name, "depths": list_depths(kind), "kinds": "kinds" in kind.__dataclass_fields__}
            for name, kind in STRATEGIES.items()
        ],
        "memory": views.memory is not None,
        "write": views.write,
    }


def _show_answer(views: Views, given: Mapping[str, Any]) -> dict[str, Any]:
    settings = AskSettings.of(_take(given, "settings", dict, {}))
    return answer(views.store, _take(given, "question", str), settings)


def _show_absence(views: Views, given: Mapping[str, Any]) -> dict[str, Any]:
    settings = AskSettings.of(_take(given, "settings", dict, {}))
    question, id = _take(given, "question", str), _take(given, "id", str)
    return explain_absence(views.store, question, settings, id)


def _show_document(views: Views, given: Mapping[str, Any]) -> dict[str, Any]:
    return describe_document(views.store, _take(given, "id", str), _take(given, "hops", int, 1))


def _show_found(views: Views, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    return find_documents(views.store, _take(given, "text", str))


def _show_corpus(views: Views, _: Mapping[str, Any]) -> dict[str, Any]:
    return views.corpus()


def _show_checkup(views: Views, _: Mapping[str, Any]) -> dict[str, Any]:
    return examine(views.store).to_dict()


def _show_suggestions(views: Views, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    page = _take(given, "page", str, "")
    suggestions = views.store.links.suggest(_MOST_SUGGESTIONS)
    own = [
        suggestion
        for suggestion in suggestions
        if page in ("", suggestion.source_page, suggestion.target_page)
    ]
    return [asdict(suggestion) for suggestion in own[: _take(given, "k", int, 50)]]


def _accept_suggestion(views: Views, given: Mapping[str, Any]) -> dict[str, Any]:
    wanted = _take(given, "source", str), _take(given, "target", str)
    suggestions = [
        link for link in views.store.links.suggest(_MOST_SUGGESTIONS) if (link.source, link.target) == wanted
    ]
    if not suggestions:
        raise DocumentError(f"no link from {wanted[0]!r} to {wanted[1]!r} is suggested any more")
    return {"changed": views.store.links.accept(suggestions)}


def _get_memory(views: Views) -> ConversationMemory:
    if views.memory is None:
        raise StrategyError("no memory is shown; start with --memory PLACE")
    return views.memory


def _show_sessions(views: Views, _: Mapping[str, Any]) -> list[dict[str, Any]]:
    memory = _get_memory(views)
    return [
        {
            "path": key.path,
            "label": ", ".join(part for part in (key.user_id, key.agent_id, key.run_id) if part),
            "turns": len(memory.turns(key)),
        }
        for key in memory.sessions()
    ]


def _show_turns(views: Views, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    session = SessionKey.from_path(_take(given, "session", str))
    return [turn.to_dict() for turn in _get_memory(views).turns(session, _MOST_TURNS)]


def _show_recall(views: Views, given: Mapping[str, Any]) -> dict[str, Any]:
    session = SessionKey.from_path(_take(given, "session", str))
    recall = _get_memory(views).recall(session, _take(given, "question", str))
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


VIEWS: Final[Mapping[str, View]] = {
    "store": _show_store,
    "answer": _show_answer,
    "absence": _show_absence,
    "document": _show_document,
    "find": _show_found,
    "corpus": _show_corpus,
    "checkup": _show_checkup,
    "suggestions": _show_suggestions,
    "accept": _accept_suggestion,
    "sessions": _show_sessions,
    "turns": _show_turns,
    "recall": _show_recall,
}
WRITING_VIEWS: Final = frozenset({"accept"})


MOST_HOPS: Final = 3
MOST_AROUND: Final = 150
"""How many documents around one are drawn at most."""
_MOST_LISTED: Final = 50
"""How many documents are listed of one link at most."""
_LONGEST_TEXT: Final = 50_000
_FOUND: Final = 20


def describe_document(store: LinkStore, id: str, hops: int = 1) -> dict[str, Any]:
    """Return a document with its links, and the graph of what is up to ``hops`` links away, as plain JSON.

    Args:
        store: Where it is.
        id: Its id.
        hops: How far the graph reaches, from 1 to 3. It has at most 150 documents, the nearest first.

    Raises:
        DocumentError: If the document does not exist.
        StrategyError: If ``hops`` is out of range.
    """
    if isinstance(hops, bool) or not isinstance(hops, int) or not 1 <= hops <= MOST_HOPS:
        raise StrategyError(f"hops must be a number from 1 to {MOST_HOPS}, not {hops!r}")
    documents = store.get_by_ids([id])
    if not documents:
        raise DocumentError(f"document {id!r} does not exist in the store")
    document = documents[0]
    around = store.links.neighbours(id)
    metadata = {name: value for name, value in document.metadata.items() if name != LINKS_KEY}
    text = get_body(document)
    graph = _describe_surroundings(store, id, hops)
    titles = {node["id"]: node["title"] for node in graph["nodes"]}
    return {
        "id": id,
        "title": get_title(document) or id,
        "name": name_document(document.metadata, text) or id,
        "page": get_page(document),
        "url": get_url(document),
        "text": text[:_LONGEST_TEXT],
        "cut": max(0, len(text) - _LONGEST_TEXT),
        "metadata": orjson.loads(orjson.dumps(metadata)),
        "outgoing": _list_links(around.outgoing, titles),
        "incoming": _list_links(around.incoming, titles),
        "graph": graph,
    }


def _list_links(neighbours: Iterable[Neighbour], titles: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "kind": neighbour.link.kind,
            "tag": neighbour.link.tag,
            "label": neighbour.link.label,
            "more": neighbour.more,
            "documents": [{"id": id, "title": titles.get(id, id)} for id in neighbour.ids[:_MOST_LISTED]],
            "count": len(neighbour.ids),
        }
        for neighbour in neighbours
    ]


def _describe_surroundings(store: LinkStore, id: str, hops: int) -> dict[str, Any]:
    """Return the documents around one, nearest first, and the links by which they were found."""
    depth, edges = {id: 0}, dict[tuple[str, str, str], str | None]()
    frontier, cut = [id], False
    for distance in range(1, hops + 1):
        reached: list[str] = []
        for document_id in frontier:
            neighbours = store.links.neighbours(document_id)
            for neighbour, away in [
                *((neighbour, True) for neighbour in neighbours.outgoing),
                *((neighbour, False) for neighbour in neighbours.incoming),
            ]:
                for other in neighbour.ids if not neighbour.more else ():
                    if other not in depth:
                        if len(depth) >= MOST_AROUND:
                            cut = True
                            continue
                        depth[other] = distance
                        reached.append(other)
                    ends = (document_id, other) if away else (other, document_id)
                    edges.setdefault((*ends, neighbour.link.kind), neighbour.link.label)
        frontier = reached
    stored = {document.id: document for document in store.get_by_ids(list(depth))}
    nodes = [
        {
            "id": node,
            "title": _name(stored[node]) if node in stored else node,
            "url": get_url(stored[node]) if node in stored else None,
            "role": "hit" if away else "start",
            "depth": away,
            "score": None,
        }
        for node, away in depth.items()
    ]
    links = [
        {"source": source, "target": target, "kind": kind, "label": label, "followed": True}
        for (source, target, kind), label in edges.items()
    ]
    return {"nodes": nodes, "edges": links, "cut": cut}


def _name(document: Document) -> str:
    return name_document(document.metadata, get_body(document)) or document.id or ""


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
        {"id": id, "title": _name(document), "page": get_page(document)}
        for id, document in list(documents.items())[:_FOUND]
    ]
