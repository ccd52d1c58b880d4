"""Backends in Cassandra, for a session or for a URL. Importing this needs the extra ``cassandra``."""

from __future__ import annotations

from linkstore.backends.cassandra.backend import CassandraBackend
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.settings import CassandraSettings
from linkstore.backends.cassandra.transport.driver import Session
from linkstore.backends.cassandra.transport.session import Address, connect, parse_address, resolve_session


def backend_on(
    session: Session | None,
    keyspace: str | None,
    table: str,
    *,
    create: bool = True,
    settings: CassandraSettings | None = None,
) -> CassandraBackend:
    """A backend on a session that is given, or was made by ``cassio.init``; closing it leaves that open.

    Args:
        session: None: that of cassio.
        keyspace: None: the session's own, else that of cassio.
        table: The store's name in the keyspace.
        create: Make its tables if they are not there.
        settings: See :class:`CassandraSettings`.

    Raises:
        BackendError: If there is no session or keyspace, or the name is no name for tables.
        StoreNotFoundError: If there is no store and ``create`` is False.
        StoreUnavailableError: If no server answers.
    """
    found, chosen = resolve_session(session, keyspace)
    return CassandraBackend(found, chosen, table, create=create, settings=settings)


def backend_at(
    url: str, *, create: bool = True, settings: CassandraSettings | None = None
) -> CassandraBackend:
    """A backend with a session of its own, which is closed with it.

    Args:
        url: ``cassandra://host:port/keyspace/table``.
        create: Make its tables if they are not there.
        settings: See :class:`CassandraSettings`.

    Raises:
        BackendError: If the URL has another form, the login fails, or there is no such keyspace.
        StoreNotFoundError: If there is no store and ``create`` is False.
        StoreUnavailableError: If no server answers.
    """
    read_url(url)
    connection = connect(url)
    session, address = connection.session, connection.address
    try:
        return CassandraBackend(
            session,
            address.keyspace,
            address.table,
            create=create,
            settings=settings,
            close_session=connection.close,
        )
    except BaseException:
        connection.close()
        raise


def read_url(url: str, *, of_store: bool = True) -> Address:
    """Read the URL of a store, or of any table, without connecting.

    Raises:
        BackendError: If it has another form, or the name of a store's table is no name for tables.
    """
    address = parse_address(url)
    if of_store:
        Tables(address.keyspace, address.table)
    return address
