"""How pages are read, whatever source they come from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import xxhash

from linkstore.core.arguments import omit_none, require, require_at_least, require_list
from linkstore.core.urls import DEFAULT_POLICY, Site, UrlPolicy
from linkstore.extract.html import find_encoding
from linkstore.ingest.chunks import DEFAULT_LIMITS, ChunkLimits
from linkstore.ingest.documents import ClaimPolicy, Claims
from linkstore.ingest.files import name_path


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    """How the pages of a source are named and read; a change makes the next run read all of them again.

    Args:
        prefix: Path below which the source is stored, next to others, such as ``"3.13"``. The ids and tags of
            its pages begin with it, and ``metadata["site"]`` of its documents is the prefix.
        bases: Public base URLs of the site; None (default) finds them by ``rel=canonical``.
        policy: For URLs that leave the site.
        limits: How long chunks are.
        max_bytes: Maximum size of a file; larger files are skipped; default 16 MiB.
        encoding: Encoding of all pages, whatever they declare; a byte-order mark still wins. None (default)
            takes what each declares, else UTF-8, else windows-1252, as browsers do.

    Raises:
        ArgumentError: If a setting has the wrong type, such as one URL instead of a tuple of them.
        StrategyError: If ``max_bytes`` is not an integer of at least 1, or ``encoding`` is unknown.
        LinkError: If the prefix is not a path, or a base is not an absolute URL.
    """

    prefix: str = ""
    bases: tuple[str, ...] | None = None
    policy: UrlPolicy = DEFAULT_POLICY
    limits: ChunkLimits = DEFAULT_LIMITS
    max_bytes: int = 16 * 2**20
    encoding: str | None = None

    def __post_init__(self) -> None:
        require(str, "a path", prefix=self.prefix)
        require_list("URLs", **omit_none(bases=self.bases))
        require(UrlPolicy, "a UrlPolicy", policy=self.policy)
        require(ChunkLimits, "a ChunkLimits", limits=self.limits)
        require(str, "the name of an encoding", **omit_none(encoding=self.encoding))
        if self.encoding is not None:
            find_encoding(self.encoding)
        require_at_least(1, max_bytes=self.max_bytes)
        self.make_site(self.bases or ())

    def make_site(self, bases: tuple[str, ...]) -> Site:
        """Return the site of the pages, at these public URLs."""
        return Site(bases=bases, policy=self.policy, prefix=self.prefix)


@dataclass(frozen=True, slots=True)
class PathSettings(PageSettings):
    """The same of a source that lies at a path.

    Args:
        path: Where it lies.
        claims: ``"any"`` also accepts pages that claim URLs of another site: see
            :mod:`linkstore.ingest.documents`. Their own site is that of ``bases``, or that of most pages.

    Raises:
        ArgumentError: If there is no such policy.
    """

    path: str | Path
    _: KW_ONLY
    claims: ClaimPolicy = "own"

    def __post_init__(self) -> None:
        PageSettings.__post_init__(self)
        Claims(self.claims)

    @property
    def name(self) -> str:
        """The absolute path, which names the source within a store.

        Raises:
            ArgumentError: If it is no path.
        """
        return name_path(self.path)


def hash_values(*values: Any) -> str:
    """Return a hash of values that is the same in each process and on each machine.

    Args:
        values: JSON, dataclasses, tuples, sets and mappings, nested as they like. The order of sets and of
            mappings does not count.

    Raises:
        TypeError: If a value is of another type, whose text may differ between processes.
    """
    # ASCII, so that lone surrogates are told apart too.
    serialised = json.dumps(list(map(_simplify, values)), sort_keys=True, separators=(",", ":"))
    return xxhash.xxh3_128_hexdigest(serialised.encode())


def _simplify(value: Any) -> Any:
    """Return a value as JSON, with sets in the order of their serialised members."""
    if value is None or isinstance(value, str | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: _simplify(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {json.dumps(_simplify(key)): _simplify(part) for key, part in value.items()}
    if isinstance(value, AbstractSet):
        return sorted(map(_simplify, value), key=json.dumps)
    if isinstance(value, list | tuple):
        return list(map(_simplify, value))
    raise TypeError(f"cannot hash {value!r}, a {type(value).__name__}: serialise it first")
