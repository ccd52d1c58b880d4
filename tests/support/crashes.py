"""What a disk may hold after a power cut: a trace of system calls, replayed up to a point.

The method is that of T. Pillai and others, "All File Systems Are Not Created Equal: On the Complexity of
Crafting Crash-Consistent Applications", OSDI 2014. What was synced is there. Of what was not, any part may
be: writes whole, torn or not at all, in any order, block by block; names of files in a prefix of their order
or in any subset.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("crash_trace.c")
BLOCK = 4096
ACKNOWLEDGED = "acknowledged"
"""A file below the folder: each line written to it acknowledges one change."""


@dataclass(frozen=True, slots=True)
class Event:
    """One call, as ``crash_trace.c`` records it: its kind, path, a number and data."""

    kind: str
    path: str
    number: int
    data: bytes


@dataclass(slots=True)
class Inode:
    """What was done to a file, and how much of that was synced."""

    done: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes at an offset, or a new size and None."""
    synced: int = 0


Names = dict[str, Inode]


@dataclass(slots=True)
class Disk:
    """A folder with what is in the system's memory and what is on the disk."""

    names: Names = field(default_factory=dict)
    durable: Names = field(default_factory=dict)
    pending: list[tuple[str, str, str, Inode | None]] = field(default_factory=list)
    acknowledged: int = 0

    def apply(self, event: Event) -> None:
        """Go one call further."""
        path = event.path
        match event.kind:
            case "O" if path not in self.names:
                self._make(path)
            case "W" if Path(path).name == ACKNOWLEDGED:
                self.acknowledged += event.data.count(b"\n")
            case "W":
                self._file(path).done.append((event.number, event.data))
            case "T":
                self._file(path).done.append((event.number, None))
            case "C":
                self._contents(self._file(path), event.data)
            case "S":
                self._file(path).synced = len(self._file(path).done)
            case "R":
                target = event.data.decode()
                self.names[target] = self.names.pop(path)
                self.pending.append(("rename", path, target, self.names[target]))
            case "U" if path in self.names:
                self.pending.append(("remove", path, "", self.names.pop(path)))
            case "D":
                self.settle(self.pending)
                self.pending = []

    def settle(self, operations: list[tuple[str, str, str, Inode | None]]) -> None:
        """Have changes of names on the disk."""
        for what, path, target, inode in operations:
            if what != "make":
                self.durable.pop(path, None)
            if what != "remove":
                assert inode is not None
                self.durable[target or path] = inode

    def _file(self, path: str) -> Inode:
        return self.names[path] if path in self.names else self._make(path)

    def _make(self, path: str) -> Inode:
        inode = self.names[path] = Inode()
        self.pending.append(("make", path, "", inode))
        return inode

    def _contents(self, inode: Inode, data: bytes) -> None:
        """What a file holds, as writes of the blocks that are not known yet."""
        known = contents(inode.done)
        if len(known) > len(data):
            inode.done.append((len(data), None))
        for start in range(0, len(data), BLOCK):
            block = data[start : start + BLOCK]
            if known[start : start + BLOCK] != block:
                inode.done.append((start, block))


def contents(done: list[tuple[int, bytes | None]]) -> bytes:
    """What a file holds after writes and truncations."""
    held = bytearray()
    for number, data in done:
        size = number if data is None else number + len(data)
        if len(held) < size:
            held.extend(bytes(size - len(held)))
        if data is None:
            del held[size:]
        else:
            held[number:size] = data
    return bytes(held)


def traced(tmp_path: Path, program: str, *arguments: str) -> tuple[Path, list[Event]]:
    """Run a Python program, whose first argument is a folder; the folder, and what it did to files there."""
    if not sys.platform.startswith("linux"):
        pytest.skip("calls are traced on Linux alone")
    library, log, root = tmp_path / "trace.so", tmp_path / "trace", tmp_path / "traced"
    root.mkdir()
    try:
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler here")
    environment = {"LD_PRELOAD": str(library), "CRASH_ROOT": str(root), "CRASH_LOG": str(log)}
    run = [sys.executable, "-c", program, str(root), *arguments]
    path = os.pathsep.join(str(place) for place in (SOURCE.parent, *sys.path) if place)
    subprocess.run(run, check=True, env={**os.environ, **environment, "PYTHONPATH": path})
    return root, list(_events(log.read_bytes()))


def _events(log: bytes) -> Iterator[Event]:
    at = 0
    while at < len(log):
        kind, length = struct.unpack_from("=cI", log, at)
        path = log[at + 5 : at + 5 + length].decode()
        number, size = struct.unpack_from("=qq", log, at + 5 + length)
        start = at + 21 + length
        at = start + size
        yield Event(kind.decode(), path, number, log[start:at])


def moments(events: list[Event], chance: random.Random) -> Iterator[int]:
    """Points to cut the power at, more of them around the calls that order others; without end."""
    hot = [at for at, event in enumerate(events) if event.kind in "SDRUT" or ACKNOWLEDGED in event.path]
    while True:
        near = chance.choice(hot) + chance.randint(-2, 3)
        at = near if chance.random() < 0.6 else chance.randint(1, len(events))
        yield min(max(at, 1), len(events))


def after_power_cut(events: list[Event], moment: int, chance: random.Random) -> tuple[dict[str, bytes], int]:
    """One state that the disk may be in, as the contents of files; and how much had been acknowledged."""
    disk = Disk()
    for event in events[:moment]:
        disk.apply(event)
    disk.settle(_chosen(disk.pending, chance))
    files = {path: contents(_kept(inode, chance)) for path, inode in disk.durable.items()}
    return {path: data for path, data in files.items() if Path(path).name != ACKNOWLEDGED}, disk.acknowledged


def _chosen(pending: list, chance: random.Random) -> list:
    match chance.choice(("all", "prefix", "prefix", "subset")):
        case "all":
            return pending
        case "prefix":
            return pending[: chance.randint(0, len(pending))]
        case _:
            return [one for one in pending if chance.random() < 0.5]


def _kept(inode: Inode, chance: random.Random) -> list[tuple[int, bytes | None]]:
    done, late = inode.done[: inode.synced], inode.done[inode.synced :]
    match chance.choice(("all", "none", "prefix", "subset", "torn", "blocks")):
        case "all":
            return done + late
        case "none":
            return done
        case "prefix":
            return done + late[: chance.randint(0, len(late))]
        case "subset":
            return done + [one for one in late if chance.random() < 0.6]
        case "torn":
            return done + _torn(late[: chance.randint(0, len(late))], chance)
        case _:
            return done + [part for one in late for part in _blocks(one, chance)]


def _torn(late: list[tuple[int, bytes | None]], chance: random.Random) -> list[tuple[int, bytes | None]]:
    if not late or late[-1][1] is None:
        return late
    at, data = late[-1]
    unit = chance.choice((1, 512, BLOCK))
    return [*late[:-1], (at, data[: chance.randint(0, len(data)) // unit * unit])]


def _blocks(one: tuple[int, bytes | None], chance: random.Random) -> Iterator[tuple[int, bytes | None]]:
    """Blocks of the system's cache are written in any order; one that is not may be read as zeros."""
    at, data = one
    if data is None:
        yield one
        return
    start = 0
    while start < len(data):
        stop = min(len(data), ((at + start) // BLOCK + 1) * BLOCK - at)
        fate = chance.random()
        if fate < 0.5:
            yield at + start, data[start:stop]
        elif fate < 0.75:
            yield at + start, bytes(stop - start)
        start = stop
