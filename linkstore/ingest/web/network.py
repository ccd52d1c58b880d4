"""Connections that lead only to checked addresses, and end when their time is up."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkstore.ingest.web.addresses import check_addresses
from linkstore.ingest.web.errors import FetchError
from linkstore.ingest.web.libraries import (
    SOCKET_OPTION,
    ConnectError,
    ConnectTimeout,
    NetworkBackend,
    NetworkStream,
    ReadTimeout,
    SyncBackend,
)


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, in the order of preference of the system's resolver.

    Raises:
        FetchError: If the name cannot be resolved.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise FetchError(f"the host {host} is not found: {error.strerror}", again=True) from error
    except UnicodeError as error:
        raise FetchError(f"{host!r} is not a host name: {error}") from error
    return list(dict.fromkeys(str(one[4][0]) for one in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The system functions that a crawler needs; tests replace them.

    Args:
        resolve: The IP addresses of a host, for a port.
        connect: Makes connections to IP addresses.
        ssl_context: What certificates are checked by; default the system's authorities.
        clock: Seconds that pass.
        sleep: Waits this many seconds.
    """

    resolve: Callable[[str, int], Sequence[str]] = resolve
    connect: NetworkBackend = field(default_factory=SyncBackend)
    ssl_context: ssl.SSLContext | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Guard(NetworkBackend):
    """Makes the connections of a fetcher.

    A host is resolved once for each connection; its addresses are checked, and the connection is made to
    the very address that was checked, so that a name server cannot answer otherwise the second time (DNS
    rebinding). TLS is verified against the host's name all the same.

    Args:
        network: How to resolve and connect.
        allow_private: Whether loopback and private addresses are allowed.
    """

    def __init__(self, network: Network, *, allow_private: bool) -> None:
        self._network = network
        self._allow_private = allow_private
        self._until = 0.0

    def start(self, seconds: float) -> None:
        """Give the request that begins now this many seconds in all."""
        self._until = self._network.clock() + seconds

    def left(self) -> float:
        """Return the seconds until the time of the request is up.

        Raises:
            ReadTimeout: If it is up.
        """
        seconds = self._until - self._network.clock()
        if seconds <= 0:
            raise ReadTimeout("its time is up")
        return seconds

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> NetworkStream:
        """Connect to the first address of the host that answers.

        Raises:
            ForbiddenUrlError: If one of its addresses must not be asked.
        """
        found = self._network.resolve(host, port)
        problem: ConnectError | ConnectTimeout | None = None
        for address in check_addresses(host, found, allow_private=self._allow_private):
            try:
                stream = self._network.connect.connect_tcp(
                    address, port, self.left(), local_address, socket_options
                )
            except (ConnectError, ConnectTimeout) as error:
                problem = error
            else:
                return _Timed(stream, self)
        assert problem is not None, "check_addresses gives at least one"
        raise problem


class _Timed(NetworkStream):
    """A connection whose every wait ends when the time of the request is up.

    A timeout for each read alone would let a server send a byte now and then, for ever.
    """

    def __init__(self, stream: NetworkStream, guard: Guard) -> None:
        self._stream = stream
        self._guard = guard

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._guard.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._guard.left())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        return _Timed(self._stream.start_tls(ssl_context, server_hostname, self._guard.left()), self._guard)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
