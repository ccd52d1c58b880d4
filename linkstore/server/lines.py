"""The lines of a client over standard input: those that are no message get their error. Needs ``mcp``.

The SDK passes over a line that it cannot parse, so that a client waits for an answer until it gives up.
JSON-RPC 2.0, section 5.1, has errors for both: -32700 for what is no JSON, -32600 for what is no request.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TextIO

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

_NO_JSON: Final = "the line is not valid JSON"
_NO_REQUEST: Final = "the line is not a valid JSON-RPC 2.0 message in Unicode"


class Lines:
    """The lines of a client that are messages, for the SDK; other lines are answered here.

    Args:
        lines: Of the client.
    """

    def __init__(self, lines: TextIO) -> None:
        self._lines = anyio.wrap_file(lines)
        self._send: Callable[[SessionMessage], Awaitable[None]] | None = None
        self._ready = anyio.Event()

    def answer_by(self, send: Callable[[SessionMessage], Awaitable[None]]) -> None:
        """Send the errors by this function."""
        self._send = send
        self._ready.set()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines that are messages."""
        async for line in self._lines:
            error = error_of(line)
            if error is None:
                yield line
                continue
            await self._ready.wait()
            if self._send is not None:
                await self._send(SessionMessage(error))


def error_of(line: str) -> JSONRPCError | None:
    """Return the error that a line gets, or None if it is a message or blank."""
    if not line.strip():
        return None
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        pass
    else:
        return None
    try:
        given = json.loads(line)  # takes a half surrogate pair, which is JSON but no text
    except (ValueError, RecursionError):
        return _error(PARSE_ERROR, _NO_JSON, None)
    return _error(INVALID_REQUEST, _NO_REQUEST, _id_of(given))


def _id_of(given: object) -> str | int | None:
    """Return the id of a request, or None where there is none that a client could know."""
    if not isinstance(given, dict) or "method" not in given:
        return None
    id = given.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int):
        return None
    return id if isinstance(id, int) or id.isprintable() else None


def _error(code: int, message: str, id: Any) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))
