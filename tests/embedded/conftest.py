"""What the tests of the embedded engine share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from linkstore.engines.embedded import vectors


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Let one thread build each index, so that tests can ask for exact answers.

    What an index of several threads finds differs from run to run (0.98 of the nearest is promised);
    ``test_islands.py`` tests what such threads lose, and the benchmarks what is found.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "PARALLEL_FROM", 1 << 62)
        yield
