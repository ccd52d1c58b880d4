"""``linkstore memory``: look at conversations, recall from them, and forget them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstore.cli.commands import JsonOption, StoreOption
from linkstore.cli.exits import UsageError
from linkstore.cli.output import get_stdout, hit_to_dict, inform, print_result, show_hits, write_json
from linkstore.cli.query import check_question
from linkstore.cli.stores import open_store, refuse_options
from linkstore.core.display import escape_unprintable, format_count
from linkstore.errors import LinkStoreError, StoreNotFoundError

if TYPE_CHECKING:
    from linkstore.memory.conversation import ConversationMemory
    from linkstore.memory.recall import Recall
    from linkstore.memory.sessions import SessionKey
    from linkstore.memory.turns import Turn


def memory(
    store: StoreOption,
    session: Annotated[str | None, typer.Argument()] = None,
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
    json: JsonOption = False,
) -> None:
    """List conversations and show their turns, recall from them, and forget them.

    Lists the sessions, or shows the turns of SESSION in order.

    With --recall, prints the turns and chunks that answer a question, which is searched for together with
    the last turns of SESSION. Nothing is stored.

    With --forget, forgets the turns to which all options apply, with notes made from them, and erases them
    from the files of the store. With SESSION, --user and --agent name the session; without it, all sessions
    of the user or agent.

    Args:
        session (SESSION): The conversation: its run_id; default: list all.
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
    """
    of_recall = {"knowledge": knowledge, "everywhere": everywhere, "k": k, "as_of": as_of}
    of_forget = {"entity": entity, "before": before, "preview": preview}
    if recall is None:
        refuse_options("goes with --recall only", **of_recall)
    if not forget:
        refuse_options("goes with --forget only", **of_forget)
    if recall is not None or forget:
        mode = "recall" if recall is not None else "forget"
        refuse_options(f"does not go with --{mode}", last=last, forget=forget and mode == "recall")
    with _open_memory(store, knowledge) as opened:
        if recall is not None:
            if session is None:
                raise UsageError("--recall asks one conversation; give its SESSION")
            moment = None if as_of is None else _parse_moment("--as-of", as_of)
            _recall(opened, _make_session_key(session, user, agent), recall, k or 5, everywhere, moment, json)
        elif forget:
            _forget(opened, session, user, agent, entity, before, preview=preview, json=json)
        elif session is None:
            refuse_options("goes with SESSION only", last=last)
            keys = opened.sessions(user_id=user, agent_id=agent)
            rows = [{"user": key.user_id, "agent": key.agent_id, "session": key.run_id} for key in keys]
            print_result(rows, _show_sessions, json=json)
        else:
            turns = _fetch_turns(opened, _make_session_key(session, user, agent), last)
            print_result(turns, _show_turns, json=json)


def _show_sessions(rows: Sequence[Mapping[str, str | None]]) -> None:
    for row in rows:
        of = "".join(f"  {name} {row[name]}" for name in ("user", "agent") if row[name] is not None)
        get_stdout().print(escape_unprintable(f"{row['session']}{of}"))
    if not rows:
        inform("no session: no turn is stored")


def _recall(
    memory: ConversationMemory,
    key: SessionKey,
    question: str,
    k: int,
    everywhere: bool,
    as_of: datetime | None,
    json: bool,
) -> None:
    """Show what answers a question."""
    check_question(question)
    recalled = memory.recall(key, question, k=k, everywhere=everywhere, as_of=as_of)
    if json:
        write_json(_recall_to_dict(recalled))
    else:
        _show_recall(recalled)
    if recalled.reason is not None:
        inform(f"nothing recalled: {recalled.reason}")


def _forget(
    memory: ConversationMemory,
    session: str | None,
    user: str | None,
    agent: str | None,
    entity: str | None,
    before: str | None,
    *,
    preview: bool,
    json: bool,
) -> None:
    """Forget turns, or say which would go."""
    moment = None if before is None else _parse_moment("--before", before)
    if session is None and user is None and agent is None and entity is None and moment is None:
        raise UsageError("say what to forget: SESSION, --user, --agent, --entity or --before")
    if session is not None:
        key = _make_session_key(session, user, agent)
        gone = memory.forget(key, entity=entity, before=moment, preview=preview)
    else:
        gone = memory.forget(user_id=user, agent_id=agent, entity=entity, before=moment, preview=preview)
    if json:
        write_json({"turns": dict(gone.turns), "notes": list(gone.notes)})
    also = f" and {format_count(len(gone.notes), 'note')}" if gone.notes else ""
    inform(f"{'would forget' if preview else 'forgot'} {format_count(len(gone), 'turn')}{also}")


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
                f"there is no store of conversations at {store}; a ConversationMemory makes one (see"
                " linkstore.memory)"
            ) from error
        chunks = None if knowledge is None else stack.enter_context(open_store(knowledge))
        yield stack.enter_context(ConversationMemory(turns, chunks))


def _make_session_key(session: str, user: str | None, agent: str | None) -> SessionKey:
    from linkstore.memory.sessions import SessionKey

    return SessionKey(run_id=session, user_id=user, agent_id=agent)


def _fetch_turns(memory: ConversationMemory, key: SessionKey, last: int | None) -> Sequence[Turn]:
    """Return the turns of a session, or its notes if it has nothing else.

    Raises:
        LinkStoreError: If the session has none.
    """
    turns = memory.turns(key, last) or memory.notes(key)
    if not turns:
        of = "".join(
            f" of the {name} {part!r}"
            for name, part in (("user", key.user_id), ("agent", key.agent_id))
            if part is not None
        )
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


def _show_recall(found: Recall) -> None:
    if found.resolved != found.question:
        get_stdout().print(escape_unprintable(f"meaning: {found.resolved}"), style="bold")
    _show_turns(found.turns)
    show_hits(found.chunks, found.resolved)


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
