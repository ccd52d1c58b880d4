"""Runs the MCP server over standard input and output or over HTTP, behind a guard. Needs ``mcp``.

The SDK ignores a line that it cannot parse, and its client waits until it gives up. Here such a line gets its
error (JSON-RPC 2.0, section 5.1): -32700 if it is not JSON, -32600 if it is not a request.

A page in a browser can send requests to servers on loopback, under any host name that its owner makes lead
there (DNS rebinding). So ``Host`` and ``Origin`` must have exactly the names that are allowed, and each
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


class Refusal(Exception):  # noqa: N818 - not an error of the server
    """A request that is not passed on.

    Args:
        status: What the client is told.
        reason: Why.
        headers: Further headers of the answer.
    """

    def __init__(self, status: HTTPStatus, reason: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers


class Guard:
    """Passes requests on that have the right path, method, host, origin, token and size.

    Args:
        app: Answers them.
        token: What clients must send as ``Authorization: Bearer TOKEN``.
        hosts: Values that ``Host`` may have, in lower case; an ``Origin`` must be one of them, too.
        limits: Of size and time.
    """

    def __init__(self, app: App, token: str, hosts: frozenset[str], limits: HttpLimits) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = {host.encode() for host in hosts}
        self._origins = {scheme + host for host in self._hosts for scheme in (b"http://", b"https://")}
        self._limits = limits

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request by the interface of ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._guard(scope, receive, _GuardedAnswer(send))
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _guard(self, scope: Message, receive: Receive, answering: _GuardedAnswer) -> None:
        try:
            self._check(scope)
            body = await self._read_body(scope, receive)
            async with asyncio.timeout(self._limits.answer):
                await self._app(scope, _replay_body(body, receive), answering.send)
        except Refusal as refused:
            await answering.refuse(refused)
        except TimeoutError:
            await answering.refuse(Refusal(HTTPStatus.GATEWAY_TIMEOUT, "the answer took too long"))

    def _check(self, scope: Message) -> None:
        """Check what is known before the body.

        Raises:
            Refused: If the request may not be made.
        """
        host = _read_header(scope, b"host")
        if host is None or host.lower() not in self._hosts:
            raise Refusal(HTTPStatus.MISDIRECTED_REQUEST, "this server does not answer to that host")
        origins = _read_headers(scope, b"origin")
        if any(origin.lower() not in self._origins for origin in origins) or len(origins) > 1:
            raise Refusal(HTTPStatus.FORBIDDEN, "pages of this origin may not use the server")
        scheme, _, token = (_read_header(scope, b"authorization") or b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token, self._token):
            challenge = (b"www-authenticate", b"Bearer")
            raise Refusal(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong", challenge)
        if scope.get("raw_path", b"") != HTTP_PATH:
            raise Refusal(HTTPStatus.NOT_FOUND, "there is nothing at this path")
        if scope["method"] != "POST":
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only POST is answered", (b"allow", b"POST"))

    async def _read_body(self, scope: Message, receive: Receive) -> bytes:
        """Return the whole body, within its limits of size and time."""
        length = _read_header(scope, b"content-length")
        if length is not None and (not length.isdigit() or int(length) > self._limits.body):
            raise self._make_too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.upload):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(HTTPStatus.BAD_REQUEST, "the body ended early")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > self._limits.body:
                        raise self._make_too_large()
        except TimeoutError as error:
            raise Refusal(HTTPStatus.REQUEST_TIMEOUT, "the body took too long") from error
        return bytes(body)

    def _make_too_large(self) -> Refusal:
        return Refusal(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {self._limits.body} bytes"
        )


class _GuardedAnswer:
    """The answer to one request. The connection is closed after it, so that no client can keep it idle."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = False

    async def send(self, message: Message) -> None:
        """Pass on a part of the answer."""
        if message["type"] == "http.response.start":
            self._started = True
            headers = [
                *message.get("headers", ()),
                (b"connection", b"close"),
                (b"cache-control", b"no-store"),
            ]
            message = {**message, "headers": headers}
        await self._send(message)

    async def refuse(self, refused: Refusal) -> None:
        """Answer that the request is refused, unless an answer was begun."""
        if self._started:
            return
        body = json.dumps({"error": refused.reason}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        start = {"type": "http.response.start", "status": refused.status.value}
        await self.send({**start, "headers": [*headers, *refused.headers]})
        await self._send({"type": "http.response.body", "body": body})


def _read_headers(scope: Message, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _read_header(scope: Message, name: bytes) -> bytes | None:
    """Return the value of a header that occurs once, else None."""
    values = _read_headers(scope, name)
    return values[0] if len(values) == 1 else None


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a receiver of messages for the app: the body that was read, then all others."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


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
    app = server.streamable_http_app(
        streamable_http_path=HTTP_PATH.decode(),
        json_response=True,
        stateless_http=True,
        max_request_body_size=limits.body,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    config = uvicorn.Config(
        Guard(app, token, list_allowed_hosts(host, port, others), limits),
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
