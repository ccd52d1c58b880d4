"""The extensions of Sphinx and MkDocs: a store and a list of the pages after each build."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from internals import index_build

from linkstore import LinkStore

BUILDERS = ("sphinx", "mkdocs")
PAGES = {
    "sphinx": {
        "conf.py": "project = 'Harbour'\nextensions = ['linkstore.sphinx']\nhtml_baseurl = 'https://h.test/docs'\n",
        "index.rst": "Harbour\n=======\n\nAll about ships.\n\n.. toctree::\n\n   guide/pilots\n",
        "guide/pilots.rst": "Pilots\n======\n\nA pilot boards every long ship. See :doc:`/index`.\n",
    },
    "mkdocs": {
        "mkdocs.yml": "site_name: Harbour\nsite_url: https://h.test/docs/\nplugins: [linkstore]\n"
        "use_directory_urls: false\n",
        "docs/index.md": "# Harbour\n\nAll about ships. See [pilots](guide/pilots.md).\n",
        "docs/guide/pilots.md": "# Pilots\n\nA pilot boards every long ship.\n",
    },
}
COMMANDS = {
    "sphinx": ("sphinx", "-q", "-b", "html", ".", "_build/html"),
    "mkdocs": ("mkdocs", "-q", "build"),
}
PLACES = {"sphinx": ("_build/html", "_build/linkstore"), "mkdocs": ("site", ".linkstore")}


@pytest.fixture(params=BUILDERS)
def project(request, tmp_path):
    """A project of a builder, and what builds it."""
    pytest.importorskip(request.param)
    for name, text in PAGES[request.param].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def build():
        return subprocess.run(
            [sys.executable, "-m", *COMMANDS[request.param]], cwd=tmp_path, capture_output=True, text=True
        )

    site, store = PLACES[request.param]
    return build, tmp_path / site, tmp_path / store


def test_a_build_leaves_a_store_and_a_list(project):
    build, site, place = project
    done = build()
    assert done.returncode == 0, done.stderr

    with LinkStore.open(place, create=False) as store:
        assert store.pages.sources() == {"Harbour": 2}
        (hit, *_) = store.search("Who boards a long ship?")
        assert hit.document.metadata["url"] == "guide/pilots.html"
    listed = (site / "llms.txt").read_text()
    assert listed.startswith("# Harbour\n")
    assert (
        "## guide\n\n- [Pilots](https://h.test/docs/guide/pilots.html): A pilot boards every long ship."
        in listed
    )


def test_a_build_fails_with_the_reason_if_its_pages_cannot_be_stored(project):
    build, _, place = project
    place.parent.mkdir(exist_ok=True)
    place.write_text("in the way")
    done = build()

    assert done.returncode != 0
    assert "linkstore: " in done.stderr + done.stdout


def test_a_list_of_somebody_else_stays_and_ones_own_is_written_anew(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "a.html").write_text("<title>A [draft]</title><p>One page.</p>")
    assert index_build(site, tmp_path / "kb", "Site") == 1
    assert r"- [A \[draft\]](a.html): One page." in (site / "llms.txt").read_text()
    (site / "a.html").unlink()
    (site / "b.html").write_text("<title>B</title><p>Another page.</p>")
    assert index_build(site, tmp_path / "kb", "Site") == 1
    assert "a.html" not in (site / "llms.txt").read_text(), "what was built is the whole"
    (site / "llms.txt").write_text("# By hand\n")
    index_build(site, tmp_path / "kb", "Site")
    assert (site / "llms.txt").read_text() == "# By hand\n"


def test_while_a_site_is_served_nothing_is_indexed(caplog):
    mkdocs = pytest.importorskip("linkstore.mkdocs")
    plugin = mkdocs.LinkStorePlugin()
    plugin.on_startup(command="serve", dirty=False)
    with caplog.at_level(logging.INFO):
        plugin.on_post_build(config=None)

    assert not caplog.records
