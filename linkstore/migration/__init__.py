"""Copies one store to another, without embedding anything again.

:func:`migrate` copies between backends in any direction; its source may also be a table that
langchain-community made: see :class:`linkstore.migration.community.CommunityTable`.
"""

from __future__ import annotations

from linkstore.migration.checkpoint import CheckpointError
from linkstore.migration.report import MigrationReport
from linkstore.migration.run import Progress, migrate
from linkstore.migration.source import Batch, Source

__all__ = ["Batch", "CheckpointError", "MigrationReport", "Progress", "Source", "migrate"]
