"""The application: its commands, ``--version``, and the handling of errors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Final

import typer

from linkstore._version import __version__
from linkstore.cli.ending import ended_by_interrupts, ended_by_readers, terminated_in_order
from linkstore.cli.exits import exit_code
from linkstore.cli.output import complain, ready_streams
from linkstore.cli.speaking import speaking
from linkstore.errors import LinkStoreError
from linkstore.gc_pause import collections_rare

COMMANDS: Final = {
    "index": "index:index",
    "query": "query:query",
    "context": "context:context",
    "links": "links:links",
    "stats": "stats:stats",
    "profile": "profile:profile",
    "calibrate": "calibrate:calibrate",
    "delete": "delete:delete",
    "export": "export:export",
    "relink": "relink:relink",
    "facts": "facts:facts",
    "verify": "maintain:verify",
    "repair": "maintain:repair",
    "compact": "maintain:compact",
    "doctor": "doctor:doctor",
    "mcp": "mcp:mcp",
    "migrate": "migrate:migrate",
    "demo": "demo:demo",
    "eval": "evaluate:evaluate",
    "memory": "memory:app",
}
"""The module below ``linkstore.cli`` and the name in it of each command or group of commands, in order."""


def application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the application with these commands, whose modules are imported; default all."""
    app = typer.Typer(
        name="linkstore",
        help="Search a hyperlinked site by meaning, and follow its links.",
        epilog="Exit codes: 0 done, 1 other errors, 2 usage, 3 no store, 4 store busy, 5 store damaged or of"
        " another version, 6 embedding or optional dependency missing, 7 server unavailable, 8 part of the"
        " source unreadable (its stored pages were kept), 9 nothing to index, 10 an alarm of doctor,"
        " 129 terminal closed, 130 interrupted, 141 output closed, 143 terminated.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_options)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(f"linkstore.cli.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(speaking(command))
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"linkstore {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Search a hyperlinked site by meaning, and follow its links."""


def run(arguments: Sequence[str] | None) -> None:
    """Run the command line and exit: see :func:`linkstore.cli.main`."""
    ready_streams()
    words = sys.argv[1:] if arguments is None else list(arguments)
    with collections_rare(), ended_by_readers():
        try:
            with ended_by_interrupts():
                app = application([words[0]] if words and words[0] in COMMANDS else COMMANDS)
            with terminated_in_order():
                app(args=words, prog_name="linkstore")
        except (LinkStoreError, OSError) as error:
            complain(f"linkstore: {error}")
            sys.exit(exit_code(error))
