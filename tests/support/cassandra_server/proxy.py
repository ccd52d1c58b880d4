"""A TCP connection that a test can cut, stall and delay."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from cassandra_server.machine import free_port

T = TypeVar("T")
PIECE = 65_536
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER that makes closing a reset, as when a cable or a host goes, instead of an orderly end."""


class Proxy:
    """Listens on a port of 127.0.0.1 and passes on, both ways, what it is told to.

    All methods may be called from any thread, and have taken effect when they return.

    Args:
        host: Where connections lead to.
        port: And its port.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host = "127.0.0.1"
        self.port = free_port()
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self._flow = asyncio.Event()
        self._delay = 0.0
        self._allowance: int | None = None
        self._listener: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """How many are open through it."""
        return len(self._writers) // 2

    def start(self) -> Self:
        """Listen; it, for chaining."""
        self._thread.start()
        self.heal()
        return self

    def cut(self) -> None:
        """Reset all connections and refuse new ones."""
        self._do(self._cut())

    def cut_after(self, count: int) -> None:
        """:meth:`cut` once the server has sent so many bytes more: in the middle of an answer."""
        self._do(self._allow(count))

    def stall(self) -> None:
        """Pass nothing on, but keep connections and take new ones, as a hung server does."""
        self._do(self._stall())

    def delay(self, seconds: float) -> None:
        """Let each piece of data wait so long, one after another."""
        self._do(self._wait(seconds))

    def heal(self) -> None:
        """Pass everything on again, at once. What stalled arrives; what was cut must connect anew."""
        self._do(self._heal())

    def close(self) -> None:
        """Cut, and end."""
        if self._thread.is_alive():
            self._do(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _do(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(timeout=10)

    async def _heal(self) -> None:
        self._delay, self._allowance = 0.0, None
        self._flow.set()
        if self._listener is None:
            self._listener = await asyncio.start_server(self._connect, self.host, self.port)

    async def _stall(self) -> None:
        self._flow.clear()

    async def _wait(self, seconds: float) -> None:
        self._delay = seconds

    async def _allow(self, count: int) -> None:
        self._allowance = count

    async def _cut(self) -> None:
        self._allowance = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for writer in list(self._writers):
            _reset(writer)
        self._writers.clear()

    async def _end(self) -> None:
        await self._cut()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side ends it."""
        self._writers.add(writer)
        try:
            theirs, to_server = await asyncio.open_connection(*self._target)
        except OSError:
            self._writers.discard(writer)
            _reset(writer)
            return
        self._writers.add(to_server)
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(reader, to_server, answers=False))
                pumps.create_task(self._pump(theirs, writer, answers=True))
        except* OSError:
            pass
        finally:
            for side in (writer, to_server):
                self._writers.discard(side)
                side.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        """Pass on one direction; an end of it ends the other, by ConnectionError."""
        while data := await reader.read(PIECE):
            await asyncio.sleep(self._delay)
            await self._flow.wait()
            if answers and self._allowance is not None:
                await self._spend(writer, data)
                continue
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError

    async def _spend(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        """Pass on what is still allowed; cut when nothing is left."""
        assert self._allowance is not None
        part = data[: self._allowance]
        self._allowance -= len(part)
        writer.write(part)
        await writer.drain()
        if self._allowance == 0:
            await self._cut()

    def __enter__(self) -> Self:
        """Started."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closed."""
        self.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close at once, dropping what is on its way."""
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() != -1:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
