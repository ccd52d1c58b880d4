"""Hits as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from linkstore.cli.output import printable, stderr, stdout
from linkstore.display import data_text
from linkstore.snippet import body_of, headings_of, query_spans, snippet, title_of, url_of

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from rich.console import Console
    from rich.text import Text

    from linkstore.hits import Hit, Hits, Path, Step

_INDENT: Final = 3


def hit_to_dict(hit: Hit, query: str) -> dict[str, Any]:
    """Return a hit as ``--json`` prints it."""
    return {
        "id": hit.document.id,
        "url": url_of(hit.document),
        "title": title_of(hit.document),
        "score": hit.score,
        "similarity": hit.similarity,
        "depth": hit.depth,
        "path": [step.to_dict() for step in hit.path],
        **(
            {"chains": [[triple.to_dict() for triple in chain] for chain in hit.chains]} if hit.chains else {}
        ),
        "contributions": dict(hit.contributions),
        "snippet": snippet(body_of(hit.document), query),
    }


def show_hits(hits: Iterable[Hit], query: str) -> None:
    """Print hits for a person: headings and score, URL, snippet, and the path where links were followed."""
    console = stdout()
    for rank, hit in enumerate(hits, 1):
        if rank > 1:
            console.print()
        _show_hit(console, rank, hit, query)


def show_explanation(hits: Hits, *, to_stderr: bool) -> None:
    """Print what :meth:`~linkstore.hits.Hits.explain` says of how the search ran and what it left out."""
    console = stderr() if to_stderr else stdout()
    console.print()
    for line in hits.explain().split("\n"):
        console.print(printable(line), style="dim")


def _show_hit(console: Console, rank: int, hit: Hit, query: str) -> None:
    from rich.text import Text

    document = hit.document
    depth = f"  depth {hit.depth}" if hit.depth else ""
    console.print(
        Text.assemble(
            (f"{rank}. ", "dim"),
            (printable(headings_of(document) or document.id or ""), "bold cyan"),
            (f"  score {hit.score:.3f}{depth}", "dim"),
        )
    )
    indented(console, Text(printable(url_of(document) or document.id or ""), style="green"))
    indented(console, worded(body_of(document), query))
    for line in path_lines(hit.path):
        indented(console, Text(printable(line), style="yellow"))


def indented(console: Console, line: Text, width: int = _INDENT) -> None:
    """Print a line indented, and in a terminal also the lines that it is wrapped to."""
    from rich.padding import Padding

    if console.is_terminal:
        console.print(Padding(line, (0, 0, 0, width), expand=False), soft_wrap=False)
    else:
        line.pad_left(width)
        console.print(line)


def worded(body: str, query: str) -> Text:
    """Return the snippet of a text with the words of the query in bold."""
    from rich.text import Text

    shown = Text(printable(snippet(body, query)))
    for (start, end), _ in query_spans(shown.plain, query):
        shown.stylize("bold", start, end)
    return shown


def path_lines(path: Path) -> list[str]:
    """Return the links that were followed, one a line."""
    lines = []
    for before, step in pairwise(path):
        label = f" “{step.label}”" if step.label else ""
        data = f" {data_text(step.data)}" if step.data else ""
        lines.append(f"{place(before)} ─ {step.kind}{label}{data} → {place(step)}")
    return lines


def place(step: Step) -> str:
    """Return the URL of a step of a path, else its id."""
    return step.url or step.id


def indexed_page(document: Document) -> str:
    """Return the name under which a store lists the document's page, or without a page the document's id."""
    page = document.metadata.get("page")
    return page if isinstance(page, str) else document.id or ""
