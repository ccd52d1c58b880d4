"""Runs the MCP server over standard input and output or over HTTP. Needs ``mcp``.

The SDK ignores a line that it cannot parse, and its client waits until it gives up. Here such a line gets its
error (JSON-RPC 2.0, section 5.1): -32700 if it is not JSON, -32600 if it is not a request.

A page in a browser can send requests to servers on loopback, under any host name that its owner makes lead
there (DNS rebinding). So the SDK is told the exact names that ``Host`` and ``Origin`` may have, and each
request needs the token. See https://modelcontextprotocol.io/specification/, section Transports.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from threading import Thread
from typing import Any, Final, TextIO, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from linkstore.store.base import close_on_failure

_NO_JSON: Final = "the line is not valid JSON"
_NO_REQUEST: Final = "the line is not a valid JSON-RPC 2.0 message in Unicode"


class ClientLines:
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
            error = find_line_error(line)
            if error is None:
                yield line
                continue
            await self._ready.wait()
            if self._send is not None:
                await self._send(SessionMessage(error))


def find_line_error(line: str) -> JSONRPCError | None:
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
        return _make_line_error(PARSE_ERROR, _NO_JSON, None)
    return _make_line_error(INVALID_REQUEST, _NO_REQUEST, _read_request_id(given))


def _read_request_id(given: object) -> str | int | None:
    """Return the id of a request, or None where there is none that a client could know."""
    if not isinstance(given, dict) or "method" not in given:
        return None
    id = given.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int):
        return None
    return id if isinstance(id, int) or id.isprintable() else None


def _make_line_error(code: int, message: str, id: Any) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
HTTP_PATH: Final = b"/mcp"
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of the server in HTTP.

    Args:
        body: Maximum number of bytes of a request's body; default 1 MiB.
        head: Seconds for the first line and headers of a request to arrive; default 10.
        upload: Seconds for its body to arrive; default 10.
        answer: Seconds for an answer; default 60.
        connections: Maximum number of connections at once; default 64.
    """

    body: int = 2**20
    head: float = 10.0
    upload: float = 10.0
    answer: float = 60.0
    connections: int = 64


class Guard:
    """Passes requests on that have the token, the right path and method, and arrive in time.

    The SDK checks ``Host``, ``Origin`` and the size of the body. It reads the first of several ``Origin``,
    and compares hosts letter by letter, so this refuses several and writes hosts in small letters.

    Args:
        app: The SDK's.
        token: What clients must send as ``Authorization: Bearer TOKEN``.
        limits: Of time.
    """

    def __init__(self, app: App, token: str, limits: HttpLimits) -> None:
        self._app = app
        self._token = token.encode()
        self._limits = limits

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request by the interface of ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal := self._check(scope):
            await _refuse(_close_after(send), *refusal)
        else:
            await self._pass_on(scope, receive, _close_after(send))

    def _check(self, scope: Message) -> tuple[HTTPStatus, str] | None:
        """Return why a request may not be made, from what is known before its body."""
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = (given[0] if len(given) == 1 else b"").partition(b" ")
        if sum(name == b"origin" for name, _ in scope["headers"]) > 1:
            return HTTPStatus.FORBIDDEN, "pages of this origin may not use the server"
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token, self._token):
            return HTTPStatus.UNAUTHORIZED, "the token is missing or wrong"
        if scope.get("raw_path", b"") != HTTP_PATH:
            return HTTPStatus.NOT_FOUND, "there is nothing at this path"
        if scope["method"] != "POST":
            return HTTPStatus.METHOD_NOT_ALLOWED, "only POST is answered"
        return None

    async def _pass_on(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let the SDK answer, within the time for the body, then within that for the answer."""
        headers = [(name, value.lower() if name == b"host" else value) for name, value in scope["headers"]]
        arrived = started = False

        async def receive_in_time() -> Message:
            nonlocal arrived
            message = await receive()
            if not arrived and not message.get("more_body", False):
                arrived = True
                timer.reschedule(asyncio.get_running_loop().time() + self._limits.answer)
            return message

        async def send_noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            async with asyncio.timeout(self._limits.upload) as timer:
                await self._app({**scope, "headers": headers}, receive_in_time, send_noted)
        except TimeoutError:
            if not started and arrived:
                await _refuse(send, HTTPStatus.GATEWAY_TIMEOUT, "the answer took too long")
            elif not started:
                await _refuse(send, HTTPStatus.REQUEST_TIMEOUT, "the body took too long")


_REFUSAL_HEADERS: Final = {
    HTTPStatus.UNAUTHORIZED: (b"www-authenticate", b"Bearer"),
    HTTPStatus.METHOD_NOT_ALLOWED: (b"allow", b"POST"),
}


async def _refuse(send: Send, status: HTTPStatus, reason: str) -> None:
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [_REFUSAL_HEADERS[status]] if status in _REFUSAL_HEADERS else []
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _close_after(send: Send) -> Send:
    """Return a sender that closes the connection after the answer, so that no client can keep it idle."""

    async def send_and_close(message: Message) -> None:
        if message["type"] == "http.response.start":
            more = [(b"connection", b"close"), (b"cache-control", b"no-store")]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return send_and_close


def list_allowed_hosts(host: str, port: int, others: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the values that ``Host`` may have for a server at this address, in lower case."""
    names = LOOPBACK if is_loopback(host) else {host}
    return frozenset(f"{name}:{port}" for name in names) | {other.lower() for other in others}


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address."""
    return host in {"127.0.0.1", "localhost", "::1"}


_LOG = logging.getLogger(__name__)


def log_to_stderr() -> None:
    """Log everything to stderr, since stdout is for the protocol."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over standard input and output, until it closes them, or until interrupted."""
    asyncio.run(_serve_stdio(server))


async def _serve_stdio(server: Server[Any]) -> None:
    with _forward_input() as (lines, end):
        serving = asyncio.create_task(_serve_lines(server, lines))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            end()
            await serving
            raise


async def _serve_lines(server: Server[Any], lines: TextIO) -> None:
    heard = ClientLines(lines)
    async with stdio_server(stdin=cast("anyio.AsyncFile[str]", heard)) as (read, write):
        heard.answer_by(write.send)
        await server.run(read, write, server.create_initialization_options())


@contextmanager
def _forward_input() -> Iterator[tuple[TextIO, Callable[[], None]]]:
    """Yield standard input, and a function that ends it: nothing else ends a thread that waits for a line."""
    source, sink = socket.socketpair()

    def end() -> None:
        with suppress(OSError):  # it has ended
            sink.shutdown(socket.SHUT_RDWR)

    def forward() -> None:
        with suppress(OSError):  # the server has ended
            while data := os.read(sys.stdin.fileno(), 65536):
                sink.sendall(data)
        end()

    with source, sink, source.makefile("r", encoding="utf-8", errors="replace") as lines:
        Thread(target=forward, name="linkstore-mcp-input", daemon=True).start()
        yield lines, end


def serve_http(
    server: Server[Any],
    listening: socket.socket,
    token: str,
    others: tuple[str, ...] = (),
    limits: HttpLimits | None = None,
) -> None:
    """Serve clients over streamable HTTP, each request for itself, until interrupted.

    Args:
        server: Answers them.
        listening: A socket that listens.
        token: What clients must send.
        others: Further values that ``Host`` may have, such as the name of a proxy.
        limits: Of size and time.
    """
    import uvicorn

    limits = limits or HttpLimits()
    host, port = listening.getsockname()[:2]
    hosts = sorted(list_allowed_hosts(host, port, others))  # whole names: with "*" the SDK compares prefixes
    origins = [f"{scheme}://{name}" for name in hosts for scheme in ("http", "https")]
    app = server.streamable_http_app(
        streamable_http_path=HTTP_PATH.decode(),
        json_response=True,
        stateless_http=True,
        max_request_body_size=limits.body,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    config = uvicorn.Config(
        Guard(app, token, limits),
        http=_make_impatient_protocol(limits),
        ws="none",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    _LOG.info("listening at http://%s:%d%s", f"[{host}]" if ":" in host else host, port, HTTP_PATH.decode())
    uvicorn.Server(config).run(sockets=[listening])


def open_socket(host: str, port: int) -> socket.socket:
    """Open a socket that listens at this address. Port 0 takes a free one.

    Raises:
        OSError: If the address is not there, or in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    with close_on_failure(listening):
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    return listening


def _make_impatient_protocol(limits: HttpLimits) -> type[asyncio.Protocol]:
    """Return Uvicorn's protocol, made to close connections that take too long."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        """Closes a connection without a whole request in time, and any that lasts too long."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            longest = limits.head + limits.upload + 2 * limits.answer
            self._timers = (
                self.loop.call_later(limits.head, self._close_idle),
                self.loop.call_later(longest, transport.abort),
            )

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in self._timers:
                timer.cancel()
            super().connection_lost(exc)

        def _close_idle(self) -> None:
            if not self.cycle:
                self.transport.abort()

    return Impatient
