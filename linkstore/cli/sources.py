"""What can be indexed: one table, from what a place is to the function that indexes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from linkstore.cli.exits import UsageError

if TYPE_CHECKING:
    from linkstore.ingest import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """A kind of source.

    Args:
        name: What ``--as`` calls it.
        title: What it is, in a few words.
        fits: Whether a place is one, by its name and what lies there.
        index: Its function in :mod:`linkstore.ingest`, loaded late; called with store, place and options.
        options: Which options it takes beside those that all take: keyword → how the option is written.
        there: Whether a place of this kind must be on disk.
    """

    name: str
    title: str
    fits: Callable[[str], bool]
    index: Callable[[], Callable[..., Summary]]
    options: Mapping[str, str]
    there: bool = True


def _load(function: str) -> Callable[[], Callable[..., Summary]]:
    def load() -> Callable[..., Summary]:
        from linkstore import ingest

        found: Callable[..., Summary] = getattr(ingest, function)
        return found

    return load


def _ends(*suffixes: str) -> Callable[[str], bool]:
    return lambda place: place.lower().endswith(suffixes) and not Path(place).is_dir()


KINDS: Final = (
    SourceKind(
        name="jsonl",
        title="a file of JSON lines",
        fits=_ends(".jsonl", ".ndjson"),
        index=_load("index_jsonl"),
        options={"prefix": "--prefix"},
    ),
    SourceKind(
        name="zim",
        title="a ZIM file",
        fits=_ends(".zim"),
        index=_load("index_zim"),
        options={"prefix": "--prefix"},
    ),
    SourceKind(
        name="wiki",
        title="a MediaWiki XML dump",
        fits=_ends(".xml", ".xml.bz2"),
        index=_load("index_wiki"),
        options={"prefix": "--prefix"},
    ),
    SourceKind(
        name="vault",
        title="a vault of Markdown notes",
        fits=lambda place: (Path(place) / ".obsidian").is_dir(),
        index=_load("index_vault"),
        options={"prefix": "--prefix"},
    ),
    SourceKind(
        name="folder",
        title="a folder of built HTML or Markdown",
        fits=lambda place: Path(place).is_dir(),
        index=_load("index_folder"),
        options={"prefix": "--prefix"},
    ),
)
"""The first one that fits a place is taken."""


def kind_of(place: str, named: str | None = None) -> SourceKind:
    """The kind of source that a place is.

    Args:
        place: A path or URL.
        named: What ``--as`` says, if anything.

    Raises:
        UsageError: If there is nothing, or nothing that can be indexed.
    """
    kind = _named(named) if named else next((kind for kind in KINDS if kind.fits(place)), None)
    if kind is None:
        known = "; ".join(f"{kind.title} ({kind.name})" for kind in KINDS)
        found = "cannot tell what it is" if Path(place).exists() else "there is nothing"
        raise UsageError(f"{place}: {found}; give one of: {known}")
    if kind.there and not Path(place).exists():
        raise UsageError(f"there is no {place}; give {kind.title}")
    return kind


def options_of(kind: SourceKind, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, all of which the kind must take.

    Args:
        kind: Of the source.
        given: Keyword → value, None or empty if it was not given; only those that not all kinds take.

    Raises:
        UsageError: If one is of another kind of source.
    """
    chosen = {name: value for name, value in given.items() if value}
    for name in chosen:
        if name not in kind.options:
            spelled = next((one.options[name] for one in KINDS if name in one.options), name)
            takers = ", ".join(one.name for one in KINDS if name in one.options)
            raise UsageError(f"{spelled} is for {takers}; this is {kind.title}")
    return chosen


def _named(name: str) -> SourceKind:
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise UsageError(f"--as {name}: no such kind; known: {', '.join(kind.name for kind in KINDS)}")
