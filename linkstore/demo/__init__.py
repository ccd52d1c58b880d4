"""A small hyperlinked site that ships with linkstore, and a question that only its links answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from linkstore.hits import Hit, Hits
    from linkstore.store import LinkStore

QUESTION: Final = "What is the neighbourhood around the landmark of the 1962 fair called?"
"""The page that answers names neither the landmark nor the fair; the landmark's page links to it."""
ANSWER: Final = "uptown.html"
"""URL of the page that answers."""
LINKS: Final = ("hyperlink", "section")
"""The kinds of link in the site."""
K: Final = 3
"""How many documents both searches start from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One question, asked twice with the same ``k``.

    Args:
        similar: Hits by similarity alone, at depth 0.
        linked: Hits with links followed once, at depth 1.
    """

    similar: Hits
    linked: Hits

    @property
    def only_by_links(self) -> tuple[Hit, ...]:
        """The hits that similarity alone did not give, best first."""
        known = {hit.document.id for hit in self.similar}
        return tuple(hit for hit in self.linked if hit.document.id not in known)


@contextmanager
def site() -> Iterator[Path]:
    """Open the folder of the site's pages, as long as the context lasts."""
    with as_file(files(__name__) / "site") as folder:
        yield folder


def compare(store: LinkStore, question: str = QUESTION, k: int = K) -> Comparison:
    """Ask a store one question at depth 0 and at depth 1.

    Args:
        store: A store that holds the site, or any other.
        question: The question.
        k: How many documents both searches start from.
    """
    from linkstore.strategies import Eager

    return Comparison(
        similar=store.search(question, strategy=Eager(start_k=k, depth=0)),
        linked=store.search(question, strategy=Eager(start_k=k, depth=1)),
    )
