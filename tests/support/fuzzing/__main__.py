"""Fuzz the readers for an hour, and say what was tried and found: ``make fuzz``."""

from __future__ import annotations

import argparse
import sys
import time

from fuzzing.readers import READERS
from fuzzing.trying import attempt, attempts, serve


def main() -> int:
    """Fuzz each reader in turn; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long, for all readers (default: 60)")
    parser.add_argument("--reader", choices=READERS, action="append", help="only this one; may be repeated")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input (default: 0)")
    parser.add_argument("--only", type=int, help="try this input, here, and show its error")
    parser.add_argument("--serve", choices=READERS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.first)
    names = given.reader or list(READERS)
    if given.only is not None:
        made = [attempt(name, given.only) for name in names]
        print(*made, sep="\n")
        return int(any(one.problem for one in made))
    found = [_fuzzed(name, given.first, given.minutes * 60 / len(names)) for name in names]
    print(f"{sum(found):,} faults")
    return int(any(found))


def _fuzzed(name: str, first: int, seconds: float) -> int:
    """Fuzz one reader; returns how many faults were found."""
    tried = size = faults = 0
    slowest = 0.0
    for outcome in attempts(name, first, time.monotonic() + seconds):
        tried, size = tried + 1, size + outcome.size
        slowest = max(slowest, outcome.seconds / (1 + outcome.size / 1e6))
        if outcome.problem:
            faults += 1
            print(f"{name} {outcome.number} ({outcome.size:,} characters): {outcome.problem}", flush=True)
    print(
        f"{name}: {tried:,} inputs of {size / 1e6:,.1f} MB, {faults} faults, slowest {slowest:.2f} s",
        flush=True,
    )
    return faults


if __name__ == "__main__":
    sys.exit(main())
