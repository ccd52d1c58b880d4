"""macOS and Windows, as far as they can be imitated here: locks, files, processes, signals and names."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import unicodedata
from pathlib import PureWindowsPath

import pytest
import yaml
from documented import ROOT, linkstore

from linkstore import LinkStore
from linkstore.cli import exits

IMITATION = [sys.executable, str(ROOT / "tests/support/other_systems.py")]
DIFFERING = re.compile(
    r"\bos\.name\b|sys\.platform|\b(?:fcntl|msvcrt|pthread_sigmask|setitimer|SIGHUP|register_at_fork|waitid|O_[A-Z]+"
    r"|supports_dir_fd|sched_getaffinity|start_new_session)\b|select\.poll"
)
WHERE = {
    "locks and forks": "engines/embedded/location.py",
    "durable folders": "engines/embedded/files.py",
    "a process beside the writer": "engines/embedded/maintenance.py",
    "files without links": "ingest/folders.py",
    "processes that read": "ingest/workers.py",
    "forks of a writer": "ingest/writer.py",
    "signals and pipes": "cli/exits.py",
    "where a client keeps its settings": "cli/install.py",
    "cores": "core/processes.py",
    "a library that ends badly on Linux": "embeddings/encoder.py",
}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there is nothing to imitate")


def imitate(*words, cwd=None):
    done = subprocess.run([*IMITATION, *words], capture_output=True, text=True, timeout=300, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def test_what_differs_between_systems_stands_in_one_module_each():
    found = {
        path.relative_to(ROOT / "linkstore").as_posix()
        for path in (ROOT / "linkstore").rglob("*.py")
        if DIFFERING.search(re.sub(r'"""(?s:.*?)"""|#[^\n]*', "", path.read_text()))
    }
    assert found == set(WHERE.values())


def test_a_store_is_made_searched_checked_and_written_as_on_windows(tmp_path):
    (tmp_path / "site").mkdir()
    for number in range(40):
        link = f"[next](page{(number + 1) % 40}.md)"
        text = f"# Page {number}\r\n\r\nA lock of canal {number}, see {link}.\r\n"
        (tmp_path / "site" / f"page{number}.md").write_bytes(text.encode())
    place = str(tmp_path / "kb")
    code, out, err = imitate("index", str(tmp_path / "site"), "--store", place)
    assert (code, "40 added" in out) == (0, True), err
    code, out, _ = imitate("query", "canal 7", "--store", place, "--json")
    assert (code, '"page8.md' in out) == (0, True)
    assert imitate("doctor", "--verify", "--store", place)[:2] == (0, "the store is sound\n")
    assert imitate("export", "--format", "okf", "-o", str(tmp_path / "okf"), "--store", place)[0] == 0


def test_one_of_two_takes_a_lock_of_windows(tmp_path):
    command = [*IMITATION, "lock", str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "free\n"
        assert imitate("lock", str(tmp_path / "lock"))[1] == "taken\n"
        first.stdin.close()
        first.wait(60)
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60)
    assert done.stdout == "free\n"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, exits.INTERRUPTED), (signal.SIGTERM, exits.TERMINATED)]
)
def test_a_command_that_is_ended_says_so_and_leaves_a_sound_store(tmp_path, number, code):
    """Ctrl-C, and what ends a process, where there is no SIGHUP and no mask of signals."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.md").write_text("# A\n\nA lock of a canal.\n")
    place = str(tmp_path / "kb")
    command = [*IMITATION, "index", str(tmp_path / "site"), "--store", place, "--every", "1h"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as watching:
        while "1 page" not in (line := watching.stderr.readline()):
            assert line, "it ended by itself"
        watching.send_signal(number)
        rest = watching.stderr.read()
    assert (watching.returncode, "Traceback" in rest) == (code, False), rest
    assert imitate("doctor", "--verify", "--store", place)[:2] == (0, "the store is sound\n")


def test_a_console_of_windows_is_enough_also_where_the_reader_ends_first(tmp_path):
    (tmp_path / "site").mkdir()
    for number in range(200):
        text = f"# Tōkyō → {number}\n\n“Text” … 😀 {'word ' * 200}\n"
        (tmp_path / "site" / f"page {number}.md").write_text(text, encoding="utf-8")
    place = str(tmp_path / "kb")
    console = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    for words in (("index", str(tmp_path / "site")), ("query", "Tōkyō"), ("links", "page 7"), ("doctor",)):
        done = subprocess.run(
            [*IMITATION, *words, "-s", place], capture_output=True, env=console, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode("cp1252")
    command = [*IMITATION, "export", "-s", place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:
        assert reading.stdout.read(9) == b'{"id":"pa'
        reading.stdout.close()
        assert reading.stderr.read() == b""
    assert reading.returncode == exits.OUTPUT_CLOSED


@pytest.mark.parametrize("typed", [r"docs\site", r"C:\docs\site", r"..\site", "C:/docs"])
def test_a_path_of_windows_is_taken_for_a_source(typed):
    """And not for a question or a command."""
    code, _, err = linkstore(typed)
    assert code != 0
    assert "there is no command" not in err


def test_exported_files_are_apart_where_case_and_accents_are_not(tmp_path):
    names = [
        "Readme.html",
        "README.html",
        "café.html",
        "cafe\u0301.html",
        "aux.html",
        "a/nul.html",
        "com1/x.html",
    ]
    with LinkStore.open(tmp_path / "kb") as store:
        store.add_texts(
            [f"Text of {name!r}." for name in names], [{"page": name} for name in names], ids=names
        )
    code, _, err = linkstore(
        "export", "--format", "okf", "-o", str(tmp_path / "out"), "-s", str(tmp_path / "kb")
    )
    assert code == 0, err
    files = [path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*.md")]
    pages = [file for file in files if file.name != "index.md"]
    assert len({unicodedata.normalize("NFC", str(file)).casefold() for file in pages}) == len(names)
    assert not [file for file in pages for part in file.parts if PureWindowsPath(part).is_reserved()]


def test_the_matrix_runs_tests_that_there_are():
    workflow = yaml.safe_load((ROOT / ".github/workflows/systems.yml").read_text())
    (job,) = workflow["jobs"].values()
    assert {"macos-latest", "windows-latest", "ubuntu-latest"} <= set(job["strategy"]["matrix"]["os"])
    (run,) = (step["run"] for step in job["steps"] if "pytest" in step.get("run", ""))
    named = re.findall(r"tests/[\w/.]+", run)
    assert named
    assert all((ROOT / name).exists() for name in named), named
