"""The views of the page: what it can ask for by name, as plain JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from linkstore.core.calls import run
from linkstore.core.processes import Lock
from linkstore.errors import DocumentError, StrategyError
from linkstore.evaluate import examine
from linkstore.explorer.answers import STRATEGIES, AskSettings, answer, explain_absence, list_depths
from linkstore.explorer.corpus import read_corpus
from linkstore.explorer.documents import describe_document, find_documents
from linkstore.memory import ConversationMemory, SessionKey

if TYPE_CHECKING:
    from linkstore.store import LinkStore

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
    found = views.store.suggest_links(_MOST_SUGGESTIONS)
    own = [one for one in found if page in ("", one.source_page, one.target_page)]
    return [asdict(one) for one in own[: _take(given, "k", int, 50)]]


def _accept_suggestion(views: Views, given: Mapping[str, Any]) -> dict[str, Any]:
    wanted = _take(given, "source", str), _take(given, "target", str)
    found = [
        one for one in views.store.suggest_links(_MOST_SUGGESTIONS) if (one.source, one.target) == wanted
    ]
    if not found:
        raise DocumentError(f"no link from {wanted[0]!r} to {wanted[1]!r} is suggested any more")
    return {"changed": views.store.add_suggested_links(found)}


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
    found = _get_memory(views).recall(session, _take(given, "question", str))
    return {
        "question": found.question,
        "resolved": found.resolved,
        "entities": list(found.entities),
        "turns": [
            {"score": score, "turn": turn.to_dict()}
            for score, turn in zip(found.scores, found.turns, strict=True)
        ],
        "prompt": found.prompt,
        "reason": found.reason,
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
