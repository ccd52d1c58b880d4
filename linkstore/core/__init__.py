"""Values that everything shares: documents, links, filters, hits, texts, URLs, arrays; and calls."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
