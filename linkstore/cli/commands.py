"""Commands from functions: the signature has the options, the docstring says what each is for.

``Args`` of the docstring are the help of the options; what stands there in parentheses is the placeholder of
a value. A parameter without default is an argument, a bool is a switch without ``--no-``. What else an option
has, such as a range, is a ``typer.Option`` in its annotation. All commands have the options for the amount of
output besides.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin

import typer

from linkstore.cli.exits import UsageError, get_exit_code
from linkstore.cli.output import complain, note, quiet
from linkstore.core.arguments import ArgumentText, read_docstring
from linkstore.core.display import escape_unprintable

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        "-s",
        metavar="PLACE",
        envvar="LINKSTORE_STORE",
        help="The store: a folder, or cassandra://host:port/keyspace/table.",
    ),
]
TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="The question.", show_default=False)]
JsonOption = Annotated[bool, typer.Option(help="Print JSON.")]
_LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


def add_command(app: typer.Typer, name: str, function: Callable[..., None]) -> None:
    """Add a function to an application as a command."""
    own, common = inspect.signature(function, eval_str=True), inspect.signature(_set_output, eval_str=True)
    description, told = read_docstring(function)
    _, told_of_all = read_docstring(_set_output)
    parameters = [_describe(one, told) for one in own.parameters.values()]
    parameters += [_describe(one, told_of_all) for one in common.parameters.values()]

    @wraps(function)
    def run(**given: Any) -> None:
        with _set_output(**{name: given.pop(name) for name in common.parameters}):
            try:
                function(**given)
            except KeyboardInterrupt as error:
                note("stopped")
                raise typer.Exit(get_exit_code(error)) from error

    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    app.command(name, help=description)(run)


def make_group(description: str, *functions: Callable[..., None]) -> typer.Typer:
    """Return a group of commands, each with the name of its function."""
    group = typer.Typer(help=description, no_args_is_help=True)
    for one in functions:
        add_command(group, one.__name__, one)
    return group


def _describe(parameter: inspect.Parameter, told: dict[str, ArgumentText]) -> inspect.Parameter:
    """Return the parameter of a command, with what its docstring tells of it."""
    kind, given = parameter.annotation, None
    if get_origin(kind) is Annotated:
        kind, given = get_args(kind)
    option = copy(given or (typer.Argument() if parameter.default is parameter.empty else typer.Option()))
    if kind is bool and not option.param_decls:
        option.param_decls = (f"--{parameter.name.replace('_', '-')}",)
    if said := told.get(parameter.name):
        option.help, option.metavar = said.text, said.kind or option.metavar
    return parameter.replace(annotation=Annotated[kind, option], kind=inspect.Parameter.KEYWORD_ONLY)


@contextmanager
def _set_output(
    quietly: Annotated[bool, typer.Option("--quiet", "-q")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v")] = False,
    log_file: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
) -> Iterator[None]:
    """Set the amount of output.

    Args:
        quietly: Print results and errors only.
        verbose: Log each step to stderr, page by page.
        log_file (FILE): Append the log of --verbose to FILE, with times.
    """
    if quietly and verbose:
        raise UsageError("--quiet and --verbose cannot be used together")
    before = quiet.set(quietly)
    with ExitStack() as stack:
        stack.callback(quiet.reset, before)
        if verbose:
            stack.enter_context(_attach_handler(logging.StreamHandler()))
        else:
            stack.enter_context(_attach_handler(_NoteHandler(), name="linkstore.index"))
        if log_file is not None:
            try:
                handler = logging.FileHandler(log_file, encoding="utf-8", errors="backslashreplace")
            except OSError as error:
                raise UsageError(f"--log-file: {error}") from error
            stack.enter_context(_attach_handler(handler, _LOG_FORMAT))
        yield


@contextmanager
def _attach_handler(
    handler: logging.Handler, shown: str = "%(message)s", name: str = "linkstore"
) -> Iterator[None]:
    logger = logging.getLogger(name)
    before = logger.level
    handler.setFormatter(_EscapingFormatter(shown))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        handler.close()


class _NoteHandler(logging.Handler):
    """A handler that shows log messages as notes; a quiet command shows warnings only."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show a message."""
        say = note if record.levelno < logging.WARNING else complain
        say(self.format(record))


class _EscapingFormatter(logging.Formatter):
    """A formatter that keeps a message on its line, whatever the name of a page contains."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the name is logging's)
        record.message = escape_unprintable(record.message)
        return super().formatMessage(record)
