"""The page as a widget of a notebook, and a static picture where no script runs. Needs ``plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from linkstore.core.calls import run
from linkstore.errors import MissingExtraError
from linkstore.explorer.answers import describe_hits
from linkstore.explorer.corpus import read_corpus
from linkstore.explorer.page import read_bundle
from linkstore.explorer.picture import draw_corpus

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingExtraError("the explorer in a notebook", "plot") from error

if TYPE_CHECKING:
    from linkstore.core.hits import Hits
    from linkstore.store import LinkStore

WIDGET_PAGES: Final = 500
"""How many pages of a store a notebook draws at most: it saves what it shows."""


class ExplorerWidget(anywidget.AnyWidget):
    """The page in a notebook.

    Args:
        data: What it shows.
        picture: The same as an SVG.
    """

    data = traitlets.Dict().tag(sync=True)
    _esm, _css = read_bundle()

    def __init__(self, data: dict[str, Any], picture: str) -> None:
        super().__init__(data=data)
        self._picture = picture

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget, and the picture for where no script runs."""
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "image/svg+xml": self._picture}, metadata


def explore_store(store: LinkStore, pages: int = WIDGET_PAGES) -> ExplorerWidget:
    """Return the graph of a store as a widget: see :meth:`linkstore.LinkStore.explore`."""
    corpus = run(read_corpus(store.backend, pages))
    return ExplorerWidget({"mode": "corpus", "corpus": corpus}, draw_corpus(corpus))


def explore_hits(hits: Hits, question: str = "") -> ExplorerWidget:
    """Return hits as a widget: see :meth:`linkstore.Hits.explore`."""
    return ExplorerWidget({"mode": "answer", "answer": describe_hits(hits, question)}, hits.graph().to_svg())
