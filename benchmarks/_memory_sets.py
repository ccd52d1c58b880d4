"""Conversations with gold, told to a memory turn by turn: what is asked, and what should be recalled."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from langchain_core.documents import Document

CATEGORIES: Final = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
_EVIDENCE: Final = re.compile(r"D:?(\d+):(\d+)")
_HASH: Final = re.compile(r"#\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A turn to be remembered.

    Args:
        run: Its session.
        query: What the user said.
        response: What was answered.
        sources: Ids of documents.
        name: What gold names it by.
        time: When it was said; None for now.
    """

    run: str
    query: str
    response: str | None = None
    sources: tuple[str, ...] = ()
    name: str = ""
    time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to be asked after ``told`` turns, with the names of what answers it."""

    text: str
    gold: tuple[str, ...]
    category: str = ""
    told: Sequence[Told] = ()
    rewrite: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Turns that are told first, then questions. With ``everywhere``, all sessions are asked at once."""

    turns: Sequence[Told] = ()
    questions: Sequence[Question] = field(default=())
    everywhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogues:
    """A corpus, and conversations about it."""

    corpus: Sequence[Document]
    conversations: Sequence[Conversation]


def locomo(path: Path) -> Iterator[Conversation]:
    """LoCoMo: two people talk over months; gold are the turns that hold the evidence."""
    for one in json.loads(path.read_text()):
        turns = list(_said(one["conversation"]))
        known = {turn.name for turn in turns}
        questions = []
        for asked in one["qa"]:
            texts = asked.get("evidence") or ()
            named = [f"D{int(s)}:{int(t)}" for text in texts for s, t in _EVIDENCE.findall(text)]
            gold = tuple(name for name in dict.fromkeys(named) if name in known)
            if gold and asked["question"].strip():
                category = CATEGORIES.get(asked.get("category"), "other")
                questions.append(Question(text=asked["question"], gold=gold, category=category))
        yield Conversation(turns=turns, questions=questions, everywhere=True)


def _said(conversation: Mapping[str, Any]) -> Iterator[Told]:
    names = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    for name in sorted(names, key=lambda one: int(one.removeprefix("session_"))):
        text = conversation.get(f"{name}_date_time", "12:00 am on 1 January, 2023")
        time = datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for said in conversation[name] or ():
            caption = f" [{said['blip_caption']}]" if said.get("blip_caption") else ""
            query = f"{said['speaker']}: {said.get('text') or ''}{caption}"
            yield Told(run=name, query=query, name=said["dia_id"], time=time)


def cast(path: Path, year: int = 2021) -> Dialogues:
    """TREC CAsT 2021: gold is the canonical passage of a turn, which is also its answer."""
    rows = [row for row in _rows(path) if row.get("passage") and int(row["year"]) == year]
    ids = {text: f"p{at}" for at, text in enumerate(dict.fromkeys(row["passage"] for row in rows))}
    topics: dict[str, list[Any]] = {}
    for row in rows:
        topics.setdefault(str(row["topic"]), []).append(row)
    conversations = []
    for name, topic in topics.items():
        told = [
            Told(run=name, query=row["utterance"], response=row["passage"], sources=(ids[row["passage"]],))
            for row in topic
        ]
        questions = [
            Question(
                text=row["utterance"],
                gold=(ids[row["passage"]],),
                told=told[:at],
                rewrite=row.get("rewrite"),
            )
            for at, row in enumerate(topic)
            if at and row["utterance"].strip()
        ]
        conversations.append(Conversation(questions=questions))
    corpus = [Document(id=id, page_content=text) for text, id in ids.items()]
    return Dialogues(corpus=corpus, conversations=conversations)


def mtrag(folder: Path) -> Dialogues:
    """MTRAG: questions of people to an assistant; gold are passages."""
    corpus = []
    for row in _rows(folder / "corpus.jsonl"):
        metadata = {"title": row["title"]} if row.get("title") else {}
        corpus.append(Document(id=row["id"], page_content=row["text"], metadata=metadata))
    conversations = []
    for row in _rows(folder / "tasks.jsonl"):
        users, agents = row["user_turns"][:-1], row.get("agent_turns") or []
        answers = [*agents, *[None] * len(users)][: len(users)]
        told = [Told(run=row["id"], query=q, response=a) for q, a in zip(users, answers, strict=True)]
        if told and row["last"].strip() and row["gold"]:
            question = Question(text=row["last"], gold=tuple(row["gold"]), category=row["set"], told=told)
            conversations.append(Conversation(questions=[question]))
    return Dialogues(corpus=corpus, conversations=conversations)


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines, without blank lines."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def musique(folder: Path, unrelated: int, *, between: bool = False) -> Dialogues:
    """Dependent steps of MuSiQue as dialogues: "#1" becomes "it", which the answer before names.

    Args:
        folder: With musique_train.json and its corpus.
        unrelated: How many turns on other subjects stand before each dialogue.
        between: Whether they stand before its last question instead.
    """
    rows = json.loads((folder / "musique_train.json").read_text())
    passages = json.loads((folder / "musique_train_corpus.json").read_text())
    ids = {(one["title"], one["text"]): f"{at}" for at, one in enumerate(passages)}
    steps = [(row, step) for row in rows for step in row["question_decomposition"]]
    alone = [
        (row["id"], Told(run="m", query=step["question"], response=step["answer"]))
        for row, step in steps
        if "#" not in step["question"]
    ]
    conversations = []
    for at, row in enumerate(rows):
        others = [turn for id, turn in alone[at:] + alone[:at] if id != row["id"]][:unrelated]
        told: list[Told] = []
        questions = []
        for step in row["question_decomposition"]:
            text = _HASH.sub("it", step["question"])
            paragraph = row["paragraphs"][step["paragraph_support_idx"]]
            gold = ids.get((paragraph["title"], paragraph["paragraph_text"]))
            if "#" in step["question"] and gold is not None:
                history = [*told, *others] if between else [*others, *told]
                questions.append(Question(text=text, gold=(gold,), told=history))
            told.append(Told(run="m", query=text, response=step["answer"], sources=(gold,) if gold else ()))
        if questions:
            conversations.append(Conversation(questions=questions))
    corpus = [
        Document(id=id, page_content=text, metadata={"title": title}) for (title, text), id in ids.items()
    ]
    return Dialogues(corpus=corpus, conversations=conversations)
