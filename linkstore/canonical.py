"""The one spelling of an absolute URL: see :mod:`linkstore.urls`, whose rules about it are kept here."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

SCHEMES: Final = frozenset({"http", "https", "ftp", "file"})
"""Schemes with pages behind them; every other, such as ``mailto:``, is skipped."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ftp": 21}
_LONGEST_HOST: Final = 253
_NOT_IN_HOSTS: Final = re.compile(r'[\x00-\x20"#%/<>?@\\^`{|}\x7f-\xa0]')
_MORE_SLASHES: Final = re.compile(r"^(https?:)/{3,}", re.IGNORECASE)
"""Browsers take any number of slashes for two."""
_STRAY_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def canonical_url(url: str) -> str | None:
    """Return an absolute URL without fragment in its one spelling, or None if no page lies behind it.

    Raises:
        ValueError: If it cannot be parsed.
    """
    parts = urlsplit(_MORE_SLASHES.sub(r"\1//", url))
    host = parts.hostname or ""
    if parts.scheme not in SCHEMES:
        return None
    if not host.isascii():
        host = _punycode(host)
    if not host and parts.scheme != "file":
        return None
    authority = f"[{host}]" if ":" in host else host
    if parts.port not in (None, _DEFAULT_PORTS.get(parts.scheme)):
        authority += f":{parts.port}"
    # A percent sign that encodes nothing could do so once what follows it is decoded; and w3lib treats
    # what follows a semicolon unlike the rest of the path.
    path = _STRAY_PERCENT.sub("%25", parts.path).replace(";", "%3B")
    from w3lib.url import canonicalize_url  # late: it imports an HTTP client, which takes 20 ms

    canonical: str = canonicalize_url(urlunsplit((parts.scheme, authority, path, parts.query, "")))
    host = canonical.split("/", 3)[2]
    if not host:  # of a file: with more slashes, it would be read as having a host
        canonical = f"file:///{canonical[7:].lstrip('/')}"
    return canonical if not _NOT_IN_HOSTS.search(host) and (host or parts.scheme == "file") else None


def _punycode(host: str) -> str:
    """Return a host name in ASCII, as browsers write it: ``faß.example`` is not ``fass.example``.

    This is UTS #46, not transitional. The characters that registries allow are not checked.

    Raises:
        ValueError: If it is not the name of a host.
    """
    if len(host) > _LONGEST_HOST:
        raise ValueError("a host name has 253 characters at most")
    import idna

    labels = idna.uts46_remap(host, std3_rules=False, transitional=False).split(".")
    return ".".join(one if one.isascii() else f"xn--{one.encode('punycode').decode()}" for one in labels)
