"""Bodies of responses, decoded within bounds."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from linkstore.ingest.web.errors import FetchError

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
        return b"".join(_capped(chunks, max_bytes))
    if coding in _CODINGS:
        return b"".join(_capped(inflated(_capped(chunks, max_bytes)), max_bytes))
    raise FetchError(f"its Content-Encoding {coding[:80]!r} was not asked for")


def inflated(chunks: Iterable[bytes]) -> Iterator[bytes]:
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
    unpacker = zlib.decompressobj(_window_bits(head))
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


def _window_bits(head: bytes) -> int:
    """Return how zlib is to read data that begin like this: as gzip, zlib (RFC 1950) or bare deflate."""
    if head.startswith(GZIP):
        return zlib.MAX_WBITS | 16
    is_zlib = head[0] & 0x0F == zlib.DEFLATED and int.from_bytes(head[:2], "big") % 31 == 0
    return zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS


def _capped(chunks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            raise FetchError(f"it has more than the {max_bytes:,} bytes allowed")
        yield chunk
