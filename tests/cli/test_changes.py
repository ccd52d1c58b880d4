"""``linkstore doctor --since``: what runs of index changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from documented import linkstore
from internals import MAX_LISTED, IndexRun

from linkstore import LinkStore
from linkstore.cli import exits
from linkstore.ingest import FolderSource, index


@pytest.fixture
def place(tmp_path):
    (tmp_path / "site").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "site" / f"{name}.md").write_text(f"# {name}\n\nText of {name}.\n")
    run(tmp_path)
    return tmp_path


def run(place):
    return linkstore("index", str(place / "site"), "--store", str(place / "kb"))


def changes(place, since):
    code, out, _ = linkstore("doctor", "-s", str(place / "kb"), "--since", since, "--json")
    assert code == 0
    return [(row["added"], row["updated"], row["removed"]) for row in json.loads(out)]


def test_the_pages_that_a_run_added_updated_and_removed_are_listed(place):
    site = place / "site"
    (site / "a.md").write_text("# a\n\nAnother text.\n")
    (site / "b.md").unlink()
    (site / "d.md").write_text("# d\n\nNew.\n")
    run(place)
    run(place)  # changes nothing, and is not listed

    assert changes(place, "last") == [(["d.md"], ["a.md"], ["b.md"])]
    assert changes(place, "2020-01-01") == [
        (["a.md", "b.md", "c.md"], [], []),
        (["d.md"], ["a.md"], ["b.md"]),
    ]
    assert changes(place, str(datetime.now(UTC) + timedelta(days=1))) == []
    _, out, _ = linkstore("doctor", "-s", str(place / "kb"), "--since", "last")
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["added", "d.md"],
        ["updated", "a.md"],
        ["removed", "b.md"],
    ]


def test_a_run_that_ends_early_is_listed_with_what_it_stored(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.md").write_text(f"# {number}\n\nText.\n")

    def stop(done, _total, _name):
        if done == 3:
            raise KeyboardInterrupt

    with LinkStore() as store:
        with pytest.raises(KeyboardInterrupt):
            index(store, FolderSource(tmp_path), progress=stop, jobs=1)
        listed = {page for run in store.pages.changes() for page in run.added}
        index(store, FolderSource(tmp_path))
        listed |= {page for run in store.pages.changes() for page in run.added}

        assert listed == set(store.pages.digests())


def test_a_dry_run_is_not_listed(place):
    (place / "site" / "a.md").write_text("# a\n\nAnother text.\n")
    linkstore("index", str(place / "site"), "--store", str(place / "kb"), "--dry-run")

    assert len(changes(place, "2020-01-01")) == 1


def test_old_runs_go_first_and_a_large_one_is_cut():
    pages = tuple(map(str, range(MAX_LISTED)))
    with LinkStore() as store:
        for source in ("first", "second"):
            store.pages.record(IndexRun(at=datetime.now(UTC), source=source, added=pages, more=7))

        (kept,) = store.pages.changes()
        assert (kept.source, len(kept.added), kept.more) == ("second", MAX_LISTED, 7)


def test_something_else_than_a_time_is_refused(place):
    code, _, err = linkstore("doctor", "-s", str(place / "kb"), "--since", "yesterday")
    assert code == exits.USAGE
    assert "'yesterday'" in err
