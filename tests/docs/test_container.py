"""The image and the GitHub Action: their steps run in bare folders, since not every machine has a daemon."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from documented import ROOT

from linkstore.cli.demo import site

DOCKERFILE = (ROOT / "Dockerfile").read_text()
STAGES = [re.findall(r"^([A-Z]+) (.*)$", stage, re.MULTILINE) for stage in DOCKERFILE.split("\nFROM ")[1:]]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
TOKEN = "a-token-of-the-tests-0123456789"


def find(stage, name):
    return [text for instruction, text in STAGES[stage] if instruction == name]


def test_the_image_runs_as_nobody_in_particular_and_has_what_its_context_has():
    assert len(STAGES) == 2
    assert find(1, "USER") == ["linkstore"]
    names = [name for name, _ in STAGES[1]]
    assert names.index("USER") > max(at for at, name in enumerate(names) if name == "RUN")
    context = (ROOT / ".dockerignore").read_text().split()
    assert context[0] == "**"
    assert all((ROOT / name[1:]).exists() for name in context if name.startswith("!"))


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """Where the steps of the build put what the image has."""
    root = tmp_path_factory.mktemp("image")
    (root / "bin").mkdir()
    (root / "bin/python").symlink_to(Path(sys.executable).resolve())
    for line in (ROOT / ".dockerignore").read_text().split():
        if line.startswith("!"):
            copy = shutil.copytree if (ROOT / line[1:]).is_dir() else shutil.copy
            (root / "src").mkdir(exist_ok=True)
            copy(ROOT / line[1:], root / "src" / line[1:])
    environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    for step in find(0, "RUN"):
        step = re.sub(r"(?<![\w/])/(opt|src)\b", rf"{root}/\1", step)
        subprocess.run(["sh", "-c", step], check=True, cwd=root, env=environment)
    return root / "opt/linkstore/bin"


def test_the_image_serves_page_and_tools_and_says_that_it_is_well(image, tmp_path):
    environment = {"PATH": f"{image}:{os.environ['PATH']}", "LINKSTORE_STORE": str(tmp_path / "kb")}
    environment |= {"LINKSTORE_SERVE_TOKEN": TOKEN, "HOME": str(tmp_path)}
    with site() as pages:
        subprocess.run(["linkstore", "index", pages, "--quiet"], check=True, env=environment, cwd=tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    (start,) = find(1, "CMD")
    (health,) = find(1, "HEALTHCHECK")
    check = json.loads(health.partition("CMD ")[2].replace("8766", port))
    assert subprocess.run(check, env=environment, capture_output=True).returncode != 0, "nothing runs yet"
    command = ["linkstore", *json.loads(start.replace("8766", port)), "--port", port]
    with subprocess.Popen(command, env=environment, cwd=tmp_path) as process:
        try:
            ends = time.monotonic() + 120
            while subprocess.run(check, env=environment, capture_output=True).returncode != 0:
                assert process.poll() is None
                assert time.monotonic() < ends
            ask = f"""
import json, urllib.request as u
headers = {{"Authorization": "Bearer {TOKEN}", "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18",
    "Host": "localhost:{port}"}}
body = json.dumps({{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}).encode()
request = u.Request("http://127.0.0.1:{port}/mcp", body, headers)
print([tool["name"] for tool in json.load(u.urlopen(request))["result"]["tools"]][0])
print("<html" in u.urlopen("http://127.0.0.1:{port}/").read().decode())
"""
            asked = subprocess.run(["python", "-c", ask], env=environment, capture_output=True, text=True)
            assert asked.stdout.split() == ["search", "True"], asked.stderr
        finally:
            process.terminate()


def run_action(folder, **inputs):
    """Run the steps of the action that are scripts, but for the installation."""
    values = {name: of.get("default", "") for name, of in ACTION["inputs"].items()} | inputs
    commands = Path(sys.executable).parent
    for step in ACTION["runs"]["steps"]:
        if "run" not in step or "pip install" in step["run"]:
            continue
        own = {
            key: values[re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", text)[1]]
            for key, text in step["env"].items()
        }
        path = {"PATH": f"{commands}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={**os.environ, **path, **own},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            return done.returncode
    return 0


def test_the_action_passes_a_site_whose_links_lead_somewhere(tmp_path):
    with site() as pages:
        shutil.copytree(pages, tmp_path / "my site")

    assert run_action(tmp_path, source="my site") == 0
    assert "pages     15 added" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "linkstore-store/linkstore.db").is_file()


def test_the_action_fails_a_site_with_a_dead_link_and_names_it(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/a.html").write_text('<h1>A</h1><p>See <a href="gone.html">that</a>.</p>')

    assert run_action(tmp_path, source="site") == 10
    assert "gone.html" in (tmp_path / "summary.md").read_text()
    assert run_action(tmp_path, source="site", strict="false") == 0


def test_no_script_of_the_action_has_an_input_in_its_text():
    """It would be run as a part of the script, whatever it says."""
    assert not [step["run"] for step in ACTION["runs"]["steps"] if "${{" in step.get("run", "")]
    assert all(
        "${{ inputs." in text for step in ACTION["runs"]["steps"] for text in step.get("env", {}).values()
    )
