"""Hits as JSON and as a person likes to read them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from linkstore.cli.output import printable, stderr, stdout
from linkstore.cli.snippet import query_spans, snippet

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from rich.text import Text

    from linkstore.hits import Hit, Hits, Path, Step


def hit_to_dict(hit: Hit, query: str) -> dict[str, Any]:
    """A hit as ``--json`` prints it."""
    return {
        "id": hit.document.id,
        "url": url_of(hit.document),
        "title": title_of(hit.document),
        "score": hit.score,
        "similarity": hit.similarity,
        "depth": hit.depth,
        "path": [step.to_dict() for step in hit.path],
        "snippet": snippet(hit.document.page_content, query),
    }


def show_hits(hits: Iterable[Hit], query: str) -> None:
    """Print hits for a person: title and score, URL, snippet, and the path where links were followed."""
    console = stdout()
    for rank, hit in enumerate(hits, 1):
        if rank > 1:
            console.print()
        for line in hit_lines(rank, hit, query):
            console.print(line)


def show_explanation(hits: Hits, *, to_stderr: bool) -> None:
    """Print how the search ran and what it left out."""
    console = stderr() if to_stderr else stdout()
    console.print(f"\n{printable(hits.strategy)}", style="dim")
    if hits.cuts:
        console.print("left out:", style="dim")
    for cut in hits.cuts:
        console.print(f"  {printable(str(cut))}", style="dim")


def hit_lines(rank: int, hit: Hit, query: str) -> list[Text]:
    """The lines that show one hit."""
    from rich.text import Text

    shown = printable(snippet(hit.document.page_content, query))
    body = Text(f"   {shown}")
    for (start, end), _ in query_spans(shown, query):
        body.stylize("bold", start + 3, end + 3)
    depth = "" if hit.depth == 0 else f"  depth {hit.depth}"
    lines = [
        Text.assemble(
            (f"{rank}. ", "dim"),
            (printable(title_of(hit.document) or hit.document.id or ""), "bold cyan"),
            (f"  score {hit.score:.3f}{depth}", "dim"),
        ),
        Text(f"   {printable(url_of(hit.document) or hit.document.id or '')}", style="green"),
        body,
    ]
    return lines if len(hit.path) < 2 else [*lines, *path_lines(hit.path)]


def path_lines(path: Path) -> list[Text]:
    """The links that were followed, one a line."""
    from rich.text import Text

    lines = []
    for before, step in pairwise(path):
        label = f" “{step.label}”" if step.label else ""
        text = f"   {place(before)} ─ {step.kind}{label} → {place(step)}"
        lines.append(Text(printable(text), style="yellow"))
    return lines


def place(step: Step) -> str:
    """Where a step of a path is: its URL, else its id."""
    return step.url or step.id


def title_of(document: Document) -> str | None:
    """The document's title with the headings below it, where it has them."""
    title = document.metadata.get("title")
    return title if isinstance(title, str) else None


def url_of(document: Document) -> str | None:
    """The document's URL, where it has one."""
    url = document.metadata.get("url")
    return url if isinstance(url, str) else None
