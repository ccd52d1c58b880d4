"""Serves an application over HTTP to the holders of its token, as the page and MCP do. Needs ``uvicorn``.

A page of another site can send requests to servers on loopback, under any host name that its owner makes lead
there (DNS rebinding). So ``Host`` and ``Origin`` must have exactly the names that are allowed, requests need
the token, and no answer allows pages of other origins to read it (CORS).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from contextlib import ExitStack
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_REFUSAL_HEADERS: Final = {
    HTTPStatus.UNAUTHORIZED: (b"www-authenticate", b"Bearer"),
    HTTPStatus.METHOD_NOT_ALLOWED: (b"allow", b"POST"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of a server.

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


class RequestGuard:
    """Passes requests on that have the right host, origin and token; each connection answers one.

    Args:
        app: Answers them.
        token: What clients must send as ``Authorization: Bearer TOKEN``.
        hosts: Values that ``Host`` may have, in lower case; an ``Origin`` must be one of them, too.
        public: Paths that need no token.
    """

    def __init__(self, app: App, token: str, hosts: frozenset[str], public: Collection[str] = ()) -> None:
        self._app, self._token, self._public = app, token.encode(), frozenset(public)
        self._hosts = {host.encode() for host in hosts}
        self._origins = {scheme + host for scheme in (b"http://", b"https://") for host in self._hosts}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request by the interface of ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal := self._check(scope):
            await refuse(_close_after(send), *refusal)
        else:
            await self._app(scope, receive, _close_after(send))

    def _check(self, scope: Message) -> tuple[HTTPStatus, str] | None:
        """Return why a request may not be made, from what is known before its body."""
        sent: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            sent.setdefault(name, []).append(value)
        if len(sent.get(b"host", [])) != 1 or sent[b"host"][0].lower() not in self._hosts:
            return HTTPStatus.MISDIRECTED_REQUEST, "this server does not answer to that host"
        origins = sent.get(b"origin", [])
        if len(origins) > 1 or any(origin.lower() not in self._origins for origin in origins):
            return HTTPStatus.FORBIDDEN, "pages of this origin may not use the server"
        credentials = sent.get(b"authorization", [])
        scheme, _, token = credentials[0].partition(b" ") if len(credentials) == 1 else (b"", b"", b"")
        authorized = scheme.lower() == b"bearer" and hmac.compare_digest(token, self._token)
        if not authorized and scope["path"] not in self._public:
            return HTTPStatus.UNAUTHORIZED, "the token is missing or wrong"
        return None


async def refuse(send: Send, status: HTTPStatus, reason: str) -> None:
    """Answer a request with an error, as JSON."""
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [_REFUSAL_HEADERS[status]] if status in _REFUSAL_HEADERS else []
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _close_after(send: Send) -> Send:
    """Return a sender that closes the connection after the answer, so no client can keep it idle."""

    async def send_and_close(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [header for header in message.get("headers", ()) if header[0] != b"cache-control"]
            message = {
                **message,
                "headers": [*kept, (b"connection", b"close"), (b"cache-control", b"no-store")],
            }
        await send(message)

    return send_and_close


def list_allowed_hosts(host: str, port: int, others: Collection[str] = ()) -> frozenset[str]:
    """Return the values that ``Host`` may have for a server at this address, in lower case."""
    names = LOOPBACK if is_loopback(host) else {host}
    return frozenset(f"{name}:{port}" for name in names) | {other.lower() for other in others}


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address."""
    return host in {"127.0.0.1", "localhost", "::1"}


def open_socket(host: str, port: int) -> socket.socket:
    """Open a socket that listens at this address. Port 0 takes a free one.

    Raises:
        OSError: If the address is not there, or in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    with ExitStack() as failure:
        failure.callback(listening.close)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
        failure.pop_all()
    return listening


def run_server(app: App, listening: socket.socket, limits: HttpLimits | None = None) -> None:
    """Serve an application on a socket that listens, until interrupted."""
    import uvicorn

    limits = limits or HttpLimits()
    config = uvicorn.Config(
        app,
        http=_make_impatient_protocol(limits),
        ws="none",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    uvicorn.Server(config).run(sockets=[listening])


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
