"""Suggested links: a fifth of the links of a site are hidden, and looked for among the suggestions.

Run: ``python benchmarks/suggest.py --data DIR``, where DIR (or LINKSTORE_EVAL_DATA) holds
``docs_site/peps_html.tar.xz``; ``--site FOLDER``, as often as needed, takes other built sites, such as
the documentation in packages of Debian. A link is a pair of pages, one with a hyperlink to the other. The
texts of hidden links stay in the pages; links of other kinds that join a hidden pair are hidden with it.
Precision is the share of the first 10 and 100 suggestions that are hidden links; what is not may still be a
good link that the author did not make. ``near`` ranks the pairs of pages without a link by the cosine of
their mean vectors alone. ``--seed`` hides others.
"""

from __future__ import annotations

import argparse
import os
import random
import tarfile
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _report import add_output, listed

from linkstore import Link, LinkStore
from linkstore.engines.contract import Record
from linkstore.ingest import FolderSource, index
from linkstore.store.suggestions import UNWRITTEN, find_suggestions

FIRST = (10, 100)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--site", type=Path, action="append", help="a folder of built HTML; repeatable")
    parser.add_argument("--seed", type=int, default=0, help="which links are hidden; default 0")
    parser.add_argument("--data", type=Path, default=os.environ.get("LINKSTORE_EVAL_DATA"))
    add_output(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        sites = options.site or [unpack(options.data, Path(scratch))]
        rows = [{"site": site.name, **measure(site, options.seed)} for site in sites]
    listed("Hidden links found again, %", rows, as_json=options.json, record_as=options.record)


def unpack(data: Path | None, scratch: Path) -> Path:
    if data is None:
        raise SystemExit("name the data by --data, or sites by --site")
    with tarfile.open(data / "docs_site" / "peps_html.tar.xz") as archive:
        archive.extractall(scratch / "peps", filter="data")
    return scratch / "peps"


def measure(site: Path, seed: int) -> dict[str, Any]:
    """Index a site, hide a fifth of its links, and count those that are found again."""
    with LinkStore() as store:
        index(store, FolderSource(site))
        records: list[Record] = []
        while batch := store.backend.run(store.backend.scan(records[-1].id if records else None, 1000)):
            records += batch
    pages = [str(record.metadata["page"]) for record in records]
    leads_to: dict[tuple[str, str], set[str]] = defaultdict(set)
    for page, record in zip(pages, records, strict=True):
        for link in record.links:
            if link.direction == "in" and link.kind not in UNWRITTEN:
                leads_to[link.kind, link.tag].add(page)

    def targets(page: str, link: Link) -> set[str]:
        return leads_to.get((link.kind, link.tag), set()) - {page} if link.direction == "out" else set()

    linked = sorted(
        {
            (page, target)
            for page, record in zip(pages, records, strict=True)
            for link in record.links
            if link.kind == "hyperlink"
            for target in targets(page, link)
        }
    )
    hidden = set(random.Random(seed).sample(linked, len(linked) // 5))

    def is_kept(page: str, link: Link) -> bool:
        return all((page, target) not in hidden for target in targets(page, link))

    rest = [
        replace(record, links=tuple(link for link in record.links if is_kept(page, link)))
        for page, record in zip(pages, records, strict=True)
    ]
    known = {frozenset(pair) for pair in set(linked) - hidden}
    found = find_suggestions(lambda: rest, FIRST[-1])
    return {
        "pages": len(set(pages)),
        "links": len(linked),
        "hidden": len(hidden),
        "suggested, first 10 / 100": precision([(one.source_page, one.target_page) for one in found], hidden),
        "near, first 10 / 100": precision(nearest(pages, records, known), hidden),
    }


def nearest(pages: list[str], records: list[Record], known: set[frozenset[str]]) -> list[tuple[str, str]]:
    """Return the pairs of pages without a link, most similar first."""
    names = sorted(set(pages))
    sums = np.zeros((len(names), len(records[0].vector)))
    np.add.at(sums, np.searchsorted(names, pages), np.stack([record.vector for record in records]))
    sums /= np.linalg.norm(sums, axis=1, keepdims=True)
    similarity = np.triu(sums @ sums.T, 1)
    order = np.argsort(-similarity, axis=None, kind="stable")
    pairs = ((names[at // len(names)], names[at % len(names)]) for at in order)
    free = (pair for pair in pairs if frozenset(pair) not in known)
    return [pair for pair, _ in zip(free, range(FIRST[-1]), strict=False)]


def precision(pairs: list[tuple[str, str]], hidden: set[tuple[str, str]]) -> list[float]:
    """Return the share of hidden links among the first pairs, in percent."""
    hits = [pair in hidden or pair[::-1] in hidden for pair in pairs]
    return [100 * sum(hits[:first]) / first for first in FIRST]


if __name__ == "__main__":
    main()
