"""Checks whether a source changed since it was indexed, by the digests of its pages; writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from linkstore.arguments import require_having
from linkstore.errors import LinkError
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.source import BadInput, Source, SourcePage, name_of
from linkstore.urls import Site


class Digests(Protocol):
    """A store that remembers the digests of indexed pages."""

    def pages(self, source: str) -> dict[str, str]:
        """Return the pages stored for a source: URL → digest of what was indexed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Staleness:
    """How the stored pages of a source differ from it, each page by its name in the store.

    Args:
        source: Name of the source in the store.
        unchanged: How many pages are as they were.
        changed: Pages that have changed, or lost documents in the store.
        added: Pages of the source that are not stored; those that indexing skips are not among them.
        gone: Stored pages that the source does not have any more.
        unread: What could not be looked at, by name, with the reason.
    """

    source: str
    unchanged: int
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()

    @property
    def fresh(self) -> bool:
        """Whether the store has what the source has."""
        return not (self.changed or self.added or self.gone or self.unread)


def staleness(store: Digests, source: Source, name: str | None = None) -> Staleness:
    """Compare the digests of a source's pages with those of the last run.

    The settings by which pages become documents are not compared, since the store does not record them.
    Indexing again with others writes all pages anew. Only pages that are not stored are parsed. A source on
    disk hashes the others. One that has other marks of a change, such as a website, does not load those that
    have not changed.

    Args:
        store: Where the source was indexed to.
        source: The source, made with the settings that it was indexed with.
        name: Name of the source in the store, default the name it has by itself.

    Raises:
        SourceNotFoundError: If there is no such source.
    """
    require_having("pages", "a store, such as LinkStore.open('kb')", store=store)
    name = name_of(source, name)
    stored = {page: digest.partition(":")[2] for page, digest in store.pages(name).items()}
    lead = source.site.placed("")
    known = {page.removeprefix(lead): digest for page, digest in stored.items() if digest}
    look = _Look(stored, source.site)
    for offered in source.pages(known):
        if isinstance(offered, BadInput):
            look.at_bad(offered)
        else:
            look.at_page(offered)
    return look.seen(name)


class _Look:
    """A look at a source, page by page.

    Args:
        stored: The digests of the stored pages, by name in the store.
        site: How the source names its pages.
    """

    def __init__(self, stored: Mapping[str, str], site: Site) -> None:
        self._stored = stored
        self._site = site
        self._left = set(stored)
        self._hidden = set[str]()
        self._changed = list[str]()
        self._added = list[str]()
        self._unread = list[tuple[str, str]]()
        self._unchanged = 0

    def at_page(self, offered: SourcePage) -> None:
        """Compare a page."""
        page = self._site.placed(offered.url)
        self._left.discard(page)
        if page not in self._stored:
            self._at_new(page, offered)
        elif self._stored[page] == offered.digest:
            self._unchanged += 1
        else:
            self._changed.append(page)

    def _at_new(self, page: str, offered: SourcePage) -> None:
        """Count a page that is not stored as new, unless indexing would skip it."""
        try:
            if offered.read():
                self._added.append(page)
        except (UnreadablePageError, LinkError):
            pass  # indexing skips it too, and reports it
        except OSError as error:
            self._unread.append((offered.url, str(error)))

    def at_bad(self, bad: BadInput) -> None:
        """Note what cannot be read. A stored page that has become unreadable has changed."""
        page = self._site.placed(bad.name)
        if bad.hides is not None:
            self._hidden.add(self._site.placed(bad.hides) if bad.hides else "")
            if not bad.guessed:
                self._unread.append((bad.name, bad.reason))
        elif page in self._left:
            self._left.discard(page)
            self._changed.append(page)

    def seen(self, name: str) -> Staleness:
        """Return the result."""
        hidden = tuple(self._hidden)
        return Staleness(
            source=name,
            unchanged=self._unchanged,
            changed=tuple(sorted(self._changed)),
            added=tuple(sorted(self._added)),
            gone=tuple(sorted(page for page in self._left if not page.startswith(hidden))),
            unread=tuple(sorted(self._unread)),
        )
