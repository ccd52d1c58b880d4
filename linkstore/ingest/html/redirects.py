"""Old URLs of a built site: pages that only redirect, and files of redirects.

A page redirects by ``<meta http-equiv="refresh">`` (HTML Living Standard, section 4.2.5.3). A ``_redirects``
file (Netlify, Cloudflare Pages) or ``redirects`` file has one line ``from to [status]`` for each redirect.
Lines with wildcards, placeholders or conditions are left out, because they do not name a single page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from linkstore.extraction.bounds import UnboundedPageError
from linkstore.extraction.decoding import decode_html
from linkstore.extraction.markup import Tree, parse_html
from linkstore.ingest.files import Folder
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.source import BadInput
from linkstore.ingest.sources import PageFile
from linkstore.urls import Site, split_tag

FILES: Final = ("_redirects", "redirects", "_redirects.txt", "redirects.txt")
"""The names of files of redirects, at the root of the site."""

_REFRESH: Final = re.compile(rb"http-equiv\s*=\s*[\"']?refresh", re.IGNORECASE)
_TARGET: Final = re.compile(
    r"\s*(\d{0,9})[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?([\"']?)(.*)\2\s*", re.IGNORECASE | re.DOTALL
)
_NOT_FOR_ALL: Final = "script, style, noscript, template"
"""Elements that are not text, or are only for browsers without scripts."""
_SENDING: Final = frozenset({"301", "302", "303", "307", "308"})
_LOOKED_AT: Final = 4096
_MOST_TEXT: Final = 400
_SOON: Final = 10
"""Seconds; a page that stays longer is one to be read, such as a picture of a slide show."""
_LONGEST_FILE: Final = 16 * 2**20
_LARGEST_STUB: Final = 16 * 2**10
_LONGEST_WAY: Final = 16


def refresh_target(content: bytes) -> str | None:
    """Return the target of a page that only redirects.

    Args:
        content: HTML.

    Returns:
        The URL as written, None if the page stays, only reloads, sends on only browsers without scripts, or
        has more text or stays longer than a notice.
    """
    if not _REFRESH.search(content[:_LOOKED_AT]):
        return None
    try:
        tree = parse_html(content)
    except UnboundedPageError:
        return None  # it is read again, and then reported
    for unseen in tree.css(_NOT_FOR_ALL):
        unseen.decompose()
    node = tree.css_first("meta[http-equiv=refresh i][content]")
    found = _TARGET.fullmatch(node.attributes.get("content") or "") if node else None
    return found[3].strip() or None if found and _is_notice(tree, int(found[1] or 0)) else None


def _is_notice(tree: Tree, seconds: int) -> bool:
    text = 0 if tree.body is None else len(tree.body.text(strip=True))
    return text == 0 or (text <= _MOST_TEXT and seconds <= _SOON)


def read_redirects(folder: Folder, problems: list[BadInput]) -> Iterator[tuple[str, str]]:
    """Yield the redirects that the files at the root of a site name, from and to, as written.

    Args:
        folder: The site.
        problems: Takes what cannot be read.
    """
    for name in filter(folder.has, FILES):
        try:
            content = folder.read(name, _LONGEST_FILE)
        except (UnreadablePageError, OSError) as error:
            problems.append(BadInput(name=name, reason=str(error)))
            continue
        for line in decode_html(content).text.splitlines():
            yield from _redirect(line)


def _redirect(line: str) -> Iterator[tuple[str, str]]:
    """Yield the redirect on a line, if it leads from one page to one other."""
    words = line.split()
    words = words[: next((at for at, word in enumerate(words) if word.startswith("#")), None)]
    if len(words) not in {2, 3} or any("*" in word or "/:" in word for word in words[:2]):
        return
    if len(words) == 2 or words[2].rstrip("!") in _SENDING:
        yield words[0], words[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirects:
    """The old URLs of the pages of a site.

    Args:
        stubs: Those of the pages that only send the reader on to another one, by URL.
        starts: Tag of a page → fragment, empty for the page as a whole → the tags that lead there.
        problems: Files of redirects that cannot be read.
    """

    stubs: frozenset[str]
    starts: Mapping[str, Mapping[str, tuple[str, ...]]]
    problems: tuple[BadInput, ...] = ()

    def to(self, tag: str) -> Mapping[str, tuple[str, ...]]:
        """Return the tags that lead to a page, by fragment."""
        return self.starts.get(tag, {})


def find_redirects(folder: Folder, files: Sequence[PageFile], site: Site) -> Redirects:
    """Find the redirects of a site.

    A page that sends its reader to no other page of the site, or in a circle, stays a page.

    Args:
        folder: Where it lies.
        files: Its pages.
        site: How they are named.
    """
    tags = {file.url: site.page_tag(file.url) or "" for file in files}
    ways: dict[str, str] = {}
    problems: list[BadInput] = []
    for start, end in read_redirects(folder, problems):
        _add(ways, site.tag(start), site.tag(end))
    sent_on = {file.url: _sent_on(file) for file in files}
    for url, target in sent_on.items():
        if target is not None:
            _add(ways, tags[url], site.tag(target, page=url))
    stubs = {url for url, target in sent_on.items() if target is not None}
    stays = {tags[file.url] for file in files if file.url not in stubs}
    ends = {start: at for start in sorted(ways) if (at := _end(start, ways, stays)) is not None}
    starts: dict[str, dict[str, tuple[str, ...]]] = {}
    for start, end in ends.items():
        page, fragment = split_tag(end)
        of_page = starts.setdefault(page, {})
        of_page[fragment or ""] = (*of_page.get(fragment or "", ()), start)
    return Redirects(
        stubs=frozenset(url for url in stubs if tags[url] in ends), starts=starts, problems=tuple(problems)
    )


def _add(ways: dict[str, str], start: str | None, end: str | None) -> None:
    if start is not None and end is not None:
        ways.setdefault(split_tag(start)[0], end)


def _end(start: str, ways: Mapping[str, str], stays: AbstractSet[str]) -> str | None:
    """Follow a chain of redirects to its end, None if that is no page, or the chain is circular or long."""
    if start in stays:
        return None
    here = ways.get(start)
    for _ in range(_LONGEST_WAY):
        if here is None or split_tag(here)[0] in stays:
            return here
        here = ways.get(split_tag(here)[0])
    return None


def _sent_on(file: PageFile) -> str | None:
    """Return the target of the redirect of a page, or None if it has none, or cannot be read."""
    if file.is_markdown:
        return None
    try:
        return refresh_target(file.read(_LARGEST_STUB))
    except (UnreadablePageError, OSError):
        return None  # it is longer; or it is read again, and then reported
