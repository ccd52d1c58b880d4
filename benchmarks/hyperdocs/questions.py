"""The questions of the benchmark: what is committed of them; their texts are read from the packages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hyperdocs.candidates import Candidate, find_candidates
from hyperdocs.manuals import Manual

QUESTIONS: Final = Path(__file__).with_name("questions.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A question without its text: where it stands, the digits of its text's SHA-256, and its gold."""

    manual: str
    rule: str
    page: str
    anchor: str
    key: str
    gold: tuple[str, ...]


def read_selectors(path: Path = QUESTIONS) -> list[Selector]:
    """Read the committed list."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [Selector(**{**row, "gold": tuple(row["gold"])}) for row in rows]


def write_selectors(candidates: Iterable[Candidate], path: Path = QUESTIONS) -> None:
    """Write the list anew."""
    lines = [
        json.dumps(
            {
                "manual": one.manual,
                "rule": one.rule,
                "page": one.page,
                "anchor": one.anchor,
                "key": one.key,
                "gold": one.gold,
            }
        )
        for one in candidates
    ]
    path.write_text("\n".join(lines) + "\n")


def read_questions(manual: Manual, root: Path, path: Path = QUESTIONS) -> list[Candidate]:
    """Read the texts of a manual's questions from its pages.

    Raises:
        SystemExit: If one is not there: then the package is of another version.
    """
    wanted = {one.key: one for one in read_selectors(path) if one.manual == manual.name}
    pages = tuple(sorted({one.page for one in wanted.values()}))
    found = {one.key: one for one in find_candidates(replace(manual, pages=pages), root, manual)}
    missing = [one for key, one in wanted.items() if key not in found]
    if missing:
        raise SystemExit(
            f"{manual.name}: {len(missing)} of {len(wanted)} questions are not in the pages, the first on"
            f" {missing[0].page}; they are about {manual.package} {manual.version}"
        )
    return [replace(found[key], gold=one.gold) for key, one in wanted.items()]
