"""Decides which URLs belong to a crawl, and under which names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote, urlsplit

from linkstore.ingest.web.settings import WebSettings
from linkstore.urls import Site, is_internal, split_tag

_FILES: Final = re.compile(
    r"\.(?:7z|apk|avi|avif|bmp|bz2|deb|dmg|docx?|eot|epub|exe|flac|gif|gz|ico|iso|jar|jpe?g|m4[av]|mkv|mov"
    r"|mp[34]|mpe?g|msi|od[pst]|og[gv]|otf|pdf|pkg|png|pptx?|rar|rpm|svg|tar|tgz|tiff?|ttf|wasm|wav|web[mp]|whl"
    r"|wm[av]|woff2?|xlsx?|xz|zip|zst)",
    re.IGNORECASE,
)
"""Suffixes of files that are certainly not pages; the media type tells the others."""
_NO_PAGES_IN: Final = frozenset({"_static", "_sources", "_images", "_downloads"})
_NO_PAGES_AT_ROOT: Final = re.compile(r"/(?:search|genindex(?:-[^/]*)?)(?:\.html?)?")
"""Sphinx's search form and its index of everything, which are left out of folders too."""
_CACHED: Final = 65_536
_KEPT_IN_PATTERNS: Final = "%/:=&?~+!$,;'@()*[]"


class Scope:
    """Says which URLs are crawled.

    Args:
        site: Names pages.
        roots: The folders that the site consists of, as absolute URLs.
        start: Belongs to it in any case.
        settings: Says what else belongs to it, and what does not.
    """

    def __init__(self, site: Site, roots: Sequence[str], start: str, settings: WebSettings) -> None:
        self._site = site
        self._roots = Site(bases=tuple(roots))
        self._hosts = frozenset(urlsplit(root).netloc for root in roots)
        self._start = self._name(start)
        self._found = lru_cache(_CACHED)(self._key)
        self._deny = _any_of(settings.deny)
        self._allow = _any_of(settings.allow) if settings.allow else None

    def key(self, url: str) -> str | None:
        """Return the key of a page within the site: its tag without fragment, or None if it is not crawled.

        Args:
            url: As it would be asked.
        """
        return self._found(url)

    def _key(self, url: str) -> str | None:
        key = self._name(url)
        if key is None or key == self._start:
            return key
        parts = urlsplit(url)
        below = self._roots.tag(url) or ""
        if not _may_be_page(parts.path, below):
            return None
        local = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        names = (url, local) if parts.netloc in self._hosts else (url,)
        if any(self._deny.match(name) for name in (url, local)):
            return None
        if self._allow is not None:
            return key if any(self._allow.match(name) for name in names) else None
        return key if is_internal(below) else None

    def _name(self, url: str) -> str | None:
        tag = self._site.page_tag(url)
        return None if tag is None else split_tag(tag)[0]


def site_root(start: str, answered: str) -> tuple[str, ...]:
    """Return the folders that a site consists of, by its start page, whose folder is one of them.

    Args:
        start: The URL that was given. It counts as a folder itself if it redirects to below.
        answered: The URL that answered. It makes a folder of its own only outside the first one.
    """
    is_folder = start.endswith("/") or answered.startswith(f"{start}/")
    given = f"{start.rstrip('/')}/" if is_folder else _folder(start)
    inside = is_internal(Site(bases=(given,)).tag(answered) or "")
    return (given,) if inside else (_folder(answered), given)


def _folder(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rpartition('/')[0]}/"


def _may_be_page(path: str, below: str) -> bool:
    if _FILES.fullmatch(PurePosixPath(path).suffix) or _NO_PAGES_AT_ROOT.fullmatch(below):
        return False
    return not _NO_PAGES_IN.intersection(path.split("/"))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern that matches what one of the patterns matches, and nothing if there is none."""
    return re.compile("|".join(map(_expression, patterns)) or r"(?!)")


def _expression(pattern: str) -> str:
    body = quote(pattern.removesuffix("$"), safe=_KEPT_IN_PATTERNS)
    end = r"\Z" if pattern.endswith("$") else ""
    return ".*".join(re.escape(part) for part in body.split("*")) + end
