"""The tools for agents on the embedded engine, and in LangChain's own suites."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import drugs
import pytest
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from stores import embedding
from tool_cases import EXAMPLES, DrugToolCases, OwnToolCases

import linkstore.agents
from linkstore import LinkStore
from linkstore.agents import ToolLimits, graph_tools
from linkstore.errors import FilterError, StrategyError


@cache
def filled() -> LinkStore:
    """One store of drugs for all tests here, which only read."""
    store = LinkStore()
    store.add_documents(list(drugs.documents()))
    return store


class TestOnDrugs(DrugToolCases):
    @pytest.fixture
    def pharmacy(self):
        return filled()


class TestOnOwnGraphs(OwnToolCases):
    @pytest.fixture
    def store(self):
        with LinkStore() as store:
            yield store


class Example:
    """One of the tools, and a call of it."""

    name: str

    @property
    def tool_constructor(self) -> BaseTool:
        return next(tool for tool in graph_tools(filled()) if tool.name == self.name)

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return EXAMPLES[self.name]


def suites() -> Iterator[type]:
    """langchain-tests' suites for each tool."""
    for name in EXAMPLES:
        for suite in (ToolsUnitTests, ToolsIntegrationTests):
            yield type(f"Test{name.title()}{suite.__name__}", (Example, suite), {"name": name})


globals().update({suite.__name__: suite for suite in suites()})


async def test_a_single_argument_may_be_passed_alone():
    """As LangChain allows for tools: ``tool.invoke("…")``."""
    for tool in graph_tools(filled()):
        if tool.name in {"search", "follow", "read", "links"}:
            first = "approval" if tool.name == "search" else EXAMPLES["read"]["id"]
            named = {next(iter(tool.args)): first}
            assert tool.invoke(first) == tool.invoke(named)
            assert await tool.ainvoke(first) == tool.invoke(named)


def test_the_public_names_are_these():
    assert {"ToolLimits", "graph_tools"} <= set(linkstore.agents.__all__)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_depth": -1},
        {"max_depth": True},
        {"results": 0},
        {"snippet": 0},
        {"chains": 1.5},
        {"links": "many"},
        {"text": 0},
        {"min_similarity": 2},
    ],
)
def test_a_limit_out_of_range_is_an_error_that_names_it(wrong):
    with pytest.raises(StrategyError, match=next(iter(wrong))):
        ToolLimits(**wrong)


def test_a_filter_that_is_none_is_refused_at_once():
    with LinkStore() as store, pytest.raises(FilterError):
        graph_tools(store, filter={"n": {"$like": 1}})


def test_a_question_that_is_not_unicode_is_a_mistake_of_the_model():
    with LinkStore(embedding()) as store:
        search = graph_tools(store)[0]
        assert "not valid Unicode" in search.invoke({"question": "why \ud800?"})
