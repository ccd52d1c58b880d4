"""Finds the documents that a user names: by an id, a URL, the URL of a page, or the unique end of one."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from linkstore.cli.exits import UsageError
from linkstore.errors import LinkStoreError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.hits import Hits
    from linkstore.store.core import CoreStore

MOST: Final = 1000
"""Maximum number of documents looked up at once."""
_NAMED: Final = 10
"""Maximum number of pages listed if a name is ambiguous."""
_KEPT: Final = ("/%#", "/:@!$&'()*+,;=~%#?")
"""Characters that are not encoded in the paths of files and in other URLs."""
_INDEX: Final = frozenset({"index", "readme"})
_SUFFIX: Final = re.compile(r"\.[a-z][a-z0-9]{0,8}\Z")


def documents_named(store: CoreStore, name: str) -> list[Document]:
    """Return the document with this id, else those that a hyperlink to this URL leads to, with their pages.

    Raises:
        LinkStoreError: If there is none.
    """
    found = _documents(store, name)
    if not found:
        raise LinkStoreError(
            f"no document has the id or URL {name!r}; find what there is with: linkstore query TEXT"
        )
    return found


def documents_meant(store: CoreStore, name: str) -> list[Document]:
    """Do as :func:`documents_named`, else return those of the only page whose URL ends with the name.

    The name may leave out the suffix of the URL.

    Raises:
        UsageError: If the URLs of several pages end so.
        LinkStoreError: If there is no such document or page.
    """
    from linkstore.urls import split_tag, with_fragment

    found = _documents(store, name)
    if found:
        return found
    page, fragment = split_tag(name)
    pages = _ending(store, page)
    if len(pages) > 1:
        listed = "".join(f"\n  {one}" for one in pages[:_NAMED])
        more = f"\n  and {len(pages) - _NAMED:,} more" if len(pages) > _NAMED else ""
        raise UsageError(f"{name!r} matches {len(pages):,} pages; name one of them:{listed}{more}")
    return documents_named(store, with_fragment(pages[0], fragment) if pages else name)


def spellings(name: str) -> list[str]:
    """Return a URL as it was typed, in its own letters, and percent-encoded."""
    from linkstore.letters import readable_url

    encoded = [quote(name, safe=kept, errors="replace") for kept in _KEPT]
    return list(dict.fromkeys((name, *map(readable_url, encoded), *encoded)))


def _documents(store: CoreStore, name: str) -> list[Document]:
    from linkstore.ids import is_storable

    if not is_storable(name):
        return []
    by_id = store.get_by_ids(spellings(name))
    return by_id[:1] or _led_to(store, name) or _where(store, "url", spellings(name))


def _ending(store: CoreStore, name: str) -> list[str]:
    """Return the pages whose URL ends with a name of whole parts of the path, which may lack the suffix."""
    wanted = _folded(name).strip("/")
    return sorted(page for page in store.pages() if _ends(_folded(page), wanted)) if wanted else []


def _ends(page: str, wanted: str) -> bool:
    bare = _SUFFIX.sub("", page)
    folder, _, name = bare.rpartition("/")
    candidates = (page, bare, folder) if name in _INDEX else (page, bare)
    return any(f"/{one}".endswith(f"/{wanted}") for one in candidates)


def _folded(url: str) -> str:
    """Return one spelling of a name: in its own letters, in lower case, with spaces."""
    text = unicodedata.normalize("NFC", unquote(url)).casefold().replace("_", " ")
    return posixpath.normpath(text) if text.strip("/") else ""


def _led_to(store: CoreStore, url: str) -> list[Document]:
    from linkstore.links import Link
    from linkstore.strategies import Eager
    from linkstore.urls import Site

    tags = dict.fromkeys((url, Site().page_tag(url) or url))
    hits = store.search(
        url,
        strategy=Eager(start_k=0, depth=0, adjacent_k=MOST, hub_cap=MOST, k=MOST),
        initial_links=[Link.outgoing(kind="hyperlink", tag=tag) for tag in tags],
    )
    pages = sorted({page for hit in hits if isinstance(page := hit.document.metadata.get("page"), str)})
    return _by_id(hits) if "#" in url or not pages else _where(store, "page", pages)


def _where(store: CoreStore, field: str, values: list[str]) -> list[Document]:
    from linkstore.errors import UnknownNameError
    from linkstore.strategies import Similarity

    try:
        return _by_id(store.search(field, strategy=Similarity(k=MOST), filter={field: {"$in": values}}))
    except UnknownNameError:  # no document has such a field, so none has one of these values
        return []


def _by_id(hits: Hits) -> list[Document]:
    return sorted((hit.document for hit in hits), key=lambda document: document.id or "")
