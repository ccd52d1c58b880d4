"""``linkstore serve``: shows a store in the browser."""

from __future__ import annotations

import secrets
import webbrowser
from contextlib import ExitStack
from typing import Annotated, Final
from urllib.parse import quote

import typer

from linkstore.cli.commands import StoreOption
from linkstore.cli.exits import UsageError
from linkstore.cli.mcp import check_token, make_tool_server
from linkstore.cli.output import note
from linkstore.cli.stores import open_store

_SECONDS: Final = 600.0
"""How long the page may wait for an answer, such as the report on a large store."""


def serve(
    store: StoreOption,
    memory: str | None = None,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8766,
    token: Annotated[str | None, typer.Option(envvar="LINKSTORE_SERVE_TOKEN")] = None,
    no_open: bool = False,
    write: bool = False,
    mcp: bool = False,
    about: str = "",
) -> None:
    """Show a store in the browser: ask it, read documents, and see all links.

    Prints the address of the page, which only this machine can reach, and opens it. The token in the address
    is needed to see anything. Ends with Ctrl-C. Needs the extra serve, and with --mcp also mcp.

    Args:
        memory (PLACE): A store of conversations to show as well.
        port: The port on 127.0.0.1; 0: a free one.
        token: The token of the address; default a new one.
        no_open: Do not open a browser.
        write: Let the page add links that it suggests, and MCP clients write.
        mcp: Serve MCP clients too, at /mcp with the same token.
        about: What the store is about; models read it.
    """
    check_token(token)
    if about and not mcp:
        raise UsageError("--about is read by MCP clients; give --mcp, too")
    from linkstore.core.http_server import HttpLimits, list_allowed_hosts, open_socket, run_server
    from linkstore.explorer.server import make_app
    from linkstore.explorer.views import Views

    with ExitStack() as stack:
        opened = stack.enter_context(open_store(store))
        conversations = stack.enter_context(open_store(memory)) if memory else None
        endpoint = None
        if mcp:
            tools = make_tool_server(opened, about, write=write)  # says what is missing without the extra
            from linkstore.agents.mcp_transport import make_endpoint

            endpoint = make_endpoint(tools)
        try:
            listening = stack.enter_context(open_socket("127.0.0.1", port))
        except OSError as error:
            raise UsageError(f"--port {port}: {error.strerror}; choose another one, or 0") from error
        number = listening.getsockname()[1]
        chosen = token or secrets.token_urlsafe(24)
        views = Views(opened, conversations, write=write, name=store)
        app = make_app(views, chosen, list_allowed_hosts("127.0.0.1", number), endpoint)
        address = f"http://127.0.0.1:{number}/#token={quote(chosen, safe='')}"
        note(f"open {address}")
        if mcp:
            note(f"MCP clients: http://127.0.0.1:{number}/mcp, with the same token")
        if not no_open:
            webbrowser.open(address)
        run_server(app, listening, HttpLimits(answer=_SECONDS))
