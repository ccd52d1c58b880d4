"""What was forgotten is in no file of the folder, also with others reading, and after a power cut."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from crashes import ACKNOWLEDGED, after_power_cut, moments, traced
from stores import times

from linkstore import LinkStore
from linkstore.engines.embedded import EmbeddedSettings
from linkstore.memory import ConversationMemory

SECRET = b"quetzalcoatl"
SETTINGS = EmbeddedSettings(exact_below=20)
"""Few documents, so that the store has an index."""


def opened(folder: Path) -> LinkStore:
    return LinkStore.open(folder, settings=SETTINGS)


def filled(memory: ConversationMemory) -> None:
    for number in range(12):
        memory.add("secret", f"One passphrase of ours: quetzalcoatl{number}.", f"Noted quetzalcoatl{number}.")
        memory.add("open", f"The weather is fine on day {number}")
    backend = memory.store.backend
    backend.run(backend.flush())


def forget(root: str) -> None:
    """Forget a session, in a process of its own; ends as by a kill."""
    import os

    memory = ConversationMemory(opened(Path(root) / "memory"))
    filled(memory)
    acknowledgements = os.open(f"{root}/{ACKNOWLEDGED}", os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(acknowledgements, b"filled\n")
    memory.forget("secret")
    os.write(acknowledgements, b"forgotten\n")
    os._exit(0)


PROGRAM = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r});"
    "import test_forgotten_bytes as bytes_; bytes_.forget(*sys.argv[1:])"
)
READER = """
import sys
from pathlib import Path
sys.path[:0] = {room!r}
from test_forgotten_bytes import ConversationMemory, opened
memory = ConversationMemory(opened(Path(sys.argv[1])))
print(len(memory.recall("secret", "Which passphrase?", k=12).turns), flush=True)
sys.stdin.readline()
print(len(memory.recall("secret", "Which passphrase?", k=12).turns), flush=True)
"""


def holding(folder: Path, text: bytes = SECRET) -> list[str]:
    """The files that have a text."""
    return [path.name for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


def test_forgetting_erases_while_another_process_has_the_store_open(tmp_path):
    folder = tmp_path / "memory"
    with opened(folder) as store, ConversationMemory(store) as memory:
        filled(memory)
        assert holding(folder)
        program = READER.format(room=[str(Path(__file__).parent), *sys.path])
        with subprocess.Popen(
            [sys.executable, "-c", program, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "12\n"
            assert len(memory.forget("secret")) == 12
            assert holding(folder) == holding(folder, b"//secret") == []
            said, _ = reader.communicate("\n")
        assert (said, reader.returncode) == ("0\n", 0)
        assert holding(folder) == []
        assert len(memory.turns("open")) == 12


def test_after_a_power_cut_a_forgetting_that_began_is_completed_by_calling_it_again(tmp_path):
    root, events = traced(tmp_path, PROGRAM)
    chance = random.Random("forgetting")
    cut, begun = 0, set()
    for moment in moments(events, chance):
        files, acknowledged = after_power_cut(events, moment, chance)
        if not acknowledged:
            continue
        folder = tmp_path / f"cut{cut}" / "memory"
        for path, data in files.items():
            place = folder.parent / Path(path).relative_to(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        if acknowledged == 2:
            assert holding(folder) == []
        with opened(folder) as store, ConversationMemory(store) as memory:
            found = len(memory.turns("secret"))
            assert found in (0, 12)
            begun.add(found == 0)
            memory.forget("secret")
            assert memory.turns("secret") == []
            assert holding(folder) == holding(folder, b"//secret") == []
            assert len(memory.turns("open")) == 12
        cut += 1
        if cut == times(20, 200):
            break
    assert cut > 10, "the cuts do not lie in the forgetting"
    assert True in begun
