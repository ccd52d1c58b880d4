"""The index process: it builds the index of a store while another process writes. See :mod:`.indexer`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from typing import Any, BinaryIO, Final

import orjson

from linkstore.core.processes import take_pipes
from linkstore.engines.embedded.index_process import ALIVE, BEAT_SECONDS, FLUSH, FLUSHED
from linkstore.engines.embedded.location import Place
from linkstore.engines.embedded.maintenance import StoreResources
from linkstore.errors import StoreBusyError

POLL_SECONDS: Final = 0.05
SETTLED_SECONDS: Final = 1.0
"""If no process has written for this long, a snapshot is taken even if the store has not grown by half."""
IDLE_SECONDS: Final = 30.0
"""The process ends after this time without work."""
_MOST_BUSY_TRIES: Final = 20
"""How often in a row a writer may keep the process from recording its work."""


def main() -> None:
    """Build the index of the store that the argument names, while the store's writer lives and writes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the writer decides whether to go on
    orders, replies = take_pipes()
    os.set_blocking(replies.fileno(), False)
    worker = _IndexWorker(orjson.loads(sys.argv[1]), orders, replies)
    try:
        worker.work()
    except Exception as error:  # noqa: BLE001 - whatever it is, the writer reports it and goes on
        worker.say(f"stopped: {type(error).__name__}: {' '.join(str(error).split())}".encode())
        os._exit(1)
    os._exit(0)  # without waiting for the listening thread


class _IndexWorker:
    """Looks for work until there is none.

    Args:
        task: The store's folder and settings, and its writer.
        orders: From the writer; it ends when the writer does.
        replies: To the writer.
    """

    def __init__(self, task: dict[str, Any], orders: BinaryIO, replies: BinaryIO) -> None:
        self._task = task
        self._orders = orders
        self._replies = replies
        self._asked = 0
        self._answered = 0
        for run in (self._listen, self._beat):
            threading.Thread(target=run, daemon=True).start()

    def work(self) -> None:
        """Keep the index up to date, and return when there has been nothing to do for a while."""
        upkeep = self._open().upkeep
        seen, since, tries = None, time.monotonic(), 0
        while time.monotonic() - since < IDLE_SECONDS:
            self._check_parent()
            asked = self._asked  # before looking, so that a snapshot has all that was written before
            try:
                worked = upkeep.catch_up(settled=time.monotonic() - since > SETTLED_SECONDS)
                if asked > self._answered:
                    upkeep.complete()
                    self._confirm_flushes(asked)
            except StoreBusyError:
                tries += 1
                if tries > _MOST_BUSY_TRIES:
                    raise
                continue
            tries, found = 0, upkeep.progress()
            if worked or found != seen:
                seen, since = found, time.monotonic()
                self.say(b"%d" % found.covered)
            if not worked:
                time.sleep(POLL_SECONDS)

    def say(self, line: bytes) -> None:
        """Send the writer a line, unless the writer has ended, or reads so little that the pipe is full."""
        with contextlib.suppress(OSError):
            os.write(self._replies.fileno(), line + b"\n")

    def _open(self) -> StoreResources:
        place = Place(self._task["folder"])
        place.prepare(create=False)
        return StoreResources.at(
            place,
            durable=bool(self._task["durable"]),
            exact_below=int(self._task["exact_below"]),
            grow_share=float(self._task["grow_share"]),
            told=self._report_covered,
        )

    def _report_covered(self, covered: int) -> None:
        self._check_parent()
        self.say(b"%d" % covered)

    def _confirm_flushes(self, asked: int) -> None:
        for _ in range(asked - self._answered):
            self.say(FLUSHED)
        self._answered = asked

    def _check_parent(self) -> None:
        """End this process if the writer has ended: a child of the writer may keep the pipe open."""
        if os.getppid() != self._task["parent"]:
            os._exit(0)

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_SECONDS)
            self.say(ALIVE)

    def _listen(self) -> None:
        for line in self._orders:
            if line == FLUSH:
                self._asked += 1
        os._exit(0)  # the writer has ended, or needs no index any more; nothing has to be closed
