"""The same questions of linkstore and of its peers, on the same documents: links, and vectors alone.

Run: ``python benchmarks/peers.py``; ``--only links`` or ``--only vectors`` leaves one part out.

Vectors: plain search, without a filter and with one that half or 1 % of the documents pass, and adding, by
lancedb, Chroma, sqlite-vec and linkstore. Each runs in a process of its own; one after another adds, and
then each question goes to all of them in turn. Recall is the share of the ten nearest documents by float32
cosines of all, which is computed here. ``--vector-python`` is an interpreter that has the three; else an
environment is made. linkstore also indexes the words of documents meanwhile; the others were not asked to.

Links: langchain-graph-retriever. The peer runs on its in-memory adapter, and on Chroma's if an
environment with an older chromadb can be made (its adapter imports a name that chromadb 1.x no longer
has). It needs its own process; questions go to both sides in turns, and each side's own clock counts.

Semantics: at depth 0 both give the 4 nearest documents. At each hop the peer takes, of all documents
that the links of the last hop's lead to, the 10 most similar to the question; linkstore takes 10 of
each link group and carries the best 32 on, so it follows more. The table says which share of the
peer's documents is among linkstore's with its defaults, and with limit, beam, hub_cap and max_nodes
out of the way ("wide"), where none may be missing. "As many" is linkstore returning as many documents as
the peer found, where its own default is 50.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _growth_data import GivenVectors, GrowthData
from _growth_data import make as make_data
from _report import add_output, listed, milliseconds, report

from linkstore import LinkStore
from linkstore.strategies import Eager

VECTOR_STORES = ("lancedb>=0.25", "chromadb>=1.0", "sqlite-vec>=0.1.6", "apsw>=3.54", "pyarrow>=18")
OLDER = ("chromadb>=0.5.20,<0.7", "langchain-chroma<0.3", "langchain-graph-retriever>=0.8")
DEPTHS = (0, 1, 2)
REPEATS = 5
Row = dict[str, Any]


def main() -> None:
    """Fill both, ask both in turns, print the table."""
    options = _options()
    data = make_data(options.documents)
    title = f"{options.documents:,} documents"
    with tempfile.TemporaryDirectory(prefix="linkstore-peers-") as name:
        folder = Path(name)
        np.savez(
            folder / "data.npz",
            vectors=data.vectors,
            keywords=data.keywords,
            targets=data.targets,
            questions=data.questions,
        )
        if options.only != "links":
            rows = _compare_vectors(options, data, folder)
            name = options.record and f"{options.record}-vectors"
            listed(f"vectors alone, {title}", rows, as_json=options.json, record_as=name)
        if options.only != "vectors":
            rows = _compare(options, data, folder)
            report(f"peers, {title}", rows, as_json=options.json, record_as=options.record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=10_000, help="how many (default 10,000)")
    parser.add_argument("--questions", type=int, default=5, help="how many at each depth (default 5)")
    parser.add_argument(
        "--vector-questions", type=int, default=50, help="how many of vectors alone, at most 200 (default 50)"
    )
    parser.add_argument("--chroma-python", help="an interpreter that has the older chromadb already")
    parser.add_argument("--only", choices=("links", "vectors"), help="measure one of the two")
    parser.add_argument(
        "--vector-python", help="an interpreter that has lancedb, chromadb and sqlite-vec already"
    )
    parser.add_argument("--no-chroma", action="store_true", help="leave Chroma out")
    parser.add_argument("--data", help="not needed: the documents are made here")
    add_output(parser)
    return parser.parse_args()


def _compare(options: argparse.Namespace, data: GrowthData, folder: Path) -> list[Row]:
    with LinkStore.open(folder / "kb", GivenVectors(data)) as store:
        for _, documents in data.batches(10_000):
            store.add_documents(documents)
        rows = _against(store, sys.executable, "memory", folder, options.questions)
        python = None if options.no_chroma else options.chroma_python or _environment(folder / "venv", OLDER)
        if python:
            rows += _against(store, python, "chroma", folder, options.questions)
    return rows


def _compare_vectors(options: argparse.Namespace, data: GrowthData, folder: Path) -> list[Row]:
    python = options.vector_python or _environment(folder / "vector-venv", VECTOR_STORES)
    names = [*(("lancedb", "chroma", "sqlite-vec") if python else ()), "linkstore"]
    command = [str(Path(__file__).with_name("_vector_peer.py"))]
    peers, added = {}, {}
    for name in names:
        interpreter = sys.executable if name == "linkstore" else python
        peers[name] = Peer([interpreter, *command, name, str(folder)])
        added[name] = peers[name].ready
    rows = [
        {
            "to do": f"add, {name}",
            "CPU, ms": 1e3 * done["cpu"],
            "clock, ms": 1e3 * done["clock"],
            "recall@10": None,
        }
        for name, done in added.items()
    ]
    for label, field, step in (("search", None, 1), ("half pass", "half", 2), ("1 % pass", "few", 100)):
        near = [
            {str(n) for n in step * np.argsort(-(data.vectors[::step] @ question))[:10]}
            for question in data.questions
        ]
        for peer in peers.values():
            peer.ask(question=0, filter=field)  # the first search of a kind may prepare something
        answers: dict[str, list[Any]] = {name: [] for name in names}
        for n in range(options.vector_questions):
            for name, peer in peers.items():
                answers[name].append(peer.ask(question=n, filter=field))
        rows += [
            {
                "to do": f"{label}, {name}",
                "CPU, ms": milliseconds([answer["cpu"] for answer in answers[name]]),
                "clock, ms": milliseconds([answer["clock"] for answer in answers[name]]),
                "recall@10": float(
                    np.mean(
                        [len(near[n] & set(answer["ids"])) / 10 for n, answer in enumerate(answers[name])]
                    )
                ),
            }
            for name in names
        ]
    for peer in peers.values():
        peer.close()
    return rows


def _environment(folder: Path, packages: tuple[str, ...]) -> str | None:
    """An interpreter with these packages; None, with the reason on stderr, if it cannot be had."""
    python = str(folder / "bin" / "python")
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [python, "-m", "pip", "install", "-q", *packages],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.stderr.write(f"{', '.join(packages)} are left out: {done.stderr.strip().splitlines()[-1]}\n")
            return None
    return python


class Peer:
    """A peer in a process of its own, which answers lines of JSON.

    Args:
        command: Starts it.
    """

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ready = self._answer()
        """What it says once it is filled."""

    def ask(self, **asked: Any) -> Any:
        """Its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(self._command[1:3])} ended with {self._process.wait()}")
        return json.loads(line)


def _against(store: LinkStore, python: str, adapter: str, folder: Path, questions: int) -> list[Row]:
    peer = Peer([python, str(Path(__file__).with_name("_peer.py")), adapter, str(folder / "data.npz")])
    peer.ask(question=questions, depth=0)
    rows = [
        {"peer": f"{adapter}, depth {depth}", **_depth(store, peer, questions, depth)} for depth in DEPTHS
    ]
    peer.close()
    return rows


def _depth(store: LinkStore, peer: Peer, questions: int, depth: int) -> Row:
    usual = Eager(start_k=4, depth=depth)
    wide = Eager(start_k=4, depth=depth, k=10**6, beam=10**6, max_nodes=10**6, hub_cap=10**6)
    theirs, ours, as_many, everything, found, covered, covered_wide = [], [], [], [], [], [], []
    for n in range(questions):
        answer = peer.ask(question=n, depth=depth)
        ids = set(answer["ids"])
        theirs.append(answer["seconds"])
        found.append(len(ids))
        ours += [_ask(store, n, usual)[0] for _ in range(REPEATS)]
        same = usual.with_k(len(ids))
        as_many += [_ask(store, n, same)[0] for _ in range(REPEATS)]
        everything.append(_ask(store, n, wide)[0])
        covered.append(len(ids & _ask(store, n, usual)[1]) / len(ids))
        covered_wide.append(len(ids & _ask(store, n, wide)[1]) / len(ids))
    return {
        "peer, ms": milliseconds(theirs),
        "peer, documents": float(np.mean(found)),
        "linkstore, ms": milliseconds(ours),
        "times faster": float(np.median(theirs) / np.median(ours)),
        "linkstore as many, ms": milliseconds(as_many),
        "times faster, as many": float(np.median(theirs) / np.median(as_many)),
        "linkstore wide, ms": milliseconds(everything),
        "times faster, wide": float(np.median(theirs) / np.median(everything)),
        "peer's documents among ours, %": 100 * float(np.mean(covered)),
        "among ours wide, %": 100 * float(np.mean(covered_wide)),
    }


def _ask(store: LinkStore, n: int, strategy: Eager) -> tuple[float, set[str]]:
    started = time.perf_counter()
    hits = store.search(f"question {n}", strategy=strategy)
    return time.perf_counter() - started, {str(hit.document.id) for hit in hits}


if __name__ == "__main__":
    main()
