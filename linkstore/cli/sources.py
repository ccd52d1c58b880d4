"""The kinds of source: how each is recognized and opened."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from linkstore.cli.exits import UsageError
from linkstore.cli.stores import split_names

if TYPE_CHECKING:
    from linkstore.ingest.source import Source

_CRAWL: Final = ("allow", "deny", "max_pages", "max_depth", "rate", "allow_private", "ignore_noindex")
_READING: Final = ("prefix", "claims", "encoding", "max_bytes")


_OTHER_XML: Final = re.compile(rb"<(?:urlset|sitemapindex|rss|feed)\b")
_BEGINNING: Final = 4096
_HOST: Final = re.compile(
    r"((?:[a-z0-9-]+\.)+[a-z]{2,}|localhost|127\.0\.0\.1)(?::\d+)?(?:/\S*)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source.

    Args:
        name: Its name, as for ``--as``.
        title: A description in a few words.
        fits: Says whether a place is of this kind, by its name and what lies there.
        source: Its class in ``linkstore.ingest``, which is imported when it is used.
        options: The options that not all kinds take.
        settings: What is passed to the class besides.
    """

    name: str
    title: str
    fits: Callable[[str], bool]
    source: str
    options: tuple[str, ...] = _READING
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def remote(self) -> bool:
        """Whether it is a URL."""
        return self.fits is _is_url

    def make(self, place: str, options: Mapping[str, Any]) -> Source:
        """Return the source at a place, with options of this kind."""
        from linkstore import ingest

        source: Source = getattr(ingest, self.source)(place, **self.settings, **options)
        return source


def _is_url(place: str) -> bool:
    return place.lower().startswith(("https://", "http://"))


def _is_vault(place: str) -> bool:
    if not Path(place).is_dir():
        return False
    from linkstore.ingest.notes.vault import is_vault

    return is_vault(Path(place))


def _make_suffix_test(*suffixes: str) -> Callable[[str], bool]:
    return lambda place: place.lower().endswith(suffixes) and not Path(place).is_dir()


def _is_page_file(place: str) -> bool:
    from linkstore.ingest.suffixes import NOTE_SUFFIXES, SITE_SUFFIXES, get_suffix

    return get_suffix(place) in SITE_SUFFIXES | NOTE_SUFFIXES and Path(place).is_file()


def _is_dump(place: str) -> bool:
    """Say whether a place is a dump by its name, and is no sitemap or feed by its beginning."""
    if not _make_suffix_test(".xml", ".xml.bz2")(place):
        return False
    if place.lower().endswith(".bz2") or not Path(place).is_file():
        return True
    with Path(place).open("rb") as file:
        return _OTHER_XML.search(file.read(_BEGINNING)) is None


SOURCE_KINDS: Final = (
    SourceKind(
        "website",
        "a website, sitemap or llms.txt, as https://…",
        _is_url,
        "WebsiteSource",
        ("prefix", *_CRAWL, "encoding", "max_bytes"),
    ),
    SourceKind("jsonl", "a file of JSON lines", _make_suffix_test(".jsonl", ".ndjson"), "JsonLinesSource"),
    SourceKind("zim", "a ZIM file", _make_suffix_test(".zim"), "ZimSource"),
    SourceKind("wiki", "a MediaWiki XML dump", _is_dump, "WikiDumpSource", ("prefix", "cite")),
    SourceKind("vault", "a vault of Markdown notes", _is_vault, "VaultSource"),
    SourceKind(
        "folder",
        "a folder of HTML, Markdown, text or notebooks",
        lambda place: Path(place).is_dir(),
        "FolderSource",
    ),
    SourceKind(
        "llms", "an llms.txt beside the pages it names", _make_suffix_test("llms.txt"), "LlmsTxtSource"
    ),
    SourceKind("page", "a single page, as a file or https://…", _is_page_file, "PageSource"),
)
"""The first one that fits a place is taken."""
_WEB_PAGE: Final = SourceKind(
    "page",
    "a single page of the web",
    _is_url,
    "WebsiteSource",
    ("prefix", "allow_private", "encoding", "max_bytes"),
    settings={"follow_links": False},
)


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
        from linkstore.ingest.suffixes import SITE_SUFFIXES, get_suffix, suggest_source

        if Path(place).is_file() and (instead := suggest_source(place)):
            raise UsageError(f"{place}: {instead}")
        is_there = Path(place).exists()
        is_named_as_page = get_suffix(place) in SITE_SUFFIXES  # .md is a domain, too
        if not is_there and not is_named_as_page and (host := _HOST.fullmatch(place)):
            local = " --allow-private" if host[1] in {"localhost", "127.0.0.1"} else ""
            scheme = "http" if local else "https"
            raise UsageError(f"{place} does not exist; for the website, give {scheme}://{place}{local}")
        if not is_there:
            raise UsageError(f"{place} does not exist; {_advise(place)}")
        kinds = "; ".join(f"{kind.title} ({kind.name})" for kind in SOURCE_KINDS)
        raise UsageError(f"{place}: the kind of source is not recognized; give one of: {kinds}")
    if _is_url(place) and kind.name in {"page", "llms"}:
        return _WEB_PAGE if kind.name == "page" else SOURCE_KINDS[0]
    if not kind.remote and not _is_there(place):
        raise UsageError(f"{place} does not exist; give {kind.title}")
    return kind


def _advise(place: str) -> str:
    """Say what to give instead of a missing path or a URL of no website."""
    scheme, _, rest = place.partition("://")
    path = place.partition("#")[0]
    if place.endswith(".git") or place.startswith("git@"):
        return "clone the repository, and give the folder of its pages"
    if rest:
        return f"did you mean: {rest if scheme.lower() == 'file' else f'https://{rest}'}"
    if path and path != place and Path(path).exists():
        return f"did you mean: {path}"
    return "give a URL, or a folder or file of pages"


def _is_there(place: str) -> bool:
    try:
        return Path(place).absolute().exists()
    except FileNotFoundError as error:
        raise UsageError(f"{place} is relative, and the working directory is gone") from error


def select_options(kind: SourceKind, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options; the kind must take them all.

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
            takers = ", ".join(kind.name for kind in SOURCE_KINDS if name in kind.options)
            raise UsageError(f"--{spelled} is for {takers}; this is {kind.title}")
    return chosen


def choose_extractors(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the extractors to use, all of them installed. Without names, use those of a source."""
    from linkstore.extract.protocol import extractor_names
    from linkstore.ingest.pipeline import DEFAULT_LINKS

    chosen = split_names(names or DEFAULT_LINKS)
    installed = extractor_names()
    unknown = [name for name in chosen if name not in installed]
    if unknown:
        raise UsageError(f"--links: no extractor {', '.join(unknown)}; installed: {', '.join(installed)}")
    return chosen
