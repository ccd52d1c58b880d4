"""Embeddings that work offline, and embeddings by name.

:func:`get_embedding` makes an embedding from its name, :func:`name_embedding` says under which name
a store records one. Any LangChain ``Embeddings`` will do; the ones here add
``embed_array``, which spares the way through lists of Python floats.
Models are loaded on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
