"""HTML link extraction against langchain-community's HtmlLinkExtractor, on a built site.

Run: ``python benchmarks/html_links.py --data DIR``, where DIR (or LINKSTORE_EVAL_DATA) holds
``docs_site/peps_html.tar.xz``. Both extractors take the same decoded pages with the same URLs, in
turns; the table gives the median of the runs.
"""

from __future__ import annotations

import argparse
import statistics
import tarfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urldefrag

from _report import add_data, add_output, listed

from linkstore.core.urls import normalize_url
from linkstore_extractors.html import HtmlInput, HtmlLinkExtractor

BASE = "https://peps.python.org/"
Pages = list[HtmlInput]


def main() -> None:
    """Read the site, time both, compare what they found, print the table."""
    options = _options()
    pages = list(_pages(options.data / "docs_site" / "peps_html.tar.xz"))
    peer = _community()
    ours = HtmlLinkExtractor()
    runs: dict[str, list[float]] = {"langchain-community": [], "linkstore": []}
    for _ in range(options.repeat):
        runs["langchain-community"].append(_timed(peer, pages))
        runs["linkstore"].append(_timed(ours.extract, pages))
    megabytes = sum(len(page.content) for page in pages) / 1e6
    title = f"Link extraction, {len(pages)} pages, {megabytes:.1f} MB"
    listed(title, list(_speeds(runs, len(pages))), as_json=options.json, record_as=options.record)
    compared = options.record and f"{options.record}-compared"
    listed("Links, compared", _missed(pages, peer), as_json=options.json, record_as=compared)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the median counts (default 3)")
    add_output(parser)
    options = parser.parse_args()
    options.data = Path(options.data)
    return options


def _pages(archive: Path) -> Iterator[HtmlInput]:
    with tarfile.open(archive) as tar:
        for member in sorted(tar, key=lambda entry: entry.name):
            if member.name.endswith(".html"):
                file = tar.extractfile(member)
                if file is not None:
                    path = member.name.partition("/")[2].removesuffix("index.html")
                    yield HtmlInput(content=file.read().decode(), base_url=BASE + path)


def _community() -> Callable[[HtmlInput], set[object]]:
    warnings.simplefilter("ignore")
    from langchain_community.graph_vectorstores.extractors import HtmlInput as TheirInput
    from langchain_community.graph_vectorstores.extractors import HtmlLinkExtractor as Peer

    peer = Peer()
    return lambda page: peer.extract_one(TheirInput(page.content, page.base_url))


def _timed(extract: Callable[[HtmlInput], object], pages: Pages) -> float:
    start = time.perf_counter()
    for page in pages:
        extract(page)
    return time.perf_counter() - start


def _missed(pages: Pages, peer: Callable[[HtmlInput], set[object]]) -> list[dict[str, object]]:
    """How many links the peer finds, how many of them stand in noise only, how many are missed."""
    ours = HtmlLinkExtractor()
    everything = HtmlLinkExtractor(noise=True)
    found = noise = missed = 0
    for page in pages:
        theirs = {normalize_url(link.tag) for link in peer(page) if link.direction == "out"} - {None}
        content = _without_fragments(ours, page)
        rest = theirs - content
        in_noise = rest & _without_fragments(everything, page)
        found, noise, missed = found + len(theirs), noise + len(in_noise), missed + len(rest - in_noise)
    return [
        {"links": "found by langchain-community", "count": found},
        {"links": "of them only in navigation, header, footer, sidebars or contents", "count": noise},
        {"links": "of the others missed by linkstore", "count": missed},
    ]


def _without_fragments(extractor: HtmlLinkExtractor, page: HtmlInput) -> set[str]:
    return {urldefrag(link.tag).url for link in extractor.extract(page)}


def _speeds(runs: dict[str, list[float]], pages: int) -> Iterator[dict[str, object]]:
    slowest = statistics.median(runs["langchain-community"])
    for name, seconds in runs.items():
        median = statistics.median(seconds)
        yield {
            "extractor": name,
            "seconds": median,
            "pages/s": pages / median,
            "times faster": slowest / median,
        }


if __name__ == "__main__":
    main()
