"""``linkstore index https://…``: a website from the command line."""

from __future__ import annotations

import json

import pytest
from documented import linkstore
from web_site import Reply, html, running

from linkstore.cli import exits
from linkstore.ingest.web import client


def index(site, folder, *options):
    words = ("index", f"http://127.0.0.1:{site.port}/", "--store", str(folder / "kb"), "--rate", "1000")
    return linkstore(*words, *options)


@pytest.fixture
def site():
    pages = {"/": html("", "a", "b", "deep/c"), "/a": html(), "/b": html(), "/deep/c": html()}
    with running({**pages, "/robots.txt": Reply(status=404)}) as one:
        yield one


def test_a_website_is_indexed_and_can_be_searched(site, tmp_path):
    code, out, err = index(site, tmp_path, "--allow-private", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["pages"]["added"] == 4
    assert linkstore("query", "Page", "--store", str(tmp_path / "kb"))[0] == 0


def test_loopback_is_refused_unless_told(site, tmp_path):
    code, _, err = index(site, tmp_path)
    assert code == exits.OTHER
    assert "127.0.0.1 is not requested: it is loopback; --allow-private" in err
    assert site.asked == []


def test_the_options_say_what_is_indexed(site, tmp_path):
    options = ("--allow-private", "--json", "--allow", "/a", "--allow", "/deep/", "--max-depth", "1")
    code, out, err = index(site, tmp_path, *options, "--max-pages", "2", "--deny", "/b")
    assert (code, "could not be seen (further URLs)" in err) == (exits.SOURCE_INCOMPLETE, True)
    summary = json.loads(out)
    assert summary["pages"]["added"] == 2
    assert list(summary["skipped"]) == ["further URLs"]
    code, out, _ = index(site, tmp_path, "--allow-private", "--json", "--max-depth", "0", "--dry-run")
    assert json.loads(out)["pages"]["removed"] == 1


@pytest.mark.parametrize(
    ("options", "message"), [(("--rate", "0"), "rate must be more than 0"), (("--allow", "a"), "must begin")]
)
def test_options_that_make_no_sense_are_a_usage_error(site, tmp_path, options, message):
    code, _, err = index(site, tmp_path, *options)
    assert (code, message in err) == (exits.USAGE, True)


def test_options_of_websites_are_refused_for_folders(tmp_path):
    code, _, err = linkstore("index", str(tmp_path), "--store", str(tmp_path / "kb"), "--rate", "1")
    assert (code, "--rate is for website" in err) == (exits.USAGE, True)


@pytest.mark.parametrize("path", ["/robots.txt", "/"])
def test_a_site_that_cannot_be_reached_has_its_own_code_and_leaves_no_store(
    site, tmp_path, monkeypatch, path
):
    monkeypatch.setattr(client, "_FIRST_WAIT", 0.0)
    site.pages[path] = Reply(status=500)
    code, out, err = index(site, tmp_path, "--allow-private")

    assert (code, out, err.count("\n")) == (exits.UNAVAILABLE, "", 1)
    assert "the server answers 500" in err
    assert not (tmp_path / "kb").exists()
