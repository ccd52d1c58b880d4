"""The LangGraph store on the embedded engine."""

import subprocess
import sys
from typing import Annotated, Any

import pytest
from graph_store_cases import GraphStoreCases
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages.tool import tool_call
from langchain_core.tools import tool
from langgraph.prebuilt import InjectedStore

from linkstore import LinkStore
from linkstore.memory import GraphStore
from linkstore.testing import ScriptedChatModel


class TestEmbedded(GraphStoreCases):
    @pytest.fixture
    def store(self, tmp_path):
        with LinkStore.open(tmp_path / "items") as store:
            yield store


def test_items_outlive_the_process(tmp_path):
    with LinkStore.open(tmp_path / "items") as store:
        GraphStore(store).put(("a",), "k", {"text": "green tea"})
    with LinkStore.open(tmp_path / "items") as store:
        assert GraphStore(store).search(("a",), query="tea")[0].value == {"text": "green tea"}


def test_without_langgraph_the_error_names_the_extra():
    script = (
        "import sys; sys.modules['langgraph'] = None\n"
        "import linkstore.memory as memory\n"
        "from linkstore.errors import MissingExtraError\n"
        "try:\n    memory.GraphStore\nexcept MissingExtraError as error:\n    print(error.extra)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "agents"


def _remember(text: str, runtime: ToolRuntime) -> str:
    """Remember a text."""
    runtime.store.put(("notes",), "last", {"text": text})
    return "remembered"


def _look_up(question: str, store: Annotated[Any, InjectedStore()]) -> str:
    """Look up what was remembered."""
    return str(store.search(("notes",), query=question)[0].value["text"])


def _agent(graph: GraphStore) -> tuple[Any, ScriptedChatModel]:
    model = ScriptedChatModel(
        script=[
            tool_call(name="remember", args={"text": "Ann drinks green tea"}, id=None),
            tool_call(name="look_up", args={"question": "What does Ann drink?"}, id=None),
            "Green tea.",
        ]
    )
    tools = [tool("remember")(_remember), tool("look_up")(_look_up)]
    return create_agent(model, tools, store=graph), model


def test_tools_of_an_agent_use_the_store(tmp_path):
    with LinkStore.open(tmp_path / "items") as store:
        agent, model = _agent(GraphStore(store))
        agent.invoke({"messages": [("user", "What do I drink?")]})
        assert model.calls[-1].messages[-1].text == "Ann drinks green tea"


async def test_tools_of_an_agent_use_the_store_from_a_loop(tmp_path):
    with LinkStore.open(tmp_path / "items") as store:
        agent, model = _agent(GraphStore(store))
        await agent.ainvoke({"messages": [("user", "What do I drink?")]})
        assert model.calls[-1].messages[-1].text == "Ann drinks green tea"


def test_the_tools_of_langmem_use_the_store(tmp_path):
    langmem = pytest.importorskip("langmem", reason="langmem is not installed")
    config: Any = {"configurable": {"user": "ann"}}
    with LinkStore.open(tmp_path / "items") as store:
        graph = GraphStore(store)
        manage = langmem.create_manage_memory_tool(("memories", "{user}"), store=graph)
        search = langmem.create_search_memory_tool(("memories", "{user}"), store=graph)
        for content in ("Ann likes green tea", "Ann lives in Oslo"):
            manage.invoke({"content": content, "action": "create"}, config=config)
        assert "Oslo" in search.invoke({"query": "Which city is her home?", "limit": 1}, config=config)
        key = graph.search(("memories", "ann"))[1].key
        manage.invoke({"content": "Ann lives in Rome", "action": "update", "id": key}, config=config)
        manage.invoke({"action": "delete", "id": graph.search(("memories", "ann"))[0].key}, config=config)
        assert [one.value["content"] for one in graph.search(("memories",))] == ["Ann lives in Rome"]
