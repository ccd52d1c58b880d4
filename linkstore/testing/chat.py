"""A chat model that follows a script, so that agents and chains can be tested without a model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr, SkipValidation

from linkstore.errors import ScriptError
from linkstore.testing.script import ModelCall, Said, Script, chunks_of, message_of


class ScriptedChatModel(BaseChatModel):
    """A chat model that follows a script of answers, and records the calls that it gets.

    ::

        from langchain_core.messages.tool import tool_call

        model = ScriptedChatModel(
            script=[
                tool_call(name="search", args={"question": "Who built it?"}, id=None),
                "Nobody knows.",
            ]
        )
        agent = create_agent(model, tools)

    An answer of a script is one of these:

    - a text, or an ``AIMessage``;
    - what langchain-core's ``tool_call()`` and ``invalid_tool_call()`` return, or a list of such calls, for
      several calls in one message; ``invalid_tool_call(args="{not json")`` is malformed structured output;
    - structured output: an object of the Pydantic class that is asked for, or a dict of its fields;
    - an exception, or a class of exceptions, which is raised;
    - a function of the messages, which returns one of the above. It runs where the model is called, in the
      event loop for async calls.

    A function in place of the list answers every call.

    ``bind_tools``, ``with_structured_output``, and the response formats of LangChain's ``create_agent`` work
    as with models that call tools; with ``profile={"structured_output": True}`` structured output is JSON
    text. Streams have a chunk for each word and for every few characters of arguments. Calls from several
    threads take the answers in the order in which they come. Copies of a model share script and record.
    LangChain's global cache is not used unless ``cache`` says so.

    Attributes:
        script: The answers, in order; or a function of the messages.
        model: The name of the model in traces.

    Raises:
        ScriptError: From a call, if the script has no more answers, or the next one does not fit.
    """

    script: SkipValidation[Script]
    model: str = "scripted"
    cache: BaseCache | bool | None = Field(default=False, exclude=True)
    _calls: list[ModelCall] = PrivateAttr(default_factory=list)
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    def model_post_init(self, context: Any, /) -> None:
        """Refuse a ``script`` that is neither a list of answers nor a function."""
        super().model_post_init(context)
        if isinstance(self.script, str) or not (callable(self.script) or isinstance(self.script, Sequence)):
            raise ScriptError(
                f"a script is a list of answers, or a function of the messages, not {self.script!r}"
            )

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """The calls so far, in order, including calls that ended with an error."""
        with self._lock:
            return tuple(self._calls)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | dict[str, Any] | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return a model with these tools, and with the same script and record.

        Args:
            tools: Tools, functions, Pydantic classes, or dicts in OpenAI's form.
            tool_choice: The tool that must be used; recorded, and not enforced.
            kwargs: Recorded.
        """
        bound = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=bound, tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        message = self._answer(messages, stop, kwargs)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, None, **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for piece in chunks_of(self._answer(messages, stop, kwargs)):
            chunk = ChatGenerationChunk(message=piece)
            if run_manager:
                run_manager.on_llm_new_token(str(piece.text), chunk=chunk)
            yield chunk

    def _answer(
        self, messages: Sequence[BaseMessage], stop: list[str] | None, options: dict[str, Any]
    ) -> AIMessage:
        """Record a call, and return the next answer of the script as a message."""
        rest = {name: value for name, value in options.items() if name not in {"tools", "tool_choice"}}
        call = ModelCall(
            messages=tuple(messages),
            tools=tuple(options.get("tools") or ()),
            tool_choice=options.get("tool_choice"),
            options=rest | ({"stop": stop} if stop else {}),
        )
        with self._lock:
            self._calls.append(call)
            number = len(self._calls)
        return message_of(self._said(call, number), call, number)

    def _said(self, call: ModelCall, number: int) -> Said:
        """Return the answer to the call of this number, counted from 1."""
        if callable(self.script):
            said: Any = self.script
        elif number <= len(self.script):
            said = self.script[number - 1]
        else:
            last = str(call.messages[-1].text)[:200] if call.messages else ""
            raise ScriptError(
                f"the script has {len(self.script)} answers, and this is call {number};"
                f" its last message is {last!r}"
            )
        if callable(said) and not isinstance(said, type):
            said = said(call.messages)
        if isinstance(said, BaseException) or (isinstance(said, type) and issubclass(said, BaseException)):
            raise said
        return said  # type: ignore[no-any-return]
