"""The only place where linkstore sends requests to a web server, and reads bodies within bounds.

Bodies of responses, decoded within bounds.

The only place where linkstore sends requests to a web server: all requests go through ``fetch``.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, Self

from linkstore.ingest.web.libraries import (
    URL,
    ConnectionPool,
    NetworkError,
    ProtocolError,
    RawResponse,
    TimeoutException,
)
from linkstore.ingest.web.network import Guard, Network
from linkstore.ingest.web.targets import FetchError, RequestTarget, make_absolute_url, read_target

GZIP: Final = b"\x1f\x8b"
"""The first bytes of a gzip file."""

_RATIO: Final = 200
_FREE: Final = 2**20
_STEP: Final = 2**18
_CODINGS: Final = frozenset({"gzip", "x-gzip", "deflate"})


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
    taken = given = 0
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
            given += len(piece)
            if given > max(_FREE, _RATIO * taken):
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


_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_DRAINED: Final = 2**16
"""The body of a redirect is read up to here, so that its connection can be used again."""
_IDLE: Final = 30.0
_CONNECTIONS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """How much a server may take of its visitor.

    Args:
        max_bytes: Of a body, before and after decoding; default 16 MiB. The header may have 100 KiB.
        timeout: Seconds for one request, from connecting to the last byte; default 30. How long a name
            server may take is the system's affair.
        max_redirects: On the way to one page; default 10.
    """

    max_bytes: int = 16 * 2**20
    timeout: float = 30.0
    max_redirects: int = 10


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

    @property
    def media_type(self) -> str:
        """The media type without parameters, in lower case, empty if none is declared."""
        return get_media_type(self.headers)


def get_media_type(headers: Mapping[str, str]) -> str:
    """Return the media type that headers declare, without parameters, in lower case, empty if none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _always_follow(_: str) -> bool:
    return True


class Fetcher:
    """Asks web servers; one thread at a time.

    No cookies, no credentials and no proxies are used, whatever the environment says.

    Args:
        user_agent: What the requests say they come from.
        limits: How much a server may take.
        allow_private: Whether loopback and private addresses may be asked.
        ports: Allowed ports besides 80 and 443.
        network: How to resolve and connect.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        limits: FetchLimits | None = None,
        allow_private: bool = False,
        ports: frozenset[int] = frozenset(),
        network: Network | None = None,
    ) -> None:
        self._user_agent = user_agent
        self._limits = limits or FetchLimits()
        self._ports = ports
        network = network or Network()
        self._guard = Guard(network, allow_private=allow_private)
        self._pool = ConnectionPool(
            ssl_context=network.ssl_context,
            max_connections=_CONNECTIONS,
            keepalive_expiry=_IDLE,
            network_backend=self._guard,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def fetch(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        follow: Callable[[str], bool] = _always_follow,
        wanted: Callable[[Mapping[str, str]], bool] | None = None,
        max_bytes: int | None = None,
    ) -> Response:
        """Ask for a URL, and for those it redirects to: each is checked as the first one.

        Args:
            url: An absolute URL. See :func:`~linkstore.ingest.web.targets.read_target` for the rules.
            headers: Sent to this URL, but not to those it redirects to.
            follow: Whether to go where a redirect leads, default always.
            wanted: Whether to read a body, by its headers, default always. Only bodies of status 200 are
                read.
            max_bytes: Instead of the fetcher's own limit.

        Raises:
            ForbiddenUrlError: If the URL, its address, or one that it redirects to must not be asked.
            FetchError: If there is no answer in time, or the answer is malformed or too large, or there
                are too many redirects.
        """
        hops: list[str] = []
        limit = self._limits.max_bytes if max_bytes is None else max_bytes
        while True:
            target = read_target(url, self._ports)
            asked = self._ask(target, (headers or {}) if not hops else {}, wanted, limit)
            location = _find_location(asked)
            if location is None or not follow(location):
                return replace(asked, url=url, hops=tuple(hops), location=location)
            hops.append(url)
            if location in hops:
                raise FetchError(f"it redirects in a circle, by {location}")
            if len(hops) > self._limits.max_redirects:
                raise FetchError(f"more than {self._limits.max_redirects} redirects")
            url = location

    def _ask(
        self,
        target: RequestTarget,
        headers: Mapping[str, str],
        wanted: Callable[[Mapping[str, str]], bool] | None,
        max_bytes: int,
    ) -> Response:
        self._guard.start(self._limits.timeout)
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
                headers=self._headers(target, headers),
            ) as raw,
        ):
            found = _read_headers(raw)
            if raw.status == 200 and (wanted is None or wanted(found)):
                _check_length(found, max_bytes)
                coding = found.get("content-encoding", "")
                body = read_body(raw.iter_stream(), coding=coding, max_bytes=max_bytes)
            else:
                body = b""
                if raw.status != 200:
                    _drain(raw.iter_stream())
            return Response(url=target.url, status=raw.status, headers=found, body=body)

    def _headers(self, target: RequestTarget, more: Mapping[str, str]) -> list[tuple[str, str]]:
        return [
            ("Host", target.authority),
            ("User-Agent", self._user_agent),
            ("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"),
            ("Accept-Encoding", "gzip, deflate"),
            *more.items(),
        ]


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


def _read_headers(raw: RawResponse) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in raw.headers}


def _find_location(response: Response) -> str | None:
    written = response.headers.get("location")
    if response.status not in _REDIRECTS or not written:
        return None
    # Servers send UTF-8 here although headers are Latin-1 by RFC 9110.
    return make_absolute_url(written.encode("latin-1").decode(errors="replace"), response.url)


def _check_length(headers: Mapping[str, str], max_bytes: int) -> None:
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes:
        raise FetchError(f"it has {int(declared):,} bytes, more than the {max_bytes:,} allowed")


def _drain(chunks: Iterable[bytes]) -> None:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > _DRAINED:
            return
