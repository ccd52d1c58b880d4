"""What a query in Cypher says, and the :class:`~linkstore.core.graph_query.GraphQuery` that it is.

:mod:`linkstore.core.cypher` reads the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import Any, Final

from linkstore.core.filters import Filter
from linkstore.core.graph_query import Branch, GraphQuery, Step
from linkstore.errors import QueryError

NAME_PROPERTIES: Final = frozenset({"name", "title", "id"})
"""Properties that name a document instead of being compared with its metadata."""
_COMPARED: Final = {
    "=": "$eq",
    "<>": "$ne",
    "<": "$lt",
    "<=": "$lte",
    ">": "$gt",
    ">=": "$gte",
    "among": "$in",
    "NOT IN": "$nin",
}


@dataclass(slots=True, kw_only=True)
class PatternNode:
    """A node of a pattern.

    Args:
        type: Its label; None: any.
        name: The id or name of the document that it is; None: any.
        filters: Filters that its metadata must pass.
    """

    type: str | None = None
    name: str | None = None
    filters: list[Filter] = field(default_factory=list)

    def add(self, variable: str, other: PatternNode) -> None:
        """Add what a query says of the node elsewhere.

        Raises:
            QueryError: If it has another type or name there. The message names the node by its variable.
        """
        for what, own, value in (("type", self.type, other.type), ("name", self.name, other.name)):
            if own is not None and value is not None and own != value:
                raise QueryError(
                    f"{variable} has the {what} {own!r} and the {what} {value!r}; use a variable for each"
                    " node"
                )
        self.type = self.type if other.type is None else other.type
        self.name = self.name if other.name is None else other.name
        self.filters += other.filters


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternLink:
    """A relationship of a pattern.

    Args:
        start: The variable of the node that it leads from.
        end: The variable of the node that it leads to.
        kinds: Its types, of which any will do.
        directed: Whether the query says its direction.
        repeat: The least and the most links in a row.
    """

    start: str
    end: str
    kinds: tuple[str, ...]
    directed: bool = True
    repeat: tuple[int, int] = (1, 1)

    def turn(self) -> PatternLink:
        """Return the link in the other direction."""
        return replace(self, start=self.end, end=self.start)


@dataclass(slots=True, kw_only=True)
class Pattern:
    """Nodes by their variables, the links between them, and what must not be there.

    Args:
        nodes: By variable; a node without one has a number in its place.
        links: In the order of the query.
        without: Patterns that must not be there, each with the variable that it shares with this one.
    """

    nodes: dict[str, PatternNode] = field(default_factory=dict)
    links: list[PatternLink] = field(default_factory=list)
    without: list[tuple[str, Pattern]] = field(default_factory=list)

    @classmethod
    def of_name(cls, variable: str, name: str | None) -> Pattern:
        """Make a pattern of one node that has a name."""
        return cls(nodes={variable: PatternNode(name=name)})

    @property
    def parts(self) -> Iterator[Pattern]:
        """The pattern and all that must not be there."""
        yield self
        for _, other in self.without:
            yield from other.parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A property of a node.

    Args:
        variable: The variable of the node.
        key: The name of the property; None for the node itself.
        counted: Whether the nodes are counted.
    """

    variable: str
    key: str | None = None
    counted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CypherQuery:
    """A query as it is written.

    Args:
        pattern: What is looked for.
        returned: What is returned.
        order: What orders it; None: nothing.
        descending: Whether the largest come first.
        limit: The maximum number of results; None: not said.
        forgiven: Whether it was read forgivingly.
        others: Patterns of which one may be there instead, by OR, IN or UNION.
    """

    pattern: Pattern
    returned: tuple[Property, ...]
    order: Property | None = None
    descending: bool = False
    limit: int | None = None
    forgiven: bool = False
    others: tuple[Pattern, ...] = ()

    @property
    def alternatives(self) -> tuple[Pattern, ...]:
        """The patterns of which one must be there."""
        return (self.pattern, *self.others)

    @property
    def parts(self) -> Iterator[Pattern]:
        """All patterns, with those that must not be there."""
        return chain.from_iterable(pattern.parts for pattern in self.alternatives)


def compare_property(key: str, operator: str, value: object) -> Filter:
    """Make a filter of a comparison.

    Args:
        key: The field of the metadata.
        operator: As Cypher writes it, or ``"among"``, ``"NOT IN"``, ``"absent"`` or ``"present"``.
        value: What the field is compared with.
    """
    if operator in ("absent", "present"):
        return {key: {"$exists": operator == "present"}}
    if operator == "=":
        return {key: value}
    compared: Filter = {key: {_COMPARED[operator]: value}}
    # In Cypher nothing is unequal to what is missing.
    return {"$and": [{key: {"$exists": True}}, compared]} if operator in ("<>", "NOT IN") else compared


def make_query(cypher: CypherQuery) -> GraphQuery:
    """Make a query from one in Cypher that was read.

    Raises:
        QueryError: If a query cannot say it.
    """
    if cypher.others:
        parts = [make_query(replace(cypher, pattern=pattern, others=())) for pattern in cypher.alternatives]
        types = {part.result_type for part in parts}
        any_of = replace(
            parts[0], branches=tuple(map(_merge_query, parts)), combine="any", but_not=(), where=None
        )
        return replace(any_of, result_type=types.pop() if len(types) == 1 else None)
    root, returned = _find_root(cypher)
    pattern = cypher.pattern
    order, descending = _find_order(cypher, root)
    tree, node = _Tree(pattern, root), pattern.nodes[root]
    if not cypher.forgiven:
        tree.refuse_shared_links()
    branches = tree.branches or [Branch(None, node.type)]
    settings: dict[str, Any] = {"limit": cypher.limit} if cypher.limit is not None else {}
    if order is not None:
        settings |= {"order_by": order, "descending": descending}
    return GraphQuery(
        tuple(branches),
        but_not=tuple(tree.unwanted),
        result_type=node.type,
        where=_join(node.filters),
        **returned,
        **settings,
    )


def _find_root(cypher: CypherQuery) -> tuple[str, dict[str, Any]]:
    """Return the variable of the results, and what of them is returned."""
    results = {item.variable for item in cypher.returned if not item.counted}
    counts = [item for item in cypher.returned if item.counted]
    if len(results) > 1:
        named = [name for name in results if cypher.pattern.nodes[name].name is None]
        results = set(named) if len(named) == 1 else results
    if len(results) > 1 or len(counts) > 1:
        variables = ", ".join(sorted(results) or [item.variable for item in counts])
        raise QueryError(f"RETURN has {variables}; the results are one variable, so return one of them")
    if not results:
        return counts[0].variable, {"returns": "count"}
    root = results.pop()
    keys = list(dict.fromkeys(item.key for item in cypher.returned if item.key and item.variable == root))
    if counts and keys:
        if len(keys) > 1:
            raise QueryError(f"groups are by one property, not by {', '.join(keys)}")
        if counts[0].variable != root and not cypher.forgiven:
            raise QueryError(
                f"groups of {root}.{keys[0]} count {root}, not {counts[0].variable}; write count({root})"
            )
        return root, {"returns": "groups", "field": keys[0]}
    single = len(cypher.returned) == 1 and keys
    return root, {"returns": "values", "field": keys[0]} if single else {}


def _find_order(cypher: CypherQuery, root: str) -> tuple[str | None, bool]:
    """Return what orders the results, as ``order_by`` of a query says it, and whether the largest come first.

    Results that are counted in another way are in the order of these counts.
    """
    order, descending = cypher.order, cypher.descending
    ends = next((item for item in cypher.returned if item.counted and item.variable != root), None)
    if ends is not None and order != ends and not cypher.forgiven:
        if order is not None:
            raise QueryError(f"RETURN has count({ends.variable}), so ORDER BY takes that count, or nothing")
        order, descending = ends, True
    if order is None or (order.counted and order.variable == root):
        return None, descending  # groups are in the order of their counts
    if order.counted:
        for link in cypher.pattern.links:
            if {link.start, link.end} == {root, order.variable} and link.repeat == (1, 1):
                counted = cypher.pattern.nodes[order.variable]
                if counted.name is None and not counted.filters:
                    return f"{'>' if link.start == root else '<'}{'|'.join(link.kinds)}", descending
        end = order.variable
        raise QueryError(f"count({end}): only what one link joins to {root}, without conditions, is counted")
    if order.variable != root:
        raise QueryError(f"ORDER BY {order.variable}: the results are {root}, so a property of it is needed")
    return order.key, descending


class _Tree:
    """A pattern as branches that lead to one of its nodes."""

    def __init__(self, pattern: Pattern, root: str) -> None:
        self._pattern, self._root = pattern, root
        self._reached: set[str] = set()
        self.branches = self._lead(root, None)
        self.unwanted = self._list_unwanted(root)
        if lost := [name for name in pattern.nodes if name not in self._reached]:
            raise QueryError(f"nothing joins {root!r} with {', '.join(map(repr, lost))} in the pattern")

    def _lead(self, name: str, came: PatternLink | None) -> list[Branch]:
        """Return the branches that must all lead to a node."""
        node = self._pattern.nodes[name]
        own = [Branch(node.name, node.type, (), _join(node.filters))] if node.name is not None else []
        if name in self._reached:
            if own:
                return own  # it is the same document, and what lies beyond it was followed before
            raise QueryError(
                f"the pattern comes back to {name!r} in a circle; only a node with a name may close one"
            )
        self._reached.add(name)
        links = [link for link in self._pattern.links if link is not came and name in (link.start, link.end)]
        if (
            own and name != self._root
        ):  # what is joined to the root without this document is followed from there, up to it
            links = [link for link in links if not self._reaches_root(link, name)]
        return own + [self._follow(link, name) for link in links]

    def _reaches_root(self, link: PatternLink, without: str) -> bool:
        """Say whether the other side of a link from a node is joined to the root without that node."""
        seen, waiting = {without}, [link.end if link.start == without else link.start]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                ends = [(own.start, own.end) for own in self._pattern.links if name in (own.start, own.end)]
                waiting += [other for pair in ends for other in pair]
        return self._root in seen

    def refuse_shared_links(self) -> None:
        """Refuse a pattern with two relationships for which one link could stand.

        Raises:
            QueryError: If there are two. In Cypher each link stands for one of them only.
        """
        for first, second in combinations(self._pattern.links, 2):
            for node in {first.start, first.end} & {second.start, second.end}:
                others = [(link, link.end if link.start == node else link.start) for link in (first, second)]
                alike = (first.start == node) == (second.start == node) and {*first.kinds} & {*second.kinds}
                if alike and not self._are_apart(node, *others):
                    kind, side = min(alike), "from" if first.start == node else "to"
                    ends = " and ".join(repr(name) if not name.isdigit() else "()" for _, name in others)
                    raise QueryError(
                        f"two relationships {kind} lead {side} one node, and {ends} may be the same document;"
                        " give both a name or another type, or one a name and a condition <> to the other"
                    )

    def _are_apart(self, node: str, first: tuple[PatternLink, str], second: tuple[PatternLink, str]) -> bool:
        """Say whether two neighbours of a node are surely different documents."""
        left, right = (self._pattern.nodes[name] for _, name in (first, second))
        if left.name is not None and right.name is not None:
            return left.name != right.name
        if left.type is not None and right.type is not None and left.type != right.type:
            return True
        for (_, name), (link, free) in ((first, second), (second, first)):
            if (named := self._pattern.nodes[name].name) is not None:
                barred = [
                    own.name
                    for anchor, pattern in self._pattern.without
                    if anchor == free
                    for own in pattern.nodes.values()
                ]
                # A branch does not come back to the document that it starts from.
                return named in barred or (node != self._root and self._reaches_root(link, node))
        return False

    def _follow(self, link: PatternLink, to: str) -> Branch:
        """Return the branch that leads to a node by a link."""
        if not link.directed:
            raise QueryError(f"-[:{'|'.join(link.kinds)}]- needs a direction: -[…]-> or <-[…]-")
        child = link.end if link.start == to else link.start
        there, back = self._pattern.nodes[child], self._pattern.nodes[to]
        beyond, unwanted = self._lead(child, link), self._list_unwanted(child)
        step = Step(link.kinds, link.start == to, link.repeat, back.type, _join(back.filters))
        if beyond:
            branch = _merge(beyond)
            if unwanted and not branch.path:
                raise QueryError(f"{there.name!r} is named, so NOT can say nothing of it")
            path = _narrow_end(branch.path, but_not=unwanted) if unwanted else branch.path
            return replace(branch, path=(*path, step))
        if not unwanted:
            return Branch(None, there.type, step, _join(there.filters))
        # A start takes no exclusion, a step does: from the end to the start and back.
        first = Step(
            link.kinds, not step.backward, link.repeat, there.type, _join(there.filters), but_not=unwanted
        )
        return Branch(None, back.type, (first, step))

    def _list_unwanted(self, name: str) -> list[Branch]:
        """Return the branches that must not lead to a node."""
        unwanted = []
        for anchor, pattern in self._pattern.without:
            if anchor == name:
                node = pattern.nodes[name]
                node.type = node.type or self._pattern.nodes[name].type
                unwanted.append(_merge(_Tree(pattern, name).branches or [Branch()]))
        return unwanted


def _merge_query(query: GraphQuery) -> Branch:
    """Make one branch that leads to the results of a query, and to no other documents."""
    branch = _merge(query.branches)
    if branch.path:  # its last step has the type and the filters of the results
        return replace(branch, path=_narrow_end(branch.path, but_not=query.but_not))
    if query.but_not:
        raise QueryError("what OR or UNION joins needs a relationship where it has NOT")
    return replace(branch, where=query.where)


def _merge(branches: Sequence[Branch]) -> Branch:
    """Make one of branches that must all lead to the same node."""
    if len(branches) == 1:
        return branches[0]
    longest = max(branches, key=lambda branch: len(branch.path))
    others = [branch for branch in branches if branch is not longest]
    return replace(longest, path=_narrow_end(longest.path, also=others))


def _narrow_end(
    path: tuple[Step, ...], also: Sequence[Branch] = (), but_not: Sequence[Branch] = ()
) -> tuple[Step, ...]:
    """Add branches to the last step of a path."""
    *before, last = path
    return (*before, replace(last, also=(*last.also, *also), but_not=(*last.but_not, *but_not)))


def _join(filters: Sequence[Filter]) -> Filter | None:
    if len(filters) < 2:
        return filters[0] if filters else None
    return {"$and": list(filters)}
