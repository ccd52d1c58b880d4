"""Tools with which a model uses a conversation memory: it recalls, remembers, corrects and forgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from linkstore.agents.tool_specs import format_argument_error
from linkstore.agents.tools import raise_for_model
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


class RecallInput(BaseModel):
    """Arguments of the tool ``recall``."""

    question: str = Field(min_length=1, description="What you want to know, as a whole question.")


class RememberInput(BaseModel):
    """Arguments of the tool ``remember``."""

    text: str = Field(min_length=1, description="The fact, as a sentence that makes sense by itself.")


class CorrectInput(BaseModel):
    """Arguments of the tool ``correct``."""

    wrong: str = Field(min_length=1, description="What was remembered and is not so, or no longer.")
    right: str = Field(min_length=1, description="What is so, as a sentence that makes sense by itself.")


class ForgetInput(BaseModel):
    """Arguments of the tool ``forget``."""

    about: str = Field(min_length=1, description="The name of what is to be forgotten, as it was written.")


def memory_tools(  # noqa: C901 - four tools of one operation each
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
        if not has_words(question):
            return NO_WORDS, Recall(question=question, resolved=question, reason=NO_WORDS)
        options = {"everywhere": everywhere}
        found: Recall = yield Call(memory.recall, memory.arecall, (key, question), options)
        if found.reason is not None and not found.recent:
            return NOTHING_KNOWN, found
        parts = [("conversation", found.conversation), ("knowledge", found.knowledge)]
        return frame_parts(parts) or NOTHING_KNOWN, found

    def remembering(text: str) -> Operation[tuple[str, Turn | None]]:
        if not has_words(text):
            return NO_WORDS, None
        note: Turn = yield Call(memory.remember, memory.aremember, (key, text))
        return REMEMBERED, note

    def correcting(wrong: str, right: str) -> Operation[tuple[str, Turn | None]]:
        if not (has_words(wrong) and has_words(right)):
            return NO_WORDS, None
        found: list[tuple[Turn, float]] = yield Call(memory.search, memory.asearch, (key, wrong), {"k": 1})
        if not found:
            note: Turn = yield Call(memory.remember, memory.aremember, (key, right))
            return f"{REMEMBERED} Nothing was known that it corrects.", note
        before = found[0][0]
        options = {"supersedes": [before.id]}
        note = yield Call(memory.remember, memory.aremember, (key, right), options)
        return f"Corrected: {before.query!r} is no longer so.", note

    def forgetting(about: str) -> Operation[tuple[str, Forgotten | None]]:
        if not has_words(about):
            return NO_WORDS, None
        gone: Forgotten = yield Call(memory.forget, memory.aforget, (key,), {"entity": about})
        counts = f"{format_count(len(gone), 'turn')} and {format_count(len(gone.notes), 'note')}"
        return f"Forgotten: {counts} about {about!r}.", gone

    return [
        _make_tool("recall", recalling, RecallInput, "Recall what was said earlier, and what is known."),
        _make_tool(
            "remember", remembering, RememberInput, "Remember a fact for later, such as a wish of the user."
        ),
        _make_tool("correct", correcting, CorrectInput, "Replace what was remembered by what is so now."),
        _make_tool(
            "forget",
            forgetting,
            ForgetInput,
            "Erase all that was said about somebody or something, for good, because the user asks for it.",
        ),
    ]


def _make_tool(
    name: str, operation: Callable[..., Operation[Any]], arguments: type[BaseModel], description: str
) -> BaseTool:
    """Make a tool of an operation that returns its answer and an artifact."""

    def call(**given: str) -> Any:
        with raise_for_model():
            return run(operation(**given))

    async def acall(**given: str) -> Any:
        with raise_for_model():
            return await arun(operation(**given))

    return StructuredTool.from_function(
        call,
        coroutine=acall,
        name=name,
        description=description,
        args_schema=arguments,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=format_argument_error,
    )
