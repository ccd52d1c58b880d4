"""The amount of output: options of all commands."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from linkstore.cli.exits import UsageError, get_exit_code
from linkstore.cli.output import complain, note, quiet
from linkstore.core.display import escape_unprintable

QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Log each step to stderr, page by page.")
]
LogFileOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", dir_okay=False, help="Append the log of --verbose to FILE, with times."),
]
_LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


def add_output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options ``--quiet``, ``--verbose`` and ``--log-file``."""
    own = inspect.signature(command, eval_str=True)
    parameters = list(own.parameters.values())
    added = (
        ("quietly", False, QuietOption),
        ("verbose", False, VerboseOption),
        ("log_file", None, LogFileOption),
    )
    for name, default, kind in added:
        more = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        parameters.append(more)

    @wraps(command)
    def run(*, quietly: bool, verbose: bool, log_file: Path | None, **given: Any) -> None:
        with _set_verbosity(quietly=quietly, verbose=verbose, log_file=log_file):
            try:
                command(**given)
            except KeyboardInterrupt as error:
                note("stopped")
                raise typer.Exit(get_exit_code(error)) from error

    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


@contextmanager
def _set_verbosity(*, quietly: bool, verbose: bool, log_file: Path | None) -> Iterator[None]:
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
