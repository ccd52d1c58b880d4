"""The application: its commands, ``--version``, and the handling of errors."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Final

import typer

from linkstore._version import __version__
from linkstore.cli.commands import add_command
from linkstore.cli.exits import end_at_once, end_with_reader, get_exit_code, raise_signals
from linkstore.cli.output import complain, prepare_streams
from linkstore.core.processes import slow_collector
from linkstore.errors import LinkStoreError

COMMANDS: Final = {
    "index": "index:index",
    "query": "query:query",
    "ask": "ask:ask",
    "context": "query:context",
    "links": "links:links",
    "suggest": "links:suggest",
    "stats": "maintain:stats",
    "profile": "evaluate:profile",
    "calibrate": "evaluate:calibrate",
    "delete": "maintain:delete",
    "export": "export:export",
    "relink": "index:relink",
    "facts": "ask:facts",
    "verify": "maintain:verify",
    "repair": "maintain:repair",
    "compact": "maintain:compact",
    "doctor": "maintain:doctor",
    "serve": "serve:serve",
    "mcp": "serve:mcp",
    "migrate": "export:migrate",
    "demo": "demo:demo",
    "eval": "evaluate:evaluate",
    "memory": "memory:app",
}
"""The module below ``linkstore.cli`` and the name in it of each command or group of commands, in order."""


def make_application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the application with these commands, whose modules are imported; default all."""
    app = typer.Typer(
        name="linkstore",
        help="Search a hyperlinked site by meaning, and follow its links.",
        epilog="Exit codes: 0 done, 1 other errors, 2 usage, 3 no store, 4 store busy, 5 store damaged or of"
        " another version, 6 embedding or optional dependency missing, 7 server unavailable, 8 part of the"
        " source unreadable (its stored pages were kept), 9 nothing to index, 10 an alarm of doctor,"
        " 11 a question that the sources do not answer, 129 terminal closed, 130 interrupted, 141 output"
        " closed, 143 terminated.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_read_options)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(f"linkstore.cli.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            add_command(app, name, command)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"linkstore {__version__}")
        raise typer.Exit


def _read_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Search a hyperlinked site by meaning, and follow its links."""


def run(arguments: Sequence[str] | None) -> None:
    """Run the command line and exit: see :func:`linkstore.cli.main`."""
    prepare_streams()
    words = sys.argv[1:] if arguments is None else list(arguments)
    with slow_collector(), end_with_reader():
        try:
            with end_at_once():
                app = make_application([words[0]] if words and words[0] in COMMANDS else COMMANDS)
            with raise_signals():
                app(args=words, prog_name="linkstore")
        except (LinkStoreError, OSError) as error:
            complain(f"linkstore: {error}")
            sys.exit(get_exit_code(error))
