"""Index two documentation sites as Debian ships them, and hold what came of it against their pages.

Run: ``python benchmarks/real_sites.py``. It downloads the packages postgresql-doc-15 and git-doc with apt-get
and unpacks them with dpkg into a scratch folder; ``--packages DIR`` takes .deb files that are there.

For each site it says which pages were not indexed, and whether each of them was reported; which internal
links dangle and why, judged by the files; and whether a sample of links with an anchor leads to the chunk
that holds what follows the anchor in the page, as Python's own HTML parser reads it.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from _page_text import PageText, letters
from _report import report

from linkstore import LinkStore, get_links
from linkstore.ingest import Summary, index_folder
from linkstore.urls import is_internal, split_tag

SITES = {
    "postgresql-doc-15": "usr/share/doc/postgresql-doc-15/html",
    "git-doc": "usr/share/doc/git-doc",
}
"""The packages, and where in them the site lies."""
PAGE_SUFFIXES = {".html", ".htm", ".xhtml"}
FOLLOWING = 60
"""Letters and digits after an anchor that must stand in the chunk."""
OUR_FAULT = "no true reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dangling:
    """An internal link that leads to no chunk.

    Args:
        tag: Where it was to lead.
        links: How many links there are.
        cause: Judged by the files.
    """

    tag: str
    links: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A sampled link that leads to a chunk without what follows the anchor."""

    tag: str
    chunk: str
    wanted: str


def main() -> None:
    """Unpack, index and judge each site; print what was found."""
    options = _options()
    if not (shutil.which("dpkg-deb") and (options.packages or shutil.which("apt-get"))):
        sys.stderr.write("left out: apt-get and dpkg-deb are needed, which are Debian's\n")
        return
    with tempfile.TemporaryDirectory(prefix="linkstore-real-") as scratch:
        folder = Path(scratch)
        packages = Path(options.packages) if options.packages else _download(folder / "packages")
        rows = [
            _judge(name, _unpack(packages, name, folder) / inside, folder / f"{name}.kb", options)
            for name, inside in SITES.items()
        ]
    report(f"real sites, seed {options.seed}", rows, as_json=options.json)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--packages", help="folder of .deb files; default: download them")
    parser.add_argument("--data", help="not used; every benchmark takes it")
    parser.add_argument("--sample", type=int, default=200, help="links with an anchor to check (default 200)")
    parser.add_argument("--seed", type=int, default=15, help="of the sample (default 15)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def _download(folder: Path) -> Path:
    folder.mkdir()
    command = ["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", *SITES]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{done.stderr}\nRun `apt-get update` first, or give --packages DIR.")
    return folder


def _unpack(packages: Path, name: str, folder: Path) -> Path:
    (package,) = packages.glob(f"{name}_*.deb")
    target = folder / name
    subprocess.run(["dpkg-deb", "--extract", str(package), str(target)], check=True)
    return target


def _judge(name: str, site: Path, place: Path, options: argparse.Namespace) -> dict[str, Any]:
    with LinkStore.open(place) as store:
        started = time.perf_counter()
        summary = index_folder(store, site, source=name)
        seconds = time.perf_counter() - started
        unreported = sorted(_files(site) - set(store.pages(name)) - set(summary.skipped))
        dangling = list(_dangling(store, site, summary))
        targets = _targets(store)
        sample = random.Random(options.seed).sample(sorted(targets), min(options.sample, len(targets)))
        misses = list(_misses(store, site, [(tag, targets[tag]) for tag in sample]))
        internal = _internal_links(store)
    _show(name, summary, unreported, dangling, misses)
    by_cause = Counter[str]()
    for one in dangling:
        by_cause[one.cause] += one.links
    return {
        "": name,
        "pages on disk": len(_files(site)),
        "pages indexed": summary.pages.added,
        "pages reported as unreadable": len(summary.skipped),
        "pages neither indexed nor reported": len(unreported),
        "chunks": summary.chunks,
        "seconds": seconds,
        "internal hyperlinks": internal,
        "dangling": sum(by_cause.values()),
        "dangling, %": 100 * sum(by_cause.values()) / internal,
        **{f"… {cause}": by_cause[cause] for cause in sorted({*by_cause, OUR_FAULT})},
        "without a true reason, %": 100 * by_cause[OUR_FAULT] / internal,
        "anchors with links to them": len(targets),
        "links checked": len(sample),
        "lead to the right chunk": len(sample) - len(misses),
    }


def _files(site: Path) -> set[str]:
    """Every page on disk, by path, whatever linkstore thinks of it."""
    return {
        path.relative_to(site).as_posix()
        for path in site.rglob("*")
        if path.is_file() and path.suffix.lower() in PAGE_SUFFIXES
    }


def _internal_links(store: LinkStore) -> int:
    return sum(
        link.kind == "hyperlink" and link.leads_out and is_internal(link.tag)
        for document in store.scan()
        for link in get_links(document)
    )


def _dangling(store: LinkStore, site: Path, summary: Summary) -> Iterator[Dangling]:
    for kind, tag, links in store.survey().dangling:
        if kind == "hyperlink" and is_internal(tag):
            yield Dangling(tag=tag, links=links, cause=_cause(site, tag, summary))


def _cause(site: Path, tag: str, summary: Summary) -> str:
    """Why nothing lies at a tag, judged by the files alone."""
    page, fragment = split_tag(tag)
    path = _page(site, page)
    if path is None:
        return "the package has no such page"
    if path.suffix.lower() not in PAGE_SUFFIXES:
        return "leads to a file that is no page"
    if path.relative_to(site).as_posix() in summary.skipped:
        return "the page is reported as unreadable"
    if fragment is not None and _anchor(_text(path), fragment) is None:
        return "the page has no such anchor"
    return OUR_FAULT


def _page(site: Path, page: str) -> Path | None:
    """The file that a browser would open."""
    path = site / unquote(page.lstrip("/"))
    candidates = (path, path / "index.html", path / "index.htm")
    return next((found for found in candidates if found.is_file()), None)


def _anchor(text: PageText, fragment: str) -> str | None:
    """The anchor a browser would go to."""
    return next((name for name in (fragment, unquote(fragment)) if name in text.anchors), None)


@cache
def _text(path: Path) -> PageText:
    return PageText.read(path)


def _targets(store: LinkStore) -> dict[str, str]:
    """Tags with an anchor that links lead to, each with a document that has such a link."""
    found: dict[str, str] = {}
    for document in store.scan():
        for link in get_links(document):
            if link.kind == "hyperlink" and link.leads_out and is_internal(link.tag) and "#" in link.tag:
                found.setdefault(link.tag, document.id or "")
    gone = {tag for kind, tag, _ in store.survey().dangling if kind == "hyperlink"}
    return {tag: name for tag, name in found.items() if tag not in gone}


def _misses(store: LinkStore, site: Path, sample: list[tuple[str, str]]) -> Iterator[Miss]:
    for tag, origin in sample:
        ids = [
            name
            for near in store.neighbours(origin).outgoing
            if (near.link.kind, near.link.tag) == ("hyperlink", tag)
            for name in near.ids
        ]
        if not ids:  # a chunk does not list itself: the link leads to a section of its own
            ids = [origin]
        chunks = [letters(document.page_content) for document in store.get_by_ids(ids)]
        page, fragment = split_tag(tag)
        path = _page(site, page)
        if path is None or fragment is None:
            raise SystemExit(f"{tag} leads to a chunk, and to no page")
        wanted = _wanted(_text(path), fragment)
        if not any(all(part in chunk for part in wanted) for chunk in chunks):
            yield Miss(tag=tag, chunk=", ".join(ids), wanted=" … ".join(wanted))


def _wanted(text: PageText, fragment: str) -> list[str]:
    """What the chunk must hold: the heading that the anchor is on, if it is on one, and what follows."""
    anchor = _anchor(text, fragment)
    if anchor is None:
        raise SystemExit(f"#{fragment} leads to a chunk, and is not in the page")
    heading, below = text.after(anchor, FOLLOWING)
    return [part for part in (heading, below) if part]


def _show(
    name: str, summary: Summary, unreported: list[str], dangling: list[Dangling], misses: list[Miss]
) -> None:
    """What the table counts, by name."""
    write = sys.stderr.write
    for page, reason in summary.skipped.items():
        write(f"{name}: not read: {page}: {reason}\n")
    for page in unreported:
        write(f"{name}: neither indexed nor reported: {page}\n")
    for one in sorted(dangling, key=lambda one: (one.cause, one.tag)):
        write(f"{name}: dangling ({one.cause}): {one.links} of {one.tag}\n")
    for miss in misses:
        write(f"{name}: {miss.tag} leads to {miss.chunk}, which lacks: {miss.wanted}\n")


if __name__ == "__main__":
    main()
