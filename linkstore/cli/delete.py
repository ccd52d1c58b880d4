"""``linkstore delete``: remove pages, or single documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from linkstore.cli.beside import note_facts
from linkstore.cli.exits import UsageError
from linkstore.cli.lookup import documents_named, spellings
from linkstore.cli.options import StoreOption
from linkstore.cli.output import note
from linkstore.cli.render import indexed_page
from linkstore.cli.stores import core_opened
from linkstore.display import amount
from linkstore.errors import LinkStoreError
from linkstore.text import is_unicode

if TYPE_CHECKING:
    from linkstore.store.core import CoreStore


def delete(
    store: StoreOption,
    pages: Annotated[
        list[str] | None,
        typer.Argument(metavar="PAGES", help="URLs of pages, or ids of documents that belong to no page."),
    ] = None,
    chunks: Annotated[
        list[str] | None,
        typer.Option("--chunk", metavar="ID", help="Remove only this document of a page; repeatable."),
    ] = None,
) -> None:
    """Remove pages with all their documents and links.

    If one of them does not exist, nothing is removed. The next index run of their source restores pages that
    it still has.
    """
    if not pages and not chunks:
        raise UsageError("there is nothing to delete; give pages, or --chunk ID")
    with core_opened(store) as opened_store:
        whole, single = _found(opened_store, pages or (), chunks or ())
        removed = opened_store.delete_pages(whole).removed
        opened_store.delete(single)
        note_facts(opened_store, store)
    count = removed + len(single)
    note(
        f"deleted {amount(len(whole), 'page')}, {amount(count, 'document')}; the next index restores what the"
        " source still has"
    )


def _found(store: CoreStore, pages: Sequence[str], chunks: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the pages to remove as wholes, and the ids of single documents.

    Raises:
        LinkStoreError: If there is no such page or document.
    """
    whole: list[str] = []
    single = [_chunk(store, name) for name in chunks]
    for name in pages:
        of_name, loose = _page(store, name)
        whole += of_name
        single += loose
    return list(dict.fromkeys(whole)), list(dict.fromkeys(single))


def _chunk(store: CoreStore, id: str) -> str:
    """Return the id that a name spells."""
    found = store.get_by_ids(spellings(id))
    if not found:
        raise LinkStoreError(f"nothing was deleted: no document has the id {id}")
    return found[0].id or ""


def _page(store: CoreStore, name: str) -> tuple[list[str], list[str]]:
    """Return the pages that a name means, and the documents of no indexed page."""
    spelled = list(store.page_ids(None, [url for url in spellings(name) if is_unicode(url)]))
    if spelled:
        return [name] if name in spelled else spelled[:1], []
    documents = documents_named(store, name)
    pages = {document.id or "": indexed_page(document) for document in documents}
    indexed = store.page_ids(None, sorted(set(pages.values())))
    part = next((one for one in spellings(name) if pages.get(one) in indexed), None)
    if part is not None:
        raise UsageError(
            f"{name} is a part of the page {pages[part]}; to delete the page, name that; to delete only the"
            f" part: --chunk {name}"
        )
    if len(indexed) > 1:
        raise UsageError(
            f"{name} leads to {len(indexed)} pages; name the one to delete: {', '.join(indexed)}"
        )
    return list(indexed), [one for one, page in pages.items() if page not in indexed]
