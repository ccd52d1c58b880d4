"""The graph of a whole store as the page draws it: pages, links, hubs and orphans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from linkstore.core.arrays import Ints, join_equal
from linkstore.core.calls import Operation, call_engine, call_plan
from linkstore.core.hit_graph import name_document
from linkstore.core.plans import StoredDocument, read_documents
from linkstore.strategies.pagerank import compute_pagerank

if TYPE_CHECKING:
    from linkstore.core.arrays import Bools, Floats
    from linkstore.engines.bookkeeping import Backend
    from linkstore.engines.contract import PageEntry, StoredLinks

DRAWN_PAGES: Final = 2000
"""How many pages are drawn at most."""
GROUP_CAP: Final = 20
"""A link group that leads to more pages is a hub: it is listed, and its links are not drawn."""
_DAMPING: Final = 0.85
_RANK_ROUNDS: Final = 30
_LISTED: Final = 20
_FEWEST_VALUES: Final = 2
_MOST_VALUES: Final = 40
"""How few and how many values a metadata field must have to colour the pages by it."""
_MOST_FIELDS: Final = 8
_LONGEST_VALUE: Final = 60
_LARGEST_NUMBER: Final = 2**53
"""Beyond it, JavaScript does not tell a number from the next."""
_NOT_FIELDS: Final = frozenset({"title", "url", "page", "headings", "links"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PageGraph:
    """The pages of a store and the links between them, as columns.

    Args:
        names: (n,) the URL of each page, or the id of a document that has none.
        first: (n,) the id of each page's first document.
        source: (m,) pages that links lead from; no page links to itself.
        target: (m,) pages that they lead to.
        weight: (m,) number of links from the one to the other.
        hubs: Kind and tag of the link groups that lead to more than :data:`GROUP_CAP` pages, and to how many,
            largest first.
    """

    names: tuple[str, ...]
    first: tuple[str, ...]
    source: Ints
    target: Ints
    weight: Floats
    hubs: tuple[tuple[str, str, int], ...] = ()

    @property
    def degree(self) -> Ints:
        """Return (n,) how many pages each page is linked with, counted once in each direction."""
        size = len(self.names)
        return np.bincount(self.source, minlength=size) + np.bincount(self.target, minlength=size)


def read_corpus(backend: Backend, most: int = DRAWN_PAGES) -> Operation[dict[str, Any]]:
    """Return the graph of a store as plain JSON: at most ``most`` pages, and what is true of all of them.

    If there are more pages, those with the highest PageRank are drawn.
    """
    entries = yield from call_engine(backend, backend.pages(None))
    links = yield from call_engine(backend, backend.links())
    graph = build_graph(entries, links)
    rank, degree, start = rank_pages(graph), graph.degree, find_start(graph.names)
    chosen = choose_drawn(rank, most)
    orphans = np.flatnonzero(degree == 0)
    shown = [graph.first[at] for at in (*chosen.tolist(), *orphans[:_LISTED].tolist())]
    read = yield from call_plan(backend, read_documents(shown))
    documents = {document.id: document for document in read}
    fields, dates = choose_fields([document.metadata for document in read])
    wanted = {*fields, *dates}
    chosen = chosen[[graph.first[at] in documents for at in chosen.tolist()]]  # the store may have changed
    nodes = [
        {
            "id": document.id,
            "page": graph.names[at],
            "title": _name_page(document),
            "rank": float(rank[at]),
            "degree": int(degree[at]),
            "folder": get_folder(graph.names[at], start),
            "fields": {name: text for name, text, _ in list_values(document.metadata) if name in wanted},
        }
        for at in chosen.tolist()
        for document in (documents[graph.first[at]],)
    ]
    place = np.full(len(graph.names), -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    inside = (place[graph.source] >= 0) & (place[graph.target] >= 0)
    ends = place[graph.source[inside]], place[graph.target[inside]]
    lonely = [documents[id] for id in shown[len(shown) - len(orphans[:_LISTED]) :] if id in documents]
    return {
        "noun": "page" if entries else "document",
        "pages": len(graph.names),
        "links": int(graph.weight.sum()),
        "nodes": nodes,
        "edges": np.stack((*ends, graph.weight[inside].astype(np.int64)), 1).tolist(),
        "hubs": [{"kind": kind, "tag": tag, "pages": size} for kind, tag, size in graph.hubs],
        "orphans": {
            "count": len(orphans),
            "first": [{"id": document.id, "title": _name_page(document)} for document in lonely],
        },
        "degrees": np.bincount(np.ceil(np.log2(degree + 1)).astype(np.int64)).tolist(),  # 0, 1, 2-3, 4-7 …
        "fields": fields,
        "dates": dates,
    }


def build_graph(entries: Sequence[PageEntry], links: StoredLinks) -> PageGraph:
    """Return the graph of pages; a document of no page is one of its own."""
    position = {id: at for at, id in enumerate(links.ids)}
    page = np.full(len(links.ids), -1, dtype=np.int64)
    names: list[str] = []
    first: list[str] = []
    for entry in entries:
        own = [position[id] for id in entry.ids if id in position]
        if own:
            page[own] = len(names)
            names.append(entry.url)
            first.append(links.ids[own[0]])
    for at in np.flatnonzero(page < 0).tolist():
        page[at] = len(names)
        names.append(links.ids[at])
        first.append(links.ids[at])
    source_page, source_group = _pair_once(page, links, links.leads_out)
    target_page, target_group = _pair_once(page, links, links.leads_in)
    groups, place, sizes = np.unique(target_group, return_inverse=True, return_counts=True)
    small = sizes[place] <= GROUP_CAP
    from_row, to_row = join_equal(source_group, target_group[small])
    source, target = source_page[from_row], target_page[small][to_row]
    apart = source != target
    pairs, counts = np.unique(source[apart] * len(names) + target[apart], return_counts=True)
    largest = np.argsort(-sizes, kind="stable")[:_LISTED]
    return PageGraph(
        names=tuple(names),
        first=tuple(first),
        source=pairs // max(len(names), 1),
        target=pairs % max(len(names), 1),
        weight=counts.astype(np.float32),
        hubs=tuple(
            (*links.groups[int(groups[group])], int(sizes[group]))
            for group in largest.tolist()
            if sizes[group] > GROUP_CAP
        ),
    )


def _pair_once(page: Ints, links: StoredLinks, side: Bools) -> tuple[Ints, Ints]:
    """Return each pair of a page and a link group on one side once."""
    wide = max(len(links.groups), 1)
    pairs = np.unique(page[links.document[side]] * wide + links.group[side])
    return pairs // wide, pairs % wide


def _name_page(document: StoredDocument) -> str:
    title = document.metadata.get("title")
    return str(title or name_document(document.metadata, document.text) or document.id)


def rank_pages(graph: PageGraph) -> Floats:
    """Return (n,) the PageRank of each page, with damping 0.85 (L. Page and others, 1999)."""
    size = len(graph.names)
    if not size:
        return np.empty(0, np.float32)
    weight = graph.weight.astype(np.float64)
    even = np.full(size, 1 / size)
    rank = compute_pagerank(graph.source, graph.target, weight, even, _DAMPING, _RANK_ROUNDS)
    return rank.astype(np.float32)


def choose_drawn(rank: Floats, most: int) -> Ints:
    """Return the pages to draw, in order: all, or ``most`` of them by PageRank."""
    return np.sort(np.argsort(-rank, kind="stable")[:most])


def choose_fields(documents: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the metadata fields to colour pages by, each with its values, and the fields with dates."""
    values: dict[str, set[str]] = {}
    for metadata in documents:
        for name, text, _ in list_values(metadata):
            values.setdefault(name, set()).add(text)
    dates = sorted(name for name, value in values.items() if all(map(is_date, value)))
    few = {
        name: sorted(field_values)
        for name, field_values in sorted(values.items())
        if name not in dates and _FEWEST_VALUES <= len(field_values) <= _MOST_VALUES
    }
    return dict(list(few.items())[:_MOST_FIELDS]), dates[:_MOST_FIELDS]


def list_values(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str, str | float]]:
    """Yield the short values of fields: the name of the field, the value as text, and as it is.

    Of a list, each member is a value.
    """
    for name, value in metadata.items():
        for member in value if isinstance(value, list) else [value]:
            text = str(member).lower() if isinstance(member, bool) else str(member)
            plain = isinstance(member, str) or (
                isinstance(member, int | float) and abs(member) <= _LARGEST_NUMBER
            )
            named = name not in _NOT_FIELDS and not name.startswith("$")  # which begins operators of filters
            if plain and named and 0 < len(text) <= _LONGEST_VALUE:
                yield name, text, member


def is_date(text: str) -> bool:
    """Say whether a text begins with a day, as 2026-11-30."""
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return len(text) >= len("2000-01-01")


def find_start(names: Sequence[str]) -> str:
    """Return the folder of all pages, with a slash at its end, or "" if there is none."""
    return "".join(commonprefix(names).rpartition("/")[:2])  # noqa: RUF071 - up to a slash


def get_folder(name: str, start: str) -> str:
    """Return the folder of a page within that of all, or "" if it lies at the top of it."""
    folder, slash, _ = name.removeprefix(start).partition("/")
    return folder if slash else ""
