"""Typed graphs that a seed makes, each with questions whose answers are where two relations meet.

Every world has the same form and texts, names, kinds of link, directions and states of its own. From one
named document, two relations lead to the documents that answer: one by what the thing is, one by way of
documents that are valid or not. Decoys have one of the two, or meet only by way of a document that is no
longer valid. A question is asked in five wordings, as people write: in full, in keywords, in haste, without
the name of the type that is wanted, and told as a situation. Nothing of this is known to linkstore.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from linkstore import Link, add_links
from linkstore.store import Relation, Schema

WORDINGS = ("full", "keywords", "haste", "indirect", "situation")
ANCHORS = 40
"""How many documents are asked about; with five wordings, 200 questions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQuestion:
    """A question about one document of a graph.

    Args:
        wording: Which of the five.
        text: As a person types it.
        start: The id of the document that it names.
        gold: The ids of the documents that answer it.
    """

    wording: str
    text: str
    start: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A typed graph with questions.

    Args:
        name: As in tables.
        schema: Types and relations.
        documents: With their links.
        questions: Five wordings for each document asked about.
        start_type: The type of the documents that questions name.
        result_type: The type of the answers.
        where: What documents of a type on the way must have, by type.
    """

    name: str
    schema: Schema
    documents: tuple[Document, ...]
    questions: tuple[GraphQuestion, ...]
    start_type: str
    result_type: str
    where: Mapping[str, Mapping[str, Any]]


class Maker:
    """Collects the documents of a world.

    Args:
        schema: Its relations give every document the links by which others can point at it.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.documents: list[Document] = []

    def add(
        self, type: str, id: str, text: str, links: Iterable[tuple[str, str]] = (), **metadata: Any
    ) -> str:
        """Add a document that points at others, by (kind, id), and return its id."""
        made = Document(id=id, page_content=text, metadata={"type": type, **metadata})
        kinds = [one.kind for one in self._schema.relations if type in one.to_types]
        add_links(made, *(Link.incoming(kind=kind, tag=id) for kind in dict.fromkeys(kinds)))
        add_links(made, *(Link.outgoing(kind=kind, tag=to) for kind, to in links))
        self.documents.append(made)
        return id


def ask(
    name: str, start: str, gold: Iterable[str], wordings: Sequence[Sequence[str]], at: int
) -> list[GraphQuestion]:
    """Ask about a document in every wording; each has several forms, taken in turn."""
    found = []
    for wording, forms in zip(WORDINGS, wordings, strict=True):
        form = forms[at % len(forms)]
        text = form.format(X=name, x=name.lower())
        found.append(GraphQuestion(wording=wording, text=text, start=start, gold=frozenset(gold)))
    return found


def make_names(chance: random.Random, count: int, parts: Sequence[Sequence[str]]) -> list[str]:
    """Make different names of one syllable from each part."""
    names: dict[str, None] = {}
    while len(names) < count:
        names["".join(chance.choice(part) for part in parts).title()] = None
    return list(names)


DRUG_WORDINGS = (
    (
        "Which regulations apply to {X}, given its molecule class and the places where it is approved now?",
        "Which directive applies to {X} where it is approved?",
    ),
    ("{x} rules where approved", "regulations {x} current approvals class"),
    (
        "hi, what directives do we have to follow for {X} in the countries it currently holds an"
        " authorisation for?",
        "quick one - {x}, which regs do we need to look at? only where its still authorised pls",
    ),
    (
        "Given the class {X} belongs to and the jurisdictions with a live approval, list what binds it.",
        "What has to be observed for {X} on account of its molecule and of where it may be sold today?",
    ),
    (
        "We sell {X}. Which requirements concern us both because of what kind of molecule it is and because"
        " of where it is on the market?",
        "My team is taking over {X} from a licensor. Tell me which rules come with it in the markets that"
        " have not withdrawn it.",
    ),
)


def make_drugs(seed: int) -> World:
    """Drugs, their molecule classes and approvals, and the regulations that govern and are enforced."""
    chance = random.Random(f"drugs {seed}")
    schema = Schema(
        types={"Drug", "MoleculeClass", "Approval", "Jurisdiction", "Regulation", "Trial"},
        relations=(
            Relation("BELONGS_TO", "Drug", "MoleculeClass"),
            Relation("HAS_APPROVAL", "Drug", "Approval"),
            Relation("TESTED_IN", "Drug", "Trial"),
            Relation("IN_JURISDICTION", "Approval", "Jurisdiction"),
            Relation("GOVERNED_BY", "MoleculeClass", "Regulation"),
            Relation("ENFORCES", "Jurisdiction", "Regulation"),
        ),
    )
    maker = Maker(schema)
    names = make_names(
        chance,
        ANCHORS,
        (
            ("zal", "mer", "tov", "pex", "lin", "dor", "vik", "san", "bru", "kel", "nor", "fla"),
            ("ami", "oti", "uro", "exi", "ila", "ori", "asa", "eno", "ibu", "ona"),
            ("dine", "zole", "pril", "mab", "vir", "statin"),
        ),
    )
    places = make_names(
        chance,
        8,
        (
            ("Ar", "Bel", "Cor", "Del", "Est", "Fen", "Gal", "Hes"),
            ("vania", "more", "via", "mark", "oria", "wick"),
        ),
    )
    classes = ("azoles", "opioids", "triptans", "statins", "retinoids", "peptides", "glycans", "xanthines")
    subjects = (
        "storage",
        "labelling",
        "transport",
        "disposal",
        "dispensing",
        "advertising",
        "reporting",
        "import",
    )
    regulations = list(range(96))
    governs = {one: sorted(chance.sample(regulations, 12)) for one in range(len(classes))}
    enforces = {
        place: sorted({number for one in range(len(classes)) for number in chance.sample(governs[one], 1)})
        for place in range(len(places))
    }
    for number in regulations:
        what = subjects[number % len(subjects)]
        maker.add(
            "Regulation",
            f"REG-{number:03}",
            f"Directive {2000 + number % 24}/{100 + number} on {what}. Lays down how medicinal products are"
            f" to be handled as to {what}, with duties of holders and penalties.",
            code=f"REG-{number:03}",
        )
    for at, name in enumerate(classes):
        maker.add(
            "MoleculeClass",
            f"CLS-{at}",
            f"The {name} are a molecule class. Medicines of this class share their mode of action.",
            (("GOVERNED_BY", f"REG-{number:03}") for number in governs[at]),
            name=name,
        )
    for at, name in enumerate(places):
        maker.add(
            "Jurisdiction",
            f"JUR-{at}",
            f"{name}. Its medicines agency supervises which products are approved and where they are sold.",
            (("ENFORCES", f"REG-{number:03}") for number in enforces[at]),
            name=name,
        )
    questions: list[GraphQuestion] = []
    for at, name in enumerate(names):
        class_ = at % len(classes)
        own = chance.sample(range(len(places)), 3)
        active, withdrawn = own[: 1 + at % 2], own[2]
        links = [("BELONGS_TO", f"CLS-{class_}")]
        for number, place in enumerate((*active, withdrawn)):
            state = "WITHDRAWN" if place == withdrawn else "ACTIVE"
            year = chance.randrange(1998, 2024)
            approval = f"APP-{at:03}-{number}"
            told = f"withdrawn by its holder in {year + 1}" if place == withdrawn else f"valid since {year}"
            maker.add(
                "Approval",
                approval,
                f"Marketing authorisation of {name} in {places[place]}, {told}.",
                [("IN_JURISDICTION", f"JUR-{place}")],
                status=state,
                year=year,
            )
            links.append(("HAS_APPROVAL", approval))
        trial = maker.add(
            "Trial",
            f"TRI-{at:03}",
            f"A trial on which rules apply to {name} where it is approved: {chance.randrange(40, 900)}"
            f" patients.",
        )
        maker.add(
            "Drug",
            f"DRG-{at:03}",
            f"{name} is a medicinal product of the {classes[class_]}, in tablets of {5 * (1 + at % 9)} mg.",
            [*links, ("TESTED_IN", trial)],
            name=name,
        )
        both = {number for place in active for number in enforces[place]} & set(governs[class_])
        gold = [f"REG-{number:03}" for number in sorted(both)]
        if gold:
            questions += ask(name, f"DRG-{at:03}", gold, DRUG_WORDINGS, at)
    return World(
        name="drugs",
        schema=schema,
        documents=tuple(maker.documents),
        questions=tuple(questions),
        start_type="Drug",
        result_type="Regulation",
        where={"Approval": {"status": "ACTIVE"}},
    )


LAW_WORDINGS = (
    (
        "Which duties under the {X} follow both from the field it covers and from an amendment in force?",
        "Under the {X}, what obligations exist for the sectors it governs according to its amendments in"
        " force?",
    ),
    ("{x} obligations currently applicable", "duties {x} amendments in force"),
    (
        "what must one actually do to comply with the {X} as amended today??",
        "{x} - need the list of things firms in that field have to do right now, thanks",
    ),
    (
        "What do the valid changes to the {X} demand of those working in the field it is about?",
        "Tell me everything the {X} still asks for, considering its subject and how it has been changed.",
    ),
    (
        "I am reading the {X}: leaving aside changes that were repealed or are pending, what does it make"
        " companies in its field do?",
        "Our auditor wants to see how we meet the {X}. We are in the sector concerned; which of its demands"
        " are binding at the moment?",
    ),
)


def make_laws(seed: int) -> World:
    """Acts of parliament, the fields that they cover, their amendments, and the duties of both."""
    chance = random.Random(f"laws {seed}")
    schema = Schema(
        types={"act", "field", "amendment", "duty", "authority", "commentary"},
        relations=(
            Relation("covers", "act", "field"),
            Relation("amended_by", "act", "amendment"),
            Relation("supervised_by", "act", "authority"),
            Relation("carries", "field", "duty"),
            Relation("imposes", "amendment", "duty"),
            Relation("discusses", "commentary", {"duty", "act"}),
        ),
    )
    maker = Maker(schema)
    first = (
        "Harbour",
        "River",
        "Mountain",
        "Public",
        "Coastal",
        "Inland",
        "Urban",
        "Rural",
        "Border",
        "Royal",
    )
    second = (
        "Safety",
        "Works",
        "Health",
        "Trade",
        "Fishing",
        "Housing",
        "Lighting",
        "Transport",
        "Water",
        "Fire",
    )
    names = [f"{a} {b} Act {chance.randrange(1950, 2020)}" for a in first for b in second]
    chance.shuffle(names)
    names = names[:ANCHORS]
    fields = (
        "fishing",
        "housing",
        "lighting",
        "shipping",
        "forestry",
        "catering",
        "mining",
        "printing",
        "farming",
    )
    verbs = ("keep", "file", "display", "inspect", "insure", "train", "notify", "measure")
    objects = (
        "a register of accidents",
        "an annual return",
        "the licence",
        "all ladders",
        "each vessel",
        "new staff",
        "the council",
        "the noise level",
        "the water supply",
        "all exits",
    )
    duties = [f"{verb} {what}" for verb in verbs for what in objects]
    chance.shuffle(duties)
    for at, duty in enumerate(duties):
        maker.add(
            "duty",
            f"duty/{at}",
            f"Duty to {duty}. Whoever fails to {duty} is liable to a fine.",
            title=f"Duty to {duty}",
        )
    carries = {at: sorted(chance.sample(range(len(duties)), 12)) for at in range(len(fields))}
    for at, name in enumerate(fields):
        links = [("carries", f"duty/{number}") for number in carries[at]]
        maker.add(
            "field",
            f"field/{name}",
            f"The field of {name}, with all firms that work in it.",
            links,
            title=name.title(),
        )
    for at in range(5):
        maker.add(
            "authority",
            f"authority/{at}",
            f"Office {at} supervises acts, and collects fines for duties not met.",
            title=f"Office {at}",
        )
    questions: list[GraphQuestion] = []
    for at, name in enumerate(names):
        own = chance.sample(range(len(fields)), 1 + at % 2)
        inside = sorted({number for field in own for number in carries[field]})
        links = [("covers", f"field/{fields[one]}") for one in own]
        gold: set[str] = set()
        for number in range(3):
            valid = number < 2
            said = "in force" if valid else chance.choice(("repealed", "not yet in force"))
            imposed = {*chance.sample(inside, 1 + number % 2), *chance.sample(range(len(duties)), 5)}
            amendment = maker.add(
                "amendment",
                f"amendment/{at}-{number}",
                f"Amendment {number + 1} of the {name}, {said}. It changes sections {number + 2} and"
                f" {number + 7}.",
                [("imposes", f"duty/{one}") for one in sorted(imposed)],
                in_force=valid,
                title=f"{name}, amendment {number + 1}",
            )
            links.append(("amended_by", amendment))
            gold |= {f"duty/{one}" for one in imposed & set(inside)} if valid else set()
        act = maker.add(
            "act",
            f"act/{at}",
            f"{name}. An act to regulate {' and '.join(fields[one] for one in own)}, and for connected"
            f" purposes.",
            [*links, ("supervised_by", f"authority/{at % 5}")],
            title=name,
        )
        maker.add(
            "commentary",
            f"commentary/{at}",
            f"What must one do under the {name}? Notes on obligations in force and on amendments.",
            [
                ("discusses", act),
                *(("discusses", f"duty/{one}") for one in chance.sample(range(len(duties)), 3)),
            ],
            title=f"Notes on obligations, volume {at + 1}",
        )
        questions += ask(name, act, gold, LAW_WORDINGS, at)
    return World(
        name="laws",
        schema=schema,
        documents=tuple(maker.documents),
        questions=tuple(questions),
        start_type="act",
        result_type="duty",
        where={"amendment": {"in_force": True}},
    )


PACKAGE_WORDINGS = (
    (
        "Which measures does {X} need because of its licence and of the advisories that are still open?",
        "What measures follow from the licence of {X} and from open security advisories about it?",
    ),
    ("{x} compliance steps open advisories licence", "{x} measures unresolved advisory"),
    (
        "what do we have to do about {X}, licence wise AND for the vulnerabilities nobody has fixed yet",
        "can we ship {x}?? which controls, license + cve that are not closed",
    ),
    (
        "Before {X} goes into a release: what is demanded by its licensing terms as well as by security"
        " notices not yet dealt with?",
        "Is there anything that both the license of {X} and a current security bulletin oblige us to?",
    ),
    (
        "Legal and security both want a say on {X}. Ignoring advisories that were closed or rejected, what do"
        " they agree we must do?",
        "I maintain a product that bundles {X} and got a mail from compliance. Which steps are asked of us by"
        " its terms and by the warnings about it that stand?",
    ),
)


def make_packages(seed: int) -> World:
    """Software packages, their licences, advisories that point at them, and the measures that both ask"
    " for."""
    chance = random.Random(f"packages {seed}")
    schema = Schema(
        types={"package", "licence", "advisory", "measure", "maintainer"},
        relations=(
            Relation("licensedUnder", "package", "licence"),
            Relation("dependsOn", "package", "package"),
            Relation("maintainedBy", "package", "maintainer"),
            Relation("affects", "advisory", "package"),
            Relation("callsFor", "advisory", "measure"),
            Relation("requires", "licence", "measure"),
        ),
        type_field="kind",
    )
    maker = Maker(schema)
    first = ("arrow", "left", "tiny", "fast", "micro", "deep", "cloud", "paper", "stone", "quick")
    second = ("pad", "parse", "kit", "queue", "cache", "yaml", "graph", "mailer", "socket", "chart")
    forms = ("{a}-{b}", "lib{a}{b}", "{a}{b}", "py-{a}{b}", "@{a}/{b}")
    names = [chance.choice(forms).format(a=a, b=b) for a in first for b in second]
    chance.shuffle(names)
    names = names[:ANCHORS]
    steps = (
        "publish the source",
        "pin the version",
        "review the patch",
        "keep the notice",
        "scan the build",
        "sign the release",
        "warn the users",
        "rotate the keys",
        "name the author",
        "isolate the process",
        "offer the changes",
        "disable the feature",
    )
    measures = [
        f"{step} {when}"
        for step in steps
        for when in ("within a week", "before each release", "once a year", "at every build", "on request")
    ]
    chance.shuffle(measures)

    def add(type: str, id: str, text: str, links: Iterable[tuple[str, str]] = (), **metadata: Any) -> str:
        found = maker.add(type, id, text, links, **metadata)
        maker.documents[-1].metadata["kind"] = maker.documents[-1].metadata.pop("type")
        return found

    for at, measure in enumerate(measures):
        add("measure", f"M{at:02}", f"{measure.capitalize()}. A measure that the compliance board checks.")
    licences = (
        "Permissive",
        "Copyleft",
        "Weak Copyleft",
        "Source Available",
        "Academic",
        "Network",
        "Public",
    )
    requires = {at: sorted(chance.sample(range(len(measures)), 12)) for at in range(len(licences))}
    for at, name in enumerate(licences):
        links = [("requires", f"M{number:02}") for number in requires[at]]
        add(
            "licence",
            f"lic:{at}",
            f"{name} License {1 + at % 3}.0. The terms under which packages may be shipped.",
            links,
        )
    for at in range(9):
        add("maintainer", f"who:{at}", f"Maintainer {at}, who answers questions on licences and advisories.")
    questions: list[GraphQuestion] = []
    for at, name in enumerate(names):
        licence = at % len(licences)
        package = f"pkg:{name}@{1 + at % 4}.{chance.randrange(20)}"
        links = [("licensedUnder", f"lic:{licence}"), ("maintainedBy", f"who:{at % 9}")]
        add(
            "package",
            package,
            f"{name} {package.rpartition('@')[2]}. A package for programs that need it.",
            links,
        )
        gold: set[str] = set()
        for number in range(3):
            state = ("open", "open", chance.choice(("closed", "rejected")))[number]
            called = {
                *chance.sample(requires[licence], 1 + number % 2),
                *chance.sample(range(len(measures)), 4),
            }
            add(
                "advisory",
                f"ADV-{2020 + number}-{1000 + 7 * at}",
                f"A flaw in {name} lets a remote user read memory. Severity"
                f" {chance.choice(('low', 'high'))}.",
                [("affects", package), *(("callsFor", f"M{one:02}") for one in sorted(called))],
                state=state,
            )
            gold |= {f"M{one:02}" for one in called & set(requires[licence])} if state == "open" else set()
        questions += ask(name, package, gold, PACKAGE_WORDINGS, at)
    made = [one for one in maker.documents if one.metadata["kind"] == "package"]
    for one in made:
        others = [other for other in made if other is not one]
        add_links(
            one, *(Link.outgoing(kind="dependsOn", tag=str(other.id)) for other in chance.sample(others, 2))
        )
    return World(
        name="packages",
        schema=schema,
        documents=tuple(maker.documents),
        questions=tuple(questions),
        start_type="package",
        result_type="measure",
        where={"advisory": {"state": "open"}},
    )


WORLDS: Mapping[str, Callable[[int], World]] = {
    "drugs": make_drugs,
    "laws": make_laws,
    "packages": make_packages,
}
