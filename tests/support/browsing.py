"""The explorer's page in a real browser: its server, Chromium, and tabs that note what goes wrong in them."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from linkstore import LinkStore
from linkstore.explorer.server import make_app
from linkstore.explorer.views import Views

TOKEN = "a-token-of-the-tests-0123456789"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox",  # the gate runs as root
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
"""WebGL without a graphics card, and no request that no page makes."""


@contextmanager
def serving(store: LinkStore, **options) -> Iterator[str]:
    """The page of a store at an address, which is given with its token."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        hosts = frozenset({f"127.0.0.1:{port}"})
        app = make_app(Views(store, **{"name": "Site", **options}), TOKEN, hosts)
        config = uvicorn.Config(app, log_config=None, access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/#token={TOKEN}"
        finally:
            server.should_exit = True
            thread.join(10)


class Watched:
    """A tab of the browser that notes what it asks for and what goes wrong in it."""

    def __init__(self, tab, address: str) -> None:
        self.tab, self.address = tab, address
        self.elsewhere: list[str] = []
        self.errors: list[str] = []
        tab.on("request", self._note_request)
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", self._note_message)

    def _note_request(self, request) -> None:
        if not request.url.startswith((self.address.partition("#")[0], "data:", "blob:")):
            self.elsewhere.append(request.url)

    def _note_message(self, message) -> None:
        if message.type in ("error", "warning") and "GPU stall" not in message.text:
            self.errors.append(message.text)

    def check(self) -> None:
        """Fail if the page asked elsewhere, or something went wrong in it."""
        assert not self.elsewhere, self.elsewhere
        assert not self.errors, self.errors
        assert self.tab.evaluate("window.taken") is None
