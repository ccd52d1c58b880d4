"""Pages that processes read give the same store as pages read here, and one that ends a process is named."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest
from internals import BadInput, Linkers, ReadingPool, Site, SourcePage
from langchain_core.documents import Document
from stores import embedding, long

from linkstore import LinkStore
from linkstore.errors import StrategyError
from linkstore.extract import Chunk, Page
from linkstore.ingest import (
    DocumentsSource,
    FolderSource,
    JsonLinesSource,
    VaultSource,
    WikiDumpSource,
    index,
    workers,
)
from linkstore.ingest import workers as readahead

WIKI = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11">
<siteinfo><base>https://w.example/wiki/Main</base><namespaces><namespace key="0"/></namespaces></siteinfo>
{pages}</mediawiki>"""
ARTICLE = """<page><title>A{n}</title><ns>0</ns><id>{n}</id><revision><id>1</id><model>wikitext</model>
<text>'''A{n}''' links to [[A{other}]].&lt;ref&gt;RFC 9110&lt;/ref&gt;
== Part ==
More of {n}, see [[Old {other}#Part|that]]. [[Category:C{kind}]]</text></revision></page>
<page><title>Old {n}</title><ns>0</ns><id>1{n}</id><redirect title="A{n}"/><revision><id>2</id>
<model>wikitext</model><text>#REDIRECT [[A{n}#Part]]</text></revision></page>"""
COUNT = 40


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Processes start with the first page, however short the source."""
    monkeypatch.setattr(readahead, "PATIENCE", 0.0)


@pytest.fixture(params=[1, 7], ids=["one page a message", "seven pages a message"])
def together(request, monkeypatch):
    send = ReadingPool.send
    monkeypatch.setattr(ReadingPool, "send", lambda self, page, _: send(self, page, request.param))
    return request.param


def html_site(folder: Path) -> Path:
    """Built pages of several kinds: with a shared frame, empty, binary, claiming another site."""
    folder.mkdir()
    for n in range(COUNT):
        canonical = f'<link rel=canonical href="https://bank.example/{n}">' if n % 7 == 3 else ""
        (folder / f"p{n}.html").write_text(
            f"<title>Page {n}</title>{canonical}<nav><a href=p0.html>Home</a> of the docs</nav>"
            f"<main><h1>Page {n}</h1><p>Text {n}, see RFC 91{n:02}.</p><h2 id=s>Part</h2>"
            f"<p>See <a href=p{(n * 7) % COUNT}.html#s>another</a>.</p></main>"
        )
    (folder / "empty.html").write_text("")
    (folder / "binary.html").write_bytes(b"\0" * 100)
    (folder / "note.md").write_text("# Note\n\nSee [page](p1.html).\n")
    return folder


def vault(folder: Path) -> Path:
    """Notes that link to each other by name and alias."""
    folder.mkdir()
    for n in range(COUNT):
        front = f"---\naliases: [Alias {n}]\nurl: https://bank.example/{n}\ntags: [t{n % 3}]\n---\n"
        (folder / f"Note {n}.md").write_text(f"{front}See [[Alias {(n * 3) % COUNT}]] and [[Note 1#Part]].\n")
    (folder / "broken.md").write_text("---\na: [\n---\nText\n")
    return folder


def lines(path: Path) -> Path:
    """Records, of which one is broken and one claims another site."""
    rows = [
        {"id": f"r{n}", "text": f"Text {n}", "url": f"https://{'a' if n else 'b'}.example/{n}"}
        for n in range(COUNT)
    ]
    path.write_text("\n".join([*map(json.dumps, rows), "{broken", '{"id": "r1", "text": "again"}']))
    return path


def dump(path: Path) -> Path:
    """Articles with redirects, categories and footnotes."""
    pages = (ARTICLE.format(n=n, other=(n * 3) % COUNT, kind=n % 4) for n in range(COUNT))
    path.write_text(WIKI.format(pages="\n".join(pages)))
    return path


SOURCES = {
    "folder": (FolderSource, html_site),
    "vault": (VaultSource, vault),
    "jsonl": (JsonLinesSource, lines),
    "wiki": (WikiDumpSource, dump),
}


def contents(store: LinkStore) -> tuple:
    return [(one.id, one.page_content, one.metadata) for one in store.scan()], store.pages.digests()


def run(kind, place, jobs: int) -> tuple:
    """What a store holds after a run, what the run says, and in what order it went."""
    steps: list[tuple] = []
    with LinkStore(embedding()) as store:
        source = kind(place)
        summary = index(store, source, name="s", jobs=jobs, progress=lambda *step: steps.append(step))
        again = index(store, source, name="s", jobs=jobs)
        return contents(store), summary, list(summary.skipped.items()), steps, again


@pytest.mark.parametrize("kind", SOURCES)
def test_processes_give_the_same_documents_links_report_and_order(tmp_path, kind, monkeypatch, together):
    source, made = SOURCES[kind]
    place = made(tmp_path / kind)
    alone = run(source, place, 1)
    asked: list[int] = []
    send = ReadingPool.send
    monkeypatch.setattr(ReadingPool, "send", lambda self, *given: asked.append(1) or send(self, *given))
    assert run(source, place, 2) == alone
    assert len(asked) >= COUNT - 1, "the pages were read by processes"
    assert alone[1].pages.added >= COUNT - 1
    assert alone[4].pages.unchanged == alone[1].pages.added


class Odd:
    """Pages of which one does something that pages should not; importable by its processes."""

    name, site, unread = "odd", Site(), {}

    def open(self):
        return nullcontext(self)

    def __init__(self, fault=None, offers_then=None, **faults) -> None:
        self.faults = {"p5": fault, **faults}
        self.offers_then = offers_then

    def __len__(self) -> int:
        return 12

    def pages(self, known):
        for n in range(12):
            yield SourcePage(url=f"p{n}", digest=str(n), read=partial(self.read, n))
        if self.offers_then is not None:
            raise self.offers_then

    def read(self, n):
        if fault := self.faults.get(f"p{n}"):
            fault()
        return [Chunk(page=Page(url=f"p{n}", title=f"P{n}"), text=f"text {n}", index=0)]


def die() -> None:
    os._exit(3)


def be_killed() -> None:
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


def burn() -> None:
    while True:
        pass


def hang() -> None:
    time.sleep(600)


def chatter() -> None:
    print("what a reader prints does not reach the pipe")


def fail() -> None:
    raise ZeroDivisionError("at this page")


def indexed(source, **options):
    with LinkStore(embedding()) as store:
        summary = index(store, source, links=(), jobs=2, **options)
        return contents(store), summary


@pytest.fixture
def importable(monkeypatch):
    """This module under a name that other processes can import."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setitem(sys.modules, "test_workers", sys.modules[__name__])
    for one in (Odd, die, be_killed, burn, hang, chatter, fail):
        monkeypatch.setattr(one, "__module__", "test_workers")


def test_pages_are_sent_several_at_once_after_half_a_second_of_reading(monkeypatch):
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr(ReadingPool, "send", lambda self, page, together: sent.append((page.url, together)))
    monkeypatch.setattr(readahead, "PATIENCE", 0.5)
    clock = iter(n / 16 for n in range(10_000))
    monkeypatch.setattr(readahead, "perf_counter", lambda: next(clock))
    offers = [
        SourcePage(url=f"{n}", digest="1", read=lambda: [Document(page_content="text", id="t")])
        for n in range(15)
    ]
    list(readahead.ReadAhead(Linkers((), Site()), (), 2).pages(iter(offers), lambda page: True))
    assert sent == [(f"{n}", 8) for n in range(8, 15)]


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_a_page_that_ends_its_process_is_named_and_nothing_else_is_lost(importable, monkeypatch, together):
    """Nor by one that never ends, nor by one whose reader prints."""
    monkeypatch.setattr(workers, "SECONDS_A_PAGE", 1.0)
    (documents, pages), summary = indexed(Odd(p1=chatter, p2=die, p4=be_killed, p6=fail, p8=burn, p10=die))
    assert summary.skipped == {
        "p2": "the process that read it ended",
        "p4": "the process that read it ended",
        "p6": "reading it failed: ZeroDivisionError: at this page",
        "p8": "reading it took more than 1 s",
        "p10": "the process that read it ended",
    }
    assert set(pages) == {"p0", "p1", "p3", "p5", "p7", "p9", "p11"}
    assert len(documents) == 7


@pytest.mark.skipif(os.name != "posix", reason="time is counted so on POSIX")
def test_a_page_has_its_own_time_and_some_more_by_the_clock(importable, monkeypatch, together):
    monkeypatch.setattr(workers, "SECONDS_A_PAGE", 1.0)
    monkeypatch.setattr(workers, "_PATIENCE_A_PAGE", 1000)
    (_, pages), summary = indexed(Odd(p3=partial(time.sleep, 2)))
    assert (len(pages), summary.skipped) == (12, {})


def test_what_python_prints_at_its_start_does_no_harm(tmp_path, monkeypatch, caplog):
    place = html_site(tmp_path / "site")
    alone = run(FolderSource, place, 1)
    (tmp_path / "sitecustomize.py").write_text("print('hello ' * 50_000)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run(FolderSource, place, 2) == alone
    assert "did not start" not in caplog.text


def test_a_source_that_fails_has_its_pages_stored_up_to_there(importable, together):
    with LinkStore(embedding()) as store:
        source = Odd(chatter, RuntimeError("the source broke"))
        with pytest.raises(RuntimeError, match="the source broke"):
            index(store, source, links=(), jobs=2)


def test_a_source_that_cannot_be_sent_is_read_here(together):
    source = Odd(lambda: None)  # a function without a name
    (_, pages), summary = indexed(source)
    assert (len(pages), summary.skipped) == (12, {})


def test_where_no_process_starts_the_pages_are_read_here(tmp_path, monkeypatch, caplog):
    place = html_site(tmp_path / "site")
    alone = run(FolderSource, place, 1)
    monkeypatch.setattr("multiprocessing.spawn._python_exe", os.fsencode(shutil.which("false")))
    assert run(FolderSource, place, 2) == alone
    assert caplog.text.count("did not start") == 2, "once for each run"


def test_no_process_is_left_after_a_run_or_an_interrupt(importable, together):
    def interrupt(done, about, name):
        if done == 7:
            raise KeyboardInterrupt

    with LinkStore(embedding()) as store:
        with pytest.raises(KeyboardInterrupt):
            index(store, Odd(chatter), links=(), jobs=2, progress=interrupt)
        index(store, Odd(chatter), links=(), jobs=2)
        assert len(store.pages.digests()) == 12
    assert multiprocessing.active_children() == []


def test_a_process_that_reads_starts_without_numpy_and_without_a_store():
    readers = ("html.folder", "notes.vault", "records", "wiki.source", "wiki.zim", "web.crawl")
    imported = ", ".join(f"linkstore.ingest.{name}" for name in ("workers", *readers))
    code = f"import sys, {imported}; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(modules.stdout.split()).isdisjoint(
        (
            "numpy",
            "apsw",
            "asyncio",
            "linkstore.store.core",
            "linkstore.engines",
            "linkstore.strategies",
        )
    )


def test_few_pages_start_no_process(tmp_path, monkeypatch):
    monkeypatch.setattr(readahead, "PATIENCE", 60.0)
    monkeypatch.setattr(ReadingPool, "send", lambda *_: pytest.fail("a process was asked"))
    assert run(FolderSource, html_site(tmp_path / "site"), 2)[1].pages.added == COUNT + 1


SCRIPT = """
from linkstore import LinkStore
from linkstore.ingest import FolderSource, index, workers as readahead
readahead.PATIENCE = 0.0
print("begun")
with LinkStore.open({store!r}) as store:
    print(index(store, FolderSource({site!r}), jobs=2).pages.added)
"""


def test_a_script_needs_no_guard_and_runs_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(store=str(tmp_path / "s"), site=str(html_site(tmp_path / "site"))))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["begun", str(COUNT + 1)], done.stderr


AROUND = """
read = []
from linkstore.ingest import workers
receive = workers.ReadingPool.receive
workers.ReadingPool.receive = lambda self, sent: read.append(receive(self, sent)) or read[-1]
"""


@pytest.mark.skipif(os.name != "posix", reason="streams are those of POSIX")
@pytest.mark.parametrize("closed", [(0, 1, 2), *(long(some) for some in ((0,), (1,), (2,), (1, 2)))], ids=str)
def test_processes_read_where_standard_streams_are_missing(tmp_path, closed):
    """Of a daemon, say; a pipe must not take the number of a stream."""
    program = tmp_path / "program.py"
    script = SCRIPT.format(store=str(tmp_path / "s"), site=str(html_site(tmp_path / "site")))
    script = script.replace("print(", "said = (")
    said = f"repr((said, all(map(bool, read)), len(read) > {COUNT}))"
    last = f"open({str(tmp_path / 'said')!r}, 'w').write({said})"
    program.write_text(AROUND + script + last)
    # sh closes them before Python starts, as a daemon's parent does
    streams = " ".join(f"{stream}>&-" for stream in closed)
    command = ["sh", "-c", f'"$0" "$1" {streams}', sys.executable, str(program)]
    assert subprocess.run(command, timeout=120).returncode == 0
    assert (tmp_path / "said").read_text() == repr((COUNT + 1, True, True))


def test_fewer_than_one_process_is_refused(tmp_path):
    with (
        LinkStore(embedding()) as store,
        pytest.raises(StrategyError, match="at least 1, not 0"),
    ):
        index(store, FolderSource(html_site(tmp_path / "site")), jobs=0)


def test_documents_are_read_by_processes_too():
    from langchain_core.documents import Document

    given = [Document(id=f"d{n}", page_content=f"RFC {n}", metadata={"n": n, "f": 1.5}) for n in range(COUNT)]

    def stored(jobs: int):
        with LinkStore(embedding()) as store:
            index(store, DocumentsSource(given, "s"), jobs=jobs)
            return contents(store)

    assert stored(2) == stored(1)


def test_a_bad_input_among_the_pages_keeps_its_place(importable, together):
    class Mixed(Odd):
        def pages(self, known):
            for n, page in enumerate(super().pages(known)):
                yield page
                if n % 4 == 0:
                    yield BadInput(name=f"bad{n}", reason="it is bad")

    steps: list[str] = []
    indexed(Mixed(chatter), progress=lambda done, about, name: steps.append(name))
    expected = [name for n in range(12) for name in ([f"p{n}", f"bad{n}"] if n % 4 == 0 else [f"p{n}"])]
    assert steps == expected


def test_pages_are_not_read_far_ahead_of_a_slow_writer(importable):
    class Counted(Odd):
        offered = 0

        def __len__(self) -> int:
            return 200

        def pages(self, known):
            for n in range(200):
                Counted.offered += 1
                yield SourcePage(url=f"p{n}", digest=str(n), read=partial(Odd(chatter).read, n))

    def slow(done: int, about: int, name: str) -> None:
        ahead.append(Counted.offered - done)
        time.sleep(0.002)

    ahead: list[int] = []
    (_, pages), _ = indexed(Counted(chatter), progress=slow)
    assert len(pages) == 200
    assert max(ahead) <= 2 * readahead._WAITING * readahead._PAGES_A_MESSAGE
    assert max(ahead) > 1, "pages were read ahead"


@pytest.mark.skipif(os.name != "posix", reason="time is counted so on POSIX")
@pytest.mark.parametrize("kind", [FolderSource, VaultSource])
def test_a_large_page_ends_by_its_time_even_where_pages_are_read_here(tmp_path, monkeypatch, kind):
    """It takes a minute and gigabytes otherwise."""
    monkeypatch.setattr(workers, "SECONDS_A_PAGE", 0.5)
    (tmp_path / "large.md").write_text("#a [b](c.md) `d` " * 400_000)
    (tmp_path / "note.md").write_text("# Note\n\nText.\n")
    with LinkStore(embedding()) as store:
        summary = index(store, kind(tmp_path), jobs=1)
    assert summary.skipped == {"large.md": "reading it took more than 0.5 s"}
    assert summary.pages.added == 1


def test_a_large_page_is_read_as_a_small_one(tmp_path, monkeypatch):
    place = html_site(tmp_path / "site")
    here = run(FolderSource, place, 1)
    monkeypatch.setattr(workers, "LARGEST_HERE", 100)
    assert run(FolderSource, place, 1) == here
