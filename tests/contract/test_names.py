"""Names are those of the trade: what can be counted of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = sorted([*ROOT.glob("linkstore/**/*.py"), *ROOT.glob("extractors/**/*.py")])
VAGUE = {"one", "found", "said", "told", "given", "known"}
"""Names of variables that do not say what they hold."""
MAX_VAGUE = 3
"""How many bindings still have such a name. Lower it with each that is renamed."""
MAX_RELATIVE = 14
"""How many first lines of docstrings have more than one of ``that``, ``those``, ``which``, ``what``."""
PARTICIPLE = re.compile(r"_*([a-z]*(?:ed|ing)|found|given|kept|known|made|said|shown|told)(?:_|$)")
NOUNS_AND_VERBS = {"embed", "feed"}
ALLOWED = {
    "accessed": "the engine's record of accesses, as the contract names it",
    "aaccessed": "the same",
    "aembed_documents": "the awaiting form of embed_documents",
    "aembed": "the awaiting form of embed",
    "awaiting": "a form of a call, as the field of Call",
    "blocking": "a form of a call, as the field of Call",
    "ended": "is called when a search has ended",
    "incoming": "makes a link of this direction",
    "matching": "answers the fetch Matching",
    "outgoing": "makes a link of this direction",
    "published": "makes the decay as it was published",
    "told": "is called with what a plan was told",
}
"""Functions that are called by a participle, and why."""


def nodes() -> Iterator[tuple[Path, ast.AST]]:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path, node


def test_variables_are_named_after_what_they_hold():
    vague = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.id}"
        for path, node in nodes()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE
    ]
    assert len(vague) <= MAX_VAGUE, vague[-20:]


def test_functions_are_named_by_imperatives():
    wrong = []
    for path, node in nodes():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
            match := PARTICIPLE.match(node.name)
        ):
            property_ = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
            if not property_ and match[1] not in NOUNS_AND_VERBS and node.name not in ALLOWED:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert wrong == []


def test_first_lines_of_docstrings_are_one_clause():
    stacked = []
    for path, node in nodes():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if len(re.findall(r"\b(?:that|those|which|what|whose|who)\b", first)) > 1:
                stacked.append(f"{path.relative_to(ROOT)}: {first}")
    assert len(stacked) <= MAX_RELATIVE, stacked[-20:]
