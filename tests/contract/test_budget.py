"""The size of the house: what nobody counts grows again. Pay for what you add by removing something."""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.memory import ConversationMemory

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "linkstore", ROOT / "extractors" / "linkstore_extractors")
MAX_LINES = 42_798
MAX_MODULES = 265
MAX_EXPORTED = 110
"""Names that the packages export, each as often as it is exported."""
MAX_STORE_NAMES = 60
MAX_OTHER_IMPORTS = 60
MAX_FILES = {"add": 22, "similarity_search": 29, "search": 34, "recall": 44}
"""Files of linkstore that run, in a process that has done the same before."""
MAX_SEARCH_FUNCTIONS = 229
MAX_SEARCH_CALLS = 779
"""Functions of linkstore that a default search runs, and how often it enters one; as many again at each value
of a generator. Python 3.11 also counts comprehensions."""


def modules() -> list[Path]:
    return [path for package in PACKAGES for path in package.rglob("*.py")]


def stubs() -> list[Path]:
    """List what the packages say that they export; lines of code too, but no modules."""
    return [path for package in PACKAGES for path in package.rglob("*.pyi")]


def count_code(path: Path) -> int:
    """Count the lines of a module without docstrings (also those of attributes), comments and blanks."""
    source = path.read_text()
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef):
            documented = node.body
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = node.body[:1]
        else:
            continue
        for statement in documented:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                left_out.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    ignored = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in {*ignored, tokenize.ENDMARKER}:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - left_out)


def count_calls(call: Callable[[], object]) -> Counter[tuple[str, str]]:
    """Count how often a call enters each function of linkstore, by file and name."""
    entered: Counter[tuple[str, str]] = Counter()
    package = str(ROOT / "linkstore")

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(package):
            entered[frame.f_code.co_filename.removeprefix(package), frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return entered


@pytest.fixture
def calls(tmp_path) -> Iterator[dict[str, Callable[[], object]]]:
    with LinkStore.open(tmp_path / "kb") as store:
        memory = ConversationMemory(store)
        for number in range(3):
            store.add_texts([f"A hub has {number} links."], ids=[f"h{number}"])
        memory.add("s", "What is a hub?", "A hub has many links.")
        yield {
            "add": lambda: store.add_texts(["A spoke has one link."], ids=["spoke"]),
            "similarity_search": lambda: store.similarity_search("What is a hub?"),
            "search": lambda: store.search("What is a hub?"),
            "recall": lambda: memory.recall("s", "How many links does it have?"),
        }


def test_there_are_no_more_lines_and_modules_than_agreed():
    assert sum(map(count_code, [*modules(), *stubs()])) <= MAX_LINES
    assert len(modules()) <= MAX_MODULES


def test_there_are_no_more_public_names_than_agreed():
    exported = [
        f"{path.parent.relative_to(ROOT)} {alias.asname}"
        for path in stubs()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    ]
    assert len(exported) <= MAX_EXPORTED, exported


def test_tests_import_public_names_or_what_tests_share():
    """A name of another module stands in ``tests/support/internals.py``, where a rename is mended once."""
    public = {"linkstore.errors", "linkstore_extractors"}
    public |= {".".join(path.parent.relative_to(ROOT).parts) for path in stubs()}
    others = [
        f"{path.relative_to(ROOT)}: {node.module}"
        for path in (ROOT / "tests").rglob("*.py")
        if "support" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("linkstore")
        if node.module not in public
    ]
    assert len(others) <= MAX_OTHER_IMPORTS, others


def test_a_store_has_no_more_public_names_than_agreed():
    """LangChain's own 28 included."""
    assert len([name for name in dir(LinkStore) if not name.startswith("_")]) <= MAX_STORE_NAMES


@pytest.mark.parametrize("name", MAX_FILES)
def test_a_call_runs_through_no_more_files_than_agreed(calls, name):
    calls[name]()
    crossed = {file for file, _ in count_calls(calls[name])}
    assert len(crossed) <= MAX_FILES[name], sorted(crossed)


def test_a_search_runs_through_no_more_functions_than_agreed(tmp_path):
    documents = [
        Document(
            id=f"h{number}",
            page_content=f"A hub {number} has {number} links to spokes and rims.",
            metadata={
                "page": f"p{number}",
                "links": [
                    {"kind": "hyperlink", "tag": f"p{(number * 7 + 1) % 200}", "direction": "out"},
                    {"kind": "hyperlink", "tag": f"p{number}", "direction": "in"},
                    {"kind": "keyword", "tag": f"k{number % 20}", "direction": "bidir"},
                ],
            },
        )
        for number in range(200)
    ]
    with LinkStore.open(tmp_path / "kb") as store:
        store.add_documents(documents)
        for _ in range(2):
            store.search("What is a hub with many links?")
        entered = count_calls(lambda: store.search("What is a hub with many links?"))
    assert len(entered) <= MAX_SEARCH_FUNCTIONS, sorted(entered)
    assert entered.total() <= MAX_SEARCH_CALLS, entered.most_common(20)
