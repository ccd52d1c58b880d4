"""Agents that read a store: GraphReader, and its index of facts.

:func:`index_facts` extracts atomic facts and key elements from the chunks of a store.
:func:`graph_reader` makes the agent, which needs the extra ``agents``.
:class:`TypedGraphExtractor` makes a typed graph from texts.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
