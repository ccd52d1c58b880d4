"""A page that shows a store: answers and their graphs, documents, the whole corpus, and conversations."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
