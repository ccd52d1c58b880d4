"""A page that shows a store: answers and their graphs, documents, the whole corpus, and conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.explorer.page import render_hits, render_store
    from linkstore.explorer.server import make_app
    from linkstore.explorer.views import Views
    from linkstore.explorer.widget import explore_hits, explore_store

__all__ = ["Views", "explore_hits", "explore_store", "make_app", "render_hits", "render_store"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.explorer.page": "render_hits render_store",
        "linkstore.explorer.server": "make_app",
        "linkstore.explorer.views": "Views",
        "linkstore.explorer.widget": "explore_hits explore_store",
    },
)
