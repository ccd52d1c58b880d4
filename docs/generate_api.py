"""Writes the pages of the Python reference: which modules are public, and in what order they are read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import linkstore
from linkstore import _HOME_OF

ROOT = Path(__file__).parents[1]
MODULES = (
    "linkstore.store",
    "linkstore.links",
    "linkstore.hits",
    "linkstore.strategies",
    "linkstore.filters",
    "linkstore.retriever",
    "linkstore.ingest",
    "linkstore.extraction",
    "linkstore.embeddings",
    "linkstore.drawing",
    "linkstore.migration",
    "linkstore.migration.community",
    "linkstore.backends.cassandra.settings",
    "linkstore.errors",
    "linkstore.neighbours",
    "linkstore.urls",
    "linkstore.text",
    "linkstore.lexical",
    "linkstore.plans",
    "linkstore.backends.base",
    "linkstore.backends.embedded",
    "linkstore.vectors",
    "linkstore.testing",
    "linkstore.testing.conformance",
)
"""The modules with public names: those for users first, those for authors of backends last."""
INHERITING = {"linkstore.store"}
"""Those whose classes are shown with what they inherit within linkstore."""
INTRODUCTION = """# Python

What is public, module by module. These names are also at hand in `linkstore` itself:

{facade}

| module | what it holds |
|---|---|
{modules}

This page and those it leads to are written by `make docs` from the docstrings.
"""


def pages() -> dict[str, str]:
    """The pages of the reference: name below docs/ → text."""
    written = {"api/index.md": _index()}
    for module in MODULES:
        options = "    options:\n      inherited_members: true\n" if module in INHERITING else ""
        written[f"api/{module}.md"] = f"# {module} {{ #{module} }}\n\n::: {module}\n{options}"
    return written


def _index() -> str:
    facade = " ·\n".join(
        f"[`{name}`](linkstore.{_HOME_OF[name]}.md#linkstore.{_HOME_OF[name]}.{name})"
        for name in linkstore.__all__
        if name in _HOME_OF
    )
    modules = "\n".join(f"| [{module}]({module}.md) | {_says(module)} |" for module in MODULES)
    return INTRODUCTION.format(facade=facade, modules=modules)


def _says(module: str) -> str:
    """The first line of a module's docstring, without its full stop."""
    path = next(_files(module))
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return docstring.partition("\n")[0].rstrip(".").replace("``", "`")


def _files(module: str) -> Iterator[Path]:
    base = ROOT.joinpath(*module.split("."))
    yield from (path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists())
