"""Index documentation sites as Debian ships them, and hold what came of it against their pages.

Run: ``python benchmarks/real_sites.py``, with the dependency group ``bench``. It downloads the packages with
apt-get and unpacks them with dpkg-deb into a scratch folder; ``--packages DIR`` takes .deb files that are
there. ``--site NAME``, as often as needed, takes some of the sites only.

Each site is of another generator. Its pages are read again by html5lib, which follows the WHATWG's algorithm,
and by lxml. By these are judged: which pages are neither indexed nor reported; which paragraphs of a sample
of pages are in no chunk, but for those most pages share; whether links with an anchor lead to the chunk
that holds the heading and the line there. Reading alone, without embedding and storing, is timed in a process
of its own, which also says by how much its memory grew.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from _page_reading import PageText, letters, links, paragraphs
from _report import add_output, report

from linkstore import LinkStore, get_links
from linkstore.core.urls import Site, split_tag
from linkstore.ingest import FolderSource, index

SITES = {
    "javadoc": ("libcommons-lang3-java-doc", "usr/share/doc/libcommons-lang3-java/api"),
    "gtk-doc": ("libglib2.0-doc", "usr/share/gtk-doc/html/glib"),
    "makeinfo": ("octave-doc", "usr/share/doc/octave/octave.html"),
    "Doxygen": ("libopus-doc", "usr/share/doc/libopus-dev/html"),
    "rustdoc": ("rust-doc", "usr/share/doc/rust-doc/html/alloc"),
    "mdBook": ("rust-doc", "usr/share/doc/rust-doc/html/book"),
    "Sphinx": ("sphinx-doc", "usr/share/doc/sphinx-doc/html"),
    "DocBook": ("postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html"),
    "AsciiDoc": ("git-doc", "usr/share/doc/git-doc"),
    "Erlang": ("erlang-doc", "usr/share/doc/erlang-doc/lib/stdlib-*/doc/html"),
    "LibreOffice": ("libreoffice-help-en-us", "usr/share/libreoffice/help"),
    "Node": ("nodejs-doc", "usr/share/doc/nodejs/api"),
    "Nim": ("nim-doc", "usr/share/doc/nim/html"),
    "Exim": ("exim4-doc-html", "usr/share/doc/exim4-doc-html/spec_html"),
    "PostGIS": ("postgis-doc", "usr/share/doc/postgis-doc"),
    "CLISP": ("clisp-doc", "usr/share/doc/clisp/doc"),
    "SWI-Prolog": ("swi-prolog-doc", "usr/share/swi-prolog/doc/Manual"),
    "Haddock": ("ghc-doc", "usr/share/doc/ghc-doc/html/libraries/base-*"),
    "GAPDoc": ("gap-doc", "usr/share/gap/doc/ref"),
    "ikiwiki": ("ikiwiki", "usr/share/doc/ikiwiki/html"),
    "Vim": ("vim-doc", "usr/share/doc/vim/html"),
    "LaTeX2HTML": ("gnuplot-doc", "usr/share/doc/gnuplot/htmldocs"),
    "SQLite": ("sqlite3-doc", "usr/share/doc/sqlite3"),
    "fpdoc": ("fp-docs-3.2.2", "usr/share/doc/fp-docs/3.2.2/rtl/system"),
    "Racket": ("racket-doc", "usr/share/doc/racket"),
    "Apache": ("apache2-doc", "usr/share/doc/apache2-doc/manual"),
    "Ada": ("ada-reference-manual-2012", "usr/share/doc/ada-reference-manual-2012/arm2012.html"),
    "Yodl": ("c++-annotations-html", "usr/share/doc/c++-annotations/html"),
    "stex": ("chezscheme-doc", "usr/share/doc/chezscheme-doc/html"),
    "MediaWiki": ("cppreference-doc-en-html", "usr/share/cppreference/doc/html"),
    "Crystal": ("crystal-doc", "usr/share/doc/crystal/api-docs"),
    "groovydoc": ("groovy-doc", "usr/share/doc/groovy/gapi"),
    "GRASS": ("grass-doc", "usr/share/doc/grass-doc/html"),
    "OCamldoc": ("libocamlnet-ocaml-doc", "usr/share/doc/libocamlnet-ocaml/html-main"),
    "MkDocs": ("mkdocs-doc", "usr/share/doc/mkdocs/html"),
    "Pike": ("pike8.0-doc", "usr/share/doc/pike8.0-doc/html/reference"),
    "Postfix": ("postfix-doc", "usr/share/doc/postfix/html"),
    "POV-Ray": ("povray-doc", "usr/share/doc/povray/html"),
    "DSSSL": ("privoxy", "usr/share/doc/privoxy/user-manual"),
    "QDoc": ("qtbase5-doc-html", "usr/share/qt5/doc/qtcore"),
    "Scaladoc": ("scala-doc", "usr/share/doc/scala-2.11/api/reflect"),
    "tex2page": ("scheme48-doc", "usr/share/doc/scheme48/html"),
    "pydoctor": ("twisted-doc", "usr/share/doc/twisted-doc/html/api"),
}
"""By generator: the package, and where in it the site lies."""
PAGE_SUFFIXES = {".html", ".htm", ".xhtml", ".md"}
SHORT = 20
"""Characters; a chunk of less says little."""
BRIEF = 100
EDGE = 3
"""Lines at each end of a page's text that are looked at for chrome."""
SIGNS = ("¶", "§", "#", "🔗", "◆")
ON_A_PAGE = 10
"""Anchors of a page that are checked at most."""
LONG_ENOUGH = 12
"""Letters of a paragraph that is looked for."""
_READ = """
import json, sys, time
from pathlib import Path
from linkstore.extract import Page
from linkstore.ingest.chunks import make_chunks
from linkstore.ingest.html.pages import read_html_page
from linkstore.ingest.source import UnreadablePageError
paths = [Path(line) for line in sys.stdin.read().splitlines()]
def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])
Path("/proc/self/clear_refs").write_text("5")  # the peak of memory counts from here
before = peak()
size = largest = 0
started = time.process_time()
for path in paths:
    content = path.read_bytes()
    size, largest = size + len(content), max(largest, len(content))
    try:
        found = read_html_page(content)
    except UnreadablePageError:
        continue
    make_chunks(Page(url="p.html", title=found.title), found.blocks)
seconds = time.process_time() - started
grown = peak() - before
print(json.dumps([seconds, grown * 1024 / 1e6, size / 1e6, largest / 1e6]))
"""


def main() -> None:
    """Unpack, index and judge each site; print what was found."""
    options = _options()
    if not (shutil.which("dpkg-deb") and (options.packages or shutil.which("apt-get"))):
        sys.stderr.write("left out: apt-get and dpkg-deb are needed, which are Debian's\n")
        return
    chosen = options.site or list(SITES)
    with tempfile.TemporaryDirectory(prefix="linkstore-real-") as scratch:
        folder = Path(scratch)
        names = sorted({SITES[site][0] for site in chosen})
        packages = Path(options.packages) if options.packages else _download(folder / "packages", names)
        unpacked = {name: _unpack(packages, name, folder) for name in names}
        rows = [
            _judge(site, next(unpacked[SITES[site][0]].glob(SITES[site][1])), folder / f"{site}.kb", options)
            for site in chosen
        ]
    report(f"real sites, seed {options.seed}", rows, as_json=options.json, record_as=options.record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--packages", help="folder of .deb files; default: download them")
    parser.add_argument("--data", help="not used; every benchmark takes it")
    parser.add_argument("--site", action="append", choices=SITES, help="a site; default all of them")
    parser.add_argument("--sample", type=int, default=200, help="links with an anchor to check (default 200)")
    parser.add_argument("--pages", type=int, default=40, help="pages to look for paragraphs of (default 40)")
    parser.add_argument("--titles", type=int, default=0, help="titles of pages to print, to look at")
    parser.add_argument("--seed", type=int, default=15, help="of the samples (default 15)")
    add_output(parser)
    return parser.parse_args()


def _download(folder: Path, names: list[str]) -> Path:
    folder.mkdir()
    command = ["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", *names]
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
    seed = random.Random(options.seed)
    with LinkStore.open(place) as store:
        started = time.perf_counter()
        summary = index(store, FolderSource(site), name=name)
        indexing = time.perf_counter() - started
        indexed = set(store.pages.digests(name))
        found = _Indexed(store, name)
    files = _files(site)
    unreported = sorted(set(files) - indexed - set(summary.skipped) - found.tags_of_pages(files))
    checked, lost = _lost(found, files, seed, options.pages)
    right, wrong = _fragments(found, files, seed, options.sample)
    for page in seed.sample(sorted(found.pages), min(options.titles, len(found.pages))):
        sys.stderr.write(f"{name}: {page} is called {found.titles[page]}\n")
    seconds, grown, size, largest = _reading([path for path in files.values() if path.suffix != ".md"])
    chunks = len(found.texts)
    for line in (*(f"neither indexed nor reported: {page}" for page in unreported), *lost, *wrong):
        sys.stderr.write(f"{name}: {line}\n")
    return {
        "": name,
        "pages on disk": len(files),
        "MB": size,
        "indexed": summary.pages.added,
        "reported as unreadable": len(summary.skipped),
        "neither indexed nor reported": len(unreported),
        "paragraphs checked": checked,
        "paragraphs in no chunk": len(lost),
        "links with an anchor checked": right + len(wrong),
        "lead to the right chunk, %": 100 * right / max(1, right + len(wrong)),
        "chunks": chunks,
        "with a line of chrome, %": 100 * len(found.with_chrome()) / chunks,
        "under 20 characters, %": 100 * sum(len(text) < SHORT for text in found.texts.values()) / chunks,
        "under 100 characters, %": 100 * sum(len(text) < BRIEF for text in found.texts.values()) / chunks,
        "copies of other pages": found.copies(),
        "reading, s per MB": seconds / size,
        "memory, MB per MB of the largest page": grown / largest,
        "indexing, s": indexing,
    }


def _files(site: Path) -> dict[str, Path]:
    """Every page on disk, by path, but for Sphinx's search form and index, whatever linkstore says of it."""
    return {
        path.relative_to(site).as_posix(): path
        for path in sorted(site.rglob("*"))
        if path.is_file()
        and not path.is_symlink()
        and path.suffix.lower() in PAGE_SUFFIXES
        and path.relative_to(site).as_posix() not in {"search.html", "genindex.html"}
        and "_static" not in path.parts
    }


class _Indexed:
    """What a store holds of a site."""

    def __init__(self, store: LinkStore, source: str) -> None:
        self.pages = {
            page: list(ids)
            for page, ids in store.pages.ids(source, list(store.pages.digests(source))).items()
        }
        self.texts: dict[str, str] = {}
        self.owners: dict[str, list[str]] = {}
        self.titles: dict[str, str] = {}
        for document in store.scan():
            name = document.id or ""
            self.texts[name] = document.page_content
            self.titles[document.metadata["page"]] = document.metadata["title"]
            for link in get_links(document):
                if link.kind == "hyperlink" and link.leads_in:
                    self.owners.setdefault(link.tag, []).append(name)

    def tags_of_pages(self, files: dict[str, Path]) -> set[str]:
        """The pages that are not indexed, but lead to one that is: redirects."""
        return {page for page in files if (Site().page_tag(page) or "") in self.owners}

    def copies(self) -> int:
        """How many pages say word for word what another one says."""
        texts = Counter("\n".join(self.texts[name] for name in names) for names in self.pages.values())
        return sum(count - 1 for count in texts.values())

    def with_chrome(self) -> set[str]:
        """The chunks with a line that most pages begin or end with, or a heading that ends in a sign.

        A page that says little else, such as a notice in place of an old chapter, says it itself.
        """
        edges: Counter[str] = Counter()
        for names in self.pages.values():
            edges.update(set(self._edges(names)))
        most = {line for line, count in edges.items() if count > max(3, len(self.pages) / 2)}
        around = {name for names in self.pages.values() if not self._is_mostly(names, most) for name in names}
        return {
            name
            for name, text in self.texts.items()
            if (name in around and most.intersection(text.splitlines()[1:]))
            or any(line.rstrip().endswith(SIGNS) and len(line) < 120 for line in text.splitlines()[:1])
        }

    def _is_mostly(self, names: list[str], lines: set[str]) -> bool:
        """Whether a page consists of these lines for the greater part."""
        said = [line for name in names for line in self.texts[name].splitlines()[1:]]
        return 2 * sum(len(line) for line in said if line in lines) > sum(map(len, said))

    def _edges(self, names: list[str]) -> Iterator[str]:
        first = [line for line in self.texts[names[0]].splitlines()[1:] if line.strip()]
        last = [line for line in self.texts[names[-1]].splitlines()[1:] if line.strip()]
        yield from (*first[:EDGE], *last[-EDGE:])


def _lost(found: _Indexed, files: dict[str, Path], seed: random.Random, pages: int) -> tuple[int, list[str]]:
    """How many paragraphs were looked for on a sample of the indexed pages, and those that are nowhere."""
    indexed = sorted(page for page in found.pages if page in files and files[page].suffix != ".md")
    sample = seed.sample(indexed, min(pages, len(indexed)))
    read = {page: [text for text in paragraphs(files[page]) if len(text) >= LONG_ENOUGH] for page in sample}
    shared = Counter(text for texts in read.values() for text in set(texts))
    folders = Counter(map(_folder, read))
    within = Counter((_folder(page), text) for page, texts in read.items() for text in set(texts))
    checked, lost = 0, []
    for page, texts in read.items():
        whole = "".join(letters(found.texts[name]) for name in found.pages[page])
        for text in texts:
            part = _folder(page)
            of_part = folders[part] > EDGE and within[part, text] * 2 > folders[part]
            if shared[text] * 2 <= len(sample) and not of_part:
                checked += 1
                if text[:LONG_ENOUGH] not in whole and text[-LONG_ENOUGH:] not in whole:
                    lost.append(f"{page} lacks: {text[:80]}")
    return checked, lost


def _folder(page: str) -> str:
    return page.rpartition("/")[0]


def _fragments(
    found: _Indexed, files: dict[str, Path], seed: random.Random, most: int
) -> tuple[int, list[str]]:
    """How many of a sample of links with an anchor lead to the right chunk, and what is wrong elsewhere."""
    right, wrong = 0, []
    for tag in _sampled(sorted(set(_targets(files))), seed):
        if right + len(wrong) == most:
            break
        page, fragment = split_tag(tag)
        path = _page(files, page)
        name = None if path is None or fragment is None else _anchor(_text(path), fragment)
        if path is None or name is None:
            continue  # the site itself has no such place
        wanted = _text(path).after(name)
        chunks = [letters(found.texts[owner]) for owner in found.owners.get(tag, ())]
        if any(all(part in chunk for part in wanted) for chunk in chunks):
            right += 1
        else:
            owners = ", ".join(found.owners.get(tag, ["nothing"]))
            wrong.append(f"{tag} leads to {owners}, which lacks: {' … '.join(wanted)}")
    return right, wrong


def _sampled(targets: list[str], seed: random.Random) -> Iterator[str]:
    """Some targets of each page, pages in random order: html5lib takes its time with each."""
    pages: dict[str, list[str]] = {}
    for tag in seed.sample(targets, len(targets)):
        pages.setdefault(split_tag(tag)[0], []).append(tag)
    for tags in pages.values():
        yield from tags[:ON_A_PAGE]


def _targets(files: dict[str, Path]) -> Iterator[str]:
    for page, path in files.items():
        for href, base in links(path) if path.suffix != ".md" else ():
            if "#" in href:
                tag = Site().tag(href, page=page, base=base)
                if tag is not None and tag.startswith("/") and split_tag(tag)[1]:
                    yield tag


def _page(files: dict[str, Path], page: str) -> Path | None:
    """The page that a browser would open, if it is one of the site."""
    name = unquote(page.lstrip("/"))
    pages = (name, f"{name}/index.html", f"{name}/index.htm") if name else ("index.html", "index.htm")
    return next((files[one] for one in pages if one in files), None)


def _anchor(text: PageText, fragment: str) -> str | None:
    """The anchor a browser would go to."""
    return next((name for name in (fragment, unquote(fragment)) if name in text.anchors), None)


@cache
def _text(path: Path) -> PageText:
    return PageText.read(path)


def _reading(paths: list[Path]) -> tuple[float, float, float, float]:
    """Seconds to read all pages, MB by which the process grew, MB of all pages and of the largest."""
    done = subprocess.run(
        [sys.executable, "-c", _READ],
        input="\n".join(map(str, paths)),
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, grown, size, largest = json.loads(done.stdout)
    return seconds, grown, size, largest


if __name__ == "__main__":
    main()
