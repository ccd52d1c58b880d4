"""Transcripts of coding agents and exports of chats, read as turns.

Three forms: ``claude`` and ``codex`` are the lines of JSON that Claude Code and the Codex CLI write of a
session; ``chatgpt`` is the ``conversations.json`` of an export, or the ZIP file with it. There a conversation
is a tree, since messages are edited and answers are made again; the branch that was shown last counts.

What programs write in the user's name (environments, reminders, summaries), side conversations of subagents
and what models think are left out, and so is the output of tools, unless it is asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import BadZipFile, ZipFile, is_zipfile

from linkstore.errors import DocumentError
from linkstore.memory.names import has_words
from linkstore.memory.sessions import LONGEST_KEY_PART, SessionKey
from linkstore.memory.turns import name_writing

if TYPE_CHECKING:
    from linkstore.memory.conversation import ConversationMemory

MOST_OUTPUT: Final = 2_000
"""Characters that are kept of each output of a tool."""
_BY_PROGRAM: Final = re.compile(
    r"<(?:INSTRUCTIONS|\w+[-_][\w-]+)>.*</[\w-]+>$|# AGENTS\.md instructions|Caveat: The messages below",
    re.DOTALL,
)
"""What a program wrote in the user's name: an element with a name of two words, or a known opening."""
_EXPORT: Final = re.compile(r"(?:^|/)conversations[^/]*\.json$")
_HIDDEN: Final = "is_visually_hidden_from_conversation"
_TEXTS: Final = (None, "text", "input_text", "output_text")
"""The types of blocks with something that was said."""
_Part = tuple[str, Any, Any, Any, Any]
"""The role and the content of a message, its session, its key and its time, as they are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a transcript.

    Args:
        session: The name of its session.
        role: ``"user"``, ``"assistant"`` or ``"tool"``.
        text: What was said.
        key: Names the message within its session.
        time: When; None if the transcript does not say.
    """

    session: str
    role: str
    text: str
    key: str
    time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What was said, and what could not be read.

    Args:
        messages: In order.
        broken: The numbers of lines, or of conversations, that are not of the form, from 1.
        unfinished: Whether the last line is incomplete, because it is being written.
    """

    messages: tuple[Message, ...]
    broken: tuple[int, ...] = ()
    unfinished: bool = False


def read_transcript(form: str, path: Path, *, tools: bool = False) -> Transcript:
    """Read a file of the form ``"claude"``, ``"codex"`` or ``"chatgpt"``.

    Args:
        form: The program that wrote it.
        path: The file.
        tools: Whether the output of tools is read, the first :data:`MOST_OUTPUT` characters of each.

    Raises:
        DocumentError: If an export of chats is damaged, or is none.
        OSError: If the file cannot be read.
    """
    messages: list[Message] = []
    broken: list[int] = []
    unfinished = False
    for number, entry, whole in _read_export(path) if form == "chatgpt" else _read_lines(path):
        if not isinstance(entry, dict):
            broken += [number] * whole
            unfinished = not whole
            continue
        for role, content, session, key, time in READERS[form](entry):
            text = _clean(_join_texts(content)).strip()
            text = text[:MOST_OUTPUT] if role == "tool" else text
            if (
                has_words(text)
                and (tools or role != "tool")
                and not (role == "user" and _BY_PROGRAM.match(text))
            ):
                name = _clean(session or path.stem)[:LONGEST_KEY_PART]
                key = _clean(key or f"line {number}")
                messages.append(Message(session=name, role=role, text=text, key=key, time=_read_time(time)))
    return Transcript(messages=tuple(messages), broken=tuple(broken), unfinished=unfinished)


def import_transcript(
    memory: ConversationMemory, transcript: Transcript, written: datetime, **owner: str | None
) -> tuple[int, int]:
    """Write the new turns of a transcript, and complete old ones with their answers.

    Args:
        memory: Where.
        transcript: What was said.
        written: The time of messages before the first that has one.
        owner: ``user_id`` and ``agent_id`` of the sessions.

    Returns:
        How many turns were written or completed, and how many were there already.
    """
    sessions: dict[str, list[Message]] = {}
    for message in transcript.messages:
        sessions.setdefault(message.session, []).append(message)
    fresh = same = 0
    for name, messages in sessions.items():
        session, moment = SessionKey(run_id=name, **owner), written
        answers = {turn.writing: turn.response for turn in memory.turns(session)}
        for question, response in _pair_messages(messages):
            moment = question.time or moment
            if answers.get(name_writing(question.key, question.text), "") == response:
                same += 1
            else:
                memory.add(session, question.text, response, key=question.key, time=moment)
                fresh += 1
    return fresh, same


def _pair_messages(messages: Iterable[Message]) -> Iterator[tuple[Message, str | None]]:
    """Yield each message of the user, and all that was answered, each once."""
    answers: dict[Message, list[str]] = {}
    for message in dict.fromkeys(messages):
        if message.role == "user":
            answers[message] = []
        else:
            start = replace(message, role="user", text="")
            answers.setdefault(next(reversed(answers), start), []).append(message.text)
    for question, texts in answers.items():
        yield question, "\n\n".join(texts) or None


def _read_lines(path: Path) -> Iterator[tuple[int, Any, bool]]:
    """Yield the number of each line, its value, None if it is no JSON, and whether it is whole."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    value = json.loads(line.decode(errors="replace").lstrip("\ufeff"))
                except (ValueError, RecursionError):
                    value = None
                yield number, value, line.endswith(b"\n") or value is not None


def _read_export(path: Path) -> Iterator[tuple[int, Any, bool]]:
    """Yield the conversations of an export."""
    try:
        texts = [path.read_bytes()]
        if is_zipfile(path):
            with ZipFile(path) as archive:
                texts = [archive.read(name) for name in archive.namelist() if _EXPORT.search(name)]
        exports = [json.loads(text.decode(errors="replace").lstrip("\ufeff")) for text in texts]
    except (ValueError, RecursionError, BadZipFile) as error:
        raise DocumentError(f"{path} is no export of ChatGPT, or is damaged: {error}") from error
    if not exports or not all(isinstance(export, list) for export in exports):
        raise DocumentError(f"{path} is no export of ChatGPT: it has no list of conversations")
    for number, conversation in enumerate(chain.from_iterable(exports), 1):
        yield number, conversation if _get_dict(conversation, "mapping") else None, True


def _read_claude(entry: Mapping[str, Any]) -> Iterator[_Part]:
    role, content = entry.get("type"), _get_dict(entry, "message").get("content")
    if role in {"user", "assistant"} and not any(
        map(entry.get, ("isSidechain", "isMeta", "isCompactSummary"))
    ):
        about = (entry.get("sessionId"), entry.get("uuid"), entry.get("timestamp"))
        yield role, content, *about
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                yield "tool", block.get("content"), *about


def _read_codex(entry: Mapping[str, Any]) -> Iterator[_Part]:
    values = _get_dict(entry, "payload") or entry
    kind, role = values.get("type"), values.get("role")
    about = (None, None, entry.get("timestamp"))
    if kind == "message" and role in {"user", "assistant"}:
        yield role, values.get("content"), *about
    elif kind in {"function_call_output", "custom_tool_call_output"}:
        yield "tool", values.get("output"), *about


def _read_chatgpt(entry: Mapping[str, Any]) -> Iterator[_Part]:
    """Yield the messages of the branch that was shown last, else of the last one."""
    nodes, branch = entry["mapping"], dict[str, Mapping[str, Any]]()
    at = entry.get("current_node")
    at = at if isinstance(at, str) and at in nodes else next(reversed(nodes), None)
    while isinstance(at, str) and at in nodes and at not in branch:
        branch[at] = _get_dict(nodes[at], "message")
        at = nodes[at].get("parent") if isinstance(nodes[at], dict) else None
    for key, message in reversed(branch.items()):
        role, content = _get_dict(message, "author").get("role"), _get_dict(message, "content")
        to_user = message.get("recipient", "all") == "all" and not _get_dict(message, "metadata").get(_HIDDEN)
        if role == "tool" or (role in {"user", "assistant"} and to_user):
            texts = content.get("parts") or content.get("text")
            session = entry.get("conversation_id") or entry.get("id") or next(iter(nodes))
            yield role, texts, session, key, message.get("create_time")


READERS: Final = {"claude": _read_claude, "codex": _read_codex, "chatgpt": _read_chatgpt}


def _get_dict(values: object, name: str) -> Mapping[str, Any]:
    """Return the dict that has this name among values, empty if there is none."""
    value = values.get(name) if isinstance(values, dict) else None
    return value if isinstance(value, dict) else {}


def _clean(value: object) -> str:
    """Return a text without what no store takes: lone surrogates and NUL."""
    return str(value).encode(errors="replace").decode().replace("\0", "")


def _join_texts(content: object) -> str:
    """Return the texts in the content of a message: a text, or a list of texts and of blocks."""
    blocks = content if isinstance(content, list) else [content]
    texts = [
        block.get("text") if isinstance(block, dict) and block.get("type") in _TEXTS else block
        for block in blocks
    ]
    return "\n".join(text for text in texts if isinstance(text, str))


def _read_time(value: object) -> datetime | None:
    """Read a time as ISO 8601 or seconds since 1970; None if it is no time."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) and value else None
    except (ValueError, OverflowError, OSError):
        return None
