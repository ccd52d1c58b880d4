"""The guard of the server in HTTP: it lets through only requests that a client may make.

A page in a browser can send requests to servers on loopback, under any host name that its owner makes lead
there (DNS rebinding). So ``Host`` and ``Origin`` must have exactly the names that are allowed, and each
request needs the token. See https://modelcontextprotocol.io/specification/, section Transports.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]
PATH: Final = b"/mcp"
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


class Refused(Exception):  # noqa: N818 - not an error of the server
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
            await self._guard(scope, receive, _Answering(send))
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _guard(self, scope: Message, receive: Receive, answering: _Answering) -> None:
        try:
            self._check(scope)
            body = await self._read_body(scope, receive)
            async with asyncio.timeout(self._limits.answer):
                await self._app(scope, _replayed(body, receive), answering.send)
        except Refused as refused:
            await answering.refuse(refused)
        except TimeoutError:
            await answering.refuse(Refused(HTTPStatus.GATEWAY_TIMEOUT, "the answer took too long"))

    def _check(self, scope: Message) -> None:
        """Check what is known before the body.

        Raises:
            Refused: If the request may not be made.
        """
        host = _single(scope, b"host")
        if host is None or host.lower() not in self._hosts:
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, "this server does not answer to that host")
        origins = _values(scope, b"origin")
        if any(origin.lower() not in self._origins for origin in origins) or len(origins) > 1:
            raise Refused(HTTPStatus.FORBIDDEN, "pages of this origin may not use the server")
        scheme, _, token = (_single(scope, b"authorization") or b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token, self._token):
            challenge = (b"www-authenticate", b"Bearer")
            raise Refused(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong", challenge)
        if scope.get("raw_path", b"") != PATH:
            raise Refused(HTTPStatus.NOT_FOUND, "there is nothing at this path")
        if scope["method"] != "POST":
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "only POST is answered", (b"allow", b"POST"))

    async def _read_body(self, scope: Message, receive: Receive) -> bytes:
        """Return the whole body, within its limits of size and time."""
        length = _single(scope, b"content-length")
        if length is not None and (not length.isdigit() or int(length) > self._limits.body):
            raise self._make_too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.upload):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(HTTPStatus.BAD_REQUEST, "the body ended early")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > self._limits.body:
                        raise self._make_too_large()
        except TimeoutError as error:
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the body took too long") from error
        return bytes(body)

    def _make_too_large(self) -> Refused:
        return Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {self._limits.body} bytes"
        )


class _Answering:
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

    async def refuse(self, refused: Refused) -> None:
        """Answer that the request is refused, unless an answer was begun."""
        if self._started:
            return
        body = json.dumps({"error": refused.reason}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        start = {"type": "http.response.start", "status": refused.status.value}
        await self.send({**start, "headers": [*headers, *refused.headers]})
        await self._send({"type": "http.response.body", "body": body})


def _values(scope: Message, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _single(scope: Message, name: bytes) -> bytes | None:
    """Return the value of a header that occurs once, else None."""
    values = _values(scope, name)
    return values[0] if len(values) == 1 else None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a receiver of messages for the app: the body that was read, then all others."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


def allowed_hosts(host: str, port: int, others: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the values that ``Host`` may have for a server at this address, in lower case."""
    names = LOOPBACK if is_loopback(host) else {host}
    return frozenset(f"{name}:{port}" for name in names) | {other.lower() for other in others}


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address."""
    return host in {"127.0.0.1", "localhost", "::1"}
