"""Each notebook is what its source makes, and runs from top to bottom in a real kernel."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import pytest
from documented import ROOT

pytest.importorskip("ipykernel", reason="needs ipykernel, which is not installed")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient, which is not installed")
nbformat = pytest.importorskip("nbformat", reason="needs nbformat, which is not installed")

BUILD = runpy.run_path(str(ROOT / "notebooks" / "build.py"))
NOTEBOOKS = [Path(path).stem for path in BUILD["built"]()]
ON_CASSANDRA = "cassandra_and_astra"
TIMEOUT = 120
"""Seconds that a notebook may take."""
PICTURES = {"image/png", "text/html", "text/markdown"}
"""What a notebook ends with: something to look at."""


def load(name):
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)


def execute(name, **environment):
    """Run a notebook in a kernel of its own; returns its cells with what they printed and showed."""
    notebook = load(name)
    client = nbclient.NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3")
    client.execute(
        env={**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline", **environment}
    )
    return notebook.cells


def shown(cell) -> set[str]:
    """The kinds of data that a cell put out."""
    return {kind for output in cell.outputs for kind in output.get("data", ())}


def printed(cells) -> str:
    return "".join(
        output.get("text", "") for cell in cells if cell.cell_type == "code" for output in cell.outputs
    )


def masked(text: str) -> str:
    """What was printed, without numbers, which may be times."""
    return re.sub(r"[ ]*\d[\d.,]*", "#", text)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_what_its_source_makes(name):
    """If this fails, run ``make docs``."""
    path = ROOT / "notebooks" / f"{name}.ipynb"

    assert path.read_text() == BUILD["built"]()[path]


def test_no_notebook_is_without_a_source():
    assert sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb")) == sorted(NOTEBOOKS)
    assert sorted(path.stem for path in (ROOT / "notebooks" / "sources").glob("*.py")) == sorted(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_badge_and_first_cell_follow_the_repository(name):
    """Moving the repository means changing one line of pyproject.toml."""
    notebook = load(name)
    nbformat.validate(notebook)
    address = BUILD["repository"]()

    assert f"/github/{address.removeprefix('https://github.com/')}/" in notebook.cells[0].source
    assert 'glob("langchain_linkstore-*.whl") or ["langchain-linkstore"]' in notebook.cells[1].source


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_ends_with_a_sentence_that_its_output_shows(name):
    """What it names as code was printed, or is code of the notebook."""
    *cells, last = load(name).cells
    there = printed(cells) + "".join(cell.source for cell in cells if cell.cell_type == "code")

    assert last.cell_type == "markdown"
    assert re.fullmatch(r"[A-Z“`][^.]*(\.\w[^.]*)*\.", last.source.replace("\n", " ")), "one sentence"
    assert [span for span in re.findall(r"`(.*?)`", last.source) if span not in there] == []


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if name != ON_CASSANDRA])
def test_a_notebook_runs_and_ends_with_something_to_look_at(name):
    """Without a key and without a network."""
    cells = execute(name, OPENAI_API_KEY="")

    assert shown(cells[-2]) & PICTURES
    assert masked(printed(cells)) == masked(printed(load(name).cells)), "run: python notebooks/build.py --run"
    assert "site-packages" not in printed(cells), "a warning is shown to the reader"


def test_the_notebook_of_cassandra_runs_on_a_real_server(cassandra, keyspace, cassandra_session):
    cells = execute(
        ON_CASSANDRA,
        CASSANDRA_CONTACT_POINTS=f"{cassandra.host}:{cassandra.port}",
        CASSANDRA_KEYSPACE=keyspace,
        ASTRA_DB_APPLICATION_TOKEN="",
    )

    assert shown(cells[-2]) & PICTURES
    left = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
    assert not list(cassandra_session.execute(left, (keyspace,)))
