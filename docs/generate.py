"""Writes what is made from something else: pages of docs/, and measured figures of docs/ and the README.

A test fails when one is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

import generate_api  # noqa: E402
import generate_charts  # noqa: E402
import generate_cli  # noqa: E402
import generate_figures  # noqa: E402
import generate_notebooks  # noqa: E402
import generate_schema  # noqa: E402


def pages() -> dict[str, str]:
    """Every page that is generated or has generated parts: name below docs/ → text."""
    return {
        "cli.md": "\n".join(generate_cli.pages()),
        **generate_api.pages(),
        **generate_schema.pages(),
        **generate_notebooks.pages(),
        **generate_figures.pages(),
        **generate_charts.pages(),
    }


def write() -> None:
    """Write the pages, and remove those of the Python reference that are no longer made."""
    made = pages()
    for name, text in made.items():
        target = DOCS / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(text)
    for path in (DOCS / "api").glob("*.md"):
        if f"api/{path.name}" not in made:
            path.unlink()


if __name__ == "__main__":
    write()
