"""Metadata filters against an evaluator written independently, and the rules one by one."""

from __future__ import annotations

import datetime as dt
import enum
import functools
import json
import operator
import re
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import EVERYTHING, MAX_NESTING, OPERATORS, parse_filter
from stores import times

from linkstore.errors import FilterError

MISSING = object()


class Colour(enum.Enum):
    RED = "red"


# A reference evaluator: interprets the filter as it goes, and knows types by their JSON text.


def json_type(value: Any) -> str:
    text = json.dumps(value)
    if text[0] in "-0123456789":
        return "number"
    return {'"': "string", "[": "list", "{": "dict", "t": "bool", "f": "bool", "n": "null"}[text[0]]


def same(a: Any, b: Any) -> bool:
    if json_type(a) != json_type(b):
        return False
    if json_type(a) == "list":
        return len(a) == len(b) and not [1 for x, y in zip(a, b, strict=True) if not same(x, y)]
    if json_type(a) == "dict":
        return sorted(a) == sorted(b) and not [1 for key in a if not same(a[key], b[key])]
    return a == b


def holds(value: Any, op: str, wanted: Any) -> bool:  # noqa: C901 - one case an operator
    if op == "$not":
        return not all(holds(value, inner, operand) for inner, operand in wanted.items())
    if op == "$exists":
        return (value is not MISSING) == wanted
    if op in ("$ne", "$nin"):
        return not holds(value, {"$ne": "$eq", "$nin": "$in"}[op], wanted)
    if value is MISSING:
        return False
    members = value if json_type(value) == "list" else []
    if op == "$eq":
        return True in [same(part, wanted) for part in (value, *members)]
    if op == "$in":
        return True in [same(part, item) for item in wanted for part in (value, *members)]
    if op == "$contains":
        return True in [same(part, wanted) for part in members]
    if op == "$all":
        return False not in [holds(value, "$contains", item) for item in wanted]
    if op == "$size":
        return json_type(value) == "list" and len(value) == wanted
    if json_type(value) != json_type(wanted):
        return False
    return {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}[op](
        value, wanted
    )


def passes(filter: dict[str, Any], metadata: dict[str, Any]) -> bool:
    for name, wanted in filter.items():
        if name == "$and":
            outcome = False not in [passes(part, metadata) for part in wanted]
        elif name == "$or":
            outcome = True in [passes(part, metadata) for part in wanted]
        elif name == "$not":
            outcome = not passes(wanted, metadata)
        elif isinstance(wanted, dict) and any(key.startswith("$") for key in wanted):
            value = metadata.get(name, MISSING)
            outcome = False not in [holds(value, op, operand) for op, operand in wanted.items()]
        else:
            outcome = holds(metadata.get(name, MISSING), "$eq", wanted)
        if not outcome:
            return False
    return True


FIELDS = st.sampled_from(["a", "b", "c.d", "é"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2**53, 2**53 + 1, 0.0, -0.0, 1.0, 1.5, float(2**53)]),
    st.sampled_from(["", "0", "1", "a", "A", "é", "\U0001f600", "\uffee", "true"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=4,
)
ORDERABLE = SCALARS.filter(lambda value: json_type(value) in ("number", "string"))
OPERATIONS = st.recursive(
    st.one_of(
        st.tuples(st.sampled_from(["$eq", "$ne"]), VALUES),
        st.tuples(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), ORDERABLE),
        st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(VALUES, max_size=3)),
        st.tuples(st.just("$contains"), VALUES),
        st.tuples(st.just("$all"), st.lists(VALUES, min_size=1, max_size=2)),
        st.tuples(st.just("$size"), st.integers(0, 3)),
        st.tuples(st.just("$exists"), st.booleans()),
    ).map(lambda pair: dict([pair])),
    lambda inner: st.one_of(
        inner.map(lambda operations: {"$not": operations}),
        st.tuples(inner, inner).map(lambda pair: {**pair[0], **pair[1]}),
    ),
    max_leaves=3,
)
FILTERS = st.recursive(
    st.dictionaries(FIELDS, VALUES | OPERATIONS, min_size=1, max_size=2),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=3)).map(
            lambda pair: dict([pair])
        ),
        inner.map(lambda condition: {"$not": condition}),
        st.tuples(inner, inner).map(lambda pair: {**pair[0], **pair[1]}),
    ),
    max_leaves=5,
)
METADATA = st.dictionaries(FIELDS, VALUES, max_size=4)


@settings(max_examples=times(100, 300))
@given(FILTERS, METADATA)
def test_filters_mean_what_the_reference_says(filter: dict[str, Any], metadata: dict[str, Any]) -> None:
    assert parse_filter(filter).matches(metadata) is passes(filter, metadata)


@settings(max_examples=times(40, 100))
@given(FILTERS, FILTERS, METADATA)
def test_conditions_join_as_and_does(
    one: dict[str, Any], other: dict[str, Any], metadata: dict[str, Any]
) -> None:
    joined = parse_filter(one) & parse_filter(other)
    assert joined.matches(metadata) is (passes(one, metadata) and passes(other, metadata))
    assert joined.matches(metadata) is parse_filter({"$and": [one, other]}).matches(metadata)


@settings(max_examples=times(40, 100))
@given(FILTERS, METADATA)
def test_equalities_are_necessary(filter: dict[str, Any], metadata: dict[str, Any]) -> None:
    """An engine may look them up: whatever passes has each of them, as the value or in a list."""
    condition = parse_filter(filter)
    if condition.matches(metadata):
        for name, value in condition.equalities:
            stored = metadata[name]
            assert any(same(member, value) for member in (stored if isinstance(stored, list) else [stored]))


@settings(max_examples=times(70, 200))
@given(FIELDS, VALUES | OPERATIONS)
def test_a_field_is_needed_where_nothing_passes_without_it(name: str, wanted: Any) -> None:
    """Under a negation it is the other way round."""
    for wish in ({name: wanted}, {"$not": {name: wanted}}, {"$not": {"$not": {name: wanted}}}):
        assert parse_filter(wish).needed == (set() if passes(wish, {}) else {name})


def test_each_part_of_a_filter_needs_its_fields() -> None:
    """Also a part that is one of several alternatives: a field that nothing has makes it a mistake."""
    one, other = {"a": 1}, {"b": {"$gt": 2}}
    for wish in ({**one, **other}, {"$and": [one, other]}, {"$or": [one, other]}):
        assert parse_filter(wish).needed == {"a", "b"}
        assert parse_filter({"$not": wish}).needed == set()
    assert (parse_filter(one) & parse_filter(other)).needed == {"a", "b"}
    assert parse_filter({"$and": [one, {"b": {"$ne": 2}}]}).needed == {"a"}


def test_equalities_are_found_however_they_are_written() -> None:
    wish = {"a": 1, "b": {"$eq": "x"}, "c": {"$ne": 1}, "d": [1], "e": None, "$not": {"f": 1}, "g": True}
    found = parse_filter(wish).equalities
    assert found == (("a", 1), ("b", "x"), ("g", True))
    assert (parse_filter(wish) & parse_filter({"h": 2.5})).equalities == (*found, ("h", 2.5))


@pytest.mark.parametrize(
    ("wanted", "stored"),
    [
        (dt.date(2024, 1, 5), "2024-01-05"),
        (dt.datetime(2024, 1, 5, 12, tzinfo=dt.UTC), "2024-01-05T12:00:00+00:00"),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (PurePosixPath("a/b"), "a/b"),
        (Colour.RED, "red"),
    ],
)
def test_values_are_converted_as_metadata_is(wanted: Any, stored: Any) -> None:
    for wish in ({"a": wanted}, {"a": {"$in": {wanted}}}, {"$not": {"a": {"$ne": wanted}}}):
        assert parse_filter(wish).matches({"a": stored}), wish
        assert not parse_filter(wish).matches({"a": "other"}), wish
    if not isinstance(stored, float):
        assert parse_filter({"a": {"$gte": wanted}}) == parse_filter({"a": {"$gte": stored}})


def test_an_operator_without_its_sign_is_refused() -> None:
    with pytest.raises(FilterError, match=re.escape("write {'year': {'$gte': …}}")):
        parse_filter({"year": {"gte": 3}})
    assert parse_filter({"box": {"size": 3}}).matches({"box": {"size": 3}})


def test_a_condition_shows_its_filter_and_not_its_functions() -> None:
    assert "function" not in repr(parse_filter({"a": 1}))
    assert '{"a":1}' in repr(parse_filter({"a": 1}))
    assert EVERYTHING.always


@given(FILTERS)
def test_the_key_tells_filters_apart(filter: dict[str, Any]) -> None:
    again = json.loads(json.dumps(filter, sort_keys=True))
    assert parse_filter(filter) == parse_filter(again)
    assert hash(parse_filter(filter)) == hash(parse_filter(again))
    assert parse_filter(filter) != parse_filter({"$not": filter})


@pytest.mark.parametrize("nothing", [None, {}])
def test_no_filter_lets_everything_pass(nothing: object) -> None:
    condition = parse_filter(nothing)
    assert condition.always
    assert condition.matches({})
    assert condition & parse_filter({"a": 1}) == parse_filter({"a": 1}) & EVERYTHING == parse_filter({"a": 1})
    assert not parse_filter({"a": 1}).always


def test_a_parsed_filter_is_taken_as_it_is() -> None:
    condition = parse_filter({"a": 1})
    assert parse_filter(condition) is condition
    assert condition & condition == condition


VALUE_PAIRS = [
    (1, 1.0, True),
    (1, True, False),
    (0, False, False),
    (1.0, True, False),
    (1, "1", False),
    (True, "true", False),
    (None, False, False),
    (None, 0, False),
    (None, None, True),
    (2**53 + 1, 2**53, False),
    (2**53 + 1, float(2**53), False),
    ([1, 2], [1.0, 2.0], True),
    ([1, 2], [2, 1], False),
    ([1], [True], False),
    ({"x": 1}, {"x": 1.0}, True),
    ({"x": 1}, {"x": True}, False),
    ({"x": 1, "y": 2}, {"y": 2, "x": 1}, True),
    ({"x": 1}, {"x": 1, "y": None}, False),
    ([], {}, False),
    ("é", "e\u0301", False),
]


@pytest.mark.parametrize(("stored", "wanted", "equal"), VALUE_PAIRS, ids=str)
def test_equality_by_type(stored: Any, wanted: Any, equal: bool) -> None:
    for one, other in ((stored, wanted), (wanted, stored)):
        assert parse_filter({"a": other}).matches({"a": one}) is equal
        assert parse_filter({"a": {"$eq": other}}).matches({"a": one}) is equal
        assert parse_filter({"a": {"$in": ["?", other]}}).matches({"a": one}) is equal
        assert parse_filter({"a": {"$ne": other}}).matches({"a": one}) is not equal
        assert parse_filter({"a": {"$nin": ["?", other]}}).matches({"a": one}) is not equal


@pytest.mark.parametrize(
    ("filter", "passes"),
    [
        ({"tags": "home"}, True),
        ({"tags": {"$ne": "home"}}, False),
        ({"tags": {"$in": ["garden", "roof"]}}, True),
        ({"tags": {"$nin": ["roof"]}}, True),
        ({"tags": ["home", "garden"]}, True),
        ({"tags": ["garden", "home"]}, False),
        ({"tags": {"$contains": "home"}}, True),
        ({"tags": {"$all": ["garden", "home"]}}, True),
        ({"tags": {"$all": ["home", "roof"]}}, False),
        ({"tags": {"$size": 2}}, True),
        ({"lang": {"$contains": "en"}}, False),
        ({"lang": {"$size": 2}}, False),
        ({"tags": {"$contains": 1}}, False),
    ],
)
def test_a_list_is_filtered_by_its_members(filter: dict[str, Any], passes: bool) -> None:
    assert parse_filter(filter).matches({"tags": ["home", "garden"], "lang": "en"}) is passes


@pytest.mark.parametrize("op", ["$gt", "$gte", "$lt", "$lte"])
@pytest.mark.parametrize(
    ("stored", "wanted"), [(True, 1), (True, 0), ("1", 1), (1, "1"), (None, 0), ([1], 0)]
)
def test_unlike_types_have_no_order(op: str, stored: Any, wanted: Any) -> None:
    assert not parse_filter({"a": {op: wanted}}).matches({"a": stored})


def test_strings_are_ordered_by_code_point() -> None:
    assert parse_filter({"a": {"$gt": "\uffee"}}).matches({"a": "\U0001f600"})
    assert parse_filter({"a": {"$lt": "a"}}).matches({"a": "Z"})


def test_a_missing_field_fails_what_asks_for_a_value() -> None:
    wanted = {"$ne": 1, "$nin": [1], "$exists": False, "$not": {"$eq": 1}}
    for op, value in wanted.items():
        assert parse_filter({"a": {op: value}}).matches({})
    for op, value in {"$eq": None, "$in": [None], "$gt": 0, "$lte": "z", "$exists": True}.items():
        assert not parse_filter({"a": {op: value}}).matches({})


def test_fields_are_literal() -> None:
    assert parse_filter({"a.b": 1}).matches({"a.b": 1})
    assert not parse_filter({"a.b": 1}).matches({"a": {"b": 1}})


def test_empty_lists_decide() -> None:
    assert not parse_filter({"a": {"$in": []}}).matches({"a": 1})
    assert parse_filter({"a": {"$nin": []}}).matches({"a": 1})


def test_a_dict_with_dollar_keys_can_be_compared_by_eq() -> None:
    assert parse_filter({"a": {"$eq": {"$gt": 1}}}).matches({"a": {"$gt": 1}})


def test_a_filter_does_not_follow_later_changes_of_what_it_was_parsed_from() -> None:
    wanted = {"a": {"$in": [1]}, "b": [1]}
    condition = parse_filter(wanted)
    wanted["a"]["$in"].append(2)
    wanted["b"].append(2)
    assert condition.matches({"a": 1, "b": [1]})
    assert not condition.matches({"a": 2, "b": [1]})


BAD = [
    ("lang", "must be a dict"),
    ([{"a": 1}], "must be a dict"),
    ({"a": {"$near": 1}}, r"a: unknown operator '\$near'"),
    ({"$eq": 1}, r"unknown operator '\$eq'"),
    ({"$nor": [{"a": 1}]}, r"unknown operator '\$nor'"),
    ({"a": {"$gt": 1, "x": 2}}, "unknown operator 'x'"),
    ({"a": {"$gt": None}}, "needs a number or a string"),
    ({"a": {"$lt": True}}, "needs a number or a string"),
    ({"a": {"$gte": [1]}}, "needs a number or a string"),
    ({"a": {"$in": "abc"}}, r"\$in needs a list"),
    ({"a": {"$nin": 1}}, r"\$nin needs a list"),
    ({"a": {"$exists": 1}}, "needs true or false"),
    ({"a": {"$not": 1}}, r"\$not needs operators"),
    ({"a": {"$not": {}}}, r"\$not needs operators"),
    ({"$and": []}, "non-empty list"),
    ({"$or": {"a": 1}}, "non-empty list"),
    ({"$and": [{}]}, "non-empty filter"),
    ({"$not": [{"a": 1}]}, "non-empty filter"),
    ({"a": float("nan")}, "finite"),
    ({"a": {"$gt": float("inf")}}, "finite"),
    ({"a": {"$in": [float("nan")]}}, "finite"),
    ({"a": [float("nan")]}, "finite"),
    ({"a": {"x": [float("-inf")]}}, "finite"),
    ({"a": 1j}, "only JSON values|plain JSON"),
    ({"a": b"x"}, "only JSON values|plain JSON"),
    ({"a": object}, "only JSON values|plain JSON"),
    ({"a": dt.timedelta(1)}, "only JSON values|plain JSON"),
    ({"a": [dt.timedelta(1)]}, "only JSON values|plain JSON"),
    ({"a": {"$in": [object]}}, "only JSON values|plain JSON"),
    ({"a": 2**70}, "only JSON values|plain JSON"),
    ({"a": "\ud800"}, "only JSON values|plain JSON"),
    ({1: "a"}, "only JSON values|plain JSON"),
]


@pytest.mark.parametrize(("filter", "words"), BAD, ids=lambda value: str(value)[:40])
def test_a_filter_that_cannot_be_understood_is_refused(filter: Any, words: str) -> None:
    with pytest.raises(FilterError, match=words):
        parse_filter(filter)


@pytest.mark.parametrize("key", ["$not", "a", "$and"])
def test_a_filter_has_at_most_100_levels(key: str) -> None:
    wrap = (lambda one: {"$and": [one]}) if key == "$and" else (lambda one: {key: one})
    steps = MAX_NESTING // 2 - 1 if key == "$and" else MAX_NESTING - 1
    deepest = functools.reduce(lambda one, _: wrap(one), range(steps), {"a": 1})
    assert isinstance(parse_filter(deepest).matches({"a": 1}), bool)
    circle: dict[str, Any] = {}
    circle[key] = circle
    for deeper in (
        wrap(wrap(deepest)),
        functools.reduce(lambda one, _: wrap(one), range(10_000), {}),
        circle,
    ):
        with pytest.raises(FilterError, match="may have 100 levels"):
            parse_filter(deeper)


def test_every_operator_is_known_to_the_reference() -> None:
    assert set(OPERATORS) == {
        *("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$contains", "$all", "$size"),
        *("$exists", "$and", "$or", "$not"),
    }
