"""Conversations with gold, told to a memory turn by turn: what is asked, and what should be recalled."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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
    """A question to be asked after ``told`` turns, when, and the names of what answers it."""

    text: str
    gold: tuple[str, ...]
    category: str = ""
    told: Sequence[Told] = ()
    rewrite: str | None = None
    time: datetime | None = None


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


def longmemeval(path: Path) -> Iterator[Conversation]:
    """LongMemEval: each question has its own sessions; gold are the turns that are marked to have the answer.

    Questions without such a turn, which ask for what was never said, are left out.
    """
    for row in json.loads(path.read_text()):
        turns: list[Told] = []
        gold: list[str] = []
        sessions = zip(
            row["haystack_session_ids"], row["haystack_dates"], row["haystack_sessions"], strict=True
        )
        for run, date, messages in sessions:
            for at, exchange in enumerate(_exchanges(messages)):
                name = f"{run}:{at}"
                turns.append(_tell_exchange(exchange, run, name, _find_date(date)))
                gold += [name] * any(message.get("has_answer") for message in exchange)
        if gold:
            question = Question(
                text=row["question"],
                gold=tuple(gold),
                category=row["question_type"],
                time=_find_date(row.get("question_date")),
            )
            yield Conversation(turns=turns, questions=[question], everywhere=True)


def beam(path: Path) -> Iterator[Conversation]:
    """BEAM: long conversations in parts; gold are the turns that the questions name by the ids of messages.

    The file has rows of the published table as a list, or one a line. Ids that several messages have say
    nothing, and are left out, as are questions without any other.
    """
    text = path.read_text()
    rows = json.loads(text) if text.lstrip().startswith("[") else _rows(path)
    for row in rows:
        turns: list[Told] = []
        names: dict[Any, list[str]] = {}
        for part, messages in enumerate(_parts(row["chat"])):
            time = next(filter(None, (_find_date(message.get("time_anchor")) for message in messages)), None)
            for at, exchange in enumerate(_exchanges(messages)):
                turns.append(_tell_exchange(exchange, f"part {part}", f"{part}:{at}", time))
                for message in exchange:
                    names.setdefault(message.get("id"), []).append(f"{part}:{at}")
        probing = row["probing_questions"]
        by_kind = ast.literal_eval(probing) if isinstance(probing, str) else probing
        questions = []
        for kind, asked in by_kind.items():
            for question in asked:
                ids = _numbers(question.get("source_chat_ids"))
                gold = tuple(dict.fromkeys(names[id][0] for id in ids if len(names.get(id, ())) == 1))
                if gold:
                    questions.append(Question(text=question["question"], gold=gold, category=kind))
        yield Conversation(turns=turns, questions=questions, everywhere=True)


def _parts(chat: Any) -> Iterator[list[dict[str, Any]]]:
    """The lists of messages in a chat, however deep they lie."""
    values = list(chat.values()) if isinstance(chat, dict) else list(chat)
    if values and all(isinstance(value, dict) and "role" in value for value in values):
        yield values
    else:
        for value in values:
            if isinstance(value, (dict, list)):
                yield from _parts(value)


def _exchanges(messages: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Each message of the user with the answers to it."""
    exchange: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "user" and exchange:
            yield exchange
            exchange = []
        exchange.append(message)
    if exchange:
        yield exchange


def _tell_exchange(exchange: Sequence[dict[str, Any]], run: str, name: str, time: datetime | None) -> Told:
    said = [str(message["content"]) for message in exchange if message["role"] == "user"]
    answers = [str(message["content"]) for message in exchange if message["role"] != "user"]
    response = "\n".join(answers) or None
    return Told(run=run, query="\n".join(said), response=response, name=name, time=time)


def _numbers(values: Any) -> list[int]:
    """The numbers in lists and dicts, however deep they lie."""
    if isinstance(values, int):
        return [values]
    inner = values.values() if isinstance(values, dict) else values if isinstance(values, list) else ()
    return [number for value in inner for number in _numbers(value)]


def _find_date(text: Any) -> datetime | None:
    """A time as "2023/05/20 (Sat) 02:21" or "March-15-2024"; None for anything else."""
    plain = re.sub(r"\s*\([^)]*\)", "", str(text)).strip()
    for form in ("%Y/%m/%d %H:%M", "%Y/%m/%d", "%B-%d-%Y", "%B %d, %Y"):
        with suppress(ValueError):
            return datetime.strptime(plain, form).replace(tzinfo=UTC)
    return None


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
