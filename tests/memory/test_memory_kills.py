"""A turn is one write: after a kill or a power cut at any point it is there whole, or not at all."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest
from crashes import ACKNOWLEDGED, after_power_cut, moments, traced

from linkstore import LinkStore
from linkstore.memory import ConversationMemory, SessionKey, sessions, writing

POINTS = 200
SESSIONS = ("a", "b")
PAGE_TURNS = 4
"""Few turns to a page, so that some of the writes open one."""


def said(number: int) -> dict:
    return {
        "query": f"What of Kubernetes {number}?",
        "response": f"It is number {number}. " * 20,
        "entities": [f"Entity {number}", "Kubernetes"],
        "sources": [f"chunk-{number}", "chunk"],
    }


def live(root: str) -> None:
    """Write turns to two sessions by turns, in a process of its own; ends as by a kill."""
    import os

    sessions.PAGE_TURNS = PAGE_TURNS
    acknowledgements = os.open(f"{root}/{ACKNOWLEDGED}", os.O_WRONLY | os.O_CREAT, 0o600)
    memory = ConversationMemory(LinkStore.open(f"{root}/memory"))
    for number in range(24):
        memory.add(SESSIONS[number % 2], **said(number))
        os.write(acknowledgements, b"turn\n")
    os._exit(0)


PROGRAM = (
    "import sys; sys.path.insert(0, {room!r});import test_memory_kills as kills; kills.live(*sys.argv[1:])"
)


def laid_out(files: dict[str, bytes], root: Path, folder: Path) -> Path:
    """The files as a folder; the traced one was ``root``."""
    for path, data in files.items():
        place = folder / Path(path).relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return folder / "memory"


def check(folder: Path, acknowledged: int, monkeypatch) -> int:
    """Every acknowledged turn is there, whole, and at most the one after; the session goes on."""
    monkeypatch.setattr(sessions, "PAGE_TURNS", PAGE_TURNS)
    with LinkStore.open(folder) as store, ConversationMemory(store) as memory:
        found = {name: memory.turns(name) for name in SESSIONS}
        count = sum(map(len, found.values()))
        assert acknowledged <= count <= acknowledged + 1
        for at, name in enumerate(SESSIONS):
            for ordinal, turn in enumerate(found[name]):
                expected = said(2 * ordinal + at)
                assert turn.query == expected["query"]
                assert turn.response == expected["response"]
                assert list(turn.entities) == expected["entities"]
                assert list(turn.sources) == expected["sources"]
                assert store.get_by_ids([turn.session.path])
        memory.add("a", "and now?")
        assert memory.turns("a", last=1)[0].ordinal == len(found["a"]) + 1
    return count


def test_a_turn_after_a_power_cut_is_whole_or_absent(tmp_path, monkeypatch) -> None:
    root, events = traced(tmp_path, PROGRAM.format(room=str(Path(__file__).parent)))
    seed = "turns"
    chance = random.Random(seed)
    counts = set()
    for number, moment in enumerate(islice(moments(events, chance), POINTS)):
        files, acknowledged = after_power_cut(events, moment, chance)
        folder = laid_out(files, root, tmp_path / f"cut{number}")
        counts.add(check(folder, acknowledged, monkeypatch))
    assert len(counts) > 10, "the cuts do not lie in the writes"


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_write_that_fails_leaves_no_part_of_a_turn(tmp_path, monkeypatch, fails_at) -> None:
    """The embedding fails for one of the documents of a turn: nothing of the turn is stored."""
    with LinkStore.open(tmp_path / "memory") as store, ConversationMemory(store) as memory:
        memory.add("a", **said(0))
        before = store.backend.run(store.backend.survey())
        requested = writing.add_documents

        def spoiled(store, documents):
            documents[min(fails_at, len(documents)) - 1].page_content = "\ud800"
            return requested(store, documents)

        monkeypatch.setattr(writing, "add_documents", spoiled)
        with pytest.raises(ValueError, match="surrogates"):
            memory.add(SessionKey(run_id="b"), **said(1))
        assert store.backend.run(store.backend.survey()) == before
        assert memory.turns("b") == []
