"""Derived files that are damaged are found out, never believed, and made anew."""

from __future__ import annotations

import random
import shutil

import pytest
from internals import Groups, Memberships, Plan, Tags, WriteBatch
from stores import LONG, SNAPSHOTS, backend, exact, nearest, put, snapshot_file, sql, times, vectors

from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import StoreFormatError

COUNT = 4150
QUESTIONS = vectors(range(10_000, 10_006))
PAGE = 4096
KINDS = ("truncated", "emptied", "flipped bit", "zeroed page", "zeroed tail", "swapped", "removed", "noise")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A store with a graph, vectors and an index in files, and an older index beside."""
    folder = tmp_path_factory.mktemp("sound") / "kb"
    store = backend(folder)
    put(store, 0, COUNT - 20)
    store.run(store.flush())
    put(store, COUNT - 20, COUNT)
    store.run(store.flush())
    store.close()
    assert len(list(folder.glob("index-*.bin"))) == 2
    return folder


@pytest.fixture(scope="module")
def right():
    return [exact(range(COUNT), question, 5) for question in QUESTIONS]


def damage(folder, kind: str, chance: random.Random) -> None:
    """Damage the file of the snapshot."""
    path = snapshot_file(folder)
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    match kind:
        case "truncated":
            data = data[:at]
        case "emptied":
            data = bytearray()
        case "flipped bit":
            data[at] ^= 1 << chance.randrange(8)
        case "zeroed page":
            start = at // PAGE * PAGE
            data[start : start + PAGE] = bytes(len(data[start : start + PAGE]))
            data[at] ^= 0xFF  # the page may have been zero
        case "zeroed tail":
            data[at:] = bytes(len(data) - at)
            data[at] ^= 0xFF
        case "swapped":
            (older,) = set(folder.glob("index-*.bin")) - {path}
            data = bytearray(older.read_bytes())
        case "noise":
            data = bytearray(chance.randbytes(len(data)))
    if kind == "removed":
        path.unlink()
    else:
        path.write_bytes(data)


def group_tags(store: EmbeddedBackend) -> list[tuple[str, str]]:
    """The link groups that document 0 lies on."""

    def plan() -> Plan[list[tuple[str, str]]]:
        from internals import Candidates, Find

        found: Candidates = yield Find(ids=("d0",))
        lies: Memberships = yield Groups(refs=found.refs, side="out")
        tags: list[tuple[str, str]] = yield Tags(groups=lies.group)
        return sorted(tags)

    return store.run(store.answer(plan()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_made_anew_and_answers_are_right(sound, right, tmp_path, kind) -> None:
    for turn in range(times(2, 627)):
        folder = tmp_path / str(turn)
        shutil.copytree(sound, folder)
        damage(folder, kind, random.Random(f"{kind} {turn}"))
        store = EmbeddedBackend(folder, settings=SNAPSHOTS)
        assert [nearest(store, question, 5) for question in QUESTIONS] == right
        assert group_tags(store) == [("hyperlink", "u0"), ("keyword", "k0")]
        assert store.run(store.verify()).sound
        assert snapshot_file(folder).exists()
        store.close()
        shutil.rmtree(folder)


def test_a_file_damaged_while_a_store_is_open_misleads_nobody(sound, right, tmp_path) -> None:
    """A damaged file takes the place of the one in use: verify names it, repair makes it anew."""
    folder = tmp_path / "kb"
    shutil.copytree(sound, folder)
    path = snapshot_file(folder)
    store = EmbeddedBackend(folder, settings=SNAPSHOTS)
    assert [nearest(store, question, 5) for question in QUESTIONS] == right
    data = path.read_bytes()
    path.unlink()  # the old file stays as it is for whoever has mapped it
    path.write_bytes(data[: len(data) // 2])
    assert [nearest(store, question, 5) for question in QUESTIONS] == right
    report = store.run(store.verify())
    assert [finding.examples for finding in report.findings] == [(path.name,)]
    assert store.run(store.repair()) == report
    assert store.run(store.verify()).sound
    assert [nearest(store, question, 5) for question in QUESTIONS] == right
    store.close()


def test_a_reader_of_a_damaged_new_snapshot_searches_exactly(sound, right, tmp_path) -> None:
    """What another process saved is verified before it is used."""
    folder = tmp_path / "kb"
    shutil.copytree(sound, folder)
    writer = EmbeddedBackend(folder, settings=SNAPSHOTS)
    reader = EmbeddedBackend(folder, settings=SNAPSHOTS)
    nearest(reader, QUESTIONS[0])
    writer.run(writer.write(WriteBatch(remove=["no such document"])))
    put(writer, COUNT, COUNT + 1)
    writer.run(writer.flush())
    path = snapshot_file(folder)
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(bytes(len(data)))
    expected = [exact(range(COUNT + 1), question, 5) for question in QUESTIONS]
    assert [nearest(reader, question, 5) for question in QUESTIONS] == expected
    reader.close()
    writer.close()


def test_leftovers_of_a_crash_are_cleared_away(sound, tmp_path) -> None:
    folder = tmp_path / "kb"
    shutil.copytree(sound, folder)
    known = snapshot_file(folder)
    (folder / ".index.123.tmp").write_bytes(b"half")
    (folder / "index-7.bin").write_bytes(b"never recorded")
    store = EmbeddedBackend(folder, settings=SNAPSHOTS)
    put(store, COUNT, COUNT + 1)
    store.run(store.flush())
    store.close()
    assert not (folder / ".index.123.tmp").exists()
    assert set(folder.glob("index-*.bin")) == {known, snapshot_file(folder)}


def test_a_damaged_database_is_a_clear_error(sound, tmp_path) -> None:
    folder = tmp_path / "kb"
    shutil.copytree(sound, folder)
    path = folder / "linkstore.db"
    data = bytearray(path.read_bytes())
    data[200 * PAGE : 260 * PAGE] = b"\xff" * (60 * PAGE)
    path.write_bytes(data)
    store = EmbeddedBackend(folder, settings=SNAPSHOTS)
    report = store.run(store.verify())
    assert "SQLite finds the database damaged" in {finding.problem for finding in report.findings}
    with pytest.raises(StoreFormatError, match="damaged: restore it"):
        store.run(store.scan(None, COUNT))
    store.close()
    path.write_bytes(b"\xff" * len(data))
    with pytest.raises(StoreFormatError, match=r"linkstore\.db"):
        EmbeddedBackend(folder)


def test_the_full_count_of_damaged_files_is_5000() -> None:
    assert len(KINDS) * times(2, 627) >= (5000 if LONG else 16)


def test_vectors_of_removed_documents_do_not_spoil_a_rebuilt_file(tmp_path) -> None:
    """A file made anew by a process that never saw a removed document differs from the old one."""
    store = backend(tmp_path / "kb")
    put(store, 0, 4100)
    nearest(store, QUESTIONS[0])
    store.run(store.write(WriteBatch(remove=[f"d{n}" for n in range(0, 4000, 4)])))
    store.run(store.flush())
    store.close()
    for path in (tmp_path / "kb").glob("index-*.bin"):
        path.write_bytes(b"")
    left = [n for n in range(4100) if n % 4 or n >= 4000]
    for _ in range(2):
        store = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
        assert nearest(store, QUESTIONS[0]) == exact(left, QUESTIONS[0])
        assert store.run(store.verify()).sound
        store.close()
    sql(tmp_path / "kb", "PRAGMA quick_check")
