"""Commands that are ended from outside: by a reader that has read enough, by a signal, by missing streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from internals import Terminated, main, raise_signals
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.cli import exits

pty = pytest.importorskip("pty", reason="terminals are those of POSIX")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and signals are those of POSIX")
COMMAND = [sys.executable, "-m", "linkstore"]
SECONDS = 120


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> str:
    """Documents whose listing is longer than a pipe holds."""
    folder = tmp_path_factory.mktemp("ends") / "kb"
    texts = (f"{n} " + "word " * 400 for n in range(400))
    with LinkStore.open(folder) as made:
        made.add_documents([Document(id=f"d{n}", page_content=text) for n, text in enumerate(texts)])
    return str(folder)


WORDS = {
    "much": ("export", "--format", "jsonl"),
    "little": ("doctor",),
    "json": ("doctor", "--json"),
}


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("both", [False, True], ids=["stdout", "both"])
def test_output_that_is_no_longer_read_ends_a_command_silently(store, words, both):
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, *WORDS[words], "--store", store]
    errors = writer if both else subprocess.PIPE
    done = subprocess.run(command, stdout=writer, stderr=errors, timeout=SECONDS)
    os.close(writer)
    assert done.returncode == exits.OUTPUT_CLOSED
    assert not done.stderr


@pytest.mark.parametrize("words", [("--help",), ("query", "--help"), ("--version",)], ids=" ".join)
def test_help_that_is_not_read_is_silent_too(words):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*COMMAND, *words], stdout=writer, stderr=subprocess.PIPE, timeout=SECONDS)
    os.close(writer)
    assert (done.returncode, done.stderr) == (exits.OUTPUT_CLOSED, b"")


def test_the_first_lines_are_read_and_the_command_ends(store):
    run = subprocess.Popen(
        [*COMMAND, *WORDS["much"], "--store", store], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdout is not None
    assert run.stdout.readline().startswith(b"{")
    run.stdout.close()
    assert run.stderr is not None
    assert run.stderr.read() == b""
    assert run.wait(SECONDS) == exits.OUTPUT_CLOSED


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_needs_no_streams(store, closed):
    line = f'"$0" -m linkstore doctor --json --store "$1" {closed}'
    done = subprocess.run(["sh", "-c", line, sys.executable, store], capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, b"")
    assert bool(done.stdout) == (">&-" not in closed.replace("2>&-", ""))


ENDING = {signal.SIGTERM: exits.TERMINATED, signal.SIGHUP: exits.HUNG_UP}
each_signal = pytest.mark.parametrize("number", ENDING, ids=["term", "hup"])


@pytest.fixture(autouse=True)
def not_ignored():
    """Signals as a terminal's programs find them, whatever runs the tests."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@each_signal
def test_a_signal_ends_a_command_as_ctrl_c_does(store, monkeypatch, capsys, number):
    def terminated(self):
        os.kill(os.getpid(), number)
        pytest.fail("the command went on")

    monkeypatch.setattr("linkstore.store.core.CoreStore.survey", terminated)
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--store", store])
    assert ended.value.code == ENDING[number]
    assert capsys.readouterr().err == "stopped\n"
    assert signal.getsignal(number) is signal.SIG_DFL


@each_signal
def test_a_handler_of_the_program_around_is_left_alone(number):
    calls = []
    signal.signal(number, lambda *given: calls.append(given))
    with raise_signals():
        os.kill(os.getpid(), number)
    assert len(calls) == 1


def test_a_signal_that_is_ignored_stays_ignored():
    """As nohup has it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with raise_signals():
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize(
    ("number", "then"),
    [(signal.SIGTERM, signal.SIG_DFL), (signal.SIGHUP, signal.SIG_IGN)],
    ids=["term", "hup"],
)
def test_the_second_signal_is_not_handled(number, then):
    """A second SIGTERM ends the process; a terminal that is closed may send SIGHUP twice."""

    def terminated():
        with raise_signals():
            try:
                os.kill(os.getpid(), number)
            finally:
                seen.append(signal.getsignal(number))

    seen: list = []
    with pytest.raises(Terminated):
        terminated()
    assert seen == [then]


WAITING = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whatever runs the tests may ignore it
from linkstore.cli import main
from linkstore.store.core import CoreStore
def wait(self):
    print("waiting", file=sys.stderr, flush=True)
    time.sleep(600)
CoreStore.survey = wait
main(["doctor", "--store", sys.argv[1]])
"""


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_command_whose_terminal_is_closed_ends_in_order(store):
    """It may not say so where nobody reads it, and must not fail over that."""
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, "-c", WAITING, store])
    said = b""
    while b"waiting" not in said:
        said += os.read(terminal, 1000)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == exits.HUNG_UP


def test_a_thread_takes_no_signals():
    def run():
        with raise_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    seen: list = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
