"""Drugs, what they belong to, where they are approved and what governs them: documents and typed links.

The regulation that concerns a drug is where two chains meet: it governs the drug's class, and the
jurisdiction of its approval enforces it. Other regulations have one of the two. The distractors: trials are
worded like questions about drugs, makers and standards lead away, and comments are about rules and cite any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from linkstore import Link, add_links

DRUGS = 200
CLASSES = 20
PLACES = ("Arvania", "Belmore", "Corvia", "Delmark", "Estoria", "Fenwick", "Galdor", "Hestia")
REGULATIONS = 40
MAKERS = 7
COMMENTS = 30
_FIRST = ("zal", "mer", "tov", "pex", "lin", "dor", "vik", "san", "bru", "kel")
_SECOND = ("ami", "oti", "uro", "exi", "ila", "ori", "asa", "eno", "ibu", "ona")
_LAST = ("dine", "zole")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drug:
    """What is known of a drug.

    Args:
        name: Its name.
        class_: The number of its molecule class.
        place: The number of the jurisdiction of its approval.
        regulation: The number of the one regulation that governs its class and is enforced there.
        approved: The year of its approval.
    """

    name: str
    class_: int
    place: int
    regulation: int
    approved: int


_KINDS = {
    "class": ("BELONGS_TO",),
    "approval": ("HAS_APPROVAL",),
    "jurisdiction": ("IN_JURISDICTION",),
    "regulation": ("GOVERNED_BY", "ENFORCES", "CITES"),
    "trial": ("TESTED_IN",),
    "maker": ("MADE_BY", "REPORTED_TO"),
    "standard": ("FOLLOWS",),
}
"""Kinds of link that lead to documents of a type."""


def drugs() -> list[Drug]:
    """All drugs."""
    names = [f"{a}{b}{c}".title() for a in _FIRST for b in _SECOND for c in _LAST]
    return [_drug(number, name) for number, name in enumerate(names[:DRUGS])]


def _drug(number: int, name: str) -> Drug:
    class_, place = number % CLASSES, (number // CLASSES + number) % len(PLACES)
    (both,) = set(governing(class_)) & set(enforced(place))
    return Drug(name=name, class_=class_, place=place, regulation=both, approved=2010 + number % 16)


def enforced(place: int) -> list[int]:
    """The regulations that a jurisdiction enforces."""
    return list(range(place, REGULATIONS, len(PLACES)))


def governing(class_: int) -> list[int]:
    """The regulations that govern a class: one for each jurisdiction."""
    return [len(PLACES) * ((class_ + place) % 5) + place for place in range(len(PLACES))]


def question(drug: Drug) -> str:
    """The question whose answer is the drug's regulation."""
    return f"Which rules apply to {drug.name} where it is approved?"


def documents(*, dated: bool = False) -> Iterator[Document]:
    """The whole graph, with distractors; where ``dated``, approvals have the year as data."""
    for number, drug in enumerate(drugs()):
        yield _node(
            f"drug/{drug.name}",
            f"{drug.name} is a drug.",
            "drug",
            ("BELONGS_TO", f"class/{drug.class_}"),
            ("HAS_APPROVAL", f"approval/{drug.name}", {"year": drug.approved} if dated else {}),
            ("MADE_BY", f"maker/{number % MAKERS}"),
            ("TESTED_IN", f"trial/{drug.name}"),
        )
        yield _node(
            f"approval/{drug.name}",
            f"Marketing authorisation of {drug.name}.",
            "approval",
            ("IN_JURISDICTION", f"place/{drug.place}"),
        )
        yield _node(
            f"trial/{drug.name}",
            f"A trial that asked where {drug.name} is approved and which rules apply.",
            "trial",
            ("REPORTED_TO", f"maker/{(number + 3) % MAKERS}"),
        )
    for class_ in range(CLASSES):
        links = [("GOVERNED_BY", f"regulation/{one}") for one in governing(class_)]
        yield _node(f"class/{class_}", f"Molecule class number {class_}.", "class", *links)
    for place, name in enumerate(PLACES):
        links = [("ENFORCES", f"regulation/{one}") for one in enforced(place)]
        yield _node(f"place/{place}", f"The authority of {name}.", "jurisdiction", *links)
    for number in range(REGULATIONS):
        yield _node(f"regulation/{number}", f"Directive {number} on handling and storage.", "regulation")
    for number in range(MAKERS):
        yield _node(f"maker/{number}", f"Maker number {number}.", "maker", ("FOLLOWS", f"standard/{number}"))
        yield _node(f"standard/{number}", f"Standard {number} on rules that apply.", "standard")
    for number in range(COMMENTS):
        links = [("CITES", f"regulation/{(7 * number + step) % REGULATIONS}") for step in range(3)]
        yield _node(f"comment/{number}", f"Comment {number}: which rules apply where?", "comment", *links)


Pointer = tuple[str, str] | tuple[str, str, dict[str, Any]]
"""The kind of a link, the document it leads to, and its data if it has any."""


def _node(id: str, text: str, type: str, *links: Pointer) -> Document:
    """A document of a type."""
    made = Document(id=id, page_content=text, metadata={"type": type})
    add_links(made, *(Link.incoming(kind=kind, tag=id) for kind in _KINDS.get(type, ())))
    for kind, to, *data in links:
        link = Link.outgoing(kind=kind, tag=to, label=kind.lower(), data=data[0] if data else None)
        add_links(made, link)
    return made
