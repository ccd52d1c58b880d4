"""``linkstore mcp --install``: gives the tools of a store to agents, after indexing a source if asked."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from linkstore.cli.clients import (
    CLIENTS,
    Change,
    Client,
    ClientConfigError,
    ServerEntry,
    plan_addition,
    plan_removal,
)
from linkstore.cli.exits import UsageError
from linkstore.cli.output import show
from linkstore.cli.sources import recognize_kind
from linkstore.cli.stores import is_place_url, open_core_store
from linkstore.core.display import get_title
from linkstore.errors import MissingExtraError

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")
_UVX: Final = re.compile(r"archive-v\d+")
"""The folder of uv's cache in which ``uvx`` runs a package."""


def make_server_name(place: str) -> str:
    """Make a name for the server of a store from the end of its place."""
    return _NOT_IN_NAMES.sub("-", place.rstrip("/").rpartition("/")[2].lower()).strip("-")[:40] or "kb"


def install_server(
    places: Mapping[str, str],
    settings: Sequence[str],
    *,
    source: str | None,
    clients: Sequence[str],
    name: str | None,
    dry_run: bool,
    remove: bool,
) -> None:
    """Add the server of stores to MCP clients, or remove it.

    All configurations are read before anything is done. A source is indexed first, and asked one question.

    Args:
        places: The stores by name, as for ``--store``.
        settings: Further arguments of ``linkstore mcp``.
        source: What is indexed into the only store, as for ``linkstore index``; None: nothing.
        clients: Names of clients; without any, those that are used here.
        name: Name of the server in the clients; None: that of the store, or ``linkstore`` for several.
        dry_run: Whether to say what would be done, and write nothing.
        remove: Whether to remove the server.

    Raises:
        UsageError: If there is no such source, store or client.
        ClientConfigError: If a configuration is not understood.
        MissingExtraError: If the extra mcp is not installed.
    """
    home, here = Path.home(), Path.cwd()
    (first, place), *others = places.items()
    if source is not None and others:
        raise UsageError("--index is for one --store; index each before")
    chosen = _choose_clients(clients, home, here)
    stores = {
        key: where if is_place_url(where, option="--store") else os.path.realpath(where)
        for key, where in places.items()
    }
    server = name or ("linkstore" if others else first or make_server_name(place))
    if remove:
        _apply(*_plan_all(chosen, lambda client: plan_removal(client, server, home, here)), server, dry_run)
        return
    if find_spec("mcp") is None:
        raise MissingExtraError("linkstore mcp", "mcp")
    if source is not None:
        recognize_kind(source)
    entry = _make_entry(server, stores, settings)
    changes, refused = _plan_all(chosen, lambda client: plan_addition(client, entry, home, here))
    if source is not None and dry_run:
        show(f"would index {source} into {place}")
    elif source is not None:
        _index_and_ask(source, place)
    else:
        for where in places.values():
            with open_core_store(where):  # raise if there is none
                pass
    _apply(changes, refused, server, dry_run)


def _plan_all(
    clients: Sequence[Client], plan: Callable[[Client], Change]
) -> tuple[list[Change], list[ClientConfigError]]:
    """Return the changes for clients, and why others have none.

    Raises:
        ClientConfigError: If no client has one.
    """
    changes, refused = [], []
    for client in clients:
        try:
            changes.append(plan(client))
        except ClientConfigError as error:
            refused.append(error)
    if not changes:
        raise refused[0]
    return changes, refused


def _apply(
    changes: Sequence[Change], refused: Sequence[ClientConfigError], server: str, dry_run: bool
) -> None:
    """Write the changes, or say what would be written.

    Raises:
        ClientConfigError: In the end, if a client has none.
    """
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
    if refused:
        raise ClientConfigError("; ".join(map(str, refused)))


def _choose_clients(names: Sequence[str], home: Path, here: Path) -> list[Client]:
    """Return the clients of these names, or without names all used here.

    Raises:
        UsageError: If there is no such client, or none is found.
    """
    named = {client.name: client for client in CLIENTS}
    if unknown := [name for name in names if name not in named]:
        raise UsageError(f"--client {unknown[0]}: unknown client; there are: {', '.join(named)}")
    chosen = [named[name] for name in dict.fromkeys(names)]
    chosen = chosen or [client for client in CLIENTS if client.is_used(home, here)]
    if not chosen:
        raise UsageError(f"no client was found; name one by --client: {', '.join(named)}")
    return chosen


def _make_entry(name: str, stores: Mapping[str, str], settings: Sequence[str]) -> ServerEntry:
    """Return the server as a client starts it, whose working directory and PATH may be others."""
    written = (f"{key}={place}" if key else place for key, place in stores.items())
    arguments = ("mcp", *(part for place in written for part in ("--store", place)), *settings)
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
