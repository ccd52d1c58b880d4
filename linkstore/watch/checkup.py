"""The result of a checkup of a store: figures, and findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final, Literal

from linkstore.schema import Standing

Severity = Literal["alarm", "note"]
EXAMPLES: Final = 5
"""How many examples a finding has at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something in a store that needs attention.

    Args:
        check: What was checked: ``schema``, ``drift``, ``coverage``, ``stale``, ``dangling``, ``names``,
            ``confidence``, ``sound`` or ``searches``.
        severity: ``"alarm"``: searches miss something, or may. ``"note"``: it may be as it should be.
        text: What it is, in words.
        count: How many documents, links, pages or searches it concerns.
        examples: The first of these.
    """

    check: str
    severity: Severity
    text: str
    count: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.examples) else ""
        return f"{self.check}: {self.text}" + (
            f" ({', '.join(self.examples)}{more})" if self.examples else ""
        )


def finding(check: str, severity: Severity, text: str, count: int, examples: Iterable[str] = ()) -> Finding:
    """Return a finding with the first of the examples."""
    shown = tuple(islice(examples, EXAMPLES))
    return Finding(check=check, severity=severity, text=text, count=count, examples=shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """The content of a store, and what needs attention.

    Args:
        documents: How many documents there are.
        pages: How many indexed pages.
        types: How the documents of each type are joined to others; None stands for those without a type.
        links: How many links there are of each kind.
        dangling: Of each kind, how many links lead to no document; links to other sites are not counted.
        findings: What needs attention, alarms first.
        skipped: Checks that were not made, each with the reason.
    """

    documents: int
    pages: int
    types: Mapping[str | None, Standing]
    links: Mapping[str, int]
    dangling: Mapping[str, int]
    findings: tuple[Finding, ...]
    skipped: Mapping[str, str]

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """The findings that are alarms."""
        return tuple(one for one in self.findings if one.severity == "alarm")

    @property
    def healthy(self) -> bool:
        """Whether there is no alarm."""
        return not self.alarms

    def to_dict(self) -> dict[str, Any]:
        """Return the checkup as a plain JSON dict, with documents without a type under ``""``."""
        return {
            "healthy": self.healthy,
            "documents": self.documents,
            "pages": self.pages,
            "types": {name or "": asdict(standing) for name, standing in self.types.items()},
            "links": dict(self.links),
            "dangling": dict(self.dangling),
            "findings": [asdict(finding) for finding in self.findings],
            "skipped": dict(self.skipped),
        }
