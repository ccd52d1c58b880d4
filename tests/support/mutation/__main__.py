"""Measure mutation scores, and list the changes that no test noticed: ``make mutate``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from mutation.mutants import sample_mutants
from mutation.trying import try_mutants

ROOT: Final = Path(__file__).parents[3]
PARTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "links": ("linkstore/core/links.py", ("tests/values/test_links.py", "tests/values/test_link_data.py")),
    "filters": ("linkstore/core/filters.py", ("tests/values/test_filters.py",)),
    "plans": ("linkstore/core/plans.py", ("tests/values/test_order.py", "tests/strategies")),
    "lexical": ("linkstore/core/lexical.py", ("tests/values/test_lexical.py",)),
    "urls": ("linkstore/core/urls.py", ("tests/values/test_urls.py",)),
    "traversal": (
        "linkstore/strategies/traversal.py",
        ("tests/strategies", "tests/store/test_ceiling.py", "tests/store/test_link_filter.py"),
    ),
    "pagerank": ("linkstore/strategies/pagerank.py", ("tests/strategies",)),
    "results": ("linkstore/strategies/results.py", ("tests/strategies", "tests/store/test_link_filter.py")),
    "first_stage": (
        "linkstore/strategies/first_stage.py",
        ("tests/strategies", "tests/evaluation/test_floor.py", "tests/store"),
    ),
    "mmr": ("linkstore/strategies/mmr.py", ("tests/strategies",)),
    "all_paths": ("linkstore/strategies/all_paths.py", ("tests/strategies",)),
    "embedded_filters": ("linkstore/engines/embedded/filters.py", ("tests/embedded/test_conformance.py",)),
    "embedded_reader": ("linkstore/engines/embedded/reader.py", ("tests/embedded/test_conformance.py",)),
    "noise": ("linkstore/extract/noise.py", ("tests/ingest/test_chrome.py", "tests/extractors")),
}
"""The module of each part, and the tests that are to notice its changes."""


def main() -> int:
    """Measure each part in turn, and return 1 if a score is below the least one asked for."""
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"default: links filters; known: {' '.join(PARTS)}")
    parser.add_argument("--module", help="measure this file instead, with --tests")
    parser.add_argument("--tests", nargs="+", default=(), metavar="PATH", help="tests of --module")
    parser.add_argument("--sample", type=int, default=60, help="changes of each module (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="which of its places are changed (default 1)")
    parser.add_argument("--least", type=float, default=0, metavar="PERCENT", help="fail below this score")
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    given = parser.parse_args()
    chosen = {name: PARTS[name] for name in given.parts or ("links", "filters")}
    if given.module:
        chosen = {given.module: (given.module, tuple(given.tests))}
    scores = {}
    for name, (module, tests) in chosen.items():
        scores[name] = measure(given.root, Path(module), tests, given.sample, given.seed)
    print(f"\n{'part':<20} {'changes':>7} {'noticed':>7} {'score':>6}")
    for name, (noticed, count) in scores.items():
        print(f"{name:<20} {count:>7} {noticed:>7} {100 * noticed / count:>5.1f}%")
    return int(any(100 * noticed / count < given.least for noticed, count in scores.values()))


def measure(root: Path, module: Path, tests: tuple[str, ...], count: int, seed: int) -> tuple[int, int]:
    """Print the changes that tests of a module do not notice; return how many they notice, of how many."""
    mutants = sample_mutants((root / module).read_text(), count, seed)
    outcomes = try_mutants(root, module, [one.source for one in mutants], tests)
    noticed = 0
    for mutant, (outcome, seconds) in zip(mutants, outcomes, strict=True):
        noticed += outcome != "passed"
        if outcome == "passed":
            print(f"{module}:{mutant.line}: {mutant.operator}, {seconds:.1f} s\n{mutant.change}", flush=True)
    return noticed, len(mutants)


if __name__ == "__main__":
    sys.exit(main())
