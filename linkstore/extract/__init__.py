"""The protocol of link extractors, and finding the installed ones.

An extractor reads one source and returns its links. Extractors are outside the package ``linkstore``
and are found through the entry-point group ``linkstore.extractors``; strategies never load them.
Three small protocols describe what they can do:

- :class:`LinkExtractor`: ``extract(source)``, the links of one source;
- :class:`CorpusExtractor`: also ``observe(sources)``, for those that must see the corpus first;
- :class:`QueryExtractor`: also ``extract_query(text)``, the links that a question names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
