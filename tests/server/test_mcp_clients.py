"""The server as the SDK's own client sees it: in one process, over stdin and stdout, and over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import asynccontextmanager

import drugs
import httpx2
import pytest
from internals import PROMPT_NAME, ServedStore, StoreServer, ToolScope, find_line_error, make_address
from langchain_core.documents import Document
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_serving import COMMAND, QUESTION, TOKEN, serving
from stores import embedding

from linkstore import LinkStore
from linkstore.agents import ToolLimits, graph_tools

INTO_B = {"kind": "to", "tag": "b", "direction": "in"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store of drugs."""
    path = tmp_path_factory.mktemp("mcp") / "kb"
    with LinkStore.open(path) as store:
        store.add_documents(list(drugs.documents()))
    return path


@pytest.fixture(scope="module")
def port(folder):
    with serving(folder) as port:
        yield port


@asynccontextmanager
async def over_http(port, token=TOKEN):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        yield Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http))


@asynccontextmanager
async def over_stdio(folder):
    yield Client(
        StdioServerParameters(
            command=COMMAND[0],
            args=[*COMMAND[1:], "--store", str(folder), "--about", "drugs"],
            env=dict(os.environ),  # by default a few of its variables, and some decide how BLAS sums
        )
    )


@asynccontextmanager
async def in_process(store, limits=None, filter=None):
    scope = ToolScope(store, limits or ToolLimits(), filter)
    async with Client(StoreServer(ServedStore(scope=scope)).server()) as client:
        yield client


def names_of(listed):
    """The names of the documents among resources."""
    return [one.name for one in listed.resources if "/documents/" in str(one.uri)]


@pytest.fixture(params=["stdio", "http"])
def connected(request, folder, port):
    """Makes a client over either transport."""
    return lambda: over_stdio(folder) if request.param == "stdio" else over_http(port)


async def test_a_client_over_either_transport_gets_what_agents_get(connected, folder):
    """The text and the data of LangChain's tools, with the same errors, in one session."""
    question = {"question": drugs.question(drugs.drugs()[9])}
    async with connected() as unconnected, unconnected as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["search", "follow", "read"]
        assert all(tool.annotations.read_only_hint for tool in tools.values())
        assert tools["search"].input_schema["required"] == ["question"]
        with LinkStore.open(folder, create=False) as store:
            search = graph_tools(store)[0]
            expected = search.invoke({"name": "search", "args": question, "id": "1", "type": "tool_call"})
        found = await client.call_tool("search", question)
        assert not found.is_error
        assert found.content[0].text == expected.content
        assert found.structured_content == expected.artifact
        for arguments, says in (
            ({"quest": "x"}, "question is missing"),
            ({"question": "x", "hops": 2}, "hops is no argument"),
        ):
            failed = await client.call_tool("search", arguments)
            assert failed.is_error
            assert says in failed.content[0].text
        kinds = await client.call_tool("follow", {"id": "class/7", "kinds": ["GOVERND_BY"]})
        assert "did you mean 'GOVERNED_BY'" in kinds.content[0].text
        forgiven = await client.call_tool("search", {"query": question["question"]})
        assert forgiven.content[0].text == expected.content


async def test_other_tools_are_offered_by_name(folder):
    arguments = [*COMMAND[1:], "--store", str(folder), "--tool", "match", "--tool", "path"]
    async with Client(StdioServerParameters(command=COMMAND[0], args=arguments)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["match", "path"]


async def test_documents_are_resources_listed_page_by_page_and_read(connected):
    async with connected() as unconnected, unconnected as client:
        first = await client.list_resources()
        assert [one.name for one in first.resources[:3]] == ["schema", "report", "hubs"]
        assert len(names_of(first)) == 100
        listed, cursor = names_of(first), first.next_cursor
        while cursor is not None:
            page = await client.list_resources(cursor=cursor)
            assert len(page.resources) == len(names_of(page))
            listed += names_of(page)
            cursor = page.next_cursor
        assert sorted(listed) == sorted(one.id for one in drugs.documents())
        read = await client.read_resource(make_address("class/7"))
        assert read.contents[0].text == "Molecule class number 7."
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template.format(id="x") == make_address("x")


async def test_a_long_document_is_read_in_parts_at_addresses_of_their_own():
    text = "".join(f"line {n} of the document\n" for n in range(1_000))
    with LinkStore() as store:
        store.add_documents([Document(id="a?offset=5", page_content=text)])
        async with in_process(store) as client:
            parts, address = [], make_address("a?offset=5")
            while address is not None:
                part, *more = (await client.read_resource(address)).contents
                assert len(part.text) <= ToolLimits().text
                parts.append(part.text)
                address = more[0].uri if more else None
                assert not more or f"read on at {address}" in more[0].text
            assert "".join(parts) == text
            assert len(parts) == -(-len(text) // ToolLimits().text)
            for wrong in (str(len(text)), "-1", "x", "", "9" * 5_000):
                with pytest.raises(MCPError):
                    await client.read_resource(f"{make_address('a?offset=5')}?offset={wrong}")


async def test_the_prompt_contains_the_question(connected):
    async with connected() as unconnected, unconnected as client:
        (prompt,) = (await client.list_prompts()).prompts
        assert (prompt.name, prompt.arguments[0].required) == (PROMPT_NAME, True)
        given = await client.get_prompt(PROMPT_NAME, {"question": "Why?"})
        assert "Question: Why?" in given.messages[0].content.text


async def test_what_is_not_there_is_an_error_of_the_protocol(folder):
    with LinkStore.open(folder) as store:
        async with in_process(store) as client:
            for asked in (
                client.call_tool("delete", {}),
                client.read_resource("linkstore:///documents/nope"),
                client.read_resource("linkstore:///documents/"),
                client.read_resource("file:///etc/passwd"),
                client.read_resource("linkstore:///reports"),
                client.read_resource("linkstore://other/report"),
                client.list_resources(cursor="other/class/7"),
                client.read_resource("linkstore:///documents/../../etc/passwd"),
                client.list_resources(cursor=""),
                client.list_resources(cursor="\0"),
                client.get_prompt("other", {"question": "x"}),
                client.get_prompt(PROMPT_NAME, {}),
            ):
                with pytest.raises(MCPError) as caught:
                    await asked
                assert caught.value.code == -32602


async def test_ids_of_any_letters_have_addresses():
    names = ["a b", "ü/ñ#x?y=%20", "中文", "../up", "https://example.org/a?b#c", "x" * 500]
    with LinkStore() as store:
        store.add_documents([Document(id=name, page_content=f"text of {name}") for name in names])
        async with in_process(store) as client:
            for one in (await client.list_resources()).resources[3:]:
                (content,) = (await client.read_resource(one.uri)).contents
                assert content.text == f"text of {one.name}"


async def test_a_filter_hides_documents_from_lists_and_addresses(folder):
    with LinkStore.open(folder) as store:
        async with in_process(store, filter={"type": "regulation"}) as client:
            found = names_of(await client.list_resources())
            assert found
            assert all(name.startswith("regulation/") for name in found)
            with pytest.raises(MCPError):
                await client.read_resource(make_address("class/7"))


async def test_a_list_tells_nothing_of_hidden_documents_however_many_there_are():
    hidden = [Document(id=f"hidden-{n:04}", page_content="x") for n in range(1_200)]
    shown = [
        Document(id=f"{at}-shown-{n:03}", page_content="y", metadata={"open": True})
        for at in ("a", "z")
        for n in range(60)
    ]
    with LinkStore(embedding()) as store:
        store.add_documents([*hidden, *shown])
        async with in_process(store, filter={"open": True}) as client:
            first = await client.list_resources()
            assert "shown" in first.next_cursor
            second = await client.list_resources(cursor=first.next_cursor)
            names = names_of(first) + names_of(second)
            assert sorted(names) == sorted(one.id for one in shown)
            assert second.next_cursor is None
            other = await client.list_resources(cursor="/hidden-0500")
            assert all("shown" in one.name for one in other.resources)


async def test_only_a_server_that_is_told_to_writes(folder, port, tmp_path):
    with LinkStore.open(folder) as store:
        async with in_process(store) as client:
            for name in ("add", "delete"):
                with pytest.raises(MCPError):
                    await client.call_tool(name, {"id": "class/7", "text": "x"})
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--store", str(tmp_path / "own"), "--write"]
    )
    with LinkStore.open(tmp_path / "own") as store:
        store.add_documents([Document(id="b", page_content="the second", metadata={"links": [INTO_B]})])
    async with Client(parameters) as client:
        tools = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        assert [name for name, hints in tools.items() if not hints.read_only_hint] == ["add", "delete"]
        new = {
            "id": "a",
            "text": "the first",
            "metadata": {"n": 1},
            "links": [{**INTO_B, "direction": "out"}],
        }
        assert (await client.call_tool("add", new)).content[0].text == "[a] was added."
        assert (await client.call_tool("add", new)).content[0].text == "[a] was replaced."
        assert "[b]" in (await client.call_tool("follow", {"id": "a"})).content[0].text
        for wrong in ({**new, "links": [{"kind": "to"}]}, {**new, "text": " "}, {**new, "id": ""}):
            assert (await client.call_tool("add", wrong)).is_error
        assert (await client.call_tool("delete", {"id": "a"})).content[0].text == "[a] was deleted."
        assert (await client.call_tool("delete", {"id": "a"})).is_error
    with LinkStore.open(tmp_path / "own") as store:
        assert [one.id for one in store.scan()] == ["b"]


async def test_a_failure_of_the_store_is_told_without_details(caplog):
    store = LinkStore()
    async with in_process(store, ToolLimits()) as client:
        store.close()
        failed = await client.call_tool("search", {"question": "tea"})
        assert failed.is_error
        assert failed.content[0].text == "The store failed; the log of the server says how."
        with pytest.raises(MCPError, match="The store failed"):
            await client.list_resources()
    assert "StoreClosedError" in caplog.text


async def test_a_wrong_token_is_refused(port):
    with pytest.raises(Exception) as caught:
        async with over_http(port, "wrong" * 5) as unconnected, unconnected as client:
            await client.list_tools()
    assert "401" in repr(caught.value) or isinstance(caught.value, MCPError | ExceptionGroup)


def test_stdout_has_nothing_but_the_protocol(folder):
    """What is not JSON is answered as JSON, or not at all; the process ends when its input ends."""
    lines = b'not json\n{"jsonrpc": "2.0"}\n\x00\xff\n{"jsonrpc": "2.0", "id": 5, "method": "ping"}\n'
    ended = subprocess.run([*COMMAND, "--store", str(folder)], input=lines, capture_output=True, timeout=60)
    assert ended.returncode == 0
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert all(one["jsonrpc"] == "2.0" for one in answers)


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        ("{not json", -32700, None),
        ("[" * 100_000, -32700, None),
        ("[]", -32600, None),
        ('{"jsonrpc":"2.0","id":7,"method":"x","params":{"q":"half \\ud83d"}}', -32600, 7),
        ('{"jsonrpc":"1.0","id":"a","method":"x"}', -32600, "a"),
        ('{"jsonrpc":"2.0","id":"\\ud800","method":"\\ud800"}', -32600, None),
        ('{"jsonrpc":"2.0","id":true,"method":5}', -32600, None),
    ],
    ids=range(7),
)
def test_a_line_that_is_no_message_gets_its_error(line, code, id):
    error = find_line_error(line)
    assert error is not None
    given = json.loads(error.model_dump_json(by_alias=True, exclude_unset=True))
    assert (given["id"], given["error"]["code"]) == (id, code)


def test_messages_and_blank_lines_are_no_errors():
    for line in ("", " \n", '{"jsonrpc":"2.0","id":2,"method":"ping"}'):
        assert find_line_error(line) is None


def test_an_interrupt_ends_a_server_whose_client_waits(folder):
    process = subprocess.Popen(
        [*COMMAND, "--store", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        process.stdin.write(json.dumps(QUESTION).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 130
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--http", "--host", "0.0.0.0"], "can be reached by others"),
        (["--http", "--token", "short"], "at least 16 characters"),
        (["--filter", "{"], "--filter is not valid JSON"),
        (["--filter", '{"type": "drug"}', "--write"], "documents that they do not see"),
    ],
)
def test_options_that_make_no_sense_are_refused(folder, arguments, says):
    ended = subprocess.run(
        [*COMMAND, "--store", str(folder), *arguments], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2
    assert says in ended.stderr
    assert ended.stdout == ""


def test_without_a_store_there_is_no_server(tmp_path):
    ended = subprocess.run([*COMMAND, "--store", str(tmp_path / "none")], capture_output=True, timeout=60)
    assert ended.returncode == 3
    assert not (tmp_path / "none").exists()
