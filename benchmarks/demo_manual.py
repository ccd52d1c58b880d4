"""Make the manual of ``linkstore demo sqlite``, and measure what a search finds in it.

Run: ``python benchmarks/demo_manual.py``, which asks the questions of ``_demo_questions.json``; ``--make``
first makes ``linkstore/cli/sqlite.tar.xz`` again from Debian's package of the version that
``hyperdocs/manuals.py`` names. apt-get downloads it, or it is a .deb file in the folder of ``--packages``.

The pages are those of SQLite's manual but for lists that are made from its other pages, as of keywords and of
requirements, and for pages that say what another does. Menus, scripts and pictures are left out, and a link
to a page that is not there is its text. The manual is in the public domain.

The questions were written by a language model that knows SQLite, in ten rounds, each before it was asked;
from the third round on with a look at the sentences in which the manual's links stand, and in the last three
at which of those sentences, asked as they are, a link answers. A question names the
pages that answer it, or two lists, of each of which a page is needed. ``linkstore demo sqlite`` shows ten of
those whose page is not among the first three by similarity alone, and by default is, with a path that ends
with a link to it.
"""

from __future__ import annotations

import argparse
import io
import json
import posixpath
import re
import tarfile
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from _report import add_output, report
from hyperdocs.manuals import MANUALS, list_pages, unpack
from selectolax.lexbor import LexborHTMLParser

from linkstore import Hits, LinkStore
from linkstore.cli.demo import DEMO_LINKS, MAX_SHOWN, site
from linkstore.ingest import FolderSource, index
from linkstore.strategies import PageRank, Similarity, Strategy, pagerank

ROOT: Final = Path(__file__).parents[1]
ARCHIVE: Final = ROOT / "linkstore" / "cli" / "sqlite.tar.xz"
QUESTIONS: Final = Path(__file__).parent / "_demo_questions.json"
FOLDERS: Final = ("*.html", "c3ref/*.html", "session/*.html", "releaselog/*.html")
LEFT_OUT: Final = frozenset(
    {
        "requirements",
        "doc_backlink_crossref",
        "doc_keyword_crossref",
        "doc_pagelink_crossref",
        "doc_target_crossref",
        "keyword_index",
        "syntaxdiagrams",
        "sitemap",
        "doclist",
        "docs",
        "changes",
        "capi3ref",
        "capi3",
        "fileformat2",
        "shortnames",
        "fts3",
    }
)
"""Lists of other pages; pages whose text another has too; and fts3, whose markup is broken."""
UNREAD: Final = "script, style, svg, img, form, meta, link, iframe, .imgcontainer, .nosearch"
SCHEME: Final = re.compile(r"[a-z]+:", re.IGNORECASE)
WALKLESS: Final = "default, without following links"


def main() -> None:
    """Make the archive if asked to, then ask all questions of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--make", action="store_true", help="make the archive again")
    parser.add_argument("--packages", type=Path, help="folder of .deb files; default: download")
    parser.add_argument("--data", help=argparse.SUPPRESS)
    add_output(parser)
    options = parser.parse_args()
    if options.make:
        with tempfile.TemporaryDirectory() as folder:
            make(options.packages or Path(folder), Path(folder) / "unpacked")
    with LinkStore.open(":memory:") as store, site("sqlite") as pages:
        index(store, FolderSource(pages), links=DEMO_LINKS)
        rows = list(measure(store, json.loads(QUESTIONS.read_text())))
    report("Questions on the demo's manual", rows, as_json=options.json, record_as=options.record)


def make(packages: Path, unpacked: Path) -> None:
    """Make the archive from Debian's package; the same package gives the same bytes."""
    manual = next(manual for manual in MANUALS if manual.name == "sqlite")
    root = unpack(manual, packages, unpacked)
    paths = [path for path in list_pages(replace(manual, pages=FOLDERS), root) if path.stem not in LEFT_OUT]
    names = {path.relative_to(root).as_posix() for path in paths}
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for name in sorted(names):
            page = reduce_page((root / name).read_text(errors="replace"), name, names).encode()
            member = tarfile.TarInfo(name)
            member.size = len(page)
            archive.addfile(member, io.BytesIO(page))


def reduce_page(page: str, name: str, names: Collection[str]) -> str:
    """Return a page without menus, pictures, and links that lead out of the manual."""
    tree = LexborHTMLParser(page)
    for element in tree.css(UNREAD):
        element.decompose()
    for link in tree.css("a[href]"):
        target = link.attributes["href"] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target.partition("#")[0]))
        if SCHEME.match(target) or (not target.startswith("#") and path not in names):
            link.unwrap()
    return re.sub(r"\n\s*\n+", "\n", tree.html or "")


def measure(store: LinkStore, questions: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Ask all questions in three ways, and yield a row for each way."""
    for name, strategy in (
        ("similarity alone", Similarity()),
        (WALKLESS, PageRank()),
        ("default", PageRank()),
    ):
        damping = 0.0 if name == WALKLESS else pagerank.DAMPING
        with patch.object(pagerank, "DAMPING", damping):
            yield {"search": name, **count(store, strategy, questions)}


def count(store: LinkStore, strategy: Strategy, questions: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Count the questions of whose pages the right ones are first, among the first three, and found."""
    ranks: dict[bool, list[int]] = {True: [], False: []}
    for question in questions:
        hits = store.search(question["question"], strategy=strategy)
        worst = max(rank_page(hits, pages) for pages in question["pages"])
        ranks[len(question["pages"]) > 1].append(worst)
    alone, together = ranks[False], ranks[True]
    return {
        "questions": len(alone),
        "first": sum(rank == 1 for rank in alone),
        f"among the first {MAX_SHOWN}": sum(rank <= MAX_SHOWN for rank in alone),
        "among ten passages": sum(rank < 100 for rank in alone),
        "questions that need two pages": len(together),
        "both among ten passages": sum(rank < 100 for rank in together),
    }


def rank_page(hits: Hits, pages: Sequence[str]) -> int:
    """Return the rank of the best of some pages among the pages of the hits, or 100."""
    order = [page.page for page in hits.by_page()]
    return min((order.index(page) + 1 for page in pages if page in order), default=100)


if __name__ == "__main__":
    main()
