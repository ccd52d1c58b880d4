"""A website on loopback, under whatever names a test gives it, and a network that leads there."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from httpcore2 import ConnectError, NetworkBackend, SyncBackend

from linkstore.ingest.web.fetching import Network, resolve

PUBLIC = "93.184.215.14"
"""The address under which a site seems to lie; nothing is ever sent there."""
LOCAL = re.compile(r"localhost|[0-9a-fx.:]+", re.IGNORECASE)
"""What is resolved without asking a name server."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the site answers; a body of text becomes UTF-8."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | str = b""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request that the site has seen, headers in lower case."""

    host: str
    path: str
    headers: dict[str, str]


Answer = Reply | Callable[[Asked], Reply] | str
"""A page as text, a reply, or what makes one."""


def html(text: str = "", *links: str, title: str = "Page", head: str = "") -> str:
    """A page with a paragraph and links."""
    anchors = " ".join(f'<a href="{link}">to {link}</a>' for link in links)
    paragraph = text or f"About {title}."
    return (
        f"<html><head><title>{title}</title>{head}</head>"
        f"<body><main><h1>{title}</h1><p>{paragraph} {anchors}</p></main></body></html>"
    )


def moved(location: str, status: int = 301) -> Reply:
    """A redirect."""
    return Reply(status=status, headers={"Location": location})


class WebSite:
    """A server whose pages can be changed while it runs.

    Args:
        pages: Path (with query, or with the host before it) → answer; anything else is 404.
    """

    def __init__(self, pages: dict[str, Answer]) -> None:
        self.pages = pages
        self.asked: list[Asked] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_GET(self) -> None:
                reply = site.reply(self)
                body = reply.body.encode() if isinstance(reply.body, str) else reply.body
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in reply.headers and reply.status != 304:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing: the tests look at ``asked``."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Nothing: a client may go away in the middle."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]

    def reply(self, handler: BaseHTTPRequestHandler) -> Reply:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        asked = Asked(host=headers.get("host", ""), path=handler.path, headers=headers)
        self.asked.append(asked)
        answer = self.pages.get(f"{asked.host}{asked.path}", self.pages.get(asked.path))
        if answer is None:
            return Reply(status=404, body="not here")
        reply = answer(asked) if callable(answer) else answer
        if isinstance(reply, str):
            return Reply(headers={"Content-Type": "text/html"}, body=reply)
        return reply

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for, in order, without robots.txt and the sitemap."""
        return [one.path for one in self.asked if one.path not in ("/robots.txt", "/sitemap.xml")]

    def forget(self) -> None:
        """Start counting anew."""
        self.asked.clear()


@contextmanager
def running(pages: dict[str, Answer]) -> Iterator[WebSite]:
    """A site as long as the context lasts."""
    site = WebSite(pages)
    thread = threading.Thread(target=site.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.server.shutdown()
        site.server.server_close()
        thread.join()


class Time:
    """A clock that goes on when somebody sleeps, and by a step whenever it is looked at."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self.step = step

    def clock(self) -> float:
        self.now += self.step
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Wires(NetworkBackend):
    """Connects to the site where it seems to lie, for real to loopback, and else nowhere; keeps count."""

    def __init__(self, site: WebSite | None = None) -> None:
        self.site = site
        self.connected: list[tuple[str, int]] = []

    def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        self.connected.append((host, port))
        real = SyncBackend()
        if host == PUBLIC and self.site is not None:
            return real.connect_tcp("127.0.0.1", self.site.port, timeout, local_address, socket_options)
        if host.startswith("127.") or host in ("::1", "0.0.0.0", "::"):
            return real.connect_tcp(host, port, timeout, local_address, socket_options)
        raise ConnectError(f"nothing is at {host}")


class Names:
    """A name server: what it answers, one answer after the other, the last one for ever.

    Args:
        answers: Host → answers, each a sequence of addresses; other names ending in ``.test`` lead to
            the site, numbers and ``localhost`` where the machine says, the rest nowhere.
    """

    def __init__(self, answers: dict[str, Sequence[Sequence[str]]] | None = None) -> None:
        self.answers = {host: list(several) for host, several in (answers or {}).items()}
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        several = self.answers.get(host)
        if several:
            return several.pop(0) if len(several) > 1 else several[0]
        if host.endswith(".test"):
            return [PUBLIC]
        return resolve(host, port) if LOCAL.fullmatch(host) else []


def network(site: WebSite | None = None, time: Time | None = None, **more) -> Network:
    """A network in which every host named ``*.test`` is the site."""
    time = time or Time()
    given = {"resolve": Names(), "connect": Wires(site), "clock": time.clock, "sleep": time.sleep}
    return Network(**{**given, **more})
