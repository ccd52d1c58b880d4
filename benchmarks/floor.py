"""How much noise and how many gold answers a calibrated minimum similarity lets through, on other questions.

Run: ``python benchmarks/floor.py --data DIR [--json]``, where DIR (or LINKSTORE_EVAL_DATA) holds
``hotpotqa_train`` and ``musique_train``. A minimum is proposed from every second question; its shares are
measured on the other half.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _report import add_data, add_output, listed, record
from _retrieval_sets import ROW_SETS

from linkstore import LinkStore
from linkstore.evaluate import calibrate_min_similarity, read_corpus, read_questions
from linkstore.evaluate.calibration import sample_similarities

SETS = ("hotpotqa_train", "musique_train")


def main() -> None:
    """Propose and measure, and print a line for each set."""
    options = _options()
    rows = [row for name in SETS for row in _measured(name, options.data)]
    listed("Calibrated minimum similarity", rows, as_json=options.json)
    record(options.record, {row["set"]: row for row in rows})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    add_output(parser)
    options = parser.parse_args()
    options.data = Path(options.data)
    return options


def _measured(name: str, data: Path) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, LinkStore() as store:
        corpus, questions = ROW_SETS[name](data).write(Path(folder))
        store.add_documents(read_corpus(corpus))
        asked = read_questions(questions)
        start = time.perf_counter()
        found = calibrate_min_similarity(store, asked[::2])
        seconds = time.perf_counter() - start
        least = -1.0 if found.min_similarity is None else found.min_similarity
        held_out = sample_similarities(store, asked[1::2], None, 0).at(least)
        yield {
            "set": name,
            "documents": store.survey().documents,
            "min_similarity": found.min_similarity,
            "noise": round(held_out.noise, 4),
            "gold": round(held_out.gold or 0.0, 4),
            "asked": round(held_out.asked or 0.0, 4),
            "seconds": round(seconds, 2),
        }


if __name__ == "__main__":
    main()
