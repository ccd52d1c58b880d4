"""A call is made blocking, awaited, or in a thread, and its result or error goes to the operation."""

from __future__ import annotations

import asyncio
import threading

import pytest
from internals import Call, Operation, arun, call_engine, request, run


def double(number: int, *, add: int = 0) -> int:
    return 2 * number + add


async def adouble(number: int, *, add: int = 0) -> int:
    await asyncio.sleep(0)
    return 2 * number + add


def asked(*calls: Call[int]) -> Operation[list[int]]:
    answers = []
    for call in calls:
        answers.append((yield from request(call)))
    return answers


CALLS = (Call(double, adouble, (3,)), Call(double, None, (4,), {"add": 1}))


def test_both_drivers_give_the_same_results():
    assert run(asked(*CALLS)) == [6, 9]
    assert asyncio.run(arun(asked(*CALLS))) == [6, 9]


def test_the_blocking_driver_works_within_a_running_loop():
    async def within() -> list[int]:
        return run(asked(*CALLS))

    assert asyncio.run(within()) == [6, 9]


def test_a_call_without_an_awaited_form_runs_in_a_thread():
    async def main() -> tuple[list[int], int]:
        (found,) = await arun(asked(Call(threading.get_ident)))
        return [found], threading.get_ident()

    found, own = asyncio.run(main())
    assert found != [own]
    assert run(asked(Call(threading.get_ident))) == [own]


@pytest.mark.parametrize("drive", [run, lambda operation: asyncio.run(arun(operation))])
def test_an_error_is_raised_where_the_operation_waits(drive):
    def careful() -> Operation[str]:
        try:
            yield from request(Call(double, adouble, ("no number",), {"add": 1}))
        except TypeError:
            return "recovered"
        return "no error"

    assert drive(careful()) == "recovered"


def test_an_engine_is_called_in_its_own_two_ways():
    class Engine:
        def run(self, operation):
            return run(operation)

        async def arun(self, operation):
            return await arun(operation)

        def answer(self, plan, scope=None):
            raise NotImplementedError

    def nested() -> Operation[int]:
        (found,) = yield from call_engine(Engine(), asked(CALLS[0]))
        return found

    assert run(nested()) == asyncio.run(arun(nested())) == 6
