"""A database that somebody or something changed: errors have a name, and repair mends what it can."""

from __future__ import annotations

import contextlib
import random
import shutil

import apsw
import pytest
from internals import Documents, Floats, Groups, Ids, Members, Nearest, Plan, Tags, WriteBatch, parse_filter
from stores import DIMENSION, SNAPSHOTS, backend, exact, nearest, put, record, sql, times, vectors

from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import LinkStoreError, StoreFormatError

ASKED = vectors([10_000])[0]
VALUES = (
    None, 0, -1, 1, 7, 3000, 2**31, 2**40, 2**62, 1.5, "", "x", "not json", "[]", "{}", '{"generation": 1}',
    '{"n": 1}', "é" * 40, b"", b"\xff\xfe\x00", b"\x00" * 64, b"\x00\x00\x80\x7f" * 16,
)  # fmt: skip
COLUMNS = {
    "setting": ("value", "name"),
    "document": ("id", "text", "metadata", "links", "hash", "key"),
    "vector": ("embedding", "key"),
    "link_group": ("kind", "tag", "key"),
    "link": ("document", "link_group", "direction", "label", "weight"),
    "departed": ("key", "change"),
    "page": ("source", "url", "digest", "ids"),
    "note": ("name", "text"),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A store with a snapshot, and changes since."""
    folder = tmp_path_factory.mktemp("sound") / "kb"
    store = backend(folder)
    put(store, 0, 100)
    store.run(store.flush())
    put(store, 0, 20, version=1)
    put(store, 100, 110)
    store.run(store.write(WriteBatch(remove=["d50"])))
    store.close()
    return folder


def asked(store: EmbeddedBackend, filter: dict | None = None) -> int:
    """What a search reads, by a question of the dimension that the store says it has."""
    dimension = store.run(store.manifest()).dimension or DIMENSION
    return store.run(store.answer(everything(vectors([10_000], 0, min(dimension, 4096))[0], filter)))


def everything(vector: Floats, filter: dict | None) -> Plan[int]:
    found = yield Nearest(vector=vector, k=30, filter=parse_filter(filter))
    yield Ids(refs=found.refs)
    yield Documents(refs=found.refs)
    lies = yield Groups(refs=found.refs, side="out")
    yield Tags(groups=lies.group)
    around = yield Members(
        groups=lies.group, side="in", vector=vector, take=10, cap=200, exclude=found.refs[:0]
    )
    yield Documents(refs=around.refs)
    return len(found.refs)


NAMES = ("change", "last_key", "last_group", "documents", "dimension", "embedding", "snapshot")
USES = {
    "manifest": lambda store: store.run(store.manifest()),
    "search": asked,
    "filter": lambda store: asked(store, {"c": 1}),
    "scan": lambda store: store.run(store.scan(None, 1000)),
    "survey": lambda store: store.run(store.survey()),
    "pages": lambda store: store.run(store.pages(None)),
    "verify": lambda store: store.run(store.verify()),
    "write": lambda store: store.run(store.write(WriteBatch(put=[record(5, 2), record(300)], remove=["d7"]))),
    "repair": lambda store: store.run(store.repair()),
    "search again": asked,
    "flush": lambda store: store.run(store.flush()),
    "verify again": lambda store: store.run(store.verify()),
    "close": lambda store: store.close(),
}


def tamper(folder, turn: int) -> str:
    """Change one value, or a few, behind the store's back; what was done."""
    chance = random.Random(turn)
    table = chance.choice(list(COLUMNS))
    column, value = chance.choice(COLUMNS[table]), chance.choice(VALUES)
    part = {
        "setting": f"name = '{chance.choice(NAMES)}'",
        "link": f"document % 5 = {turn % 5}",
        "page": "1",
        "note": "name > 'field l'",
    }
    where = part.get(table, f"key % 5 = {turn % 5}")
    done, given = f"UPDATE OR IGNORE {table} SET {column} = ?1 WHERE {where}", (value,)
    if chance.random() < 0.15:
        done, given = f"DELETE FROM {table} WHERE {where}", ()
    connection = apsw.Connection(str(folder / "linkstore.db"))
    try:
        connection.execute(done, given)
    except (apsw.ConstraintError, apsw.MismatchError):
        return f"refused {table}.{column}"  # by SQLite itself
    finally:
        connection.close()
    return f"{done}: {value!r}"


def test_whatever_a_database_holds_errors_have_a_name(sound, tmp_path) -> None:
    """Every use of a tampered store answers, or raises one of ours."""
    for turn in range(times(25, 3000)):
        folder = tmp_path / str(turn)
        shutil.copytree(sound, folder)
        done = tamper(folder, turn)
        use = "open"
        try:
            store = EmbeddedBackend(folder, settings=SNAPSHOTS)
            for use in USES:
                with contextlib.suppress(LinkStoreError):
                    USES[use](store)
        except LinkStoreError:
            pass
        except BaseException as error:
            raise AssertionError(f"turn {turn}, {use} after {done}") from error
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE setting SET value = 10 WHERE name = 'last_key'",
        "UPDATE setting SET value = 'x' WHERE name = 'last_key'",
        "UPDATE setting SET value = 1 WHERE name = 'last_group'",
        "DELETE FROM setting WHERE name = 'change'",
        "UPDATE setting SET value = 0 WHERE name = 'change'",
        "UPDATE setting SET value = -3 WHERE name = 'documents'",
        "UPDATE setting SET value = 'sixteen' WHERE name = 'dimension'",
        "UPDATE link SET weight = 'heavy' WHERE document % 3 = 0",
        "UPDATE OR IGNORE link SET direction = 'up' WHERE document % 3 = 0",
        "UPDATE link_group SET tag = CAST(tag AS BLOB) WHERE key % 5 = 0",
        "UPDATE link_group SET kind = CAST(kind AS BLOB) WHERE key % 5 = 0",
    ],
)
def test_repair_mends_what_the_documents_tell(sound, tmp_path, statement) -> None:
    folder = shutil.copytree(sound, tmp_path / "kb")
    sql(folder, statement)
    store = EmbeddedBackend(folder, settings=SNAPSHOTS)
    assert not store.run(store.verify()).sound
    store.run(store.repair())
    assert store.run(store.verify()).findings == ()
    put(store, 400, 410)
    there = {one.id: one.vector for one in store.run(store.scan(None, 1000))}
    assert len(there) == 119
    left = [*range(20, 50), *range(51, 110), *range(400, 410)]
    found = [name for name in nearest(store, ASKED, 200) if int(name[1:]) >= 20]
    assert found == exact(left, ASKED, 200)
    store.close()
    again = EmbeddedBackend(folder, settings=SNAPSHOTS)
    assert again.run(again.verify()).findings == ()
    again.close()


def test_links_of_no_document_are_refused_with_what_to_do(sound, tmp_path) -> None:
    folder = shutil.copytree(sound, tmp_path / "kb")
    sql(folder, """UPDATE OR IGNORE link SET document = '{"n": 1}' WHERE document % 5 = 2""")
    sql(folder, "DELETE FROM setting WHERE name = 'snapshot'")  # the links in it are those before
    store = EmbeddedBackend(folder, settings=SNAPSHOTS)
    with pytest.raises(StoreFormatError, match="run verify"):
        store.run(store.survey())
    store.close()


@pytest.mark.parametrize("value", ["not json", '{"generation": 1}', "8", "[]", None, 8, b"\xff"])
def test_a_record_of_derived_files_that_cannot_be_read_is_made_anew(sound, tmp_path, value) -> None:
    folder = shutil.copytree(sound, tmp_path / "kb")
    store = EmbeddedBackend(folder, settings=SNAPSHOTS)
    set_snapshot = "UPDATE setting SET value = ? WHERE name = 'snapshot'"
    store._database.write(lambda connection: connection.execute(set_snapshot, (value,)).fetchall())
    assert nearest(store, ASKED)
    assert not store.run(store.verify()).sound or value is None
    store.run(store.repair())
    assert store.run(store.verify()).findings == ()
    store._database.write(lambda connection: connection.execute(set_snapshot, (value,)).fetchall())
    store._database.close()
    again = EmbeddedBackend(folder, settings=SNAPSHOTS)  # which does not need repair
    assert again.run(again.verify()).findings == ()
    assert nearest(again, ASKED)
    again.close()


def test_counters_that_are_no_numbers_are_named(sound, tmp_path) -> None:
    folder = shutil.copytree(sound, tmp_path / "kb")
    sql(folder, "UPDATE setting SET value = 'x' WHERE name = 'last_key'")
    store = EmbeddedBackend(folder, settings=SNAPSHOTS)
    with pytest.raises(StoreFormatError, match="the setting 'last_key' is 'x'; run repair"):
        nearest(store, ASKED)
    store.close()
