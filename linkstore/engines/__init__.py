"""Where documents live: the contract of a storage engine, and the engines."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
