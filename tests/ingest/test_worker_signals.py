"""Signals to a run with processes that read: nothing is lost, no process stays, the next run goes on."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stores import embedding

from linkstore import LinkStore
from linkstore.ingest import FolderSource, index
from linkstore.ingest import workers as readahead

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are listed in /proc")
PAGES = 40
COMMAND = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "signal.signal(signal.SIGHUP, signal.SIG_DFL);"  # whatever runs the tests may ignore them
    "from linkstore.ingest import workers; workers.PATIENCE = 0.0;"
    "from linkstore.cli import main; main(['index', {site!r}, '--store', {store!r}, '--jobs', '2'])"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Pages of some sections, with links to other pages."""
    chance, folder = random.Random(3), tmp_path_factory.mktemp("site")
    for n in range(PAGES):
        parts = "".join(
            f"<h2 id=s{part}>Part {part} of {n}</h2><p>{'word ' * chance.randint(50, 200)}{chance.random()}"
            f" <a href=p{chance.randrange(PAGES)}.html#s1>there</a></p>"
            for part in range(6)
        )
        (folder / f"p{n}.html").write_text(f"<title>Page {n}</title><main><h1>Page {n}</h1>{parts}</main>")
    return folder


@pytest.fixture(scope="module")
def whole(site, tmp_path_factory) -> list:
    """What a store holds after a run that nothing ended."""
    place = tmp_path_factory.mktemp("alone") / "kb"
    with LinkStore.open(place) as store:
        index(store, FolderSource(site), jobs=1)
    return contents(place)


def children(process: int) -> set[int]:
    """The processes that a process started, from any of its threads."""
    found: set[int] = set()
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found.update(map(int, listed.read_text().split()))
        except OSError:  # the thread ended
            continue
    return found


def started(site: Path, store: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMMAND.format(site=str(site), store=str(store))]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def contents(store: Path) -> list:
    with LinkStore.open(store) as opened:
        assert list(opened.verify().findings) == []
        return sorted((one.id, one.page_content, str(one.metadata)) for one in opened.scan())


def gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGKILL: -signal.SIGKILL}


@pytest.mark.parametrize("sent", CODES, ids=["int", "term", "hup", "kill"])
def test_a_run_that_is_ended_leaves_no_process_and_the_next_makes_it_whole(tmp_path, site, whole, sent):
    run = started(site, tmp_path / "kb")
    readers: set[int] = set()
    until = time.monotonic() + 120
    while not readers and run.poll() is None and time.monotonic() < until:
        readers = children(run.pid)
        time.sleep(0.01)
    assert readers, run.communicate()
    os.killpg(run.pid, sent)  # to all of its group, as a terminal does
    _, said = run.communicate(timeout=120)
    assert run.returncode == CODES[sent]
    if sent != signal.SIGKILL:
        assert "Run the same command again to go on" in said
    until = time.monotonic() + 60
    while not all(map(gone, readers)) and time.monotonic() < until:
        time.sleep(0.1)
    assert all(map(gone, readers)), "a process that reads pages outlived its run"

    with LinkStore.open(tmp_path / "kb") as store:
        index(store, FolderSource(site), jobs=1)
    assert contents(tmp_path / "kb") == whole


def test_processes_that_are_killed_again_and_again_cost_no_page(site, monkeypatch):
    monkeypatch.setattr(readahead, "PATIENCE", 0.0)
    kills = 0

    def kill(done: int, about: int, name: str) -> None:
        nonlocal kills
        running = multiprocessing.active_children()
        if done % 10 == 0 and running:
            os.kill(running[0].pid, signal.SIGKILL)
            kills += 1

    with LinkStore(embedding()) as store:
        summary = index(store, FolderSource(site), jobs=2, progress=kill)
        assert (len(store.pages.digests()), summary.skipped) == (PAGES, {})
        assert kills > 2
