"""Converts values of any kind to plain JSON, the only form that metadata can have."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from linkstore.errors import LinkStoreError
from linkstore.text import without_surrogates

_MOST_VALUES: Final = 10_000
DEEPEST: Final = 20
"""Lists in lists, or objects in objects, of metadata."""


class NotPlainError(LinkStoreError, ValueError):
    """A value is too large to be metadata, or holds itself."""


def plain(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert a mapping to plain JSON.

    Keys become strings, tuples and sets lists, dates ISO 8601. Numbers that JSON cannot hold and all else
    become what ``str`` says. The result shares nothing with the values.

    Raises:
        NotPlainError: If it holds more than 10,000 values, or is nested more than 20 deep. References can
            make a few lines of YAML stand for billions of values.
    """
    budget = _Budget()
    try:
        return {str(key): _plain(value, budget, 1) for key, value in values.items()}
    except NotPlainError:
        raise
    except ValueError as error:
        raise NotPlainError(f"a number with too many digits: {error}") from error


@dataclass(slots=True)
class _Budget:
    left: int = _MOST_VALUES


def _plain(value: Any, budget: _Budget, depth: int) -> Any:
    budget.left -= 1
    if budget.left < 0 or depth > DEEPEST:
        raise NotPlainError(f"over {_MOST_VALUES:,} values, or lists in lists without end")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one, budget, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, budget, depth + 1) for one in value]
    if isinstance(value, AbstractSet):
        return [_plain(one, budget, depth + 1) for one in sorted(value, key=str)]
    text = value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)
    return without_surrogates(text)
