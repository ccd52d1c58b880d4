"""Settings of a crawl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from linkstore._version import __version__
from linkstore.arguments import given, require, require_list
from linkstore.extraction.decoding import known_encoding
from linkstore.ingest.chunks import DEFAULT_LIMITS, ChunkLimits
from linkstore.ingest.web.errors import WebSettingsError
from linkstore.urls import DEFAULT_POLICY, UrlPolicy

USER_AGENT: Final = f"linkstore/{__version__}"
"""The user agent of requests; robots.txt files address it as ``linkstore``."""

_PATTERN_STARTS: Final = ("/", "*", "http://", "https://")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """How a website is crawled, and how its pages are read.

    A change of what says which pages there are, or how they are read or named, makes the next run read
    all of them again.

    Patterns are those of robots.txt: one that begins with ``/`` or ``*`` stands for the beginning of a URL's
    path and query, one that begins with ``http://`` or ``https://`` for that of the whole URL; ``*`` is
    anything, ``$`` at the end is the end.

    Args:
        prefix: Path below which the site is stored, next to other sources, such as ``python-3.13``; see
            :class:`~linkstore.urls.Site`. Without, its pages are known by their paths alone, so give each
            of several sites its own.
        allow: Patterns of the pages to index; with none, all of the site, that is below the folder of
            the start page. A pattern with a host adds pages of another site.
        deny: Patterns of the pages to leave out, whatever ``allow`` says.
        bases: Where else the site lies in public: links to pages below these URLs lead to its own pages.
        encoding: Of all pages, whatever they and their server declare; a byte-order mark still wins. None
            (default) takes what is declared, else UTF-8, else windows-1252, as browsers do.
        limits: How long chunks are.
        policy: What makes two URLs the same page.
        max_depth: How many links from a start page a page may be; default any number.
        max_pages: How many pages are indexed at most; default 10,000.
        rate: Requests a second, at most; default 4. A longer ``Crawl-delay`` in robots.txt wins.
        retries: How often a request is made again that failed, or was answered by status 429, 500, 502,
            503 or 504; default 3.
        patience: Seconds to wait for a server that asks for it by ``Retry-After``, at most; default 120. A
            site that wants longer between any two requests is not crawled.
        allow_private: Whether loopback and private addresses may be asked.
        user_agent: What the requests say they come from.
        max_bytes: A larger page is skipped; default 16 MiB.
        timeout: Seconds for one request, from connecting to the last byte; default 30.
        max_redirects: On the way to one page; default 10.

    Raises:
        WebSettingsError: If a number is out of range, or a pattern begins otherwise.
    """

    prefix: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    encoding: str | None = None
    limits: ChunkLimits = DEFAULT_LIMITS
    policy: UrlPolicy = DEFAULT_POLICY
    max_depth: int | None = None
    max_pages: int = 10_000
    rate: float = 4.0
    retries: int = 3
    patience: float = 120.0
    allow_private: bool = False
    user_agent: str = USER_AGENT
    max_bytes: int = 16 * 2**20
    timeout: float = 30.0
    max_redirects: int = 10

    def __post_init__(self) -> None:
        require_list("patterns", allow=self.allow, deny=self.deny)
        require_list("URLs", bases=self.bases)
        for name in ("max_pages", "max_bytes", "rate", "timeout", "retries", "patience", "max_redirects"):
            require((int, float), "a number", **{name: getattr(self, name)})
        require(int, "an integer", **given(max_depth=self.max_depth))
        require(str, "the name of an encoding", **given(encoding=self.encoding))
        if self.encoding is not None:
            known_encoding(self.encoding)
        for pattern in (*self.allow, *self.deny):
            if not pattern.startswith(_PATTERN_STARTS):
                raise WebSettingsError(
                    f"the pattern {pattern!r} must begin with '/', '*' or 'https://', such as '/docs/'"
                )
        for name in ("max_pages", "max_bytes", "rate", "timeout"):
            if not getattr(self, name) > 0:
                raise WebSettingsError(f"{name} must be more than 0, not {getattr(self, name)}")
        for name in ("max_depth", "retries", "patience", "max_redirects"):
            if (getattr(self, name) or 0) < 0:
                raise WebSettingsError(f"{name} must be at least 0, not {getattr(self, name)}")
        if not self.user_agent.isascii() or not self.user_agent.isprintable() or not self.user_agent.strip():
            raise WebSettingsError(f"user_agent must be printable ASCII, not {self.user_agent!r}")
