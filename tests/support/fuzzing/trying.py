"""Trying inputs in a process of their own, which may be killed."""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzzing.inputs import drawn
from fuzzing.readers import READERS

SECONDS_EACH = 3.0
SECONDS_PER_MB = 10.0
"""Of processor time, on any machine; at rest most inputs take a tenth of that."""
MB_EACH = 64
MB_PER_MB = 300
HANGS = 60.0
_ADDRESSES = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an input.

    Args:
        reader: Its reader's name.
        number: The input's number.
        size: Its length, in characters.
        seconds: The processor time that reading it took.
        problem: What is wrong; empty if nothing is.
    """

    reader: str
    number: int
    size: int = 0
    seconds: float = 0.0
    problem: str = ""


def attempt(name: str, number: int) -> Outcome:
    """Try one input, here."""
    reader = READERS[name]
    text = drawn(reader.pieces, number)
    before, started, problem = _peak(), time.process_time(), ""
    try:
        reader.read(text)
    except BaseException as error:
        problem = f"{type(error).__name__}: {error}"[:300]
    seconds, grown = time.process_time() - started, _peak() - before
    size = len(text) / 1e6
    if not problem and seconds > SECONDS_EACH + SECONDS_PER_MB * size:
        problem = f"it took {seconds:.1f} s"
    if not problem and grown > MB_EACH + MB_PER_MB * size:
        problem = f"it took {grown:.0f} MB"
    return Outcome(name, number, len(text), seconds, problem)


def attempts(name: str, first: int, until: float) -> Iterator[Outcome]:
    """Try inputs from a number on, elsewhere, up to a moment of ``time.monotonic``."""
    number = first
    while time.monotonic() < until:
        for outcome in _attempts(name, number, until):
            number = outcome.number + 1
            yield outcome


def serve(name: str, first: int) -> None:
    """Try inputs from a number on, and say what came of each, until killed."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    number = first
    while True:
        made = attempt(name, number)
        print(json.dumps([made.reader, made.number, made.size, made.seconds, made.problem]), flush=True)
        number += 1


def _attempts(name: str, first: int, until: float) -> Iterator[Outcome]:
    """Those of one process; it ends with one that hangs or dies."""
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "fuzzing", "--serve", name, "--first", str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=here) as process:
        assert process.stdout is not None
        number = first
        try:
            while time.monotonic() < until:
                ready, _, _ = select.select([process.stdout], [], [], HANGS)
                line = process.stdout.readline() if ready else ""
                if not line:
                    yield Outcome(name, number, problem="it hangs" if not ready else "the process died")
                    return
                outcome = Outcome(*json.loads(line))
                number = outcome.number + 1
                yield outcome
        finally:
            process.kill()


def _peak() -> float:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
