"""The int8 vectors of the index, and what a search through them finds."""

from __future__ import annotations

import numpy as np
import pytest
from internals import AnnIndex, normalize_vectors, quantize


def near(count: int, dimension: int, spread: float = 0.7) -> np.ndarray:
    """Unit vectors around a few centres, all with a part in common, as those of texts have."""
    random = np.random.default_rng(dimension)
    centres = random.standard_normal((40, dimension)) + 1.0
    return normalize_vectors(
        centres[random.integers(0, 40, count)] + spread * random.standard_normal((count, dimension))
    )


@pytest.mark.parametrize("dimension", [1, 2, 64, 256, 384, 1536, 4096])
def test_a_component_is_off_by_at_most_half_a_step(dimension) -> None:
    vectors = near(50, dimension)
    steps = 127 * max(1, dimension**0.5 / 8)
    assert abs(vectors).max() < 8 / dimension**0.5 or dimension <= 64, "nothing is to be cut off here"
    assert abs(quantize(vectors) / steps - vectors).max() <= 0.5 / steps + 1e-6


def test_a_vector_on_an_axis_is_cut_off_and_stays_nearest_to_itself() -> None:
    axes = np.eye(1000, dtype=np.float32)
    assert quantize(axes).max() == 127
    assert (quantize(axes).astype(np.int64) @ quantize(axes[7]).astype(np.int64)).argmax() == 7
    assert quantize(-axes[0])[0] == -127


def test_one_vector_and_several_give_the_same() -> None:
    vectors = near(20, 96)
    assert (quantize(vectors) == np.stack([quantize(vector) for vector in vectors])).all()


@pytest.mark.parametrize("dimension", [8, 96, 1536])
def test_the_nearest_are_among_the_proposals(dimension) -> None:
    vectors, questions = near(5000, dimension), near(5100, dimension)[5000:]
    index = AnnIndex.make(dimension)
    index = index.extend(np.arange(1, 5001), lambda keys: vectors[keys - 1], 5000)
    found = 0
    for question in questions:
        keys = index.near(question)
        assert index.covered == 5000
        best = np.argsort(-(vectors @ question))[:10] + 1
        found += len(set(keys.tolist()) & set(best.tolist()))
    assert found >= 0.97 * 10 * len(questions)
