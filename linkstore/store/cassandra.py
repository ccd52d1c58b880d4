"""Makes Cassandra backends from a session or a URL. Needs the extra ``cassandra``."""

from __future__ import annotations

from linkstore.core.arguments import omit_none, require_having
from linkstore.engines.cassandra.backend import CassandraBackend
from linkstore.engines.cassandra.driver import Session
from linkstore.engines.cassandra.session import StoreAddress, connect_session, parse_address, resolve_session
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import Tables
from linkstore.store.base import close_on_failure


def make_session_backend(
    session: Session | None,
    keyspace: str | None,
    table: str,
    *,
    create: bool = True,
    settings: CassandraSettings | None = None,
) -> CassandraBackend:
    """Make a backend on the given session or that of ``cassio.init``. Closing it leaves the session open.

    Args:
        session: None: that of cassio.
        keyspace: None: the session's own, else that of cassio.
        table: The store's name in the keyspace.
        create: Create its tables if they do not exist.
        settings: See :class:`CassandraSettings`.

    Raises:
        BackendError: If the session or the keyspace is missing, or the name is not valid for tables.
        StoreNotFoundError: If the store does not exist and ``create`` is False.
        StoreUnavailableError: If no server answers.
    """
    require_having(
        "execute_async", "a session, such as Cluster([...]).connect()", **omit_none(session=session)
    )
    driver_session, chosen = resolve_session(session, keyspace)
    return CassandraBackend(driver_session, chosen, table, create=create, settings=settings)


def make_url_backend(
    url: str, *, create: bool = True, settings: CassandraSettings | None = None
) -> CassandraBackend:
    """Make a backend with its own session, which it closes.

    Args:
        url: ``cassandra://host:port/keyspace/table``.
        create: Create its tables if they do not exist.
        settings: See :class:`CassandraSettings`.

    Raises:
        BackendError: If the URL is malformed, the login fails, or the keyspace does not exist.
        StoreNotFoundError: If the store does not exist and ``create`` is False.
        StoreUnavailableError: If no server answers.
    """
    parse_store_url(url)
    connection = connect_session(url)
    session, address = connection.session, connection.address
    with close_on_failure(connection):
        return CassandraBackend(
            session,
            address.keyspace,
            address.table,
            create=create,
            settings=settings,
            close_session=connection.close,
        )


def parse_store_url(url: str, *, of_store: bool = True) -> StoreAddress:
    """Read the URL of a store, or of any table, without connecting.

    Raises:
        BackendError: If the URL has another form, or the name is not valid for tables.
    """
    address = parse_address(url)
    if of_store:
        Tables(address.keyspace, address.table)
    return address
