"""Finds the session to use: a given one, the one of cassio, or a new one for a URL."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import unquote

from linkstore.core import calls
from linkstore.engines.cassandra import driver
from linkstore.engines.cassandra.driver import Session, auth, cluster, diagnose, make_error, policies
from linkstore.engines.cassandra.execution import Executor
from linkstore.engines.cassandra.statements import READ_KEYSPACE, ask, quote_identifier
from linkstore.errors import BackendError, MissingExtraError, StoreUnavailableError

USERNAME_VARIABLE: Final = "LINKSTORE_CASSANDRA_USERNAME"
PASSWORD_VARIABLE: Final = "LINKSTORE_CASSANDRA_PASSWORD"  # noqa: S105 - the name of a variable
_URL_FORM: Final = "cassandra://host:port/keyspace/table"
_PORT: Final = 9042
_PROTOCOL: Final = 5
"""The version of Cassandra 4 and later. By default the driver tries two versions of DataStax first."""
_CONNECT_TIMEOUT: Final = 10.0
_AGREEMENT: Final = 10.0
_RECONNECT_EVERY: Final = 1.0
_MAX_NAMED: Final = 5
"""So many of the keyspaces that there are."""
_HOST: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[^:@\[\]\s]+))(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddress:
    """A store in Cassandra, as a URL names it.

    Args:
        hosts: (host, port) of the contact points.
        keyspace: Its keyspace, spelled as in the schema.
        table: Its table, spelled as in the schema.
    """

    hosts: tuple[tuple[str, int], ...]
    keyspace: str
    table: str

    def __str__(self) -> str:
        return ", ".join(f"{host}:{port}" for host, port in self.hosts)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConnection:
    """A session opened for a URL. The caller must close it.

    Args:
        session: The driver's session, with its own cluster object.
        address: The address that it was opened for.
    """

    session: Session
    address: StoreAddress

    def close(self) -> None:
        """Close all connections. Closing twice is fine."""
        self.session.cluster.shutdown()


def resolve_session(session: Session | None, keyspace: str | None) -> tuple[Session, str]:
    """Find the session and the keyspace to use.

    Args:
        session: The driver's. None: the one ``cassio.init`` made.
        keyspace: None: the session's own, else the one given to ``cassio.init``.

    Raises:
        BackendError: If there is no session, no keyspace, or no keyspace of that name.
    """
    found = session or _read_cassio("resolve_session")
    if found is None:
        raise BackendError(
            "no Cassandra session is given; pass session=… and keyspace=…, or call cassio.init(…) first"
        )
    chosen = keyspace or (session and session.keyspace) or _read_cassio("resolve_keyspace") or found.keyspace
    if not chosen:
        raise BackendError("no Cassandra keyspace is given; pass keyspace=…, or call cassio.init(keyspace=…)")
    check_keyspace(found, chosen)
    return found, chosen


def _read_cassio(name: Literal["resolve_session", "resolve_keyspace"]) -> Any:
    """Return what ``cassio.init`` was given or made, or None if it was not called."""
    try:
        from cassio import config
    except ImportError as error:
        raise MissingExtraError("a store in Cassandra", "cassandra") from error
    return getattr(config, name)()


def parse_address(url: str) -> StoreAddress:
    """Read a URL of the form ``cassandra://host:port/keyspace/table``.

    Several hosts are separated by commas, and the default port is 9042. Keyspace and table are named as in
    the schema, with ``%`` escapes where needed.

    Raises:
        BackendError: If it has another form.
    """
    if "@" in url:
        raise BackendError(
            "a URL must not contain a user name or password; set the environment variables"
            f" {USERNAME_VARIABLE} and {PASSWORD_VARIABLE}"
        )
    scheme, _, rest = url.partition("://")
    places, *names = rest.split("/")
    if scheme != "cassandra" or len(names) != 2 or not all(names):
        raise BackendError(f"{url!r} is not the URL of a Cassandra store; use {_URL_FORM}")
    keyspace, table = map(unquote, names)
    hosts = tuple(_parse_host(place, url) for place in places.split(","))
    return StoreAddress(hosts=hosts, keyspace=keyspace, table=table)


def _parse_host(place: str, url: str) -> tuple[str, int]:
    match = _HOST.fullmatch(place.strip())
    port = int((match and match["port"]) or _PORT)
    if not match or not 0 < port < 1 << 16:
        raise BackendError(f"{place!r} in {url!r} is not a host; use {_URL_FORM}")
    return match["six"] or match["name"], port


def connect_session(url: str) -> SessionConnection:
    """Open a session for a URL, see :func:`parse_address`.

    User name and password come from LINKSTORE_CASSANDRA_USERNAME and LINKSTORE_CASSANDRA_PASSWORD. A node
    has 10 seconds to answer. The session tries to reconnect to a lost node every second.

    Raises:
        BackendError: If the URL has another form, the login fails, or the keyspace does not exist.
        StoreUnavailableError: If no node answers.
    """
    address = parse_address(url)
    made = _make_cluster(address)
    try:
        session = made.connect()
        check_keyspace(session, address.keyspace)
    except driver.ERRORS as error:
        made.shutdown()
        raise make_error(diagnose(error), "connect", (str(address),)) from error
    except BackendError:
        made.shutdown()
        raise
    return SessionConnection(session=session, address=address)


def _make_cluster(address: StoreAddress) -> cluster.Cluster:
    profile = cluster.ExecutionProfile(
        load_balancing_policy=policies.TokenAwarePolicy(policies.DCAwareRoundRobinPolicy())
    )
    login = _read_login()
    try:
        return cluster.Cluster(
            contact_points=list(address.hosts),
            protocol_version=_PROTOCOL,
            port=address.hosts[0][1],
            auth_provider=login,
            connect_timeout=_CONNECT_TIMEOUT,
            control_connection_timeout=_CONNECT_TIMEOUT,
            reconnection_policy=policies.ConstantReconnectionPolicy(_RECONNECT_EVERY, max_attempts=None),
            execution_profiles={cluster.EXEC_PROFILE_DEFAULT: profile},
        )
    except cluster.UnresolvableContactPoints as error:
        raise StoreUnavailableError(
            f"could not connect to Cassandra: the host of {address} has no address; check its spelling"
        ) from error


def _read_login() -> auth.PlainTextAuthProvider | None:
    username, password = os.environ.get(USERNAME_VARIABLE), os.environ.get(PASSWORD_VARIABLE)
    if (username is None) != (password is None):
        raise BackendError(
            f"set both {USERNAME_VARIABLE} and {PASSWORD_VARIABLE} in the environment, or neither"
        )
    return auth.PlainTextAuthProvider(username, password) if username is not None else None


def check_keyspace(session: Session, keyspace: str) -> None:
    """Check that a keyspace exists. If it seems not to, the nodes have ten seconds to agree.

    Raises:
        BackendError: If it does not. The message says how to create it.
        StoreUnavailableError: If it seems not to, but the nodes do not agree.
    """
    metadata = session.cluster.metadata
    if keyspace in metadata.keyspaces or _is_in_schema(session, keyspace):
        return
    agreed = _has_schema_agreement(session)
    if _is_in_schema(session, keyspace):
        return
    if not agreed:
        raise StoreUnavailableError(
            f"a node of Cassandra has no keyspace {keyspace!r}, and after {_AGREEMENT:.0f} s the nodes do not"
            " agree on the schema; look at nodetool describecluster, and try again"
        )
    nodes = Counter(host.datacenter for host in metadata.all_hosts())
    copies = "".join(f", '{name}': {min(3, number)}" for name, number in sorted(nodes.items()))
    others = sorted(name for name in metadata.keyspaces if not name.startswith("system"))
    there = f" (it has {', '.join(map(repr, others[:_MAX_NAMED]))})" if others else ""
    raise BackendError(
        f"Cassandra has no keyspace {keyspace!r}{there}; check its spelling, also the case of letters, or"
        f" create it: CREATE KEYSPACE {quote_identifier(keyspace)}"
        f" WITH replication = {{'class': 'NetworkTopologyStrategy'{copies}}}"
    )


def _has_schema_agreement(session: Session) -> bool:
    """Say whether all nodes have the same schema within ten seconds."""
    try:
        return bool(session.cluster.control_connection.wait_for_schema_agreement(wait_time=_AGREEMENT))
    except driver.ERRORS as error:
        hosts = session.cluster.metadata.all_hosts()
        raise make_error(diagnose(error), "look for the keyspace", hosts) from error


def _is_in_schema(session: Session, keyspace: str) -> bool:
    """Say whether the server knows a keyspace that the driver does not.

    Such a keyspace may be new, or the driver may not follow the schema.
    """
    look = ask("look for the keyspace", READ_KEYSPACE, keyspace, level="one")
    return bool(calls.drive(look, Executor(session).run))
