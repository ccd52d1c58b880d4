"""Hostile requests to the server over HTTP: each is refused, and the server answers the next one."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvicorn
from internals import HttpLimits, _make_impatient_protocol, list_allowed_hosts
from langchain_core.documents import Document
from mcp_serving import JSON_HEADERS, QUESTION, TOKEN, read_reply, request, sent, serving
from uvicorn.server import ServerState

from linkstore import LinkStore


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    path = tmp_path_factory.mktemp("http") / "kb"
    with LinkStore.open(path) as store:
        store.add_documents([Document(id="a", page_content="a text")])
    with serving(path, "--allow-host", "kb.example.org") as port:
        yield port


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """A server that waits for little, and not for long."""
    path = tmp_path_factory.mktemp("hasty") / "kb"
    LinkStore.open(path).close()
    with serving(path, head=1.5, upload=1.5, connections=8) as port:
        yield port


def answers(port: int) -> bool:
    """Whether the server answers a good request."""
    reply = request(port)
    return reply.status == 200 and reply.json()["result"] == {}


@pytest.fixture(autouse=True)
def still_answering(port):
    yield
    assert answers(port)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:PORT", "localhost:PORT", "LOCALHOST:PORT", "[::1]:PORT", "kb.example.org"]
)
def test_allowed_hosts_are_answered(port, host):
    assert request(port, headers={"Host": host.replace("PORT", str(port))}).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:PORT",
        "localhost",
        "127.0.0.1",
        "localhost:1",
        "localhost:PORT.evil.example",
        "localhost:PORT@evil.example",
        "evil.example@localhost:PORT",
        "localhost.evil.example:PORT",
        "127.0.0.1.evil.example:PORT",
        "127.0.0.1:PORT#",
        "127.0.0.1:PORT/",
        "127.0.0.2:PORT",
        "127.1:PORT",
        "2130706433:PORT",
        "0.0.0.0:PORT",
        "[::ffff:127.0.0.1]:PORT",
        "localhost.:PORT",
        "sub.kb.example.org",
        "kb.example.org:PORT",
        "localhost:PORT, evil.example",
    ],
)
def test_other_hosts_are_refused(port, host):
    reply = request(port, headers={"Host": host.replace("PORT", str(port))})
    assert reply.status == 421
    assert TOKEN not in reply.body.decode()


def test_a_request_without_host_or_with_two_is_refused(port):
    assert request(port, headers={"Host": ""}).status == 400
    assert request(port, also=(("Host", f"127.0.0.1:{port}"),)).status in {400, 421}


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "https://evil.example:PORT",
        "http://localhost",
        "http://localhost:1",
        "http://localhost:PORT.evil.example",
        "http://localhost.evil.example:PORT",
        "http://evil.example/?http://localhost:PORT",
        "file://",
        "chrome-extension://abcdef",
        "http://localhost:PORT/",
        "*",
    ],
)
def test_other_origins_are_refused(port, origin):
    assert request(port, headers={"Origin": origin.replace("PORT", str(port))}).status == 403


def test_the_own_origin_and_none_are_answered_two_are_not(port):
    own = f"http://localhost:{port}"
    assert request(port, headers={"Origin": own}).status == 200
    assert request(port, headers={"Origin": own}, also=(("Origin", "http://evil.example"),)).status == 403


def test_no_answer_allows_pages_of_other_origins_to_read_it(port):
    reply = request(port, headers={"Origin": f"http://localhost:{port}"})
    assert not [name for name in reply.headers if name.startswith("access-control")]
    assert request(port, method="OPTIONS", body=b"", headers={"Origin": "http://evil.example"}).status == 403


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN.upper()}",
        f"Bearer  {TOKEN}",
        f"Bearer {TOKEN},{TOKEN}",
        f"Basic {TOKEN}",
        f"Token {TOKEN}",
        TOKEN,
        f"Bearer\t{TOKEN}",
        "Bearer " + "x" * 5000,
        "Bearer \xff\xfe",
    ],
)
def test_other_tokens_are_refused(port, value):
    reply = request(port, headers={"Authorization": value})
    assert reply.status == 401
    assert reply.headers["www-authenticate"] == "Bearer"


def test_two_tokens_and_a_token_in_the_address_are_refused(port):
    assert request(port, also=(("Authorization", f"Bearer {TOKEN}"),)).status == 401
    assert request(port, path=f"/mcp?token={TOKEN}", headers={"Authorization": ""}).status == 401


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "BREW"])
def test_only_post_is_answered(port, method):
    reply = request(port, method=method, body=b"")
    assert reply.status == 405
    assert reply.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "path",
    ["/", "//mcp", "/mcp/", "/MCP", "/%6dcp", "/mcp/../mcp", "/./mcp", "/mcp%00", "/mcp;x", "/etc/passwd",
     "/../../etc/passwd", "/mcp%2f..%2f", "/docs", "/.well-known/oauth-protected-resource", "*"],
)  # fmt: skip
def test_other_paths_are_not_there(port, path):
    assert request(port, path=path).status in {400, 404}


BODIES = {
    "nothing": b"",
    "no JSON": b"{not json",
    "a number": b"7",
    "null": b"null",
    "a text": b'"ping"',
    "an empty list": b"[]",
    "a batch": json.dumps([QUESTION] * 3).encode(),
    "no method": b'{"jsonrpc": "2.0", "id": 1}',
    "another version": b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}',
    "no UTF-8": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff\xfe"}',
    "a lone surrogate": b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}',
    "deep nesting": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":'
    + b"[" * 50_000
    + b"]" * 50_000
    + b"}",
    "a huge number": b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
    "not a number": b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    "an object as id": b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    "an unknown method": b'{"jsonrpc":"2.0","id":1,"method":"shutdown"}',
    "zero bytes": b"\x00" * 1000,
    "parameters of another sort": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}',
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_are_no_request_are_errors(port, name):
    reply = request(port, body=BODIES[name])
    assert reply.status in {200, 202, 400, 404}
    if reply.status == 200:
        assert "error" in reply.json()
    if reply.status == 202:  # taken for a notification, which has no answer
        assert reply.body == b""
    assert b"Traceback" not in reply.body
    assert b"site-packages" not in reply.body


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_bodies_of_another_type_are_refused(port, kind):
    """What a form of a page can send is none of what the server takes."""
    assert request(port, headers={"Content-Type": kind}).status in {400, 415}


def test_a_body_over_the_limit_is_refused_before_it_is_sent(port):
    reply = request(port, body=b"", headers={"Content-Length": str(10**12)})
    assert reply.status == 413
    large = b" " * (HttpLimits().body + 1)
    assert request(port, body=large).status in {413, 0}


def test_a_body_in_chunks_is_counted(port):
    head = _head(port, "Transfer-Encoding: chunked")
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    assert sent(port, head + chunk * 20 + b"0\r\n\r\n").status in {413, 0}


@pytest.mark.parametrize("length", ["-1", "+5", "1e3", "0x10", "5, 5", "five", "5 5"])
def test_lengths_that_are_none_are_refused(port, length):
    assert request(port, headers={"Content-Length": length}).status in {400, 413}


def test_two_ways_to_say_the_length_are_not_read_as_two_requests(port):
    """Request smuggling: what follows the first request is not answered as a second one."""
    smuggled = f"GET /admin HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
    head = _head(port, "Transfer-Encoding: chunked", "Content-Length: 4")
    reply = sent(port, head + b"0\r\n\r\n" + smuggled)
    assert reply.body.count(b"HTTP/1.1") == 0
    assert reply.status in {200, 400, 413}


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST /mcp HTTP/9.9\r\n\r\n",
        b"\x00" * 100,
        b"POST /mcp HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        b"POST /" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHo\x00st: a\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(port, data):
    assert sent(port, data).status in {0, 400, 401, 404, 421, 431}


def test_an_upgrade_to_websockets_is_none(port):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    reply = request(port, method="GET", body=b"", headers={**upgrade, "Sec-WebSocket-Key": "x" * 22 + "=="})
    assert reply.status == 405


def test_a_client_that_sends_no_headers_is_dropped(hasty):
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", hasty), timeout=50) as connection:
        connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
        read_reply(connection)
    assert time.monotonic() - start > 1
    assert answers(hasty)


def test_a_body_that_trickles_in_is_cut_off(hasty):
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", hasty), timeout=50) as connection:
        connection.sendall(_head(hasty, "Content-Length: 1000"))
        connection.settimeout(0.2)
        reply = b""
        while time.monotonic() - start < 50 and not reply:
            connection.sendall(b" ")
            try:
                reply = connection.recv(1000)
            except TimeoutError:
                continue
    assert b" 408 " in reply
    assert time.monotonic() - start > 1
    assert answers(hasty)


def test_many_idle_connections_leave_room_once_they_are_dropped(hasty):
    """More than the limit are turned away with 503; after the time for headers all is well again."""
    idle: list[socket.socket] = []
    try:
        for _ in range(20):  # on a slow machine the first may be dropped before the last is open
            idle += [socket.create_connection(("127.0.0.1", hasty), timeout=50) for _ in range(8)]
            if (status := request(hasty).status) == 503:
                break
        assert status == 503
        for connection in idle:
            read_reply(connection)
    finally:
        for connection in idle:
            connection.close()
    assert answers(hasty)


def test_each_connection_answers_one_request(port):
    """So nobody can keep one open, or hide a second request behind the first."""
    one = _head(port, f"Content-Length: {len(json.dumps(QUESTION))}") + json.dumps(QUESTION).encode()
    reply = sent(port, one * 3)
    assert reply.headers["connection"] == "close"
    assert reply.body.count(b"jsonrpc") == 1


async def test_nothing_is_kept_of_a_connection_that_is_closed():
    config = uvicorn.Config(lambda *_: None, http=_make_impatient_protocol(HttpLimits()))
    config.load()
    made: list[weakref.ref] = []

    def protocol():
        one = config.http_protocol_class(config=config, server_state=ServerState(), app_state={})
        made.append(weakref.ref(one))
        return one

    async with await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"no http\r\n\r\n")
        await reader.read()
        writer.close()
        for _ in range(300):
            await asyncio.sleep(0.1)
            gc.collect()
            if made[0]() is None:
                break
        assert [one() for one in made] == [None]


def test_many_clients_at_once_are_answered(port):
    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(lambda _: request(port).status == 200, range(100)))


@pytest.mark.parametrize(
    ("host", "number", "names"),
    [
        ("127.0.0.1", 80, {"127.0.0.1:80", "localhost:80", "[::1]:80"}),
        ("0.0.0.0", 8765, {"0.0.0.0:8765"}),
    ],
)
def test_the_names_of_an_address(host, number, names):
    assert list_allowed_hosts(host, number) == names
    assert list_allowed_hosts(host, number, ("KB.example.org",)) == names | {"kb.example.org"}


def _head(port: int, *lines: str) -> bytes:
    """The head of a good request with more lines."""
    given = {"Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {TOKEN}", **JSON_HEADERS}
    head = [f"{name}: {value}" for name, value in given.items()]
    return "\r\n".join(["POST /mcp HTTP/1.1", *head, *lines, "", ""]).encode()
