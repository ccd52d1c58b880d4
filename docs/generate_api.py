"""Writes the pages of the Python reference: which modules are public, and in what order they are read."""

from __future__ import annotations

import ast
import tomllib
from importlib import import_module
from pathlib import Path

import linkstore

ROOT = Path(__file__).parents[1]
ORDER = (
    "linkstore.store",
    "linkstore.core.links",
    "linkstore.core.hits",
    "linkstore.strategies",
    "linkstore.core.filters",
    "linkstore.context",
    "linkstore.memory",
    "linkstore.agents",
    "linkstore.evaluate",
    "linkstore.ingest",
    "linkstore.extract",
    "linkstore.extract.names",
    "linkstore.embeddings",
    "linkstore.store.community",
    "linkstore.engines.cassandra.settings",
    "linkstore.errors",
    "linkstore.strategies.neighbours",
    "linkstore.core.urls",
    "linkstore.core.text",
    "linkstore.core.lexical",
    "linkstore.core.plans",
    "linkstore.core.calls",
    "linkstore.core.arrays",
    "linkstore.strategies.observers",
    "linkstore.engines.bookkeeping",
    "linkstore.engines.contract",
    "linkstore.engines.embedded",
)
"""Modules for users come first, those for authors of backends last; packages not named here in between."""
LAST = ORDER.index("linkstore.strategies.neighbours")
ELSEWHERE = {"linkstore", "linkstore.cli", "linkstore.core", "linkstore.engines"}
"""Their names are on the pages of their modules; the command line has a reference of its own."""
FIRST = {"linkstore.store": ("LinkStore", "LinkRetriever")}
"""Packages shown with what classes inherit within linkstore, and the names with which their page begins."""
INTRODUCTION = """# Python

The public modules. These names can also be imported from `linkstore` itself:

{facade}

| module | description |
|---|---|
{modules}

This page and those it leads to are written by `make docs` from the docstrings.
"""


def modules() -> list[str]:
    """The modules with public names: those above, packages that say what they export, and the extractors."""
    packages = [module for module in _exporting() if module not in (*ORDER, *ELSEWHERE)]
    return [*ORDER[:LAST], *packages, *_extractors(), *ORDER[LAST:]]


def pages() -> dict[str, str]:
    """The pages of the reference: name below docs/ → text."""
    written = {"api/index.md": _index()}
    for module in modules():
        options = _options(module) if module in FIRST else ""
        written[f"api/{_file(module)}"] = f"# {module} {{ #{module} }}\n\n::: {module}\n{options}"
    return written


def _options(module: str) -> str:
    """How the page of a package in FIRST is written: its names in order, with what they inherit."""
    names = dict.fromkeys((*FIRST[module], *import_module(module).__all__))
    members = "".join(f"        - {name}\n" for name in names)
    return f"    options:\n      inherited_members: true\n      members:\n{members}"


def _file(module: str) -> str:
    """The page of a module; without dots, as one that ends in .html would pass for a file of the site."""
    return f"{module.replace('.', '-')}.md"


def _exporting() -> list[str]:
    """The packages of linkstore whose ``__init__`` has an ``__all__``, its own or its stub's."""
    found = (ROOT / "linkstore").rglob("__init__.py")
    exporting = [path.parent for path in found if "__all__ = " in path.read_text()]
    return sorted(".".join(path.relative_to(ROOT).parts) for path in exporting)


def _extractors() -> list[str]:
    """The modules of the link extractors that are found by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return sorted(
        {place.partition(":")[0] for place in project["entry-points"]["linkstore.extractors"].values()}
    )


def _index() -> str:
    facade = " ·\n".join(
        f"[`{name}`]({_file(_home_of(name))}#{_home_of(name)}.{name})"
        for name in linkstore.__all__
        if name != "__version__"
    )
    rows = "\n".join(f"| [{module}]({_file(module)}) | {_says(module)} |" for module in modules())
    return INTRODUCTION.format(facade=facade, modules=rows)


def _home_of(name: str) -> str:
    """The public module on whose page a name of ``linkstore`` is described."""
    module = getattr(linkstore, name).__module__
    return max((public for public in modules() if f"{module}.".startswith(f"{public}.")), key=len)


def _says(module: str) -> str:
    """The first line of a module's docstring, without its full stop."""
    base = next(
        found
        for root in (ROOT, ROOT / "extractors")
        for found in (root.joinpath(*module.split(".")),)
        if found.is_dir() or found.with_suffix(".py").exists()
    )
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return docstring.partition("\n")[0].rstrip(".").replace("``", "`")
