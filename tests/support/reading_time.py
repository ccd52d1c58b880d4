"""The time that a reader has, without waiting for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SECONDS: Final = 1000.0
"""The budget of a reading. What is not late has so much time that a slow machine is no failure."""
LEFT: Final = 0.2
"""How long a late call is waited for."""


@dataclass
class ReaderClock:
    """Stands in the place of the module ``time`` of the reader's steps; it stands still between jumps."""

    now: float = 0.0
    first: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        """What is told first, one a call, and then ``now``."""
        return self.first.pop(0) if self.first else self.now

    def jump_to_the_end(self) -> None:
        """Leave next to no time for a call."""
        self.now = SECONDS - LEFT
