"""The skill and the plugin for Claude Code: their form, and that the commands in them run."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from documented import ROOT, run_markdown
from internals import ToolScope, __version__, make_tools

from linkstore import LinkStore

SKILL = ROOT / "skills/linkstore/SKILL.md"
PLUGIN = json.loads((ROOT / ".claude-plugin/plugin.json").read_text())
MARKETPLACE = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def front_matter():
    return yaml.safe_load(SKILL.read_text().split("---\n")[1])


def test_the_front_matter_is_that_of_a_skill():
    """See https://agentskills.io/specification: the name of the folder, at most 1,024 characters."""
    front = front_matter()

    assert set(front) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert front["name"] == SKILL.parent.name
    assert NAME.fullmatch(front["name"])
    assert 0 < len(front["description"]) <= 1024
    assert "Use it when" in front["description"], "a model chooses a skill by its description alone"
    assert len(SKILL.read_text().splitlines()) <= 500


def test_the_commands_run(tmp_path):
    assert run_markdown(SKILL, tmp_path) >= 8


def test_the_tools_that_it_names_are_those_of_a_server(tmp_path):
    named = re.search(r"the tools (.*?) of a linkstore server", SKILL.read_text(), re.DOTALL)[1]
    table = re.findall(r"^\|[^|]*\|([^|]*)\|", SKILL.read_text(), re.MULTILINE)
    with LinkStore.open(tmp_path / "kb") as store:
        scope = ToolScope(store)
        every_store = [tool.name for tool in make_tools(scope)]
        in_table = {name for cell in table for name in re.findall(r"`(\w+)`", cell)}

        assert re.findall(r"`(\w+)`", named) == every_store
        assert {tool.name for tool in make_tools(scope, only=sorted(in_table))} == in_table


@pytest.mark.parametrize("manifest", [PLUGIN, MARKETPLACE], ids=["plugin", "marketplace"])
def test_a_manifest_has_a_name_that_can_be_typed(manifest):
    assert NAME.fullmatch(manifest["name"])


def test_the_marketplace_names_the_plugin_of_this_folder():
    (entry,) = MARKETPLACE["plugins"]

    assert MARKETPLACE["owner"]["name"]
    assert entry["name"] == PLUGIN["name"]
    assert (ROOT / entry["source"] / ".claude-plugin/plugin.json").is_file()
    assert (ROOT / entry["source"] / "skills").is_dir(), "where skills are looked for"


def test_the_plugin_has_the_version_and_licence_of_the_package():
    assert PLUGIN["version"] == __version__
    assert PLUGIN["license"] == front_matter()["license"] == "Apache-2.0"
