"""The application: its commands, ``--version``, and how errors end it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from linkstore._version import __version__
from linkstore.cli import (
    calibrate,
    context,
    delete,
    demo,
    doctor,
    evaluate,
    export,
    facts,
    index,
    links,
    maintain,
    mcp,
    memory,
    migrate,
    profile,
    query,
    relink,
    stats,
)
from linkstore.cli.exits import exit_code
from linkstore.cli.output import complain, ready_streams
from linkstore.cli.speaking import speaking
from linkstore.errors import LinkStoreError

app = typer.Typer(
    name="linkstore",
    help="Search a hyperlinked site by meaning, and follow its links.",
    epilog="Exit codes: 0 done, 1 other errors, 2 usage, 3 no store, 4 store busy, 5 store damaged or of"
    " another version, 6 embedding or optional dependency missing, 7 server unavailable, 8 part of the"
    " source unreadable (its stored pages were kept), 9 nothing to index, 10 an alarm of doctor,"
    " 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for _command in (
    index.index,
    query.query,
    context.context,
    links.links,
    stats.stats,
    profile.profile,
    calibrate.calibrate,
    delete.delete,
    export.export,
    relink.relink,
    facts.facts,
    maintain.verify,
    maintain.repair,
    maintain.compact,
    doctor.doctor,
    mcp.mcp,
    migrate.migrate,
    demo.demo,
):
    app.command()(speaking(_command))
app.command("eval")(speaking(evaluate.evaluate))
app.add_typer(memory.app, name="memory")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"linkstore {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Search a hyperlinked site by meaning, and follow its links."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        arguments: Words after ``linkstore``; default those of the process.
    """
    ready_streams()
    try:
        app(args=None if arguments is None else list(arguments), prog_name="linkstore")
    except (LinkStoreError, OSError) as error:
        complain(f"linkstore: {error}")
        sys.exit(exit_code(error))
