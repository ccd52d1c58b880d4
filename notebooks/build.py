"""Makes the notebooks from their sources; a test fails when one is out of date. Run by ``make docs``.

A source is a Python file of cells in percent format: ``# %%`` starts code, ``# %% [markdown]`` text. Comments
before the first cell name what to install::

    # installs: langgraph>=1 (langgraph), matplotlib (matplotlib)
    # extras: cassandra

Badge and first cell are the same in all notebooks but for these, and are made here. What the cells put out is
kept as long as their sources stay as they are. ``python notebooks/build.py --run NAME…`` runs notebooks, or
all that need no server, and stores it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent
SOURCES: Final = FOLDER / "sources"
ORDER: Final = (
    "quickstart",
    "docs_site",
    "wiki",
    "see_a_store",
    "find_missing_links",
    "ranking_and_evaluation",
    "cassandra_and_astra",
    "from_graph_vector_store",
    "rag_chain_and_agent",
    "compile_a_context",
    "remember_conversations",
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
INSTALL: Final = """\
# Installs what is missing, as in Colab: a wheel beside the notebook, else the published package.
# With wheels of what it needs beside it, no network is asked. Where all is there it does nothing.
from glob import glob
from importlib.util import find_spec

if not all(map(find_spec, {modules})):
    package = (glob("langchain_linkstore-*.whl") or ["langchain-linkstore"])[0]
    offline = "--no-index" if len(glob("*.whl")) > 1 else ""
    %pip install -q --find-links . {{offline}} {packages}"""
SECRETS: Final = """
import os
import sys

if "google.colab" in sys.modules:  # Colab keeps keys among its secrets
    from google.colab import userdata

    try:
        os.environ["OPENAI_API_KEY"] = userdata.get("OPENAI_API_KEY")
    except (userdata.SecretNotFoundError, userdata.NotebookAccessError):
        print("there is no secret OPENAI_API_KEY, so a scripted model answers")"""
NEED_SERVER: Final = frozenset({"cassandra_and_astra"})
"""Notebooks that are run only by name."""
_CELL: Final = re.compile(r"^# %%(?P<markdown> \[markdown\])?[ ]*\n", re.MULTILINE)
_NEED: Final = re.compile(r"([^\s,(]+) \((\w+)\)")
_KEPT: Final = ("image/png", "image/svg+xml", "text/plain")
"""What is kept of what a cell shows: pictures that every viewer draws. A widget would need its kernel."""
SECONDS: Final = 120
"""How long a cell may take."""


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
    """Every notebook, with the outputs that its file has for the same cells: file → content."""
    return {path: _written(_with_outputs(notebook(source), path)) for source, path in _files()}


def run(names: Sequence[str]) -> None:
    """Run notebooks in kernels of their own, and write them with what their cells put out."""
    import nbformat
    from nbclient import NotebookClient

    for source, path in _files():
        if source.name not in names if names else source.name in NEED_SERVER:
            continue
        made = notebook(source)
        executed = nbformat.reads(_written(made), as_version=4)
        environment = {
            **os.environ,
            "OPENAI_API_KEY": "",
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }
        NotebookClient(executed, timeout=SECONDS, kernel_name="python3").execute(env=environment)
        for cell, ran in zip(made["cells"], executed["cells"], strict=True):
            if cell["cell_type"] == "code":
                cell["outputs"] = list(_kept_outputs(ran["outputs"]))
        path.write_text(_written(made))


def _files() -> Iterator[tuple[Source, Path]]:
    for source in sources():
        yield source, FOLDER / f"{source.name}.ipynb"


def _written(made: Mapping[str, Any]) -> str:
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _with_outputs(made: dict[str, Any], path: Path) -> dict[str, Any]:
    """Give cells the outputs that a notebook has, if all of its code is the same."""
    cells = [cell for cell in made["cells"] if cell["cell_type"] == "code"]
    known = [cell for cell in _read_cells(path) if cell["cell_type"] == "code"]
    if [cell["source"] for cell in cells] == [cell["source"] for cell in known]:
        for cell, before in zip(cells, known, strict=True):
            cell["outputs"] = before["outputs"]
    return made


def _read_cells(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text())["cells"]) if path.exists() else []


def _kept_outputs(outputs: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what a cell printed, in one piece, and the pictures and values that it showed."""
    printed = "".join(one["text"] for one in outputs if one.get("name") == "stdout")
    if printed:
        yield {"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}
    for one in outputs:
        data = {kind: shown for kind, shown in one.get("data", {}).items() if kind in _KEPT}
        if "image/png" in data or "image/svg+xml" in data:
            data.pop("text/plain", None)
        if data:
            yield {"data": data, "metadata": {}, "output_type": "display_data"}


def _install(source: Source) -> str:
    extras = f"[{','.join(source.extras)}]" if source.extras else ""
    packages = " ".join(
        f'"{package}"' for package in (f"{{package}}{extras}", *(one for one, _ in source.needs))
    )
    needed = (*(MODULE_OF[extra] for extra in source.extras), *(module for _, module in source.needs))
    modules = json.dumps(["linkstore_extractors", *needed])
    return INSTALL.format(modules=modules, packages=packages) + (SECRETS if "openai" in source.extras else "")


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
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", nargs="*", metavar="NAME", help="run notebooks, and store what they put out")
    options = parser.parse_args()
    for path, content in built().items():
        path.write_text(content)
    if options.run is not None:
        run(options.run)
