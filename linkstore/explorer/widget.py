"""The page as a widget of a notebook, and a table where no script runs. Needs the extra ``plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from linkstore.core.calls import run
from linkstore.core.display import escape_html, format_count
from linkstore.core.hits import Hits
from linkstore.errors import MissingExtraError
from linkstore.explorer.answers import describe_hits
from linkstore.explorer.corpus import read_corpus
from linkstore.explorer.page import read_bundle

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingExtraError("the explorer in a notebook", "plot") from error

if TYPE_CHECKING:
    from linkstore.store.core import CoreStore

WIDGET_PAGES: Final = 500
"""How many pages of a store a notebook draws at most: it saves what it shows."""
_LISTED: Final = 10
"""How many pages of a store are listed where no script runs."""


class ExplorerWidget(anywidget.AnyWidget):
    """The page in a notebook.

    Args:
        data: What it shows.
        table: The same as plain HTML.
    """

    data = traitlets.Dict().tag(sync=True)
    _esm, _css = read_bundle()

    def __init__(self, data: dict[str, Any], table: str) -> None:
        super().__init__(data=data)
        self._table = table

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget, and the table for where no script runs."""
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "text/html": self._table}, metadata


def show(shown: Hits | CoreStore, title: str = "", *, pages: int = WIDGET_PAGES) -> ExplorerWidget:
    """Show hits with their graph and what was left out, or the graph of a store, in a notebook.

    Args:
        shown: The hits of a search, or a store.
        title: Title of hits, such as the question.
        pages: How many pages of a store are drawn at most.

    Raises:
        MissingExtraError: If the extra ``plot`` is not installed.
    """
    if isinstance(shown, Hits):
        return ExplorerWidget({"mode": "answer", "answer": describe_hits(shown, title)}, shown._repr_html_())
    corpus = run(read_corpus(shown.backend, pages))
    best = sorted(corpus["nodes"], key=lambda node: -node["rank"])[:_LISTED]
    items = "".join(f"<li>{escape_html(node['title'])}</li>" for node in best)
    counts = f"{format_count(corpus['pages'], corpus['noun'])}, {format_count(corpus['links'], 'link')}"
    table = f"<p>{counts}; first by PageRank:</p><ol>{items}</ol>"
    return ExplorerWidget({"mode": "corpus", "corpus": corpus}, table)
