"""For tests: a scripted chat model; for backends the oracle, the congruence check and the conformance suite.

The suite is :class:`linkstore.testing.conformance.BackendConformance`; it needs pytest, and is
imported from there. The contract it holds a backend to is ``docs/contract.md``.
"""

from linkstore.testing.chat import ScriptedChatModel
from linkstore.testing.congruence import (
    Search,
    assert_congruent,
    compare_hits,
    differences,
    scope_differences,
)
from linkstore.testing.oracle import OracleBackend
from linkstore.testing.script import ModelCall

__all__ = [
    "ModelCall",
    "OracleBackend",
    "ScriptedChatModel",
    "Search",
    "assert_congruent",
    "compare_hits",
    "differences",
    "scope_differences",
]
