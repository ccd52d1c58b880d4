"""What the facets of the page owe on every engine; a subclass gives the store."""

from __future__ import annotations

import json

import orjson
import pytest
from internals import Views
from langchain_core.documents import Document

QUESTION = "A note on harbours"
NOTES = [
    {
        "type": kind,
        "tags": tags,
        "year": year,
        "done": done,
        "number": number,
        "lang": "en",
        "date": "2024-05-01",
    }
    for number, (kind, tags, year, done) in enumerate(
        [
            ("guide", ["home", "a"], 2024, True),
            ("guide", ["home", "b"], 2024, False),
            ("note", ["home"], 2023, 1),
            ("note", ["work", "c"], 2023, 1),
            ("1", [], 2023, True),
            (1, ["work"], 2024, True),
        ]
    )
]
FOLDERS = ["a", "a", "a/b", "c", "c", ""]


def show(store, view, **given):
    """What a view shows, as JSON brings it."""
    return orjson.loads(orjson.dumps(Views(store).show(view, given)))


def count(facet):
    return {option["label"]: option["pages"] for option in facet}


class FacetCases:
    @pytest.fixture
    def notes(self, store):
        for number, metadata in enumerate(NOTES):
            page = "/".join(filter(None, ["https://notes.example/en", FOLDERS[number], f"{number}.md"]))
            for chunk in "xy":
                text = f"A note on harbours, number {number}, part {chunk}."
                fields = metadata | {"page": page}
                store.add_documents([Document(id=f"{number}{chunk}", page_content=text, metadata=fields)])
        return store

    def test_facets_count_pages_by_the_values_that_they_share(self, notes):
        found = show(notes, "facets", question=QUESTION)
        options = {
            name: {json.dumps(option["condition"]): option["pages"] for option in facet}
            for name, facet in found.items()
        }
        a, c = (
            {"$gte": f"https://notes.example/en/{name}/", "$lt": f"https://notes.example/en/{name}0"}
            for name in "ac"
        )
        assert options == {
            "done": {"true": 3, "1": 2, "false": 1},
            "page": {json.dumps(a): 3, json.dumps(c): 2},
            "tags": {'"home"': 3, '"work"': 2, '"a"': 1, '"b"': 1, '"c"': 1},
            "type": {'"guide"': 2, '"note"': 2, '"1"': 1, "1": 1},
            "year": {"2023": 3, "2024": 3},
        }
        assert [option["label"] for option in found["page"]] == ["a", "c"]

    def test_the_condition_of_a_facet_passes_the_pages_that_were_counted(self, notes):
        for name, facet in show(notes, "facets", question=QUESTION).items():
            for option in facet:
                settings = {"filter": {name: option["condition"]}, "k": 100}
                answer = show(notes, "answer", question=QUESTION, settings=settings)
                assert len(answer["pages"]) == option["pages"], (name, option)

    def test_facets_are_those_of_what_passes_the_filter_and_a_field_that_parts_nothing_is_none(self, notes):
        found = show(notes, "facets", question=QUESTION, settings={"filter": {"type": "guide"}})
        assert {name: count(facet) for name, facet in found.items()} == {"tags": {"home": 2, "a": 1, "b": 1}}

    def test_there_are_few_facets_with_few_values(self, store):
        for number in range(90):
            fields = {f"field {field:02}": number % 2 for field in range(9)} | {"shared": f"{number // 3}"}
            fields |= {
                "hash": f"{number:060}",
                "long": "x" * 61,
                "large": 2**60 + number % 2,
                "none": None,
                "$or": "x",
            }
            store.add_texts([f"harbour {number}"], [fields], ids=[str(number)])
        found = show(store, "facets", question="harbour")
        assert list(found) == [f"field {field:02}" for field in range(6)]
        for field in range(6):
            found = show(store, "facets", question="harbour", settings={"filter": {f"field {field:02}": 0}})
            assert list(found)[-1:] == ["shared"] or len(found) == 6
        assert max(map(len, found.values())) <= 20
