"""Finds the session to use: a given one, the one of cassio, or a new one for a URL."""

from __future__ import annotations

import os
import re
import ssl
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, unquote
from zipfile import BadZipFile

from linkstore.core import calls
from linkstore.engines.cassandra import driver
from linkstore.engines.cassandra.driver import Session, auth, cluster, diagnose, make_error, policies
from linkstore.engines.cassandra.execution import Executor
from linkstore.engines.cassandra.statements import READ_KEYSPACE, ask, quote_identifier
from linkstore.errors import BackendError, MissingExtraError, StoreUnavailableError

USERNAME_VARIABLE: Final = "LINKSTORE_CASSANDRA_USERNAME"
PASSWORD_VARIABLE: Final = "LINKSTORE_CASSANDRA_PASSWORD"  # noqa: S105 - the name of a variable
_URL_FORM: Final = "cassandra://host:port/keyspace/table"
_BUNDLE_FORM: Final = "cassandra:///keyspace/table?bundle=…"
_PORT: Final = 9042
_PROTOCOL: Final = 5
"""The version of Cassandra 4 and later. By default the driver tries two versions of DataStax first."""
_ASTRA_PROTOCOL: Final = 4
VERIFY_FULL: Final = "verify-full"
VERIFY_CA: Final = "verify-ca"
_OPTIONS: Final = ("tls", "ca", "cert", "key", "bundle")
_SECRET: Final = re.compile(r"(?<=[^/:]):(?!\d{1,5}(?:[,/]|$)|//)[^,/]*|\?.*")
"""What may be a password in a URL of another form."""
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
        tls: Whether connections are encrypted: ``verify-full`` also checks that certificates name the hosts,
            ``verify-ca`` only who signed them. None: not encrypted.
        ca: File of the certificates that may sign those of the nodes. None: those that the system trusts.
        cert: File of this client's certificate, if the server wants one.
        key: File of its private key, without a passphrase.
        bundle: Secure-connect bundle of Astra DB, which has hosts and certificates. Then ``hosts`` is empty.
    """

    hosts: tuple[tuple[str, int], ...]
    keyspace: str
    table: str
    tls: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    bundle: str | None = None

    def __str__(self) -> str:
        return self.bundle or ", ".join(f"{host}:{port}" for host, port in self.hosts)


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
    driver_session = session or _read_cassio("resolve_session")
    if driver_session is None:
        raise BackendError(
            "no Cassandra session is given; pass session=… and keyspace=…, or call cassio.init(…) first"
        )
    chosen = (
        keyspace
        or (session and session.keyspace)
        or _read_cassio("resolve_keyspace")
        or driver_session.keyspace
    )
    if not chosen:
        raise BackendError("no Cassandra keyspace is given; pass keyspace=…, or call cassio.init(keyspace=…)")
    check_keyspace(driver_session, chosen)
    return driver_session, chosen


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
    the schema, with ``%`` escapes where needed. After a ``?``, the other arguments of :class:`StoreAddress`
    may follow, such as ``?ca=/etc/ca.pem``. With one of these but ``bundle``, ``tls`` is ``verify-full`` by
    default.

    Raises:
        BackendError: If it has another form.
    """
    if "@" in url:
        raise BackendError(
            "a URL must not contain a user name or password; set the environment variables"
            f" {USERNAME_VARIABLE} and {PASSWORD_VARIABLE}"
        )
    scheme, _, rest = url.partition("://")
    path, _, query = rest.partition("?")
    places, *names = path.split("/")
    if scheme != "cassandra" or len(names) != 2 or not all(names):
        raise BackendError(f"{_hide_secrets(url)!r} is not the URL of a Cassandra store; use {_URL_FORM}")
    keyspace, table = map(unquote, names)
    options = _parse_options(query)
    if "bundle" in options:
        if places or len(options) > 1:
            raise BackendError(f"a bundle has hosts and certificates in it; use {_BUNDLE_FORM}")
        return StoreAddress(hosts=(), keyspace=keyspace, table=table, **options)
    hosts = tuple(map(_parse_host, places.split(",")))
    return StoreAddress(hosts=hosts, keyspace=keyspace, table=table, **options)


def _parse_options(query: str) -> dict[str, str]:
    """Read the options after the ``?`` of a URL. Messages do not repeat values, which may be secret."""
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := [name for name in options if name not in _OPTIONS]:
        raise BackendError(f"unknown in the URL of a store: {', '.join(unknown)}; use {', '.join(_OPTIONS)}")
    if empty := [name for name, value in options.items() if not value]:
        raise BackendError(f"in the URL of a store, {', '.join(empty)} has no value")
    if ("cert" in options) != ("key" in options):
        raise BackendError("in the URL of a store, cert and key need each other: a certificate and its key")
    if options and "bundle" not in options:
        options.setdefault("tls", VERIFY_FULL)
        if options["tls"] not in {VERIFY_FULL, VERIFY_CA}:
            raise BackendError(f"tls in the URL of a store must be {VERIFY_FULL} or {VERIFY_CA}")
    return options


def _parse_host(place: str) -> tuple[str, int]:
    match = _HOST.fullmatch(place.strip())
    port = int((match and match["port"]) or _PORT)
    if not match or not 0 < port < 1 << 16:
        raise BackendError(f"{_hide_secrets(place)!r} in a URL is not a host; use {_URL_FORM}")
    return match["six"] or match["name"], port


def _hide_secrets(url: str) -> str:
    return _SECRET.sub(lambda match: match[0][0] + "…", url)


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
    try:
        return cluster.Cluster(
            **(_find_nodes(address) if address.bundle is None else _open_bundle(address.bundle)),
            auth_provider=_read_login(),
            connect_timeout=_CONNECT_TIMEOUT,
            control_connection_timeout=_CONNECT_TIMEOUT,
            reconnection_policy=policies.ConstantReconnectionPolicy(_RECONNECT_EVERY, max_attempts=None),
            execution_profiles={cluster.EXEC_PROFILE_DEFAULT: profile},
        )
    except cluster.UnresolvableContactPoints as error:
        raise StoreUnavailableError(
            f"could not connect to Cassandra: the host of {address} has no address; check its spelling"
        ) from error
    except (BadZipFile, OSError, ValueError, KeyError) as error:
        if address.bundle is None:
            raise
        raise BackendError(
            f"the secure-connect bundle {address} cannot be read ({error}): download it again"
        ) from error
    except driver.ERRORS as error:  # of the service that knows the hosts of a bundle
        raise StoreUnavailableError(f"could not connect to Astra DB: {error}") from error


def _find_nodes(address: StoreAddress) -> dict[str, Any]:
    """Return the driver's options for hosts.

    Nodes that are found by others say their port. If they do not, it is that of all hosts, or the default.
    """
    ports = {port for _, port in address.hosts}
    return {
        "contact_points": list(address.hosts),
        "port": ports.pop() if len(ports) == 1 else _PORT,
        "protocol_version": _PROTOCOL,
        "ssl_context": _make_tls(address),
    }


def _open_bundle(bundle: str) -> dict[str, Any]:
    """Return the driver's options for Astra DB. Its files are unpacked beside other temporary files."""
    cloud = {"secure_connect_bundle": bundle, "use_default_tempdir": True}
    return {"cloud": cloud, "protocol_version": _ASTRA_PROTOCOL}


def _make_tls(address: StoreAddress) -> ssl.SSLContext | None:
    if address.tls is None:
        return None
    try:
        context = ssl.create_default_context(cafile=address.ca)
        if address.cert is not None:
            context.load_cert_chain(address.cert, address.key, password="")
    except OSError as error:
        files = ", ".join(filter(None, (address.ca, address.cert, address.key)))
        raise BackendError(
            f"the certificates for {address} cannot be read ({error}): check {files}. They must be in the"
            " form PEM, and the key without a passphrase"
        ) from error
    context.check_hostname = address.tls == VERIFY_FULL
    return context


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
