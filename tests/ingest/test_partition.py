"""A source that is indexed in parts gives the store that a run of the whole gives, byte for byte."""

from __future__ import annotations

import bz2
import json

import pytest
from documented import linkstore
from internals import write_json_lines
from stores import embedding
from wikis import BASE, dump_text
from wikis import Written as Page

from linkstore import LinkStore
from linkstore.cli import exits
from linkstore.errors import ArgumentError, ExtractionError, SourceNotFoundError, StrategyError
from linkstore.ingest import (
    FolderSource,
    JsonLinesSource,
    Partition,
    VaultSource,
    WikiDumpSource,
    WriteCounts,
    index,
    workers,
)
from linkstore.ingest.wiki import dump

PARTS = 3
LINKS = ("hyperlink", "section", "mention")


def exported(store):
    return b"".join(write_json_lines(store))


def folder(path):
    """A site with links, a redirect, two pages of one text, one without, and titles that texts mention."""
    path.mkdir()
    for n in range(23):
        text = f'<a href="p{(n + 5) % 23}.html">next</a> The Grand Depot {(n + 1) % 23} burned.'
        (path / f"p{n}.html").write_text(
            f"<title>Grand Depot {n}</title><h1>Grand Depot {n}</h1><p>{text}</p>"
        )
    (path / "old.html").write_text('<meta http-equiv="refresh" content="0;url=p1.html">')
    (path / "copy.html").write_bytes((path / "p2.html").read_bytes())
    (path / "empty.html").write_text("<p></p>")
    return path


def vault(path):
    path.mkdir()
    for n in range(11):
        (path / f"N{n}.md").write_text(f"---\naliases: [also {n}]\n---\n# N{n}\n\nSee [[N{(n + 3) % 11}]].\n")
    return path


def lines(path):
    rows = [{"id": f"r{n}", "text": f"text {n}", "links": [f"r{(n + 1) % 31}"]} for n in range(31)]
    path.write_text("\n".join(map(json.dumps, [*rows, rows[0], {"id": "torn"}])))
    return path


SOURCES = {
    "folder": lambda path: FolderSource(folder(path)),
    "vault": lambda path: VaultSource(vault(path)),
    "jsonl": lambda path: JsonLinesSource(lines(path)),
    "dump": lambda path: WikiDumpSource(multistream(path, index=False)),
    "multistream": lambda path: WikiDumpSource(multistream(path)),
}


def wiki_pages():
    for n in range(40):
        yield Page(f"Town {n}", f"Near [[Town {(n + 7) % 40}]] and [[Old {n}]]. [[Category:Towns]] " * 3)
        yield Page(f"Old {n}", f"#REDIRECT [[Town {n}]]", redirect=f"Town {n}")


def multistream(path, *, index=True, pages=None, each=6):
    """A dump in many streams, and its index, as Wikimedia publishes them."""
    path.mkdir(exist_ok=True)
    pages = list(wiki_pages()) if pages is None else pages
    head = dump_text([], BASE).removesuffix("</mediawiki>\n")
    content, listed = bz2.compress(head.encode()), []
    for start in range(0, len(pages), each):
        listed += [f"{len(content)}:1:{page.title}\n" for page in pages[start : start + each]]
        content += bz2.compress("".join(page.xml() for page in pages[start : start + each]).encode())
    content += bz2.compress(b"</mediawiki>\n")
    made = path / "wiki-multistream.xml.bz2"
    made.write_bytes(content)
    if index:
        (path / "wiki-multistream-index.txt.bz2").write_bytes(bz2.compress("".join(listed).encode()))
    return made


@pytest.mark.parametrize(("kind", "jobs"), [*((kind, 1) for kind in SOURCES), ("multistream", 2)])
def test_parts_make_the_store_of_the_whole(kind, jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 0.0)
    source = SOURCES[kind](tmp_path / "source")
    options = {"links": LINKS, "jobs": jobs}
    with LinkStore.open(tmp_path / "whole", embedding()) as whole:
        expected = index(whole, source, **options)
        with LinkStore.open(tmp_path / "parts", embedding()) as parts:
            done = [index(parts, source, **options, partition=Partition(n, PARTS)) for n in (2, 3, 1)]
            assert all(one.pages.added for one in done), "each has something to do"
            assert sum(one.pages.added for one in done) == expected.pages.added
            reported = [problem for one in done for problem in one.skipped.items()]
            assert sorted(reported) == sorted(expected.skipped.items()), "each problem is reported once"
            end = index(parts, source, **options)
            assert end.pages == WriteCounts(unchanged=expected.pages.added), (
                "nothing is read or embedded again"
            )
            assert exported(parts) == exported(whole)
            assert parts.pages.digests() == whole.pages.digests()


@pytest.mark.parametrize("kind", ["folder", "multistream"])
def test_a_part_that_is_run_again_changes_nothing(kind, tmp_path):
    source = SOURCES[kind](tmp_path / "source")
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        first = index(store, source, partition=Partition(2, PARTS))
        before = exported(store)
        again = index(store, source, partition=Partition(2, PARTS))
        assert again.pages == WriteCounts(unchanged=first.pages.added)
        assert exported(store) == before


def test_a_part_removes_nothing_and_the_whole_does(tmp_path):
    site = folder(tmp_path / "site")
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        index(store, FolderSource(site))
        for n in range(4):
            (site / f"p{n}.html").unlink()
        gone = [index(store, FolderSource(site), partition=Partition(n, 2)).pages.removed for n in (1, 2)]
        assert gone == [0, 0]
        assert index(store, FolderSource(site)).pages.removed >= 3
        assert not {f"p{n}.html" for n in (0, 1, 3)} & store.pages.digests().keys()


def test_more_parts_than_streams_and_pages(tmp_path):
    source = WikiDumpSource(multistream(tmp_path / "source", pages=list(wiki_pages())[:6], each=4))
    with LinkStore.open(tmp_path / "kb", embedding()) as store, LinkStore(embedding()) as whole:
        added = [index(store, source, partition=Partition(n, 5)).pages.added for n in range(1, 6)]
        assert sorted(added) == [0, 0, 0, 1, 2]
        index(whole, source)
        assert exported(store) == exported(whole)


def test_a_part_of_a_multistream_dump_reads_its_own_streams(tmp_path, monkeypatch):
    source = WikiDumpSource(multistream(tmp_path / "source"))
    read = []
    feed = dump._feed_events

    def feed_and_count(path, reader, section):
        read.append(section)
        yield from feed(path, reader, section)

    monkeypatch.setattr(dump, "_feed_events", feed_and_count)
    with LinkStore(embedding()) as store:
        index(store, source, partition=Partition(2, PARTS))
    *_, redirects, own = read
    size = (tmp_path / "source" / "wiki-multistream.xml.bz2").stat().st_size
    assert (redirects.start, redirects.stop) == (0, None)
    assert 0 < own.start < own.stop < size
    assert own.stop - own.start < size / 2


def test_an_index_of_another_dump_is_refused(tmp_path):
    source = WikiDumpSource(multistream(tmp_path / "source"))
    wrong = tmp_path / "source" / "wiki-multistream-index.txt.bz2"
    with LinkStore(embedding()) as store:
        wrong.write_bytes(bz2.compress(b"617:10:Town 1\n"))
        with pytest.raises(SourceNotFoundError, match=r"no stream at 617"):
            index(store, source, partition=Partition(1, 2))
        wrong.write_bytes(bz2.compress(b"Town 1\n"))
        with pytest.raises(SourceNotFoundError, match=r"is not the index of a dump"):
            index(store, source, partition=Partition(1, 2))
        wrong.write_bytes(bz2.compress(b"617:10:Town 1\n")[:20])
        with pytest.raises(SourceNotFoundError, match=r"is not the index of a dump"):
            index(store, source, partition=Partition(1, 2))


def test_what_is_no_part_is_refused(tmp_path):
    source = FolderSource(folder(tmp_path / "site"))
    for number, count in ((0, 3), (4, 3), (1, 0), (True, 2), (1.5, 2)):
        with pytest.raises(StrategyError):
            Partition(number, count)
    with LinkStore(embedding()) as store:
        with pytest.raises(ArgumentError, match=r"Partition\(3, 16\)"):
            index(store, source, partition=(1, 2))
        with pytest.raises(ExtractionError, match=r"keyword.*needs all documents"):
            index(store, source, links=["keyword"], partition=Partition(1, 2))


def test_the_command_indexes_parts(tmp_path):
    site, kb, whole = (str(tmp_path / name) for name in ("site", "kb", "whole"))
    folder(tmp_path / "site")
    for part in ("1/2", "2/2"):
        code, out, _ = linkstore("index", site, "--store", kb, "--partition", part)
        assert (code, "dangling" in out) == (0, False), "a part does not know which links are dangling"
    assert linkstore("index", site, "--store", kb)[0] == 0
    assert linkstore("index", site, "--store", whole)[0] == 0
    assert linkstore("export", "--store", kb, "-o", f"{kb}.jsonl")[0] == 0
    assert linkstore("export", "--store", whole, "-o", f"{whole}.jsonl")[0] == 0
    assert (tmp_path / "kb.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes() != b""
    for wrong in ("3/2", "0/2", "2", "a/b", "1/2/3"):
        code, _, error = linkstore("index", site, "--store", kb, "--partition", wrong)
        assert code == exits.USAGE
        assert "such as 3/16" in error
    code, _, error = linkstore("index", site, "--store", kb, "--partition", "1/2", "--every", "1h")
    assert (code, "--partition is for a single run" in error) == (exits.USAGE, True)
