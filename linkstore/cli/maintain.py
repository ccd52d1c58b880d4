"""``linkstore delete``, ``stats``, ``verify``, ``repair`` and ``compact``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from linkstore.cli.commands import JsonOption, StoreOption
from linkstore.cli.exits import DAMAGED, UsageError
from linkstore.cli.facts import note_facts
from linkstore.cli.links import find_documents, list_spellings
from linkstore.cli.output import get_indexed_page, note, show, write_json
from linkstore.cli.stores import open_core_store
from linkstore.core.display import escape_unprintable, format_count
from linkstore.core.text import is_unicode
from linkstore.errors import LinkStoreError

if TYPE_CHECKING:
    from linkstore.engines.contract import Report
    from linkstore.store.core import CoreStore


def verify(store: StoreOption, json: JsonOption = False) -> None:
    """Check a store without changing it.

    Compares all derived data with the documents. The exit code is 5 if they do not match.
    """
    with open_core_store(store) as opened_store:
        report = opened_store.verify()
    _show_verification(report, json=json, verb="found")
    if not report.sound:
        raise typer.Exit(DAMAGED)


def repair(store: StoreOption, json: JsonOption = False) -> None:
    """Repair the problems that verify finds."""
    with open_core_store(store) as opened_store:
        report = opened_store.repair()
    _show_verification(report, json=json, verb="repaired")


def compact(store: StoreOption, json: JsonOption = False) -> None:
    """Remove all traces of deleted documents from the files.

    A store does not need this to keep its size in proportion to its content. The time depends on the size of
    the store.
    """
    with open_core_store(store) as opened_store:
        opened_store.compact()
        note_facts(opened_store, store)
    if json:
        write_json({"compacted": True})
    else:
        show("the store is compact", "green")


def _show_verification(report: Report, *, json: bool, verb: str) -> None:
    if json:
        findings = [asdict(finding) for finding in report.findings]
        write_json({"sound": report.sound, "findings": findings})
        return
    if report.sound:
        show("the store is sound", "green")
    for finding in report.findings:
        examples = f": {', '.join(finding.examples)}" if finding.examples else ""
        show(f"{verb}: {finding.problem} ({finding.count}){examples}", "yellow")


def delete(
    store: StoreOption,
    pages: Annotated[list[str] | None, typer.Argument()] = None,
    chunks: Annotated[list[str] | None, typer.Option("--chunk")] = None,
) -> None:
    """Remove pages with all their documents and links.

    If one of them does not exist, nothing is removed. The next index run of their source restores pages that
    it still has.

    Args:
        pages (PAGES): URLs of pages, or ids of documents that belong to no page.
        chunks (ID): Remove only this document of a page; repeatable.
    """
    if not pages and not chunks:
        raise UsageError("there is nothing to delete; give pages, or --chunk ID")
    with open_core_store(store) as opened_store:
        whole, single = _find_targets(opened_store, pages or (), chunks or ())
        removed = opened_store.delete_pages(whole).removed
        opened_store.delete(single)
        note_facts(opened_store, store)
    count = removed + len(single)
    note(
        f"deleted {format_count(len(whole), 'page')}, {format_count(count, 'document')}; "
        "the next index restores what the"
        " source still has"
    )


def _find_targets(
    store: CoreStore, pages: Sequence[str], chunks: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the pages to remove as wholes, and the ids of single documents.

    Raises:
        LinkStoreError: If there is no such page or document.
    """
    whole: list[str] = []
    single: list[str] = []
    for id in chunks:
        found = store.get_by_ids(list_spellings(id))
        if not found:
            raise LinkStoreError(f"nothing was deleted: no document has the id {id}")
        single.append(found[0].id or "")
    for name in pages:
        of_name, loose = _find_named_pages(store, name)
        whole += of_name
        single += loose
    return list(dict.fromkeys(whole)), list(dict.fromkeys(single))


def _find_named_pages(store: CoreStore, name: str) -> tuple[list[str], list[str]]:
    """Return the pages that a name means, and the documents of no indexed page."""
    spelled = list(store.page_ids(None, [url for url in list_spellings(name) if is_unicode(url)]))
    if spelled:
        return [name] if name in spelled else spelled[:1], []
    documents = find_documents(store, name)
    pages = {document.id or "": get_indexed_page(document) for document in documents}
    indexed = store.page_ids(None, sorted(set(pages.values())))
    part = next((one for one in list_spellings(name) if pages.get(one) in indexed), None)
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


def stats(store: StoreOption, json: JsonOption = False) -> None:
    """Count the contents of a store.

    Prints the number of documents, pages, links by kind and link groups, and of hyperlinks without a target
    in the store.
    """
    from linkstore.ingest.source import count_dangling

    with open_core_store(store) as opened_store:
        survey = opened_store.survey()
    counts: dict[str, int | Mapping[str, int]] = {
        "documents": survey.documents,
        "pages": survey.pages,
        "links": dict(survey.links),
        "groups": survey.groups,
        "dangling": asdict(count_dangling(survey)),  # hyperlinks that lead to nothing in the store
    }
    if json:
        write_json(counts)
        return
    for name, value in counts.items():
        if isinstance(value, Mapping):
            show(f"{name:<14}{sum(value.values()):>10,}")
            for part, count in value.items():
                show(f"  {escape_unprintable(part):<12}{count:>10,}")
        else:
            show(f"{name:<14}{value:>10,}")
