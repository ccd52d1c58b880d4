"""Encrypted connections, what roles may do, and guardrails, with real servers that ask for them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable
from cassandra_server import Server, create_keyspace
from cassandra_server.machine import java_17
from cassandra_tables import split_early
from internals import CassandraSettings, connect_session
from langchain_core.documents import Document
from stores import embedding

from linkstore import Link, LinkStore, add_links
from linkstore.errors import BackendError, StoreUnavailableError

PASSWORD = "changeit"
LOGIN_SECONDS = 60
GUARDRAILS = {
    "page_size_fail_threshold": 1_000,
    "in_select_cartesian_product_fail_threshold": 25,
    "partition_keys_in_select_fail_threshold": 20,
    "items_per_collection_fail_threshold": 64,
}
ROLES: dict[str, object] = {
    "authenticator": "PasswordAuthenticator",
    "authorizer": "CassandraAuthorizer",
    "role_manager": "CassandraRoleManager",
    "permissions_validity": "100ms",
    "roles_validity": "100ms",
}
TABLES = ("", "_settings", "_pages", "_accesses", "_texts", "_members", "_words")


def document(name: str, *links: Link, **metadata: Any) -> Document:
    made = Document(id=name, page_content=f"about {name}", metadata=metadata)
    add_links(made, *links)
    return made


# --- TLS --------------------------------------------------------------------------------------


def keytool(*arguments: str) -> None:
    """Run Java's tool for keys and certificates."""
    tool = Path(java_17()).with_name("keytool")
    subprocess.run([tool, *arguments, "-storepass", PASSWORD], check=True, capture_output=True)


@pytest.mark.long
def test_a_url_opens_a_store_by_encrypted_connections(own_cassandra, tmp_path) -> None:
    """And is told what is wrong where the certificate is of somebody unknown, or of another host."""
    keys, ca = tmp_path / "keys.p12", tmp_path / "ca.pem"
    pair = ("-genkeypair", "-alias", "node", "-keyalg", "EC", "-dname", "CN=node", "-storetype", "PKCS12")
    keytool(*pair, "-ext", "san=dns:elsewhere", "-keystore", str(keys))
    keytool("-exportcert", "-rfc", "-alias", "node", "-keystore", str(keys), "-file", str(ca))
    encrypted = {"enabled": True, "keystore": str(keys), "keystore_password": PASSWORD}
    server: Server = own_cassandra(settings={"client_encryption_options": encrypted})
    place = f"cassandra://{server.host}:{server.port}/system/peers"
    for query, message in (
        ("?tls=verify-ca", r"encrypted connection .*self-signed.*ca=… in the URL"),
        (f"?ca={ca}", r"encrypted connection .*mismatch.*tls=verify-ca"),
        ("", r"connection was lost|no node is reachable|refused"),
    ):
        with pytest.raises((BackendError, StoreUnavailableError), match=message):
            connect_session(place + query)
    connection = connect_session(f"{place}?tls=verify-ca&ca={ca}")
    try:
        create_keyspace(connection.session, "kept")
        store = LinkStore.cassandra(embedding(), session=connection.session, keyspace="kept", table="kb")
        store.add_documents([document("a")])
        assert store.get_by_ids(["a"])[0].page_content == "about a"
    finally:
        connection.close()


# --- roles and guardrails ---------------------------------------------------------------------


@contextmanager
def logged_in(server: Server, name: str, password: str) -> Iterator[Any]:
    """A session of a role."""
    login = PlainTextAuthProvider(name, password)
    cluster = Cluster([server.host], port=server.port, protocol_version=5, auth_provider=login)
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


@pytest.fixture(scope="module")
def guarded(cassandra_possible) -> Iterator[Server]:
    """A server with roles, and guardrails, which hold for all roles but the superuser's."""
    with Server(settings=ROLES | GUARDRAILS) as server:
        until = time.monotonic() + LOGIN_SECONDS
        while True:
            try:
                with logged_in(server, "cassandra", "cassandra"):
                    break
            except NoHostAvailable:  # the server makes its first role once it is ready
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)
        yield server


@pytest.fixture
def role(guarded) -> Iterator[Callable[..., Any]]:
    """Makes roles with permissions, and returns their sessions."""
    with ExitStack() as opened:
        admin = opened.enter_context(logged_in(guarded, "cassandra", "cassandra"))
        create_keyspace(admin, "kept")

        def make(name: str, *grants: str) -> Any:
            admin.execute(f"CREATE ROLE IF NOT EXISTS {name} WITH PASSWORD = 'p' AND LOGIN = true")
            for grant in grants:
                admin.execute(f"GRANT {grant} TO {name}")
            return opened.enter_context(logged_in(guarded, name, "p"))

        yield make


def use(session: Any, table: str, settings: CassandraSettings | None = None) -> LinkStore:
    """Open or create a store, and do with it what an application does."""
    store = LinkStore.cassandra(embedding(), session=session, keyspace="kept", table=table, settings=settings)
    store.add_documents([document(f"d{n}", Link.bidir(kind="k", tag=f"t{n % 9}"), n=n) for n in range(60)])
    assert len(store.get_by_ids([f"d{n}" for n in range(60)])) == 60
    assert store.search("about d1", k=2, filter={"n": 1})[0].document.id == "d1"
    assert store.verify().sound
    store.delete([f"d{n}" for n in range(30)])
    assert store.survey().documents == 30
    return store


@pytest.mark.long
def test_the_documented_permissions_are_enough_and_others_are_named(role) -> None:
    founder = role("founder", "CREATE ON KEYSPACE kept", "MODIFY ON KEYSPACE kept")
    use(founder, "kb")
    each = [f"ON TABLE kept.kb{end}" for end in TABLES]
    use(role("app", *(f"SELECT {on}" for on in each), *(f"MODIFY {on}" for on in each)), "kb")
    reader = role("reader", *(f"SELECT {on}" for on in each))
    store = LinkStore.cassandra(embedding(), session=reader, keyspace="kept", table="kb")
    assert store.search("about d40", k=1)[0].document.id == "d40"
    assert store.verify().sound
    for work in (
        lambda: store.add_documents([document("more")]),
        lambda: LinkStore.cassandra(embedding(), session=reader, keyspace="kept", table="other"),
    ):
        with pytest.raises(
            BackendError, match=r"no (MODIFY|CREATE) permission .*SELECT and MODIFY to use it"
        ):
            work()


@pytest.mark.long
@pytest.mark.parametrize("splitting", [False, True])
def test_a_store_is_used_under_guardrails(role, splitting, monkeypatch) -> None:
    if splitting:
        split_early(monkeypatch)
    store = use(
        role("anybody", *(f"{what} ON KEYSPACE kept" for what in ("CREATE", "SELECT", "MODIFY"))),
        f"guarded{splitting}",
    )
    with pytest.raises(BackendError, match=r"guardrail items_per_collection .* 70 items.* metadata fields"):
        store.add_documents([document("many", **{f"f{n}": n for n in range(70)})])
