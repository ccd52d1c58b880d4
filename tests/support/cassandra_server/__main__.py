"""``python -m cassandra_server``: one node for a person, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from cassandra_server.config import VERSION
from cassandra_server.endpoint import create_keyspace
from cassandra_server.machine import ServerError
from cassandra_server.server import Server

KEYSPACE = "linkstore"
PORT = 9042


def main() -> int:
    """Start, say where, wait, stop; 1 if it could not start or ended by itself."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"Starting Cassandra {VERSION} …", flush=True)
    try:
        server = Server(options.data, port=options.port, heap=options.heap)
        try:
            _serve(server, kept=options.data is not None)
        finally:
            server.close()
    except ServerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _serve(server: Server, *, kept: bool) -> None:
    """Until Ctrl-C."""
    try:
        with server.start().connect() as session:
            create_keyspace(session, KEYSPACE)
        _say_where(server, kept=kept)
        while server.running:
            time.sleep(0.5)
    except KeyboardInterrupt:
        print("\nStopping …", flush=True)
        server.stop()
    else:
        raise ServerError(f"Cassandra ended by itself:\n{server.log_end()}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cassandra_server", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder to keep; default: one that is removed at the end")
    parser.add_argument(
        "--port", type=int, default=PORT, help="another is taken if it is not free (%(default)s)"
    )
    parser.add_argument("--heap", default="1G", help="Java's heap (%(default)s)")
    return parser.parse_args()


def _say_where(server: Server, *, kept: bool) -> None:
    store = server.endpoint.store_url(KEYSPACE, "docs")
    print(
        f"""
Ready at {server.host}:{server.port}, keyspace {KEYSPACE}; data {"kept" if kept else "removed at the end"}:
  {server.node.folder}

Try:
  linkstore index docs --store {store}
  linkstore query "What is a hub?" --store {store}

Ctrl-C stops it.""",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
