"""What the weights of an item's links tell of the time of its first put."""

import random
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from linkstore.memory.graphstore.order import Listed, age_weights, crowded, in_runs

START = datetime(2026, 11, 23, tzinfo=UTC)
SPANS = [timedelta(microseconds=1), timedelta(microseconds=999), timedelta(seconds=1), timedelta(days=30)]


def weights_of(times):
    pairs = np.array([age_weights(one) for one in times])
    assert np.array_equal(pairs, pairs.astype(np.float32)), "float32 changes a weight"
    assert ((pairs > 0) & (pairs <= 1)).all()
    return pairs[:, 0].astype(np.float32), pairs[:, 1].astype(np.float32)


@pytest.mark.parametrize("span", range(len(SPANS)))
def test_older_items_come_first_to_the_microsecond(span):
    chance = random.Random(span)
    times = list({START + chance.random() * 300 * SPANS[span] for _ in range(300)})
    order, ends = in_runs(*weights_of(times))
    assert [times[at] for at in order] == sorted(times)
    assert ends.tolist() == list(range(1, len(times) + 1))


def test_items_of_one_time_and_of_ticks_without_an_order_are_one_run():
    second = START + timedelta(seconds=50)
    times = [second, START + timedelta(microseconds=1), START, second, second + timedelta(microseconds=5)]
    ticks, within = weights_of(times)
    order, ends = in_runs(ticks, within)
    assert (order.tolist(), ends.tolist()) == ([2, 1, 0, 3, 4], [1, 2, 4, 5])
    within[4] = 0  # unknown
    order, ends = in_runs(ticks, within)
    assert (order.tolist(), ends.tolist()) == ([2, 1, 0, 3, 4], [1, 2, 5])


def test_times_that_the_weights_cannot_tell_apart_tie():
    early = [datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 12, 31, tzinfo=UTC)]
    late = [datetime(2060, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)]
    assert len({age_weights(one) for one in early}) == len({age_weights(one) for one in late}) == 1
    order, ends = in_runs(*weights_of([*late, START, *early]))
    assert (order.tolist(), ends.tolist()) == ([3, 4, 2, 0, 1], [2, 3, 5])


def test_portions_have_whole_runs_and_all_items():
    ids = [str(n) for n in range(100)]
    listed = Listed(ids=ids, ends=np.array([1, 2, 3, 30, 31, 99, 100]), passed=0)
    portions = list(listed.portions(2))
    assert [len(one) for one in portions] == [2, 28, 69, 1]
    assert [id for portion in portions for id in portion] == ids
    assert list(listed.portions(1000)) == [ids]
    assert list(Listed(ids=[], ends=np.array([], np.int64), passed=0).portions(5)) == []


def test_ticks_are_crowded_by_more_than_64_items():
    ticks = np.repeat(np.float32([0.5, 0.25]), 64)
    assert not crowded(ticks)
    assert crowded(np.append(ticks, np.float32(0.5)))
    assert not crowded(np.array([], np.float32))
