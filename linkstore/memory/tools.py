"""Tools with which a model uses a conversation memory: it recalls, remembers, corrects and forgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field, create_model

from linkstore.agents.tools import format_argument_error, raise_for_model
from linkstore.context.compiled import frame_parts
from linkstore.core.calls import Call, arun, run
from linkstore.core.display import format_count
from linkstore.core.plans import Operation
from linkstore.memory.forgetting import Forgotten
from linkstore.memory.recall import Recall
from linkstore.memory.sessions import SessionKey
from linkstore.memory.turns import Turn, has_words

if TYPE_CHECKING:
    from linkstore.memory.conversation import ConversationMemory

NOTHING_KNOWN = "Nothing is known about this."
REMEMBERED = "Remembered."
NO_WORDS = "Error: the text has no words; call this again with words."


def memory_tools(
    memory: ConversationMemory, session: SessionKey | str, *, everywhere: bool
) -> list[BaseTool]:
    """Make the tools of one session.

    Args:
        memory: Recalls and stores.
        session: The conversation.
        everywhere: Whether turns of other sessions of the same user and agent are recalled as well.
    """
    key = SessionKey.of(session)

    def recalling(question: str) -> Operation[tuple[str, Recall]]:
        options = {"everywhere": everywhere}
        found: Recall = yield Call(memory.recall, memory.arecall, (key, question), options)
        if found.reason is not None and not found.recent:
            return NOTHING_KNOWN, found
        parts = [("conversation", found.conversation), ("knowledge", found.knowledge)]
        return frame_parts(parts) or NOTHING_KNOWN, found

    def remembering(text: str) -> Operation[tuple[str, Turn]]:
        note: Turn = yield Call(memory.remember, memory.aremember, (key, text))
        return REMEMBERED, note

    def correcting(wrong: str, right: str) -> Operation[tuple[str, Turn]]:
        found: list[tuple[Turn, float]] = yield Call(memory.search, memory.asearch, (key, wrong), {"k": 1})
        if not found:
            note: Turn = yield Call(memory.remember, memory.aremember, (key, right))
            return f"{REMEMBERED} Nothing was known that it corrects.", note
        before = found[0][0]
        options = {"supersedes": [before.id]}
        note = yield Call(memory.remember, memory.aremember, (key, right), options)
        return f"Corrected: {before.query!r} is no longer so.", note

    def forgetting(about: str) -> Operation[tuple[str, Forgotten]]:
        gone: Forgotten = yield Call(memory.forget, memory.aforget, (key,), {"entity": about})
        counts = f"{format_count(len(gone), 'turn')} and {format_count(len(gone.notes), 'note')}"
        return f"Forgotten: {counts} about {about!r}.", gone

    sentence = "a sentence that makes sense by itself."
    return [
        _make_tool(
            recalling,
            "recall",
            "Recall what was said earlier, and what is known.",
            question="What you want to know, as a whole question.",
        ),
        _make_tool(
            remembering,
            "remember",
            "Remember a fact for later, such as a wish of the user.",
            text=f"The fact, as {sentence}",
        ),
        _make_tool(
            correcting,
            "correct",
            "Replace what was remembered by what is so now.",
            wrong="What was remembered and is not so, or no longer.",
            right=f"What is so, as {sentence}",
        ),
        _make_tool(
            forgetting,
            "forget",
            "Erase all that was said about somebody or something, for good, because the user asks for it.",
            about="The name of what is to be forgotten, as it was written.",
        ),
    ]


def _make_tool(
    operation: Callable[..., Operation[Any]], name: str, description: str, **arguments: str
) -> BaseTool:
    """Make a tool of an operation that returns its answer and an artifact; arguments are described texts."""

    def answering(given: dict[str, str]) -> Operation[tuple[str, Any]]:
        if not all(map(has_words, given.values())):
            return NO_WORDS, None
        return (yield from operation(**given))  # type: ignore[no-any-return]

    def call(**given: str) -> Any:
        with raise_for_model():
            return run(answering(given))

    async def acall(**given: str) -> Any:
        with raise_for_model():
            return await arun(answering(given))

    fields: dict[str, Any] = {
        one: (str, Field(min_length=1, description=meant)) for one, meant in arguments.items()
    }
    return StructuredTool.from_function(
        call,
        coroutine=acall,
        name=name,
        description=description,
        args_schema=create_model(name, **fields),
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=format_argument_error,
    )
