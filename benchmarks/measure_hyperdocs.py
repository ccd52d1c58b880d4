"""Questions on hyperlinked manuals, whose answers lead to other pages: which system finds the sections.

Run: ``python benchmarks/measure_hyperdocs.py --cache FOLDER``, with the dependency group ``bench``, on
Debian 12: it downloads the packages with apt-get. ``--packages DIR`` takes .deb files that are there.
``--embeddings`` and ``--manuals`` take some only (rows are then named by these manuals), ``--split`` one of
the splits. Settings are never chosen on the split ``test``.
``--unlinked`` measures without the sections in which the questions stand, so that no system can go by the
question itself and the links beside it.

hyperdocs/DATASHEET.md says what the questions are and how they were made. Each system ranks the same chunks
with the same vectors, and is asked for 100.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from _report import add_output, listed
from _vector_cache import make_encoder
from hyperdocs.candidates import Candidate
from hyperdocs.manuals import MANUALS, Manual, copy_pages, unpack
from hyperdocs.measures import measure, summarise
from hyperdocs.questions import read_questions
from hyperdocs.systems import make_systems
from langchain_core.documents import Document

from linkstore import LinkStore, get_links
from linkstore.core.urls import Site
from linkstore.embeddings.encoder import Encoder
from linkstore.ingest import FolderSource, index

SHOWN: Final = {
    "R@5 / 10 / 20": ("R@5", "R@10", "R@20"),
    "hits at 1 / 5 / 10": ("hits@1", "hits@5", "hits@10"),
    "pages at 1 / 5 / 10": ("pages@1", "pages@5", "pages@10"),
}
Found = dict[tuple[str, str], list[dict[str, float]]]


def main() -> None:
    """Ask every system every question, print tables."""
    options = _options()
    chosen = [one for one in MANUALS if options.manuals is None or one.name in options.manuals.split(",")]
    for name in options.embeddings.split(","):
        encoder = make_encoder(name, options.cache)
        found: Found = defaultdict(list)
        for manual in chosen:
            if options.split in {"all", manual.split}:
                with tempfile.TemporaryDirectory(prefix="linkstore-hyperdocs-") as folder:
                    _ask(manual, Path(folder), encoder, options, found)
        _show(name.partition(":")[0], found, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--packages", help="folder of .deb files; those it lacks are downloaded into it")
    parser.add_argument("--data", help="not used; every benchmark takes it")
    parser.add_argument("--embeddings", default="wordllama", help="default wordllama")
    parser.add_argument("--manuals", help="some of them; default all")
    parser.add_argument("--split", default="all", choices=("open", "test", "all"), help="default all")
    parser.add_argument("--unlinked", action="store_true", help="without the sections of the questions")
    parser.add_argument("--cache", metavar="FOLDER", help="keeps vectors between runs")
    add_output(parser)
    return parser.parse_args()


def _ask(manual: Manual, folder: Path, encoder: Encoder, options: argparse.Namespace, found: Found) -> None:
    """Index a manual and add the measures of its questions to ``found``, by group of questions and system."""
    packages = Path(options.packages) if options.packages else folder / "packages"
    root = unpack(manual, packages, folder / "unpacked")
    questions = read_questions(manual, root)
    if options.unlinked:
        questions = [one for one in questions if one.rule != "heading"]
    with LinkStore.open(folder / "kb", encoder) as store:
        index(store, FolderSource(copy_pages(manual, root, folder / "pages")), name=manual.name)
        sections = Sections(list(store.scan()))
        asked = [(one, units) for one in questions if (units := sections.find_units(one)) is not None]
        told = f"{len(sections.documents):,} chunks, {len(asked)} of {len(questions)} questions"
        print(f"{manual.name}: {told}", file=sys.stderr, flush=True)
        if options.unlinked:
            own = frozenset[str]().union(*(sections.find_own(one) for one, _ in asked))
            store.delete(sorted(own))
            sections = Sections(list(store.scan()))
            asked = [(one, units) for one, _ in asked if (units := sections.find_units(one)) is not None]
        systems = make_systems(store, sections.documents, encoder)
        for one, units in asked:
            encoder.embed_query(one.question)  # with --cache it is kept, and no system pays for it
            for name, system in systems.items():
                started = time.perf_counter()
                ranked = system(one.question)
                seconds = time.perf_counter() - started
                values = {**measure(ranked, units, sections.page_of), "ms": 1e3 * seconds}
                for group in name_groups(manual, one.rule, options.manuals):
                    found[group, name].append(values)


def name_groups(manual: Manual, rule: str, chosen: str | None) -> list[str]:
    """Name the groups that a question counts in; when some manuals are chosen, these and its own only."""
    if chosen is None and manual.language != "en":
        return ["other languages", manual.name]
    if chosen is None:
        return ["English", manual.split, rule, manual.name]
    return list(dict.fromkeys([chosen.replace(",", "+"), manual.name]))


class Sections:
    """The chunks of a manual, by section and page."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = documents
        self.page_of: Mapping[str, str] = {str(one.id): one.metadata["page"] for one in documents}
        self._by_page: defaultdict[str, set[str]] = defaultdict(set)
        self._by_url: defaultdict[str, set[str]] = defaultdict(set)
        self._owners: defaultdict[str, set[str]] = defaultdict(set)
        for one in documents:
            self._by_page[one.metadata["page"]].add(str(one.id))
            self._by_url[one.metadata["url"]].add(str(one.id))
            for link in get_links(one):
                if link.kind == "hyperlink" and link.leads_in:
                    self._owners[link.tag].add(one.metadata["url"])

    def find_units(self, question: Candidate) -> list[frozenset[str]] | None:
        """Return the ids of the documents of each gold section or page; None if one has none."""
        units = [self._find(target) for target in question.gold]
        return units if all(units) else None

    def find_own(self, question: Candidate) -> frozenset[str]:
        """Return the ids of the documents of the section in which a question stands."""
        return self._find(f"{question.page}#{question.anchor}" if question.anchor else question.page)

    def _find(self, target: str) -> frozenset[str]:
        page, _, fragment = target.partition("#")
        if not fragment:
            return frozenset(self._by_page[page])
        tag = Site().tag(target, page="index.html") or ""
        return frozenset[str]().union(*(self._by_url[url] for url in self._owners[tag]))


def _show(embedding: str, found: Found, options: argparse.Namespace) -> None:
    variant = ", without their sections" if options.unlinked else ""
    rows = []
    for (group, system), values in found.items():
        means = summarise(values)
        rows.append(
            {
                "system": f"{group}, {system}, {embedding}{variant}",
                "questions": len(values),
                **{title: [means[name] for name in names] for title, names in SHOWN.items()},
                "nDCG@10": means["nDCG@10"],
                "interval of R@5": means["interval of R@5"],
                "ms": float(np.median([one["ms"] for one in values])),
            }
        )
    rows.sort(key=lambda row: str(row["system"]).partition(",")[0])
    listed(f"hyperdocs, {embedding}{variant}", rows, as_json=options.json, record_as=options.record)


if __name__ == "__main__":
    main()
