"""The application and its commands, which are functions.

The signature of a function has the options of its command, and its docstring says what each is for. ``Args``
are the help of the options; what stands there in parentheses is the placeholder of a value. A parameter
without default is an argument, a bool is a switch without ``--no-``. What else an option has, such as a
range, is a ``typer.Option`` in its annotation. All commands have the options for the amount of output, too.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin

import typer

from linkstore._version import __version__
from linkstore.cli.exits import UsageError, end_at_once, end_with_reader, get_exit_code, raise_signals
from linkstore.cli.output import complain, note, prepare_streams, quiet
from linkstore.core.arguments import ArgumentText, read_docstring
from linkstore.core.display import escape_unprintable
from linkstore.core.processes import infrequent_gc
from linkstore.errors import LinkStoreError

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
EmbeddingOption = Annotated[
    str | None,
    typer.Option(
        "--embedding",
        metavar="NAME",
        help="The embedding: wordllama, minilm, openai:MODEL, or package.module:function that makes it;"
        " default that of the store, else LINKSTORE_EMBEDDING.",
    ),
]
TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="The question.", show_default=False)]
JsonOption = Annotated[bool, typer.Option(help="Print JSON.")]
_LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


def add_command(app: typer.Typer, name: str, function: Callable[..., None]) -> None:
    """Add a function to an application as a command."""
    own, common = inspect.signature(function, eval_str=True), inspect.signature(_set_output, eval_str=True)
    description, texts = read_docstring(function)
    _, told_of_all = read_docstring(_set_output)
    parameters = [_describe(parameter, texts) for parameter in own.parameters.values()]
    parameters += [_describe(parameter, told_of_all) for parameter in common.parameters.values()]

    @wraps(function)
    def run(**given: Any) -> None:
        with _set_output(**{name: given.pop(name) for name in common.parameters}):
            try:
                function(**given)
            except KeyboardInterrupt as error:
                note("stopped")
                raise typer.Exit(get_exit_code(error)) from error

    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app.command(name, help=description)(run)


def make_group(description: str, *functions: Callable[..., None]) -> typer.Typer:
    """Return a group of commands, each with the name of its function."""
    group = typer.Typer(help=description, no_args_is_help=True)
    for function in functions:
        add_command(group, function.__name__, function)
    return group


def _describe(parameter: inspect.Parameter, told: dict[str, ArgumentText]) -> inspect.Parameter:
    """Return the parameter of a command, with what its docstring tells of it."""
    kind, info = parameter.annotation, None
    if get_origin(kind) is Annotated:
        kind, info = get_args(kind)
    option = copy(info or (typer.Argument() if parameter.default is parameter.empty else typer.Option()))
    if kind is bool and not option.param_decls:
        option.param_decls = (f"--{parameter.name.replace('_', '-')}",)
    if text := told.get(parameter.name):
        option.help, option.metavar = text.text, text.kind or option.metavar
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
            # A reader's steps take long; whoever waits at a terminal sees them.
            for name in ("linkstore.index", *(["linkstore.reader"] if sys.stderr.isatty() else [])):
                stack.enter_context(_attach_handler(_NoteHandler(), name=name))
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


COMMANDS: Final = {
    "index": "index:index",
    "query": "query:query",
    "ask": "ask:ask",
    "context": "query:context",
    "links": "links:links",
    "match": "match:match",
    "delete": "maintain:delete",
    "export": "export:export",
    "facts": "ask:facts",
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
    with infrequent_gc(), end_with_reader():
        try:
            with end_at_once():
                app = make_application([words[0]] if words and words[0] in COMMANDS else COMMANDS)
            with raise_signals():
                app(args=words, prog_name="linkstore")
        except (LinkStoreError, OSError) as error:
            complain(f"linkstore: {error}")
            sys.exit(get_exit_code(error))
