"""Several stores behind one server, what is known of a store as resources, and clients of other versions."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from documented import linkstore
from internals import ServedStore, StoreServer, ToolScope
from langchain_core.documents import Document
from mcp import Client, MCPError
from mcp_serving import COMMAND
from mcp_types import LATEST_PROTOCOL_VERSION
from stores import embedding

from linkstore import LinkStore

TO_A = {"kind": "to", "tag": "a", "direction": "out"}
IN_A = {"kind": "to", "tag": "a", "direction": "in"}


@pytest.fixture
def folders(tmp_path):
    """Two stores, with a document of the same id in each."""
    for name, subject in (("docs", "ships"), ("wiki", "birds")):
        with LinkStore.open(tmp_path / name, embedding=embedding()) as store:
            texts = {
                "a": f"All about {subject}.",
                "b": f"More about {subject}.",
                "c": f"Secrets of {subject}.",
            }
            store.add_documents(
                [
                    Document(
                        id=id,
                        page_content=text,
                        metadata={"open": id != "c", "links": [IN_A if id == "a" else TO_A]},
                    )
                    for id, text in texts.items()
                ]
            )
    return tmp_path


@pytest.fixture
def make_server(folders):
    """Makes a server of both stores, of which clients see what passes a filter."""
    stores = [LinkStore.open(folders / name, embedding=embedding()) for name in ("docs", "wiki")]

    def make(**filters):
        served = [
            ServedStore(scope=ToolScope(store, filter=filters.get(name)), name=name)
            for name, store in zip(("docs", "wiki"), stores, strict=True)
        ]
        return StoreServer(*served).server()

    yield make
    for store in stores:
        store.close()


async def test_each_store_has_its_tools_and_its_name_stands_in_each_result(make_server):
    async with Client(make_server()) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools[0] == "docs_search"
        assert {name.partition("_")[0] for name in tools} == {"docs", "wiki"}
        assert len(set(tools)) == len(tools) == 6
        for name, subject in (("docs", "ships"), ("wiki", "birds")):
            found = await client.call_tool(f"{name}_search", {"question": f"All about {subject}"})
            assert found.content[0].text.startswith(f"Store {name}: ")
            assert f"All about {subject}." in found.content[0].text
            assert found.structured_content["store"] == name
        with pytest.raises(MCPError):
            await client.call_tool("search", {"question": "ships"})


async def test_a_filter_of_one_store_hides_nothing_of_the_other(make_server):
    async with Client(make_server(docs={"open": True})) as client:
        for name, shown in (("docs", False), ("wiki", True)):
            found = await client.call_tool(f"{name}_search", {"question": "Secrets of birds and ships"})
            assert ("Secrets of" in found.content[0].text) == shown
        listed = {str(one.uri) for one in (await list_all(client))}
        assert "linkstore://docs/documents/c" not in listed
        assert {
            "linkstore://wiki/documents/c",
            "linkstore://wiki/report",
            "linkstore://docs/schema",
        } <= listed
        assert not {"linkstore://docs/report", "linkstore://docs/hubs"} & listed
        for hidden in ("linkstore://docs/documents/c", "linkstore://docs/report", "linkstore://docs/hubs"):
            with pytest.raises(MCPError):
                await client.read_resource(hidden)


async def list_all(client):
    listed, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        listed += page.resources
        cursor = page.next_cursor
        if cursor is None:
            return listed


async def test_lists_go_on_from_store_to_store(make_server):
    async with Client(make_server()) as client:
        listed = [str(one.uri) for one in await list_all(client)]
        documents = [f"linkstore://{name}/documents/{id}" for name in ("docs", "wiki") for id in "abc"]
        assert [address for address in listed if "/documents/" in address] == documents
        assert len(listed) == len(set(listed)) == 12
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == [
            "linkstore://docs/documents/{id}",
            "linkstore://wiki/documents/{id}",
        ]


async def test_what_is_known_of_a_store_is_a_resource(make_server):
    async with Client(make_server()) as client:

        async def read(name):
            (content,) = (await client.read_resource(f"linkstore://wiki/{name}")).contents
            assert content.mime_type == "application/json"
            return json.loads(content.text)

        assert (await read("report"))["documents"] == 3
        assert (await read("schema"))["kinds"] == ["to"]
        assert (await read("hubs"))[0] == {"kind": "to", "tag": "a", "out": 2, "in": 1, "hub": False}


async def test_instructions_name_the_stores(make_server):
    async with Client(make_server()) as client:
        assert "Stores of linked documents: docs, wiki." in client.instructions


def ask(folder, *arguments, version):
    """Greet a server of the command line as a client of a version does, and list its tools."""
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
    ) as process:
        answers = []
        for message in messages:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            if "id" in message:
                answers.append(json.loads(process.stdout.readline())["result"])
        process.stdin.close()
    return answers[0]["protocolVersion"], [tool["name"] for tool in answers[1]["tools"]]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
def test_a_client_of_an_older_version_is_served_in_it(folders, version):
    named, tools = ask(folders, "--store", "docs", version=version)

    assert named == version
    assert tools[0] == "search"


async def test_the_newest_version_of_the_sdk_is_spoken(make_server):
    async with Client(make_server()) as client:
        assert client.protocol_version == LATEST_PROTOCOL_VERSION


def test_the_command_line_names_stores_by_their_folders_or_as_it_is_told(folders):
    _, tools = ask(folders, "--store", "docs", "--store", "b=wiki", version="2025-06-18")

    assert [name for name in tools if name.endswith("_search")] == ["docs_search", "b_search"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--store", "docs", "--store", "x/docs"), "two stores are called 'docs'"),
        (("--store", "docs", "--store", "wiki", "--write"), "--write is for one --store"),
        (("--store", "docs", "--filter", "{}", "--filter", "{}"), "a store has two values"),
        (("--store", "docs", "--store", "wiki", "--filter", "docs={"), "not valid JSON"),
        (("--store", "docs", "--store", "wiki", "--install", "--index", "x"), "--index is for one --store"),
    ],
)
def test_options_that_fit_no_store_are_refused(folders, arguments, said, monkeypatch):
    monkeypatch.delenv("LINKSTORE_STORE", raising=False)
    monkeypatch.chdir(folders)
    code, _, err = linkstore("mcp", *arguments)

    assert code == 2
    assert said in err


def test_a_place_in_the_environment_may_have_spaces(folders, monkeypatch):
    (folders / "docs").rename(folders / "my docs")
    monkeypatch.setenv("LINKSTORE_STORE", "my docs")

    assert ask(folders, version="2025-06-18")[1][0] == "search"


def test_with_an_older_mcp_the_error_says_what_to_do(folders):
    """langchain-mcp-adapters 0.3 wants mcp below 2, which has no module mcp_types."""
    code = (
        "import sys, importlib.metadata as m; sys.modules['mcp_types'] = None; version = m.version\n"
        "m.version = lambda name: '1.28.0' if name == 'mcp' else version(name)\n"
        "from linkstore.cli import main; main(sys.argv[1:])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, "mcp", "--store", folders / "docs"], capture_output=True, text=True
    )

    assert ended.returncode == 1
    assert "1.28.0 is installed, as for langchain-mcp-adapters" in ended.stderr
    assert "uvx --from" in ended.stderr
