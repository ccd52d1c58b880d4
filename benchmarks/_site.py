"""The documentation site that some benchmarks index: where its archive is, and unpacking it."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack_site(data: str | Path, site: Path) -> None:
    """Unpack the site of the data sets into a folder."""
    with tarfile.open(Path(data) / "docs_site" / "peps_html.tar.xz") as tar:
        tar.extractall(site, filter="data")
