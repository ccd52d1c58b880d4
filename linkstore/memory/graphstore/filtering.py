"""Filters of LangGraph stores: which values match.

They are the filters of :mod:`linkstore.filters`, with its operators and type rules, but a dict without
operators matches a part of the value: ``{"owner": {"city": "Oslo"}}`` holds if the value has an owner whose
city is Oslo, whatever else it has. A missing key fails every operator except ``$ne``, ``$nin`` and
``{"$exists": false}``, and raises nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from linkstore.errors import FilterError
from linkstore.filters import parse_filter

Matches = Callable[[Mapping[str, Any]], bool]


def matcher(filter: Mapping[str, Any] | None) -> Matches:
    """A function that says whether a value matches a filter; None and an empty dict match every value.

    Raises:
        FilterError: If an operator is unknown or a value cannot be compared.
    """
    if filter is None:
        return lambda _: True
    if not isinstance(filter, Mapping):
        raise FilterError(f"a filter must be a dict such as {{'kind': 'note'}}, not {filter!r}")
    tests = [_entry(str(name), wanted) for name, wanted in filter.items()]
    return lambda value: all(test(value) for test in tests)


def _entry(name: str, wanted: Any) -> Matches:
    if name in ("$and", "$or"):
        return _several(name, wanted)
    if name == "$not":
        inner = matcher(wanted)
        return lambda value: not inner(value)
    if isinstance(wanted, Mapping) and not any(str(key).startswith("$") for key in wanted):
        return _within(name, wanted)
    return parse_filter({name: wanted}).matches


def _several(name: str, wanted: Any) -> Matches:
    if not isinstance(wanted, Sequence) or isinstance(wanted, str) or not wanted:
        raise FilterError(f"{name} needs a non-empty list of filters, not {wanted!r}")
    tests = [matcher(one) for one in wanted]
    combine = all if name == "$and" else any
    return lambda value: combine(test(value) for test in tests)


def _within(name: str, wanted: Mapping[str, Any]) -> Matches:
    inner = matcher(wanted)

    def test(value: Mapping[str, Any]) -> bool:
        part = value.get(name)
        return isinstance(part, Mapping) and inner(part)

    return test
