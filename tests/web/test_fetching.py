"""One function does all fetching, and it goes nowhere it must not go."""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
import zlib

import pytest
from hostile_urls import HOSTILE, KINDS, NAMES
from httpcore2 import MockBackend
from internals import Fetcher, WebSettings, explain_refusal, make_absolute_url, read_body, read_target
from web_site import PUBLIC, Names, Reply, Time, Wires, moved, network, running

from linkstore.errors import FetchError, ForbiddenUrlError


def fetcher(net, ports=frozenset(), **more):
    return Fetcher(WebSettings(user_agent="linkstore/test", **more), ports=ports, network=net)


@contextlib.contextmanager
def visiting(pages, **more):
    """A site, and a fetcher to which every host named ``*.test`` is that site."""
    with running(pages) as site, fetcher(network(site), **more) as asking:
        yield site, asking


@pytest.fixture(scope="module")
def canary():
    """A server on every loopback address there is, that must see no connection."""
    heard = []
    found = [socket.create_server(("127.0.0.1", 0))]
    port = found[0].getsockname()[1]
    if socket.has_ipv6:
        with contextlib.suppress(OSError):  # A machine may have no IPv6.
            found.append(socket.create_server(("::1", port), family=socket.AF_INET6))
    for one in found:
        one.setblocking(False)

    class Canary:
        def __init__(self):
            self.port = port

        def visitors(self):
            for one in found:
                try:
                    heard.append(one.accept()[1])
                except BlockingIOError:
                    continue
            return heard

    yield Canary()
    for one in found:
        one.close()


def test_there_are_more_than_two_hundred_hostile_urls_and_the_canary_would_hear_them(canary):
    assert len(set(HOSTILE)) == len(HOSTILE) > 200
    with socket.create_connection(("127.1", canary.port)):
        assert canary.visitors()
    canary.visitors().clear()


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_urls_are_refused_before_any_connection(kind, canary):
    wires = Wires()
    net = network(connect=wires, resolve=Names({name: [found] for name, found in NAMES.items()}))
    with fetcher(net, ports=frozenset({canary.port})) as asking:
        for url in KINDS[kind]:
            with pytest.raises(ForbiddenUrlError):
                pytest.fail(f"{url} got {asking.fetch(url.replace('{port}', str(canary.port)))}")

    assert wires.connected == []
    assert canary.visitors() == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_a_hostile_url_is_refused_too(status, canary):
    urls = [url.replace("{port}", str(canary.port)) for url in HOSTILE]
    sendable = [url for url in urls if not set(url) & set("\r\n\x00")]
    pages = {f"/{n}": moved(url.encode().decode("latin-1"), status) for n, url in enumerate(sendable)}
    with running(pages) as site:
        wires = Wires(site)
        net = network(connect=wires, resolve=Names({name: [found] for name, found in NAMES.items()}))
        with fetcher(net, ports=frozenset({canary.port})) as asking:
            for n in range(len(sendable)):
                try:
                    answer = asking.fetch(f"http://docs.test/{n}")
                except FetchError:
                    continue
                # What is no absolute URL leads to another page of the same site.
                assert answer.url.startswith("http://docs.test/"), sendable[n]

    assert {host for host, _ in wires.connected} == {PUBLIC}
    assert canary.visitors() == []


def test_a_name_that_answers_otherwise_the_second_time_does_not_get_through(canary):
    with running(
        {"/": moved("/next"), "/next": Reply(headers={"Connection": "close"}, body="hello")}
    ) as site:
        wires = Wires(site)
        names = Names({"rebind.test": [[PUBLIC], ["127.0.0.1"]]})
        with fetcher(network(connect=wires, resolve=names), ports=frozenset({canary.port})) as asking:
            assert asking.fetch("http://rebind.test/").body == b"hello"
            assert names.asked == ["rebind.test"], "one connection, one question"
            with pytest.raises(ForbiddenUrlError, match=r"127\.0\.0\.1.*loopback"):
                asking.fetch("http://rebind.test/next")

    assert {host for host, _ in wires.connected} == {PUBLIC}
    assert canary.visitors() == []


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("127.0.0.1", None),
        ("10.0.0.1", None),
        ("100.64.0.1", None),
        ("::1", None),
        ("fd00::1", None),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("0.0.0.0", "this host"),
        ("224.0.0.1", "multicast"),
        ("::ffff:127.0.0.1", "inside IPv6"),
        ("64:ff9b::7f00:1", "NAT64"),
        ("2002:7f00:1::", "6to4"),
    ],
)
def test_private_addresses_can_be_allowed_and_the_rest_cannot(address, found):
    assert explain_refusal(address) is not None
    reason = explain_refusal(address, allow_private=True)
    assert reason is None if found is None else found in reason


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001::64"])
def test_public_addresses_are_asked(address):
    assert explain_refusal(address) is None


def test_a_site_on_loopback_is_asked_when_allowed():
    with (
        running({"/": "<p>here"}) as site,
        fetcher(network(), allow_private=True, ports=frozenset({site.port})) as asking,
    ):
        assert asking.fetch(f"http://127.0.0.1:{site.port}/").body == b"<p>here"


def test_nothing_of_the_environment_is_sent_and_no_proxy_is_asked(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with visiting({"/": Reply(headers={"Set-Cookie": "a=b"}, body="1")}) as (site, asking):
        asking.fetch("http://docs.test/")
        asking.fetch("http://docs.test/")

    assert set(site.asked[1].headers) == {"host", "user-agent", "accept", "accept-encoding"}


def test_headers_for_one_url_are_not_sent_to_what_it_redirects_to():
    with running({"/old": moved("/new"), "/new": "<p>new"}) as site, fetcher(network(site)) as asking:
        found = asking.fetch("http://docs.test/old", headers={"If-None-Match": '"1"'})

    assert found.hops == ("http://docs.test/old",)
    assert "if-none-match" in site.asked[0].headers
    assert "if-none-match" not in site.asked[1].headers


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ({"/": moved("/")}, "circle"),
        ({"/": moved("/a"), "/a": moved("/")}, "circle"),
        ({"/": moved("/1"), **{f"/{n}": moved(f"/{n + 1}") for n in range(1, 30)}}, "more than 10 redirects"),
        ({"/": moved("http://[::1/")}, "is not a URL"),
    ],
)
def test_redirects_come_to_an_end(pages, message):
    with running(pages) as site, fetcher(network(site)) as asking, pytest.raises(FetchError, match=message):
        asking.fetch("http://docs.test/")


ZEROS = bytes(20 * 2**20)


@pytest.mark.parametrize(
    ("coding", "body", "message"),
    [
        ("gzip", gzip.compress(ZEROS, mtime=0), "200 times"),
        ("deflate", zlib.compress(ZEROS), "200 times"),
        ("gzip, gzip", gzip.compress(gzip.compress(ZEROS, mtime=0), mtime=0), "was not asked for"),
        ("br", b"x", "was not asked for"),
        ("gzip", gzip.compress(b"x" * 999, mtime=0)[:-9], "ends early"),
        ("gzip", b"no gzip at all", "damaged"),
        ("gzip", gzip.compress(bytes(range(256)) * 300, mtime=0), "more than the 65,536"),
        ("", ZEROS, "more than the 65,536"),
    ],
    ids=["gzip", "deflate", "twice", "other", "cut off", "no gzip", "long", "long as it is"],
)
def test_bodies_are_bounded_before_and_after_decoding(coding, body, message):
    limit = 2**24 if "200" in message else 2**16
    reply = Reply(headers={"Content-Encoding": coding}, body=body)
    with visiting({"/": reply}, max_bytes=limit) as (_, asking), pytest.raises(FetchError, match=message):
        asking.fetch("http://docs.test/")


def test_a_body_that_is_declared_too_large_is_not_waited_for():
    reply = Reply(headers={"Content-Length": str(10**15)})
    with (
        visiting({"/": reply}) as (_, asking),
        pytest.raises(FetchError, match="1,000,000,000,000,000 bytes"),
    ):
        asking.fetch("http://docs.test/")


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("", b"text"),
        ("identity", b"text"),
        ("gzip", gzip.compress(b"text", mtime=0)),
        ("x-gzip", gzip.compress(b"te", mtime=0) + gzip.compress(b"xt", mtime=0)),
        ("gzip", gzip.compress(b"text", mtime=0) + b"\0\0\0"),
        ("deflate", zlib.compress(b"text")),
        ("deflate", zlib.compress(b"text")[2:-4]),
        ("gzip", b""),
    ],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_body_is_decoded_however_it_arrives(coding, body, size):
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    assert read_body(chunks, coding=coding, max_bytes=100) == (b"text" if body else b"")


def test_a_long_body_is_decoded_whole():
    text = b"".join(b"%d " % n for n in range(300_000))
    assert read_body([gzip.compress(text, mtime=0)], coding="gzip", max_bytes=2**24) == text


def scripted(*pieces, step=0.0):
    """A network whose server sends these pieces, and whose clock advances with every look at it."""
    return network(time=Time(step), connect=MockBackend(list(pieces)), resolve=lambda *_: [PUBLIC])


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([HEAD, *([b"X-A: b\r\n"] * 1000)], "in time"),
        ([HEAD + b"\r\n", *([b"."] * 1000)], "in time"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n"] * 1000, "in time"),
    ],
)
def test_a_server_that_drips_is_left_when_the_time_is_up(pieces, message):
    with fetcher(scripted(*pieces, step=1.0)) as asking, pytest.raises(FetchError, match=message) as caught:
        asking.fetch("http://docs.test/")
    assert caught.value.again


@pytest.mark.parametrize(
    "pieces",
    [
        [HEAD, b"X-Long: ", b"x" * 60_000, b"x" * 60_000],
        [b"HTTP/1.1 200 OK\nbroken", b"\x00\x01\x02\r\n\r\n"],
        [b"SSH-2.0-OpenSSH_9.2\r\n", b""],
        [HEAD + b"Content-Length: 10\r\n\r\n1234", b""],
        [HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\n"],
        [b""],
    ],
)
def test_an_answer_that_is_no_http_is_an_error(pieces):
    with fetcher(scripted(*pieces)) as asking, pytest.raises(FetchError, match="not valid HTTP"):
        asking.fetch("http://docs.test/")


def test_a_certificate_is_checked_against_the_name_though_the_address_is_connected_to():
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("docs.test").configure_cert(server)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with running({"/": "<p>safe"}) as site:
        site.server.socket = server.wrap_socket(site.server.socket, server_side=True)
        with fetcher(network(site, ssl_context=trusting)) as asking:
            assert asking.fetch("https://docs.test/").body == b"<p>safe"
            with pytest.raises(FetchError, match="CERTIFICATE") as caught:
                asking.fetch("https://other.test/")
        assert not caught.value.again
        asking = fetcher(network(site, ssl_context=ssl.create_default_context()))
        with pytest.raises(FetchError, match="CERTIFICATE"):
            asking.fetch("https://docs.test/")


@pytest.mark.parametrize(
    ("url", "port", "path"),
    [
        ("http://Docs.TEST", 80, "/"),
        ("https://docs.test./a?b=c#d", 443, "/a?b=c"),
        ("http://docs.test:443/", 443, "/"),
        ("http://docs.test?x", 80, "/?x"),
        ("http://docs.test:8000/%E2%82%AC", 8000, "/%E2%82%AC"),
    ],
)
def test_an_honest_url_is_read_as_browsers_do(url, port, path):
    target = read_target(url, frozenset({8000}))
    assert (target.host, target.port, target.path) == ("docs.test", port, path)


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("b", "http://docs.test/a/b"),
        ("/b c", "http://docs.test/b%20c"),
        ("?q=é", "http://docs.test/a/?q=%C3%A9"),
        ("?", "http://docs.test/a/"),
        ("\\b", "http://docs.test/b"),
        ("  b#c ", "http://docs.test/a/b"),
        ("//münchen.test/", "http://xn--mnchen-3ya.test/"),
        ("HTTP://Docs.Test:80/B", "http://docs.test/B"),
        ("https://docs.test:80/", "https://docs.test:80/"),
        ("mailto:a@b.c", "mailto:a@b.c"),
    ],
)
def test_a_link_becomes_a_url_that_can_be_asked(href, url):
    assert make_absolute_url(href, "http://docs.test/a/") == url


def test_an_unwanted_body_is_not_read():
    reply = Reply(headers={"Content-Type": "application/pdf"}, body=bytes(70_000))
    with visiting({"/": reply}, max_bytes=10) as (_, asking):
        found = asking.fetch("http://docs.test/", wanted=lambda headers: "html" in headers["content-type"])
    assert (found.body, found.headers["content-type"]) == (b"", "application/pdf")
