"""The table of arguments in docs/reference/retriever.md is that of the signatures."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from dataclasses import MISSING, fields

from documented import ROOT

from linkstore import LinkRetriever, LinkStore
from linkstore.store.search import DEFAULT_RETURNED_K, SEARCH_ARGUMENTS
from linkstore.strategies import DEFAULT_STRATEGY, AllPaths, Eager, Mmr, PageRank, Similarity, Words
from linkstore.strategies.base import SearchOptions
from linkstore.strategies.pagerank import TRUST

PAGE = ROOT / "docs" / "reference" / "retriever.md"
STRATEGIES = (PageRank, Eager, Mmr, AllPaths, Similarity, Words)
OWN = {"traversal": Eager, "mmr_traversal": Mmr}
"""The search types that take a strategy's settings."""
METHODS = {
    "traversal": LinkStore.traversal_search,
    "mmr_traversal": LinkStore.mmr_traversal_search,
    "similarity": LinkStore.similarity_search,
    "mmr": LinkStore.max_marginal_relevance_search,
    "similarity_score_threshold": LinkStore.similarity_search_with_score,
}
REQUIRED = "required"
Defaults = dict[tuple[str, str], str]


def shown(value: object) -> str:
    return REQUIRED if value in (MISSING, inspect.Parameter.empty) else repr(value).replace("'", '"')


def given(call: object) -> dict[str, object]:
    """The defaults in a signature."""
    parameters = inspect.signature(call).parameters.values()
    plain = [one for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    return {one.name: one.default for one in plain if one.name not in ("self", "query", "search_type")}


def settings(kind: type) -> dict[str, object]:
    return {field.name: field.default for field in fields(kind) if field.init}


def expected() -> Defaults:
    """(argument, where it holds) → its default, read from the code."""
    returned = {"strategy": DEFAULT_STRATEGY}
    fields_of_retriever = {name: one.get_default() for name, one in LinkRetriever.model_fields.items()}
    retriever = fields_of_retriever | returned | {"k": DEFAULT_RETURNED_K, "search_kwargs": {}}
    del retriever["vectorstore"]
    found = {
        "search": settings(SearchOptions) | returned | {"k": DEFAULT_STRATEGY.k},
        "as_retriever": retriever,
        "LinkRetriever": retriever | {"store": MISSING},
        "links": settings(SearchOptions) | returned | {"k": DEFAULT_RETURNED_K},
        "pagerank": settings(SearchOptions) | settings(PageRank) | {"k": DEFAULT_RETURNED_K},
        **{kind.__name__: settings(kind) for kind in STRATEGIES},
    }
    for name, method in METHODS.items():
        wider = settings(OWN[name]) if name in OWN else {}
        every = settings(SearchOptions) | {"score_threshold": MISSING} | wider | given(method)
        found[name] = {argument: every[argument] for argument in SEARCH_ARGUMENTS[name]}
    return {(name, where): shown(value) for where, one in found.items() for name, value in one.items()}


def rows(table: str) -> list[list[str]]:
    """The rows of the table of ``"search types"`` or ``"arguments"``."""
    above, _, below = PAGE.read_text().partition("## Every argument")
    text = below if table == "arguments" else above
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_table_says_what_the_signatures_say() -> None:
    told: Defaults = {}
    counted: Counter[tuple[str, str]] = Counter()
    for argument, default, where, _ in rows("arguments"):
        for place in re.findall(r"`([^`]+)`", where):
            key = (argument.strip("`"), place.strip('"'))
            counted[key] += 1
            told[key] = default.strip("`")

    assert told == expected()
    assert {key for key, count in counted.items() if count > 1} == set()


def test_the_table_of_search_types_has_each_of_them() -> None:
    assert [re.findall(r'"(\w+)"', name)[0] for name, *_ in rows("search types")] == list(SEARCH_ARGUMENTS)
    for name, method, _ in rows("search types"):
        assert hasattr(LinkStore, method.strip("`")), name


def test_every_row_has_a_meaning_and_arguments_stand_together() -> None:
    table = rows("arguments")
    assert all(len(row) == 4 and row[3].endswith(".") for row in table)
    order = [argument for argument, *_ in table]
    starts = [name for at, name in enumerate(order) if at == 0 or order[at - 1] != name]
    assert len(starts) == len(set(starts))


def test_a_row_that_is_missing_or_says_another_default_is_noticed() -> None:
    """What the comparison above is made of is read from the code, so it has what the page must have."""
    known = expected()
    assert known["start_k", "PageRank"] == "16"
    assert known["start_k", "Eager"] == "4"
    assert known["k", "links"] == known["k", "LinkRetriever"] == known["k", "similarity"] == "4"
    assert known["k", "search"] == known["k", "Words"] == "10"
    assert known["fetch_k", "mmr"] == "20"
    assert ("start_k", "traversal") not in known


def test_the_weights_of_kinds_are_those_of_page_rank() -> None:
    (meaning,) = (row[3] for row in rows("arguments") if row[0] == "`kinds`")
    assert {
        kind: float(weight) for kind, weight in re.findall(r"`(\w+)` links[^,]*? ([\d.]+\d)", meaning)
    } == TRUST
