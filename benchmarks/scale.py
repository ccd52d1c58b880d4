"""A wiki of millions of short pages on one machine: how long to index, how large, how quick to ask.

Run: ``python benchmarks/scale.py --pages 10000,100000,1000000 --folder DIR``. For each number of pages a
MediaWiki dump is made (see ``_scale_pages.py``; its time does not count) and indexed
with the default embedding, as ``linkstore index`` does. Another process opens the store and asks 200
questions at depth 2, ``Eager(start_k=4, depth=2)``, and as many in the default way, in turns.

Stopped at any moment, even killed, it goes on where it was when it is started again with the same
``--folder``: the store knows the pages it has, and a journal beside it the time that was spent. What
``--for-pages`` many take is told from the growth: powers of the number of pages are fitted by least
squares, to the time at each hundredth of the largest run from a tenth of it on, and to the p50 of each step;
straight lines to its memory; disk is in proportion.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil
from _report import add_output, listed, milliseconds, report
from _scale_pages import questions
from _scale_run import NOTHING, Journal, index_wiki

from linkstore import LinkStore
from linkstore.strategies import DEFAULT_STRATEGY, Eager, Strategy

WALK: Final = Eager(start_k=4, depth=2)


def main() -> None:
    """Index and ask each number of pages in processes of its own, print the tables."""
    options = _options()
    if options.step:
        sys.stdout.write(json.dumps(_step(options)) + "\n")
        return
    with tempfile.TemporaryDirectory(prefix="linkstore-scale-") as scratch:
        folder = options.folder or Path(scratch)
        sizes = sorted(int(size) for size in options.pages.split(","))
        rows = [_measured(folder / str(size), size, options.minutes) for size in sizes]
        report("scale", rows, as_json=options.json, record_as=options.record)
        journal = Journal.read(folder / str(sizes[-1]) / "journal.json")
        listed(
            f"{options.for_pages:,} pages, by the growth",
            _outlook(rows, journal, options.for_pages),
            as_json=options.json,
            record_as=options.record and f"{options.record}-fit",
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pages", default="10000,30000,100000", help="numbers of pages, with commas")
    parser.add_argument(
        "--for-pages", type=int, default=6_000_000, help="the number the growth is fitted for"
    )
    parser.add_argument(
        "--folder", type=Path, help="where everything is kept, to go on later; else temporary"
    )
    parser.add_argument("--minutes", type=float, default=inf, help="end each indexing then, to go on later")
    parser.add_argument("--data", help="not needed: the pages are made here")
    add_output(parser)
    parser.add_argument("--step", choices=("build", "ask"), help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def _measured(folder: Path, size: int, minutes: float) -> dict[str, Any]:
    built, asked = (_process(step, folder, size, minutes) for step in ("build", "ask"))
    return {**built, **asked}


def _process(step: str, folder: Path, size: int, minutes: float) -> dict[str, Any]:
    options = {"--step": step, "--size": size, "--folder": folder, "--minutes": minutes}
    command = [sys.executable, __file__, *(str(part) for option in options.items() for part in option)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _step(options: argparse.Namespace) -> dict[str, Any]:
    if options.step == "ask":
        return ask(options.folder, options.size)
    return build(options.folder, options.size, options.minutes)


def build(folder: Path, size: int, minutes: float) -> dict[str, Any]:
    """Index the pages that are missing; what it took, with earlier runs, and what lies on disk."""
    index_wiki(folder, size, minutes=minutes)
    journal = Journal.read(folder / "journal.json")
    last, pages = journal.last, journal.last.pages
    return {
        "pages": pages,
        "minutes": last.seconds / 60,
        "pages/s": pages / last.seconds,
        "pages/s, last tenth": _last_rate(journal),
        "ms of a core a page": last.cpu / pages * 1e3,
        "runs": journal.runs,
        "s after the last page": last.seconds - journal.marks[-2].seconds,
        "peak memory, MiB": last.peak,
        "without mapped files, MiB": last.own,
        **{f"{name}, bytes/page": total / pages for name, total in _disk(folder / "kb").items()},
    }


def _last_rate(journal: Journal) -> float:
    """Pages per second of the last tenth, without what comes after the last page."""
    end = journal.marks[-2]
    start = next((mark for mark in reversed(journal.marks) if mark.pages <= 0.9 * end.pages), NOTHING)
    return (end.pages - start.pages) / (end.seconds - start.seconds)


def _disk(folder: Path) -> dict[str, int]:
    """Bytes of the database and of all files; two generations of the index may be kept."""
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    return {"database": sizes["linkstore.db"], "all files": sum(sizes.values())}


def ask(folder: Path, size: int) -> dict[str, Any]:
    """Open the store and ask each question twice in both ways; the second time counts."""
    process = psutil.Process()
    asked = questions(size)
    started = time.perf_counter()
    store = LinkStore.open(folder / "kb", create=False)
    first = store.search(asked[0], strategy=WALK)
    opened = time.perf_counter() - started
    if not len(first):
        raise SystemExit(f"the store in {folder} has no answer to {asked[0]!r}")
    seconds: dict[Strategy, list[float]] = {WALK: [], DEFAULT_STRATEGY: []}
    cold = [_timed(store, question, WALK) for question in asked]
    for question in asked:
        for strategy, timings in seconds.items():
            timings.append(_timed(store, question, strategy))
    walks, default = seconds.values()
    return {
        "open to first answer, s": opened,
        "memory when asked, MiB": process.memory_info().rss / 2**20,
        "depth 2 p50, ms": milliseconds(walks),
        "depth 2 p95, ms": milliseconds(walks, 95),
        "depth 2 p50, first time, ms": milliseconds(cold),
        "default p50, ms": milliseconds(default),
        "default p95, ms": milliseconds(default, 95),
        "hits at depth 2": float(np.mean([len(store.search(one, strategy=WALK)) for one in asked[:20]])),
    }


def _timed(store: LinkStore, question: str, strategy: Strategy) -> float:
    started = time.perf_counter()
    store.search(question, strategy=strategy)
    return time.perf_counter() - started


# What more pages take


def _outlook(rows: Sequence[dict[str, Any]], journal: Journal, pages: int) -> list[dict[str, Any]]:
    """Each quantity at ``pages``, with the curve that was fitted and how far the measurements are from it."""
    sizes = [row["pages"] for row in rows]
    late = [mark for mark in journal.marks if mark.pages >= 0.1 * journal.last.pages]
    along = [mark.pages for mark in late]
    disk = rows[-1]["all files, bytes/page"] * pages / 2**30
    fits = [
        ("hours to index", _power(along, [mark.seconds / 3600 for mark in late], pages)),
        ("hours of one core", _power(along, [mark.cpu / 3600 for mark in late], pages)),
        ("peak memory, GiB", _line(along, [mark.peak / 1024 for mark in late], pages)),
        ("without mapped files, GiB", _line(along, [mark.own / 1024 for mark in late], pages)),
        ("disk, GiB", (disk, "in proportion", None)),
        ("depth 2 p50, ms", _power(sizes, [row["depth 2 p50, ms"] for row in rows], pages)),
        ("default p50, ms", _power(sizes, [row["default p50, ms"] for row in rows], pages)),
    ]
    return [
        {"what": what, "value": value, "fit": fit, "largest residual, %": residual}
        for what, (value, fit, residual) in fits
    ]


Fitted = tuple[float, str, float | None]


def _power(counts: Sequence[int], values: Sequence[float], at: int) -> Fitted:
    """Least squares in logarithms: value = c n^p."""
    if len(counts) < 3:
        return float("nan"), "needs three sizes", None
    exponent, offset = np.polyfit(np.log(counts), np.log(values), 1)
    fitted = np.exp(offset) * np.asarray(counts, float) ** exponent
    value = float(np.exp(offset) * float(at) ** exponent)
    return value, f"n^{exponent:.3f}", _residual(fitted, values)


def _line(counts: Sequence[int], values: Sequence[float], at: int) -> Fitted:
    """Least squares: value = a + b n."""
    slope, start = np.polyfit(counts, values, 1)
    fitted = start + slope * np.asarray(counts, float)
    return float(start + slope * at), f"{start:.2f} + {slope * 1e6:.2f} a million", _residual(fitted, values)


def _residual(fitted: Any, values: Sequence[float]) -> float:
    return float(np.abs(fitted / np.asarray(values) - 1).max() * 100)


if __name__ == "__main__":
    main()
