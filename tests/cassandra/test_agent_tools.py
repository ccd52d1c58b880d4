"""The tools for agents on Cassandra: a sample of the embedded engine's cases, and the same answers."""

from __future__ import annotations

from typing import Any

import drugs
import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_tables import own_keyspace
from langchain_core.documents import Document
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from named import Named
from tool_cases import EXAMPLES, DrugToolCases, OwnToolCases, make_all_tools

from linkstore import LinkStore


@pytest.fixture(scope="module")
def pharmacy(cassandra_session):
    """The graph of drugs."""
    with (
        own_keyspace(cassandra_session, "tools") as space,
        LinkStore.cassandra(session=cassandra_session, keyspace=space, table="drugs") as store,
    ):
        store.add_documents(list(drugs.documents()))
        yield store


@pytest.mark.sample("test_async_answers_are_the_same")
class TestDrugsOnCassandra(DrugToolCases):
    pass


@pytest.mark.sample("test_read_names_the_chunks_before_and_after")
class TestOwnGraphsOnCassandra(OwnToolCases):
    @pytest.fixture
    def store(self, cassandra_session, emptied_keyspace):
        with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace) as store:
            yield store


@pytest.mark.parametrize("name", EXAMPLES)
def test_answers_are_those_of_the_embedded_engine(pharmacy, name):
    with LinkStore() as embedded:
        embedded.add_documents(list(drugs.documents()))
        for store in (embedded, pharmacy):
            tool = next(tool for tool in make_all_tools(store) if tool.name == name)
            text = tool.invoke(EXAMPLES[name])
            assert text == next(one for one in make_all_tools(embedded) if one.name == name).invoke(
                EXAMPLES[name]
            )


def test_names_are_found_by_number_alias_part_and_slip(cassandra_session, emptied_keyspace):
    hut = {"name": "Rifugio Lago Verde", "aliases": ["Grünseehütte"]}
    with LinkStore.cassandra(session=cassandra_session, keyspace=emptied_keyspace) as store:
        store.add_documents(
            [
                Document(id="hut/30424", page_content="On the shore; sixty beds.", metadata=hut),
                Document(id="hut/30431", page_content="Closed in winter.", metadata={"name": "Zeferina"}),
            ]
        )
        (read,) = (tool for tool in make_all_tools(store) if tool.name == "read")
        for name in ("30424", "Grünseehütte", "lago verde", "Lago Vrede"):
            assert read.invoke({"id": name}).startswith("[hut/30424]"), name
        assert read.invoke({"id": "Zefernia"}).startswith("[hut/30431]")
        for question in ("Beds in the Grünseehütte", "how many beds has 30424", "beds at lago verde"):
            assert [hit.document.id for hit in store.search(question, strategy=Named())] == ["hut/30424"]
        assert store.verify().sound


class OnCassandra(ToolsIntegrationTests):
    """langchain-tests' suite for a tool."""

    name: str

    @pytest.fixture
    def tool(self, pharmacy) -> BaseTool:
        return next(tool for tool in make_all_tools(pharmacy) if tool.name == self.name)

    @property
    def tool_constructor(self) -> type[BaseTool]:
        return BaseTool

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return EXAMPLES[self.name]


class TestSearchOnCassandra(OnCassandra):
    name = "search"


class TestReadOnCassandra(OnCassandra):
    name = "read"
