"""The application and its commands, which are functions.

The signature of a function has the options of its command, and its docstring says what each is for. ``Args``
are the help of the options; what stands there in parentheses is the placeholder of a value. A parameter
without default is an argument, a bool is a switch without ``--no-``. What else an option has, such as a
range, is a ``typer.Option`` in its annotation. All commands have the options for the amount of output, too.
"""

from __future__ import annotations

import inspect
import logging
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin

import typer
from typer.core import TyperGroup

from linkstore._version import __version__
from linkstore.cli.exits import UsageError, end_at_once, end_with_reader, get_exit_code, raise_signals
from linkstore.cli.output import complain, inform, prepare_streams, quiet
from linkstore.cli.stores import find_store
from linkstore.core.arguments import ArgumentText, read_docstring
from linkstore.core.display import escape_unprintable
from linkstore.errors import LinkStoreError

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        "-s",
        metavar="PLACE",
        envvar="LINKSTORE_STORE",
        help="The store: a folder, or cassandra://host:port/keyspace/table; default the .linkstore in this"
        " folder or the nearest one above.",
        show_default=False,
    ),
]
EmbeddingOption = Annotated[
    str | None,
    typer.Option(
        "--embedding",
        metavar="NAME",
        help="The embedding: wordllama, minilm, bge-small, multilingual, openai:MODEL, or"
        " package.module:function that makes it; default that of the store, else LINKSTORE_EMBEDDING.",
    ),
]
TextArgument = Annotated[
    str, typer.Argument(metavar="TEXT", help="The question; it needs no quotes.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option(help="Print JSON.")]
_HELP: Final = {"help_option_names": ["-h", "--help"]}
_LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


def add_command(app: typer.Typer, name: str, function: Callable[..., None], example: str = "") -> None:
    """Add a function to an application as a command, whose help has these words as an example."""
    own, common = inspect.signature(function, eval_str=True), inspect.signature(_set_output, eval_str=True)
    description, texts = read_docstring(function)
    _, common_texts = read_docstring(_set_output)
    parameters = [_describe(parameter, texts) for parameter in own.parameters.values()]
    parameters += [_describe(parameter, common_texts) for parameter in common.parameters.values()]

    @wraps(function)
    def run(**values: Any) -> None:
        with _set_output(**{name: values.pop(name) for name in common.parameters}):
            for parameter in own.parameters.values():
                if parameter.annotation == StoreOption and not values[parameter.name]:
                    values[parameter.name] = find_store()
                elif parameter.annotation == TextArgument:
                    values[parameter.name] = " ".join(values[parameter.name])
            try:
                function(**values)
            except KeyboardInterrupt as error:
                inform("stopped")
                raise typer.Exit(get_exit_code(error)) from error

    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    epilog = f"Example: linkstore {name} {example}".rstrip()
    app.command(name, help=description, epilog=epilog, context_settings=_HELP)(run)


def _describe(parameter: inspect.Parameter, told: dict[str, ArgumentText]) -> inspect.Parameter:
    """Return the parameter of a command, with what its docstring tells of it."""
    kind, info, default = parameter.annotation, None, parameter.default
    if kind == StoreOption:
        default = None  # the store of the working directory
    if get_origin(kind) is Annotated:
        kind, info = get_args(kind)
    option = copy(info or (typer.Argument() if parameter.default is parameter.empty else typer.Option()))
    if kind is bool and not option.param_decls:
        option.param_decls = (f"--{parameter.name.replace('_', '-')}",)
    if text := told.get(parameter.name):
        option.help, option.metavar = text.text, text.kind or option.metavar
    many = parameter.annotation == TextArgument  # its words, so that it needs no quotes
    annotation: Any = Annotated[list[str], option] if many else Annotated[kind, option]
    return parameter.replace(annotation=annotation, default=default, kind=inspect.Parameter.KEYWORD_ONLY)


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
                stack.enter_context(_attach_handler(_StatusHandler(), name=name))
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


class _StatusHandler(logging.Handler):
    """A handler that shows log messages as status lines; a quiet command shows warnings only."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show a message."""
        say = inform if record.levelno < logging.WARNING else complain
        say(self.format(record))


class _EscapingFormatter(logging.Formatter):
    """A formatter that keeps a message on its line, whatever the name of a page contains."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the name is logging's)
        record.message = escape_unprintable(record.message)
        return super().formatMessage(record)


COMMAND_GROUPS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Begin": {
        "open": ("serve:open_source", "docs/"),
        "index": ("index:index", "https://example.org"),
        "serve": ("serve:serve", ""),
        "demo": ("demo:demo", ""),
        "embeddings": ("embeddings:embeddings", ""),
    },
    "Ask": {
        "query": ("query:query", "what is a hub"),
        "ask": ("ask:ask", "what is a hub"),
        "context": ("query:context", "what is a hub -b 500"),
        "match": ("match:match", "needle OWNED_BY"),
        "facts": ("ask:facts", "--facts kb-facts --model ollama:qwen3"),
    },
    "Look after a store": {
        "doctor": ("maintain:doctor", ""),
        "links": ("links:links", "--suggest"),
        "delete": ("maintain:delete", "old.html"),
        "eval": ("evaluate:evaluate", "--profile"),
    },
    "Take it elsewhere": {
        "mcp": ("serve:mcp", "--install"),
        "export": ("export:export", "-o kb.jsonl"),
        "migrate": ("export:migrate", "kb other-kb"),
        "memory": ("memory:memory", "--store turns"),
    },
}
"""The commands by what they are for, each with its module below ``linkstore.cli``, its function there, and an
example."""
COMMANDS: Final = {name: entry for group in COMMAND_GROUPS.values() for name, entry in group.items()}
_MEANT: Final = {
    "add": "index",
    "chat": "ask",
    "check": "doctor",
    "crawl": "index",
    "fetch": "embeddings fetch",
    "find": "query",
    "info": "doctor",
    "ingest": "index",
    "init": "index",
    "install": "mcp --install",
    "list": "doctor",
    "ls": "doctor",
    "map": "serve",
    "remove": "delete",
    "repair": "doctor --repair",
    "rm": "delete",
    "run": "serve",
    "search": "query",
    "show": "open",
    "start": "serve",
    "stats": "doctor",
    "status": "doctor",
    "ui": "serve",
    "update": "index",
    "verify": "doctor --verify",
    "view": "open",
    "web": "serve",
}
"""What somebody means who types another word."""


class _CommandGroup(TyperGroup):
    """The application; its help has the commands in groups, each with a short example."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, commands in COMMAND_GROUPS.items():
            rows = [
                (f"{name} {example}".strip(), self.commands[name].get_short_help_str(80))
                for name, (_, example) in commands.items()
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            message = getattr(error, "message", None)  # of click, or of the copy that Typer has
            if isinstance(message, str):
                extra = message.startswith("Got unexpected extra argument")
                more = "; quote a name with spaces, and name a store by --store" if extra else ""
                vars(error)["message"] = f"{message.removeprefix('Value error, ')}{more}"
            raise


def make_application(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """Return the application with these commands, whose modules are imported; default all."""
    app = typer.Typer(
        name="linkstore",
        cls=_CommandGroup,
        help="Search documents by meaning, and follow their links. With a path or URL alone, do as open.",
        epilog="Exit codes: 0 done, 1 other errors, 2 usage, 3 no store, 4 store busy, 5 store damaged or of"
        " another version, 6 embedding or optional dependency missing, 7 server unavailable, 8 part of the"
        " source unreadable (its stored pages were kept), 9 nothing to index, 10 an alarm of doctor,"
        " 11 a question that the sources do not answer, 129 terminal closed, 130 interrupted, 141 output"
        " closed, 143 terminated.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=_HELP,
    )
    app.callback()(_read_options)
    for name in names:
        place, example = COMMANDS[name]
        module, _, attribute = place.partition(":")
        add_command(app, name, getattr(import_module(f"linkstore.cli.{module}"), attribute), example)
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


def complete_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with the command that is meant, where they begin with a source.

    Raises:
        UsageError: If they begin with neither a command nor a source. The message has what is meant.
    """
    first, *rest = words or ("-",)
    if first == "version":
        return ["--version"]
    if first == "help":
        return [*rest, "--help"]
    if first.startswith("-") or first in COMMANDS:
        return list(words)
    if _looks_like_source(first):
        return ["open", *words]
    near = [first] if first in _MEANT else get_close_matches(first.lower(), [*COMMANDS, "search"], 1, 0.75)
    if near:
        meant, rest_text = _MEANT.get(near[0], near[0]), f" {shlex.join(rest)}" if rest else ""
        raise UsageError(f"there is no command {first!r}; did you mean: linkstore {meant}{rest_text}")
    if rest or " " in first:
        raise UsageError(
            f"there is no command {first!r}; to ask a store: linkstore query {shlex.join(words)}"
        )
    raise UsageError(
        f"there is no command and no file or folder {first!r}; linkstore --help lists the commands"
    )


def _looks_like_source(word: str) -> bool:
    """Say whether a word is a path, or has the form of one or of a URL."""
    has_form = re.search(r"[/\\]|\.\w+$|^\.+$", word) and " " not in word
    return bool(word.strip()) and (bool(has_form) or Path(word).exists())


def run(arguments: Sequence[str] | None) -> None:
    """Run the command line and exit: see :func:`linkstore.cli.main`."""
    prepare_streams()
    words = sys.argv[1:] if arguments is None else list(arguments)
    with end_with_reader():
        try:
            words = complete_words(words)
            with end_at_once():
                app = make_application([words[0]] if words and words[0] in COMMANDS else COMMANDS)
            with raise_signals():
                app(args=words, prog_name="linkstore")
        except (LinkStoreError, OSError) as error:
            complain(f"linkstore: {error}")
            sys.exit(get_exit_code(error))
