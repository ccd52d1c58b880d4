"""Indexes sources of pages, such as a folder of built HTML, as documents with links."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
