"""Makes the notebooks from their sources; a test fails when one is out of date. Run by ``make docs``.

A source is a Python file of cells in percent format: ``# %%`` starts code, ``# %% [markdown]`` text. Comments
before the first cell name what to install::

    # installs: langgraph>=1 (langgraph), matplotlib (matplotlib)
    # extras: cassandra

Badge and first cell are the same in all notebooks but for these, and are made here.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent
SOURCES: Final = FOLDER / "sources"
ORDER: Final = (
    "quickstart",
    "docs_site",
    "wiki",
    "ranking_and_evaluation",
    "cassandra_and_astra",
    "from_graph_vector_store",
    "rag_chain_and_agent",
    "read_with_an_agent",
    "graph_tools_for_agents",
)
"""As they are read. A source that is not there is left out."""
COLAB: Final = "https://colab.research.google.com/github"
BADGE: Final = "https://colab.research.google.com/assets/colab-badge.svg"
MODULE_OF: Final = {
    "agents": "langgraph",
    "beautifulsoup4": "bs4",
    "cassandra": "cassio",
    "openai": "langchain_openai",
    "plot": "anywidget",
}
"""A module that is there if an extra of linkstore is installed."""
INSTALL: Final = """# Installs what is missing, as in Colab; where all is there it does nothing.
from importlib.util import find_spec

if not all(map(find_spec, {modules})):
    %pip install -q {packages}"""
_CELL: Final = re.compile(r"^# %%(?P<markdown> \[markdown\])?[ ]*\n", re.MULTILINE)
_NEED: Final = re.compile(r"([^\s,(]+) \((\w+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A notebook before it is one.

    Args:
        name: Of the file, without its ending.
        needs: What to install beside linkstore, with the module that shows whether it is there.
        extras: Of linkstore.
        cells: Whether it is Markdown, and the text.
    """

    name: str
    needs: tuple[tuple[str, str], ...]
    extras: tuple[str, ...]
    cells: tuple[tuple[bool, str], ...]

    @property
    def title(self) -> str:
        """The heading."""
        return self.cells[0][1].splitlines()[0].removeprefix("# ")

    @property
    def summary(self) -> str:
        """The first paragraph."""
        return " ".join(self.cells[0][1].split("\n\n")[1].split())


def repository() -> str:
    """The address of the repository; pyproject.toml is the one place that says it."""
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text())["project"]
    address: str = project["urls"]["Repository"]
    return address


def colab_address(name: str) -> str:
    """Where Colab opens a notebook."""
    path = repository().removeprefix("https://github.com/")
    return f"{COLAB}/{path}/blob/main/notebooks/{name}.ipynb"


def sources() -> Iterator[Source]:
    """The sources, as they are read."""
    for name in ORDER:
        path = SOURCES / f"{name}.py"
        if path.exists():
            yield read(path)


def read(path: Path) -> Source:
    """Read a source."""
    head, *rest = _CELL.split(path.read_text())
    settings = dict(re.findall(r"^# (\w+): (.*)$", head, re.MULTILINE))
    pairs = zip(rest[0::2], rest[1::2], strict=True)
    return Source(
        name=path.stem,
        needs=tuple(_NEED.findall(settings.get("installs", ""))),
        extras=tuple(re.findall(r"\w+", settings.get("extras", ""))),
        cells=tuple((bool(markdown), _text(body, bool(markdown))) for markdown, body in pairs),
    )


def notebook(source: Source) -> dict[str, Any]:
    """The notebook of a source, without outputs."""
    title, *cells = source.cells
    badge = f"[![Open in Colab]({BADGE})]({colab_address(source.name)})"
    made = [
        (True, f"{title[1]}\n\n{badge}"),
        (False, _install(source)),
        *cells,
    ]
    return {
        "cells": [_cell(number, *cell) for number, cell in enumerate(made)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def built() -> dict[Path, str]:
    """Every notebook: file → content."""
    return {
        FOLDER / f"{source.name}.ipynb": json.dumps(notebook(source), indent=1, ensure_ascii=False) + "\n"
        for source in sources()
    }


def _install(source: Source) -> str:
    extras = f"[{','.join(source.extras)}]" if source.extras else ""
    ours = f"langchain-linkstore{extras} @ git+{repository()}"
    packages = " ".join(f'"{package}"' for package in (ours, *(package for package, _ in source.needs)))
    needed = (*(MODULE_OF[extra] for extra in source.extras), *(module for _, module in source.needs))
    modules = json.dumps(["linkstore_extractors", *needed])
    return INSTALL.format(modules=modules, packages=packages)


def _text(body: str, markdown: bool) -> str:
    if markdown:
        body = re.sub(r"^# ?", "", body, flags=re.MULTILINE)
    return body.strip("\n")


def _cell(number: int, markdown: bool, text: str) -> dict[str, Any]:
    kind = {"cell_type": "markdown"} if markdown else {"cell_type": "code", "execution_count": None}
    outputs = {} if markdown else {"outputs": []}
    lines = text.splitlines(keepends=True)
    return {**kind, "id": f"cell-{number:02}", "metadata": {}, **outputs, "source": lines}


if __name__ == "__main__":
    for path, content in built().items():
        path.write_text(content)
