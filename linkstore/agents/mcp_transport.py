"""Runs the MCP server over standard input and output or over HTTP. Needs ``mcp``.

The SDK ignores a line that it cannot parse, and its client waits until it gives up. Here such a line gets its
error (JSON-RPC 2.0, section 5.1): -32700 if it is not JSON, -32600 if it is not a request.

Over HTTP, requests pass the guard of :mod:`linkstore.core.http_server` first: see
https://modelcontextprotocol.io/specification/, section Transports.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Collection
from concurrent.futures import CancelledError as FutureError
from contextlib import suppress
from http import HTTPStatus
from itertools import chain
from threading import Thread
from typing import Any, Final

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.applications import Starlette

from linkstore.core.http_server import (
    HttpLimits,
    Message,
    Receive,
    RequestGuard,
    Send,
    list_allowed_hosts,
    refuse,
    run_server,
)

_LINES_AHEAD: Final = 16


def find_line_error(line: str) -> JSONRPCError | None:
    """Return the error that a line gets, or None if it is a message or blank."""
    if not line.strip():
        return None
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        code, text = INVALID_REQUEST, "the line is not a valid JSON-RPC 2.0 message in Unicode"
    else:
        return None
    id: Any = None
    try:
        message = json.loads(line)  # takes a half surrogate pair, which is JSON but no text
        id = message.get("id") if isinstance(message, dict) and "method" in message else None
    except (ValueError, RecursionError):
        code, text = PARSE_ERROR, "the line is not valid JSON"
    if type(id) not in (int, str) or not str(id).isprintable():
        id = None
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=text))


HTTP_PATH: Final = "/mcp"


class Endpoint:
    """Passes requests on that have the right path and method, and arrive in time.

    Args:
        app: The SDK's.
        limits: Of time.
    """

    def __init__(self, app: Starlette, limits: HttpLimits) -> None:
        self._app, self._limits = app, limits
        self.lifespan = app.router.lifespan_context

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request by the interface of ASGI: within the time for the body, then for the answer."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope.get("raw_path", b"") != HTTP_PATH.encode():
            return await refuse(send, HTTPStatus.NOT_FOUND, "there is nothing at this path")
        if scope["method"] != "POST":
            return await refuse(send, HTTPStatus.METHOD_NOT_ALLOWED, "only POST is answered")
        arrived = started = False

        async def receive_in_time() -> Message:
            nonlocal arrived
            message = await receive()
            if not arrived and not message.get("more_body", False):
                arrived = True
                timer.reschedule(asyncio.get_running_loop().time() + self._limits.answer)
            return message

        async def send_recorded(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            async with asyncio.timeout(self._limits.upload) as timer:
                await self._app(scope, receive_in_time, send_recorded)
        except TimeoutError:
            if not started and arrived:
                await refuse(send, HTTPStatus.GATEWAY_TIMEOUT, "the answer took too long")
            elif not started:
                await refuse(send, HTTPStatus.REQUEST_TIMEOUT, "the body took too long")
        return None


_LOG = logging.getLogger(__name__)


def log_to_stderr() -> None:
    """Log everything to stderr, since stdout is for the protocol."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over standard input and output, until it closes them, or until interrupted."""
    asyncio.run(_serve_stdio(server))


async def _serve_stdio(server: Server[Any]) -> None:
    async def read_messages() -> AsyncIterator[str]:
        """Yield the lines of the client that are messages, and answer the others."""
        async for line in _read_lines():
            if error := find_line_error(line):
                await write.send(SessionMessage(error))
            else:
                yield line

    lines: Any = read_messages()  # all that is asked of the file is to be iterated over
    async with stdio_server(stdin=lines) as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _read_lines() -> AsyncIterator[str]:
    """Yield the lines of standard input, read by a thread that nothing waits for.

    The SDK waits for the thread that waits for a line, so an interrupt would end no server before its client.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue(_LINES_AHEAD)

    def read() -> None:
        with (
            suppress(RuntimeError, FutureError),  # the server has ended
            os.fdopen(os.dup(sys.stdin.fileno()), encoding="utf-8", errors="replace") as source,
        ):
            for line in chain(source, [""]):
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()

    Thread(target=read, name="linkstore-mcp-input", daemon=True).start()
    while line := await lines.get():
        yield line


def make_endpoint(server: Server[Any], limits: HttpLimits | None = None) -> Endpoint:
    """Return the application of streamable HTTP, which serves each request for itself, behind a guard.

    Args:
        server: Answers the requests.
        limits: Of size and time.
    """
    limits = limits or HttpLimits()
    app = server.streamable_http_app(
        streamable_http_path=HTTP_PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=limits.body,
        # The guard is stricter: the SDK's check reads the first of several Origin.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return Endpoint(app, limits)


def serve_http(
    server: Server[Any], listening: socket.socket, token: str, others: Collection[str] = ()
) -> None:
    """Serve clients over streamable HTTP, until interrupted.

    Args:
        server: Answers them.
        listening: A socket that listens.
        token: What clients must send.
        others: Further values that ``Host`` may have, such as the name of a proxy.
    """
    host, port = listening.getsockname()[:2]
    _LOG.info("listening at http://%s:%d%s", f"[{host}]" if ":" in host else host, port, HTTP_PATH)
    run_server(RequestGuard(make_endpoint(server), token, list_allowed_hosts(host, port, others)), listening)
