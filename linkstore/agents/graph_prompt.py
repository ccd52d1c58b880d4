"""The prompt for Cypher about a question, and a query compared with the question: in words, and for gaps.

The examples are made of the relations of the store, with marks such as <a ship> in the place of names. The
paths begin at the documents that a question names, as queries that need little change: a small model picks
among them more surely than it composes. Prompts with examples that are made for the question follow D. Gao
and others, "Text-to-SQL Empowered by Large Language Models", PVLDB 17(5), 2024.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import Final

from langchain_core.documents import Document

from linkstore.agents.cypher_schema import (
    MAX_PATHS,
    Arrow,
    list_arrows,
    list_paths,
    quote,
    quote_text,
    write_node,
)
from linkstore.core.cypher_query import CypherQuery, Pattern
from linkstore.core.text import tokenize
from linkstore.store.schema import Schema
from linkstore.strategies.resolver import list_given_names

Name = tuple[str, str]
"""A name in a question, and the type of the document that has it."""
MAX_LEADS: Final = 10
"""How many paths from a named document are shown."""
MAX_NAMES: Final = 3
MAX_JOINS: Final = 4
"""How many queries are shown that join two named documents."""
MAX_JOIN_LINKS: Final = 3
MAX_EXAMPLES: Final = 8
"""How many relations have examples."""
_NEGATIONS: Final = frozenset(
    tokenize(
        "not no never without neither nor none except cannot nicht kein keine keinen keiner ohne außer pas"
        " sans sauf aucun aucune sin excepto senza tranne niet geen zonder"
    )
)
"""Words that leave something out. A query that does not is not believed; nothing else is made of them."""
_EXCLUDING: Final = re.compile(r"\$(?:ne|nin|lt|lte|gt|gte|exists)\b")
_TASK: Final = """\
Translate a question into Cypher, for a graph database with these types and fields:
{types}
and these relations:
{relations}

Rules:
- Everything has a name: what the question calls it, such as {{name: '<name>'}}. Names are never made up.
- Follow only these relations, between these types; a path may need several.
- Choose the relation whose words the question uses.
- Return one variable, or count of it. Each node has its own variable.
- Conditions on fields stand in WHERE: x.<field> = '<value>', x.<field> > <number>.

Examples:
{examples}"""


def write_task(schema: Schema, types: str) -> str:
    """Return the prompt for questions about a store: its schema, rules, and examples without its names.

    Args:
        schema: Of the store.
        types: Its types with their fields, in words.
    """
    arrows = list_arrows(schema)
    relations = [
        f"{write_node('', first)}-[:{quote(kind)}]->{write_node('', second)}"
        for kind, first, second in arrows
    ]
    return _TASK.format(
        types=types, relations="\n".join(relations), examples="\n".join(_list_examples(arrows))
    )


def _write_words(kind: str) -> str:
    return kind.lower().replace("_", " ")


def _list_examples(arrows: Sequence[Arrow]) -> Iterator[str]:
    """Yield questions and queries: along each relation, against it, one with NOT, one of two, a count."""
    for arrow in arrows[:MAX_EXAMPLES]:
        _, first, second = arrow
        yield from _ask_one_link(arrow, f"<a {first.lower()}>", True)
        yield from _ask_one_link(arrow, f"<a {second.lower()}>", False)
    for kind, first, second in arrows[:1]:
        words, link = _write_words(kind), f"-[:{quote(kind)}]->"
        end = write_node("", second, f"<a {second.lower()}>")
        yield f"Which {first.lower()} is not {words} <a {second.lower()}>?"
        yield f"MATCH {write_node('x', first)} WHERE NOT (x){link}{end} RETURN x"
        yield f"Which {first.lower()} is without {second.lower()}?"
        yield f"MATCH {write_node('x', first)} WHERE NOT (x){link}{write_node('', second)} RETURN x"
        yield f"How many {first.lower()} {words} <a {second.lower()}>?"
        yield f"MATCH {write_node('x', first)}{link}{end} RETURN count(x)"
        starts = [write_node("", first, f"<{order} {first.lower()}>") for order in ("first", "second")]
        yield f"Which {second.lower()} have both <first {first.lower()}> and <second {first.lower()}>?"
        yield f"MATCH {starts[0]}{link}{write_node('x', second)}<-[:{quote(kind)}]-{starts[1]} RETURN x"


def _ask_one_link(arrow: Arrow, name: str, forward: bool) -> Iterator[str]:
    kind, first, second = arrow
    words, link = _write_words(kind), f"-[:{quote(kind)}]->"
    if forward:
        yield f"{name} {words} which {second.lower()}?"
        yield f"MATCH {write_node('', first, name)}{link}{write_node('x', second)} RETURN x"
    else:
        yield f"Which {first.lower()} {words} {name}?"
        yield f"MATCH {write_node('x', first)}{link}{write_node('', second, name)} RETURN x"


def find_names(question: str, documents: Iterable[Document], type_field: str) -> list[Name]:
    """Find the names of documents that stand in a question, whole, with their types; the longest first.

    Args:
        question: The question.
        documents: Those that it may name.
        type_field: The metadata field that holds types.
    """
    padded = f" {' '.join(tokenize(question))} "
    names: dict[Name, int] = {}
    for document in documents:
        label = str(document.metadata.get(type_field))
        for name in (*list_given_names(document.metadata), document.id or ""):
            words = " ".join(tokenize(name))
            if words and (f" {words} " in padded or f" {words}'s " in padded):
                names.setdefault((name, label), len(words))
    longest: list[Name] = []
    for name, label in sorted(names, key=lambda own: (-names[own], own)):
        if not any(name.casefold() in longer.casefold() for longer, _ in longest):
            longest.append((name, label))
    return longest[:MAX_NAMES]


def is_in_question(name: str, question: str) -> bool:
    """Say whether a question has all words of a name."""
    return set(tokenize(name)) <= {
        form for word in tokenize(question) for form in (word, word.removesuffix("'s"))
    }


def write_reading(cypher: CypherQuery) -> str:
    """Say in words what a query asks for, as X, with its conditions."""
    asked = cypher.returned[0].variable
    return "; or ".join("; ".join(_list_statements(pattern, asked)) for pattern in cypher.alternatives)


def _list_statements(pattern: Pattern, asked: str) -> Iterator[str]:
    names = {
        variable: "X" if variable == asked else node.name or f"some {(node.type or 'thing').lower()}"
        for variable, node in pattern.nodes.items()
    }
    if wanted := pattern.nodes.get(asked):
        yield from [f"X is {wanted.name or f'a {wanted.type}'}"] if wanted.name or wanted.type else ()
    for link in pattern.links:
        yield f"{names[link.start]} {' or '.join(map(_write_words, link.kinds))} {names[link.end]}"
    for variable, node in pattern.nodes.items():
        yield from (f"{names[variable]} has {json.dumps(own, ensure_ascii=False)}" for own in node.filters)
    for _, other in pattern.without:
        yield f"not: {'; '.join(_list_statements(other, asked))}"


def find_gap(question: str, cypher: CypherQuery, names: Sequence[Name], values: Iterable[str]) -> str:
    """Return the first gap in a query, a part of its question left out; an empty string if none is seen.

    Args:
        question: The question.
        cypher: The query.
        names: Names in the question, each with its type.
        values: Values of fields that the model was shown.
    """
    nodes = [node for part in cypher.parts for node in part.nodes.values()]
    kinds = [kind for part in cypher.parts for link in part.links for kind in link.kinds]
    query = " ".join([*kinds, *(f"{node.name} {node.type} {node.filters}" for node in nodes)])
    used = set(tokenize(query.replace("_", " ")))
    words = [word.removesuffix("'s") for word in tokenize(question)]
    padded = f" {' '.join(words)} "
    own = [name for name, _ in names]
    texts = [*own, *(value for value in sorted(values) if f" {' '.join(tokenize(value))} " in padded)]
    if missing := [text for text in texts if not used.issuperset(tokenize(text))]:
        return f"the question says {missing[0]!r}, which is a name or a value, and the query does not"
    negations = {word for word in words if word in _NEGATIONS or word.endswith("n't")}
    negated = negations.difference(*map(tokenize, own))
    if negated and not (any(part.without for part in cypher.parts) or _EXCLUDING.search(query)):
        return f"the question says {min(negated)!r}, and the query leaves nothing out"
    return ""


def write_leads(names: Sequence[Name], schema: Schema, *, turned: bool = False) -> str:
    """Say what a question names, and list the paths from there as queries; nothing without a name.

    Args:
        names: Names in the question, each with the type of the document that it means.
        schema: Of the store.
        turned: Whether relations between documents of one type come against their direction first.
    """
    arrows = list_arrows(schema)
    named = [(name, label) for name, label in names if label in schema.types]
    if not named:
        return ""
    meant = ", ".join(f"{name} is a {label}" for name, label in named)
    lines = [f"In the question: {meant}. Paths from there:"]
    types = sorted(schema.types)
    for first, second in combinations(named, 2):
        lines += _list_joins(first, second, arrows, types)
    if len(lines) == 1:  # a query without one of several names would be refused
        for name, label in named:
            lines += islice(_list_leads(name, label, arrows, types, turned), 2 * MAX_LEADS)
    return "\n".join([*lines, ""])


def _list_leads(
    name: str, label: str, arrows: Sequence[Arrow], types: Sequence[str], turned: bool
) -> Iterator[str]:
    """Yield questions and queries from a named document to each type, the shortest first.

    The questions ask for a type alone, and say the relation only where it joins documents of the same type:
    with all relations in words, a small model was right less often.
    """
    for arrow in arrows:
        if arrow[1] == arrow[2] == label:
            yield from _ask_one_link(arrow, name, not turned)
            yield from _ask_one_link(arrow, name, turned)
    paths = [(path, end) for end in types for path in list_paths(arrows, label, end)[: MAX_PATHS - 1]]
    for path, end in sorted(paths, key=lambda own: own[0].count("[")):
        if path.count("[") > 1 or end != label:
            yield f"Which {end.lower()}?"
            middle = _cut_ends(path, label, end)
            yield f"MATCH {write_node('', label, name)}{middle}{write_node('x', end)} RETURN x"


def _cut_ends(path: str, start: str, end: str) -> str:
    return path.removeprefix(write_node("", start)).removesuffix(write_node("", end))


def _list_joins(first: Name, second: Name, arrows: Sequence[Arrow], types: Sequence[str]) -> Iterator[str]:
    """Yield questions and queries for what two named documents lead to, by the fewest links.

    That is what both lead to, what one does and the other does not, and if they are of one type, what either
    does.
    """
    joins = [
        (path.count("[") + other.count("["), path, other, end)
        for end in types
        for path in list_paths(arrows, first[1], end)[:1]
        for other in list_paths(arrows, second[1], end)[:1]
    ]
    for links, path, other, end in sorted(joins)[:MAX_JOINS]:
        if links > MAX_JOIN_LINKS:
            return
        middles = _cut_ends(path, first[1], end), _cut_ends(other, second[1], end)
        starts = [write_node("", label, name) for name, label in (first, second)]
        ways, node = [start + middle for start, middle in zip(starts, middles, strict=True)], end.lower()
        names = [first[0], second[0]]
        yield f"Which {node} with {' and '.join(names)}?"
        yield f"MATCH {ways[0]}{write_node('x', end)}, {ways[1]}(x) RETURN x"
        for at in (0, 1):
            yield f"Which {node} with {names[at]} and not with {names[1 - at]}?"
            yield f"MATCH {ways[at]}{write_node('x', end)} WHERE NOT {ways[1 - at]}(x) RETURN x"
        if path == other:
            way = f"{write_node('y', first[1])}{middles[0]}{write_node('x', end)}"
            yield f"Which {node} with {' or '.join(names)}?"
            yield f"MATCH {way} WHERE y.name IN [{', '.join(map(quote_text, names))}] RETURN x"
