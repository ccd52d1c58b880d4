"""The part of openCypher that a :class:`~linkstore.core.graph_query.GraphQuery` can say, read as a pattern.

    MATCH (:Ship {name: 'MV Aurora'})-[:OWNED_BY]->(owner:Company)
    WHERE owner.founded < 1990 AND NOT (owner)-[:LISTED_BY]->(:Agency)
    RETURN owner ORDER BY owner.founded LIMIT 10

The properties ``name``, ``title`` and ``id`` name a document, as the start of a branch does; all others are
metadata. The label of a node is its type, the type of a relationship a kind of link. See the "Cypher Query
Language Reference, Version 9" of openCypher; what is not read is refused, with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, count, islice, product
from typing import TYPE_CHECKING, Any, Final

from linkstore.core.arguments import quote_value
from linkstore.core.cypher_query import (
    NAME_PROPERTIES,
    CypherQuery,
    Pattern,
    PatternLink,
    PatternNode,
    Property,
    compare_property,
    make_query,
)
from linkstore.core.filters import Filter
from linkstore.core.graph_query import MAX_REPEAT, GraphQuery
from linkstore.errors import QueryError

if TYPE_CHECKING:
    from lark import Lark, Tree

MAX_CHARACTERS: Final = 10_000
_GRAMMAR: Final = r"""
start: query (("UNION"i "ALL"i?)? query)* [order] [limit] ";"?
query: match+ "RETURN"i returned
match: "MATCH"i _part ("," _part)* where?
_part: (NAME "=")? chain
chain: node (link node)*
node: "(" [NAME] label* [properties] ")"
label: ":" word
properties: "{" [word ":" value ("," word ":" value)*] "}"
link: LEFT? "-" ["[" [NAME] kinds? repeat? "]"] "-" RIGHT?
kinds: ":" word ("|" ":"? word)*
repeat: "*" [INT] [DOTS [INT]]
?where: "WHERE"i condition
?condition: conjunction
    | conjunction ("OR"i conjunction)+ -> either
?conjunction: negation
    | negation ("AND"i negation)+ -> both
?negation: "NOT"i negation -> negated
    | comparison
    | "(" condition ")"
    | chain -> exists
    | "EXISTS"i "{" "MATCH"i? chain where? "}" -> exists
    | "EXISTS"i "(" chain ")" -> exists
comparison: operand OPERATOR operand -> compared
    | operand "IN"i list -> among
    | operand "IS"i "NULL"i -> absent
    | operand "IS"i "NOT"i "NULL"i -> present
operand: NAME "." word -> property
    | NAME -> variable
    | word "(" operand ")" -> function
    | value -> literal
returned: [distinct] item ("," item)*
distinct: "DISTINCT"i
item: expression ["AS"i word]
expression: NAME -> variable
    | NAME "." word -> property
    | "COUNT"i "(" ["DISTINCT"i] (NAME | STAR) ")" -> count
order: "ORDER"i "BY"i expression [DIRECTION]
limit: "LIMIT"i INT
?value: STRING -> string
    | NUMBER -> number
    | "TRUE"i -> true
    | "FALSE"i -> false
    | list
list: "[" [value ("," value)*] "]"
?word: NAME | QUOTED
OPERATOR: "=" | "<>" | "!=" | "<=" | ">=" | "<" | ">"
DIRECTION: /(ASC|DESC)(ENDING)?/i
LEFT.2: "<" /(?=\s*-)/
RIGHT: ">"
DOTS: ".."
STAR: "*"
NAME: /[^\W\d]\w*/
QUOTED: /`[^`]+`/
STRING: /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/
NUMBER: /-?\d{1,18}(\.\d+)?/
INT: /\d{1,9}/
%import common.WS
%ignore WS
%ignore /\/\/[^\n]*/
"""
MAX_ALTERNATIVES: Final = 8
"""How many patterns OR, IN and UNION may give."""
_READS: Final = (
    "of Cypher it takes MATCH, WHERE with patterns, NOT, AND, OR, =, <>, <, <=, >, >=, IN and IS NULL, RETURN"
    " of one variable or its properties or count, UNION, ORDER BY, and LIMIT"
)
_NEGATED: Final = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_NEGATED_TESTS: Final = {"among": "NOT IN", "absent": "present", "present": "absent"}
_TURNED: Final = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ESCAPED: Final = re.compile(r"\\([\\nt'\"])")
_SIGNS: Final = {"n": "\n", "t": "\t"}
_OF_CASE: Final = frozenset({"tolower", "toupper", "lower", "upper", "trim"})


def parse_cypher(text: str) -> GraphQuery:
    """Make a query from one in Cypher, of which this module reads a part.

    Raises:
        QueryError: If it is malformed, or says what a query cannot.
    """
    return make_query(read_cypher(text))


def read_cypher(text: str, *, forgiving: bool = False) -> CypherQuery:
    """Read a query.

    Args:
        text: The query.
        forgiving: Whether a variable with several names, which nothing has in a graph, stands for as many
            nodes, and one that no node has for the only node without. Default False: they are refused.

    Raises:
        QueryError: If it is malformed, or says what is not taken.
    """
    from lark import UnexpectedInput

    if len(text) > MAX_CHARACTERS:
        raise QueryError(f"a query may have {MAX_CHARACTERS:,} characters, not {len(text):,}")
    try:
        parts: list[Any] = _make_parser().parse(text).children
        *queries, order, limit = parts
        alternatives = list(islice(chain.from_iterable(map(_expand, queries)), MAX_ALTERNATIVES + 1))
        if len(alternatives) > MAX_ALTERNATIVES:
            raise QueryError(f"OR, IN and UNION may give at most {MAX_ALTERNATIVES} patterns")
        first, *others = [_Reading(forgiving).read(query, order, limit) for query in alternatives]
    except RecursionError as error:
        raise QueryError("the conditions of the query are nested too deeply") from error
    except UnexpectedInput as error:
        rest = text[error.pos_in_stream :] if error.pos_in_stream is not None else ""
        at = f"at {quote_value(rest[:40])}" if rest.strip() else "at its end"
        raise QueryError(f"the query cannot be read {at}; {_READS}") from error
    if any(other.returned != first.returned for other in others):
        raise QueryError("all queries of a UNION return the same variable, such as RETURN x")
    return replace(first, others=tuple(other.pattern for other in others))


def _expand(tree: Tree[Any]) -> Iterator[Tree[Any]]:
    """Yield a query for each choice in what no filter can say: names, patterns, or several variables."""
    from lark import Tree

    if tree.data == "among" and _is_about_names(tree):
        operand, names = tree.children
        for name in filter(None, names.children):
            yield Tree("compared", [operand, "=", Tree("literal", [name])])
    elif tree.data == "either" and (_is_about_names(tree) or _joins_nodes(tree)):
        for child in tree.children:
            yield from _expand(child)
    elif tree.data in ("query", "match", "both"):
        choices = [
            list(islice(_expand(child), MAX_ALTERNATIVES + 1)) if isinstance(child, Tree) else [child]
            for child in tree.children
        ]
        for children in product(*choices):
            yield Tree(tree.data, list(children))
    else:
        yield tree


def _is_about_names(tree: Tree[Any]) -> bool:
    return any(_unquote(own.children[1]) in NAME_PROPERTIES for own in tree.find_data("property"))


def _joins_nodes(tree: Tree[Any]) -> bool:
    """Say whether a condition is about more than one node."""
    variables = {str(own.children[0]) for own in tree.find_data("property")}
    return len(variables) > 1 or any(own.data in ("exists", "variable") for own in tree.iter_subtrees())


@cache
def _make_parser() -> Lark:
    from lark import Lark

    return Lark(_GRAMMAR, parser="lalr", maybe_placeholders=True)


class _Reading:
    """One query while its tree is read."""

    def __init__(self, forgiving: bool) -> None:
        self._forgiving = forgiving
        self._grouped: set[str] = set()
        """The variables whose names are returned as fields like others, since they are told apart by them."""
        self._relationships: set[str] = set()
        self._unnamed = count(1)
        self._aliases: dict[str, Property] = {}
        self._different: list[tuple[str, str]] = []
        self._same: dict[str, str] = {}

    def read(self, query: Tree[Any], order: Tree[Any] | None, limit: Tree[Any] | None) -> CypherQuery:
        pattern = Pattern()
        *matches, last = query.children
        for child in chain.from_iterable(match.children for match in matches):
            if isinstance(child, str):
                continue  # the name of a path
            if child.data == "chain":
                self._add_chain(pattern, child)
            else:
                self._add_condition(pattern, child)
        distinct, *items = last.children
        if not self._forgiving:
            counted = {str(counter.children[0]) for item in items for counter in item.find_data("count")}
            self._grouped = counted if distinct is None else set(pattern.nodes)
        returned = tuple(self._read_item(pattern, item) for item in items)
        if distinct is not None and len(returned) > 1 and not self._forgiving:
            raise QueryError("RETURN DISTINCT takes one variable or one property")
        for pair in self._different:
            nodes = {variable: self._get_node(pattern, variable) for variable in pair}
            first, second = map(self._resolve, pair)
            named = next((self._resolve(own) for own in pair if nodes[own].name is not None), None)
            if named is None:
                raise QueryError(
                    f"{first} <> {second}: one of them needs a name, such as ({first} {{name: 'x'}})"
                )
            other = second if named == first else first
            pattern.without.append((other, Pattern.of_name(other, pattern.nodes[named].name)))
        return CypherQuery(
            pattern=pattern,
            returned=returned,
            order=None if order is None else self._read_order(pattern, order.children[0]),
            descending=order is not None and str(order.children[1] or "").upper().startswith("DESC"),
            limit=None if limit is None else int(str(limit.children[0])),
            forgiven=self._forgiving,
        )

    def _read_order(self, pattern: Pattern, tree: Tree[Any]) -> Property:
        """Return the count or property that orders the results."""
        variable, *key = map(_unquote, tree.children)
        order = self._aliases.get(variable) if tree.data == "variable" else None
        order = order or self._read_expression(pattern, tree)
        if order.key is not None or order.counted:
            return order
        if tree.data != "property" or key == ["id"]:
            raise QueryError(
                f"ORDER BY {'.'.join([variable, *key])}: give a property, such as {variable}.year"
            )
        return replace(order, key=key[0])

    def _add_chain(self, pattern: Pattern, tree: Tree[Any]) -> list[str]:
        """Add the nodes and links of a chain, and return the variables of its nodes."""
        parts = tree.children
        variables = [self._add_node(pattern, part) for part in parts[::2]]
        for number, part in enumerate(parts[1::2]):
            pattern.links.append(self._read_link(part, variables[number], variables[number + 1]))
        return variables

    def _add_node(self, pattern: Pattern, tree: Tree[Any]) -> str:
        variable, *labels, properties = tree.children
        name = self._resolve(str(variable)) if variable is not None else str(next(self._unnamed))
        pairs = [] if properties is None else _read_pairs(properties)
        if self._forgiving and self._has_other_name(pattern, name, pairs):
            name = str(next(self._unnamed))
        node = pattern.nodes.setdefault(name, PatternNode())
        for label in labels:
            node.add(name, PatternNode(type=_unquote(label.children[0])))
        for key, value in pairs:
            self._compare(pattern, Property(variable=name, key=key), "=", value)
        return name

    @staticmethod
    def _has_other_name(pattern: Pattern, variable: str, pairs: Sequence[tuple[str, Any]]) -> bool:
        """Say whether a node that has a name is given another one."""
        before = pattern.nodes[variable].name if variable in pattern.nodes else None
        names = [str(value) for key, value in pairs if key in NAME_PROPERTIES]
        return before is not None and bool(names) and before not in names

    def _resolve(self, variable: str) -> str:
        """Return the variable that stands for another one since WHERE equates both."""
        return self._same.get(variable, variable)

    def _unite(self, pattern: Pattern, first: str, second: str) -> None:
        """Make one node of two."""
        kept, dropped = self._get_node(pattern, first), self._get_node(pattern, second)
        if kept is dropped:
            return
        kept.add(first, dropped)
        first, second = self._resolve(first), self._resolve(second)
        del pattern.nodes[second]
        self._same |= {own: first for own in (second, *self._same) if self._resolve(own) == second}
        pattern.links[:] = [
            replace(link, start=self._resolve(link.start), end=self._resolve(link.end))
            for link in pattern.links
        ]
        pattern.without[:] = [(self._resolve(anchor), other) for anchor, other in pattern.without]

    def _read_link(self, tree: Tree[Any], left: str, right: str) -> PatternLink:
        kinds: tuple[str, ...] = ()
        repeat = (1, 1)
        for part in tree.children:
            if getattr(part, "data", None) == "kinds":
                kinds = tuple(map(_unquote, part.children))
            elif getattr(part, "data", None) == "repeat":
                low, dots, high = part.children
                least = int(str(low)) if low is not None else 1
                most = MAX_REPEAT if dots or low is None else least
                repeat = least, int(str(high)) if high is not None else most
            elif getattr(part, "type", None) == "NAME":
                self._relationships.add(str(part))
        marks = {str(getattr(part, "type", "")) for part in tree.children} & {"LEFT", "RIGHT"}
        if not kinds:
            raise QueryError("a relationship without a type: write one, such as -[:OWNED_BY]->, or -[:A|B]->")
        link = PatternLink(start=left, end=right, kinds=kinds, directed=len(marks) == 1, repeat=repeat)
        return link.turn() if marks == {"LEFT"} else link

    def _add_condition(self, pattern: Pattern, tree: Tree[Any], negated: bool = False) -> None:
        """Add what a WHERE says."""
        if tree.data == ("either" if negated else "both"):
            for child in tree.children:
                self._add_condition(pattern, child, negated)
        elif tree.data == "negated":
            self._add_condition(pattern, tree.children[0], not negated)
        elif tree.data == "exists":
            self._add_existing(pattern, tree, negated)
        elif tree.data == "compared" and all(child.data == "variable" for child in tree.children[::2]):
            first, operator, second = tree.children
            self._compare_nodes(
                pattern, str(first.children[0]), _read_operator(operator, negated), str(second.children[0])
            )
        elif tree.data == "compared":
            first, operator, second = tree.children
            sides = _read_operand(first), _read_operand(second)
            if sides[0] and sides[1] and {sides[0].key, sides[1].key} <= NAME_PROPERTIES:
                operator = _read_operator(operator, negated)
                self._compare_nodes(pattern, sides[0].variable, operator, sides[1].variable)
            else:
                self._compare(pattern, *_read_comparison(tree, negated))
        else:
            variables: set[str] = set()
            condition = _make_filter(tree, negated, variables)
            if len(variables) != 1:
                names = ", ".join(sorted(variables))
                raise QueryError(f"OR may join conditions of one variable, not of {names}")
            self._get_node(pattern, variables.pop()).filters.append(condition)

    def _compare_nodes(self, pattern: Pattern, first: str, operator: str, second: str) -> None:
        if operator == "=":
            self._unite(pattern, first, second)
        elif operator == "<>":
            self._different.append((first, second))
        else:
            raise QueryError(f"nodes are compared by = or <>, not by {operator}")

    def _add_existing(self, pattern: Pattern, tree: Tree[Any], negated: bool) -> None:
        path, *conditions = tree.children
        if not negated:
            self._add_chain(pattern, path)
            for condition in conditions:
                self._add_condition(pattern, condition)
            return
        other = Pattern()
        shared = [name for name in self._add_chain(other, path) if name in pattern.nodes]
        for condition in conditions:
            self._add_condition(other, condition)
        if len(set(shared)) != 1:
            raise QueryError("a pattern after NOT must share just one variable with MATCH")
        pattern.without.append((shared[0], other))

    def _compare(self, pattern: Pattern, compared: Property, operator: str, value: object) -> None:
        node = self._get_node(pattern, compared.variable)
        if compared.key not in NAME_PROPERTIES:
            node.filters.append(compare_property(compared.key or "", operator, value))
        elif operator == "=" and isinstance(value, str | int):
            node.add(compared.variable, PatternNode(name=str(value)))
        elif operator == "<>" and isinstance(value, str | int):
            variable = self._resolve(compared.variable)
            pattern.without.append((variable, Pattern.of_name(variable, str(value))))
        else:
            raise QueryError(
                f"{compared.key!r} names a document, so it takes = or <> and a name, not {operator}"
            )

    def _get_node(self, pattern: Pattern, variable: str) -> PatternNode:
        variable = self._resolve(variable)
        unnamed = [own for own, node in pattern.nodes.items() if own.isdigit() and node.name is None]
        if self._forgiving and variable not in pattern.nodes and len(unnamed) == 1:
            self._same[variable] = variable = unnamed[0]
        if variable in self._relationships:
            raise QueryError(
                f"{variable!r} is a relationship, and data of links are not compared, but by as_of"
            )
        if variable not in pattern.nodes:
            variables = ", ".join(name for name in pattern.nodes if not name.isdigit()) or "none"
            raise QueryError(f"there is no variable {variable!r} in MATCH; it has {variables}")
        return pattern.nodes[variable]

    def _read_item(self, pattern: Pattern, tree: Tree[Any]) -> Property:
        expression, alias = tree.children
        item = self._read_expression(pattern, expression)
        if alias is not None:
            self._aliases[str(alias)] = item
        return item

    def _read_expression(self, pattern: Pattern, tree: Tree[Any]) -> Property:
        first, *rest = tree.children
        if str(first) == "*":
            variables = [name for name, node in pattern.nodes.items() if node.name is None]
            if len(variables) != 1:
                raise QueryError("count(*) of several nodes: count one, such as count(x)")
            return Property(variable=variables[0], counted=True)
        self._get_node(pattern, str(first))
        key = _unquote(rest[0]) if rest else None
        if key == "id" or (key in NAME_PROPERTIES and str(first) not in self._grouped):
            key = None
        return Property(variable=self._resolve(str(first)), key=key, counted=tree.data == "count")


def _unquote(word: object) -> str:
    return str(word).strip("`")


def _read_pairs(tree: Tree[Any]) -> list[tuple[str, Any]]:
    pairs = zip(tree.children[::2], tree.children[1::2], strict=True)
    return [(_unquote(key), _read_value(value)) for key, value in pairs if key is not None]


def _read_value(tree: Any) -> Any:
    if tree.data == "list":
        return [_read_value(child) for child in tree.children if child is not None]
    if tree.data in ("true", "false"):
        return tree.data == "true"
    text = str(tree.children[0])
    if tree.data == "number":
        return float(text) if "." in text else int(text)
    return _ESCAPED.sub(lambda escaped: _SIGNS.get(escaped[1], escaped[1]), text[1:-1])


def _read_operand(tree: Tree[Any]) -> Property | None:
    """Return the property of an operand, None if it is a value."""
    if tree.data == "property":
        return Property(variable=str(tree.children[0]), key=_unquote(tree.children[1]))
    if tree.data == "function":
        name, operand = tree.children
        inner = _read_operand(operand)
        if str(name).lower() not in _OF_CASE or inner is None or inner.key not in NAME_PROPERTIES:
            raise QueryError(f"the function {name} is not taken; {_READS}")
        return inner
    if tree.data == "variable":
        node = tree.children[0]
        advice = f"compare a property, such as {node}.name; what is without a link is NOT (x)-[:KIND]->()"
        raise QueryError(f"{node} is a node; {advice}")
    return None


def _read_operator(token: object, negated: bool) -> str:
    operator = "<>" if str(token) == "!=" else str(token)
    return _NEGATED[operator] if negated else operator


def _read_comparison(tree: Tree[Any], negated: bool) -> tuple[Property, str, Any]:
    left, token, right = tree.children
    operator = _read_operator(token, negated)
    first, second = _read_operand(left), _read_operand(right)
    if first is not None and second is None:
        return first, operator, _read_value(right.children[0])
    if second is not None and first is None:
        return second, _TURNED[operator], _read_value(left.children[0])
    raise QueryError("a comparison needs a property on one side and a value on the other")


def _make_filter(tree: Tree[Any], negated: bool, variables: set[str]) -> Filter:
    """Return a condition on the metadata of one node as a filter, and add its variable."""
    if tree.data in ("either", "both"):
        joined = "$or" if (tree.data == "either") is not negated else "$and"
        return {joined: [_make_filter(child, negated, variables) for child in tree.children]}
    if tree.data == "negated":
        return _make_filter(tree.children[0], not negated, variables)
    if tree.data == "compared":
        compared, operator, value = _read_comparison(tree, negated)
    elif tree.data in ("among", "absent", "present"):
        compared, operator = _read_operand(tree.children[0]) or Property(variable=""), tree.data
        value = _read_value(tree.children[1]) if operator == "among" else None
        operator = _NEGATED_TESTS[operator] if negated else operator
    else:
        raise QueryError("OR below NOT may not join patterns; write two queries")
    if compared.key is None or compared.key in NAME_PROPERTIES:
        advice = "write one query for each name"
        if operator == "absent":
            advice = "what is without a link is WHERE NOT (x)-[:KIND]->()"
        raise QueryError(f"a {compared.key or 'value'} takes = or <> and a name; {advice}")
    variables.add(compared.variable)
    return compare_property(compared.key, operator, value)
