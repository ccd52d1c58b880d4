"""Wikitext against mwparserfromhell, and a dump of any size in constant memory.

Run: ``python benchmarks/wiki.py --data DIR``, where DIR (or LINKSTORE_EVAL_DATA) holds
``wiki_dump/enwiki-pages-articles-shortened.xml.bz2``. Both read the same articles, in turns; the table gives
medians over the runs. Then the links that both find are compared, page by page.

``--pages 1000000`` writes a dump of so many small pages instead, a third of them redirects, to a temporary
file, and reads it as a run of ``linkstore index`` does, without a store: once with every page read, once with
none changed. ``--folder`` says where the file goes (600 MB for a million pages).
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.sax.saxutils import escape

import mwparserfromhell
from _report import add_output, listed

from linkstore.ingest import WikiDumpSource
from linkstore.ingest.source import BadInput
from linkstore.ingest.wiki.dump import DumpPage, read_pages, read_siteinfo
from linkstore.ingest.wiki.layout import REFERENCE
from linkstore.ingest.wiki.source import DumpArticles, read_article
from linkstore.ingest.wiki.titles import LinkRole, LinkTarget, TitleResolver

DUMP = Path("wiki_dump") / "enwiki-pages-articles-shortened.xml.bz2"
LONGEST = 4 * 2**20
GALLERY = re.compile(r"<gallery.*?</gallery>", re.DOTALL | re.IGNORECASE)
WRITTEN = re.compile(r"\[\[([^\[\]|{}<>\n]+)")
WORDS = ("river", "market", "tower", "museum", "monorail", "harbour", "bridge", "garden", "station", "summit")
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo><sitename>Made</sitename><dbname>made</dbname><base>https://made.example/wiki/Main_Page</base>
  <case>first-letter</case><namespaces><namespace key="0" case="first-letter" />
  <namespace key="14" case="first-letter">Category</namespace></namespaces></siteinfo>
"""
Link = tuple[str, str]


def main() -> None:
    """Compare on the articles, or read a dump of many pages."""
    options = _options()
    if options.pages:
        rows = list(_constant(options.pages, options.folder))
        dump = options.record and f"{options.record}-dump"
        listed(f"{options.pages:,} pages", rows, as_json=options.json, record_as=dump)
        return
    path = options.data / DUMP
    titles = TitleResolver(info := read_siteinfo(path), {}, info.folder)
    articles = [page for page in read_pages(path, limit=LONGEST) if page.redirect is None]
    speed, links = _speed(articles, titles, path, options.repeat), _links(articles, titles, options.show)
    listed("Wikitext, all articles", speed, as_json=options.json, record_as=options.record)
    by_cause = options.record and f"{options.record}-links"
    listed("Links of each page, as sets", links, as_json=options.json, record_as=by_cause)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    data = os.environ.get("LINKSTORE_EVAL_DATA")
    parser.add_argument("--data", type=Path, default=data, help="folder of data sets")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the median counts (default 3)")
    parser.add_argument("--show", type=int, default=3, help="examples of each difference (default 3)")
    parser.add_argument("--pages", type=int, default=0, help="pages of a dump that is made for this")
    parser.add_argument("--folder", type=Path, default=None, help="where that dump is written")
    add_output(parser)
    options = parser.parse_args()
    if options.data is None and not options.pages:
        parser.error("give --data, or --pages")
    options.data = Path(options.data) if options.data else None
    return options


# Speed


def _speed(
    articles: list[DumpPage], titles: TitleResolver, path: Path, repeat: int
) -> list[dict[str, object]]:
    """Median seconds of each way over all articles; ways take turns."""

    def peer_links(page: DumpPage) -> object:
        return mwparserfromhell.parse(page.text).filter_wikilinks()

    def peer_text(page: DumpPage) -> object:
        parsed = mwparserfromhell.parse(page.text)
        return parsed.filter_wikilinks(), parsed.strip_code()

    def ours(page: DumpPage) -> object:
        return read_article(page.text, title=page.title, resolve=titles.resolve)

    ways: dict[str, Callable[[DumpPage], object]] = {
        "mwparserfromhell: links": peer_links,
        "mwparserfromhell: links and text": peer_text,
        "linkstore: links, text, sections": ours,
    }
    seconds: dict[str, list[float]] = {name: [] for name in [*ways, "linkstore: dump to chunks"]}
    for _ in range(repeat):
        for name, way in ways.items():
            seconds[name].append(_timed(lambda way=way: [None for page in articles if way(page) is None]))
        seconds["linkstore: dump to chunks"].append(_timed(lambda: _read_all(WikiDumpSource(path))))
    size = sum(len(page.text) for page in articles)
    return list(_rows(seconds, size, len(articles)))


def _rows(seconds: dict[str, list[float]], size: int, count: int) -> Iterator[dict[str, object]]:
    peer = statistics.median(seconds["mwparserfromhell: links"])
    for name, runs in seconds.items():
        median = statistics.median(runs)
        yield {
            "way": name,
            "seconds": median,
            "from": min(runs),
            "to": max(runs),
            "pages/s": count / median,
            "million characters/s": size / median / 1e6,
            "times faster": peer / median,
        }


def _timed(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _read_all(source: WikiDumpSource) -> int:
    with source.open() as dump:
        return sum(len(page.read()) for page in dump.pages({}) if not isinstance(page, BadInput))


# Links


def _links(articles: list[DumpPage], titles: TitleResolver, show: int) -> list[dict[str, object]]:
    """How many links are found by both, and by one of them only, by cause."""
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    for page in articles:
        theirs, ours = _their_links(page, titles), _our_links(page.text, page, titles)
        counts["both"] += len(theirs & ours)
        for link in sorted(theirs ^ ours):
            cause = _cause(link, page, titles) if link in ours else "mwparserfromhell only"
            counts[cause] += 1
            examples.setdefault(cause, []).append(f"{page.title}: {link[1]}")
    return [
        {"found by": cause, "links": count, "such as": ", ".join(examples.get(cause, [])[:show])}
        for cause, count in counts.most_common()
    ]


def _their_links(page: DumpPage, titles: TitleResolver) -> set[Link]:
    """What its links name, under the same rules of titles; files and languages are no links."""
    written = (str(link.title) for link in mwparserfromhell.parse(page.text).filter_wikilinks())
    return {link for one in written if (link := _named(titles.resolve(one)))}


def _named(target: LinkTarget | None) -> Link | None:
    if target is not None and target.role is LinkRole.LINK:
        return "link", target.href
    return ("category", target.title) if target is not None and target.role is LinkRole.CATEGORY else None


def _our_links(text: str, page: DumpPage, titles: TitleResolver) -> set[Link]:
    """What our links name; external links that are no wikilinks are left out, as the peer has them apart."""
    article = read_article(text, title=page.title, resolve=titles.resolve)
    wiki = {named[1] for one in WRITTEN.findall(text) if (named := _named(titles.resolve(one)))}
    found = (
        link.href for block in article.blocks for link in block.links if not link.href.startswith(REFERENCE)
    )
    links = {("link", href) for href in found if href in wiki or "://" not in href[:8]}
    return links | {("category", name) for name in article.categories}


def _cause(link: Link, page: DumpPage, titles: TitleResolver) -> str:
    """Why only linkstore has a link."""
    written = {_named(titles.resolve(one)) for one in WRITTEN.findall(page.text)}
    if link not in written:
        return "linkstore only: made by a template"
    if link not in _our_links(GALLERY.sub("", page.text), page, titles):
        return "linkstore only: in the caption of a gallery"
    return "linkstore only: for another reason"


# Memory


def _constant(count: int, folder: Path | None) -> Iterator[dict[str, object]]:
    """Read a dump of so many pages; memory at each tenth of the way."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        path = Path(scratch) / "made.xml"
        with path.open("w") as file:
            file.writelines(_made_dump(count))
        yield _state("dump written", count, 0.0, path.stat().st_size)
        for name, read in (("every page read", True), ("no page changed", False)):
            start = time.perf_counter()
            source = DumpArticles(WikiDumpSource(path))
            yield _state(f"{name}: redirects known", len(source), time.perf_counter() - start)
            done = 0
            for done, page in enumerate(source.pages({}), start=1):
                if read and not isinstance(page, BadInput):
                    page.read()
                if done % max(1, count // 4) == 0:
                    yield _state(f"{name}, so far", done, time.perf_counter() - start)
            yield _state(f"{name}, all", done, time.perf_counter() - start)


def _state(what: str, pages: int, seconds: float, size: int = 0) -> dict[str, object]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rate = pages / seconds if seconds else None
    return {
        "when": what,
        "pages": pages,
        "s": seconds,
        "pages/s": rate,
        "peak MiB": peak,
        "dump MB": size // 10**6 or None,
    }


def _made_dump(count: int) -> Iterator[str]:
    """A title, a paragraph, 8 links and a category for each page; every third page is a redirect."""
    yield HEAD
    for number in range(count):
        if number % 3 == 2:
            yield _made_page(number, f"#REDIRECT [[Place {number - 1}]]", f"Place {number - 1}")
        else:
            targets = ((number * 7 + step * 101) % count for step in range(8))
            sentence = " ".join(
                f"The {WORDS[(number + step) % len(WORDS)]} leads to [[Place {target}|place {target}]]."
                for step, target in enumerate(targets)
            )
            text = f"'''Place {number}''' is one of many. {sentence}\n[[Category:Places {number % 99}]]"
            yield _made_page(number, text)
    yield "</mediawiki>\n"


def _made_page(number: int, text: str, redirect: str | None = None) -> str:
    leads = f'<redirect title="{redirect}" />' if redirect else ""
    return (
        f"<page><title>Place {number}</title><ns>0</ns><id>{number}</id>{leads}<revision><id>{number}</id>"
        f"<model>wikitext</model><text>{escape(text)}</text></revision></page>\n"
    )


if __name__ == "__main__":
    main()
