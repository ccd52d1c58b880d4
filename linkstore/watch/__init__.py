"""Watches a store: counts its searches, and checks its content on request.

:class:`Watch` counts the searches of a store that find nothing, fail, take long or reach many documents, and
keeps the questions of those that found nothing or failed. :class:`Telemetry` reports searches to
OpenTelemetry. :func:`examine` checks the content for types that no traversal reaches, stale pages, broken
links, and different spellings of a name.
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
