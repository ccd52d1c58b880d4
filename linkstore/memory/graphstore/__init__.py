"""A LangGraph store over a linkstore store; needs the extra ``agents``."""

from __future__ import annotations

from linkstore.errors import MissingExtraError

try:
    import langgraph.store.base  # noqa: F401 - only to say early what is missing
except ImportError as error:
    raise MissingExtraError("a LangGraph store", "agents") from error
