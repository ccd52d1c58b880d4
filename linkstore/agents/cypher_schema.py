"""What a schema says of a query in Cypher: spellings, directions, and the paths between two types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Final

from linkstore.agents.tool_answers import correct_name
from linkstore.core.cypher_query import CypherQuery, PatternLink, PatternNode
from linkstore.errors import QueryError
from linkstore.store.schema import Schema

Arrow = tuple[str, str, str]
"""A relation, and the types that it leads from and to."""
MAX_HOPS: Final = 4
"""The longest paths that are shown."""
MAX_PATHS: Final = 3
"""How many paths between two types are shown."""


def fit_schema(cypher: CypherQuery, schema: Schema) -> CypherQuery:
    """Spell types and relations as a schema does, and turn relationships that it only allows the other way.

    A label that the relations of a named node exclude is dropped: its name says what is meant.

    Raises:
        QueryError: If the schema lacks a type, or joins no such types by a relation.
    """
    arrows = list_arrows(schema)
    for pattern in cypher.parts:
        for node in pattern.nodes.values():
            if node.type is not None:
                node.type = correct_name(node.type, schema.types)
                if node.type not in schema.types:
                    types = ", ".join(sorted(schema.types))
                    raise QueryError(f"no document has the type {node.type!r}; there are {types}")
        pattern.links[:] = [_fit_link(link, pattern.nodes, arrows) for link in pattern.links]
    return cypher


def _fit_link(link: PatternLink, nodes: dict[str, PatternNode], arrows: Sequence[Arrow]) -> PatternLink:
    start, end = nodes[link.start], nodes[link.end]
    kinds_of_schema = {arrow[0] for arrow in arrows}
    link = replace(link, kinds=tuple(correct_name(kind, kinds_of_schema) for kind in link.kinds))
    own = [arrow for arrow in arrows if arrow[0] in link.kinds]
    if not own:
        return link  # the store may have it, or says what is like it
    for mislabelled in (None, *(node for node in (start, end) if node.name is not None)):
        first, second = (None if node is mislabelled else node.type for node in (start, end))
        forward = any(_joins(arrow, first, second) for arrow in own)
        backward = any(_joins(arrow, second, first) for arrow in own)
        if forward or backward:
            break
    else:
        kinds, paths = "|".join(link.kinds), _tell_paths(arrows, start.type, end.type)
        raise QueryError(f"{kinds} does not join {start.type} and {end.type}; {paths}")
    if mislabelled is not None:
        mislabelled.type = None
    if forward and backward:
        return link
    return replace(link if forward else link.turn(), directed=True)


def is_turnable(cypher: CypherQuery, schema: Schema) -> bool:
    """Say whether the schema allows a relationship of a query in both directions, as between persons."""
    arrows = list_arrows(schema)
    both = [arrow for arrow in arrows if (arrow[0], arrow[2], arrow[1]) in arrows]
    return any(
        arrow[0] in link.kinds and _joins(arrow, part.nodes[link.start].type, part.nodes[link.end].type)
        for part in cypher.parts
        for link in part.links
        for arrow in both
    )


def _joins(arrow: Arrow, start: str | None, end: str | None) -> bool:
    return start in (None, arrow[1]) and end in (None, arrow[2])


def _tell_paths(arrows: Sequence[Arrow], start: str | None, end: str | None) -> str:
    """Say by which relations two types are joined."""
    if start is None or end is None:
        return f"there are {', '.join(sorted({arrow[0] for arrow in arrows}))}"
    paths = list_paths(arrows, start, end)
    return f"these join them: {' or '.join(paths)}" if paths else f"no relations lead from {start} to {end}"


def list_arrows(schema: Schema) -> list[Arrow]:
    """List the relations of a schema, each with the types that it leads from and to."""
    return [
        (relation.kind, first, second)
        for relation in schema.relations
        for first in sorted(relation.from_types)
        for second in sorted(relation.to_types)
    ]


def quote(word: str) -> str:
    """Write a label or a type as Cypher needs it."""
    return word if word.isidentifier() else f"`{word.replace('`', '')}`"


def quote_text(text: str) -> str:
    """Write a value as Cypher needs it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def write_arrow(arrow: Arrow) -> str:
    """Write a relation as a pattern; a type that is empty is left out."""
    kind, first, second = arrow
    return f"{write_node('', first)}-[:{quote(kind)}]->{write_node('', second)}"


def write_node(variable: str, label: str, name: str | None = None) -> str:
    """Write a node of a pattern, with what is not empty of its label and name."""
    of_type = f":{quote(label)}" if label else ""
    if name is None:
        return f"({variable}{of_type})"
    return f"({variable}{of_type} {{name: {quote_text(name)}}})"


def list_paths(arrows: Sequence[Arrow], start: str, end: str) -> list[str]:
    """List the shortest paths from a type to another, as patterns.

    At most :data:`MAX_PATHS`, of at most :data:`MAX_HOPS` relations.
    """
    steps = [(first, f"-[:{quote(kind)}]->", second) for kind, first, second in arrows]
    steps += [(second, f"<-[:{quote(kind)}]-", first) for kind, first, second in arrows]
    hops = {end: 0}  # to the end, from each type that reaches it
    for length in range(1, MAX_HOPS + 1):
        for first, _, second in steps:
            if hops.get(second, MAX_HOPS) < length:
                hops.setdefault(first, length)
    if start not in hops:
        return []
    walks = chain.from_iterable(_walk(steps, hops, start, length) for length in range(1, MAX_HOPS + 1))
    return list(islice(walks, MAX_PATHS))


def _walk(steps: Sequence[Arrow], hops: dict[str, int], start: str, length: int) -> Iterator[str]:
    """Yield the walks of a length to the end, in order, leaving out what cannot reach it."""
    if not length:
        yield from [write_node("", start)] if not hops[start] else ()
        return
    for first, arrow, second in steps:
        if first == start and hops.get(second, length) < length:
            rests = _walk(steps, hops, second, length - 1)
            yield from (f"{write_node('', start)}{arrow}{rest}" for rest in rests)
