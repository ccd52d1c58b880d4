"""What a conversation memory recalls: evidence in long conversations, passages in dialogues.

Run: ``python benchmarks/memory.py --data DIR``, where DIR (or LINKSTORE_EVAL_DATA) holds the folders
``locomo_open``, ``mtrag_open``, ``cast_open`` and ``musique_train``, as their SOURCE.txt describes;
``--locomo FILE``, ``--mtrag DIR``, ``--cast FILE`` and ``--musique DIR`` measure others of these formats,
``--longmemeval FILE`` and ``--beam FILE`` the sets LongMemEval and BEAM as they are published (BEAM: the rows
of a size as JSON), which are measured as LoCoMo is.
Everything is told to :class:`linkstore.memory.ConversationMemory` turn by turn; one policy serves all sets.
Recall is the share of a question's gold that is among the first 5 or 10, averaged over questions, in percent,
with 95 % intervals, also by category. Questions are those after the first turn. What it is compared with:

- ``bm25``: search by words for the question alone (LoCoMo: over all turns);
- ``unlinked``: LoCoMo, the same search over the same turns without following links;
- ``last``: the default search for the question alone;
- ``joined``: for the last two queries of the user;
- ``rewrite``: for the question as people rewrote it, where there are such.

Of LoCoMo and its like, ``sessions`` is the share of the sessions with evidence that are among the first by
their best turn, and ``any session`` counts a question if one of them is, as others count it.
``--dialogues`` measures forgetting by entity, and facts that give way, on the dialogues of
tests/support/dialogues.
``--time`` measures instead what a turn and a recall cost in sessions of 2,000 and of 50,000 turns, by the
clock and in CPU time of this process; with ``--cassandra`` (100 and 10,000) on a server of its own (Java 17
and Maven are needed).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from _memory_rules import measure_dialogues
from _memory_sets import (
    Conversation,
    Dialogues,
    Question,
    Told,
    beam,
    cast,
    locomo,
    longmemeval,
    mtrag,
    musique,
)
from _memory_time import times
from _report import add_output, listed, record
from langchain_core.embeddings import Embeddings

from linkstore import LinkStore
from linkstore.core.hits import Hit
from linkstore.embeddings import get_embedding
from linkstore.evaluate.metrics import resample_means
from linkstore.memory import ConversationMemory, SessionKey
from linkstore.strategies import DEFAULT_STRATEGY, PageRank, Strategy, Words

CUTS: Final = (5, 10)
UNRELATED: Final = (0, 40)
Scores = dict[str, dict[str, dict[str, list[float]]]]
"""For each method, category ("" for all) and measure the values of the questions."""


def main() -> None:
    """Measure the sets that are there; print a table, or JSON."""
    options = _options()
    embedding = get_embedding(options.embedding)
    if options.time:
        engine = "-cassandra" if options.cassandra else ""
        rows = times(embedding, cassandra=options.cassandra)
        name = options.record and f"{options.record}-time{engine}"
        listed("time of turns and recalls", rows, as_json=options.json, record_as=name)
        return
    if options.dialogues:
        name = options.record and f"{options.record}-dialogues"
        listed("dialogues", measure_dialogues(embedding), as_json=options.json, record_as=name)
        return
    found: dict[str, Any] = {}
    for name, figures in _measured(options, embedding):
        found[name] = figures
        record(options.record, {f"{name}, {options.embedding}": figures})
        if not options.json:
            listed(name, list(_lines(figures)), as_json=False)
    if options.json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")


def _measured(options: argparse.Namespace, embedding: Embeddings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each set that is given, and the figures of each method."""
    for name, read in (("locomo", locomo), ("longmemeval", longmemeval), ("beam", beam)):
        place = getattr(options, name)
        if place:
            yield name, _figures(of_evidence(read(Path(place)), embedding, options.every))
    if options.mtrag:
        yield "mtrag", _figures(of_passages(mtrag(Path(options.mtrag)), embedding, options.every))
    if options.cast:
        yield "cast", _figures(of_passages(cast(Path(options.cast)), embedding, options.every))
    for unrelated in UNRELATED if options.musique else ():
        made = musique(Path(options.musique), unrelated)
        yield (
            f"musique, {unrelated} unrelated before",
            _figures(of_passages(made, embedding, options.every)),
        )


def of_evidence(conversations: Iterator[Conversation], embedding: Embeddings, every: int) -> Scores:
    """Recall of turns, over all questions and by category, and of sessions by their best turn."""
    scores: Scores = {}
    for one in conversations:
        with LinkStore(embedding) as store, ConversationMemory(store) as memory:
            names = {_tell(memory, turn): turn for turn in one.turns}
            asked = SessionKey(run_id="asked", user_id="u")
            for question in one.questions[::every]:
                recall = memory.recall(asked, question.text, k=50, everywhere=True, now=question.time)
                ranked = {"memory": [names[turn.id] for turn in recall.turns]}
                for name, strategy in _RIVALS.items():
                    hits = store.search(
                        question.text, strategy=strategy, k=50, filter=asked.scope(everywhere=True)
                    )
                    ranked[name] = [names[str(hit.document.id)] for hit in hits]
                for method, turns in ranked.items():
                    _count(scores, method, question, [turn.name for turn in turns])
                    sessions = list(dict.fromkeys(turn.run for turn in turns))
                    gold = {turn.run for turn in one.turns if turn.name in question.gold}
                    for cut in CUTS:
                        among = gold & {*sessions[:cut]}
                        _note(scores, method, question, f"sessions@{cut}", len(among) / len(gold))
                        _note(scores, method, question, f"any session@{cut}", float(bool(among)))
    return scores


_RIVALS: Final[Mapping[str, Strategy]] = {
    "bm25": Words(),
    "unlinked": PageRank(kinds={"next_turn": 0.0}),
}


def of_passages(dialogues: Dialogues, embedding: Embeddings, every: int) -> Scores:
    """Recall of passages at turns after the first."""
    scores: Scores = {}
    with LinkStore(embedding) as knowledge:
        knowledge.add_documents(list(dialogues.corpus))
        questions = [one for told in dialogues.conversations for one in told.questions]
        for question in questions[::every]:
            with LinkStore(embedding) as store, ConversationMemory(store, knowledge) as memory:
                for turn in question.told:
                    _tell(memory, turn)
                recall = memory.recall(_key(question.told[-1]), question.text, k=max(CUTS))
            ranked = {"memory": _ids(recall.chunks)}
            texts: dict[str, tuple[str | None, Strategy]] = {
                "bm25": (question.text, Words()),
                "last": (question.text, DEFAULT_STRATEGY),
                "joined": (f"{question.told[-1].query}\n{question.text}", DEFAULT_STRATEGY),
                "rewrite": (question.rewrite, DEFAULT_STRATEGY),
            }
            for name, (text, strategy) in texts.items():
                if text:
                    ranked[name] = _ids(knowledge.search(text, k=max(CUTS), strategy=strategy))
            for method, names in ranked.items():
                _count(scores, method, question, names)
    return scores


def _tell(memory: ConversationMemory, turn: Told) -> str:
    written = memory.add(_key(turn), turn.query, turn.response, sources=turn.sources, time=turn.time)
    return written.id


def _key(turn: Told) -> SessionKey:
    return SessionKey(run_id=turn.run, user_id="u")


def _ids(hits: Sequence[Hit]) -> list[str]:
    return [str(hit.document.id) for hit in hits]


def _count(scores: Scores, method: str, question: Question, names: Sequence[str]) -> None:
    gold = set(question.gold)
    for cut in CUTS:
        _note(scores, method, question, f"recall@{cut}", len(gold & {*names[:cut]}) / len(gold))


def _note(scores: Scores, method: str, question: Question, measure: str, value: float) -> None:
    for category in {"", question.category}:
        measures = scores.setdefault(method, {}).setdefault(category, {})
        measures.setdefault(measure, []).append(100 * value)


def _figures(scores: Scores) -> dict[str, Any]:
    """For each method the means over all questions, and those by category."""
    found: dict[str, Any] = {}
    for method, categories in scores.items():
        found[method] = _estimates(categories[""])
        named = {name: _estimates(categories[name]) for name in sorted(categories) if name}
        if len(named) > 1:
            found[method]["categories"] = named
    return found


def _estimates(measures: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Means in percent, the number of questions, and 95 % intervals."""
    found: dict[str, Any] = {name: round(float(np.mean(values)), 2) for name, values in measures.items()}
    found["questions"] = len(measures["recall@5"])
    found["intervals"] = {name: _interval(values) for name, values in measures.items()}
    return found


def _interval(values: Sequence[float]) -> list[float]:
    means = resample_means(np.asarray(values)[:, None], seed=0)
    return [round(float(end), 2) for end in np.percentile(means, (2.5, 97.5))]


def _lines(figures: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """One line for each method, and one for each of its categories."""
    for method, values in figures.items():
        yield {"method": method, **_shown(values)}
        for name, part in values.get("categories", {}).items():
            yield {"method": f"  {name}", **_shown(part)}


def _shown(values: Mapping[str, Any]) -> dict[str, str]:
    intervals = values.get("intervals", {})
    shown = {}
    for name, value in values.items():
        if isinstance(value, (int, float)):
            low, high = intervals.get(name, (None, None))
            shown[name] = f"{value}" if low is None else f"{value:.1f} ({low:.1f} to {high:.1f})"
    return shown


def _options() -> argparse.Namespace:
    data = os.environ.get("LINKSTORE_EVAL_DATA")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default=data, help="folder of the data sets")
    parser.add_argument("--locomo", help="a file like locomo_open/locomo.json")
    parser.add_argument("--longmemeval", help="a file like longmemeval_s.json")
    parser.add_argument("--beam", help="a file with rows of BEAM, as a list or one a line")
    parser.add_argument("--mtrag", help="a folder like mtrag_open")
    parser.add_argument("--cast", help="a file like cast_open/turns.jsonl")
    parser.add_argument("--musique", help="a folder like musique_train")
    parser.add_argument("--embedding", default="wordllama")
    parser.add_argument("--every", type=int, default=1, help="ask only every so many questions")
    parser.add_argument("--dialogues", action="store_true", help="measure the rules on our dialogues instead")
    parser.add_argument("--time", action="store_true", help="measure what a turn and a recall cost instead")
    parser.add_argument("--cassandra", action="store_true", help="with --time: on a Cassandra server")
    add_output(parser)
    options = parser.parse_args()
    if not (options.time or options.dialogues) and not any(
        getattr(options, name) for name in (*_PLACES, "longmemeval", "beam")
    ):
        if not options.data:
            parser.error("give --data DIR, or the files to measure")
        for name, path in _PLACES.items():
            setattr(options, name, str(Path(options.data) / path))
    return options


_PLACES: Final[Mapping[str, str]] = {
    "locomo": "locomo_open/locomo.json",
    "mtrag": "mtrag_open",
    "cast": "cast_open/turns.jsonl",
    "musique": "musique_train",
}

if __name__ == "__main__":
    main()
