"""Imports go downwards only, and few names are public."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLOORS = (
    {"_version", "errors"},
    {"core"},
    {"embeddings", "extract", "engines", "strategies"},
    {"store"},
    {"context", "ingest", "llama_index"},
    {"agents", "evaluate", "mkdocs", "sphinx"},
    {"memory"},
    {"explorer"},
    {"cli"},
    {"__main__"},
)
"""Folders, and the few modules beside them, from the ground up; each imports from its own floor and below."""
UPWARDS = {("linkstore.store.constructors", "ingest")}
"""Only the constructors that index import from above, when they are called: people look for them there."""
EXTRACTORS_MAY_IMPORT = {"core", "extract", "errors"}
FACADE = {
    "Hit",
    "Hits",
    "Link",
    "LinkRetriever",
    "LinkStore",
    "LinkStoreError",
    "Path",
    "PathStep",
    "__version__",
    "add_links",
    "copy_with_links",
    "get_links",
}
MODULE_NAME = re.compile(r"linkstore(\.\w+)+")
WITHOUT_ENGINE = {"numpy", "langchain_core", "usearch", "apsw", "rich", "selectolax", "tokenizers"}


def modules(package: Path) -> Iterator[tuple[str, Path]]:
    """Dotted names of a package's modules, and their files."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Return the dotted names of all that a module imports, wherever in it."""
    return tuple(names_imported(path))


def names_imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and MODULE_NAME.fullmatch(node.value)
        ):
            yield node.value  # it may be imported by this name
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def folder(name: str) -> str | None:
    """Return the folder in which a dotted name of linkstore lies; None for ``linkstore`` and others."""
    parts = name.split(".")
    return parts[1] if parts[0] == "linkstore" and len(parts) > 1 and parts[1] in FLOOR_OF else None


FLOOR_OF = {name: number for number, floor in enumerate(FLOORS) for name in floor}
OURS = dict(modules(ROOT / "linkstore"))
THEIRS = dict(modules(ROOT / "extractors" / "linkstore_extractors"))


def test_every_module_lies_in_a_folder():
    assert [name for name in OURS if name != "linkstore" and folder(name) is None] == [], (
        "add these to FLOORS"
    )


def test_a_module_imports_only_from_its_own_floor_and_those_below():
    """Also where the import stands inside a function."""
    upwards = []
    for name, path in OURS.items():
        own = folder(name)
        if own is not None:
            for imported in imports(path):
                other = folder(imported)
                if other is not None and FLOOR_OF[other] > FLOOR_OF[own] and (name, other) not in UPWARDS:
                    upwards.append(f"{name} imports {imported}, above it")
    assert upwards == []


def test_folders_do_not_import_each_other_in_a_circle():
    """Every folder can be read after those it imports."""
    needs: dict[str, set[str]] = {name: set() for floor in FLOORS for name in floor}
    for name, path in OURS.items():
        own = folder(name)
        if own is not None:
            others = set(filter(None, map(folder, imports(path)))) - {own}
            needs[own] |= {other for other in others if (name, other) not in UPWARDS}
    while needs:
        free = {name for name, wanted in needs.items() if not wanted & needs.keys()}
        assert free, f"these import each other in a circle: {sorted(needs)}"
        needs = {name: wanted for name, wanted in needs.items() if name not in free}


def test_the_page_of_architecture_names_every_folder():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = {name for floor in FLOORS for name in floor if not name.startswith("_")}
    assert {name for name in folders if f"`{name}`" not in page} == set()


def test_engines_do_not_know_each_other():
    """What both have in common lies in ``core`` and ``engines.contract``."""
    for own, other in (("embedded", "cassandra"), ("cassandra", "embedded")):
        assert [
            f"{name} imports {imported}"
            for name, path in OURS.items()
            if name.startswith(f"linkstore.engines.{own}")
            for imported in imports(path)
            if imported.startswith(f"linkstore.engines.{other}")
        ] == []


def test_an_extractor_knows_links_urls_and_text_and_nothing_else_of_linkstore():
    """So that anybody can write one."""
    assert [
        f"{name} imports {imported}"
        for name, path in THEIRS.items()
        for imported in imports(path)
        if folder(imported) not in {*EXTRACTORS_MAY_IMPORT, None}
    ] == []


def test_linkstore_never_imports_its_extractors():
    """They are found by entry point, as those of third parties are."""
    assert [
        f"{name} imports {imported}"
        for name, path in OURS.items()
        for imported in imports(path)
        if imported.split(".")[0] == "linkstore_extractors"
    ] == []


def test_the_public_names_are_these():
    """A new one is a promise: add it here on purpose."""
    import linkstore

    assert set(linkstore.__all__) == FACADE
    assert all(hasattr(linkstore, name) for name in FACADE)


def test_the_command_line_starts_without_the_engine():
    """What is heavy is imported inside the commands, so that --help stays quick."""
    code = "import sys, linkstore.cli; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not WITHOUT_ENGINE & set(loaded.stdout.split())
