"""What a command imports before it answers: only what it uses."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from gc import get_threshold
from signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal

import pytest
from internals import end_at_once, main

from linkstore import LinkStore

LIST_MODULES = """
import sys
from linkstore.cli import main
try:
    main(sys.argv[1:])
except SystemExit as done:
    assert not done.code, done.code
print(*sorted(sys.modules), file=sys.stderr)
"""
LIBRARIES = {
    "annotated_doc",
    "annotated_types",
    "apsw",
    "attr",  # of old versions of rich, where it is installed
    "ctypes",
    "langchain_core",
    "lazy_loader",
    "linkstore",
    "markdown_it",
    "mdurl",
    "numpy",
    "orjson",
    "pydantic",
    "pydantic_core",
    "pygments",
    "rich",
    "shellingham",
    "typer",
    "typing_extensions",
    "typing_inspection",
    "w3lib",
    "xxhash",
}
"""The packages, beside Python's own, that a command that reads a small store may import."""
OF_MODEL = {"safetensors", "tokenizers"}
LANGCHAIN = {"_api", "_import_utils", "documents", "load", "version"}
"""The parts of langchain-core that documents need; ``runnables`` would bring tracers, and those langsmith."""
FOLDERS = {"_version", "cli", "core", "embeddings", "engines", "errors", "store", "strategies"}
"""The parts of linkstore that a command that reads a small store may import."""

RICH = {"rich", "pygments", "markdown_it", "mdurl", "attr"}
"""What only a terminal needs."""
MODULES = {
    "cli": "commands exits output query stores",
    "core": "arguments arrays calls display documents filters hits lexical links plans processes text"
    " vocabulary",
    "embeddings": "encoder names onnx wordllama",
    "engines": "bookkeeping contract embedded",
    "engines.embedded": "backend database derived files filters lexical location maintenance memory mirror"
    " reader schema vectors writing",
    "store": "base core documents embedding misspellings search usage",
    "strategies": "base eager first_stage mmr names observers pagerank resolver results traversal",
}
"""The modules of linkstore that a query imports, by folder: a further one is paid for by each query."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A small store in a folder."""
    place = tmp_path_factory.mktemp("store")
    with LinkStore.open(place) as store:
        store.add_texts(["A hub is not followed.", "Links lead on."], ids=["a", "b"])
    return str(place)


@cache
def imported(*arguments: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", LIST_MODULES, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stderr.splitlines()[-1].split()


def parts(modules: list[str], package: str) -> set[str]:
    """The modules and packages directly below a package."""
    return {name.split(".")[1] for name in modules if name.startswith(f"{package}.")}


COMMANDS = [
    (("query", "What is a hub?"), (LIBRARIES | OF_MODEL) - RICH, FOLDERS),
    (("links", "a"), LIBRARIES, FOLDERS),
    (("doctor", "--verify"), LIBRARIES, FOLDERS),
]


@pytest.mark.parametrize(("command", "libraries", "folders"), COMMANDS, ids=[one[0][0] for one in COMMANDS])
def test_a_command_imports_what_it_uses_and_no_tracer_and_no_crawler(place, command, libraries, folders):
    modules = imported(*command, "--store", place)
    tops = {name.split(".")[0] for name in modules}
    foreign = {name for name in tops - sys.stdlib_module_names if not name.startswith("_")}
    assert foreign <= libraries
    assert parts(modules, "langchain_core") <= LANGCHAIN
    assert parts(modules, "linkstore") <= folders


def test_a_query_imports_these_modules_of_linkstore(place):
    listed = {f"linkstore.{folder}.{name}" for folder, names in MODULES.items() for name in names.split()}
    modules = imported("query", "What is a hub?", "--store", place)
    assert {name for name in modules if name.count(".") > 1 and name.startswith("linkstore.")} == listed


def test_indexing_imports_no_tracer_and_no_base_class_of_stores(tmp_path):
    site, store = tmp_path / "site", tmp_path / "kb"
    site.mkdir()
    (site / "a.html").write_text("<h1>A hub</h1><p>It is not followed.</p>")
    for _ in range(2):
        modules = imported("index", str(site), "--store", str(store))
        assert parts(modules, "langchain_core") <= LANGCHAIN
        imported.cache_clear()


def test_a_query_imports_nothing_of_cassandra_and_no_index_of_usearch(place):
    modules = imported("query", "What is a hub?", "--store", place)
    assert not [name for name in modules if "cassandra" in name or name.startswith(("usearch", "langsmith"))]


@pytest.mark.parametrize("command", [one[0] for one in COMMANDS], ids=[one[0][0] for one in COMMANDS])
def test_a_command_imports_no_other_command_no_event_loop_and_no_masked_arrays(place, command):
    modules = set(imported(*command, "--store", place))
    assert not modules & {"asyncio", "ssl", "numpy.ma", "linkstore.cli.index", "linkstore.cli.evaluate"}


def test_a_server_for_models_imports_no_tracer_and_no_base_class_of_stores_or_tools(place):
    """It has no client, so it ends at once."""
    pytest.importorskip("mcp")
    modules = imported("mcp", "--store", place)
    assert "mcp.server.lowlevel" in modules
    assert not [name for name in modules if name.startswith("langsmith")]
    assert parts(modules, "langchain_core") <= LANGCHAIN


def test_the_collector_looks_seldom_while_a_command_runs_and_as_before_afterwards(monkeypatch):
    seen = []
    monkeypatch.setattr("linkstore.cli.output.prepare_streams", lambda: None)
    monkeypatch.setattr(
        "linkstore.cli.commands.make_application", lambda names: lambda **_: seen.append(get_threshold())
    )
    before = get_threshold()
    main(["doctor"])
    assert seen[0][0] > before[0]
    assert get_threshold() == before


def test_an_interrupt_while_modules_are_imported_ends_the_process_at_once_and_without_a_traceback(tmp_path):
    """The module that is imported sends it; a handler of Python's would raise from within the import."""
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for what runs behind\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numpy':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from linkstore.cli import main\n"
        "main(['doctor', '--store', sys.argv[1]])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (-SIGINT, "", "")


def test_ctrl_c_is_python_s_again_once_modules_are_imported():
    before = getsignal(SIGINT)
    with end_at_once():
        assert getsignal(SIGINT) in {SIG_DFL, before}
    assert getsignal(SIGINT) is before


def test_a_handler_of_the_program_around_is_left_alone():
    signal(SIGINT, lambda *_: None)
    try:
        own = getsignal(SIGINT)
        with end_at_once():
            assert getsignal(SIGINT) is own
    finally:
        signal(SIGINT, default_int_handler)


def test_the_module_is_the_command_line(place):
    run = subprocess.run(
        [sys.executable, "-m", "linkstore", "doctor", "--json", "--store", place],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert '"documents": 2' in run.stdout
