"""A new user's first five minutes, as the commands that the documentation names, each from an empty folder.

That of a documentation site in a container is in ``test_container.py``: the steps of the Dockerfile in a bare
folder.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from bundle_cases import BUNDLE, write
from documented import linkstore, write_manuals

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty project in an empty home, where no client is installed."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("LINKSTORE_STORE", raising=False)
    return tmp_path / "project"


def run(line):
    code, out, err = linkstore(*line.split())
    assert code == 0, err
    return out


def ask(entry, *calls):
    """Start a server as a client does, by its written entry, and return what its tools answer."""
    messages = [{"id": 0, "method": "initialize", "params": HELLO}, {"method": "notifications/initialized"}]
    messages += [
        {"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls, 1)
    ]
    with subprocess.Popen(
        [entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        answers = []
        for message in messages:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
            if "id" in message:
                answers.append(json.loads(server.stdout.readline())["result"])
        server.stdin.close()
    assert not any(answer.get("isError") for answer in answers)
    return [json.dumps(answer, ensure_ascii=False) for answer in answers[1:]]


def test_a_bundle(here):
    write(here / "bundle", BUNDLE)

    assert "7 added" in run("index bundle")
    hits = {hit["url"]: hit for hit in json.loads(run("query what share of customers leave --json"))}
    assert [url for url in hits if "churn" in url] == ["metrics/churn.md", "metrics/churn-old.md"]
    assert "Deprecated, superseded by Churn." in hits["metrics/churn-old.md"]["snippet"]
    assert "links of bundles that lead to no page: 1 (metrics/churn.md" in run("doctor")
    run("query churn --evidence churn.json")
    assert run("doctor --evidence churn.json").startswith("unchanged metrics/churn.md")


def test_a_vault_into_the_file_of_claude_code(here):
    notes = {"Boiler.md": "Serviced by [[Brown & Sons]] each May.", "Brown & Sons.md": "Call 555-1234."}
    write(here / "vault", notes)
    run("mcp --store notes --index vault --install --client claude-code")

    (entry,) = json.loads((here / ".mcp.json").read_text())["mcpServers"].values()
    (answer,) = ask(entry, ("search", {"question": "Whom do I call about the boiler?"}))
    assert "555-1234" in answer
    assert "Brown%20%26%20Sons.md" in answer


def test_a_manual_in_pdf(here):
    pytest.importorskip("pypdfium2", reason="needs the extra pdf")
    write_manuals(here)

    assert "1 added" in run("index manuals/harbour.pdf")
    first, *_ = json.loads(run("query who boards a long ship --json"))
    assert "harbour.pdf#page=2" in first["url"]
    assert "A pilot boards every long ship" in first["snippet"]


def test_two_stores_in_one_server(here):
    write(here, {"docs/kraken.md": "# The kraken\n\nA squid.", "wiki/owl.md": "# The owl\n\nA bird."})
    run("index docs --store docs.kb")
    run("index wiki --store wiki.kb")
    command = ["-c", "from linkstore.cli import main; main()", "mcp"]
    stores = ["--store", "sea=docs.kb", "--store", "air=wiki.kb"]
    entry = {"command": sys.executable, "args": [*command, *stores]}

    sea, air = ask(entry, ("sea_search", {"question": "animal"}), ("air_search", {"question": "animal"}))
    assert ("kraken" in sea, "owl" in sea) == (True, False)
    assert ("kraken" in air, "owl" in air) == (False, True)
