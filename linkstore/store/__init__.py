"""Stores: documents with their links, kept by a backend, searched by strategies."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
