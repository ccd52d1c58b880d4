"""Where a session comes from, how a URL is read, and which node owns which partition."""

from __future__ import annotations

import random
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

import cassio.config
from cassandra import cluster
from cassandra.connection import ConnectionShutdown
from cassandra.cqltypes import Int32Type, UTF8Type
from cassandra.metadata import KeyspaceMetadata, Metadata
from cassandra.policies import HostDistance
from cassandra.pool import Host
from cassandra.protocol import ColumnMetadata
from cassandra.query import PreparedStatement
from fake_cassandra import FakeSession
from internals import Placement, StoreAddress, connect_session, parse_address, resolve_session

from linkstore.errors import BackendError, StoreUnavailableError

VECTOR = "org.apache.cassandra.db.marshal.VectorType(org.apache.cassandra.db.marshal.FloatType, 3)"


# --- URLs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "hosts", "keyspace", "table"),
    [
        ("cassandra://h:9043/ks/t", (("h", 9043),), "ks", "t"),
        ("cassandra://h/ks/t", (("h", 9042),), "ks", "t"),
        ("cassandra://a,b:9043/ks/t", (("a", 9042), ("b", 9043)), "ks", "t"),
        ("cassandra://[::1]:9043/Ks/my%20t%2Fx", (("::1", 9043),), "Ks", "my t/x"),
    ],
)
def test_a_url_names_hosts_keyspace_and_table(url, hosts, keyspace, table):
    assert parse_address(url) == StoreAddress(hosts=hosts, keyspace=keyspace, table=table)


@pytest.mark.parametrize(
    "url",
    [
        "cassandra://h:9042/ks",
        "cassandra://h:9042/ks/",
        "cassandra://h:9042/ks/t/more",
        "cassandra:///ks/t",
        "cassandra://h:no/ks/t",
        "cassandra://h:70000/ks/t",
        "cassandra://a,,b/ks/t",
        "http://h/ks/t",
        "ks/t",
        "",
    ],
)
def test_a_url_of_another_form_is_refused_with_the_form(url):
    with pytest.raises(BackendError, match="cassandra://host:port/keyspace/table"):
        parse_address(url)


def test_a_password_in_a_url_is_refused_and_not_repeated():
    with pytest.raises(BackendError, match="LINKSTORE_CASSANDRA_USERNAME") as error:
        parse_address("cassandra://me:secret@h/ks/t")
    assert "secret" not in error.value.message


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("tls=verify-full", {"tls": "verify-full"}),
        ("tls=verify-ca&ca=/etc/my%20ca.pem", {"tls": "verify-ca", "ca": "/etc/my ca.pem"}),
        ("cert=c.pem&key=k.pem", {"tls": "verify-full", "cert": "c.pem", "key": "k.pem"}),
    ],
)
def test_a_url_says_how_connections_are_encrypted(query, options):
    expected = StoreAddress(hosts=(("h", 9042),), keyspace="ks", table="t", **options)
    assert parse_address(f"cassandra://h/ks/t?{query}") == expected


def test_a_url_names_a_bundle_in_place_of_hosts():
    address = parse_address("cassandra:///ks/t?bundle=/home/me/secure.zip")
    assert (address.hosts, address.bundle, str(address)) == ((), "/home/me/secure.zip", "/home/me/secure.zip")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("cassandra://h/ks/t?pasword=hunter2", "unknown in the URL of a store: pasword; use tls, ca, cert"),
        ("cassandra://h/ks/t?tls=hunter2", "tls .* must be verify-full or verify-ca"),
        ("cassandra://h/ks/t?key=hunter2", "cert and key need each other"),
        ("cassandra://h/ks/t?ca=", "ca has no value"),
        ("cassandra://h/ks/t?bundle=b.zip", "a bundle has hosts"),
        ("cassandra:///ks/t?bundle=b.zip&ca=x", "a bundle has hosts"),
        ("cassandra://me:hunter2/ks/t", "'me:…' in a URL is not a host"),
        ("cassandra://h/ks?password=hunter2", "not the URL of a Cassandra store"),
        ("cassandra://me:hunter2/ks", "not the URL of a Cassandra store"),
    ],
)
def test_what_is_wrong_in_a_url_is_said_and_no_secret_is_repeated(url, message):
    with pytest.raises(BackendError, match=message) as error:
        parse_address(url)
    assert "hunter2" not in error.value.message


def test_nodes_that_are_found_have_the_port_of_all_hosts_and_else_the_default(monkeypatch):
    options = []
    monkeypatch.setattr(cluster, "Cluster", lambda **given: options.append(given) or 1 / 0)
    for hosts in ("a:9043,b:9043", "a:9043,b:9044"):
        with pytest.raises(ZeroDivisionError):
            connect_session(f"cassandra://{hosts}/ks/t")
    assert [given["port"] for given in options] == [9043, 9042]
    assert [given["ssl_context"] for given in options] == [None, None]


# --- connecting -------------------------------------------------------------------------------


def test_a_closed_port_is_said_with_host_and_advice():
    began = time.monotonic()
    with pytest.raises(StoreUnavailableError, match=r"connect: Cassandra at 127\.0\.0\.1:1: .*reachable"):
        connect_session("cassandra://127.0.0.1:1/ks/t")
    assert time.monotonic() - began < 10


def test_a_host_that_is_not_known_is_said():
    with pytest.raises(StoreUnavailableError, match=r"nowhere\.invalid:9042.*spelling"):
        connect_session("cassandra://nowhere.invalid/ks/t")


@pytest.mark.parametrize("content", [None, b"no zip", b""])
def test_a_bundle_that_cannot_be_read_is_named(tmp_path, content):
    bundle = tmp_path / "secure.zip"
    if content is not None:
        bundle.write_bytes(content)
    with pytest.raises(BackendError, match=r"bundle .*secure\.zip cannot be read .*: download it again"):
        connect_session(f"cassandra:///ks/t?bundle={bundle}")


def test_certificates_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(BackendError, match=r"certificates for h:9042 cannot be read .*: check .*ca\.pem"):
        connect_session(f"cassandra://h/ks/t?ca={tmp_path}/ca.pem")


def test_half_a_login_is_refused(monkeypatch):
    monkeypatch.setenv("LINKSTORE_CASSANDRA_USERNAME", "me")
    monkeypatch.delenv("LINKSTORE_CASSANDRA_PASSWORD", raising=False)
    with pytest.raises(BackendError, match="LINKSTORE_CASSANDRA_PASSWORD"):
        connect_session("cassandra://127.0.0.1:1/ks/t")


# --- a session given, or made by cassio ---------------------------------------------------------


@pytest.fixture
def no_cassio(monkeypatch):
    """As if ``cassio.init`` had not been called."""
    monkeypatch.setattr(cassio.config, "default_session", None)
    monkeypatch.setattr(cassio.config, "default_keyspace", None)
    return monkeypatch


def session_with(*keyspaces, own=None):
    """A session whose cluster has keyspaces; it finds no others on the server."""
    session = FakeSession(lambda request: request.answer([]))
    session.cluster.metadata.keyspaces.update(dict.fromkeys(keyspaces, object()))
    node = SimpleNamespace(datacenter="east", endpoint="10.0.0.7:9042")
    session.cluster.metadata.all_hosts = lambda: [node] * 5
    session.keyspace = own
    return session


def test_what_is_given_is_used(no_cassio):
    session = session_with("mine", "other", own="other")
    assert resolve_session(session, "mine") == (session, "mine")
    assert resolve_session(session, None) == (session, "other")


def test_what_cassio_was_given_is_used_where_nothing_is(no_cassio):
    theirs, mine = session_with("theirs"), session_with("mine", "theirs")
    no_cassio.setattr(cassio.config, "default_session", theirs)
    no_cassio.setattr(cassio.config, "default_keyspace", "theirs")
    assert resolve_session(None, None) == (theirs, "theirs")
    assert resolve_session(mine, "mine") == (mine, "mine")
    assert resolve_session(mine, None) == (mine, "theirs")


def test_without_a_session_both_ways_to_one_are_named(no_cassio):
    with pytest.raises(BackendError, match=r"session=.*cassio\.init"):
        resolve_session(None, "mine")


def test_without_a_keyspace_both_ways_to_one_are_named(no_cassio):
    with pytest.raises(BackendError, match=r"keyspace=.*cassio\.init"):
        resolve_session(session_with("mine"), None)


def test_a_missing_keyspace_is_an_error_that_says_how_to_create_it(no_cassio):
    with pytest.raises(BackendError) as error:
        resolve_session(session_with("mine"), 'o"ther')
    assert 'create it: CREATE KEYSPACE "o""ther"' in error.value.message
    assert "'NetworkTopologyStrategy', 'east': 3}" in error.value.message


def test_a_keyspace_that_the_node_asked_does_not_know_yet_is_found_when_the_nodes_agree(no_cassio):
    """The first node was not told of it; once they agree, it knows it too."""
    agreed = []
    session = FakeSession(lambda request: request.answer([("late",)] if agreed else []))
    session.cluster.control_connection.wait_for_schema_agreement = lambda **given: not agreed.append(given)
    assert resolve_session(session, "late") == (session, "late")
    assert agreed == [{"wait_time": 10}]


def test_nodes_that_do_not_agree_are_named_as_the_cause(no_cassio):
    session = session_with("mine")
    session.cluster.control_connection.wait_for_schema_agreement = lambda **given: False
    with pytest.raises(StoreUnavailableError, match=r"no keyspace 'late'.*do not agree.*describecluster"):
        resolve_session(session, "late")


def test_a_connection_lost_while_nodes_agree_is_an_error_of_the_store(no_cassio):
    def lost(**given):
        raise ConnectionShutdown("lost")

    session = session_with("mine")
    session.cluster.control_connection.wait_for_schema_agreement = lost
    with pytest.raises(StoreUnavailableError, match=r"could not look for the keyspace: .*lost"):
        resolve_session(session, "late")


# --- placement ----------------------------------------------------------------------------------


def ring_of(tokens, replicas=1, down=(), far=()):
    """A session that knows a ring: its nodes' tokens, by address."""
    metadata = Metadata()
    hosts = {address: Host(address, Conviction, host_id=address) for address in tokens}
    for address, host in hosts.items():
        host.is_up = address not in down
        host.set_location_info("east", "rack")
        metadata.add_or_return_host(host)
    metadata.rebuild_token_map(
        "org.apache.cassandra.dht.Murmur3Partitioner",
        {hosts[address]: [str(token) for token in own] for address, own in tokens.items()},
    )
    strategy = "org.apache.cassandra.locator.SimpleStrategy"
    keyspace = KeyspaceMetadata("ks", True, strategy, {"replication_factor": str(replicas)})
    metadata.keyspaces["ks"] = keyspace

    def distance(host):
        return HostDistance.REMOTE if host.address in far else HostDistance.LOCAL

    cluster = SimpleNamespace(metadata=metadata, profile_manager=SimpleNamespace(distance=distance))
    return SimpleNamespace(cluster=cluster), metadata


class Conviction:
    def __init__(self, host):
        self.host = host


def random_ring(seed, nodes=5, each=8):
    source = random.Random(seed)
    return {f"10.0.0.{n}": [source.randrange(-(2**63), 2**63) for _ in range(each)] for n in range(nodes)}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("table", ["members", "documents"])
def test_keys_are_grouped_by_the_replica_that_the_driver_names(table, seed):
    """With the routing key that the driver itself derives for a prepared statement."""
    session, metadata = ring_of(random_ring(seed), replicas=3)
    source = random.Random(seed)
    keys = [(f"tag {source.random()} ä", source.randrange(9)) for _ in range(300)]
    keys = keys if table == "members" else [key[:1] for key in keys]
    shares = Placement(session, "ks").by_replica({packed(key): at for at, key in enumerate(keys)})
    owner = {}
    for positions, routing in shares:
        first = {replica_of(metadata, keys[position]) for position in positions}
        assert len(first) == 1
        assert metadata.get_replicas("ks", routing)[0] in first
        owner[first.pop()] = positions
    assert len(owner) == len(shares) > 1
    assert sorted(position for positions, _ in shares for position in positions) == list(range(300))


def packed(key):
    """The columns of a key as they are sent."""
    return tuple(kind.serialize(value, 5) for kind, value in zip([UTF8Type, Int32Type], key, strict=False))


def replica_of(metadata, key):
    """The first replica of a key, as the driver finds it for a prepared statement."""
    types = [UTF8Type, Int32Type][: len(key)]
    columns = [ColumnMetadata("ks", "t", f"c{i}", kind) for i, kind in enumerate(types)]
    prepared = PreparedStatement(columns, b"id", list(range(len(key))), "q", None, 5, [], b"")
    return metadata.get_replicas("ks", prepared.bind(key).routing_key)[0]


def test_a_node_that_is_down_or_far_is_passed_over():
    tokens = {"near": [0], "far": [-(2**62)], "down": [2**62]}
    session, _ = ring_of(tokens, replicas=3, down={"down"}, far={"far"})
    keys = {(b"k%d" % i,): i for i in range(50)}
    assert len(Placement(session, "ks").by_replica(keys)) == 1
    assert len(Placement(ring_of(tokens, replicas=3)[0], "ks").by_replica(keys)) == 3


def test_a_ring_that_changes_is_seen():
    session, metadata = ring_of({"a": [0], "b": [1]})
    keys = {(b"k%d" % i,): i for i in range(200)}
    placement = Placement(session, "ks")
    before = sorted(len(share) for share, _ in placement.by_replica(keys))
    hosts = {host.address: host for host in metadata.all_hosts()}
    metadata.rebuild_token_map(
        "org.apache.cassandra.dht.Murmur3Partitioner",
        {hosts["a"]: [str(-(2**63) + 1)], hosts["b"]: [str(0)]},
    )
    after = sorted(len(share) for share, _ in placement.by_replica(keys))
    assert before == [200]
    assert min(after) > 50


def test_with_one_node_or_no_ring_all_are_in_one_group_and_no_keys_are_in_none():
    alone, _ = ring_of({"a": [0]})
    blind, metadata = ring_of(random_ring(1))
    metadata.token_map = None
    for session in (alone, blind):
        (share,) = Placement(session, "ks").by_replica({(b"a",): 0, (b"b",): 1})
        assert share == ([0, 1], None)
        assert Placement(session, "ks").by_replica({}) == []
