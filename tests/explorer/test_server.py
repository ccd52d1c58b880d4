"""The server lets in who has the token, under its own names, and answers everybody else with a reason."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from documented import linkstore
from internals import MOST_BODY, RequestGuard, Views, make_app, make_endpoint, make_tool_server, open_socket
from starlette.testclient import TestClient

from linkstore import LinkStore
from linkstore.cli import exits

TOKEN = "a-token-of-the-tests-0123456789"
HOSTS = frozenset({"127.0.0.1:8766", "localhost:8766"})
HOST = {"Host": "127.0.0.1:8766"}
AUTHORIZED = {**HOST, "Authorization": f"Bearer {TOKEN}"}


MCP_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
def client(store):
    return TestClient(make_app(Views(store), TOKEN, HOSTS), raise_server_exceptions=False)


@pytest.fixture(params=["the page", "MCP beside the page", "MCP alone"])
def ask(store, request):
    """Sends a request that is right but for its headers to one of the servers that share the guard."""
    endpoint = None if request.param == "the page" else make_endpoint(make_tool_server({"": store}))
    if endpoint is not None and request.param == "MCP alone":
        app = RequestGuard(endpoint, TOKEN, HOSTS)
    else:
        app = make_app(Views(store), TOKEN, HOSTS, endpoint)
    with TestClient(app, raise_server_exceptions=False) as client:

        def send(headers):
            if endpoint is None:
                return client.post("/api/store", headers=headers)
            return client.post("/mcp", headers={**MCP_HEADERS, **headers}, json=PING)

        yield send


WRONG_HOSTS = (
    "",
    "127.0.0.1",
    "127.0.0.1:80",
    "127.0.0.1:87660",
    "127.0.0.1:8766.evil.com",
    "localhost:8766.evil.com",
    "localhost.evil.com:8766",
    "localhost:8766@evil.com",
    "evil.com@localhost:8766",
    "evil.com",
    "evil.com:8766",
    "127.0.0.1.nip.io:8766",
    "[::1]:8766",
    "0.0.0.0:8766",
    "127.1:8766",
    "2130706433:8766",
    "0x7f000001:8766",
    "127.0.0.1:8766,evil.com",
    "localhost:8766/",
    "xn--lcalhost-c1a:8766",
    "localhost.:8766",
    " localhost:8766 x",
    "127.0.0.1:08766",
    "127.0.0.2:8766",
)
WRONG_ORIGINS = (
    "null",
    "http://evil.com",
    "https://evil.com",
    "http://evil.com:8766",
    "http://localhost:8766.evil.com",
    "http://localhost.evil.com:8766",
    "http://127.0.0.1",
    "http://127.0.0.1:80",
    "http://127.0.0.1:87660",
    "file://",
    "file://127.0.0.1:8766",
    "chrome-extension://127.0.0.1:8766",
    "http://127.0.0.1:8766/",
    "http://127.0.0.1:8766 http://evil.com",
    "http://user@127.0.0.1:8766",
    "//127.0.0.1:8766",
    "127.0.0.1:8766",
    "http://[::1]:8766",
    "ftp://127.0.0.1:8766",
    "",
)
WRONG_TOKENS = (
    None,
    "",
    TOKEN,
    f"Basic {TOKEN}",
    f"Bearer {TOKEN} ",
    f"Bearer  {TOKEN}",
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN}x",
    f"Bearer {TOKEN.upper()}",
    f"Bearer {TOKEN},{TOKEN}",
    f'Bearer "{TOKEN}"',
    "Bearer",
    "Bearer null",
    "Bearer undefined",
    f"Token {TOKEN}",
    f"bearer:{TOKEN}",
)


@pytest.mark.parametrize("host", WRONG_HOSTS)
def test_another_host_is_refused_with_the_token(ask, host):
    found = ask({**AUTHORIZED, "Host": host})
    assert found.status_code == 421
    assert "error" in found.json()


@pytest.mark.parametrize("host", WRONG_HOSTS)
def test_the_page_is_not_sent_under_another_host(client, host):
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("origin", WRONG_ORIGINS)
def test_pages_of_another_origin_are_refused_with_the_token(ask, origin):
    found = ask({**AUTHORIZED, "Origin": origin})
    assert found.status_code == 403
    assert "access-control-allow-origin" not in found.headers


@pytest.mark.parametrize("given", WRONG_TOKENS)
def test_data_need_the_token(ask, given):
    found = ask(HOST if given is None else {**HOST, "Authorization": given})
    assert found.status_code == 401
    assert found.json() == {"error": "the token is missing or wrong"}


@pytest.mark.parametrize("origin", [None, "http://127.0.0.1:8766", "http://LOCALHOST:8766"])
def test_pages_of_the_server_and_programs_may_ask(ask, origin):
    found = ask(AUTHORIZED if origin is None else {**AUTHORIZED, "Origin": origin})
    assert found.status_code == 200
    assert found.json().get("documents", 4) == 4
    assert found.json().get("result", {}) == {}


def test_the_page_needs_no_token_and_holds_none(client):
    found = client.get("/", headers=HOST)
    assert found.status_code == 200
    assert TOKEN not in found.text
    assert "guide" not in found.text


def test_the_page_may_load_nothing_but_what_is_in_it(client):
    found = client.get("/", headers=HOST)
    policy = dict(part.split(" ", 1) for part in found.headers["content-security-policy"].split("; "))
    assert policy.pop("default-src") == "'none'"
    assert policy.pop("frame-ancestors") == "'none'"
    assert policy.pop("script-src").startswith("'sha256-")
    assert policy.pop("style-src").startswith("'sha256-")
    assert policy == {
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "connect-src": "'self'",
    }
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"question": 1}', "question must be given"),
        (b"{}", "question must be given"),
        (b'{"question": "x", "settings": []}', "settings must be given"),
        (b'{"question": "x", "setting": {}}', "takes no 'setting'"),
        (b'{"question": "x", "settings": {"k": 1e9}}', "k must be"),
        (b'{"question": ""}', "blank"),
        (b'{"question": "%s"}' % (b"x" * 20_000), "up to 10,000"),
        (b'{"question": "%s"}' % (b"x" * MOST_BODY), "not JSON"),
        (b'{"question": "x", "settings": {"filter": {"a": {"$what": 1}}}}', "what"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(client, body, says):
    found = client.post("/api/answer", headers=AUTHORIZED, content=body)
    assert found.status_code == 400
    assert says in found.json()["error"]


def test_other_paths_and_methods_are_not_answered(client):
    assert client.get("/api/store", headers=AUTHORIZED).status_code == 405
    assert client.get("/../pyproject.toml", headers=AUTHORIZED).status_code == 404
    assert client.get("/static/explorer.js", headers=AUTHORIZED).status_code == 404
    assert client.post("/api/__class__", headers=AUTHORIZED).status_code == 400
    assert client.post("/", headers=AUTHORIZED).status_code == 405


def test_a_store_that_is_closed_meanwhile_is_said_to_be(client, store):
    store.close()
    found = client.post("/api/store", headers=AUTHORIZED)
    assert found.status_code == 400
    assert "closed" in found.json()["error"]


def test_a_fault_of_the_server_is_logged_and_not_told(client, store, monkeypatch, caplog):
    def broken():
        raise RuntimeError("a secret path")

    monkeypatch.setattr(store, "survey", broken)
    found = client.post("/api/store", headers=AUTHORIZED)
    assert found.status_code == 500
    assert found.json() == {"error": "the server failed; its log says why"}
    assert "a secret path" in caplog.text


def test_the_command_serves_the_page_and_mcp_with_one_token(site):
    command = [sys.executable, "-c", "from linkstore.cli import main; main()", "serve", "--store", str(site)]
    options = ["--port", "0", "--no-browser", "--token", TOKEN, "--mcp", "--about", "a site"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)

    def ask(path, token, body):
        headers = {"Authorization": f"Bearer {token}", **MCP_HEADERS}
        asked = urllib.request.Request(f"{base}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)

    try:
        base, token = re.match(
            r"open (http://127\.0\.0\.1:\d+)/#token=(\S+)", process.stderr.readline()
        ).groups()
        assert f"{base}/mcp" in process.stderr.readline()
        assert token == TOKEN
        for _ in range(100):  # it listens before it answers
            try:
                assert ask("/api/store", TOKEN, {})["documents"] == 4
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        tools = ask("/mcp", TOKEN, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})["result"]["tools"]
        assert "search" in {tool["name"] for tool in tools}
        assert "delete" not in {tool["name"] for tool in tools}
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask("/mcp", "another-token-0123456789", PING)
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.parametrize("words", [("serve", "--no-browser"), ("mcp", "--http")], ids=["serve", "mcp"])
def test_a_port_in_use_is_said_with_what_to_do(tmp_path, words):
    with LinkStore.open(tmp_path / "kb") as store:
        store.add_texts(["A hub has many links."])
    with open_socket("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        code, _, err = linkstore(*words, "--store", str(tmp_path / "kb"), "--port", port)

    assert code == exits.USAGE
    assert f"--port {port}: Address already in use; choose another one, or --port 0" in err
