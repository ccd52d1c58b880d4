"""Tools with which a model uses a conversation memory: ``recall`` and ``remember``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from linkstore.agents.toolbox import format_argument_error
from linkstore.agents.tools import raise_for_model
from linkstore.context.compiled import frame_parts
from linkstore.memory.recall import Recall
from linkstore.memory.turns import SessionKey, has_words

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


def memory_tools(
    memory: ConversationMemory, session: SessionKey | str, *, everywhere: bool
) -> list[BaseTool]:
    """Make the tools ``recall`` and ``remember`` of one session.

    Args:
        memory: Recalls and stores.
        session: The conversation.
        everywhere: Whether turns of other sessions of the same user and agent are recalled as well.
    """
    key = SessionKey.of(session)

    def recall(question: str) -> tuple[str, Recall]:
        if not has_words(question):
            return NO_WORDS, Recall(question=question, resolved=question, reason=NO_WORDS)
        with raise_for_model():
            return _show_recall(memory.recall(key, question, everywhere=everywhere))

    async def arecall(question: str) -> tuple[str, Recall]:
        if not has_words(question):
            return NO_WORDS, Recall(question=question, resolved=question, reason=NO_WORDS)
        with raise_for_model():
            return _show_recall(await memory.arecall(key, question, everywhere=everywhere))

    def remember(text: str) -> str:
        if not has_words(text):
            return NO_WORDS
        with raise_for_model():
            memory.add(key, text)
        return REMEMBERED

    async def aremember(text: str) -> str:
        if not has_words(text):
            return NO_WORDS
        with raise_for_model():
            await memory.aadd(key, text)
        return REMEMBERED

    return [
        StructuredTool.from_function(
            recall,
            coroutine=arecall,
            name="recall",
            description="Recall what was said earlier, and what is known, about a question.",
            args_schema=RecallInput,
            response_format="content_and_artifact",
            handle_tool_error=True,
            handle_validation_error=format_argument_error,
        ),
        StructuredTool.from_function(
            remember,
            coroutine=aremember,
            name="remember",
            description="Remember a fact for later, such as a wish or a decision of the user.",
            args_schema=RememberInput,
            handle_tool_error=True,
            handle_validation_error=format_argument_error,
        ),
    ]


def _show_recall(recall: Recall) -> tuple[str, Recall]:
    """Return the text of a recall for the model, and the recall itself as the artifact."""
    if recall.reason is not None and not (recall.recent or recall.summaries):
        return NOTHING_KNOWN, recall
    parts = [("conversation", recall.conversation), ("knowledge", recall.knowledge)]
    return frame_parts(parts) or NOTHING_KNOWN, recall
