"""Writes docs/notebooks.md: the list of notebooks, from their sources."""

from __future__ import annotations

import runpy
from pathlib import Path

BUILD = Path(__file__).parents[1] / "notebooks" / "build.py"
PAGE = """# Notebooks

Each notebook runs in under two minutes, on your machine or in Colab, and ends with a picture and a sentence
that says what its output shows. It needs no key and no server unless it says so. In Colab a key may be among
the secrets. A wheel beside a notebook is installed instead of the published package; with wheels of what it
needs beside it, too, no network is needed. `make docs` builds the notebooks from `notebooks/sources`, and the
tests run each in a real kernel.

{notebooks}

This page is written by `make docs`.
"""


def pages() -> dict[str, str]:
    """The page: name below docs/ → text."""
    build = runpy.run_path(str(BUILD))
    entries = [
        f"## {source.title}\n\n{source.summary}\n\n"
        f"[![Open in Colab]({build['BADGE']})]({build['colab_address'](source.name)})\n"
        f"`notebooks/{source.name}.ipynb`"
        for source in build["sources"]()
    ]
    return {"notebooks.md": PAGE.format(notebooks="\n\n".join(entries))}
