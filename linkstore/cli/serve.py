"""``linkstore open``, ``serve`` and ``mcp``: a store for the browser, and its tools for models."""

from __future__ import annotations

import os
import re
import secrets
import webbrowser
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

import typer

from linkstore.cli.commands import EmbeddingOption, StoreOption
from linkstore.cli.exits import SOURCE_INCOMPLETE, UsageError
from linkstore.cli.output import inform
from linkstore.cli.stores import (
    DEFAULT_STORE,
    find_store,
    is_store,
    open_core_store,
    open_store,
    parse_json_option,
    refuse_options,
)

if TYPE_CHECKING:
    from socket import socket

    from mcp.server.lowlevel import Server

    from linkstore.store.core import CoreStore

MIN_TOKEN_LENGTH: Final = 16
"""Characters that a token must have."""
PAGE_PORT: Final = 8766
"""The usual port of the page."""
PortOption = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help=f"The port; 0: a free one; default {PAGE_PORT} if it is free."),
]
DEFAULT_DEPTH: Final = 6
"""Links in a row that a tool follows."""
_NAMED: Final = re.compile(r"([A-Za-z0-9][\w-]{0,39})=(.+)", re.ASCII)
_SECONDS: Final = 600.0
"""How long the page may wait for an answer, such as the report on a large store."""


def open_source(
    store: StoreOption,
    source: Annotated[str | None, typer.Argument()] = None,
    links: list[str] | None = None,
    embedding: EmbeddingOption = None,
    allow_private: bool = False,
    port: PortOption = None,
    no_browser: bool = False,
) -> None:
    """Index a source, and show it in the browser.

    Does as linkstore index SOURCE, then as linkstore serve: indexes a folder, website, page, vault, wiki or
    file into the store, which is made if there is none, and opens the page that shows it, until Ctrl-C.
    Without SOURCE, or with a folder that is a store, only opens the page. linkstore SOURCE does the same.

    Args:
        source (SOURCE): A URL, a folder or file of pages, a vault, a wiki dump, a file of JSON lines or ZIM.
        links (NAMES): Link extractors; default hyperlink,section,citation; also mention, entity, keyword.
        allow_private: Website: allow loopback and private addresses.
        no_browser: Do not open a browser.
    """
    if source is not None and is_store(source):
        store = source
    elif source is not None:
        from linkstore.cli.index import index

        try:
            index(source, store, links=links, embedding=embedding, allow_private=allow_private)
        except typer.Exit as end:
            if end.exit_code != SOURCE_INCOMPLETE:
                raise
    serve(store, embedding=embedding, port=port, no_browser=no_browser)


def serve(
    store: StoreOption,
    memory: str | None = None,
    embedding: EmbeddingOption = None,
    host: str = "127.0.0.1",
    allow_host: list[str] | None = None,
    port: PortOption = None,
    token: Annotated[str | None, typer.Option(envvar="LINKSTORE_SERVE_TOKEN")] = None,
    no_browser: bool = False,
    write: bool = False,
    mcp: bool = False,
    about: str = "",
) -> None:
    """Show a store in the browser: ask it, read documents, and see all links.

    Prints the address of the page, which by default only this machine can reach, and opens it. The token in
    the address is needed to see anything. Ends with Ctrl-C. With --mcp, needs the extra mcp.

    Args:
        memory (PLACE): A store of conversations to show as well.
        host: The address to listen at.
        allow_host (HOST): A further allowed value of the header Host, such as localhost:8766; repeatable.
        token: The token of the address; default a new one.
        no_browser: Do not open a browser.
        write: Let the page add links that it suggests, and MCP clients write.
        mcp: Serve MCP clients too, at /mcp with the same token.
        about: What the store is about; models read it.
    """
    check_token(token)
    if about and not mcp:
        raise UsageError("--about is read by MCP clients; give --mcp, too")
    from linkstore.core.http_server import HttpLimits, list_allowed_hosts, run_server

    _check_host(host, allow_host)
    from linkstore.explorer.server import make_app
    from linkstore.explorer.views import Views

    with ExitStack() as stack:
        opened = stack.enter_context(open_store(store, embedding=embedding, by_words=True))
        conversations = (
            stack.enter_context(open_store(memory, embedding=embedding, by_words=True)) if memory else None
        )
        endpoint = None
        if mcp:
            # says what is missing without the extra
            tools = make_tool_server({"": opened}, {"": about}, write=write)
            from linkstore.agents.mcp_transport import make_endpoint

            endpoint = make_endpoint(tools)
        listening = stack.enter_context(_open_page_port(host, port))
        number = listening.getsockname()[1]
        chosen = token or secrets.token_urlsafe(24)
        views = Views(opened, conversations, write=write, name=_name_store(store))
        app = make_app(views, chosen, list_allowed_hosts(host, number, allow_host or ()), endpoint)
        where = (allow_host or [f"{host}:{number}"])[0]
        address = f"http://{where}/#token={quote(chosen, safe='')}"
        inform(f"open {address} (Ctrl-C ends it)")
        if mcp:
            inform(f"MCP clients: http://{where}/mcp, with the same token")
        if not no_browser:
            webbrowser.open(address)
        run_server(app, listening, HttpLimits(answer=_SECONDS))


def mcp(
    store: Annotated[list[str] | None, typer.Option("--store", "-s")] = None,
    embedding: EmbeddingOption = None,
    http: bool = False,
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8765,
    token: Annotated[str | None, typer.Option(envvar="LINKSTORE_MCP_TOKEN")] = None,
    allow_host: list[str] | None = None,
    about: list[str] | None = None,
    tool: list[str] | None = None,
    filter: list[str] | None = None,
    write: bool = False,
    max_depth: Annotated[int, typer.Option(min=0)] = DEFAULT_DEPTH,
    install: bool = False,
    index: str | None = None,
    client: list[str] | None = None,
    name: str | None = None,
    dry_run: bool = False,
    remove: bool = False,
) -> None:
    """Serve the tools of one or more stores to MCP clients.

    Clients of the Model Context Protocol, such as Claude or an editor, can search, follow links and read;
    with --write they can add and delete documents. Without --http, the client starts this command and
    communicates with it over stdin and stdout. Needs the extra mcp.

    Args:
        store (PLACE): The store: a folder, or cassandra://host:port/keyspace/table; default LINKSTORE_STORE,
            else the .linkstore in this folder or the nearest one above. Repeatable, also as NAME=PLACE: the
            names of tools begin with it; default that of the folder.
        http: Serve over HTTP, not stdin and stdout.
        host: With --http: the address to listen at.
        port: With --http: the port; 0: a free one.
        token: With --http: the bearer token that clients must send; default a new one, shown on stderr.
        allow_host (HOST): With --http: a further allowed value of the header Host; repeatable.
        about: What the store is about; models read it. NAME=TEXT is for one of several; repeatable.
        tool (NAME): A tool to offer: search, match, follow, read, schema or path; repeatable; default
            search, follow and read, with a schema also match and schema.
        filter (JSON): Filter on metadata; clients see only documents that pass. NAME=JSON is for one of
            several stores; repeatable.
        write: Let clients add and delete documents; for one store.
        max_depth: Maximum number of links in a row that a tool follows.
        install: Add this server, with these options, to the configuration of MCP clients instead. The one
            before is kept as a backup, and one that is not understood is left alone.
        index (SOURCE): With --install: index this first, as linkstore index does, and ask one question.
        client (NAME): With --install: claude-code, claude-desktop, cursor, vscode, windsurf, codex or gemini;
            repeatable; default those that are used here.
        name (NAME): With --install: name of the server in the clients; default that of the store.
        dry_run: With --install: print what would be done, and write nothing.
        remove: Remove the server from the clients instead; the store stays.
    """
    places = _name_stores(store)
    abouts = _assign(about or (), places, "--about")
    filters = _assign(filter or (), places, "--filter")
    conditions = {named: parse_json_option(text, "--filter") for named, text in filters.items()}
    if write and filters:
        raise UsageError("--write with --filter would let clients replace documents that they do not see")
    if write and len(places) > 1:
        raise UsageError("--write is for one --store; start a server of its own for each that is written")
    if install or remove:
        refuse_options("is for clients that start the server", http=http, allow_host=allow_host)
        if remove:
            refuse_options("does not go with --remove", install=install, index=index)
        from linkstore.cli.install import install_server

        depth = None if max_depth == DEFAULT_DEPTH else str(max_depth)
        options = [("--embedding", embedding), ("--max-depth", depth)]
        options += [("--about", text) for text in about or ()] + [("--filter", text) for text in filter or ()]
        options += [("--tool", offered) for offered in tool or ()]
        settings = [part for option, value in options if value for part in (option, value)]
        settings += ["--write"] * write
        named = client or ()
        install_server(
            places, settings, source=index, clients=named, name=name, dry_run=dry_run, remove=remove
        )
        return
    refuse_options("goes with --install only", index=index, client=client, name=name, dry_run=dry_run)
    check_token(token)
    if http:
        _check_host(host, allow_host)
    with ExitStack() as stack:
        stores = {
            named: stack.enter_context(open_core_store(place, embedding=embedding, by_words=True))
            for named, place in places.items()
        }
        serving = make_tool_server(stores, abouts, conditions, only=tool, write=write, max_depth=max_depth)
        from linkstore.agents.mcp_transport import log_to_stderr, serve_http, serve_stdio

        if not http:
            log_to_stderr()
            serve_stdio(serving)
            return
        with _open_port(host, port) as listening:
            if token is None:
                token = secrets.token_urlsafe(32)
                inform(f"token: {token}")
            log_to_stderr()
            serve_http(serving, listening, token, tuple(allow_host or ()))


def _name_stores(written: Sequence[str] | None) -> dict[str, str]:
    """Return the places of stores by name, which may be empty for the only one.

    Raises:
        UsageError: If two have one name.
    """
    from linkstore.cli.install import make_server_name

    places = written or [os.environ.get("LINKSTORE_STORE") or find_store()]
    named: dict[str, str] = {}
    for place in places:
        match = None if Path(place).exists() else _NAMED.fullmatch(place)
        name = match[1] if match else make_server_name(place) if len(places) > 1 else ""
        if name in named:
            raise UsageError(f"--store {place}: two stores are called {name!r}; name one, as NAME=PLACE")
        named[name] = match[2] if match else place
    return named


def _assign(values: Iterable[str], names: Collection[str], option: str) -> dict[str, str]:
    """Return the value of an option for each store: its own, else that for all.

    Raises:
        UsageError: If one store has two.
    """
    assigned: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        named, text = ([name], text) if equals and name and name in names else (names, value)
        if any(store in assigned for store in named):
            raise UsageError(f"{option} {value}: a store has two values; give NAME=… for each of them")
        assigned.update(dict.fromkeys(named, text))
    return assigned


def _check_host(host: str, allowed: Sequence[str] | None) -> None:
    """Refuse to be reached by others who have no name for this machine.

    Raises:
        UsageError: If no name is allowed.
    """
    from linkstore.core.http_server import is_loopback

    if not is_loopback(host) and not allowed:
        raise UsageError(f"--host {host} can be reached by others; name the hosts they use with --allow-host")


def _name_store(place: str) -> str:
    """Return the name of a store for the page: its place, or the folder around it."""
    path = Path(place)
    return path.absolute().parent.name or place if path.name == DEFAULT_STORE else place


def _open_page_port(host: str, port: int | None) -> socket:
    """Open the port of the page, by default the usual one if it is free."""
    if port is None:
        with suppress(UsageError):
            return _open_port(host, PAGE_PORT)
    return _open_port(host, port or 0)


def _open_port(host: str, port: int) -> socket:
    """Open a socket that listens.

    Raises:
        UsageError: If the address is not there, or in use.
    """
    from linkstore.core.http_server import open_socket

    try:
        return open_socket(host, port)
    except OSError as error:
        where = f"--port {port}" if host == "127.0.0.1" else f"--host {host} --port {port}"
        raise UsageError(f"{where}: {error.strerror}; choose another one, or --port 0") from error


def make_tool_server(
    stores: Mapping[str, CoreStore],
    abouts: Mapping[str, str] | None = None,
    filters: Mapping[str, Mapping[str, Any] | None] | None = None,
    *,
    only: list[str] | None = None,
    write: bool = False,
    max_depth: int = DEFAULT_DEPTH,
) -> Server[Any]:
    """Return the SDK's server of the tools of stores.

    Args:
        stores: By name, which is empty for the only one.
        abouts: What they are about, by name.
        filters: What clients see of them, by name; default all.
        only: The names of the tools to offer; None: those that each store calls for.
        write: Whether clients may write.
        max_depth: How many links in a row a tool follows.
    """
    from linkstore.agents.mcp_server import ServedStore, StoreServer
    from linkstore.agents.tool_answers import ToolLimits, ToolScope

    limits = ToolLimits(max_depth=max_depth)
    served = [
        ServedStore(
            scope=ToolScope(store, limits, (filters or {}).get(name)),
            name=name,
            about=(abouts or {}).get(name, ""),
            only=only,
            write=write,
        )
        for name, store in stores.items()
    ]
    return StoreServer(*served).server()


def check_token(token: str | None) -> None:
    """Refuse a token that could be guessed.

    Raises:
        UsageError: If it is too short.
    """
    if token is not None and len(token) < MIN_TOKEN_LENGTH:
        raise UsageError(
            f"--token must have at least {MIN_TOKEN_LENGTH} characters; or leave it out for a new one"
        )
