"""Requests to a web server that are safe to make: the only place where linkstore sends any.

A crawler goes where pages tell it to, so whoever writes a page could make it speak to the services
behind the user's firewall (server-side request forgery). Only addresses of the public internet are
allowed, by the special-purpose registries of IANA (RFC 6890), which are written out here: what the
standard library says of an address differs between versions of Python. Connections lead only to checked
addresses, end when their time is up, and bodies are read within bounds.
"""

from __future__ import annotations

import socket
import ssl
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import chain
from typing import Any, Final, Self, TypedDict

from httpcore2 import (
    SOCKET_OPTION,
    URL,
    ConnectError,
    ConnectionPool,
    ConnectTimeout,
    NetworkBackend,
    NetworkError,
    NetworkStream,
    ProtocolError,
    ReadTimeout,
    SyncBackend,
    TimeoutException,
)

from linkstore.errors import FetchError, ForbiddenUrlError
from linkstore.ingest.web.targets import (
    RequestTarget,
    UnknownHostError,
    WebSettings,
    make_absolute_url,
    read_target,
)

GZIP: Final = b"\x1f\x8b"
"""The first bytes of a gzip file."""
_RATIO: Final = 200
_FREE: Final = 2**20
_STEP: Final = 2**18
_CODINGS: Final = frozenset({"gzip", "x-gzip", "deflate"})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_DRAINED: Final = 2**16
"""The body of a redirect is read up to here, so that its connection can be used again."""
_IDLE: Final = 30.0
_CONNECTIONS: Final = 4
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)
"""Bits 64 to 96 of an address that holds an IPv4 address by RFC 5214."""


def _parse_networks(blocks: Mapping[str, str]) -> Mapping[IPv4Network | IPv6Network, str]:
    return {ip_network(block): meaning for meaning, listed in blocks.items() for block in listed.split()}


_PRIVATE: Final = _parse_networks(
    {
        "loopback": "127.0.0.0/8 ::1/128",
        "private": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
        "shared by a provider": "100.64.0.0/10",
    }
)
"""Allowed on demand."""

_NEVER: Final = _parse_networks(
    {
        "this host": "0.0.0.0/8",
        "link-local": "169.254.0.0/16 fe80::/10",
        "site-local": "fec0::/10",
        "for documentation": "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",
        "for benchmarks": "198.18.0.0/15",
        "multicast": "224.0.0.0/4 ff00::/8",
        "6to4": "192.88.99.0/24 2002::/16",
        "NAT64": "64:ff9b::/96 64:ff9b:1::/48",
        "an IPv4 address inside IPv6": "::ffff:0:0/96",
        "reserved": "192.0.0.0/24 192.31.196.0/24 192.52.193.0/24 192.175.48.0/24 240.0.0.0/4 2001::/23"
        " 2620:4f:8000::/48",
    }
)
"""No two of them overlap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer of a server.

    Args:
        url: The URL that answered, after redirects.
        status: The HTTP status; 300 to 399 if a redirect was not followed.
        headers: By name, in lower case; the last of several.
        body: Decoded; empty if it was not wanted.
        hops: The URLs that redirected to ``url``, in order.
        location: Where it redirects to, if that was not followed.
    """

    url: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    hops: tuple[str, ...] = ()
    location: str | None = None


def get_media_type(headers: Mapping[str, str]) -> str:
    """Return the media type that headers declare, without parameters, in lower case, empty if none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


PREFER_MARKDOWN: Final = "text/markdown,text/html;q=0.9,application/xhtml+xml;q=0.9,*/*;q=0.5"
"""Markdown has no navigation to leave out, and every server has HTML."""
PREFER_HTML: Final = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"


class RequestOptions(TypedDict, total=False):
    """What :meth:`Fetcher.fetch` takes beside the URL, and where to follow redirects."""

    headers: Mapping[str, str] | None
    accept: str
    wanted: Callable[[Mapping[str, str]], bool] | None
    max_bytes: int | None


class Fetcher:
    """Asks web servers; one thread at a time.

    No cookies, no credentials and no proxies are used, whatever the environment says.

    Args:
        settings: How much a server may take of its visitor, and what may be asked.
        ports: Allowed ports besides 80 and 443.
        network: How to resolve and connect.
    """

    def __init__(
        self, settings: WebSettings, *, ports: frozenset[int] = frozenset(), network: Network | None = None
    ) -> None:
        self._settings = settings
        self.ports: Final = ports
        network = network or Network()
        self._guard = AddressGuard(network, allow_private=settings.allow_private)
        self._pool = ConnectionPool(
            ssl_context=network.ssl_context,
            max_connections=_CONNECTIONS,
            keepalive_expiry=_IDLE,
            network_backend=self._guard,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def fetch(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        accept: str = PREFER_MARKDOWN,
        follow: Callable[[str], bool] = lambda _: True,
        wanted: Callable[[Mapping[str, str]], bool] | None = None,
        max_bytes: int | None = None,
    ) -> Response:
        """Ask for a URL, and for those it redirects to: each is checked as the first one.

        Args:
            url: An absolute URL. See :func:`~linkstore.ingest.web.targets.read_target` for the rules.
            headers: Sent to this URL, but not to those it redirects to.
            accept: The media types that are asked for.
            follow: Whether to go where a redirect leads, default always.
            wanted: Whether to read a body, by its headers, default always. Only bodies of status 200 are
                read.
            max_bytes: Instead of the limit of the settings.

        Raises:
            ForbiddenUrlError: If the URL, its address, or one that it redirects to must not be asked.
            FetchError: If there is no answer in time, or the answer is malformed or too large, or there
                are too many redirects.
        """
        hops: list[str] = []
        limit = self._settings.max_bytes if max_bytes is None else max_bytes
        while True:
            target = read_target(url, self.ports)
            sent = {"Accept": accept, **((headers or {}) if not hops else {})}
            asked = self._ask(target, sent, wanted, limit)
            location = _find_location(asked)
            if location is None or not follow(location):
                return replace(asked, url=url, hops=tuple(hops), location=location)
            hops.append(url)
            if location in hops:
                raise FetchError(f"it redirects in a circle, by {location}")
            if len(hops) > self._settings.max_redirects:
                raise FetchError(f"more than {self._settings.max_redirects} redirects")
            url = location

    def _ask(
        self,
        target: RequestTarget,
        headers: Mapping[str, str],
        wanted: Callable[[Mapping[str, str]], bool] | None,
        max_bytes: int,
    ) -> Response:
        self._guard.start(self._settings.timeout)
        with (
            _translate_errors(),
            self._pool.stream(
                "GET",
                URL(
                    scheme=target.scheme.encode(),
                    host=target.host.encode(),
                    port=target.port,
                    target=target.path.encode(),
                ),
                headers=[
                    ("Host", target.authority),
                    ("User-Agent", self._settings.user_agent),
                    ("Accept-Encoding", "gzip, deflate"),
                    *headers.items(),
                ],
            ) as raw,
        ):
            pairs = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in raw.headers)
            fields = {name.lower(): value.strip() for name, value in pairs}
            if raw.status == 200 and (wanted is None or wanted(fields)):
                declared = fields.get("content-length", "")
                if declared.isdecimal() and int(declared) > max_bytes:
                    raise FetchError(f"it has {int(declared):,} bytes, more than the {max_bytes:,} allowed")
                coding = fields.get("content-encoding", "")
                body = read_body(raw.iter_stream(), coding=coding, max_bytes=max_bytes)
            else:
                body = b""
                if raw.status != 200:
                    _drain(raw.iter_stream())
            return Response(url=target.url, status=raw.status, headers=fields, body=body)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise errors of the library below as linkstore's own."""
    try:
        yield
    except TimeoutException as error:
        raise FetchError("no complete answer in time", again=True) from error
    except NetworkError as error:
        refused = isinstance(error.__cause__, ssl.SSLError) or isinstance(error.__context__, ssl.SSLError)
        raise FetchError(f"no connection: {error}", again=not refused) from error
    except ProtocolError as error:
        raise FetchError(f"the answer is not valid HTTP: {error}", again=True) from error


def _find_location(response: Response) -> str | None:
    written = response.headers.get("location")
    if response.status not in _REDIRECTS or not written:
        return None
    # Servers send UTF-8 here although headers are Latin-1 by RFC 9110.
    return make_absolute_url(written.encode("latin-1").decode(errors="replace"), response.url)


def _drain(chunks: Iterable[bytes]) -> None:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > _DRAINED:
            return


def read_body(chunks: Iterable[bytes], *, coding: str, max_bytes: int) -> bytes:
    """Read and decode a body.

    Args:
        chunks: As they arrive.
        coding: The value of ``Content-Encoding``: gzip, deflate or nothing. Anything else was not asked
            for. Several one over the other are refused.
        max_bytes: A body that is longer, before or after decoding, is refused, as is one that unpacks
            to more than 200 times its size (once beyond 1 MiB): both without unpacking the rest.

    Raises:
        FetchError: If the body is too large, or cannot be decoded.
    """
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return b"".join(_cap_bytes(chunks, max_bytes))
    if coding in _CODINGS:
        return b"".join(_cap_bytes(inflate_body(_cap_bytes(chunks, max_bytes)), max_bytes))
    raise FetchError(f"its Content-Encoding {coding[:80]!r} was not asked for")


def inflate_body(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Unpack gzip (of one member or several), zlib or bare deflate data, in pieces of 256 KiB.

    Raises:
        FetchError: If the data are damaged, end early, or unpack to more than 200 times their size.
    """
    source = iter(chunks)
    head = b""
    while len(head) < len(GZIP) and (more := next(source, None)) is not None:
        head += more
    if not head:
        return
    unpacker = zlib.decompressobj(_choose_window_bits(head))
    taken = unpacked = 0
    for chunk in chain((head,), source):
        taken += len(chunk)
        waiting, full = chunk, False
        while waiting or full:
            if unpacker.eof:
                if not waiting.startswith(GZIP[:1]):
                    return  # What follows the last member is padding.
                unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                piece = unpacker.decompress(waiting, _STEP)
            except zlib.error as error:
                raise FetchError(f"its compressed body is damaged: {error}", again=True) from error
            waiting, full = unpacker.unconsumed_tail or unpacker.unused_data, len(piece) == _STEP
            unpacked += len(piece)
            if unpacked > max(_FREE, _RATIO * taken):
                raise FetchError(f"it unpacks to more than {_RATIO} times its size")
            yield piece
    if not unpacker.eof:
        raise FetchError("its compressed body ends early", again=True)


def _choose_window_bits(head: bytes) -> int:
    """Return how zlib is to read data that begin like this: as gzip, zlib (RFC 1950) or bare deflate."""
    if head.startswith(GZIP):
        return zlib.MAX_WBITS | 16
    is_zlib = head[0] & 0x0F == zlib.DEFLATED and int.from_bytes(head[:2], "big") % 31 == 0
    return zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS


def _cap_bytes(chunks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise FetchError(f"it has more than the {max_bytes:,} bytes allowed")
        yield chunk


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
    listed = list(addresses)
    if not listed:
        raise ForbiddenUrlError(f"{host} has no address")
    for address in listed:
        reason = explain_refusal(address, allow_private=allow_private)
        if reason is not None:
            shown = host if host == address else f"{host} is {address}, which"
            raise ForbiddenUrlError(f"{shown} is not requested: {reason}")
    return listed


def explain_refusal(address: str, *, allow_private: bool = False) -> str | None:
    """Explain why an address must not be connected to, or return None if it may.

    Args:
        address: An IPv4 or IPv6 address.
        allow_private: Whether loopback and private addresses are allowed. Link-local ones, where clouds
            keep their credentials, never are.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return "it is not an IP address"
    if isinstance(parsed, IPv6Address) and parsed.scope_id:
        return "it is link-local"
    for network, meaning in _PRIVATE.items():
        if parsed in network:
            return (
                None if allow_private else f"it is {meaning}; --allow-private (allow_private) would allow it"
            )
    for network, meaning in _NEVER.items():
        if parsed in network:
            return f"it is {meaning}"
    if isinstance(parsed, IPv6Address):
        if parsed not in _GLOBAL_UNICAST:
            return "it is reserved"
        if (int(parsed) >> 32) & 0xFFFF_FFFF in _ISATAP:
            return "it is an IPv4 address inside IPv6"
    return None


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, in the order of preference of the system's resolver.

    Raises:
        UnknownHostError: If the name cannot be resolved.
    """
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise UnknownHostError(f"the host {host} is not found: {error.strerror}", again=True) from error
    except UnicodeError as error:
        raise FetchError(f"{host!r} is not a host name: {error}") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


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


class AddressGuard(NetworkBackend):
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
        addresses = self._network.resolve(host, port)
        problem: ConnectError | ConnectTimeout | None = None
        for address in check_addresses(host, addresses, allow_private=self._allow_private):
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

    def __init__(self, stream: NetworkStream, guard: AddressGuard) -> None:
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
