"""``linkstore setup``: from a source to a store whose tools an agent has, in one command."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from linkstore.cli.clients import CLIENTS, Change, Client, ServerEntry, plan_addition, plan_removal
from linkstore.cli.exits import UsageError
from linkstore.cli.output import show
from linkstore.cli.sources import recognize_kind
from linkstore.cli.stores import is_place_url, open_core_store, refuse_options
from linkstore.core.display import get_title
from linkstore.errors import MissingExtraError

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME: Final = 40
_UVX: Final = re.compile(r"archive-v\d+")
"""The folder of uv's cache in which ``uvx`` runs a package."""


def setup(
    source: Annotated[str | None, typer.Argument()] = None,
    client: list[str] | None = None,
    store: Annotated[str | None, typer.Option("--store", "-s", envvar="LINKSTORE_STORE")] = None,
    name: str | None = None,
    about: str = "",
    dry_run: bool = False,
    remove: bool = False,
) -> None:
    """Index a source, and give its tools to an agent.

    Indexes SOURCE, asks it one question, and adds the server of the store to the configuration of MCP
    clients. A configuration is backed up before it is changed, and left alone if it is not understood. Needs
    the extra mcp.

    Args:
        source (SOURCE): A URL, a folder or file of pages, a vault, a wiki dump, as for index.
        client (NAME): claude-code, claude-desktop, cursor, vscode, windsurf, codex or gemini; repeatable;
            default those that are used here.
        store (PLACE): The store: a folder, or cassandra://host:port/keyspace/table; default
            ~/.linkstore/NAME.
        name (NAME): Name of the server in the client; default that of SOURCE.
        about (TEXT): What the store is about; models read it.
        dry_run: Print what would be done, and write nothing.
        remove: Remove the server from the clients; the store stays.
    """
    if source is None and not (remove and name):
        raise UsageError("name a SOURCE, or with --remove the --name of the server")
    home, here = Path.home(), Path.cwd()
    clients = _choose_clients(client or (), home, here)
    server = name or _name_server(source or "")
    if remove:
        refuse_options("does not go with --remove", store=store, about=about)
        _apply([plan_removal(chosen, server, home, here) for chosen in clients], server, dry_run=dry_run)
        return
    place = _check_source(source or "", store or str(home / ".linkstore" / server))
    entry = _make_entry(server, place, about)
    changes = [plan_addition(chosen, entry, home, here) for chosen in clients]
    if dry_run:
        show(f"would index {source} into {place}")
    else:
        _index_and_ask(source or "", place)
    _apply(changes, server, dry_run=dry_run)


def _check_source(source: str, store: str) -> str:
    """Return the place of the store as clients name it, once all else is seen to be there.

    Raises:
        UsageError: If there is no such source.
        MissingExtraError: If the extra mcp is not installed.
    """
    recognize_kind(source)
    if find_spec("mcp") is None:
        raise MissingExtraError("linkstore setup", "mcp")
    return store if is_place_url(store, option="--store") else os.path.realpath(store)


def _apply(changes: Sequence[Change], server: str, *, dry_run: bool) -> None:
    """Write the changes, or say what would be written."""
    for change in changes:
        title, where = change.client.title, f"{server!r} in {change.path}"
        if not change.is_needed:
            show(f"{title}: nothing to do for {where}")
        elif dry_run:
            show(f"{title}: would {change.verb} {where}")
            show(f"  {change.entry}" if change.entry else "")
        else:
            backup = change.write()
            kept = f"; the file before is {backup.name}" if backup else ""
            show(f"{title}: {change.verb} {where}: done{kept}; start the client again")


def _choose_clients(names: Sequence[str], home: Path, here: Path) -> list[Client]:
    """Return the clients of these names, or those that are used here.

    Raises:
        UsageError: If there is no such client, or none is found.
    """
    known = {client.name: client for client in CLIENTS}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"--client {unknown[0]}: unknown client; known: {', '.join(known)}")
    chosen = [known[name] for name in dict.fromkeys(names)]
    chosen = chosen or [client for client in CLIENTS if client.is_used(home, here)]
    if not chosen:
        raise UsageError(f"no client was found; name one by --client: {', '.join(known)}")
    return chosen


def _name_server(source: str) -> str:
    """Return a name for a source: the host of a URL, the last part of a path."""
    scheme, separator, rest = source.partition("://")
    written = rest.partition("/")[0] if separator else Path(os.path.realpath(scheme)).stem
    return _NOT_IN_NAMES.sub("-", written.lower()).strip("-")[:_LONGEST_NAME] or "linkstore"


def _make_entry(name: str, place: str, about: str) -> ServerEntry:
    """Return the server as a client starts it, whose working directory and PATH may be others."""
    told = ("--about", about) if about else ()
    arguments = ("mcp", "--store", place, *told)
    if any(_UVX.fullmatch(part) for part in Path(sys.prefix).parts):
        package = ("--from", "langchain-linkstore[mcp]", "linkstore")
        return ServerEntry(name=name, command="uvx", arguments=(*package, *arguments))
    return ServerEntry(name=name, command=sys.executable, arguments=("-m", "linkstore", *arguments))


def _index_and_ask(source: str, place: str) -> None:
    """Index the source, and show that a question after the title of one of its pages finds it.

    Raises:
        typer.Exit: If a part of the source could not be seen.
    """
    from linkstore.cli.index import index

    index(source, place)
    with open_core_store(place) as store:
        document = next(iter(store.scan()))
        question = get_title(document) or document.page_content[:80]
        hits = store.search(question, k=1)
    for hit in hits:
        show(f"asked     {question!r}: {hit.document.id}")
