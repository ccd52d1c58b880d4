"""What a megabyte of input costs: HTML, Markdown, wikitext, sitemaps and dumps, ordinary and made to be slow.

Run: ``python benchmarks/bounds.py``. Each input is about ``--megabytes`` long and is read in a process of
its own, end to end: from bytes to chunks and their links, or for a sitemap and a dump to the URLs and pages
in it. Counted are processor time, and by how much the process grew at its peak. An input that is refused as
unbounded counts with the time that takes. The aim is at most 1 s and 100 MB for each MB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from _report import add_output, report

from linkstore.core.processes import infrequent_gc
from linkstore.errors import FetchError, LinkStoreError
from linkstore.extract import Page
from linkstore.extract.blocks import Block
from linkstore.ingest.chunks import make_chunks
from linkstore.ingest.html.pages import read_html_page
from linkstore.ingest.notes.markdown import read_markdown_content
from linkstore.ingest.notes.markup import NoteIndex, find_targets, render_note
from linkstore.ingest.source import UnreadablePageError
from linkstore.ingest.web.website import read_sitemap
from linkstore.ingest.wiki.dump import read_pages, read_siteinfo
from linkstore.ingest.wiki.source import read_article, read_reference
from linkstore.ingest.wiki.titles import SiteInfo, TitleResolver
from linkstore_extractors.citations import CitationExtractor
from linkstore_extractors.html import HyperlinkExtractor
from linkstore_extractors.sections import SectionExtractor

PROSE: Final = "The market hall was built in 1907, rebuilt by its traders and saved from ruin by its town. "
ATTRIBUTES: Final = " ".join(f"a{number}=b" for number in range(900))
NUMBERED: Final = "".join(f"<b id=i{number}>" for number in range(300))
PAGE: Final = "<page><title>{0}</title><ns>0</ns><id>1</id><revision><text>{1}</text></revision></page>"
URL: Final = "<url><loc>https://docs.example/guide/page-{}.html</loc></url>"

SHAPES: Final[dict[str, dict[str, str]]] = {
    "HTML": {
        "prose with links": f"<p>{PROSE}<a href=a.html#b>a page</a> {PROSE}</p>\n",
        "sections": f"<h2 id=a>Of markets</h2><p>{PROSE * 4}</p>",
        "tables": "<table><tr><td>a</td><td><a href=b>b</a></td></tr></table>",
        "highlighted code": "<pre><span class=k>def</span> <span class=n>f</span>(x):\n</pre>",
        "a paragraph without spaces": "東京都は日本の首都である。",
        "headings alone": "<h2>h</h2>",
        "paragraphs that open elements again": f"<p>{NUMBERED}" + "<p>x" * 10_000,
        "unclosed formatting": "<p><font size=2 color=red>x",
        "blocks in formatting": "<b><p>x</b></p>",
        "forms out of order": "<form><p></form>x",
        "as deep as allowed": "<div>" * 500 + "x" + "</div>" * 500,
        "many attributes": f"<p {ATTRIBUTES}>x</p>",
        "attributes to compare": f"<b {ATTRIBUTES}>",
        "lists to choose from": "<select><option>a</select>",
        "named elements": "<a name=x></a>",
        "comments": "<!-- x -->",
        "brackets": "<",
    },
    "Markdown": {
        "prose with links": f"{PROSE}[a page](a.md#b) and [[Note|a note]]. {PROSE}\n\n",
        "sections": f"## Of markets\n\n{PROSE * 4}\n\n",
        "lists": "- one\n  - two\n    - three\n",
        "tables": "| a | b |\n|---|---|\n| c | d |\n\n",
        "code": "```python\ndef f(x):\n    return x\n```\n\n",
        "emphasis": "*a **b ",
        "brackets": "[",
        "links without targets": "[a][b] ",
        "wikilinks": "[[a]] ![[b]] ",
        "links": "[a](b) ",
        "bold words": "**a** ",
        "headings": "# a\n",
        "depth": "> - ",
        "tags": "#a ",
        "short lines": "a\n",
        "backticks": "`a",
        "quotes in quotes": "> " * 50 + "x\n",
        "a line of words": "word ",
    },
    "wikitext": {
        "prose with links": f"{PROSE}[[A page#b|a page]], {{{{cite web|url=http://a.example}}}}.\n\n",
        "sections": f"== Of markets ==\n{PROSE * 4}\n",
        "references": f"{PROSE}<ref>[http://a.example A], ISBN 978-0-306-40615-7</ref>\n\n",
        "tables": "{|\n|-\n| a || b\n|}\n",
        "templates and spaces": "{{x}}" + " " * 60,
        "open templates": "{{a|",
        "open links": "[[a|",
        "apostrophes": "''a'''b",
        "open tables": "{|\n|a\n",
        "parentheses": "({{a}} ",
    },
    "sitemap": {
        "URLs": URL,
        "long URLs": URL.format("x" * 1900),
        "comments": "<!-- x -->",
        "elements": "<url/>",
    },
    "dump": {
        "short pages": PAGE.format("Market", PROSE),
        "long pages": PAGE.format("Market", PROSE * 5_000),
        "redirects": "<page><title>A</title><ns>0</ns><redirect title='B'/></page>",
        "elements": "<x/>",
        "attributes": f"<x {ATTRIBUTES}/>",
    },
}
"""What is repeated to make an input, by reader and name."""


def main() -> None:
    """Read each input in a process of its own; print for each format the first and the most costly ones."""
    options = _options()
    if options.reader:
        sys.stdout.write(json.dumps(_measured(options.reader, options.shape, options.megabytes)) + "\n")
        return
    rows = [_row(reader, SHAPES[reader], options.megabytes) for reader in options.format or SHAPES]
    report(
        f"a megabyte of input, of {options.megabytes:g} MB",
        rows,
        as_json=options.json,
        record_as=options.record,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", help="not used; every benchmark takes it")
    parser.add_argument("--megabytes", type=float, default=1.0, help="length of each input (default 1)")
    add_output(parser)
    parser.add_argument("--format", action="append", choices=SHAPES, help="a format; default all of them")
    parser.add_argument("--reader", choices=SHAPES, help=argparse.SUPPRESS)
    parser.add_argument("--shape", help=argparse.SUPPRESS)
    return parser.parse_args()


def _row(reader: str, shapes: dict[str, str], megabytes: float) -> dict[str, Any]:
    costs = {shape: _elsewhere(reader, shape, megabytes) for shape in shapes}
    for shape, (seconds, memory) in costs.items():
        sys.stderr.write(f"{reader}, {shape}: {seconds:.2f} s, {memory:.0f} MB per MB\n")
    ordinary, *_ = costs
    slowest = max(costs, key=lambda shape: costs[shape][0])
    largest = max(costs, key=lambda shape: costs[shape][1])
    return {
        "": reader,
        "ordinary, s per MB": costs[ordinary][0],
        "MB per MB": costs[ordinary][1],
        "slowest input": slowest,
        "its s per MB": costs[slowest][0],
        "largest in memory": largest,
        "its MB per MB": costs[largest][1],
    }


def _elsewhere(reader: str, shape: str, megabytes: float) -> tuple[float, float]:
    command = [sys.executable, __file__, "--reader", reader, "--shape", shape, "--megabytes", str(megabytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, memory = json.loads(done.stdout)
    return seconds, memory


def _measured(reader: str, shape: str, megabytes: float) -> tuple[float, float]:
    """Seconds, and MB at the peak, of reading one input, for each MB of it."""
    unit = SHAPES[reader][shape]
    content = (unit * max(1, int(megabytes * 1e6) // len(unit.encode()))).encode()
    read = _READERS[reader]
    read(unit.encode())  # what only the first time takes
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory counts from here
    before, started = _peak(), time.process_time()
    with infrequent_gc():  # as a run does
        read(content)
    size = len(content) / 1e6
    return (time.process_time() - started) / size, (_peak() - before) / size


def _peak() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def _html(content: bytes) -> None:
    try:
        _documents(read_html_page(content).blocks)
    except UnreadablePageError:
        return


def _markdown(content: bytes) -> None:
    text = content.decode()
    find_targets(text)
    page = render_note(text, "x.md", NoteIndex(("Note.md", "a/index.md"), {}))
    try:
        _documents(read_markdown_content(page, title="").blocks)
    except UnreadablePageError:
        return


def _wikitext(content: bytes) -> None:
    titles = TitleResolver(SiteInfo(base="https://en.wikipedia.org/wiki/Main_Page", language="en"), {}, None)
    resolve = titles.at("Page", 0)
    article = read_article(content.decode(), title="Page", resolve=resolve)
    _documents(article.blocks)
    for reference in article.references.values():
        read_reference(reference, title="Page", resolve=resolve)


def _sitemap(content: bytes) -> None:
    try:
        read_sitemap(b"<urlset>" + content + b"</urlset>")
    except FetchError:
        return


def _dump(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dump.xml")
        path.write_bytes(b"<mediawiki>" + content + b"</mediawiki>")
        try:
            read_siteinfo(path)
            for _ in read_pages(path, limit=2**20):
                pass
        except LinkStoreError:
            return


def _documents(blocks: tuple[Block, ...]) -> None:
    for chunk in make_chunks(Page(url="a/b.html", title="Page"), blocks):
        HyperlinkExtractor().extract(chunk)
        SectionExtractor().extract(chunk)
        CitationExtractor().extract(chunk.text)


_READERS: Final[dict[str, Callable[[bytes], None]]] = {
    "HTML": _html,
    "Markdown": _markdown,
    "wikitext": _wikitext,
    "sitemap": _sitemap,
    "dump": _dump,
}


if __name__ == "__main__":
    main()
