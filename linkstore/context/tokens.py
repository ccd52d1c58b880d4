"""Counting tokens: each text once for each tokenizer, without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import xxhash

from linkstore.arguments import refusal
from linkstore.text import without_surrogates

Tokenizer = Any
"""A function of a text that returns its number of tokens, or an object that :func:`counter_of` accepts."""
KEPT: Final = 100_000
"""How many counts a counter keeps before it starts anew."""


class TokenCounter:
    """Counts the tokens of texts and keeps the counts, by the hash of the text. Safe to use from threads.

    Args:
        name: The name of the tokenizer, for reports.
        counts: Returns the number of tokens of each text.
    """

    def __init__(self, name: str, counts: Callable[[Sequence[str]], list[int]]) -> None:
        self.name = name
        self._counts = counts
        self._known: dict[bytes, int] = {}

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        known = self._known
        keys = [_key(text) for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        fresh = dict(zip(missing, self._counts(list(missing.values())), strict=True)) if missing else {}
        found = [fresh[key] if key in fresh else known[key] for key in keys]
        if len(known) + len(fresh) > KEPT:
            self._known = fresh  # replaced, not emptied: another thread may be reading the old one
        else:
            known.update(fresh)
        return found

    def __repr__(self) -> str:
        return f"TokenCounter({self.name!r})"


def counter_of(tokenizer: Tokenizer | None) -> TokenCounter:
    """Make a counter over a tokenizer.

    Args:
        tokenizer: None: the tokenizer of the default embedding (Llama 2's), which needs no network. Otherwise
            a :class:`TokenCounter`; a chat model of LangChain (``get_num_tokens``); a
            ``tokenizers.Tokenizer``, a tiktoken ``Encoding`` or a transformers tokenizer (``encode``); or a
            function of a text that returns its number of tokens.

    Raises:
        ArgumentError: If it is none of these.
    """
    if tokenizer is None:
        return _default_counter()
    if isinstance(tokenizer, TokenCounter):
        return tokenizer
    name = getattr(tokenizer, "name", None)
    name = name if isinstance(name, str) else type(tokenizer).__name__
    if hasattr(tokenizer, "get_num_tokens"):
        return TokenCounter(name, _one_by_one(tokenizer.get_num_tokens))
    if hasattr(tokenizer, "encode_batch_fast"):
        return TokenCounter(name, lambda texts: _batch_counts(tokenizer, texts))
    if hasattr(tokenizer, "encode_ordinary"):
        return TokenCounter(name, _one_by_one(lambda text: len(tokenizer.encode_ordinary(text))))
    if hasattr(tokenizer, "encode") and not isinstance(tokenizer, str):
        return TokenCounter(name, _one_by_one(lambda text: len(tokenizer.encode(text))))
    if callable(tokenizer):
        return TokenCounter(getattr(tokenizer, "__name__", name), _one_by_one(tokenizer))
    raise refusal("tokenizer", "a function of a text, a tokenizer or a chat model", tokenizer)


@cache
def _default_counter() -> TokenCounter:
    """Return the one counter of the process, so that compilers share what is counted."""
    from linkstore.embeddings.wordllama import wordllama_tokenizer

    return TokenCounter("llama-2", lambda texts: _batch_counts(wordllama_tokenizer(), texts))


def _batch_counts(tokenizer: Any, texts: Sequence[str]) -> list[int]:
    encodings = tokenizer.encode_batch_fast(
        [without_surrogates(text) for text in texts], add_special_tokens=False
    )
    return [len(encoding.ids) for encoding in encodings]


def _one_by_one(count: Callable[[str], object]) -> Callable[[Sequence[str]], list[int]]:
    return lambda texts: [_checked(count(without_surrogates(text))) for text in texts]


def _checked(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise TypeError(f"the tokenizer must return a number of tokens of at least 0, not {count!r}")
    return count


def _key(text: str) -> bytes:
    return xxhash.xxh3_128_digest(text.encode("utf-8", "surrogatepass"))
