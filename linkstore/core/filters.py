"""Metadata filters: parsed once, evaluated the same way everywhere.

A filter is a dict: ``{"lang": "en", "year": {"$gte": 2020}}``. Fields are literal top-level
metadata keys; several fields, and several operators of one field, must all hold.

Operators: ``$eq $ne $gt $gte $lt $lte $in $nin $contains $all $size $exists $and $or $not``.

Values may be what metadata may be: dates, NumPy scalars and the like are converted in the same way.

Type rules: numbers compare by value (``1`` equals ``1.0``); a boolean equals only a boolean
(``1`` is not ``true``), a string only a string (``1`` is not ``"1"``), null only null. Lists and
dicts are equal as wholes, by the same rules; a list also equals each of its members, so ``{"tags": "home"}``
and ``{"tags": {"$in": ["home"]}}`` hold for a list that has it, as in MongoDB. ``$contains`` holds only for a
list with this member, ``$all`` for one with all of these, ``$size`` for one of this length. ``$gt $gte $lt
$lte`` hold between two numbers or between two strings (by code point) and are false otherwise. A missing
field fails every operator except ``$ne``, ``$nin`` and ``{"$exists": false}``. ``$not`` negates the filter
that it encloses.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from linkstore.core.arguments import MAX_NESTING, convert_value, is_too_deep, quote_value
from linkstore.errors import FilterError

Test = Callable[[Mapping[str, Any]], bool]
Filter = Mapping[str, Any]
"""A filter as users write it."""
_JSON = (str, int, float, bool, type(None), list, tuple, Mapping)
_ORDERED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_BARE: Final = frozenset({"eq", "ne", "gt", "gte", "lt", "lte", "nin"})
"""Operators without their sign, which are hardly the keys of a value."""
_OF_LISTS: Final = ("$contains", "$all", "$size")
OPERATORS: Final = ("$eq", "$ne", *_ORDERED, "$in", "$nin", *_OF_LISTS, "$exists", "$and", "$or", "$not")
"""Every operator of the language."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed filter.

    Args:
        key: Canonical JSON of the filter; two conditions with the same key are equal.
        equalities: Fields that must equal a scalar, or be a list with it, for engines that can look them up.
        test: Returns whether a document's metadata satisfies the filter.
        needed: Fields that some part of the filter needs: it holds for no document without the field.

    Attributes:
        always: Whether every document passes.
    """

    key: str
    equalities: tuple[tuple[str, str | int | float | bool], ...] = field(compare=False)
    test: Test = field(compare=False, repr=False)
    needed: frozenset[str] = field(default=frozenset(), compare=False)
    always: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "always", not self.key)

    def matches(self, metadata: Mapping[str, Any]) -> bool:
        """Say whether a document with this metadata passes."""
        return self.test(metadata)

    def __and__(self, other: Condition) -> Condition:
        """Return the conjunction of both conditions."""
        if other.always or other == self:
            return self
        if self.always:
            return other
        mine, theirs = self.test, other.test
        return Condition(
            f'{{"$and":[{self.key},{other.key}]}}',
            self.equalities + other.equalities,
            lambda metadata: mine(metadata) and theirs(metadata),
            self.needed | other.needed,
        )


EVERYTHING: Final = Condition("", (), lambda _: True)
"""The condition that every document satisfies."""


def parse_filter(filter: Filter | Condition | None) -> Condition:
    """Parse a filter.

    Args:
        filter: A dict in the language of this module. None or an empty dict matches every document.

    Raises:
        FilterError: If an operator is unknown, a value cannot be compared, or it is nested too deeply.
    """
    if filter is None:
        return EVERYTHING
    if isinstance(filter, Condition):
        return filter
    if not isinstance(filter, Mapping):
        raise FilterError(f"a filter must be a dict such as {{'lang': 'en'}}, not {quote_value(filter)}")
    if is_too_deep(filter):
        raise FilterError(f"a filter may have {MAX_NESTING} levels of lists and dicts; this one has more")
    if not filter:
        return EVERYTHING
    own = convert_value(filter)  # a copy, so that the tests share nothing with the caller
    key = _serialize_filter(own)
    return Condition(
        key, tuple(_find_equalities(own)), _parse_conjunction(own), frozenset(_find_needed_fields(own))
    )


def _serialize_filter(filter: Filter) -> str:
    try:
        return orjson.dumps(filter, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, ValueError) as error:
        raise FilterError(f"a filter must contain only JSON values: {error}; got {filter!r}") from error


def _find_equalities(filter: Filter) -> list[tuple[str, str | int | float | bool]]:
    equalities = []
    for name, value in filter.items():
        wanted = value.get("$eq") if isinstance(value, Mapping) else value
        if not name.startswith("$") and isinstance(wanted, str | int | float):
            equalities.append((name, wanted))
    return equalities


def _find_needed_fields(filter: Filter, holds: bool = True) -> Iterator[str]:
    """Yield the fields without which a part of a valid filter cannot have the truth value ``holds``."""
    for name, value in filter.items():
        if name in ("$and", "$or"):
            for item in value:
                yield from _find_needed_fields(item, holds)
        elif name == "$not":
            yield from _find_needed_fields(value, not holds)
        elif _is_field_needed(value) is holds:
            yield name


def _is_field_needed(value: Any) -> bool:
    """Say whether a missing field fails the operators, or the value, that a filter gives for it."""
    if not (isinstance(value, Mapping) and any(str(key).startswith("$") for key in value)):
        return True
    return any(
        not _is_field_needed(operand)
        if op == "$not"
        else (operand if op == "$exists" else op not in ("$ne", "$nin"))
        for op, operand in value.items()
    )


def _parse_conjunction(filter: Filter) -> Test:
    tests = [_parse_entry(name, value) for name, value in filter.items()]
    return tests[0] if len(tests) == 1 else lambda metadata: all(test(metadata) for test in tests)


def _parse_entry(name: str, value: Any) -> Test:
    if name in ("$and", "$or"):
        return _parse_logical(name, value)
    if name == "$not":
        inner = _parse_nested(name, value)
        return lambda metadata: not inner(metadata)
    if name.startswith("$"):
        raise FilterError(f"unknown operator {name!r}; the operators allowed here are $and, $or and $not")
    if isinstance(value, Mapping) and any(str(key).startswith("$") for key in value):
        return _parse_operators(name, value)
    if isinstance(value, Mapping) and value and _BARE.issuperset(value):
        key = next(iter(value))
        raise FilterError(f"{name}: {key!r} is no operator; write {{{name!r}: {{'${key}': …}}}}")
    return _parse_comparison(name, "$eq", value)


def _parse_logical(name: str, value: Any) -> Test:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise FilterError(f"{name} needs a non-empty list of filters, not {value!r}")
    tests = [_parse_nested(name, item) for item in value]
    combine = all if name == "$and" else any
    return lambda metadata: combine(test(metadata) for test in tests)


def _parse_nested(name: str, value: Any) -> Test:
    if not isinstance(value, Mapping) or not value:
        raise FilterError(f"{name} needs a non-empty filter, not {value!r}")
    return _parse_conjunction(value)


def _parse_operators(name: str, operators: Mapping[str, Any]) -> Test:
    tests = [_parse_operator(name, op, value) for op, value in operators.items()]
    return lambda metadata: all(test(metadata) for test in tests)


def _parse_operator(name: str, op: str, value: Any) -> Test:
    if op == "$not":
        if not isinstance(value, Mapping) or not value:
            raise FilterError(f"{name}: $not needs operators such as {{'$gt': 1}}, not {value!r}")
        inner = _parse_operators(name, value)
        return lambda metadata: not inner(metadata)
    if op == "$exists":
        if not isinstance(value, bool):
            raise FilterError(f"{name}: $exists needs true or false, not {value!r}")
        return lambda metadata: (name in metadata) is value
    return _parse_comparison(name, op, value)


def _parse_comparison(name: str, op: str, value: Any) -> Test:
    if op in ("$in", "$nin"):
        return _parse_membership(name, op, value)
    if op in ("$eq", "$ne"):
        _check_operand(name, value)
        wanted = op == "$eq"
        return lambda metadata: (name in metadata and _has_value(metadata[name], value)) is wanted
    if op in _ORDERED:
        return _parse_ordering(name, op, value)
    if op in _OF_LISTS:
        return _parse_list_test(name, op, value)
    raise FilterError(f"{name}: unknown operator {op!r}; known: {', '.join(OPERATORS)}")


def _parse_membership(name: str, op: str, value: Any) -> Test:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise FilterError(f"{name}: {op} needs a list, not {value!r}")
    for item in value:
        _check_operand(name, item)
    wanted = op == "$in"
    return lambda metadata: (
        (name in metadata and any(_has_value(metadata[name], item) for item in value)) is wanted
    )


def _parse_list_test(name: str, op: str, value: Any) -> Test:
    """Parse an operator that holds only for lists."""
    wanted: list[Any] = [value]
    if op == "$size":
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise FilterError(f"{name}: $size needs a number of members, not {value!r}")
    elif op == "$all":
        if not isinstance(value, list | tuple) or not value:
            raise FilterError(f"{name}: $all needs a non-empty list, not {value!r}")
        wanted = list(value)
    _check_operand(name, value)

    def test(metadata: Mapping[str, Any]) -> bool:
        stored = metadata.get(name)
        if not isinstance(stored, list | tuple):
            return False
        if op == "$size":
            return bool(len(stored) == value)
        return all(any(_is_equal(member, item) for member in stored) for item in wanted)

    return test


def _parse_ordering(name: str, op: str, value: Any) -> Test:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FilterError(f"{name}: {op} needs a number or a string, not {value!r}")
    _check_operand(name, value)
    compare = _ORDERED[op]
    alike = str if isinstance(value, str) else (int, float)

    def test(metadata: Mapping[str, Any]) -> bool:
        stored = metadata.get(name)
        return isinstance(stored, alike) and not isinstance(stored, bool) and bool(compare(stored, value))

    return test


def _check_operand(name: str, value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise FilterError(f"{name}: {value!r} cannot be compared; use a finite number")
    if not isinstance(value, _JSON):
        raise FilterError(f"{name}: a {type(value).__name__} cannot be compared; use plain JSON")
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            _check_operand(name, item)


def _has_value(stored: Any, wanted: Any) -> bool:
    """Say whether a stored value is the wanted one, or a list with it."""
    if _is_equal(stored, wanted):
        return True
    return isinstance(stored, list | tuple) and any(_is_equal(member, wanted) for member in stored)


def _is_equal(stored: Any, wanted: Any) -> bool:
    """Compare two values by the type rules of this module."""
    if isinstance(stored, bool) or isinstance(wanted, bool):
        return stored is wanted
    if isinstance(wanted, list | tuple):
        return (
            isinstance(stored, list | tuple)
            and len(stored) == len(wanted)
            and all(map(_is_equal, stored, wanted))
        )
    if isinstance(wanted, Mapping):
        return (
            isinstance(stored, Mapping)
            and stored.keys() == wanted.keys()
            and all(_is_equal(stored[key], value) for key, value in wanted.items())
        )
    return bool(stored == wanted)
