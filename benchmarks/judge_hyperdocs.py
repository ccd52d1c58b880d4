"""Let a person judge the gold of hyperdocs: 200 questions, four or five sections each, one key a question.

Run: ``python benchmarks/judge_hyperdocs.py make SHEET``, which samples questions over all manuals and
writes a sheet (JSON Lines); ``… judge SHEET``, which shows a question with the beginnings of its
sections, takes a key, and goes on where it was left; ``… count SHEET``, which says how often gold was
named, with 95 % intervals, and of which rule and language. At 18 seconds a question, 200 take an hour.

Among the sections are those of gold, and what BM25 and a dense search find first besides, in random
order. The sheet says which are gold, but ``judge`` does not show it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from _report import listed
from _vector_cache import make_encoder
from hyperdocs.candidates import Candidate
from hyperdocs.manuals import MANUALS, Manual, copy_pages, unpack
from hyperdocs.questions import read_questions
from measure_hyperdocs import Sections

from linkstore import LinkStore
from linkstore.ingest import FolderSource, index
from linkstore.strategies import Similarity, Words

OTHERS: Final = 3
"""How many sections besides gold are shown."""
MOST_GOLD: Final = 2
SHOWN: Final = 420
"""How many characters of each section."""
NONE, UNCLEAR = "0", "u"
Row = dict[str, Any]


def main() -> None:
    """Make a sheet, judge it or count its verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=("make", "judge", "count"))
    parser.add_argument("sheet", type=Path)
    parser.add_argument("--questions", type=int, default=200, help="how many questions (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default 0)")
    parser.add_argument("--manuals", help="some of them; default all")
    parser.add_argument("--packages", help="folder of .deb files; those it lacks are downloaded into it")
    options = parser.parse_args()
    if options.action == "make":
        _write(options.sheet, _make(options))
    elif options.action == "judge":
        judge(options.sheet)
    else:
        listed("verdicts of a person", list(_count(_read(options.sheet))), as_json=False)


def _make(options: argparse.Namespace) -> list[Row]:
    """Return the rows of a sheet, as many of each manual as its share of all questions says."""
    chance = random.Random(options.seed)
    chosen = [one for one in MANUALS if options.manuals is None or one.name in options.manuals.split(",")]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="linkstore-judge-") as name:
        folder = Path(name)
        roots = {
            manual.name: unpack(manual, Path(options.packages or folder / "packages"), folder / "unpacked")
            for manual in chosen
        }
        asked = {manual.name: read_questions(manual, roots[manual.name]) for manual in chosen}
        drawn = chance.sample([one for some in asked.values() for one in some], options.questions)
        for manual in chosen:
            wanted = [one for one in drawn if one.manual == manual.name]
            if wanted:
                rows += _show_sections(
                    manual, copy_pages(manual, roots[manual.name], folder / manual.name), wanted, chance
                )
    chance.shuffle(rows)
    return rows


def _show_sections(
    manual: Manual, pages: Path, questions: Sequence[Candidate], chance: random.Random
) -> Iterator[Row]:
    with LinkStore.open(":memory:", make_encoder("wordllama", None)) as store:
        index(store, FolderSource(pages), name=manual.name)
        sections = Sections(list(store.scan()))
        texts = {str(document.id): document for document in sections.documents}
        for question in questions:
            units = sections.find_units(question)
            if units is None:
                continue
            own, gold = sections.find_own(question), frozenset[str]().union(*units)
            ranked = [
                str(hit.document.id)
                for pair in zip(
                    *(store.search(question.question, strategy=one) for one in (Words(), Similarity())),
                    strict=False,
                )
                for hit in pair
            ]
            if question.rule == "heading":
                own = frozenset()
            others = [id for id in dict.fromkeys(ranked) if id not in gold | own][:OTHERS]
            shown = [min(unit) for unit in units[:MOST_GOLD]] + others
            chance.shuffle(shown)
            yield {
                "key": question.key,
                "manual": manual.name,
                "rule": question.rule,
                "language": manual.language,
                "question": question.question,
                "sections": [
                    {
                        "title": " > ".join(
                            texts[id].metadata.get("headings") or [texts[id].metadata.get("title", "")]
                        ),
                        "text": texts[id].page_content[:SHOWN],
                        "gold": id in gold,
                    }
                    for id in shown
                ],
                "verdict": None,
            }


def judge(sheet: Path) -> None:
    """Ask for the verdicts that are missing, and write each at once."""
    rows = _read(sheet)
    for number, row in enumerate(rows, 1):
        if row["verdict"] is not None:
            continue
        print(f"\n\n[{number} of {len(rows)}]  {row['manual']}\n\n   {row['question']}\n")
        for place, section in enumerate(row["sections"], 1):
            print(f" {place}  {section['title']}")
            print(textwrap.indent(textwrap.fill(" ".join(section["text"].split()), 100), "      "))
        keys = [NONE, UNCLEAR, "q", *map(str, range(1, len(row["sections"]) + 1))]
        answer = ""
        while answer not in keys:
            answer = input("\nwhich answers best? number, 0 none, u unclear question, q stop: ").strip()
        if answer == "q":
            return
        row["verdict"] = answer
        _write(sheet, rows)


def _count(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield how often gold was named, by rule and by language, of the questions that are clear."""
    judged = [row for row in rows if row["verdict"] not in {None, UNCLEAR}]
    groups = {"all": judged}
    for field in ("rule", "language"):
        for row in judged:
            groups.setdefault(row[field], []).append(row)
    for name, some in groups.items():
        if not some:
            continue
        named = np.array(
            [row["verdict"] != NONE and row["sections"][int(row["verdict"]) - 1]["gold"] for row in some]
        )
        none = np.array([row["verdict"] == NONE for row in some])
        drawn = named[np.random.default_rng(31).integers(len(named), size=(1_000, len(named)))].mean(axis=1)
        yield {
            "questions": name,
            "judged": len(some),
            "gold named, %": 100 * float(named.mean()),
            "interval": [100 * float(end) for end in np.percentile(drawn, (2.5, 97.5))],
            "none answers, %": 100 * float(none.mean()),
            "unclear": sum(row["verdict"] == UNCLEAR for row in rows) if name == "all" else None,
        }


def _read(sheet: Path) -> list[Row]:
    return [json.loads(line) for line in sheet.read_text().splitlines()]


def _write(sheet: Path, rows: Sequence[Row]) -> None:
    sheet.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    print(f"{sum(row['verdict'] is not None for row in rows)} of {len(rows)} judged", file=sys.stderr)


if __name__ == "__main__":
    main()
