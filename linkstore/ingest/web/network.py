"""Connections that lead only to allowed addresses, and end when their time is up.

Decides which network addresses may be connected to.

A crawler goes where pages tell it to, so whoever writes a page could make it speak to the services
behind the user's firewall (server-side request forgery). Only addresses of the public internet are
allowed, by the special-purpose registries of IANA (RFC 6890), which are written out here: what the
standard library says of an address differs between versions of Python.

Connections that lead only to checked addresses, and end when their time is up.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final

from linkstore.ingest.web.libraries import (
    SOCKET_OPTION,
    ConnectError,
    ConnectTimeout,
    NetworkBackend,
    NetworkStream,
    ReadTimeout,
    SyncBackend,
)
from linkstore.ingest.web.targets import FetchError, ForbiddenUrlError

_Networks = tuple[tuple[IPv4Network | IPv6Network, str], ...]


def _parse_networks(*pairs: tuple[str, str]) -> _Networks:
    return tuple(
        (IPv6Network(block) if ":" in block else IPv4Network(block), meaning) for block, meaning in pairs
    )


_PRIVATE: Final = _parse_networks(
    ("127.0.0.0/8", "loopback"),
    ("10.0.0.0/8", "private"),
    ("172.16.0.0/12", "private"),
    ("192.168.0.0/16", "private"),
    ("100.64.0.0/10", "shared by a provider"),
    ("::1/128", "loopback"),
    ("fc00::/7", "private"),
)
"""Allowed on demand."""

_NEVER: Final = _parse_networks(
    ("0.0.0.0/8", "this host"),
    ("169.254.0.0/16", "link-local"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "for documentation"),
    ("192.31.196.0/24", "reserved"),
    ("192.52.193.0/24", "reserved"),
    ("192.88.99.0/24", "6to4"),
    ("192.175.48.0/24", "reserved"),
    ("198.18.0.0/15", "for benchmarks"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::ffff:0:0/96", "an IPv4 address inside IPv6"),
    ("64:ff9b::/96", "NAT64"),
    ("64:ff9b:1::/48", "NAT64"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "6to4"),
    ("2620:4f:8000::/48", "reserved"),
    ("3fff::/20", "for documentation"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "site-local"),
    ("ff00::/8", "multicast"),
)
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)
"""Bits 64 to 96 of an address that holds an IPv4 address by RFC 5214."""


def check_addresses(host: str, addresses: Iterable[str], *, allow_private: bool) -> list[str]:
    """Return the addresses of a host, provided that it may be connected to at all of them.

    Args:
        host: As the URL names it, for the message.
        addresses: What its name was resolved to. One that is forbidden forbids all: an honest name does
            not lead to the public internet and behind a firewall at once.
        allow_private: Whether loopback and private addresses are allowed too.

    Raises:
        ForbiddenUrlError: If there is no address, or a forbidden one.
    """
    found = list(addresses)
    if not found:
        raise ForbiddenUrlError(f"{host} has no address")
    for address in found:
        reason = explain_refusal(address, allow_private=allow_private)
        if reason is not None:
            shown = host if host == address else f"{host} is {address}, which"
            raise ForbiddenUrlError(f"{shown} is not requested: {reason}")
    return found


def explain_refusal(address: str, *, allow_private: bool = False) -> str | None:
    """Explain why an address must not be connected to, or return None if it may.

    Args:
        address: An IPv4 or IPv6 address.
        allow_private: Whether loopback and private addresses are allowed. Link-local ones, where clouds
            keep their credentials, never are.
    """
    try:
        one = ip_address(address)
    except ValueError:
        return "it is not an IP address"
    if isinstance(one, IPv6Address) and one.scope_id:
        return "it is link-local"
    for network, meaning in _PRIVATE:
        if one in network:
            return (
                None if allow_private else f"it is {meaning}; --allow-private (allow_private) would allow it"
            )
    for network, meaning in _NEVER:
        if one in network:
            return f"it is {meaning}"
    if isinstance(one, IPv6Address):
        if one not in _GLOBAL_UNICAST:
            return "it is reserved"
        if (int(one) >> 32) & 0xFFFF_FFFF in _ISATAP:
            return "it is an IPv4 address inside IPv6"
    return None


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
