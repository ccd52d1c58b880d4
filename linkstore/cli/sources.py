"""The kinds of source that can be indexed: how they are recognized, and what reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from linkstore.cli.exits import UsageError

if TYPE_CHECKING:
    from linkstore.ingest.source import PageStore, Source, Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """A kind of source.

    Args:
        name: Its name, as for ``--as``.
        title: A description in a few words.
        fits: Says whether a place is of this kind, by its name and what lies there.
        function: The function that indexes it.
        source: Its class; empty for one that cannot be looked at without its network.
        settings: The class that takes those of the options that are its fields.
        options: The options that not all kinds take.
        module: Defines these names, and is imported when they are used.
    """

    name: str
    title: str
    fits: Callable[[str], bool]
    function: str
    source: str = ""
    settings: str = ""
    options: tuple[str, ...] = ("prefix",)
    module: str = "linkstore.ingest"

    def index(self, store: PageStore, place: str, options: Mapping[str, Any], **common: Any) -> Summary:
        """Index a place, with options of this kind and those that are common to all."""
        run = getattr(import_module(self.module), self.function)
        summary: Summary = run(store, place, **self._make_arguments(options), **common)
        return summary

    def open(self, place: str, options: Mapping[str, Any]) -> Source:
        """Return the source at a place."""
        source: Source = getattr(import_module(self.module), self.source)(
            place, **self._make_arguments(options)
        )
        return source

    def _make_arguments(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if not self.settings:
            return dict(options)
        settings = getattr(import_module(self.module), self.settings)
        names = {field.name for field in fields(settings)}
        apart = {name: value for name, value in options.items() if name not in names}
        given = {name: value for name, value in options.items() if name in names}
        return {**apart, "settings": settings(**given)}


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
        function="index_website",
        settings="WebSettings",
        options=("prefix", "allow", "deny", "max_pages", "max_depth", "rate", "allow_private", "encoding"),
        module="linkstore.ingest.web",
    ),
    SourceKind(
        name="jsonl",
        title="a file of JSON lines",
        fits=_make_suffix_test(".jsonl", ".ndjson"),
        function="index_jsonl",
        source="JsonlSource",
        options=("prefix", "claims", "encoding"),
    ),
    SourceKind(
        name="zim",
        title="a ZIM file",
        fits=_make_suffix_test(".zim"),
        function="index_zim",
        source="ZimSource",
    ),
    SourceKind(
        name="wiki",
        title="a MediaWiki XML dump",
        fits=_make_suffix_test(".xml", ".xml.bz2"),
        function="index_wiki",
        source="WikiSource",
    ),
    SourceKind(
        name="vault",
        title="a vault of Markdown notes",
        fits=_is_vault,
        function="index_vault",
        source="VaultSource",
        settings="IngestSettings",
        options=("prefix", "claims", "encoding"),
    ),
    SourceKind(
        name="folder",
        title="a folder of built HTML or Markdown",
        fits=lambda place: Path(place).is_dir(),
        function="index_folder",
        source="FolderSource",
        settings="IngestSettings",
        options=("prefix", "claims", "encoding"),
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
    fitting = (kind for kind in SOURCE_KINDS if (kind.name == named if named else kind.fits(place)))
    kind = next(fitting, None)
    if kind is None and named:
        raise UsageError(
            f"--as {named}: unknown kind; known: {', '.join(kind.name for kind in SOURCE_KINDS)}"
        )
    if kind is None:
        if Path(place).is_file():
            from linkstore.ingest.files import suggest_source

            if instead := suggest_source(place):
                raise UsageError(f"{place}: {instead}")
        known = "; ".join(f"{kind.title} ({kind.name})" for kind in SOURCE_KINDS)
        found = "the kind of source is not recognized" if Path(place).exists() else "it does not exist"
        raise UsageError(f"{place}: {found}; give one of: {known}")
    if kind.source and not _is_there(place):
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
            spelled = "trust-claims" if name == "claims" else name.replace("_", "-")
            takers = ", ".join(one.name for one in SOURCE_KINDS if name in one.options)
            raise UsageError(f"--{spelled} is for {takers}; this is {kind.title}")
    return chosen
