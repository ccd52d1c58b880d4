"""A vector store for LangChain that stores the links between documents and follows them in searches.

``LinkStore`` stores documents with their links (``Link``), and ``LinkRetriever`` retrieves them.
:mod:`linkstore.strategies` has the ways to search, and :mod:`linkstore.ingest` indexes sites, notes, wikis
and other sources.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
