"""``linkstore mcp --install``: gives the tools of a store to agents, after indexing a source if asked.

The configuration of an MCP client is changed only if all of it is understood and nothing of it would be
lost: JSON with comments, with a name twice, or with another server of this name is left alone, and the
message says what to write by hand.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Final

from linkstore.cli.exits import UsageError
from linkstore.cli.output import show
from linkstore.cli.sources import recognize_kind
from linkstore.cli.stores import is_place_url, open_core_store
from linkstore.core.display import get_title
from linkstore.errors import LinkStoreError, MissingExtraError

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


class ClientConfigError(LinkStoreError, ValueError):
    """The configuration of a client is not understood, or cannot be changed without loss."""


ServerEntry = Mapping[str, Any]
"""A server as a client starts it: its ``command`` and its ``args``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """An MCP client.

    Args:
        name: As for ``--client``.
        title: As people call it.
        file: Its configuration, in the home (``~``) of the user or in the working directory.
        signs: Commands, and folders in the home or the working directory; one of them says that it is used.
        key: The object or table with the servers.
        typed: Whether an entry says that it is started over stdin and stdout.
    """

    name: str
    title: str
    file: str
    signs: tuple[str, ...]
    key: str = "mcpServers"
    typed: bool = False

    @property
    def is_toml(self) -> bool:
        """Whether its configuration is TOML."""
        return self.key == "mcp_servers"

    def is_used(self, home: Path, here: Path) -> bool:
        """Say whether this client is used here."""
        return any(
            (root / sign).is_dir() if not sign.isalpha() else shutil.which(sign) is not None
            for sign in self.signs
            for root in (home, here)
        )

    def get_path(self, home: Path, here: Path) -> Path:
        """Return where its configuration lies, links followed."""
        in_home = self.file.startswith("~/")
        return Path(os.path.realpath(home / self.file[2:] if in_home else here / self.file))

    def describe(self, entry: ServerEntry) -> dict[str, Any]:
        """Return an entry as it stands in the configuration."""
        return {**({"type": "stdio"} if self.typed else {}), **entry}


_DESKTOP_FOLDERS: Final = {"darwin": "Library/Application Support/Claude", "win32": "AppData/Roaming/Claude"}
_DESKTOP: Final = _DESKTOP_FOLDERS.get(sys.platform, ".config/Claude")
CLIENTS: Final = (
    Client(name="claude-code", title="Claude Code", file=".mcp.json", signs=("claude",), typed=True),
    Client(
        name="claude-desktop",
        title="Claude Desktop",
        file=f"~/{_DESKTOP}/claude_desktop_config.json",
        signs=(_DESKTOP,),
    ),
    Client(name="cursor", title="Cursor", file="~/.cursor/mcp.json", signs=("cursor", ".cursor")),
    Client(
        name="vscode",
        title="VS Code",
        file=".vscode/mcp.json",
        signs=("code", ".vscode"),
        key="servers",
        typed=True,
    ),
    Client(
        name="windsurf",
        title="Windsurf",
        file="~/.codeium/windsurf/mcp_config.json",
        signs=("windsurf", ".codeium/windsurf"),
    ),
    Client(
        name="codex", title="Codex", file="~/.codex/config.toml", signs=("codex", ".codex"), key="mcp_servers"
    ),
    Client(name="gemini", title="Gemini CLI", file="~/.gemini/settings.json", signs=("gemini", ".gemini")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is to be written into the configuration of a client.

    Args:
        client: Whose it is.
        path: The file, links followed.
        before: Its text; None if there is no file.
        after: Its text then; the same where nothing is to be done.
        entry: The part that is added; empty if a server is removed.
    """

    client: Client
    path: Path
    before: str | None
    after: str
    entry: str

    @property
    def is_needed(self) -> bool:
        """Whether the file changes."""
        return (self.before or "") != self.after

    @property
    def verb(self) -> str:
        """What it does."""
        return "write" if self.entry else "remove"

    def write(self) -> Path | None:
        """Write the file as a whole, and return the backup of the one before, None if there was none.

        Raises:
            ClientConfigError: If the file was changed since it was read.
            OSError: If it cannot be written.
        """
        if _read(self.path) != self.before:
            raise ClientConfigError(f"{self.path} was changed at the same time; run the command again")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        backup = None if self.before is None else _name_backup(self.path)
        if backup is not None:
            shutil.copy2(self.path, backup)
        beside = self.path.with_name(f"{self.path.name}.part")
        beside.write_text(self.after, encoding="utf-8", newline="")
        if backup is not None:
            shutil.copymode(backup, beside)
        beside.replace(self.path)
        return backup


def _name_backup(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.bak{number}") for number in count(1))
    return next(name for name in names if not name.exists())


def plan_change(client: Client, name: str, entry: ServerEntry | None, home: Path, here: Path) -> Change:
    """Return the change that adds a server to a client, or replaces or removes an earlier one of linkstore's.

    Args:
        client: Whose configuration it is.
        name: Of the server.
        entry: The server; None removes it.
        home: The home of the user.
        here: The working directory.

    Raises:
        ClientConfigError: If the configuration is not understood, or has another server of this name.
    """
    path = client.get_path(home, here)
    before = _read(path)
    written = ""
    if entry is not None and client.is_toml:
        written = _format_table(client, name, entry)
    elif entry is not None:
        written = json.dumps({client.key: {name: client.describe(entry)}}, ensure_ascii=False)
    try:
        after = (_plan_toml if client.is_toml else _plan_json)(before or "", client, name, entry)
    except ClientConfigError as error:
        by_hand = f"add this by hand: {written}" if entry else f"remove {name!r} by hand"
        raise ClientConfigError(f"{path} was left as it is: {error}; {by_hand}") from error
    return Change(client=client, path=path, before=before, after=after, entry=written)


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ClientConfigError(f"{path} is not UTF-8") from error


def _plan_json(text: str, client: Client, name: str, entry: ServerEntry | None) -> str:
    try:
        config = json.loads(text, object_pairs_hook=_make_object) if text.strip() else {}
    except ValueError as error:
        raise ClientConfigError(f"it is not plain JSON ({error})") from error
    servers = config.get(client.key, {}) if isinstance(config, dict) else None
    if not isinstance(servers, dict):
        raise ClientConfigError(f"it has no object {client.key!r}")
    wanted = client.describe(entry) if entry else None
    stored = servers.get(name)
    if stored == wanted:
        return text
    _check_own(stored, name)
    if wanted is None:
        del servers[name]
    else:
        servers[name] = wanted
    config[client.key] = servers
    indent = re.search(r"\n([ \t]+)\S", text)
    written = json.dumps(config, indent=indent[1] if indent else 2, ensure_ascii=False)
    return f"{written}\n".replace("\n", "\r\n" if "\r\n" in text else "\n")


def _plan_toml(text: str, client: Client, name: str, entry: ServerEntry | None) -> str:
    config, servers = _parse_toml(text, client.key)
    stored = servers.pop(name, None)
    if stored == (client.describe(entry) if entry else None):
        return text
    _check_own(stored, name)
    if stored is not None:
        table = _format_table(client, name, stored)
        if text.count(table) != 1:
            raise ClientConfigError(f"its table {name!r} was changed by hand")
        text = text.replace(f"\n{table}" if f"\n\n{table}" in text else table, "")
    if entry:
        servers[name] = client.describe(entry)
        text += "" if not text else "\n" if text.endswith("\n") else "\n\n"
        text += _format_table(client, name, entry)
    try:
        is_equal = _parse_toml(text, client.key) == (config, servers)
    except ClientConfigError:
        is_equal = False
    if not is_equal:
        raise ClientConfigError("its servers have another form than tables of their own")
    return text


def _parse_toml(text: str, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a configuration has besides its servers, and the servers."""
    try:
        config = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise ClientConfigError(f"it is not TOML ({error})") from error
    servers = config.pop(key, {})
    if not isinstance(servers, dict):
        raise ClientConfigError(f"it has no table {key!r}")
    return config, servers


def _format_table(client: Client, name: str, entry: ServerEntry) -> str:
    quoted = name if _BARE_KEY.fullmatch(name) else json.dumps(name)
    lines = (f"{key} = {json.dumps(entry[key])}" for key in ("command", "args"))
    return "\n".join((f"[{client.key}.{quoted}]", *lines, ""))


def _check_own(stored: object, name: str) -> None:
    """Raise unless an entry is missing, or starts linkstore and has no more than linkstore writes."""
    if stored is None:
        return
    arguments = stored.get("args") if isinstance(stored, Mapping) else None
    if (
        not isinstance(stored, Mapping)
        or stored.keys() - {"type", "command", "args"}
        or not isinstance(stored.get("command"), str)
        or not isinstance(arguments, list)
        or not all(isinstance(argument, str) for argument in arguments)
        or not {"linkstore", "mcp", "--store"} <= {*arguments}
    ):
        raise ClientConfigError(f"it has another server {name!r}, or one with settings of its own")


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return made


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
    if not remove and find_spec("mcp") is None:
        raise MissingExtraError("linkstore mcp", "mcp")
    if source is not None:
        recognize_kind(source)
    entry = None if remove else _make_entry(stores, settings)
    changes, refused = _plan_all(chosen, lambda client: plan_change(client, server, entry, home, here))
    if source is not None and dry_run:
        show(f"would index {source} into {place}")
    elif source is not None:
        _index_and_ask(source, place)
    elif not remove:
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


def _make_entry(stores: Mapping[str, str], settings: Sequence[str]) -> ServerEntry:
    """Return the server as a client starts it, whose working directory and PATH may be others."""
    written = (f"{key}={place}" if key else place for key, place in stores.items())
    arguments = ["mcp", *(part for place in written for part in ("--store", place)), *settings]
    if any(_UVX.fullmatch(part) for part in Path(sys.prefix).parts):
        package = ("--from", "langchain-linkstore[mcp]", "linkstore")
        return {"command": "uvx", "args": [*package, *arguments]}
    return {"command": sys.executable, "args": ["-m", "linkstore", *arguments]}


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
