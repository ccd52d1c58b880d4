"""``linkstore links``: the links of a document; broken and missing ones, and those made of names."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote, unquote

import typer

from linkstore.cli.commands import JsonOption, StoreOption
from linkstore.cli.exits import UsageError
from linkstore.cli.output import get_indexed_page, inform, print_result, show, write_json
from linkstore.cli.sources import choose_extractors
from linkstore.cli.stores import open_core_store, refuse_options
from linkstore.core.display import (
    format_count,
    format_kinds,
    format_link_data,
    get_title,
    get_url,
    make_readable,
)
from linkstore.errors import LinkStoreError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.core.hits import Hits
    from linkstore.ingest.relink import Relinked
    from linkstore.store.core import CoreStore
    from linkstore.strategies.neighbours import Neighbour

MAX_LOOKED_UP: Final = 1000
"""Maximum number of documents looked up at once."""
MAX_SHOWN_ENDS: Final = 5
"""How many documents at the other end of a link are named to a person; ``--json`` names all."""
DEFAULT_SUGGESTED: Final = 20
"""How many links are suggested."""
_BROKEN_KIND: Final = "hyperlink"
_MAX_LISTED_PAGES: Final = 10
"""Maximum number of pages listed if a name is ambiguous."""
_UNENCODED: Final = ("/%#", "/:@!$&'()*+,;=~%#?", "/")
"""Characters that are not encoded in the paths of files, in other URLs, and in paths with such signs."""
_INDEX_PAGES: Final = frozenset({"index", "readme"})
_URL_SUFFIX: Final = re.compile(r"\.[a-z][a-z0-9]{0,8}\Z")


def find_documents(store: CoreStore, name: str, *, by_ending: bool = False) -> list[Document]:
    """Return the document with this id, else the targets of a hyperlink to this URL, with their pages.

    Args:
        store: Where they are.
        name: An id or URL.
        by_ending: Whether to look, where there are none, for those of the only page whose URL ends with the
            name, which may leave out the suffix of the URL.

    Raises:
        UsageError: If the URLs of several pages end so.
        LinkStoreError: If there is no such document or page.
    """
    from linkstore.core.urls import add_fragment

    documents = _look_up_documents(store, name)
    if not documents and by_ending:
        pages, fragment = _find_pages_ending(store, name), ""
        if not pages:
            page, _, fragment = name.rpartition("#")
            pages = _find_pages_ending(store, page)
        if len(pages) > 1:
            listed = "".join(f"\n  {page}" for page in pages[:_MAX_LISTED_PAGES])
            rest = len(pages) - _MAX_LISTED_PAGES
            more = f"\n  and {rest:,} more" if rest > 0 else ""
            raise UsageError(f"{name!r} matches {len(pages):,} pages; name one of them:{listed}{more}")
        documents = _look_up_documents(store, add_fragment(pages[0], fragment)) if pages else []
        name = add_fragment(pages[0], fragment) if pages else name
    if not documents:
        near = get_close_matches(name, store.pages.digests(), 1, 0.8)
        advice = f"did you mean {near[0]}?" if near else "find what there is with: linkstore query TEXT"
        raise LinkStoreError(f"no document has the id or URL {name!r}; {advice}")
    return documents


def list_page_ids(store: CoreStore, name: str) -> list[str]:
    """Return the ids of a page's documents, or of those of a fragment: see :func:`find_documents`."""
    documents = find_documents(store, name, by_ending=True)
    page = get_indexed_page(documents[0])
    is_part = unquote(name).count("#") > unquote(page).count("#")
    whole = () if is_part else store.pages.ids(None, [page]).get(page, ())
    return list(whole) or [document.id or "" for document in documents]


def list_spellings(name: str) -> list[str]:
    """Return a URL as it was typed, in its own letters, and percent-encoded."""
    encoded = [quote(name, safe=kept, errors="replace") for kept in _UNENCODED]
    page, mark, fragment = name.rpartition("#")
    encoded.append(f"{quote(page, errors='replace')}{mark}{fragment}")
    return list(dict.fromkeys((name, *map(make_readable, encoded), *encoded)))


def _look_up_documents(store: CoreStore, name: str) -> list[Document]:
    from linkstore.core.documents import is_storable

    if not is_storable(name):
        return []
    by_id = store.get_by_ids(list_spellings(name))
    return by_id[:1] or _find_led_to(store, name) or _find_by_field(store, "url", list_spellings(name))


def _find_pages_ending(store: CoreStore, name: str) -> list[str]:
    """Return the pages whose URL ends with whole parts of a path, with or without its suffix."""
    wanted = _fold_url(name).strip("/")
    pages = store.pages.digests() if wanted else ()
    return sorted(page for page in pages if _has_ending(_fold_url(page), wanted))


def _has_ending(page: str, wanted: str) -> bool:
    bare = _URL_SUFFIX.sub("", page)
    folder, _, name = bare.rpartition("/")
    candidates = (page, bare, folder) if name in _INDEX_PAGES else (page, bare)
    return any(f"/{candidate}".endswith(f"/{wanted}") for candidate in candidates)


def _fold_url(url: str) -> str:
    """Return one spelling of a name: in its own letters, in lower case, with spaces."""
    text = unicodedata.normalize("NFC", unquote(url)).casefold().replace("_", " ")
    return posixpath.normpath(text) if text.strip("/") else ""


def _find_led_to(store: CoreStore, url: str) -> list[Document]:
    from linkstore.core.links import Link
    from linkstore.core.urls import Site
    from linkstore.strategies.eager import Eager

    tags = dict.fromkeys((url, Site().page_tag(url) or url))
    hits = store.search(
        url,
        strategy=Eager(start_k=0, depth=0, adjacent_k=MAX_LOOKED_UP, hub_cap=MAX_LOOKED_UP, k=MAX_LOOKED_UP),
        initial_links=[Link.outgoing(kind="hyperlink", tag=tag) for tag in tags],
    )
    pages = sorted({page for hit in hits if isinstance(page := hit.document.metadata.get("page"), str)})
    return _sort_by_id(hits) if "#" in url or not pages else _find_by_field(store, "page", pages)


def _find_by_field(store: CoreStore, field: str, values: list[str]) -> list[Document]:
    from linkstore.strategies.first_stage import Similarity

    wanted = {field: {"$in": values}}
    return _sort_by_id(store.search(field, strategy=Similarity(k=MAX_LOOKED_UP), filter=wanted))


def _sort_by_id(hits: Hits) -> list[Document]:
    return sorted((hit.document for hit in hits), key=lambda document: document.id or "")


def show_broken(store: CoreStore, *, json: bool) -> None:
    """Print broken links by page, and count the ones to other sites."""
    from linkstore.core.urls import is_internal_tag
    from linkstore.ingest.source import count_dangling

    survey = store.survey()
    tags = (tag for kind, tag, _ in survey.dangling if kind == _BROKEN_KIND)
    missing = frozenset(filter(is_internal_tag, tags))
    external = count_dangling(survey).external
    broken = _find_broken(store, missing) if missing else iter(())
    if json:
        write_json(list(broken))
    else:
        for page, links in groupby(broken, key=lambda broken_link: broken_link["page"]):
            show(page, "bold cyan")
            for link in links:
                label = f" “{link['label']}”" if link["label"] else ""
                show(f"  {make_readable(link['tag'])}{label}")
    if missing:
        inform("links to pages that robots.txt or --deny left out are listed, too: they were not fetched")
    else:
        inform("all links within the indexed sites lead to a page")
    if external:
        inform(f"links to other sites: {external:,}, not looked at")


def _find_broken(store: CoreStore, missing: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Yield broken links in the order of the documents, page by page."""
    from linkstore.core.links import get_links

    for document in store.scan():
        for link in get_links(document):
            if link.kind == _BROKEN_KIND and link.leads_out and link.tag in missing:
                page = get_indexed_page(document)
                yield {"page": page, "id": document.id or "", "tag": link.tag, "label": link.label}


def links(
    store: StoreOption,
    name: Annotated[str | None, typer.Argument()] = None,
    broken: bool = False,
    suggest: bool = False,
    k: Annotated[int | None, typer.Option("-k", min=1, max=100_000)] = None,
    apply: bool = False,
    dismiss: list[str] | None = None,
    relink: bool = False,
    extractors: Annotated[list[str] | None, typer.Option("--links")] = None,
    json: JsonOption = False,
) -> None:
    """Show the links of a document or page, in both directions.

    With --suggest, pages that name another page without a link to it come first, then pages that are near
    each other in meaning and by their links.

    With --relink, finds titles that texts mention, and names that two or three texts share, in all documents,
    whichever way they were added. Replaces all links of these kinds; embeds nothing.

    Args:
        name (URL_OR_ID): The id of a document, the URL of a page, or a unique end of such a URL.
        broken: List hyperlinks without a target instead, by page.
        suggest: Suggest links that may be missing instead, best first.
        k: With --suggest: maximum number of links; default 20.
        apply: With --suggest: write them as links of the kind 'suggested', which a search follows only by
            name.
        dismiss (NUMBER): With --suggest: never suggest this one of the list again; repeatable. 'none'
            forgets all that was dismissed.
        relink: Link all documents by the names in their texts instead.
        extractors (NAMES): With --relink: link extractors; default mention,entity.
    """
    if (name is not None) + broken + suggest + relink != 1:
        raise UsageError(
            "give the id of a document or the URL of a page, or one of --broken, --suggest and --relink"
        )
    if not suggest:
        refuse_options("goes with --suggest only", apply=apply, dismiss=dismiss, k=k)
    if not relink:
        refuse_options("goes with --relink only", links=extractors)
    with open_core_store(store) as opened_store:
        if name is None:
            if broken:
                show_broken(opened_store, json=json)
            elif suggest:
                _dismiss(opened_store, k or DEFAULT_SUGGESTED, dismiss or ())
                _suggest(opened_store, k or DEFAULT_SUGGESTED, apply=apply, json=json)
            else:
                from linkstore.ingest.relink import CORPUS_LINKS, link_corpus

                chosen = choose_extractors(extractors or CORPUS_LINKS)
                print_result(link_corpus(opened_store, chosen), _show_relinked, json=json)
            return
        entries = []
        for document in opened_store.get_by_ids(list_page_ids(opened_store, name)):
            near = opened_store.links.neighbours(document.id or "")
            entries.append(
                {
                    "id": document.id,
                    "url": get_url(document),
                    "title": get_title(document),
                    "outgoing": _list_neighbours(near.outgoing, "to"),
                    "incoming": _list_neighbours(near.incoming, "from"),
                }
            )
    print_result(entries, _show_links, json=json)


def _list_neighbours(neighbours: Iterable[Neighbour], side: str) -> list[dict[str, Any]]:
    return [
        {
            "kind": near.link.kind,
            "tag": near.link.tag,
            "label": near.link.label,
            "weight": near.link.weight,
            **({} if near.link.data is None else {"data": near.link.data}),
            side: list(near.ids),
            "more": near.more,
        }
        for near in neighbours
    ]


def _show_links(entries: Sequence[Mapping[str, Any]]) -> None:
    for entry in entries:
        show(entry["id"], "bold cyan")
        for side, arrow, others in (("outgoing", "→", "to"), ("incoming", "←", "from")):
            for row in entry[side]:
                label = f" “{row['label']}”" if row["label"] else ""
                ids = _format_ids(row[others], more=row["more"])
                data = f" {format_link_data(row['data'])}" if "data" in row else ""
                show(f"  {row['kind']} {make_readable(row['tag'])}{label}{data} {arrow} {ids}")


def _format_ids(ids: Sequence[str], *, more: bool) -> str:
    """Format a few ids, and how many others there are."""
    if more:
        return "too many to list"
    rest = len(ids) - MAX_SHOWN_ENDS
    return (", ".join(ids[:MAX_SHOWN_ENDS]) or "nothing here") + (f" and {rest:,} more" if rest > 0 else "")


def _dismiss(store: CoreStore, k: int, numbers: Sequence[str]) -> None:
    """Have the suggestions with these numbers in the list not suggested again."""
    if list(numbers) == ["none"]:
        store.links.dismiss(None)
        return
    listed = dict(enumerate(store.links.suggest(k) if numbers else (), start=1))
    unknown = [number for number in numbers if not number.isdecimal() or int(number) not in listed]
    if unknown:
        raise UsageError(f"--dismiss takes numbers of the list, 1 to {len(listed)}, not {', '.join(unknown)}")
    chosen = [listed[int(number)] for number in numbers]
    if chosen:
        store.links.dismiss(chosen)
    for suggestion in chosen:
        pages = map(make_readable, (suggestion.source_page, suggestion.target_page))
        inform(f"dismissed: {' → '.join(pages)}")


def _suggest(store: CoreStore, k: int, *, apply: bool, json: bool) -> None:
    """Print links that may be missing, and write them if wanted."""
    suggestions = store.links.suggest(k)
    changed = store.links.accept(suggestions) if apply else 0
    if json:
        write_json(suggestions)
    else:
        for number, suggestion in enumerate(suggestions, start=1):
            source, target = make_readable(suggestion.source_page), make_readable(suggestion.target_page)
            show(f"{number:3}. {source} → {target}  score {suggestion.score:.3f}", "bold cyan")
            near = f"similarity {suggestion.similarity:.2f}"
            why = f"names it “{suggestion.phrase}”" if suggestion.reason == "named" else near
            show(f"     {why}: {suggestion.passage}")
    if not suggestions:
        inform("no link seems to be missing: no page names another without a link, and none are near")
    if apply:
        inform(f"wrote {format_count(len(suggestions), 'link')} in {format_count(changed, 'document')}")


def _show_relinked(done: Relinked) -> None:
    show(f"documents {done.documents:,}, {done.changed:,} with other links than before")
    show(f"links     {format_kinds(done.links)} written")
