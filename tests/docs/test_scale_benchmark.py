"""The benchmark of scale: a run that is killed goes on where it was, and ends like one that was not."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from linkstore import LinkStore

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAGES = 2_400
KILLED_AT = 1_900
RUN = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from _scale_run import index_wiki
def then(done, total, page):
    if done == {killed_at}:
        os.kill(os.getpid(), signal.SIGKILL)
index_wiki(Path(sys.argv[2]), {pages}, then=then)
"""


@pytest.fixture
def machinery(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import _scale_run

    return _scale_run


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_run_that_is_killed_goes_on_and_ends_like_one_that_was_not(tmp_path, machinery, capsys):
    killed = subprocess.run(
        [sys.executable, "-c", RUN.format(killed_at=KILLED_AT, pages=PAGES), BENCHMARKS, tmp_path / "killed"],
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    journal = machinery.Journal.read(tmp_path / "killed" / "journal.json")
    assert not journal.finished
    assert 0 < journal.last.pages <= KILLED_AT

    resumed = machinery.index_wiki(tmp_path / "killed", PAGES)
    said = capsys.readouterr().err
    whole = machinery.index_wiki(tmp_path / "whole", PAGES)

    assert f"goes on: an earlier run was at page {journal.last.pages:,}" in said
    assert 512 <= resumed.pages.unchanged <= KILLED_AT
    assert f"{resumed.pages.unchanged:,} were in the store already" in said
    assert resumed.pages.added == PAGES - resumed.pages.unchanged
    assert whole.pages.added == PAGES
    assert _content(tmp_path / "killed" / "kb") == _content(tmp_path / "whole" / "kb")
    ended = machinery.Journal.read(tmp_path / "killed" / "journal.json")
    assert ended.runs == 2
    assert ended.finished
    assert ended.last.seconds > journal.last.seconds
    assert ended.last.cpu > journal.last.cpu
    assert ended.marks[: len(journal.marks)] == journal.marks
    assert machinery.index_wiki(tmp_path / "killed", PAGES) is None, "nothing is left to do"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_run_whose_time_is_over_says_so_and_is_done_by_the_next(tmp_path, machinery, capsys):
    assert machinery.index_wiki(tmp_path, 700, minutes=0) is None
    stopped = machinery.Journal.read(tmp_path / "journal.json")
    assert not stopped.finished
    assert 0 < stopped.last.pages < 700
    assert f"time is over at page {stopped.last.pages:,}" in capsys.readouterr().err

    rest = machinery.index_wiki(tmp_path, 700)
    assert rest.pages.added + rest.pages.unchanged == 700
    assert machinery.Journal.read(tmp_path / "journal.json").finished


def _content(folder: Path) -> tuple[object, ...]:
    with LinkStore.open(folder, create=False) as store:
        hits = store.search("what is river museum")
        found = {hit.document.id for hit in hits}
        return list(store.scan()), store.pages.digests(), store.survey(), store.pages.survey()[1], found


def test_pages_are_told_apart_and_always_the_same(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import _scale_pages

    titles = {_scale_pages.title(number) for number in range(20_000)}
    for name in ("a", "b"):
        _scale_pages.write_dump(tmp_path / name, 600)

    assert len(titles) == 20_000
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_text().count("[[Category:Everything living]]") == 100
    assert (tmp_path / "a").read_text().count("[[") == 600 * (_scale_pages.LINKS + 1) + 100
    assert len(set(_scale_pages.questions(600))) > 1
