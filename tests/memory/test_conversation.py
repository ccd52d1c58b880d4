"""Conversation memory on the embedded engine."""

import pytest
from internals import StoreFolder
from memory_cases import MemoryCases

from linkstore import LinkStore
from linkstore.errors import StoreReadOnlyError
from linkstore.memory import ConversationMemory


class TestEmbedded(MemoryCases):
    @pytest.fixture
    def store(self, tmp_path):
        with LinkStore.open(tmp_path / "memory") as store:
            yield store


def test_a_memory_in_a_folder_that_cannot_be_written_opens_with_a_forgetting_that_was_killed(
    tmp_path, monkeypatch
):
    folder = tmp_path / "memory"
    with LinkStore.open(folder) as store, ConversationMemory(store) as memory:
        memory.add("gone", "The passphrase is quetzalcoatl.")
        memory.add("kept", "The weather is fine.")
        with monkeypatch.context() as patch:
            patch.setattr(store, "delete", killed)
            with pytest.raises(KeyboardInterrupt):
                memory.forget("gone")
    with monkeypatch.context() as patch:
        patch.setattr(StoreFolder, "writable", property(lambda _: False))
        with LinkStore.open(folder) as store, ConversationMemory(store) as memory:
            assert memory.recall("kept", "How is the weather?").recent
            with pytest.raises(StoreReadOnlyError):
                memory.add("kept", "And now?")
    with LinkStore.open(folder) as store, ConversationMemory(store) as memory:
        assert len(memory.forget("gone")) == 1
        assert len(memory.turns("kept")) == 1
        assert not holds(folder, b"quetzalcoatl")


def killed(*args, **kwargs):
    raise KeyboardInterrupt


def test_no_byte_of_what_was_forgotten_is_left_in_the_folder(tmp_path):
    folder = tmp_path / "memory"
    with LinkStore.open(folder) as store, ConversationMemory(store) as memory:
        for number in range(30):
            memory.add("secret", f"The passphrase is quetzalcoatl{number}", f"Noted quetzalcoatl{number}.")
            memory.add("open", f"The weather is fine {number}")
        store.backend.run(store.backend.flush())
        assert holds(folder, b"quetzalcoatl")
        assert len(memory.forget("secret")) == 30
        assert not holds(folder, b"quetzalcoatl")
        assert not holds(folder, b"//secret")
        assert len(memory.turns("open")) == 30
    assert not holds(folder, b"quetzalcoatl")


def holds(folder, text):
    return any(text in path.read_bytes() for path in folder.rglob("*") if path.is_file())
