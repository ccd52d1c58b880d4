"""The documentation site that some benchmarks index: where its archive is, and unpacking it."""

from __future__ import annotations

import argparse
import tarfile
import zlib
from pathlib import Path


def add_site(parser: argparse.ArgumentParser) -> None:
    """The options of what is indexed: ``--embedding`` and ``--every``."""
    parser.add_argument("--embedding", default="wordllama", help="name of an embedding (default wordllama)")
    parser.add_argument("--every", type=int, default=1, help="take about one page in so many (default 1)")


def unpack_site(data: str | Path, site: Path, every: int = 1) -> None:
    """Unpack the site of the data sets into a folder.

    Args:
        data: The folder of data sets.
        site: Where the site goes.
        every: Of so many pages about one is kept, always the same.
    """
    with tarfile.open(Path(data) / "docs_site" / "peps_html.tar.xz") as tar:
        tar.extractall(site, filter="data")
    for path in sorted(site.rglob("*.html")):
        if zlib.crc32(str(path.relative_to(site)).encode()) % every:
            path.unlink()
