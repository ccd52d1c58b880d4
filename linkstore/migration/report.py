"""The report of a migration: for each batch, and as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from linkstore.backends.base import Written


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The outcome of one batch.

    Args:
        cursor: Where to go on after it.
        last: Id of the last document written; None if all were refused.
        written: What the target did with the documents.
        links: Their links, by kind.
        refused: Documents that could not be taken, by id, with the reason.
    """

    cursor: str
    last: str | None
    written: Written
    links: Mapping[str, int]
    refused: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """The result of a migration, including earlier interrupted runs.

    Args:
        written: Documents by what the target did with them.
        links: Links of these documents, by kind.
        pages: Entries of indexed pages.
        refused: Documents that could not be taken, by id, with the reason.
        resumed: Whether an earlier run was gone on with.
    """

    written: Written
    links: Mapping[str, int]
    pages: int
    refused: Mapping[str, str]
    resumed: bool = False

    @property
    def documents(self) -> int:
        """How many documents were taken over, whether the target had them already or not."""
        return self.written.added + self.written.updated + self.written.unchanged


@dataclass(slots=True)
class Tally:
    """Sums of the steps so far."""

    steps: int = 0
    cursor: str | None = None
    written: Counter[str] = field(default_factory=Counter)
    links: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)

    def take(self, step: Step) -> None:
        """Count a step."""
        self.steps += 1
        self.cursor = step.cursor
        self.written.update(asdict(step.written))
        self.links.update(step.links)
        self.refused.update(step.refused)

    def report(self, *, pages: int, resumed: bool) -> MigrationReport:
        """The report of all steps."""
        return MigrationReport(
            written=Written(**self.written),
            links=dict(sorted(self.links.items())),
            pages=pages,
            refused=dict(self.refused),
            resumed=resumed,
        )
