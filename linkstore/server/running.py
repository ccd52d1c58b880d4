"""Runs the server: over standard input and output, or over HTTP. Imported late; needs ``mcp``."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, TextIO, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from linkstore.server.guard import PATH, Guard, HttpLimits, allowed_hosts
from linkstore.server.lines import Lines
from linkstore.store.opening import closed_on_failure

if TYPE_CHECKING:
    import anyio

_LOG = logging.getLogger(__name__)


def log_to_stderr() -> None:
    """Log everything to stderr, since stdout is for the protocol."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over standard input and output, until it closes them, or until interrupted."""
    asyncio.run(_stdio(server))


async def _stdio(server: Server[Any]) -> None:
    with _forwarded_input() as (lines, end):
        serving = asyncio.create_task(_served(server, lines))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            end()
            await serving
            raise


async def _served(server: Server[Any], lines: TextIO) -> None:
    heard = Lines(lines)
    async with stdio_server(stdin=cast("anyio.AsyncFile[str]", heard)) as (read, write):
        heard.answer_by(write.send)
        await server.run(read, write, server.create_initialization_options())


@contextmanager
def _forwarded_input() -> Iterator[tuple[TextIO, Callable[[], None]]]:
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
        streamable_http_path=PATH.decode(),
        json_response=True,
        stateless_http=True,
        max_request_body_size=limits.body,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    config = uvicorn.Config(
        Guard(app, token, allowed_hosts(host, port, others), limits),
        http=_impatient(limits),
        ws="none",
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=5,
    )
    _LOG.info("listening at http://%s:%d%s", f"[{host}]" if ":" in host else host, port, PATH.decode())
    uvicorn.Server(config).run(sockets=[listening])


def bound(host: str, port: int) -> socket.socket:
    """Open a socket that listens at this address. Port 0 takes a free one.

    Raises:
        OSError: If the address is not there, or in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    with closed_on_failure(listening):
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    return listening


def _impatient(limits: HttpLimits) -> type[asyncio.Protocol]:
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
