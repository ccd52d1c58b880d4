"""The answers of tools: text for a model, and the same as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from linkstore.display import printable
from linkstore.hits import Chain
from linkstore.snippet import body_of, headings_of, snippet, url_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a tool.

    Args:
        text: For a model.
        data: The same as a JSON object.
    """

    text: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A document that a tool shows.

    Args:
        document: As stored.
        query: What it was found by; the snippet shows the words of it.
        width: Maximum number of characters of the snippet.
        chains: Links that lead to it.
        similarity: To the question, in [-1, 1]; None if none was asked.
    """

    document: Document
    query: str
    width: int
    chains: tuple[Chain, ...]
    similarity: float | None = None

    @property
    def meeting(self) -> int:
        """How many of the chains are independent of each other."""
        return sum(chain.independent for chain in self.chains)

    @property
    def snippet(self) -> str:
        """The part of the text that fits the query best."""
        return snippet(body_of(self.document), self.query, self.width)

    def lines(self, rank: int) -> Iterable[str]:
        """Yield the lines of the document as text."""
        yield f"{rank}. {cited(self.document)}"
        yield f"   {printable(self.snippet)}"
        if self.meeting > 1:
            yield f"   {self.meeting} independent chains of links meet here:"
        yield from (f"   {printable(str(chain))}" for chain in self.chains)

    def to_dict(self) -> dict[str, Any]:
        """Return the document as a JSON object."""
        return {
            **identified(self.document),
            "snippet": self.snippet,
            "similarity": self.similarity,
            "chains": [
                {
                    "text": str(chain),
                    "independent": chain.independent,
                    "triples": [triple.to_dict() for triple in chain],
                }
                for chain in self.chains
            ],
        }


def cited(document: Document) -> str:
    """Format a document by its id, headings and URL, on one line."""
    parts = [f"[{printable(document.id or '')}]"]
    if headings := headings_of(document):
        parts.append(printable(headings))
    if url := url_of(document):
        parts.append(f"<{printable(url)}>")
    return " ".join(parts)


def identified(document: Document) -> dict[str, Any]:
    """Return a document by its id, headings and URL, as JSON."""
    return {"id": document.id, "title": headings_of(document), "url": url_of(document)}


def nothing(reason: str, remedies: Sequence[str]) -> Answer:
    """Make an empty answer: why, and what could find more."""
    lines = [f"No results: {printable(reason)}."]
    if remedies:
        lines += ["To find more:", *(f"- {printable(remedy)}" for remedy in remedies)]
    return Answer(
        text="\n".join(lines), data={"results": [], "reason": reason, "to_find_more": list(remedies)}
    )


def shown(heading: str, results: Sequence[Result], notes: Sequence[str] = (), **more: Any) -> Answer:
    """Make an answer of documents.

    Args:
        heading: The first line.
        results: The documents, best first.
        notes: Lines below them.
        more: Further data.
    """
    lines = [heading, *(line for rank, one in enumerate(results, 1) for line in one.lines(rank)), *notes]
    data = {"results": [one.to_dict() for one in results], "notes": list(notes), **more}
    return Answer(text="\n".join(lines), data=data)
