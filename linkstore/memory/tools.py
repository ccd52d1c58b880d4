"""Tools with which a model uses a conversation memory: ``recall`` and ``remember``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from linkstore.agents.toolbox import format_argument_error
from linkstore.agents.tools import raise_for_model
from linkstore.context.compiled import frame_parts
from linkstore.core.calls import Call, arun, run
from linkstore.core.plans import Operation
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

    def recalling(question: str) -> Operation[tuple[str, Recall]]:
        if not has_words(question):
            return NO_WORDS, Recall(question=question, resolved=question, reason=NO_WORDS)
        with raise_for_model():
            found: Recall = yield Call(
                memory.recall, memory.arecall, (key, question), {"everywhere": everywhere}
            )
        if found.reason is not None and not (found.recent or found.summaries):
            return NOTHING_KNOWN, found
        parts = [("conversation", found.conversation), ("knowledge", found.knowledge)]
        return frame_parts(parts) or NOTHING_KNOWN, found

    def remembering(text: str) -> Operation[str]:
        if not has_words(text):
            return NO_WORDS
        with raise_for_model():
            yield Call(memory.add, memory.aadd, (key, text))
        return REMEMBERED

    def recall(question: str) -> tuple[str, Recall]:
        return run(recalling(question))

    async def arecall(question: str) -> tuple[str, Recall]:
        return await arun(recalling(question))

    def remember(text: str) -> str:
        return run(remembering(text))

    async def aremember(text: str) -> str:
        return await arun(remembering(text))

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
