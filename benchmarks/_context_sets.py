"""The sets of the context benchmark."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from _retrieval_sets import ROW_SETS
from _site import unpack_site
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore import Link, LinkStore, add_links
from linkstore.evaluate import GoldQuestion, read_corpus, read_questions
from linkstore.evaluate.profiling import with_links
from linkstore.ingest import FolderSource, index

_TURN: Final = re.compile(r"D:?(\d+):(\d+)")
Fill = Callable[[LinkStore], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSet:
    """Corpora with questions.

    Args:
        name: As in tables.
        corpora: What fills a store, with the questions asked of it.
        budgets: In tokens; empty: those asked for.
    """

    name: str
    corpora: Sequence[tuple[Fill, Sequence[GoldQuestion]]]
    budgets: Sequence[int] = ()

    def stores(
        self, embedding: Embeddings, every: int = 1
    ) -> Iterator[tuple[LinkStore, Sequence[GoldQuestion]]]:
        """Filled stores, each with every n-th of its questions."""
        for fill, questions in self.corpora:
            with LinkStore.open(":memory:", embedding) as store:
                fill(store)
                yield store, questions[::every]


def file_set(options: argparse.Namespace) -> ContextSet:
    """A corpus and questions in the formats of ``linkstore eval``."""
    links = options.links.split(",") if options.links else None
    documents = with_links(read_corpus(options.corpus), links)
    return _of_documents(Path(options.corpus).stem, documents, read_questions(options.questions))


def _of_documents(name: str, documents: Sequence[Document], questions: Sequence[GoldQuestion]) -> ContextSet:
    return ContextSet(name=name, corpora=[(lambda store: _add(store, documents), questions)])


def _add(store: LinkStore, documents: Sequence[Document]) -> None:
    store.add_documents(list(documents))


def _row_set(name: str) -> Callable[[Path], ContextSet]:
    def made(data: Path) -> ContextSet:
        rows = ROW_SETS[name](data)
        with _scratch() as folder:
            corpus, questions = rows.write(folder)
            return _of_documents(
                name, with_links(read_corpus(corpus), rows.links[0]), read_questions(questions)
            )

    return made


def pep_questions(data: Path) -> ContextSet:
    """Plain questions, each answered by one page of a site; any chunk of the page counts."""
    rows = json.loads((data / "pep_questions" / "questions.json").read_text())
    questions = [GoldQuestion(question=row["question"], gold=tuple(row["gold"])) for row in rows]

    def fill(store: LinkStore) -> None:
        with _scratch() as folder:
            unpack_site(data, folder)
            index(store, FolderSource(folder / "html"))

    return ContextSet(name="pep_questions", corpora=[(fill, questions)])


def locomo_open(data: Path) -> ContextSet:
    """Long conversations; gold are the turns that answer a question, and each turn leads to the next one."""
    corpora: list[tuple[Fill, Sequence[GoldQuestion]]] = []
    for one in json.loads((data / "locomo_open" / "locomo.json").read_text()):
        turns = _turns(one["conversation"])
        known = {str(turn.id) for turn in turns}
        questions = []
        for asked in one["qa"]:
            named = (
                f"D{int(session)}:{int(turn)}"
                for text in asked.get("evidence", ())
                for session, turn in _TURN.findall(text)
            )
            gold = tuple(name for name in dict.fromkeys(named) if name in known)
            if gold:
                questions.append(GoldQuestion(question=asked["question"], gold=gold))
        corpora.append((lambda store, turns=turns: _add(store, turns), questions))
    return ContextSet(name="locomo_open", corpora=corpora, budgets=(250, 500, 1000, 2000, 4000))


def _turns(conversation: Mapping[str, Any]) -> list[Document]:
    sessions = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    turns: list[Document] = []
    for name in sorted(sessions, key=lambda one: int(one.removeprefix("session_"))):
        before: Document | None = None
        for said in conversation[name]:
            caption = f" [{said['blip_caption']}]" if said.get("blip_caption") else ""
            turn = Document(id=said["dia_id"], page_content=f"{said['speaker']}: {said['text']}{caption}")
            add_links(turn, Link.incoming(kind="next_turn", tag=said["dia_id"]))
            if before is not None:
                add_links(before, Link.outgoing(kind="next_turn", tag=said["dia_id"]))
            turns.append(turn)
            before = turn
    return turns


@contextmanager
def _scratch() -> Iterator[Path]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="linkstore-context-") as folder:
        yield Path(folder)


SETS: Final[Mapping[str, Callable[[Path], ContextSet]]] = {
    **{name: _row_set(name) for name in ("hotpotqa_train", "musique_train", "ottqa_links")},
    "pep_questions": pep_questions,
    "locomo_open": locomo_open,
}
