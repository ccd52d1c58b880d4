"""Strategies: how a search starts, follows links, and ranks what it reached."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
