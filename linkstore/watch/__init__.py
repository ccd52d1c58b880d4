"""Is a store well? Its searches as they happen, and its content when asked.

:class:`Watch` counts the searches of a store that find nothing, fail, take long or fan out, and keeps their
questions. :class:`Telemetry` reports searches to OpenTelemetry. :func:`examine` checks the content: types
that no traversal reaches, pages that are stale, links that lead nowhere, names that do not meet.
"""

from __future__ import annotations

from linkstore.watch.checkup import Checkup, Finding
from linkstore.watch.examining import aexamine, examine
from linkstore.watch.telemetry import Telemetry
from linkstore.watch.vitals import Alarm, Limits, Search, Vitals
from linkstore.watch.watch import Watch

__all__ = [
    "Alarm",
    "Checkup",
    "Finding",
    "Limits",
    "Search",
    "Telemetry",
    "Vitals",
    "Watch",
    "aexamine",
    "examine",
]
