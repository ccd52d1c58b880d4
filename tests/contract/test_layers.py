"""Imports go downwards only, and few names are public."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLOORS = (
    {
        "_version",
        "arguments",
        "arrays",
        "canonical",
        "cores",
        "display",
        "freshpython",
        "gc_pause",
        "lazy",
        "errors",
        "letters",
        "linkfields",
        "links",
        "filters",
        "hits",
        "ids",
        "metadata",
        "pagedocuments",
        "storedlinks",
        "urls",
        "text",
        "vectors",
        "vocabulary",
        "embeddings",
    },
    {"drawing", "drivers", "extraction", "lexical", "observing", "plans", "order", "schema", "variants"},
    {"strategies", "backends.base", "backends.reader", "neighbours"},
    {
        "backends.cassandra",
        "backends.embedded",
        "floors",
        "identity",
        "operations",
        "requests",
        "schemachange",
        "schemacheck",
        "searchoptions",
    },
    {"store", "retriever", "tracing"},
    {"context", "ingest", "evaluation", "migration", "snippet", "twins", "watch"},
    {"memory", "testing", "tools"},
    {"agents"},
    {"demo", "cli", "server"},
    {"__main__"},
)
"""Rooms from the ground up; a room imports from its own floor and from those below."""
EXTRACTORS_MAY_IMPORT = {"links", "urls", "text", "extraction", "errors"}
FACADE = {
    "Hit",
    "Hits",
    "Link",
    "LinkRetriever",
    "LinkStore",
    "LinkStoreError",
    "Path",
    "Step",
    "__version__",
    "add_links",
    "copy_with_links",
    "get_links",
}
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
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(name: str) -> str | None:
    """The room a dotted name of linkstore lies in; None for the package itself and for others."""
    parts = name.split(".")
    if parts[0] != "linkstore":
        return None
    rooms = {room for floor in FLOORS for room in floor}
    return next((found for end in (3, 2) if (found := ".".join(parts[1:end])) in rooms), None)


FLOOR_OF = {name: number for number, floor in enumerate(FLOORS) for name in floor}
OURS = dict(modules(ROOT / "linkstore"))
THEIRS = dict(modules(ROOT / "extractors" / "linkstore_extractors"))
DOORS = {"linkstore", "linkstore.backends"}
"""Packages that only hold rooms."""


def test_every_module_lies_in_a_room():
    assert [name for name in OURS if name not in DOORS and room(name) is None] == [], "add these to FLOORS"


def test_a_module_imports_only_from_its_own_floor_and_those_below():
    """Also where the import stands inside a function."""
    upwards = []
    for name, path in OURS.items():
        own = room(name)
        if own is not None:
            for imported in imports(path):
                other = room(imported)
                if other is not None and FLOOR_OF[other] > FLOOR_OF[own]:
                    upwards.append(f"{name} imports {imported}, above it")
    assert upwards == []


def test_rooms_do_not_import_each_other_in_a_circle():
    """Every room can be read after those it imports."""
    needs: dict[str, set[str]] = {name: set() for floor in FLOORS for name in floor}
    for name, path in OURS.items():
        own = room(name)
        if own is not None:
            needs[own] |= {other for other in map(room, imports(path)) if other and other != own}
    while needs:
        free = {name for name, wanted in needs.items() if not wanted & needs.keys()}
        assert free, f"these import each other in a circle: {sorted(needs)}"
        needs = {name: wanted for name, wanted in needs.items() if name not in free}


ENGINES = {"backends.embedded", "backends.cassandra"}


def test_the_page_of_architecture_names_every_room():
    table = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {room for floor in FLOORS for room in floor if not room.startswith("_")}
    assert {room for room in rooms if f"`{room}`" not in table} == set()


def test_only_the_store_knows_which_backend_there_is():
    """Nothing else above the backends imports one of them, but what reads tables that are not ours."""
    users = {
        room(name)
        for name, path in OURS.items()
        if any((room(imported) or "") in ENGINES for imported in imports(path))
    }
    assert users - {*ENGINES, None} <= {"store", "migration"}


def test_an_extractor_knows_links_urls_and_text_and_nothing_else_of_linkstore():
    """So that anybody can write one."""
    assert [
        f"{name} imports {imported}"
        for name, path in THEIRS.items()
        for imported in imports(path)
        if room(imported) not in {*EXTRACTORS_MAY_IMPORT, None}
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
