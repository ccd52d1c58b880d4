"""Websites as sources of pages, fetched politely, and only from safe addresses.

Needs the extra ``web``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
