"""The result of a search: hits, their paths, and the documents that were left out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from langchain_core.documents import Document

from linkstore.core.arguments import quote_value, require_list
from linkstore.core.display import escape_html, escape_unprintable, format_link_data
from linkstore.errors import ArgumentError

if TYPE_CHECKING:
    from linkstore.core.hit_graph import HitGraph

T = TypeVar("T", covariant=True)
MAX_SHOWN_HITS: Final = 5
"""How many hits their ``repr`` names."""
EXCERPT_LENGTH: Final = 200
"""How many characters of a text a notebook shows."""
HIT_KEY: Final = "linkstore"
"""The metadata key that holds score, similarity, depth and path of a hit's document."""
SUPERSEDED_BY: Final = "okf_superseded_by"
"""The metadata key for the pages that take the place of a document's own."""


class Items(Sequence[T]):
    """A sequence of the items of a tuple."""

    __slots__ = ()

    @property
    @abstractmethod
    def _items(self) -> tuple[T, ...]:
        """The items."""

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        """Return the item, or items, at ``index``."""
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """One document on a path, with the link that led to it.

    Args:
        id: The id of the document.
        url: ``metadata["url"]``; None if missing.
        kind: Kind of the link that was followed to it; None for a seed.
        tag: Tag of that link.
        label: Its label, such as the anchor text.
        data: Its data; None if it has none.
    """

    id: str
    url: str | None = None
    kind: str | None = None
    tag: str | None = None
    label: str | None = None
    data: Mapping[str, Any] | None = field(default=None, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the step as a plain JSON dict, with ``data`` only where there are any."""
        step = {"id": self.id, "url": self.url, "kind": self.kind, "tag": self.tag, "label": self.label}
        return step | _copy_data(self.data)

    def __str__(self) -> str:
        if self.kind is None:
            return self.id
        return f"—[{self.kind} {self.tag}{_format_label(self.label, self.data)}]→ {self.id}"


@dataclass(frozen=True, slots=True)
class Path(Items[PathStep]):
    """The documents from the seed to the hit, both included."""

    steps: tuple[PathStep, ...]

    @property
    def _items(self) -> tuple[PathStep, ...]:
        return self.steps

    def __str__(self) -> str:
        return " ".join(map(str, self.steps))

    def __repr__(self) -> str:
        return f"<Path {escape_unprintable(str(self))}>"

    def _repr_html_(self) -> str:
        """Return the path for a notebook: one step a line, with the link that led to it."""
        return "<br>".join(escape_html(str(step)) for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Triple:
    """One link between two documents, in the direction its author gave it.

    Args:
        subject: The id of the document that the link leads from.
        kind: Kind of the link.
        object: The id of the document that it leads to.
        label: Its label, such as the anchor text.
        data: Its data; None if it has none.
    """

    subject: str
    kind: str
    object: str
    label: str | None = None
    data: Mapping[str, Any] | None = field(default=None, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the triple as a plain JSON dict, with ``data`` only where there are any."""
        triple = {"subject": self.subject, "kind": self.kind, "object": self.object, "label": self.label}
        return triple | _copy_data(self.data)

    def __str__(self) -> str:
        return f"{self.subject} —[{self._link}]→ {self.object}"

    def after(self, id: str) -> str:
        """Format the triple as the continuation of a chain that has come to the document with this id."""
        if id == self.subject:
            return f"—[{self._link}]→ {self.object}"
        return f"←[{self._link}]— {self.subject}"

    def other(self, id: str) -> str:
        """Return the id of the document at the other end of the link."""
        return self.object if id == self.subject else self.subject

    @property
    def _link(self) -> str:
        return f"{self.kind}{_format_label(self.label, self.data)}"


@dataclass(frozen=True, slots=True)
class Chain(Items[Triple]):
    """A chain of links from a document that the search started from to a hit.

    Args:
        start: The id of the document that it starts from.
        triples: Its links in order; each shares a document with the next.
        independent: Whether it counts among the chains that meet at the hit: see
            :class:`~linkstore.strategies.AllPaths`.
    """

    start: str
    triples: tuple[Triple, ...]
    independent: bool = False

    @property
    def _items(self) -> tuple[Triple, ...]:
        return self.triples

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its links, in order."""
        return tuple(triple.kind for triple in self.triples)

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids of its documents, from the start to the hit."""
        passed = [self.start]
        for triple in self.triples:
            passed.append(triple.other(passed[-1]))
        return tuple(passed)

    def __str__(self) -> str:
        parts, at = [self.start], self.start
        for triple in self.triples:
            parts.append(triple.after(at))
            at = triple.other(at)
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"<Chain {escape_unprintable(str(self))}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A document that was found.

    Args:
        document: As stored.
        score: The score that determines its rank, as the strategy defines it.
        similarity: Cosine similarity to the question, in [-1, 1].
        depth: Number of links followed to reach it; 0 for a seed.
        path: The documents from the seed to this one.
        contributions: The parts of the score by name; their sum is the score.
        chains: Every chain of links that led to it, the independent ones first; only from
            :class:`~linkstore.strategies.AllPaths`.
    """

    document: Document
    score: float
    similarity: float
    depth: int
    path: Path
    contributions: Mapping[str, float] = field(default_factory=dict)
    chains: tuple[Chain, ...] = ()

    @property
    def page_content(self) -> str:
        """The text of the document, under its name there: LangChain's retrievers take hits for documents."""
        return self.document.page_content

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the document, as stored."""
        return self.document.metadata

    @property
    def id(self) -> str | None:
        """The id of the document."""
        return self.document.id

    def __repr__(self) -> str:
        return f"<Hit {self.document.id!r} score={self.score:.4f} depth={self.depth}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as plain JSON, without its document."""
        hit: dict[str, Any] = {
            "score": self.score,
            "similarity": self.similarity,
            "depth": self.depth,
            "path": [step.to_dict() for step in self.path],
            "contributions": dict(self.contributions),
        }
        if self.chains:
            hit["chains"] = [[triple.to_dict() for triple in chain] for chain in self.chains]
        return hit

    def to_document(self) -> Document:
        """Return a copy of the document with the hit's fields under ``metadata["linkstore"]``."""
        metadata = {**self.document.metadata, HIT_KEY: self.to_dict()}
        return self.document.model_copy(update={"metadata": metadata})


@dataclass(frozen=True, slots=True, kw_only=True)
class PageHits:
    """A page with the hits among its documents.

    Args:
        page: The name of the page, as :func:`get_page` returns it.
        hits: Best first; at least one.
        score: The score of the best hit.
    """

    page: str
    hits: tuple[Hit, ...]
    score: float


def get_page(document: Document) -> str:
    """Return a document's page: ``metadata["page"]``, else its ``url`` without the fragment, else its id."""
    for name in ("page", "url"):
        value = document.metadata.get(name)
        if isinstance(value, str) and value:
            return value if name == "page" else value.partition("#")[0] or value
    return document.id or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Documents or link groups that a search left out.

    Args:
        reason: ``hub``, ``beam``, ``filter``, ``min_similarity``, ``max_nodes``, ``k``, ``per_page``,
            ``lexical``, ``missing``, ``paths`` or ``name``.
        count: Number of documents left out; for ``hub``, of link groups.
        depth: The hop, 0 for the seeds; None for the result.
        detail: The setting that applied, and examples.
    """

    reason: str
    count: int
    depth: int | None
    detail: str

    def __str__(self) -> str:
        where = "in the result" if self.depth is None else f"at depth {self.depth}"
        return f"{self.reason}: {self.count} {where} — {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits(Items[Hit]):
    """Hits in order of rank.

    Args:
        hits: Best first.
        cuts: The documents and link groups that were left out, and why.
        reason: Why the result is empty; None if it is not.
        doubt: Why the question seems to be about something else than the store, so that the hits are only the
            nearest documents; None if it does not.
        least_similarity: With less, by the embedding of the store, a text is hardly about a question; -1 for
            a question that names a document. None if that is not known.
        strategy: The strategy, as text.
    """

    hits: tuple[Hit, ...]
    cuts: tuple[Cut, ...] = ()
    reason: str | None = None
    doubt: str | None = None
    least_similarity: float | None = None
    strategy: str = ""

    @property
    def match(self) -> str:
        """How well the hits match the question, which their scores, shares of the best, do not say."""
        if self.doubt is not None:
            return f"probably nothing here is about this: {self.doubt}"
        best = max((hit.similarity for hit in self.hits), default=-1.0)
        if self.least_similarity is None:
            return f"the best similarity is {best:.2f}"
        if self.least_similarity == -1:
            return f"strong match: the question names a document; the best similarity is {best:.2f}"
        if best >= self.least_similarity:
            return f"strong match: the best similarity is {best:.2f}"
        return f"weak match: the best similarity is {best:.2f}, which is less than {self.least_similarity:g}"

    @property
    def brought_by_links(self) -> tuple[Hit, ...]:
        """The hits that only links led to: the first stage of the search did not find them."""
        return tuple(hit for hit in self.hits if hit.depth)

    @property
    def _items(self) -> tuple[Hit, ...]:
        return self.hits

    def __repr__(self) -> str:
        strategy = f" of {self.strategy}" if self.strategy else ""
        if not self.hits:
            return f"<Hits{strategy}: none, {self.reason or 'for no reason given'}>"
        shown = [f"{hit.document.id!r} {hit.score:.3f}" for hit in self.hits[:MAX_SHOWN_HITS]]
        more = [f"{len(self.hits) - MAX_SHOWN_HITS} more"] if len(self.hits) > MAX_SHOWN_HITS else []
        return f"<{len(self.hits)} Hits{strategy}: {', '.join(shown + more)}>"

    def _repr_html_(self) -> str:
        """Return the hits for a notebook: a table of rank, score, document, text and path."""
        if not self.hits:
            return f"<p>{escape_html(repr(self))}</p>"
        head = "".join(f"<th>{name}</th>" for name in ("", "score", "document", "text", "path"))
        rows = (_format_row(rank, hit) for rank, hit in enumerate(self.hits, 1))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"

    def by_page(self) -> tuple[PageHits, ...]:
        """Group the hits by page, each page once, in the order of their best hits."""
        pages: dict[str, list[Hit]] = {}
        for hit in self.hits:
            pages.setdefault(get_page(hit.document), []).append(hit)
        return tuple(
            PageHits(page=page, hits=tuple(hits), score=hits[0].score) for page, hits in pages.items()
        )

    def documents(self) -> list[Document]:
        """Return copies of the documents, each with its hit's fields under ``metadata["linkstore"]``."""
        documents = [hit.to_document() for hit in self.hits]
        if self.doubt is not None:
            for document in documents:
                document.metadata["linkstore"]["doubt"] = self.doubt
        return documents

    def to_evidence(self, quotes: Sequence[str] = ()) -> list[dict[str, Any]]:
        """Return the passages of the hits, for ``linkstore doctor --evidence`` to check.

        Args:
            quotes: Passages of the hits, word for word. Default the whole text of each hit.

        Returns:
            Of each passage, as plain JSON: the ``id``, ``url`` and ``page`` of its document, its ``start``
            and ``end`` there in characters, its ``text``, and the ``sha256`` of its UTF-8.

        Raises:
            ArgumentError: If no hit has one of the quotes.
        """
        from hashlib import sha256

        documents = [hit.document for hit in self.hits]
        passages = [(document, document.page_content) for document in documents]
        if quotes:
            require_list("texts", quotes=quotes)
            having = (
                next((document for document in documents if quote and quote in document.page_content), None)
                for quote in quotes
            )
            passages = [(document, quote) for document, quote in zip(having, quotes, strict=True) if document]
        if quotes and len(passages) < len(quotes):
            quote = next(quote for quote in quotes if quote not in {text for _, text in passages})
            raise ArgumentError(f"no hit has the passage {quote_value(quote)}; give it word for word")
        return [
            {
                "id": document.id,
                "url": document.metadata.get("url"),
                "page": get_page(document),
                "start": (start := document.page_content.find(text)),
                "end": start + len(text),
                "text": text,
                "sha256": sha256(text.encode(errors="surrogatepass")).hexdigest(),
            }
            for document, text in passages
        ]

    def graph(self) -> HitGraph:
        """Return the documents found, the links that led to them, and the links among them."""
        from linkstore.core.hit_graph import HitGraph  # late: most searches draw nothing

        return HitGraph.of(self.hits)

    def to_mermaid(self) -> str:
        """Return the graph of the hits as a Mermaid flowchart, which GitHub and many editors draw."""
        return self.graph().to_mermaid()

    def explain(self) -> str:
        """Return a readable report: the hits, their paths, and what was left out and why."""
        lines = [self.strategy] if self.strategy else []
        if self.reason:
            lines.append(f"no hit: {self.reason}")
        if self.hits:
            lines.append(self.match)
        for rank, hit in enumerate(self.hits, 1):
            lines.append(
                f"{rank:>3}. {escape_unprintable(str(hit.document.id))}  score {hit.score:.4f}  "
                f"similarity {hit.similarity:.4f}  depth {hit.depth}"
            )
            if len(hit.contributions) > 1:
                parts = (f"{name} {part:.4f}" for name, part in hit.contributions.items())
                lines.append(f"     = {' + '.join(parts)}")
            ways = [str(chain) for chain in hit.chains] or [str(hit.path)]
            lines.extend(f"     {escape_unprintable(way)}" for way in ways)
        if self.cuts:
            lines.append("left out:")
            lines.extend(f"  {escape_unprintable(str(cut))}" for cut in self.cuts)
        return "\n".join(lines)


def _format_label(label: str | None, data: Mapping[str, Any] | None) -> str:
    return (f' "{label}"' if label else "") + (f" {format_link_data(data)}" if data else "")


def _copy_data(data: Mapping[str, Any] | None) -> dict[str, Any]:
    return {} if data is None else {"data": deepcopy(data)}


def _format_row(rank: int, hit: Hit) -> str:
    """Format a hit as a row of an HTML table."""
    text = " ".join(hit.document.page_content.split())
    excerpt = text if len(text) <= EXCERPT_LENGTH else f"{text[:EXCERPT_LENGTH]}…"
    path = hit.path._repr_html_() if hit.depth else ""
    cells = (str(rank), f"{hit.score:.4f}", escape_html(str(hit.document.id)), escape_html(excerpt), path)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
