"""The tools for agents on the embedded engine, and in LangChain's own suites."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import drugs
import harbour
import pytest
from internals import ToolScope, make_tools, make_writing_tools, parse_cypher
from langchain_core.documents import Document
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from stores import embedding
from tool_cases import EXAMPLES, DrugToolCases, OwnToolCases, make_all_tools

import linkstore.agents
from linkstore import LinkStore
from linkstore.agents import ToolLimits, graph_tools
from linkstore.errors import ArgumentError, FilterError, StrategyError
from linkstore.ingest import DocumentsSource, index
from linkstore.store import Relation, Schema


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
        return next(tool for tool in make_all_tools(filled()) if tool.name == self.name)

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
    for tool in make_all_tools(filled()):
        if tool.name in {"search", "follow", "read"}:
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
        search = make_all_tools(store)[0]
        assert "not valid Unicode" in search.invoke({"question": "why \ud800?"})


def every_tool() -> list[Any]:
    """The tools of a store with a schema, those that write included."""
    store = LinkStore()
    schema = Schema(types={"Drug", "Class"}, relations=(Relation("BELONGS_TO", "Drug", "Class"),))
    store.schema.set(schema)
    scope = ToolScope(store)
    tools = [*make_tools(scope, "drugs", only=list(EXAMPLES)), *make_writing_tools(scope)]
    return [tool.to_langchain() for tool in tools]


@pytest.mark.parametrize("tool", every_tool(), ids=lambda tool: tool.name)
def test_a_description_says_what_when_what_comes_back_and_what_changes(tool):
    writes = tool.name in {"add", "delete"}
    others = {one.name for one in every_tool()} - {tool.name}
    first, *_ = tool.description.split(". ")
    assert first.split()[0] in {"Search", "Find", "Go", "Read", "List", "Add", "Delete"}
    assert "Use it" in tool.description
    (when,) = (one for one in tool.description.split(". ") if one.startswith("Use it"))
    assert "rather than" in when or "only if" in when
    assert any(name in when for name in others)
    (returned,) = (one for one in tool.description.split(". ") if one.startswith("Returns"))
    assert any(map(str.isdigit, returned)) or "one line" in returned
    assert ("Changes nothing" in tool.description) is not writes
    assert ("Changes the store" in tool.description) is writes
    assert ("cannot be undone" in tool.description) is (tool.name == "delete")
    for name, told in tool.args_schema.model_json_schema()["properties"].items():
        assert told["description"], name
        assert writes or "for example" not in told["description"], "a small model copies it"


def test_every_part_of_a_link_is_described():
    (add,) = (tool for tool in every_tool() if tool.name == "add")
    (link,) = add.args_schema.model_json_schema()["$defs"].values()
    assert set(link["required"]) == {"kind", "tag", "direction"}
    assert all("description" in part for part in link["properties"].values())


def test_with_a_schema_the_model_is_told_its_types_and_relations():
    search, match, *_ = every_tool()
    assert "(:Drug)-[:BELONGS_TO]->(:Class)" in match.description
    assert set(match.args_schema.model_json_schema()["properties"]) == {"query", "as_of"}
    assert search.args_schema.model_json_schema()["properties"]["result_type"]["enum"] == ["Class", "Drug"]
    assert set(make_all_tools(filled())[0].args) == {"question"}


def test_a_store_has_the_tools_that_it_calls_for_and_others_by_name():
    assert [tool.name for tool in graph_tools(filled())] == ["search", "follow", "read"]
    store = LinkStore()
    store.schema.set(Schema(types={"Drug"}, relations=()))
    assert [tool.name for tool in graph_tools(store)] == ["search", "match", "follow", "read", "schema"]
    assert [tool.name for tool in graph_tools(store, only=["path", "read"])] == ["read", "path"]
    assert graph_tools(store, only=[]) == []
    with pytest.raises(ArgumentError, match="there is no tool 'find'; the tools are search, match"):
        graph_tools(store, only=["find"])
    with pytest.raises(ArgumentError, match="names of tools"):
        graph_tools(store, only="read")


def test_the_tools_of_a_plain_store_take_few_tokens():
    """Four characters are about a token."""
    described = [json.dumps(convert_to_openai_tool(tool)) for tool in graph_tools(filled(), about="drugs")]
    assert sum(map(len, described)) / 4 <= 900


class TestTypes:
    @pytest.fixture(scope="class")
    def ships(self):
        with LinkStore() as store:
            store.schema.set(harbour.SCHEMA)
            store.add_documents(harbour.harbour(status=("B7", "K2")))
            yield {tool.name: tool for tool in make_all_tools(store)}

    def call(self, ships, name, **arguments):
        return ships[name].invoke({"name": name, "args": arguments, "id": "1", "type": "tool_call"})

    def test_the_description_has_fields_commonest_values_and_the_form_of_a_query(self, ships):
        described = ships["match"].description
        assert 'Permit (status="B7"|…)' in described
        form = described.split(" Form: ")[1].splitlines()[0].removesuffix(".")
        assert "{name: '<name>'}" in form
        assert parse_cypher(form).branches[0].start == "<name>"

    def test_the_description_tells_nothing_that_the_filter_hides(self):
        with LinkStore() as store:
            store.schema.set(harbour.SCHEMA)
            store.add_documents(harbour.harbour(status=("B7", "K2")))
            (match,) = (tool for tool in graph_tools(store, filter={"type": "Ship"}) if tool.name == "match")
        assert "B7" not in match.description

    def test_documents_of_a_type_come_first_and_some_others_behind_them(self, ships):
        answer = self.call(ships, "search", question="rules of the Albatross", result_type="Rule")
        types = [result["id"][0] for result in answer.artifact["results"]]
        assert types[:5] == ["r"] * 5
        assert len(types) == 8
        assert set(types[5:]) - {"r"}

    def test_a_type_among_the_kinds_of_link_is_left_out_and_told(self, ships):
        told = "'Class' is a type, not a kind of link, and was left out."
        every = self.call(ships, "follow", id="Albatross")
        answer = self.call(ships, "follow", id="Albatross", kinds=["class"])
        assert answer.artifact["results"] == every.artifact["results"]
        assert answer.artifact["remarks"] == [*every.artifact["remarks"], told.replace("Class", "class")]
        some = self.call(ships, "follow", id="Albatross", kinds=["Class", "OF_CLASS"])
        assert told in some.text
        assert "OF_CLASS" in some.artifact["results"][0]["chains"][0]["text"]
        assert len(some.artifact["results"]) <= len(every.artifact["results"])

    @pytest.mark.parametrize(
        ("name", "given", "meant"),
        [
            ("search", {"query": "rules", "type": "rules"}, {"question": "rules", "result_type": "Rule"}),
            ("search", {"question": "rules", "result_type": ""}, {"question": "rules"}),
            ("follow", {"id": "Albatross", "kind": "of_class"}, {"id": "Albatross", "kinds": ["OF_CLASS"]}),
            ("follow", {"id": "[r1]", "direction": "in"}, {"id": "r1", "direction": "backward"}),
            ("follow", {"document": "a", "kinds": '["OF_CLASS"]'}, {"id": "a", "kinds": ["OF_CLASS"]}),
            ("follow", {"id": "a", "kinds": None, "direction": "null"}, {"id": "a"}),
            ("read", {"ids": '["a", "r1"]'}, {"id": ["a", "r1"]}),
            ("read", {"id": "[a], [r1]", "offset": None}, {"id": ["a", "r1"]}),
            (
                "match",
                {"query": "match (x:class)<-[:of_class]-(:ship {name: 'Albatross'}) return x"},
                {"query": "MATCH (:Ship {name: 'Albatross'})-[:OF_CLASS]->(x:Class) RETURN x"},
            ),
            (
                "match",
                {"query": "MATCH (:Class)<-[:OF_CLASS]-(:Class {name: 'a'}) RETURN x", "as_of": ""},
                {"query": "MATCH ({id: 'a'})-[:OF_CLASS]->(x:Class) RETURN x"},
            ),
        ],
    )
    def test_arguments_are_forgiven_where_their_meaning_is_clear(self, ships, name, given, meant):
        answer = self.call(ships, name, **given)
        assert answer.status == "success", answer.content
        assert answer.content == self.call(ships, name, **meant).content

    def test_the_shortest_chains_between_two_documents_are_listed(self, ships):
        answer = self.call(ships, "path", start="Albatross", end="r1")
        assert answer.content.startswith("1. ")
        assert answer.artifact["paths"][0]["documents"][0] == answer.artifact["start"]

    @pytest.mark.parametrize(
        ("name", "wrong", "says"),
        [
            ("follow", {"id": "a", "direction": "sideways"}, "'forward', 'backward' or 'both'"),
            (
                "match",
                {"query": "MATCH (p:Permit) WHERE p.status = 'approved' RETURN p"},
                "values of 'status' here: 'B7', 'K2'",
            ),
            (
                "search",
                {"question": "x", "result_type": "Boat"},
                "its types are Class, Permit, Port, Rule, Ship",
            ),
            ("match", {"query": "MATCH (x:Boat {id: 's1'}) RETURN x"}, "has the type 'Boat'"),
            ("match", {"query": "MATCH (x:Rule {id: 's1'}) RETURN x"}, "[s1] (Ship)"),
            ("match", {"query": "MATCH (x:Ship) WHERE x.stauts = 1 RETURN x"}, "did you mean 'status'"),
            ("match", {"query": "MATCH (x:Ship)-[:OF_CLAS]->(y) RETURN y"}, "did you mean 'OF_CLASS'"),
        ],
    )
    def test_names_that_are_not_there_are_errors_that_say_what_is(self, ships, name, wrong, says):
        answer = self.call(ships, name, **wrong)
        assert answer.status == "error" or answer.content.startswith("No results")
        assert says in answer.content

    def test_documents_are_found_by_name_and_read_together(self, ships):
        assert "[c1]" in ships["follow"].invoke({"id": "Albatross", "kinds": ["OF_CLASS"]})
        both = ships["read"].invoke({"id": ["[a]", "Port of Belmore"]})
        assert "<text>\nPort of Arvania.\n</text>" in both
        assert "<text>\nPort of Belmore.\n</text>" in both
        assert "may mean [p1]" in ships["read"].invoke({"id": "permit of the albatross"})
        assert "from 1 to 8 documents" in ships["read"].invoke({"id": ["a"] * 9})


def test_chunks_of_a_splitter_have_one_before_and_one_after():
    """Each is a page of its own, so their links say what stands beside them."""
    chunks = [
        Document(page_content=f"{name} paragraph.", metadata={"source": "joan.txt", "start_index": 100 * at})
        for at, name in enumerate(("First", "Second", "Third"))
    ]
    with LinkStore() as store:
        index(store, DocumentsSource(chunks, name="joan"))
        first, second, third = (
            store.search(f"{name} paragraph", k=1)[0].document.id for name in ("First", "Second", "Third")
        )
        (read,) = (tool for tool in make_all_tools(store) if tool.name == "read")
        told = [read.invoke({"id": id}).splitlines()[-2:] for id in (first, second, third)]
    assert told[0][-1] == f"Next: [{second}]"
    assert told[1] == [f"Previous: [{first}]", f"Next: [{third}]"]
    assert told[2][-1] == f"Previous: [{second}]"
