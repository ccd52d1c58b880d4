"""``linkstore memory import``: transcripts of coding agents and exports of chats become sessions."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from documented import linkstore

from linkstore import LinkStore
from linkstore.cli import exits
from linkstore.memory import ConversationMemory, SessionKey, Turn

HUGE = "x" * 3_000_000


def claude_lines() -> list[dict[str, Any]]:
    """A session of Claude Code with a tool's output, a subagent, a reminder and a summary."""

    def line(role: str, content: Any, minute: int, **more: Any) -> dict[str, Any]:
        message = {"role": role, "content": content}
        time = f"2026-03-01T10:{minute:02d}:00.123Z"
        return {
            "type": role,
            "message": message,
            "uuid": f"u{minute}",
            "sessionId": "s1",
            "timestamp": time,
            **more,
        }

    def text(words: str) -> list[dict[str, str]]:
        return [{"type": "text", "text": words}]

    return [
        {"type": "summary", "summary": "A talk", "leafUuid": "u9"},
        line("user", "<command-name>/clear</command-name>\n<command-args></command-args>", 0),
        line("user", "Why does the parser fail on empty files?", 1),
        line("assistant", [{"type": "thinking", "thinking": "Hm."}, *text("I will read it.")], 2),
        line("assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}], 3),
        line("user", [{"type": "tool_result", "tool_use_id": "t", "content": f"parser.py {HUGE}"}], 4),
        line("assistant", text("The side agent speaks."), 5, isSidechain=True),
        line("assistant", text("It reads the first byte without a check."), 6),
        line("user", "The conversation so far was about a parser.", 7, isCompactSummary=True),
        line("user", text("Please mend it."), 8),
    ]


def codex_lines() -> list[dict[str, Any]]:
    def item(time: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": time, "type": "response_item", "payload": payload}

    def message(role: str, words: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}

    return [
        {"timestamp": "2026-03-02T09:00:00Z", "type": "session_meta", "payload": {"id": "c1"}},
        item("2026-03-02T09:00:01Z", **message("developer", "Be brief.")),
        item("2026-03-02T09:00:01Z", **message("user", "<environment_context>/tmp</environment_context>")),
        item("2026-03-02T09:00:02Z", **message("user", "Rename the module to focus.")),
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Rename the module to focus."}},
        item("2026-03-02T09:00:03Z", type="function_call", name="shell", arguments="{}"),
        item("2026-03-02T09:00:04Z", type="function_call_output", output=f"renamed {HUGE}"),
        item("2026-03-02T09:00:05Z", **message("assistant", "It is called focus now.")),
    ]


def chatgpt_export() -> list[dict[str, Any]]:
    """A conversation whose second question was edited, and whose tree has a cycle on the branch left."""

    def node(
        role: str, words: Any, parent: str | None, time: float | None = None, **more: Any
    ) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [words]}
        message = {"author": {"role": role}, "content": content, "create_time": time, **more}
        return {"message": message, "parent": parent}

    nodes = {
        "root": {"message": None, "parent": None},
        "sys": node("system", "You are helpful.", "root"),
        "q1": node("user", "Which tea has no caffeine?", "sys", 1_770_000_000.5),
        "call": node("assistant", "search('tea')", "q1", recipient="browser"),
        "tool": node("tool", f"rooibos {HUGE}", "call"),
        "a1": node("assistant", "Rooibos has none.", "tool", 1_770_000_020),
        "old": node("user", "And coffee?", "loop"),
        "loop": node("assistant", "Coffee has some.", "old"),
        "q2": node("user", {"asset_pointer": "picture"}, "a1"),
        "q3": node("user", "And cocoa?", "q2"),
    }
    return [{"conversation_id": "g1", "title": "Tea", "mapping": nodes, "current_node": "q3"}]


def write(path: Path, lines: list[Any]) -> str:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return str(path)


def run(tmp_path: Path, *words: str) -> tuple[int, str]:
    code, out, err = linkstore("memory", "import", *words, "--store", str(tmp_path / "turns"))
    assert out == ""
    return code, err


def read(tmp_path: Path, session: str, user: str = "me") -> list[Turn]:
    with LinkStore.open(tmp_path / "turns") as store, ConversationMemory(store) as memory:
        return memory.turns(SessionKey(run_id=session, user_id=user))


def show(turns: list[Turn]) -> list[tuple[str, str | None]]:
    return [(turn.query, turn.response) for turn in turns]


def test_a_session_of_claude_code_is_its_questions_and_answers(tmp_path):
    file = write(tmp_path / "a.jsonl", claude_lines())
    code, err = run(tmp_path, "claude", file)
    assert (code, err) == (0, "imported 2 turns of the user 'me'; 0 were there already\n")
    turns = read(tmp_path, "s1")
    answer = "I will read it.\n\nIt reads the first byte without a check."
    assert show(turns) == [
        ("Why does the parser fail on empty files?", answer),
        ("Please mend it.", None),
    ]
    assert [f"{turn.time:%H:%M}" for turn in turns] == ["10:01", "10:08"]


def test_the_output_of_tools_is_read_if_it_is_asked_for_and_cut(tmp_path):
    file = write(tmp_path / "a.jsonl", claude_lines())
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps(chatgpt_export()))
    assert run(tmp_path, "claude", file, "--tools")[0] == 0
    assert run(tmp_path, "codex", write(tmp_path / "c.jsonl", codex_lines()), "--tools")[0] == 0
    assert run(tmp_path, "chatgpt", str(export), "--tools")[0] == 0
    for session, output in (("s1", "parser.py x"), ("c", "renamed x"), ("g1", "rooibos x")):
        response = str(read(tmp_path, session)[0].response)
        assert output in response
        assert len(response) < 3_000


def test_a_session_of_codex_is_its_questions_and_answers(tmp_path):
    assert run(tmp_path, "codex", write(tmp_path / "c.jsonl", codex_lines()))[0] == 0
    assert show(read(tmp_path, "c")) == [("Rename the module to focus.", "It is called focus now.")]
    older = [
        {"id": "old", "timestamp": "2025-06-01T00:00:00Z"},
        *(line["payload"] for line in codex_lines()[3:4]),
    ]
    assert run(tmp_path, "codex", write(tmp_path / "d.jsonl", older))[0] == 0
    assert show(read(tmp_path, "d")) == [("Rename the module to focus.", None)]


@pytest.mark.parametrize("zipped", [False, True])
def test_of_a_tree_of_messages_the_branch_shown_last_counts(tmp_path, zipped):
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps(chatgpt_export()))
    file = export
    if zipped:
        file = tmp_path / "export.zip"
        with zipfile.ZipFile(file, "w") as archive:
            archive.write(export, "chats/conversations.json")
            archive.writestr("chat.html", "<html>")
    assert run(tmp_path, "chatgpt", str(file), "--user", "ann")[0] == 0
    turns = read(tmp_path, "g1", "ann")
    assert show(turns) == [("Which tea has no caffeine?", "Rooibos has none."), ("And cocoa?", None)]
    assert turns[0].time.year == 2026
    assert turns[1].time == turns[0].time, "without a time it is that of the message before"


@pytest.mark.parametrize("last", ["q1", "loop", "gone", None, 7, ["q3"]])
def test_a_tree_with_any_last_node_ends(tmp_path, last):
    export = tmp_path / "conversations.json"
    export.write_text(json.dumps([{**chatgpt_export()[0], "current_node": last}]))
    assert run(tmp_path, "chatgpt", str(export))[0] == 0
    assert read(tmp_path, "g1")


def test_a_second_run_writes_only_what_is_new(tmp_path):
    lines = claude_lines()
    path = tmp_path / "a.jsonl"
    run(tmp_path, "claude", write(path, lines))
    before = read(tmp_path, "s1")
    assert "imported 0 turns of the user 'me'; 2 were there already" in run(tmp_path, "claude", str(path))[1]
    assert read(tmp_path, "s1") == before
    answer = {"role": "assistant", "content": "Mended."}
    lines.append({**lines[-1], "type": "assistant", "uuid": "u20", "message": answer})
    question = {"role": "user", "content": "Thanks. Which test is missing?"}
    lines.append({**lines[-1], "type": "user", "uuid": "u21", "message": question})
    assert (
        "imported 2 turns of the user 'me'; 1 were there already"
        in run(tmp_path, "claude", write(path, lines))[1]
    )
    assert show(read(tmp_path, "s1"))[1:] == [
        ("Please mend it.", "Mended."),
        ("Thanks. Which test is missing?", None),
    ]


def test_lines_twice_in_a_file_and_files_given_twice_are_one(tmp_path):
    file = write(tmp_path / "a.jsonl", [line for line in claude_lines() for _ in range(2)])
    assert run(tmp_path, "claude", file, file)[0] == 0
    assert len(read(tmp_path, "s1")) == 2
    assert str(read(tmp_path, "s1")[0].response).count("first byte") == 1


def test_the_same_words_said_twice_are_two_turns(tmp_path):
    one = claude_lines()[2]
    assert run(tmp_path, "claude", write(tmp_path / "a.jsonl", [one, {**one, "uuid": "again"}]))[0] == 0
    assert len(read(tmp_path, "s1")) == 2


def test_damaged_lines_are_named_and_the_rest_is_read(tmp_path):
    lines = [json.dumps(line) for line in claude_lines()]
    lines[3:3] = [
        '{"type": "user", "message": {"con',
        "[1, 2]",
        "null",
        "[" * 100_000,
        "\ufeff",
        '{"type": 7}',
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines) + "\n")
    code, err = run(tmp_path, "claude", str(path))
    assert code == exits.SOURCE_INCOMPLETE
    assert "a.jsonl: entry 4 is damaged" in err
    assert "imported 2 turns" in err
    assert show(read(tmp_path, "s1"))[0][0] == "Why does the parser fail on empty files?"


def test_a_last_line_that_is_being_written_is_read_the_next_time(tmp_path):
    path = tmp_path / "a.jsonl"
    whole = "".join(f"{json.dumps(line)}\n" for line in claude_lines())
    path.write_text(whole[:-20])
    code, err = run(tmp_path, "claude", str(path))
    assert code == 0
    assert "its last line is not complete yet" in err
    assert len(read(tmp_path, "s1")) == 1
    path.write_text(whole[:-1])
    assert run(tmp_path, "claude", str(path))[0] == 0
    assert len(read(tmp_path, "s1")) == 2


@pytest.mark.parametrize(
    "time", [None, "", "soon", "2026-13-45T00:00:00Z", 7, "0001-01-01T00:00:00+14:00", {}, 1e300]
)
def test_messages_without_a_time_have_that_of_the_file(tmp_path, time):
    lines = [{**line, "timestamp": time} for line in claude_lines()]
    assert run(tmp_path, "claude", write(tmp_path / "a.jsonl", lines))[0] == 0
    moment = 7 if time == 7 else (tmp_path / "a.jsonl").stat().st_mtime
    assert [turn.time.timestamp() for turn in read(tmp_path, "s1")] == pytest.approx([moment] * 2)


@pytest.mark.parametrize("name", ["s\ud800", "s\0t", "s" * 900, 5, {"a": 1}, None])
@pytest.mark.parametrize(
    "words", ["a \ud800 b", "nul \0 here", "?!", "", 7, [7], [{"type": "text", "text": None}]]
)
def test_whatever_a_line_has_the_import_ends(tmp_path, name, words):
    line = {**claude_lines()[2], "sessionId": name, "uuid": name, "message": {"content": words}}
    assert run(tmp_path, "claude", write(tmp_path / "a.jsonl", [line, *claude_lines()]))[0] == 0
    assert len(read(tmp_path, "s1")) == 2


@pytest.mark.parametrize("content", ["", "{}", "[", '{"mapping": {}}', "PK\3\4"])
def test_what_is_no_export_is_an_error(tmp_path, content):
    path = tmp_path / "conversations.json"
    path.write_text(content)
    code, err = run(tmp_path, "chatgpt", str(path))
    assert code == 1
    assert "is no export of ChatGPT" in err


def test_conversations_of_another_form_are_named(tmp_path):
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([*chatgpt_export(), 5, {"title": "empty"}]))
    code, err = run(tmp_path, "chatgpt", str(path))
    assert code == exits.SOURCE_INCOMPLETE
    assert "entry 2 is damaged" in err
    assert len(read(tmp_path, "g1")) == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("gemini", "a.jsonl"), exits.USAGE),
        (("claude",), exits.USAGE),
        (("claude", "missing.jsonl"), 1),
        (("claude", "."), 1),
        (("claude", "a.jsonl", "--last", "2"), exits.USAGE),
        (("claude", "a.jsonl", "--forget"), exits.USAGE),
    ],
)
def test_wrong_words_are_refused(tmp_path, monkeypatch, words, code):
    monkeypatch.chdir(tmp_path)
    assert run(tmp_path, *words)[0] == code


def test_a_store_of_knowledge_takes_no_conversations(tmp_path):
    with LinkStore.open(tmp_path / "turns") as store:
        store.add_texts(["Sencha is a green tea."], ids=["sencha"])
    code, err = run(tmp_path, "claude", write(tmp_path / "a.jsonl", claude_lines()))
    assert code == exits.USAGE
    assert "--store turns" in err


def test_what_was_imported_is_recalled_for_its_user(tmp_path):
    run(tmp_path, "claude", write(tmp_path / "a.jsonl", claude_lines()))
    run(tmp_path, "codex", write(tmp_path / "c.jsonl", codex_lines()))
    asked = (
        "memory",
        "--recall",
        "Why did the parser fail?",
        "--user",
        "me",
        "--store",
        str(tmp_path / "turns"),
    )
    code, out, _ = linkstore(*asked)
    assert code == 0
    assert "first byte" in out
    assert linkstore("memory", "s1", "more", "--store", str(tmp_path / "turns"))[0] == exits.USAGE
    assert linkstore("memory", "s1", "--tools", "--store", str(tmp_path / "turns"))[0] == exits.USAGE
