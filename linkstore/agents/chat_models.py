"""Chat models by name, with the settings that local servers need, and how long their prompts may be."""

from __future__ import annotations

import os
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.rate_limiters import InMemoryRateLimiter

from linkstore.core.arguments import omit_none, require, require_at_least, require_positive, require_within
from linkstore.errors import ExtractionError, MissingExtraError

Method = Literal["json_schema", "function_calling", "json_mode", "words"]
"""How a model is asked for structured output."""
WORDS: Final = "words"
"""The method that forces nothing upon a model."""
METHOD_KEY: Final = "linkstore:structured_output"
"""The key in the metadata of a model for its method."""
DEFAULT_CONTEXT: Final = 8_192
"""Tokens of the context of a model of which nothing is known."""
OLLAMA_CONTEXT: Final = 4_096
"""Ollama's default, past which it cuts prompts without a word."""
_LOCAL_TOKENS: Final = 2_048
"""Tokens of an output of a local server, which would not end a loop by itself."""
_LOCAL_PROVIDERS: Final = frozenset({"ollama", "llamacpp", "huggingface"})
_URLS: Final = ("openai_api_base", "base_url", "azure_endpoint", "anthropic_api_url", "endpoint_url")
_SERVICES: Final = ("openai.com", "openai.azure.com")


def chat_model(
    name: str,
    *,
    rate: float | None = None,
    base_url: str | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    timeout: float | None = None,
    context: int | None = None,
    method: Method | None = None,
) -> BaseChatModel:
    """Make a chat model of any provider that LangChain knows.

    Args:
        name: Provider and model, such as ``openai:gpt-4.1-mini``; ``openai:NAME`` with ``base_url`` for a
            local server of OpenAI's interface, such as llama.cpp, vLLM or LM Studio.
        rate: The most calls per second; default no limit.
        base_url: Where its server listens, such as ``http://127.0.0.1:8080/v1``.
        temperature: Of the output; default 0 for a local server, else the provider's.
        max_tokens: The most tokens of an output; default 2,048 for a local server, else the provider's.
        timeout: The most seconds of a call; default the provider's.
        context: Tokens that prompt and output may have together; default what LangChain knows of the model,
            4,096 for Ollama, else 8,192.
        method: How the model is asked for structured output; ``words``: by the prompt alone. Default the
            provider's, and ``words`` once its server has refused that.

    Raises:
        MissingExtraError: If the extra ``agents`` is not installed.
        ExtractionError: If there is no such provider, or its package or key is missing.
        StrategyError: If a number is out of range.
    """
    require(str, "a string, such as 'openai:gpt-4.1-mini'", name=name)
    require(str, "a string", **omit_none(base_url=base_url, method=method))
    require((int, float), "a number", **omit_none(rate=rate, timeout=timeout))
    require_at_least(1, **omit_none(max_tokens=max_tokens, context=context))
    require_within(0, 2, **omit_none(temperature=temperature))
    require_positive(**omit_none(rate=rate, timeout=timeout))
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise MissingExtraError("a chat model by name", "agents") from error
    provider = name.partition(":")[0] if ":" in name else ""
    own = omit_none(base_url=base_url, temperature=temperature, max_tokens=max_tokens, timeout=timeout)
    options: dict[str, Any] = _choose_local_options(provider, base_url) | own
    if provider == "ollama":
        options |= {"num_predict": options.pop("max_tokens"), "num_ctx": context or OLLAMA_CONTEXT}
        options |= {"client_kwargs": {"timeout": options.pop("timeout")}} if timeout else {}
    if rate is not None:
        options["rate_limiter"] = InMemoryRateLimiter(requests_per_second=rate, max_bucket_size=1)
    try:
        model: BaseChatModel = init_chat_model(name, **options)
    except Exception as error:
        message = " ".join(f"{error}".split())
        if not provider and "provider" in message:
            message = f"name its provider too, as in openai:{name}; {message}"
        elif isinstance(error, AttributeError):  # it looks into langchain-community for an older class
            message = f"pip install langchain-{provider}; {message}"
        raise ExtractionError(f"the chat model {name!r} cannot be used: {message}") from error
    if context is not None:
        profile: Any = {**(model.profile or {}), "max_input_tokens": context}
        model.profile = profile
    if method is not None:
        model.metadata = {**(model.metadata or {}), METHOD_KEY: method}
    return model


def _choose_local_options(provider: str, base_url: str | None) -> dict[str, Any]:
    """Return what suits a server on this machine; services of providers choose for themselves."""
    url = base_url or (os.environ.get("OPENAI_BASE_URL") if provider == "openai" else None)
    service = any((urlsplit(url).hostname or "").endswith(host) for host in _SERVICES) if url else True
    if provider not in _LOCAL_PROVIDERS and service:
        return {}
    options: dict[str, Any] = {"temperature": 0.0, "max_tokens": _LOCAL_TOKENS}
    if provider != "openai":
        return options
    key = {} if os.environ.get("OPENAI_API_KEY") else {"api_key": "none"}  # a local server takes any
    return options | {"max_retries": 0} | key


def get_base_url(model: BaseChatModel) -> str:
    """Return where the server of a model listens, or an empty string where the model does not tell."""
    client = getattr(model, "root_client", None)
    urls = [getattr(client, "base_url", None), *(getattr(model, name, None) for name in _URLS)]
    return next((str(url) for url in urls if url), "")


def get_context(model: BaseChatModel) -> int:
    """Return how many tokens a prompt and its output may have together, as far as that is known."""
    profile: Any = getattr(model, "profile", None) or {}
    if "ollama" in type(model).__name__.lower():
        own = getattr(model, "num_ctx", None)
        return own if isinstance(own, int) else OLLAMA_CONTEXT
    most = profile.get("max_input_tokens")
    return most if isinstance(most, int) and most > 0 else DEFAULT_CONTEXT
