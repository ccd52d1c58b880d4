"""``linkstore serve``: shows a store in the browser."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from contextlib import ExitStack
from typing import Annotated, Final
from urllib.parse import quote

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.output import note
from linkstore.cli.stores import StoreOption, open_store

MIN_TOKEN_LENGTH: Final = 16
"""Characters that a token must have."""
_LOOPBACK: Final = ("127.0.0.1", "localhost")


def serve(
    store: StoreOption,
    memory: Annotated[
        str | None, typer.Option(metavar="PLACE", help="A store of conversations to show as well.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0: a free one.")] = 8766,
    token: Annotated[
        str | None,
        typer.Option(envvar="LINKSTORE_SERVE_TOKEN", help="The token of the address; default a new one."),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Let the page add links that it suggests.")] = False,
) -> None:
    """Show a store in the browser: ask it, read documents, and see all links.

    Prints the address of the page, which only this machine can reach, and opens it. The token in the address
    is needed to see anything. Ends with Ctrl-C. Needs the extra serve.
    """
    if token is not None and len(token) < MIN_TOKEN_LENGTH:
        raise UsageError(
            f"--token must have at least {MIN_TOKEN_LENGTH} characters; or leave it out for a new one"
        )
    from linkstore.explorer.server import make_app, run_server
    from linkstore.explorer.views import Views

    with ExitStack() as stack:
        opened = stack.enter_context(open_store(store))
        conversations = stack.enter_context(open_store(memory)) if memory else None
        listening = stack.enter_context(_listen(port))
        number = listening.getsockname()[1]
        chosen = token or secrets.token_urlsafe(24)
        hosts = frozenset(f"{name}:{number}" for name in _LOOPBACK)
        app = make_app(Views(opened, conversations, write=write, name=store), chosen, hosts)
        address = f"http://127.0.0.1:{number}/#token={quote(chosen, safe='')}"
        note(f"open {address}")
        if not no_open:
            webbrowser.open(address)
        run_server(app, listening)


def _listen(port: int) -> socket.socket:
    """Open a socket that listens on loopback.

    Raises:
        UsageError: If the port is in use.
    """
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        listening.close()
        raise UsageError(f"--port {port}: {error.strerror}; choose another one, or 0") from error
    return listening
