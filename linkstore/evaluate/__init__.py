"""Measures on questions with known answers what searches find, and whether links help.

:func:`evaluate` compares strategies on a corpus or a store. :func:`read_corpus` and :func:`read_questions`
read their JSON Lines; :func:`~linkstore.evaluate.profiling.with_links` gives a corpus the links to compare.
:func:`profile` describes the links of a store and whether they help. :func:`calibrate_min_similarity`
proposes a minimum similarity, and :func:`estimate_lexical_weight` how much words count.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
