"""The best context for a question that fits a budget of tokens, in the order it must be read.

:class:`ContextCompiler` searches a store and returns a :class:`Compiled`: the text, its documents, and the
bill of what was taken, left out, and why.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
