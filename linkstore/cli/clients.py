"""The configurations of MCP clients: where they lie, and how a server is added and removed.

A file is changed only if all of it is understood and nothing of it would be lost: JSON with comments, with a
name twice, or with another server of this name is left alone, and the message says what to write by hand.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from linkstore.errors import LinkStoreError

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


class ClientConfigError(LinkStoreError, ValueError):
    """The configuration of a client is not understood, or cannot be changed without loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """A server as a client starts it.

    Args:
        name: The name in the client.
        command: The program.
        arguments: Its arguments.
    """

    name: str
    command: str
    arguments: tuple[str, ...]


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
        kind = {"type": "stdio"} if self.typed else {}
        return {**kind, "command": entry.command, "args": list(entry.arguments)}


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


def plan_addition(client: Client, entry: ServerEntry, home: Path, here: Path) -> Change:
    """Return the change that adds a server to a client, or replaces an earlier one of linkstore's.

    Args:
        client: Whose configuration it is.
        entry: The server.
        home: The home of the user.
        here: The working directory.

    Raises:
        ClientConfigError: If the configuration is not understood, or has another server of this name.
    """
    return _plan(client, entry.name, entry, home, here)


def plan_removal(client: Client, name: str, home: Path, here: Path) -> Change:
    """Return the change that removes the server of this name from a client: see :func:`plan_addition`."""
    return _plan(client, name, None, home, here)


def _plan(client: Client, name: str, entry: ServerEntry | None, home: Path, here: Path) -> Change:
    path = client.get_path(home, here)
    before = _read(path)
    written = "" if entry is None else format_entry(client, entry)
    try:
        after = (_plan_toml if client.is_toml else _plan_json)(before or "", client, name, entry)
    except ClientConfigError as error:
        by_hand = f"add this by hand: {written}" if entry else f"remove {name!r} by hand"
        raise ClientConfigError(f"{path} was left as it is: {error}; {by_hand}") from error
    return Change(client=client, path=path, before=before, after=after, entry=written)


def format_entry(client: Client, entry: ServerEntry) -> str:
    """Return the part of a configuration that adds a server."""
    if client.is_toml:
        return _format_table(client, entry)
    return json.dumps({client.key: {entry.name: client.describe(entry)}}, ensure_ascii=False)


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
        own = ServerEntry(name=name, command=stored["command"], arguments=tuple(stored["args"]))
        table = _format_table(client, own)
        if text.count(table) != 1:
            raise ClientConfigError(f"its table {name!r} was changed by hand")
        text = text.replace(f"\n{table}" if f"\n\n{table}" in text else table, "")
    if entry:
        servers[name] = client.describe(entry)
        text += "" if not text else "\n" if text.endswith("\n") else "\n\n"
        text += _format_table(client, entry)
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


def _format_table(client: Client, entry: ServerEntry) -> str:
    name = entry.name if _BARE_KEY.fullmatch(entry.name) else json.dumps(entry.name)
    lines = (f"{key} = {json.dumps(value)}" for key, value in client.describe(entry).items())
    return "\n".join((f"[{client.key}.{name}]", *lines, ""))


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
