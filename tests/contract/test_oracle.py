"""The oracle conforms to the contract, and the suite finds out backends that do not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import broken_backends
import pytest
from conformance import BackendConformance, SmallStoreCases
from conformance.lexical import LexicalCases
from differential import DIMENSION, RandomGraph, assert_congruent, find_differences
from oracle import OracleBackend
from stores import LONG

from linkstore.engines.contract import Manifest

SUITES = [suite for name, suite in vars(broken_backends).items() if name.startswith("Test")]
SUITES = SUITES if LONG else SUITES[::30]  # two of 46


class TestOracle(BackendConformance, SmallStoreCases, LexicalCases):
    @pytest.fixture
    def backend(self):
        backend = OracleBackend()
        yield backend
        backend.close()


BROKEN = Path(__file__).parents[1] / "support" / "broken_backends.py"


@pytest.fixture(scope="module")
def failures(tmp_path_factory) -> set[str]:
    """The broken backends that fail the case they name, in a pytest of its own."""
    report = tmp_path_factory.mktemp("broken") / "report.xml"
    nodes = [f"{BROKEN}::{suite.__name__}::{suite.case}" for suite in SUITES]
    quiet = [
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        "-k",
        "not arun",
        f"--junitxml={report}",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *nodes],
        cwd=BROKEN.parents[2],
        capture_output=True,
        env={**os.environ, "LINKSTORE_TESTS": "all"},
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout.decode() + done.stderr.decode()
    found = ET.parse(report).getroot().iter("testcase")
    return {
        case.get("classname", "").rpartition(".")[2] for case in found if case.find("failure") is not None
    }


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.__name__.removeprefix("Test"))
def test_the_suite_finds_out_a_broken_backend(suite: type, failures: set[str]) -> None:
    assert suite.__name__ in failures


@pytest.mark.parametrize("seed", range(3, 11))
def test_the_oracle_agrees_with_itself(seed: int) -> None:
    """The searches of a seed are the same for both backends, so nothing can differ."""
    assert find_differences(OracleBackend(), OracleBackend(), seed, searches=8) == []


def test_congruence_exercises_every_bound() -> None:
    """The random searches are worth running: every kind of cut and every depth occurs."""
    reasons: set[str] = set()
    depths: set[int] = set()
    empty: set[str] = set()
    for seed in range(6):
        backend, graph = OracleBackend(), RandomGraph(seed)
        backend.run(backend.claim(Manifest(embedding="random", dimension=DIMENSION)))
        for change in graph.changes():
            backend.run(backend.write(change))
            for search in graph.searches(20):
                hits = search.on(backend)
                reasons |= {cut.reason for cut in hits.cuts}
                depths |= {hit.depth for hit in hits}
                empty |= {hits.reason} - {None}
    assert reasons == {
        "hub",
        "beam",
        "filter",
        "min_similarity",
        "max_nodes",
        "k",
        "missing",
        "paths",
        "per_page",
    }
    assert depths == {0, 1, 2, 3}
    assert len(empty) > 3


def test_a_difference_is_told_with_its_seed() -> None:
    wrong = broken_backends.TestTiesInReverse.backend_class()
    with pytest.raises(AssertionError, match=r"seed 4: \d+ differences"):
        assert_congruent(wrong, OracleBackend(), 4)
