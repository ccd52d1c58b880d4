"""Drivers: where waiting happens, errors included."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
from internals import Find, Ids, Nearest, Reader, adrive, answer_plan, as_operation, drive

FETCHES = (Ids(refs=np.array([1])), Ids(refs=np.array([2, 3])))


def operation(log: list[object]):
    """Waits for two things, and notes what came of it."""
    try:
        log.append((yield "first"))
        log.append((yield "second"))
    finally:
        log.append("closed")
    return "done"


def drive_run(operation, wait):
    return drive(operation, wait)


def drive_arun(operation, wait):
    async def waiting(request):
        await asyncio.sleep(0)
        return wait(request)

    return asyncio.run(adrive(operation, waiting))


both = pytest.mark.parametrize("drive", [drive_run, drive_arun], ids=["run", "arun"])


@both
def test_replies_go_back_to_the_operation(drive) -> None:
    log: list[object] = []
    assert drive(operation(log), str.upper) == "done"
    assert log == ["FIRST", "SECOND", "closed"]


@both
def test_an_operation_that_waits_for_nothing_is_done_at_once(drive) -> None:
    def empty():
        yield from ()
        return 7

    def never(request):
        raise AssertionError

    assert drive(empty(), never) == 7


@both
def test_an_error_of_waiting_is_thrown_into_the_operation(drive) -> None:
    def recovering():
        try:
            yield "unreachable"
        except OSError as error:
            return (yield f"after {error}")

    def wait(request: str) -> str:
        if request == "unreachable":
            raise OSError("timeout")
        return request + "!"

    assert drive(recovering(), wait) == "after timeout!"


@both
def test_an_error_the_operation_does_not_catch_comes_out_and_closes_it(drive) -> None:
    log: list[object] = []

    def wait(request: str) -> str:
        if request == "second":
            raise OSError("gone")
        return request

    with pytest.raises(OSError, match="gone"):
        drive(operation(log), wait)
    assert log == ["first", "closed"]


@both
def test_an_error_of_the_operation_itself_comes_out(drive) -> None:
    def failing():
        yield "ask"
        raise LookupError("its own")

    with pytest.raises(LookupError, match="its own"):
        drive(failing(), str.upper)


@both
def test_an_interrupt_closes_the_operation_and_goes_on(drive) -> None:
    """KeyboardInterrupt is not handed to the operation as a result to recover from."""
    log: list[object] = []

    def wait(request: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive(operation(log), wait)
    assert log == ["closed"]


def test_cancelling_closes_the_operation() -> None:
    log: list[object] = []

    async def main() -> None:
        waiting = asyncio.Event()

        async def wait(request: str) -> None:
            waiting.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(adrive(operation(log), wait))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert log == ["closed"]


def test_run_works_inside_a_running_loop() -> None:
    async def cell() -> object:
        return drive(operation([]), str.upper)

    assert asyncio.run(cell()) == "done"


def test_arun_waits_without_blocking_others() -> None:
    order: list[str] = []

    async def wait(request: str) -> str:
        order.append(request)
        await asyncio.sleep(0)
        return request

    async def main() -> None:
        await asyncio.gather(adrive(operation([]), wait), adrive(operation([]), wait))

    asyncio.run(main())
    assert order == ["first", "first", "second", "second"]


def plan(log: list[object]):
    try:
        for fetch in FETCHES:
            log.append((yield fetch))
    finally:
        log.append("plan closed")
    return "result"


@both
def test_answered_joins_a_plan_with_its_answers(drive) -> None:
    log: list[object] = []

    def answer(fetch):
        reply = yield f"look up {fetch.refs.tolist()}"
        return reply

    assert drive(answer_plan(plan(log), answer), str.upper) == "result"
    assert log == ["LOOK UP [1]", "LOOK UP [2, 3]", "plan closed"]


@both
def test_an_error_of_an_answer_closes_the_plan(drive) -> None:
    log: list[object] = []

    def answer(fetch):
        yield "ask"
        raise OSError("no answer")

    with pytest.raises(OSError, match="no answer"):
        drive(answer_plan(plan(log), answer), str.upper)
    assert log == ["plan closed"]


@both
def test_an_answer_may_recover_from_an_error_of_waiting(drive) -> None:
    def answer(fetch):
        try:
            return (yield "flaky")
        except TimeoutError:
            return "second best"

    def wait(request: str) -> str:
        raise TimeoutError

    log: list[object] = []
    assert drive(answer_plan(plan(log), answer), wait) == "result"
    assert log == ["second best", "second best", "plan closed"]


@both
def test_an_interrupt_closes_plan_and_answer(drive) -> None:
    log: list[object] = []

    def answer(fetch):
        try:
            yield "ask"
        finally:
            log.append("answer closed")

    def wait(request: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive(answer_plan(plan(log), answer), wait)
    assert log == ["answer closed", "plan closed"]


def test_a_plan_that_asks_nothing_is_done_at_once() -> None:
    def nothing():
        yield from ()
        return 3

    assert drive(answer_plan(nothing(), lambda fetch: operation([])), str.upper) == 3


def test_operations_run_in_the_thread_that_drives_them() -> None:
    seen: list[int] = []

    def wait(request: str) -> str:
        seen.append(threading.get_ident())
        return request

    thread = threading.Thread(target=lambda: drive(operation([]), wait))
    thread.start()
    thread.join()
    assert len(set(seen)) == 1
    assert seen[0] != threading.get_ident()


def test_an_immediate_method_computes_when_it_is_driven() -> None:
    class Engine:
        calls = 0

        @as_operation
        def twice(self, number: int) -> int:
            """Doubles."""
            self.calls += 1
            return 2 * number

    engine = Engine()
    made = engine.twice(4)
    assert engine.calls == 0
    assert drive(made, str.upper) == 8
    assert engine.calls == 1
    assert Engine.twice.__doc__ == "Doubles."
    with pytest.raises(TypeError):
        drive(engine.twice(), str.upper)


def test_every_fetch_has_its_method() -> None:
    """Reader.answer finds the method of each kind of fetch, and only of those."""

    def told(name):
        @as_operation
        def method(self, fetch):
            return name

        return method

    names = sorted(Reader.__abstractmethods__)
    reader = type("Told", (Reader,), {name: told(name) for name in names})()
    from linkstore.core import plans

    kinds = {kind.__name__.lower(): kind for kind in plans.Fetch.__subclasses__()}
    assert sorted(kinds) == names
    nothing = np.empty(0, dtype=np.int64)
    for name, fetch in {
        "nearest": Nearest(vector=np.ones(1, np.float32), k=1),
        "find": Find(ids=("a",), vector=None),
        "groups": plans.Groups(refs=nothing, side="in"),
        "resolve": plans.Resolve(tags=()),
        "matching": plans.Matching(refs=nothing, filter=plans.EVERYTHING),
        "vectors": plans.Vectors(refs=nothing),
        "ids": Ids(refs=nothing),
        "tags": plans.Tags(groups=nothing),
        "documents": plans.Documents(refs=nothing),
    }.items():
        assert drive(reader.answer(fetch), str.upper) == name
    with pytest.raises(KeyError):
        reader.answer("no fetch")
