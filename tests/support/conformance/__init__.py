"""The conformance suite: every case of ``docs/contract.md`` as a test of your backend.

Subclass :class:`BackendConformance` and give it a fixture named ``backend`` that returns an empty
backend; a durable one also gives ``reopen``, which opens the same store again::

    class TestMyBackend(BackendConformance):
        @pytest.fixture
        def backend(self):
            backend = MyBackend()
            yield backend
            backend.close()

Each case names in its docstring the numbers of the contract that it holds, and is run twice: by
``run`` and by ``arun``.
"""

import pytest

_PARTS = (
    "contents",
    "documents",
    "driving",
    "groups",
    "lexical",
    "limits",
    "linkdata",
    "members",
    "nearest",
    "probe",
    "reading",
    "relinking",
    "scope",
    "traversal",
    "writing",
)
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in _PARTS))

from conformance.contents import ContentsCases, UpkeepCases  # noqa: E402
from conformance.documents import ConditionCases, DocumentsCases  # noqa: E402
from conformance.driving import DrivingCases, LifecycleCases  # noqa: E402
from conformance.groups import GroupsCases  # noqa: E402
from conformance.lexical import LexicalCases, LexicalOrNotCases  # noqa: E402
from conformance.limits import LimitsCases  # noqa: E402
from conformance.linkdata import LinkDataCases  # noqa: E402
from conformance.members import MembersCases  # noqa: E402
from conformance.nearest import FindCases, NearestCases, SmallStoreCases  # noqa: E402
from conformance.reading import OrderCases, ReadingCases  # noqa: E402
from conformance.relinking import RelinkCases  # noqa: E402
from conformance.scope import LexicalScopeCases, ScopeCases  # noqa: E402
from conformance.traversal import TraversalCases  # noqa: E402
from conformance.writing import AccessCases, PageCases, WriteCases  # noqa: E402

__all__ = [
    "AccessCases",
    "BackendConformance",
    "ConditionCases",
    "ContentsCases",
    "DocumentsCases",
    "DrivingCases",
    "FindCases",
    "GroupsCases",
    "LexicalCases",
    "LexicalOrNotCases",
    "LexicalScopeCases",
    "LifecycleCases",
    "LimitsCases",
    "LinkDataCases",
    "MembersCases",
    "NearestCases",
    "OrderCases",
    "PageCases",
    "ReadingCases",
    "RelinkCases",
    "ScopeCases",
    "SmallStoreCases",
    "TraversalCases",
    "UpkeepCases",
    "WriteCases",
]


class BackendConformance(
    ReadingCases,
    OrderCases,
    NearestCases,
    FindCases,
    GroupsCases,
    MembersCases,
    DocumentsCases,
    ConditionCases,
    WriteCases,
    RelinkCases,
    AccessCases,
    PageCases,
    ContentsCases,
    UpkeepCases,
    TraversalCases,
    LinkDataCases,
    ScopeCases,
    LexicalOrNotCases,
    DrivingCases,
    LimitsCases,
    LifecycleCases,
):
    """The whole suite; a backend that can search by words passes :class:`LexicalCases` too."""
