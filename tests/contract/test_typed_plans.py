"""A type checker knows what each fetch, call and operation of a plan returns."""

from __future__ import annotations

import subprocess
import sys

import pytest

PRELUDE = """
from linkstore import LinkStore
from linkstore.core.arrays import Ints
from linkstore.core.calls import Operation, call, call_engine, call_plan
from linkstore.core.plans import EngineOperation, Find, Ids, Plan, StoredDocument, Tags, ask, read_documents
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Manifest, Reader
"""
RIGHT = {
    "a fetch": "def plan(refs: Ints) -> Plan[list[str]]:\n    return (yield from ask(Ids(refs=refs)))",
    "a plan": "def plan() -> Plan[list[StoredDocument]]:\n    return (yield from read_documents(['a']))",
    "a reader": "def read(reader: Reader, fetch: Tags) -> EngineOperation[list[tuple[str, str]]]:\n"
    "    return (yield from reader.answer(fetch))",
    "an engine": "def look(backend: Backend) -> Operation[Manifest]:\n"
    "    return (yield from call_engine(backend, backend.manifest()))",
    "a call": "def add(store: LinkStore, texts: list[str]) -> Operation[list[str]]:\n"
    "    return (yield from call(store.add_texts, store.aadd_texts, texts))",
}
WRONG = {
    "a fetch": "def plan(refs: Ints) -> Plan[list[int]]:\n    return (yield from ask(Ids(refs=refs)))",
    "a name": "def plan() -> Plan[None]:\n    found: str = yield from ask(Find(ids=()))",
    "a plan": "def plan() -> Plan[list[str]]:\n    return (yield from read_documents(['a']))",
    "a reader": "def read(reader: Reader, fetch: Tags) -> EngineOperation[list[str]]:\n"
    "    return (yield from reader.answer(fetch))",
    "an engine": "def look(backend: Backend) -> Operation[str]:\n"
    "    return (yield from call_engine(backend, backend.manifest()))",
    "a plan of an engine": "def look(backend: Backend) -> Operation[list[str]]:\n"
    "    return (yield from call_plan(backend, read_documents(['a'])))",
    "a call": "def add(store: LinkStore, texts: list[str]) -> Operation[int]:\n"
    "    return (yield from call(store.add_texts, store.aadd_texts, texts))",
    "an argument": "def add(store: LinkStore) -> Operation[list[str]]:\n"
    "    return (yield from call(store.add_texts, store.aadd_texts, 7))",
    "another form": "def add(store: LinkStore, texts: list[str]) -> Operation[list[str]]:\n"
    "    return (yield from call(store.add_texts, store.adelete, texts))",
    "a fetch in an operation": "def look(refs: Ints) -> Operation[list[str]]:\n"
    "    return (yield from ask(Ids(refs=refs)))",
}


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the modules in which mypy finds an error; it checks all in one run."""
    folder = tmp_path_factory.mktemp("typed")
    for group, cases in (("right", RIGHT), ("wrong", WRONG)):
        for name, code in cases.items():
            path = folder / f"{group}_{name.replace(' ', '_')}.py"
            path.write_text(f"{PRELUDE}\n\n{code}\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return {
        line.partition(":")[0].rpartition("/")[2] for line in done.stdout.splitlines() if ": error:" in line
    }


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_type_is_accepted(refused: set[str], name: str) -> None:
    assert f"right_{name.replace(' ', '_')}.py" not in refused


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_type_is_refused(refused: set[str], name: str) -> None:
    assert f"wrong_{name.replace(' ', '_')}.py" in refused
