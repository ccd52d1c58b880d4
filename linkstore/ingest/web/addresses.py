"""Decides which network addresses may be connected to.

A crawler goes where pages tell it to, so whoever writes a page could make it speak to the services
behind the user's firewall (server-side request forgery). Only addresses of the public internet are
allowed, by the special-purpose registries of IANA (RFC 6890), which are written out here: what the
standard library says of an address differs between versions of Python.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

from linkstore.ingest.web.errors import ForbiddenUrlError

_Networks = tuple[tuple[IPv4Network | IPv6Network, str], ...]


def _networks(*pairs: tuple[str, str]) -> _Networks:
    return tuple(
        (IPv6Network(block) if ":" in block else IPv4Network(block), meaning) for block, meaning in pairs
    )


_PRIVATE: Final = _networks(
    ("127.0.0.0/8", "loopback"),
    ("10.0.0.0/8", "private"),
    ("172.16.0.0/12", "private"),
    ("192.168.0.0/16", "private"),
    ("100.64.0.0/10", "shared by a provider"),
    ("::1/128", "loopback"),
    ("fc00::/7", "private"),
)
"""Allowed on demand."""

_NEVER: Final = _networks(
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
        reason = refusal(address, allow_private=allow_private)
        if reason is not None:
            shown = host if host == address else f"{host} is {address}, which"
            raise ForbiddenUrlError(f"{shown} is not requested: {reason}")
    return found


def refusal(address: str, *, allow_private: bool = False) -> str | None:
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
