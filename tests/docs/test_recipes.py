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
        writer = Writer(tmp_path / str(number), "wordllama", metadata=["year"])
        names = {"rows": ROWS, "writer": writer, "__name__": "__main__"}
        exec(compile(recipe, f"{PAGE.name}: {heading}", "exec"), names)
        assert names["done"].problems == {}
        assert names["done"].sampled == 100
        assert writer.write(ROWS) == WriteCounts(unchanged=200), "all are there"
        writer.close()
    (framework.shutdown if module == "ray" else names["spark"].stop)()
