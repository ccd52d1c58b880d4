"""Metadata as users have it: usual values become JSON, others are refused by key."""

from __future__ import annotations

import datetime as dt
import enum
import pathlib
import uuid

import numpy as np
import orjson
import pytest
from internals import convert_metadata
from langchain_core.documents import Document
from stores import embedding

from linkstore import Link, LinkStore
from linkstore.errors import DocumentError


class Colour(enum.Enum):
    RED = "red"
    BOTH = ("red", 1)


class Word(enum.StrEnum):
    ONE = "one"


class Level(enum.IntEnum):
    HIGH = 3


ZONE = dt.timezone(dt.timedelta(hours=2))
NAME = uuid.UUID("12345678-1234-5678-1234-567812345678")
USUAL = [
    (dt.date(2024, 2, 29), "2024-02-29"),
    (dt.datetime(2024, 2, 29, 12, 30, tzinfo=ZONE), "2024-02-29T12:30:00+02:00"),
    (dt.time(12, 30), "12:30:00"),
    (NAME, str(NAME)),
    (pathlib.PurePosixPath("/a/b"), "/a/b"),
    (Colour.RED, "red"),
    (Colour.BOTH, ["red", 1]),
    (Word.ONE, "one"),
    (Level.HIGH, 3),
    (np.float32(0.5), 0.5),
    (np.int64(7), 7),
    (np.bool_(True), True),
    (np.str_("a"), "a"),
    (np.datetime64("2024-02-29"), "2024-02-29"),
    ((1, (2, 3)), [1, [2, 3]]),
    ({3, 1, 2}, [1, 2, 3]),
    (frozenset({"b", "a", 1}), [1, "a", "b"]),
    ([{"when": dt.date(2024, 1, 1)}], [{"when": "2024-01-01"}]),
]


@pytest.mark.parametrize(("value", "stored"), USUAL, ids=[str(at) for at in range(len(USUAL))])
def test_usual_values_are_stored_as_their_usual_strings_lists_and_numbers(value, stored):
    kept = convert_metadata({"before": 1, "key": value}, "d")
    assert orjson.loads(orjson.dumps(kept)) == {"before": 1, "key": stored}


def test_what_is_stored_can_be_filtered_and_comes_back():
    given = {"when": dt.date(2024, 2, 29), "path": pathlib.PurePosixPath("a/b"), "sizes": (1, 2)}
    link = Link.bidir(kind="keyword", tag="k")
    with LinkStore(embedding()) as store:
        document = Document(id="d", page_content="text", metadata={"links": [link], **given})
        store.add_documents([document])
        (found,) = store.get_by_ids(["d"])
        assert found.metadata == {
            "links": [link.to_dict()],
            "when": "2024-02-29",
            "path": "a/b",
            "sizes": [1, 2],
        }
        assert len(store.search("text", filter={"when": {"$gte": "2024-01-01"}})) == 1
        assert document.metadata["when"] == given["when"], "the caller's document stays as it is"


CIRCLE: list = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        b"bytes",
        float("nan"),
        np.float64("inf"),
        np.zeros(2),
        dt.timedelta(1),
        2**70,
        "\ud800",
        1j,
        {1: "a"},
        {object()},
        {"a": {"b": object()}},
        CIRCLE,
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_refused_by_its_key(value):
    with pytest.raises(DocumentError, match=r"document 'd' cannot be stored: metadata\['bad'\]"):
        convert_metadata({"good": 1, "when": dt.date(2024, 1, 1), "bad": value}, "d")
