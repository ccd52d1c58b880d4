"""Sync calls work where an event loop is already running, as in Jupyter and Colab."""

from __future__ import annotations

import pytest

pytest.importorskip("ipykernel", reason="needs ipykernel, which is not installed")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient, which is not installed")
nbformat = pytest.importorskip("nbformat", reason="needs nbformat, which is not installed")

CELLS = (
    "import asyncio; asyncio.get_running_loop().is_running()",
    """
from langchain_core.documents import Document
from linkstore import Link, LinkStore, add_links

needle = Document(id="needle", page_content="The Space Needle is a tower in Seattle.")
uptown = Document(id="uptown", page_content="Bars and small theatres line its streets.")
add_links(needle, Link.outgoing(kind="hyperlink", tag="/uptown"))
add_links(uptown, Link.incoming(kind="hyperlink", tag="/uptown"))
store = LinkStore.open(":memory:")
sorted(store.add_documents([needle, uptown]))
""",
    "[hit.document.id for hit in store.search('a tower in Seattle')]",
    """
retriever = store.as_retriever(search_type="traversal", search_kwargs={"k": 1, "depth": 1})
[document.id for document in retriever.invoke("a tower in Seattle")]
""",
    "[document.id for document in await retriever.ainvoke('a tower in Seattle')]",
    "store.delete(['uptown']); [document.id for document in retriever.invoke('a tower in Seattle')]",
    "store.close()",
)


def test_sync_and_async_calls_work_in_a_running_kernel():
    """A real ipykernel runs the cells; one that raises fails the test."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])

    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()

    shown = [_result(cell) for cell in notebook.cells]
    both = "['needle', 'uptown']"
    assert shown == ["True", both, both, both, both, "['needle']", None]


def _result(cell) -> str | None:
    """What the cell's last expression gave, if anything."""
    results = [output.data["text/plain"] for output in cell.outputs if output.output_type == "execute_result"]
    return results[0] if results else None
