"""``linkstore mcp`` as clients meet it: started as a process, spoken to over HTTP or standard streams."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOKEN = "a-token-of-the-tests-0123456789"
COMMAND = [sys.executable, "-c", "from linkstore.cli import main; main()", "mcp"]
QUESTION = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
JSON_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-06-18",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer to a request in HTTP; status 0 where the connection was closed without one."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


@contextmanager
def serving(store: Path, *arguments: str, **limits: float) -> Iterator[int]:
    """A server over HTTP, by its port; ``limits`` are used in place of the defaults of ``HttpLimits``."""
    environment = {**os.environ, "LINKSTORE_MCP_TOKEN": TOKEN}
    command = [*COMMAND, "--store", str(store), "--http", "--port", "0", *arguments]
    if limits:
        command[2] = f"""\
from linkstore.core.http_server import HttpLimits
HttpLimits.__init__.__kwdefaults__.update({limits!r})
{command[2]}"""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"listening at http://\S+:(\d+)/mcp", line):
                break
        else:
            raise AssertionError("the server did not start")
        yield int(found[1])
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stderr.close()


def request(
    port: int,
    *,
    method: str = "POST",
    path: str = "/mcp",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    also: tuple[tuple[str, str], ...] = (),
) -> Reply:
    """Send a request that is right but for what is given; a header of "" is left out."""
    body = json.dumps(QUESTION).encode() if body is None else body
    given = {
        "Host": f"127.0.0.1:{port}",
        "Authorization": f"Bearer {TOKEN}",
        **JSON_HEADERS,
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    lines = [f"{name}: {value}" for name, value in [*given.items(), *also] if value]
    head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""])
    return sent(port, head.encode("latin-1") + body)


def sent(port: int, data: bytes, wait: float = 15) -> Reply:
    """Send bytes as they are, and read to the end."""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
            connection.sendall(data)
        return read_reply(connection)


def read_reply(connection: socket.socket) -> Reply:
    """What comes until the connection is closed."""
    received = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            received += part
    if not received:
        return Reply(status=0, headers={}, body=b"")
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.split(": ", 1) for line in lines)
    return Reply(status=int(status.split()[1]), headers={k.lower(): v for k, v in pairs}, body=body)
