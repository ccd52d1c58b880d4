"""Small changes of a module's source, one at a time, as cosmic-ray makes them."""

from __future__ import annotations

import ast
import difflib
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

IGNORED: Final = {("zip", "strict"), ("astype", "copy")}
"""Functions and their arguments whose value changes no result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A module with one change.

    Args:
        operator: The kind of change.
        line: Where it is, from 1.
        source: The module with the change.
        change: The lines before and after it.
    """

    operator: str
    line: int
    source: str
    change: str


def sample_mutants(source: str, count: int, seed: int) -> list[Mutant]:
    """Return mutants at ``count`` places of a module drawn at random, one for each place, in their order.

    At one place many changes are possible (a plus can become ten other signs), so places are drawn, then one
    change of each. Some do not count, since no result depends on them: changes of annotations, of how a
    dataclass is made, of the kind of a parameter (``*`` or ``/`` in front of it), of ``zip(strict=)`` and of
    ``astype(copy=)``.
    """
    places: dict[tuple[int, int], list[tuple[str, int]]] = defaultdict(list)
    nodes = list(ast_nodes(get_ast(source)))
    for name in sorted(plugins.operator_names()):
        if plugins.get_operator(name).arguments():
            continue  # it changes variables that it must be told
        operator, occurrence = plugins.get_operator(name)(), 0
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                places[start].append((name, occurrence))
                occurrence += 1
    draw = random.Random(seed)
    found: list[Mutant] = []
    for place in draw.sample(sorted(places), len(places)):
        mutant = next(_make_mutants(source, place, draw.sample(places[place], len(places[place]))), None)
        if mutant is not None:
            found.append(mutant)
        if len(found) == count:
            break
    return sorted(found, key=lambda one: one.line)


def _make_mutants(source: str, place: tuple[int, int], changes: list[tuple[str, int]]) -> Iterator[Mutant]:
    plain = _normalize(source)
    for name, occurrence in changes:
        mutated = mutate_code(source, plugins.get_operator(name)(), occurrence)
        if mutated is None:
            continue
        try:
            same = _normalize(mutated) == plain
        except SyntaxError:
            continue
        if not same:
            pairs = difflib.ndiff(source.splitlines(), mutated.splitlines())
            change = "\n".join(line for line in pairs if line.startswith(("- ", "+ ")))
            yield Mutant(operator=name.removeprefix("core/"), line=place[0], source=mutated, change=change)


def _normalize(source: str) -> str:
    """Return what a module does, without what type checkers look after and what changes no result."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.ClassDef):
            node.decorator_list = [one for one in node.decorator_list if "dataclass" not in ast.unparse(one)]
        elif isinstance(node, ast.arguments):
            node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            node.defaults = [*node.defaults, *(one for one in node.kw_defaults if one is not None)]
            node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            node.keywords = [one for one in node.keywords if (called, one.arg) not in IGNORED]
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    return ast.dump(tree)
