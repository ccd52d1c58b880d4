"""Chat models by name."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from langchain_core.rate_limiters import InMemoryRateLimiter

from linkstore.arguments import given, require
from linkstore.errors import ExtractionError, MissingExtraError


def chat_model(name: str, *, rate: float | None = None) -> BaseChatModel:
    """Make a chat model of any provider that LangChain knows.

    Args:
        name: Provider and model, such as ``openai:gpt-4.1-mini``.
        rate: The most calls per second; default no limit.

    Raises:
        MissingExtraError: If the extra ``agents`` is not installed.
        ExtractionError: If there is no such provider, its package or key is missing, or ``rate`` is not
            positive.
    """
    require(str, "a string, such as 'openai:gpt-4.1-mini'", name=name)
    require((int, float), "a number", **given(rate=rate))
    if rate is not None and not rate > 0:
        raise ExtractionError(f"the rate of calls must be a number above 0, not {rate!r}")
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise MissingExtraError("a chat model by name", "agents") from error
    limiter = None if rate is None else InMemoryRateLimiter(requests_per_second=rate, max_bucket_size=1)
    try:
        return init_chat_model(name, rate_limiter=limiter)
    except Exception as error:
        unnamed = ":" not in name and "provider" in str(error)
        hint = "name its provider too, as in openai:gpt-4.1-mini; " if unnamed else ""
        raise ExtractionError(f"the chat model {name!r} cannot be used: {hint}{error}") from error
