"""Tools with which a model uses a conversation memory: it recalls, remembers, corrects and forgets.

As with the tools of a store, what a model is told of each is its docstring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_core.tools import BaseTool

from linkstore.agents.tool_answers import ToolAnswer
from linkstore.agents.tools import make_tool
from linkstore.context.compiled import frame_parts
from linkstore.core.calls import Operation, call
from linkstore.core.display import format_count
from linkstore.core.text import fold
from linkstore.errors import DocumentError
from linkstore.memory.names import has_words
from linkstore.memory.recall import find_stems
from linkstore.memory.sessions import SessionKey
from linkstore.memory.turns import cut_excerpt

if TYPE_CHECKING:
    from linkstore.memory.conversation import ConversationMemory

NOTHING_KNOWN: Final = "Nothing is known about this."
REMEMBERED: Final = "Remembered."
UNSURE: Final = (
    "Nothing was changed, as it is not sure which fact is wrong. Call correct with the words of one:"
)
MOST_COMPARED: Final = 5
"""How many of the nearest facts are compared with one that is wrong."""
USER: Final = frozenset({"user"})
"""What a model calls the speaker, who says "I"."""


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """What the tools of one session see and may change.

    Args:
        memory: Recalls and stores.
        session: The conversation.
        everywhere: Whether turns of other sessions of the same user and agent are recalled as well.
    """

    memory: ConversationMemory
    session: SessionKey
    everywhere: bool


def make_memory_tools(scope: MemoryScope) -> list[BaseTool]:
    """Make the tools of one session."""
    operations = (recall, remember, correct, forget)
    return [make_tool(operation, scope, {}).to_langchain() for operation in operations]


def recall(scope: MemoryScope, question: str) -> Operation[ToolAnswer]:
    """Recall earlier turns and knowledge.

    Args:
        question: What you want to know, as a whole question.
    """
    _require_words(question)
    memory, everywhere = scope.memory, scope.everywhere
    recalled = yield from call(memory.recall, memory.arecall, scope.session, question, everywhere=everywhere)
    text = ""
    if recalled.reason is None or recalled.recent:
        text = frame_parts([("conversation", recalled.conversation), ("knowledge", recalled.knowledge)])
    return ToolAnswer(text=text or NOTHING_KNOWN, data=recalled)


def remember(scope: MemoryScope, text: str) -> Operation[ToolAnswer]:
    """Remember a fact for later, such as a wish of the user.

    Args:
        text: The fact, as a sentence that makes sense by itself.
    """
    _require_words(text)
    memory = scope.memory
    note = yield from call(memory.remember, memory.aremember, scope.session, text)
    return ToolAnswer(text=REMEMBERED, data=note)


def correct(scope: MemoryScope, wrong: str, right: str) -> Operation[ToolAnswer]:
    """Replace a remembered fact by the present one.

    Nothing changes where it is not sure which fact is meant; the answer lists those that may be.

    Args:
        wrong: The fact that is not so, or no longer, in the words in which it was recalled.
        right: What is so, as a sentence that makes sense by itself.
    """
    _require_words(wrong)
    _require_words(right)
    memory, session = scope.memory, scope.session
    hits = yield from call(memory.search, memory.asearch, session, wrong, k=MOST_COMPARED)
    words = find_stems(wrong) - USER
    near = [turn for turn, _ in hits if words & find_stems(turn.query)]
    meant = [turn for turn in near if words <= find_stems(turn.query)]
    meant = [turn for turn in meant if fold(turn.query) == fold(wrong)] or meant
    facts = list(dict.fromkeys(turn.query for turn in meant or near))
    if len(facts) > 1 or (facts and not meant):
        text = "\n- ".join([UNSURE, *map(cut_excerpt, facts)])
        return ToolAnswer(text=text, data=None)
    text = f"{REMEMBERED} Nothing was known that it corrects."
    if facts:
        text = f"Corrected: {facts[0]!r} is no longer so."
    supersedes = [turn.id for turn in meant]
    note = yield from call(memory.remember, memory.aremember, session, right, supersedes=supersedes)
    return ToolAnswer(text=text, data=note)


def forget(scope: MemoryScope, about: str) -> Operation[ToolAnswer]:
    """Erase all that was said about somebody or something, for good, because the user asks for it.

    Args:
        about: The name of what is to be forgotten, as it was written.
    """
    _require_words(about)
    memory = scope.memory
    gone = yield from call(memory.forget, memory.aforget, scope.session, entity=about)
    counts = f"{format_count(len(gone), 'turn')} and {format_count(len(gone.notes), 'note')}"
    return ToolAnswer(text=f"Forgotten: {counts} about {about!r}.", data=gone)


def _require_words(text: str) -> None:
    if not has_words(text):
        raise DocumentError("the text has no words; call this again with words")
