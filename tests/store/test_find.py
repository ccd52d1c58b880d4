"""``store.find``: the document that a name means, or the choices."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.errors import ArgumentError, UnknownNameError
from linkstore.store import Schema


@pytest.fixture
def fleet():
    with LinkStore() as store:
        store.add_documents(
            [
                Document(
                    id="imo/9321483", page_content="A ferry.", metadata={"title": "MV Aurora", "type": "Ship"}
                ),
                Document(id="port/1", page_content="A port.", metadata={"title": "Corvia", "type": "Port"}),
                Document(id="port/2", page_content="A port.", metadata={"title": "Aurora", "type": "Port"}),
                Document(
                    id="port/3", page_content="A port.", metadata={"title": "Aurora", "type": "Harbour"}
                ),
            ]
        )
        yield store


@pytest.mark.parametrize("name", ["imo/9321483", "[imo/9321483]", "MV Aurora", "the mv aurora", "9321483"])
def test_a_name_or_id_of_one_document_finds_it(fleet, name) -> None:
    lookup = fleet.find(name)
    assert (lookup.document.id, lookup.candidates) == ("imo/9321483", ())
    assert lookup.grade
    assert asyncio.run(fleet.afind(name)) == lookup


def test_a_name_of_several_is_a_choice_unless_the_type_decides(fleet) -> None:
    lookup = fleet.find("Aurora")
    assert lookup.document is None
    assert [document.id for document in lookup.candidates] == ["port/2", "port/3"]
    assert fleet.find("Aurora", type="Harbour").document.id == "port/3"
    assert fleet.find("Aurora", filter={"type": "Port"}).document.id == "port/2"


def test_what_is_there_by_no_name_has_no_grade(fleet) -> None:
    lookup = fleet.find("zzyzx")
    assert (lookup.document, lookup.candidates, lookup.grade) == (None, (), "")
    with LinkStore() as empty:
        assert empty.find("Aurora").document is None


def test_wrong_arguments_are_refused(fleet) -> None:
    with pytest.raises(ArgumentError, match="name must be an id or a name"):
        fleet.find(3)
    assert fleet.find("Aurora", type="Shp").document is None
    fleet.schema.set(Schema(types={"Ship", "Port", "Harbour"}))
    with pytest.raises(UnknownNameError, match="'Shp'"):
        fleet.find("Aurora", type="Shp")
