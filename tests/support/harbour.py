"""Ships, their class, permits that point at them, and the rules of classes and ports: a typed graph."""

from __future__ import annotations

from langchain_core.documents import Document

from linkstore.store import Relation, Schema

SCHEMA = Schema(
    types={"Ship", "Class", "Permit", "Port", "Rule"},
    relations=(
        Relation("OF_CLASS", "Ship", "Class"),
        Relation("BOUND_BY", "Class", "Rule"),
        Relation("PERMITS", "Permit", "Ship"),
        Relation("FOR_PORT", "Permit", "Port"),
        Relation("POSTS", "Port", "Rule"),
    ),
)


def harbour(**states: object) -> list[Document]:
    """Two ships of one class. The first may call at two ports, by permits with these states."""
    make = SCHEMA.document
    given = list(states.items()) or [("n", 1)]
    name, values = given[0][0], given[0][1] if isinstance(given[0][1], tuple) else (given[0][1],) * 2
    return [
        make("Ship", "s1", "Albatross is a ship that carries grain.", [("OF_CLASS", "c1")]),
        make("Ship", "s2", "Cormorant is a ship that carries oil.", [("OF_CLASS", "c1")]),
        make("Class", "c1", "The bulkers are a class of ships.", [("BOUND_BY", f"r{n}") for n in (1, 2, 3)]),
        make(
            "Permit",
            "p1",
            "Permit of the Albatross.",
            [("PERMITS", "s1"), ("FOR_PORT", "a")],
            metadata={name: values[0]},
        ),
        make(
            "Permit",
            "p2",
            "Permit of the Albatross.",
            [("PERMITS", "s1"), ("FOR_PORT", "b")],
            metadata={name: values[1]},
        ),
        make(
            "Permit",
            "p3",
            "Permit of the Cormorant.",
            [("PERMITS", "s2"), ("FOR_PORT", "c")],
            metadata={name: values[0]},
        ),
        make("Port", "a", "Port of Arvania.", [("POSTS", "r1"), ("POSTS", "r4")]),
        make("Port", "b", "Port of Belmore.", [("POSTS", "r2"), ("POSTS", "r5")]),
        make("Port", "c", "Port of Corvia.", [("POSTS", "r3")]),
        *(make("Rule", f"r{n}", f"Rule {n} on lights and ropes.") for n in range(1, 6)),
    ]
