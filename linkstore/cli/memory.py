"""``linkstore memory``: look at conversations, recall from them, forget them, and import transcripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from linkstore.cli.commands import JsonOption, StoreOption
from linkstore.cli.exits import SOURCE_INCOMPLETE, UsageError
from linkstore.cli.output import get_stdout, hit_to_dict, inform, print_result, show_hits, write_json
from linkstore.cli.query import check_question
from linkstore.cli.stores import open_store, refuse_options
from linkstore.core.display import escape_unprintable, format_count
from linkstore.errors import LinkStoreError, SourceNotFoundError, StoreNotFoundError

if TYPE_CHECKING:
    from linkstore.memory.conversation import ConversationMemory
    from linkstore.memory.recall import Recall
    from linkstore.memory.sessions import SessionKey
    from linkstore.memory.turns import Turn

MOST_BROKEN: Final = 5
"""How many damaged entries of a file are named."""


def memory(
    store: StoreOption,
    words: Annotated[list[str] | None, typer.Argument()] = None,
    recall: str | None = None,
    forget: bool = False,
    user: str | None = None,
    agent: str | None = None,
    last: Annotated[int | None, typer.Option(min=1)] = None,
    knowledge: str | None = None,
    everywhere: bool = False,
    k: Annotated[int | None, typer.Option("-k", min=1)] = None,
    as_of: str | None = None,
    entity: str | None = None,
    before: str | None = None,
    preview: bool = False,
    tools: bool = False,
    json: JsonOption = False,
) -> None:
    """List conversations, show their turns, recall from them, forget them, and import transcripts.

    Lists the sessions, or shows the turns of SESSION in order.

    "import claude FILE…" reads transcripts of Claude Code, "import codex" those of the Codex CLI, and
    "import chatgpt" the conversations.json or the ZIP file of an export. Only what is new is written, so it
    may be run again. Without --user, the sessions are those of the user "me".

    With --recall, prints the turns and chunks that answer a question, which is searched for together with
    the last turns of SESSION; without it, in all sessions of --user. Nothing is stored.

    With --forget, forgets the turns to which all options apply, with notes made from them, and erases them
    from the files of the store. With SESSION, --user and --agent name the session; without it, all sessions
    of the user or agent.

    Args:
        words (SESSION): The conversation: its run_id; or import claude|codex|chatgpt FILE…; default: list.
        recall (QUESTION): Recall what answers this question.
        forget: Forget turns.
        user (ID): The user of the session.
        agent (ID): The agent of the session.
        last (N): Only the last N turns; default all.
        knowledge (PLACE): With --recall: the store of knowledge to recall chunks from, too.
        everywhere: With --recall: also recall other sessions of the same user and agent.
        k: With --recall: number of turns and of chunks, at most; default 5.
        as_of (TIME): With --recall: what was known at this day or time; in UTC.
        entity (NAME): With --forget: turns that mention this.
        before (TIME): With --forget: turns before this day or time, such as 2026-03-31; in UTC.
        preview: With --forget: say what would go, and erase nothing.
        tools: With import: read the output of tools, too.
    """
    if words and words[0] == "import" and len(words) > 1:
        why = "does not go with import"
        refuse_options(why, recall=recall, forget=forget, last=last, everywhere=everywhere, k=k, json=json)
        refuse_options(why, as_of=as_of, entity=entity, before=before)
        _import(store, words[1], words[2:], tools=tools, user_id=user or "me", agent_id=agent)
        return
    refuse_options("goes with import only", tools=tools)
    if words and len(words) > 1:
        raise UsageError(f"give one SESSION, not {len(words)}; quote a name with spaces; forget by --forget")
    session = words[0] if words else None
    of_recall = {"knowledge": knowledge, "everywhere": everywhere, "k": k, "as_of": as_of}
    of_forget = {"entity": entity, "before": before, "preview": preview}
    if recall is None:
        refuse_options("goes with --recall only", **of_recall)
    if not forget:
        refuse_options("goes with --forget only", **of_forget)
    if recall is not None or forget:
        mode = "recall" if recall is not None else "forget"
        refuse_options(f"does not go with --{mode}", last=last, forget=forget and mode == "recall")
    owner = {"run_id": session, "user_id": user, "agent_id": agent}
    with _open_memory(store, knowledge) as opened:
        if recall is not None:
            if session is None and user is None:
                raise UsageError("--recall asks one conversation or a user; give its SESSION, or --user")
            moment = None if as_of is None else _parse_moment("--as-of", as_of)
            key = _find_session(opened, owner)
            check_question(recall)
            recalled = opened.recall(key, recall, k=k or 5, everywhere=everywhere, as_of=moment)
            _show_recall(recalled, json=json)
        elif forget:
            moment = None if before is None else _parse_moment("--before", before)
            _forget(opened, owner, {"entity": entity, "before": moment}, preview=preview, json=json)
        elif session is None:
            refuse_options("goes with SESSION only", last=last)
            keys = opened.sessions(user_id=user, agent_id=agent)
            rows = [{"user": key.user_id, "agent": key.agent_id, "session": key.run_id} for key in keys]
            print_result(rows, _show_sessions, json=json)
        else:
            turns = _fetch_turns(opened, _find_session(opened, owner), last)
            print_result(turns, _show_turns, json=json)


def _import(store: str, form: str, files: Sequence[str], *, tools: bool, **owner: str | None) -> None:
    """Import transcripts.

    Raises:
        UsageError: If the form is unknown, there is no file, or the store has something else.
        SourceNotFoundError: If a file cannot be read.
        typer.Exit: If a part of a file could not be read.
    """
    from linkstore.memory.conversation import ConversationMemory
    from linkstore.memory.transcripts import READERS, import_transcript, read_transcript

    if form not in READERS or not files:
        missing = "no file is named" if form in READERS else f"{form} is none of these"
        raise UsageError(f"import takes claude, codex or chatgpt, and files: {missing}")
    fresh = same = broken = 0
    with open_store(store, create=True) as turns, ConversationMemory(turns) as memory:
        if turns.survey().documents and not memory.sessions():
            raise UsageError(
                f"{store} has documents that are no conversations; give another one: --store turns"
            )
        for file in files:
            path = Path(file)
            try:
                transcript = read_transcript(form, path, tools=tools)
                written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            except OSError as error:
                raise SourceNotFoundError(f"{file} cannot be read: {error.strerror or error}") from error
            more, old = import_transcript(memory, transcript, written, **owner)
            fresh, same, broken = fresh + more, same + old, broken + len(transcript.broken)
            for number in transcript.broken[:MOST_BROKEN]:
                inform(f"{file}: entry {number} is damaged, and was left out")
            if not transcript.messages:
                inform(f"{file}: no turn was found; is it a transcript of {form}?")
            if transcript.unfinished:
                inform(f"{file}: its last line is not complete yet; import it again later")
    inform(
        f"imported {format_count(fresh, 'turn')} of the user {owner['user_id']!r}; {same} were there already"
    )
    if broken:
        raise typer.Exit(SOURCE_INCOMPLETE)


def _show_sessions(rows: Sequence[Mapping[str, str | None]]) -> None:
    for row in rows:
        of = "".join(f"  {name} {row[name]}" for name in ("user", "agent") if row[name] is not None)
        get_stdout().print(escape_unprintable(f"{row['session']}{of}"))
    if not rows:
        inform("no session: no turn is stored")


def _forget(
    memory: ConversationMemory, owner: dict[str, Any], what: dict[str, Any], *, preview: bool, json: bool
) -> None:
    """Forget turns of a session or its owner, or say which would go."""
    if all(value is None for value in (*owner.values(), *what.values())):
        raise UsageError("say what to forget: SESSION, --user, --agent, --entity or --before")
    if owner["run_id"] is not None:
        gone = memory.forget(_find_session(memory, owner), **what, preview=preview)
    else:
        gone = memory.forget(user_id=owner["user_id"], agent_id=owner["agent_id"], **what, preview=preview)
    if json:
        write_json({"turns": dict(gone.turns), "notes": list(gone.notes)})
    also = f" and {format_count(len(gone.notes), 'note')}" if gone.notes else ""
    why = f": {gone.reason}" if gone.reason else ""
    inform(f"{'would forget' if preview else 'forgot'} {format_count(len(gone), 'turn')}{also}{why}")


def _parse_moment(option: str, text: str) -> datetime:
    """Read a moment as people write it, in UTC unless it has a zone.

    Raises:
        UsageError: If it is not in the form of ISO 8601.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"{option} {text!r} is not a time such as 2026-03-31 or 2026-03-31T12:00Z"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@contextmanager
def _open_memory(store: str, knowledge: str | None = None) -> Iterator[ConversationMemory]:
    from linkstore.memory.conversation import ConversationMemory

    with ExitStack() as stack:
        try:
            turns = stack.enter_context(open_store(store))
        except StoreNotFoundError as error:
            raise StoreNotFoundError(
                f"there is no store of conversations at {store}; make one with: linkstore memory import, or"
                " by a ConversationMemory (see linkstore.memory)"
            ) from error
        chunks = None if knowledge is None else stack.enter_context(open_store(knowledge))
        yield stack.enter_context(ConversationMemory(turns, chunks))


def _find_session(memory: ConversationMemory, parts: dict[str, Any]) -> SessionKey:
    """Return the session of these parts, else the only one with this name; it may be new.

    Raises:
        UsageError: If several users or agents have a session of this name.
    """
    from linkstore.memory.sessions import SessionKey

    key = SessionKey(**parts)
    stored = memory.sessions(user_id=key.user_id, agent_id=key.agent_id)
    named = [own for own in stored if key.run_id is not None and own.run_id == key.run_id]
    if key in named or not named:
        return key
    if len(named) > 1:
        owners = "; ".join(f"user {own.user_id}, agent {own.agent_id}" for own in named)
        raise UsageError(f"there are {len(named)} sessions {key.run_id!r}: {owners}; give --user and --agent")
    return named[0]


def _fetch_turns(memory: ConversationMemory, key: SessionKey, last: int | None) -> Sequence[Turn]:
    """Return the turns of a session, or its notes if it has nothing else.

    Raises:
        LinkStoreError: If the session has none.
    """
    turns = memory.turns(key, last) or memory.notes(key)
    if not turns:
        parts = (("user", key.user_id), ("agent", key.agent_id))
        of = "".join(f" of the {name} {part!r}" for name, part in parts if part is not None)
        raise LinkStoreError(
            f"there is no session {key.run_id!r}{of}; list the sessions with: linkstore memory"
        )
    return turns


def _show_turns(turns: Sequence[Turn]) -> None:
    console = get_stdout()
    for turn in turns:
        place = f"{turn.ordinal}." if turn.ordinal else "note"
        until = "" if turn.until is None else f", until {turn.until:%Y-%m-%d}"
        console.print(f"{place} {turn.time:%Y-%m-%d %H:%M} UTC{until}", style="dim")
        _show_text("User", turn.query)
        if turn.response is not None:
            _show_text("Assistant", turn.response)


def _show_text(speaker: str, text: str) -> None:
    console = get_stdout()
    for number, line in enumerate(text.split("\n")):
        console.print(escape_unprintable(f"   {speaker + ':' if not number else ''} {line}".rstrip()))


def _show_recall(found: Recall, *, json: bool) -> None:
    if json:
        write_json(_recall_to_dict(found))
    else:
        if found.resolved != found.question:
            get_stdout().print(escape_unprintable(f"meaning: {found.resolved}"), style="bold")
        _show_turns(found.turns)
        show_hits(found.chunks, found.resolved)
    if found.reason is not None:
        inform(f"nothing recalled: {found.reason}")


def _recall_to_dict(found: Recall) -> dict[str, Any]:
    turns = [
        {
            **turn.to_dict(),
            "session": turn.session.run_id,
            "score": score,
            "until": turn.until and turn.until.isoformat(),
        }
        for turn, score in zip(found.turns, found.scores, strict=True)
    ]
    return {
        "question": found.question,
        "resolved": found.resolved,
        "entities": list(found.entities),
        "focus": list(found.focus),
        "turns": turns,
        "chunks": [hit_to_dict(hit, found.resolved) for hit in found.chunks],
        "reason": found.reason,
    }
