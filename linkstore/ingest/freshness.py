"""How the stored pages of a source differ from what it has now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from linkstore.core.arguments import require_having
from linkstore.errors import LinkError
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.source import OpenedSource, Source, SourcePage, name_source


class DigestStore(Protocol):
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


def staleness(store: DigestStore, source: Source, name: str | None = None) -> Staleness:
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
    name = name_source(source, name)
    with source.open() as opened:
        return _compare(store.pages(name), opened, name)


def _compare(pages: Mapping[str, str], source: OpenedSource, name: str) -> Staleness:
    site = source.site
    stored = {page: digest.partition(":")[2] for page, digest in pages.items()}
    lead = site.placed("")
    known = {page.removeprefix(lead): digest for page, digest in stored.items()}
    left, hidden, unchanged = set(stored), set[str](), 0
    changed, added, unread = set[str](), set[str](), set[tuple[str, str]]()
    for offered in source.pages(known):
        page = site.placed(offered.url if isinstance(offered, SourcePage) else offered.name)
        if isinstance(offered, SourcePage):
            left.discard(page)
            if page in stored and stored[page] == offered.digest:
                unchanged += not offered.again
            elif page in stored:
                changed.add(page)
            else:
                try:
                    added |= {page} if offered.read() else set()
                except (UnreadablePageError, LinkError):
                    pass  # indexing skips it too, and reports it
                except OSError as error:
                    unread.add((offered.url, str(error)))
        elif offered.hides is not None:
            hidden.update(site.placed(one) if one else "" for one in offered.hides)
            unread |= set() if offered.guessed else {(offered.name, offered.reason)}
        elif page in left:  # a stored page has become unreadable
            left.discard(page)
            changed.add(page)
    return Staleness(
        source=name,
        unchanged=unchanged,
        changed=tuple(sorted(changed)),
        added=tuple(sorted(added)),
        gone=tuple(sorted(page for page in left if not page.startswith(tuple(hidden)))),
        unread=tuple(sorted(unread)),
    )
