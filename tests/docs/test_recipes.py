"""The recipes of the documentation for frameworks that not every environment has run where they are there."""

from __future__ import annotations

import os
import re
import sys

import pytest
from documented import ROOT

from linkstore.ingest import WriteCounts, Writer

PAGE = ROOT / "docs" / "how-to" / "write-from-many-processes.md"
ROWS = [
    {"id": f"r{n}", "text": f"row {n} of many", "links": [f"r{(n + 1) % 200}"], "year": 1900 + n}
    for n in range(200)
]


def read_make_document():
    """Return the function of the page that makes documents of rows, as source."""
    (block,) = re.findall(r"^(def make_document\(.*?)^\n\n", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return f"from langchain_core.documents import Document\nfrom linkstore import Link, add_links\n{block}"


def recipes(heading):
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^```py\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@pytest.mark.long
@pytest.mark.parametrize(("heading", "module", "count"), [("Ray Data", "ray", 2), ("Spark", "pyspark", 1)])
def test_a_recipe_writes_all_rows(heading, module, count, tmp_path, monkeypatch):
    framework = pytest.importorskip(module)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "extractors")]))
    found = recipes(heading)
    assert len(found) == count
    for number, recipe in enumerate(found):
        writer = Writer(tmp_path / str(number), "wordllama")
        names = {"rows": ROWS, "writer": writer, "__name__": "__main__"}
        exec(read_make_document(), names)
        exec(compile(recipe, f"{PAGE.name}: {heading}", "exec"), names)
        assert names["done"].problems == {}
        assert names["done"].sampled == 100
        documents = [names["make_document"](row) for row in ROWS]
        assert writer.write(documents) == WriteCounts(unchanged=200), "all are there"
        writer.close()
    (framework.shutdown if module == "ray" else names["spark"].stop)()
