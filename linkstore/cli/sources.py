"""The kinds of source that can be indexed: how they are recognized, and the functions that index them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from linkstore.cli.exits import UnavailableError, UsageError

if TYPE_CHECKING:
    from linkstore.ingest.source import PageStore, Progress, Source, Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """A kind of source.

    Args:
        name: Its name, as for ``--as``.
        title: A description in a few words.
        fits: Says whether a place is of this kind, by its name and what lies there.
        index: Its function in :mod:`linkstore.ingest`, loaded late; called with store, place and options.
        options: The options that not all kinds take: keyword → how the option is written.
        there: Whether a place of this kind must be on disk.
        source: Its class in :mod:`linkstore.ingest`, loaded late; called with a place and options. None for
            one that cannot be looked at without its network.
    """

    name: str
    title: str
    fits: Callable[[str], bool]
    index: Callable[[], Callable[..., Summary]]
    options: Mapping[str, str]
    there: bool = True
    source: Callable[[], Callable[..., Source]] | None = None


def _load_later(name: str) -> Callable[[], Callable[..., Any]]:
    """Return a function that loads a function or class of :mod:`linkstore.ingest`."""

    def load() -> Callable[..., Any]:
        from linkstore import ingest

        found: Callable[..., Any] = getattr(ingest, name)
        return found

    return load


def _load_with_settings(name: str) -> Callable[[], Callable[..., Any]]:
    """Return a function that loads a function or class that takes settings."""

    def load() -> Callable[..., Any]:
        from linkstore.ingest.html.folder import IngestSettings

        return partial(_run_with_settings, _load_later(name)(), IngestSettings)

    return load


def _run_with_settings(
    run: Callable[..., Any],
    settings: Callable[..., Any],
    *place: Any,
    claims: str = "own",
    encoding: str | None = None,
    **options: Any,
) -> Any:
    return run(*place, settings=settings(claims=claims, encoding=encoding), **options)


def _load_website() -> Callable[..., Summary]:
    from linkstore.ingest.web.client import WebSettings
    from linkstore.ingest.web.targets import FetchError, RobotsError, WebSettingsError
    from linkstore.ingest.web.website import index_website

    def run(
        store: PageStore,
        url: str,
        *,
        source: str | None,
        links: Sequence[str],
        progress: Progress | None,
        dry_run: bool,
        prune: bool,
        jobs: int | None,
        **options: Any,
    ) -> Summary:
        try:
            settings = WebSettings(**options)
            return index_website(
                store,
                url,
                source=source,
                links=links,
                settings=settings,
                progress=progress,
                dry_run=dry_run,
                prune=prune,
                jobs=jobs,
            )
        except WebSettingsError as error:
            raise UsageError(str(error)) from error
        except FetchError as error:
            if not error.again and not isinstance(error, RobotsError):
                raise
            raise UnavailableError(str(error)) from error

    return run


def _is_vault(place: str) -> bool:
    try:
        return (Path(place) / ".obsidian").is_dir()
    except PermissionError:
        return False  # the folder source reports what cannot be read


def _make_suffix_test(*suffixes: str) -> Callable[[str], bool]:
    return lambda place: place.lower().endswith(suffixes) and not Path(place).is_dir()


SOURCE_KINDS: Final = (
    SourceKind(
        name="website",
        title="a website or sitemap, as https://…",
        fits=lambda place: place.lower().startswith(("https://", "http://")),
        index=_load_website,
        options={
            "prefix": "--prefix",
            "allow": "--allow",
            "deny": "--deny",
            "max_pages": "--max-pages",
            "max_depth": "--max-depth",
            "rate": "--rate",
            "allow_private": "--allow-private",
            "encoding": "--encoding",
        },
        there=False,
    ),
    SourceKind(
        name="jsonl",
        title="a file of JSON lines",
        fits=_make_suffix_test(".jsonl", ".ndjson"),
        index=_load_later("index_jsonl"),
        options={"prefix": "--prefix", "claims": "--trust-claims", "encoding": "--encoding"},
        source=_load_later("JsonlSource"),
    ),
    SourceKind(
        name="zim",
        title="a ZIM file",
        fits=_make_suffix_test(".zim"),
        index=_load_later("index_zim"),
        options={"prefix": "--prefix"},
        source=_load_later("ZimSource"),
    ),
    SourceKind(
        name="wiki",
        title="a MediaWiki XML dump",
        fits=_make_suffix_test(".xml", ".xml.bz2"),
        index=_load_later("index_wiki"),
        options={"prefix": "--prefix"},
        source=_load_later("WikiSource"),
    ),
    SourceKind(
        name="vault",
        title="a vault of Markdown notes",
        fits=_is_vault,
        index=_load_with_settings("index_vault"),
        options={"prefix": "--prefix", "claims": "--trust-claims", "encoding": "--encoding"},
        source=_load_with_settings("VaultSource"),
    ),
    SourceKind(
        name="folder",
        title="a folder of built HTML or Markdown",
        fits=lambda place: Path(place).is_dir(),
        index=_load_with_settings("index_folder"),
        options={"prefix": "--prefix", "claims": "--trust-claims", "encoding": "--encoding"},
        source=_load_with_settings("FolderSource"),
    ),
)
"""The first one that fits a place is taken."""


def recognize_kind(place: str, named: str | None = None) -> SourceKind:
    """Return the kind of source that a place is.

    Args:
        place: A path or URL.
        named: The value of ``--as``, if any.

    Raises:
        UsageError: If the place does not exist, or its kind is unknown.
    """
    if not place.strip():
        raise UsageError("SOURCE is empty; give a URL, a folder or a file")
    kind = _find_kind(named) if named else next((kind for kind in SOURCE_KINDS if kind.fits(place)), None)
    if kind is None:
        if Path(place).is_file():
            from linkstore.ingest.files import suggest_source

            if instead := suggest_source(place):
                raise UsageError(f"{place}: {instead}")
        known = "; ".join(f"{kind.title} ({kind.name})" for kind in SOURCE_KINDS)
        found = "the kind of source is not recognized" if Path(place).exists() else "it does not exist"
        raise UsageError(f"{place}: {found}; give one of: {known}")
    if kind.there and not _is_there(place):
        raise UsageError(f"{place} does not exist; give {kind.title}")
    return kind


def _is_there(place: str) -> bool:
    try:
        return Path(place).absolute().exists()
    except FileNotFoundError as error:
        raise UsageError(f"{place} is relative, and the working directory is gone") from error


def select_options(kind: SourceKind, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given, all of which the kind must take.

    Args:
        kind: The kind of the source.
        given: Options that not all kinds take, keyword → value: None, empty or False if it was not given.

    Raises:
        UsageError: If an option is of another kind of source.
    """
    chosen = {name: value for name, value in given.items() if value or type(value) in (int, float)}
    for name in chosen:
        if name not in kind.options:
            spelled = next((one.options[name] for one in SOURCE_KINDS if name in one.options), name)
            takers = ", ".join(one.name for one in SOURCE_KINDS if name in one.options)
            raise UsageError(f"{spelled} is for {takers}; this is {kind.title}")
    return chosen


def _find_kind(name: str) -> SourceKind:
    for kind in SOURCE_KINDS:
        if kind.name == name:
            return kind
    raise UsageError(f"--as {name}: unknown kind; known: {', '.join(kind.name for kind in SOURCE_KINDS)}")
