"""One run over a website: from the frontier to pages, until nothing is left to ask or a bound is reached."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from linkstore.core.urls import drop_tracking
from linkstore.errors import FetchError, LinkStoreError, RobotsError
from linkstore.ingest.chunks import ChunkLimits
from linkstore.ingest.html.folder import find_original
from linkstore.ingest.html.pages import PageContent
from linkstore.ingest.settings import hash_values
from linkstore.ingest.source import BadInput, EmptyPageError, SourcePage, UnreadablePageError
from linkstore.ingest.titles import SiteNames
from linkstore.ingest.web.client import Client
from linkstore.ingest.web.fetching import Response, get_media_type
from linkstore.ingest.web.frontier import (
    MOST_NAMES,
    CrawlScope,
    Frontier,
    FrontierEntry,
    PageRecord,
    hash_page_text,
    list_titles,
    recall_page,
    update_record,
)
from linkstore.ingest.web.reading import (
    WebPage,
    find_canonical_url,
    is_page,
    make_web_chunks,
    read_web_page,
    refuse_reading,
)
from linkstore.ingest.web.targets import WebSettings

_VERSION: Final = 1
"""Raised whenever the same site would give other pages, so that all are asked for again."""
_MOST_COPIES: Final = 20
"""When so many URLs in a row that differ in their query alone gave one text, no more of them are asked."""
_REQUESTS_A_PAGE: Final = 10
_REQUESTS_BESIDE: Final = 100
_CANONICAL_CHAIN: Final = 4
_GONE: Final = frozenset({404, 410})
_SERVER_ERROR: Final = 500

_WAITING: Final = 32
_WAITING_CHARACTERS: Final = 4 * 2**20
"""How many pages wait for the titles of those after them, and how much text they may have."""


class WaitingPage(NamedTuple):
    """A page that waits for the titles of the pages after it: its URL, its record and its content."""

    url: str
    record: PageRecord
    content: PageContent
    again: bool = False
    """Whether it was offered before in this run."""


class TitleQueue:
    """Holds back a few pages, until later ones show which part of a title belongs to a branch.

    Args:
        limits: How long chunks are.
        records: What the last run recorded of pages, by URL.
    """

    def __init__(self, limits: ChunkLimits, records: Iterable[tuple[str, PageRecord]]) -> None:
        self._limits = limits
        self._names = SiteNames()
        self._counted: set[str] = set()
        self._pages: deque[WaitingPage] = deque()
        self._characters = 0
        for url, record in records:
            self._learn(url, record.titles)

    def add(self, page: WaitingPage) -> Iterator[SourcePage]:
        """Add a page, and yield the pages that need not wait any longer."""
        self._learn(page.url, list_titles(page.content))
        self._pages.append(page)
        self._characters += _count_characters(page.content)
        while len(self._pages) > _WAITING or self._characters > _WAITING_CHARACTERS:
            yield self._take()

    def take_all(self) -> Iterator[SourcePage]:
        """Yield all pages that wait."""
        while self._pages:
            yield self._take()

    def _learn(self, url: str, titles: Iterable[str]) -> None:
        if url not in self._counted:
            self._counted.add(url)
            self._names.learn(url, titles)

    def _take(self) -> SourcePage:
        url, record, content, again = self._pages.popleft()
        self._characters -= _count_characters(content)
        aliases = (*record.moved, *record.aliases)
        return SourcePage(
            url=url,
            digest=record.content,
            read=partial(make_web_chunks, url, self._names.choose(content, url), aliases, self._limits),
            again=again,
            outline=record.to_text(),
        )


Offer = SourcePage | BadInput
Found = WaitingPage | Offer


class UrlOutcomes:
    """The outcome of each URL that was visited; URLs are named by their keys (:meth:`CrawlScope.key`)."""

    def __init__(self) -> None:
        self._ends: dict[str, str | None] = {}
        self._moved: dict[str, dict[str, str]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._ends

    def is_nothing(self, key: str) -> bool:
        """Say whether nothing to index was found there."""
        return key in self._ends and self._ends[key] is None

    def is_page(self, key: str) -> bool:
        """Say whether a page was found there."""
        return self._ends.get(key) == key

    def add_page(self, key: str) -> None:
        """Record that a page is there."""
        self._ends[key] = key

    def add_nothing(self, key: str) -> None:
        """Record that nothing to index is there."""
        self._ends.setdefault(key, None)

    def add_move(self, key: str, url: str, target: str) -> None:
        """Record that a URL leads to another one.

        More may be known of the other one later.

        Args:
            key: Of the URL.
            url: The URL, as it is asked.
            target: The key of what it leads to, not one that leads back here.
        """
        final = self.final(target)
        names = {**self._moved.pop(key, {}), key: url}
        for name in names:
            self._ends[name] = final
        self._moved.setdefault(final, {}).update(names)

    def final(self, key: str) -> str:
        """Return the last URL that a URL is known to lead to, itself if it leads to no other."""
        while (following := self._ends.get(key)) is not None and following != key:
            key = following
        return key

    def list_aliases(self, key: str) -> dict[str, str]:
        """Return the URLs that lead to a page, by key."""
        return dict(self._moved.get(key, {}))


class Crawl:
    """Visits a site once.

    Args:
        client: Makes the requests.
        scope: Says which URLs belong to the site.
        settings: Says how pages are read.
        known: What the last run recorded of the pages that are stored, by URL; empty for one that is to be
            read anew.
        start: The answer for the start page, which is asked in any case; None if there is none.
        seeds: Further URLs to start from.
    """

    def __init__(
        self,
        client: Client,
        scope: CrawlScope,
        settings: WebSettings,
        known: Mapping[str, str],
        start: Response | None,
        seeds: Iterable[str | BadInput],
    ) -> None:
        self._client = client
        self._scope = scope
        self._settings = settings
        self._how = hash_values(_VERSION, settings.encoding, settings.limits)
        self._found_by = hash_values(
            settings.allow, settings.deny, settings.max_depth, settings.ignore_noindex
        )
        self._start = start
        self._seeds = seeds
        self._known: Final = {
            key: (url, recall_page(outline))
            for url, outline in known.items()
            if (key := scope.key(url)) is not None
        }
        """Key of a stored page → its URL, and what the last run recorded of it."""
        self._texts = {
            (_cut_query(key), record.text): key for key, (_, record) in self._known.items() if record
        }
        self._copies: Counter[str] = Counter()
        self._unasked: Counter[str] = Counter()
        self._ends = UrlOutcomes()
        self._frontier = Frontier(scope, self._known, max_depth=settings.max_depth)
        self._offered: dict[str, tuple[str, PageRecord]] = {}
        self._broken: dict[str, BadInput] = {}
        self._pending: set[str] = set()
        self._requests = 0
        self._heeds_noindex = not settings.ignore_noindex
        records = ((url, record) for url, record in self._known.values() if record is not None)
        self._queue = TitleQueue(settings.limits, records)
        self.unwanted = 0
        """How many pages were left out because they ask not to be indexed."""

    def run(self) -> Iterator[Offer]:
        """Yield each page and each problem; at the end, again the pages with newly found URLs.

        Raises:
            SiteUnavailableError: If the site stops answering.
        """
        try:
            for offer in self._find():
                if isinstance(offer, WaitingPage):
                    yield from self._queue.add(offer)
                else:
                    yield offer
        except LinkStoreError:
            yield from self._queue.take_all()
            raise
        yield from self._queue.take_all()

    def _find(self) -> Iterator[Found]:
        if self._start is not None and (key := self._frontier.add(self._start.url)) is not None:
            yield from self._handle_answer(FrontierEntry(url=self._start.url, key=key, depth=0), self._start)
        for seed in self._seeds:
            if isinstance(seed, BadInput):
                yield seed
            else:
                self._frontier.add(seed)
        most = self._settings.max_pages
        while self._requests < most * _REQUESTS_A_PAGE + _REQUESTS_BESIDE:
            candidate = self._frontier.take(most - len(self._offered))
            if candidate is None:
                break
            if candidate.key not in self._ends and not self._is_copy(candidate.key):
                yield from self._visit(candidate)
        yield from (bad for key, bad in self._broken.items() if not self._ends.is_page(self._ends.final(key)))
        yield from self._left_out()
        for key, (url, record) in list(self._offered.items()):
            moved = self._list_aliases(key, record.moved)
            if moved != record.moved:
                yield self._again(url, replace(record, moved=moved))

    def _is_copy(self, key: str) -> bool:
        """Return whether to leave out a URL because URLs with other queries were all copies."""
        path = _cut_query(key)
        if path == key or key in self._known or self._copies[path] < _MOST_COPIES:
            return False
        self._ends.add_nothing(key)
        self._unasked[path] += 1
        return True

    def _again(self, url: str, record: PageRecord) -> Found:
        """Ask again for a page that was offered before all its URLs were known."""
        try:
            response = self._client.ask(url, follow=lambda _: False, wanted=partial(is_page, url))
        except FetchError as error:
            return BadInput(name=url, reason=str(error))
        assert response is not None, "it was asked before"
        page = read_web_page(response, encoding=self._settings.encoding) if response.body else None
        if page is None or isinstance(page.content, UnreadablePageError):
            return BadInput(name=url, reason=f"it changed while the site was read: {response.status}")
        record = update_record(record, page.content, response.headers)
        return WaitingPage(url, record, page.content, again=True)

    def _visit(self, one: FrontierEntry) -> Iterator[Found]:
        """Ask for a URL and, if there is no page, for the same one in other spellings."""
        other: FrontierEntry | None = one
        while other is not None:
            self._requests += 1
            try:
                response = self._ask(other)
            except FetchError as error:
                self._ends.add_nothing(one.key)
                yield self._bad(other, str(error), failed=error.again or isinstance(error, RobotsError))
                return
            if response is None:
                self._ends.add_nothing(one.key)
                return
            if response.status not in _GONE:
                yield from self._handle_answer(other, response)
                return
            self._ends.add_nothing(one.key)
            if one.key not in self._known:
                self._broken[one.key] = self._bad(one, f"the server answers {response.status}")
            other = self._frontier.other_spelling(other)

    def _ask(self, one: FrontierEntry) -> Response | None:
        _, memory = self._known.get(one.key, ("", None))
        as_before = (
            memory is not None
            and (memory.how, memory.scope) == (self._how, self._found_by)
            and memory.moved == self._list_aliases(one.key, memory.moved)
        )
        headers = memory.validators if memory is not None and as_before else {}
        return self._client.ask(
            one.url, headers=headers, follow=partial(self._follows, one), wanted=partial(is_page, one.url)
        )

    def _follows(self, one: FrontierEntry, location: str) -> bool:
        """Return whether to follow a redirect: not to a page that is visited anyway."""
        key = self._scope.key(location)
        if key is None or key in self._pending:
            return False
        _, memory = self._known.get(key, ("", None))
        return key == one.key or (key not in self._ends and memory is None)

    def _handle_answer(self, one: FrontierEntry, found: Response) -> Iterator[Found]:
        url, memory = self._known.get(one.key, (one.url, None))
        if found.status == 304 and memory is not None and not found.hops:
            self._ends.add_page(one.key)
            self._offered[one.key] = (url, memory)
            yield SourcePage(url=url, digest=memory.content, read=refuse_reading, outline=memory.to_text())
        elif found.location is not None:
            yield from self._handle_redirect(one, found)
        elif found.status != 200:
            self._ends.add_nothing(one.key)
            yield self._bad(one, f"the server answers {found.status}", failed=found.status >= _SERVER_ERROR)
        elif not is_page(found.url, found.headers):
            self._ends.add_nothing(one.key)
            yield self._bad(one, f"it is {get_media_type(found.headers)[:80]}, not HTML")
        else:
            yield from self._page(one, found)

    def _handle_redirect(self, one: FrontierEntry, found: Response) -> Iterator[Offer]:
        target = self._scope.key(found.location or "")
        if target is None or self._ends.final(target) == one.key:
            self._ends.add_nothing(one.key)
            if one.key not in self._known:
                yield self._bad(one, f"it redirects to {found.location}, which does not belong to the crawl")
            return
        self._move((*found.hops, found.url), target)
        self._frontier.add(found.location or "", depth=one.depth, via=one.via)

    def _page(self, one: FrontierEntry, found: Response) -> Iterator[Found]:
        key = self._scope.key(found.url) or one.key
        self._move(found.hops, key)
        page = read_web_page(found, encoding=self._settings.encoding)
        target = self._scope.key(page.refresh) if page.refresh else None
        if page.refresh and target is not None and self._ends.final(target) != key:
            self._move((found.url,), target)
            self._frontier.add(page.refresh, depth=one.depth, via=one.via)
            return
        for link in page.links:
            self._frontier.add(link, depth=one.depth + 1, via=found.url)
        if page.unwanted and found is self._start:  # which the user asked for, and so for a site like it
            self._heeds_noindex = False
        if page.unwanted and self._heeds_noindex:
            self._ends.add_nothing(key)
            self.unwanted += 1
            return
        if isinstance(page.content, UnreadablePageError):
            self._ends.add_nothing(key)
            bad = self._bad(FrontierEntry(url=found.url, key=key, depth=one.depth), str(page.content))
            yield replace(bad, empty=isinstance(page.content, EmptyPageError))
            return
        original = yield from self._original(key, found.url, one, page.content)
        path = _cut_query(key)
        if original != key:
            self._copies[path] += 1
            self._move((found.url,), original)
        elif not self._ends.is_page(key):
            self._copies[path] = 0
            self._ends.add_page(key)
            yield self._read(key, one.depth, found, page, page.content)

    def _original(
        self, key: str, url: str, one: FrontierEntry, found: PageContent
    ) -> Generator[Found, None, str]:
        """Return the key of the page that this one is a copy of, if it is, else its own.

        A page with the text of another that differs in its query alone is a copy. Where it says itself that
        it is one, the site's word is not enough, for some name their home page everywhere: the text must be
        the same, or nothing but the query differ.
        """
        text = hash_page_text(found)
        named = find_canonical_url(url, found)
        canonical = self._frontier.add(named, depth=one.depth, via=url) if named else None
        for other in (self._texts.setdefault((_cut_query(key), text), key), canonical):
            if other is None or other == key:
                continue
            if (
                other not in self._ends
                and other not in self._pending
                and len(self._pending) < _CANONICAL_CHAIN
            ):
                self._pending.add(key)
                asked, _ = self._known.get(other, (named or "", None))
                yield from self._visit(FrontierEntry(url=asked, key=other, depth=one.depth, via=url))
                self._pending.remove(key)
            final = self._ends.final(other)
            same_path = other == canonical and _cut_query(final) == _cut_query(key)
            if final in self._offered and (same_path or self._offered[final][1].text == text):
                return final
        self._texts[_cut_query(key), text] = key
        return key

    def _read(
        self, key: str, depth: int, found: Response, page: WebPage, content: PageContent
    ) -> WaitingPage:
        """Return the page, with the digest of the last run if it still says the same."""
        url, old = self._known.get(key, (drop_tracking(found.url), None))
        keys = {child: self._scope.key(child) for child in old.children} if old else {}
        children = (
            child for child, name in keys.items() if name is not None and not self._ends.is_nothing(name)
        )
        moved, aliases = self._list_aliases(key, old.moved if old else ()), self._aliases(found.url, content)
        record = PageRecord(
            how=self._how,
            scope=self._found_by,
            depth=depth,
            moved=moved,
            aliases=aliases,
            children=self._frontier.claim(key, (*page.links, *children)),
        )
        memory = update_record(record, content, found.headers)
        self._offered[key] = (url, memory)
        return WaitingPage(url, memory, content)

    def _aliases(self, url: str, found: PageContent) -> tuple[str, ...]:
        """Return the canonical URL of a page, or the URL of its HTML page, where nothing else is."""
        named = find_canonical_url(url, found) or find_original(url)
        key = self._scope.key(named) if named else None
        free = key is not None and (self._ends.is_nothing(key) or key not in self._frontier)
        return (named,) if named and free else ()

    def _list_aliases(self, key: str, before: Iterable[str]) -> tuple[str, ...]:
        """Return the URLs that lead to a page: from this run, and earlier ones not visited yet."""
        names = self._ends.list_aliases(key)
        for url in before:
            name = self._scope.key(url)
            if name is not None and name not in self._ends:
                names[name] = url
        return tuple(sorted(names.values())[:MOST_NAMES])

    def _move(self, urls: Iterable[str], target: str) -> None:
        for url in urls:
            key = self._scope.key(url)
            if key is not None and self._ends.final(target) != key and not self._ends.is_page(key):
                self._ends.add_move(key, url, target)

    def _bad(self, one: FrontierEntry, reason: str, *, failed: bool = False) -> BadInput:
        """Report bad input under the name of the stored page, if any, so that its content stays.

        Args:
            one: What was asked.
            reason: What is wrong with it.
            failed: Whether there may be a page all the same.
        """
        name, _ = self._known.get(one.key, (one.url, None))
        reason = f"{reason}; linked from {one.via}" if one.via else reason
        return BadInput(
            name=name, reason=reason, hides=(name,) if failed and one.key in self._known else None
        )

    def _left_out(self) -> Iterator[BadInput]:
        for path, unasked in self._unasked.items():
            reason = f"{unasked:,} further URLs were left out: the last {_MOST_COPIES} had one text"
            yield BadInput(name=f"{path}?…", reason=reason)
        waiting = {entry.key for entry in self._frontier.list_waiting() if entry.key not in self._ends}
        count = len(waiting) + self._frontier.left_out
        if count:
            why = f"after {len(self._offered):,} pages and {self._requests:,} requests (max_pages)"
            hides = tuple(sorted(self._known[key][0] for key in waiting & self._known.keys()))
            yield BadInput(name="further URLs", reason=f"{count:,} were left out, {why}", hides=hides)


def _count_characters(content: PageContent) -> int:
    return sum(len(block.text) for block in content.blocks)


def _cut_query(key: str) -> str:
    return key.partition("?")[0]
