"""Conditions on the documents of a query, and the reasons why none passes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, Final

from linkstore.core import plans
from linkstore.core.arguments import quote_value
from linkstore.core.arrays import Ints
from linkstore.core.display import format_count
from linkstore.core.filters import EVERYTHING, Condition, Filter
from linkstore.core.plans import Plan, StoredDocument

MAX_READ: Final = 1_000
"""How many documents are read for the values that they have."""
_MAX_VALUES: Final = 8
_MAX_SHOWN: Final = 60
"""Characters of a value that a reason shows."""


@dataclass(frozen=True, slots=True)
class Test:
    """A condition on documents, as a reason names it.

    Args:
        condition: The condition.
        text: In words.
        fields: Whose values a reason shows if nothing passes.
    """

    condition: Condition
    text: str
    fields: tuple[str, ...]


def make_validity_filter(as_of: str, valid_from: str, valid_until: str) -> Filter:
    """Return the filter for what is valid on a date.

    Bounds may be years, as strings or numbers, months, dates, or dates with a time.
    """
    year = int(as_of[:4])
    bounds = {
        valid_from: [{"$lte": f"{as_of}~"}, {"$lte": year}],  # "~" is behind what follows a date
        valid_until: [{"$gte": as_of}, {"$in": [as_of[:4], as_of[:7]]}, {"$gte": year}],
    }
    return {
        "$and": [
            {"$or": [{name: {"$exists": False}}, {name: None}, *({name: test} for test in tests)]}
            for name, tests in bounds.items()
        ]
    }


def join_tests(tests: Iterable[Test]) -> Condition:
    """Return the conjunction of conditions."""
    return reduce(Condition.__and__, (test.condition for test in tests), EVERYTHING)


def select_passing(refs: Ints, tests: Sequence[Test]) -> Plan[Ints]:
    """Return the documents that pass all tests."""
    for test in tests:
        if len(refs):
            passing = yield from plans.ask(plans.Matching(refs=refs, filter=test.condition))
            refs = refs[passing]
    return refs


def explain_test(refs: Ints, tests: Sequence[Test]) -> Plan[str]:
    """Describe how no document passes the last of some tests, with the values there.

    Args:
        refs: The documents that pass all others.
        tests: The tests.
    """
    values = yield from _list_values(refs, tests[-1].fields)
    count = (
        f"{MAX_READ:,} or more documents" if len(refs) == MAX_READ else format_count(len(refs), "document")
    )
    before = " ".join([count, *(test.text for test in tests[:-1])])
    return f"{before}, 0 {tests[-1].text}; {values}"


def _list_values(refs: Ints, fields: Sequence[str]) -> Plan[str]:
    """List the commonest values of some fields, in words."""
    documents = yield from plans.ask(plans.Documents(refs=refs[:MAX_READ]))
    texts = []
    for name in dict.fromkeys(fields):
        counts = sorted(count_values(documents, name).items(), key=lambda item: (-item[1][1], item[0]))
        shown = ", ".join(quote_value(value)[:_MAX_SHOWN] for _, (value, _) in counts[:_MAX_VALUES])
        more = len(counts) - _MAX_VALUES
        more_text = f" and {more} more" if more > 0 else ""
        texts.append(f"values of {name!r} here: {shown or 'none'}{more_text}")
    return "; ".join(texts)


def count_values(documents: Iterable[StoredDocument], name: str) -> dict[Any, tuple[Any, int]]:
    """Count the values of a field, of a list each member, by a key that orders them."""
    values: dict[Any, Any] = {}
    counts: Counter[Any] = Counter()
    for document in documents:
        if name in document.metadata:
            value = document.metadata[name]
            for item in value if isinstance(value, list) else [value]:
                values.setdefault(key := rank_value(item), item)
                counts[key] += 1
    return {key: (values[key], count) for key, count in counts.items()}


def rank_value(value: Any) -> tuple[int, float, str]:
    """Return a key that orders values: numbers, then strings, then others."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0, value, ""
    return (1, 0, value) if isinstance(value, str) else (2, 0, repr(value))


def list_fields(where: Filter) -> Iterator[str]:
    """Yield the fields that a filter names."""
    for name, value in where.items():
        if name in ("$and", "$or"):
            yield from chain.from_iterable(map(list_fields, value))
        elif name == "$not":
            yield from list_fields(value)
        else:
            yield name


_WORDS: Final[Mapping[str, Callable[[str, str], str]]] = {
    "$ne": lambda name, value: f"with another {name} than {value}",
    "$gt": lambda name, value: f"with {name} > {value}",
    "$gte": lambda name, value: f"with {name} >= {value}",
    "$lt": lambda name, value: f"with {name} < {value}",
    "$lte": lambda name, value: f"with {name} <= {value}",
}


def describe_filter(where: Filter) -> str:
    """Describe a filter in words, if it is a simple one."""
    ((name, value), *more) = where.items()
    if isinstance(value, Mapping) and len(value) == 1:
        ((operator, operand),) = value.items()
        if operator in _WORDS and not more:
            return _WORDS[operator](name, quote_value(operand))
    elif not more and not name.startswith("$"):
        return f"with {name} {quote_value(value)}"
    return f"with {quote_value(dict(where))}"
