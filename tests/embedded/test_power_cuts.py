"""After a power cut at any point of its life a store opens, holds what it acknowledged, and answers right."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from crashes import ACKNOWLEDGED, after_power_cut, moments, traced
from internals import WriteBatch, cosine_similarities
from stores import backend, nearest, put, record, times, vectors

from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings, database, derived

ASKED = vectors([10_000])[0]
ROWS_AT_ONCE = 64
"""Few rows of vectors to a write, so that a hundred documents take several."""
State = dict[str, int]


def settings(durable: bool) -> EmbeddedSettings:
    return EmbeddedSettings(exact_below=40, durable=durable)


def small(patched: pytest.MonkeyPatch) -> None:
    """Make a small store do what a large one does."""
    patched.setattr(derived, "_ROWS_AT_ONCE", ROWS_AT_ONCE)


def changes() -> Iterator[tuple[dict[int, int], list[int], bool]]:
    """Each change: versions of documents put, documents removed, and whether a snapshot follows."""
    for step in range(10):
        fresh = dict.fromkeys(range(15 * step, 15 * step + 15), 0)
        gone = [11 * step + 1] if step > 2 else []
        again = {n: step + 1 for n in range(3 * step, 3 * step + 6) if n < 15 * step and n not in gone}
        yield fresh | again, gone, step in (3, 6)
    yield dict.fromkeys(range(20, 60), 77), [], True
    yield dict.fromkeys(range(20, 25), 78), [], False


def states() -> list[State]:
    """What is stored after each change, the first before any."""
    held: State = {}
    after = [dict(held)]
    for versions, gone, _ in changes():
        held |= {f"d{n}": version for n, version in versions.items()}
        for n in gone:
            held.pop(f"d{n}", None)
        after.append(dict(held))
    return after


def live(root: str, durable: str, checkpoint: str) -> None:
    """The life of a store, in a process of its own; ends as by a kill."""
    import os

    small(pytest.MonkeyPatch())
    database.CHECKPOINT_PAGES = int(checkpoint)
    acknowledgements = os.open(f"{root}/{ACKNOWLEDGED}", os.O_WRONLY | os.O_CREAT, 0o600)
    store = backend(f"{root}/kb", settings(durable == "durable"))
    for step, (versions, gone, flush) in enumerate(changes()):
        put = [record(n, version) for n, version in versions.items()]
        store.run(store.write(WriteBatch(put=put, remove=[f"d{n}" for n in gone])))
        os.write(acknowledgements, b"change\n")
        if flush:
            store.run(store.flush())
        if step == 9:
            store.close()
            store = backend(f"{root}/kb", settings(durable == "durable"))
    os._exit(0)


PROGRAM = (
    "import sys; sys.path.insert(0, {room!r}); import test_power_cuts; test_power_cuts.live(*sys.argv[1:])"
)


def laid_out(files: dict[str, bytes], root: Path, folder: Path) -> Path:
    """The files as a folder; the traced one was ``root``."""
    for path, data in files.items():
        place = folder / Path(path).relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return folder / "kb"


def check(folder: Path, acknowledged: int, durable: bool) -> None:
    """Open what a power cut left; ask, write, save and open it again."""
    store = backend(folder, settings(durable))
    held = {one.id: one for one in store.run(store.scan(None, 10_000))}
    versions = {name: one.metadata["v"] for name, one in held.items()}
    at = [n for n, state in enumerate(states()) if state == versions]
    assert at, f"{len(held)} documents are those of no change"
    assert min(at) <= acknowledged + 1, "a change is there that was never begun"
    assert not durable or max(at) >= acknowledged, f"{acknowledged} changes acknowledged, {at} there"
    assert store.run(store.verify()).findings == ()
    right = sorted(held.values(), key=lambda one: (-cosine_similarities(one.vector[None], ASKED)[0], one.id))
    assert nearest(store, ASKED, 5) == [one.id for one in right[:5]]
    put(store, 5000, 5001)
    store.run(store.flush())
    assert nearest(store, vectors([5000])[0], 1) == ["d5000"]
    store.close()
    again = EmbeddedBackend(folder, create=False, settings=settings(durable))
    assert again.run(again.verify()).findings == ()
    assert again.run(again.survey()).documents == len(held) + 1
    again.close()


@pytest.mark.parametrize("checkpoint", ["4000", "20"])
@pytest.mark.parametrize("durable", ["durable", "not durable"])
def test_a_store_after_a_power_cut(tmp_path, monkeypatch, durable, checkpoint) -> None:
    small(monkeypatch)
    program = PROGRAM.format(room=str(Path(__file__).parent))
    root, events = traced(tmp_path, program, durable, checkpoint)
    assert len({event.kind for event in events} & set("OWTCSDRU")) == 8
    chance = random.Random(f"{durable} {checkpoint}")
    for turn, moment in enumerate(islice(moments(events, chance), times(15, 1250))):
        files, acknowledged = after_power_cut(events, moment, chance)
        folder = laid_out(files, root, tmp_path / f"cut{turn}")
        if not (folder / "linkstore.db").exists():
            assert not acknowledged or durable != "durable"
        check(folder, acknowledged, durable == "durable")
