"""``linkstore mcp --install``: a store for an agent, and what becomes of the configurations of clients."""

from __future__ import annotations

import json
import subprocess
import tomllib

import pytest
from documented import linkstore
from internals import CLIENTS

from linkstore.cli import exits

INSTALL = ("mcp", "--store", "docs.kb", "--index", "docs", "--install")
CODEX = '# mine\nmodel = "o"\n\n[mcp_servers.other]\ncommand = "x"\nargs = []\n'


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home without clients, a project in it as the working directory, and no command to be found."""
    project = tmp_path / "home" / "project"
    (project / "docs").mkdir(parents=True)
    (project / "docs" / "kraken.md").write_text("# The kraken\n\nAn animal of the deep sea.\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("LINKSTORE_STORE", raising=False)
    monkeypatch.chdir(project)
    return tmp_path / "home"


def get_config(home, name):
    (client,) = (client for client in CLIENTS if client.name == name)
    return client.get_path(home, home / "project")


def read_servers(home, name):
    (client,) = (client for client in CLIENTS if client.name == name)
    text = get_config(home, name).read_text()
    return (tomllib.loads(text) if client.is_toml else json.loads(text))[client.key]


def list_files(home):
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_a_client_that_starts_the_written_entry_gets_the_tools(home):
    code, out, err = linkstore(*INSTALL, "--client", "claude-code", "--about", "sea animals")
    assert (code, err) == (0, "")
    assert "asked     'The kraken': kraken.md" in out
    entry = read_servers(home, "claude-code")["docs-kb"]

    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    search = {"name": "search", "arguments": {"question": "deep sea"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": search},
    ]
    with subprocess.Popen(
        [entry["command"], *entry["args"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=home,
    ) as server:
        answers = {}
        for message in messages:
            server.stdin.write(f"{json.dumps(message)}\n")
            server.stdin.flush()
            if "id" in message:
                answers[message["id"]] = json.loads(server.stdout.readline())
        server.stdin.close()
    assert entry["type"] == "stdio"
    assert "sea animals" in json.dumps(answers[1])
    assert "kraken" in json.dumps(answers[2]["result"])


@pytest.mark.parametrize("name", [client.name for client in CLIENTS])
def test_an_entry_is_added_once_and_removed_again(home, name):
    config = get_config(home, name)
    config.parent.mkdir(parents=True, exist_ok=True)
    kept = CODEX if name == "codex" else '{\n    "théme": 1,\n    "x": []\n}\n'
    config.write_text(kept, encoding="utf-8")

    assert linkstore(*INSTALL, "--client", name)[0] == 0
    assert read_servers(home, name)["docs-kb"]["args"][-1] == str(home / "project" / "docs.kb")
    assert config.with_name(f"{config.name}.bak1").read_text(encoding="utf-8") == kept
    written = config.read_text(encoding="utf-8")
    assert "nothing to do" in linkstore(*INSTALL, "--client", name)[1]
    assert config.read_text(encoding="utf-8") == written
    assert linkstore(*INSTALL, "--client", name, "--about", "a")[0] == 0
    assert read_servers(home, name)["docs-kb"]["args"][-2:] == ["--about", "a"]

    assert linkstore("mcp", "--store", "docs.kb", "--remove", "--client", name)[0] == 0
    assert "docs-kb" not in read_servers(home, name)
    left = config.read_text(encoding="utf-8")
    if name == "codex":
        assert left.strip() == kept.strip()
    else:
        assert json.loads(left).items() >= json.loads(kept).items()


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("vscode", '{\n  // mine\n  "servers": {}\n}', "not plain JSON"),
        ("cursor", '{"mcpServers": {"a": {}, "a": {}}}', "twice"),
        ("cursor", '{"mcpServers": []}', "no object"),
        ("cursor", "[]", "no object"),
        ("cursor", '{"mcpServers": {"docs-kb": {"command": "npx", "args": ["docs"]}}}', "another server"),
        (
            "cursor",
            '{"mcpServers": {"docs-kb": {"command": "", "args": ["linkstore", "mcp", "--store"], "env": 1}}}',
            "settings of its own",
        ),
        ("codex", "a = [", "not TOML"),
        ("codex", 'mcp_servers = {a = {command = "x"}}\n', "another form"),
        ("codex", "mcp_servers = 5\n", "no table"),
    ],
)
def test_a_configuration_that_is_not_understood_is_left_alone(home, name, text, reason):
    config = get_config(home, name)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(text)
    before = list_files(home)

    code, _, err = linkstore(*INSTALL, "--client", name)

    assert code == exits.OTHER
    assert reason in err
    assert "by hand" in err
    assert "--store" in err
    assert list_files(home) == before


def test_other_clients_are_written_beside_one_that_is_not_understood(home):
    cursor = get_config(home, "cursor")
    cursor.parent.mkdir()
    cursor.write_text("{} // mine")
    code, out, err = linkstore(*INSTALL, "--client", "cursor", "--client", "codex")
    assert code == exits.OTHER
    assert "Codex: write" in out
    assert "not plain JSON" in err
    assert cursor.read_text() == "{} // mine"
    assert "docs-kb" in read_servers(home, "codex")


def test_a_dry_run_writes_nothing_and_shows_the_entry(home):
    before = list_files(home)
    code, out, _ = linkstore(*INSTALL, "--client", "cursor", "--dry-run")

    assert code == 0
    assert "would index docs" in out
    assert '"mcpServers": {"docs-kb"' in out.replace("\n", " ")
    assert list_files(home) == before


def test_clients_that_are_used_here_are_found(home):
    (home / ".cursor").mkdir()
    (home / "project" / ".vscode").mkdir()
    assert linkstore(*INSTALL)[0] == 0

    assert read_servers(home, "cursor").keys() == read_servers(home, "vscode").keys() == {"docs-kb"}
    assert not get_config(home, "gemini").exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--install", "--index", "docs"), "--client"),
        (("--install", "--client", "emacs"), "emacs"),
        (("--install", "--index", "nowhere", "--client", "cursor"), "nowhere"),
        (("--install", "--http"), "--http"),
        (("--remove", "--index", "docs"), "--index"),
        (("--client", "cursor"), "--client"),
    ],
)
def test_wrong_usage_is_refused(home, words, named):
    before = list_files(home)
    code, _, err = linkstore("mcp", "--store", "docs.kb", *words)

    assert (code, named in err) == (exits.USAGE, True)
    assert list_files(home) == before


def test_a_link_to_a_configuration_stays_a_link(home):
    (home / "dotfiles").mkdir()
    (home / ".cursor").mkdir()
    (home / "dotfiles" / "mcp.json").write_text("{}")
    (home / ".cursor" / "mcp.json").symlink_to(home / "dotfiles" / "mcp.json")

    assert linkstore(*INSTALL, "--client", "cursor")[0] == 0
    assert (home / ".cursor" / "mcp.json").is_symlink()
    assert "docs-kb" in json.loads((home / "dotfiles" / "mcp.json").read_text())["mcpServers"]


def test_a_store_that_is_there_is_installed_with_its_options(home):
    assert linkstore("index", "docs", "--store", "docs.kb")[0] == 0
    words = ("--write", "--max-depth", "1", "--name", "sea")
    assert linkstore("mcp", "--store", "docs.kb", "--install", "--client", "cursor", *words)[0] == 0

    assert read_servers(home, "cursor")["sea"]["args"][-3:] == ["--max-depth", "1", "--write"]


def test_a_store_that_is_not_there_is_not_installed(home):
    before = list_files(home)

    assert linkstore("mcp", "--store", "none", "--install", "--client", "cursor")[0] == exits.NOT_FOUND
    assert list_files(home) == before
