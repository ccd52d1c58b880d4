"""Paths that are not valid UTF-8: sources may have them, stores may not, and nothing is raw."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from documented import linkstore

from linkstore import LinkStore
from linkstore.cli import exits
from linkstore.errors import StoreFormatError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
ODD = os.fsdecode(b"odd\xff")


@pytest.fixture
def site(tmp_path) -> Path:
    folder = tmp_path / ODD
    folder.mkdir()
    (folder / "a.html").write_text("<h1>A</h1><p>Text of a.</p>")
    (folder / f"{ODD}.html").write_text("<h1>B</h1><p>Text of b.</p>")
    return folder


def index(*words: str) -> str:
    code, out, err = linkstore("index", *words)
    assert code == 0, err
    return out


def test_a_source_may_lie_at_any_path(tmp_path, site):
    store = str(tmp_path / "kb")
    assert "2 added" in index(str(site), "--store", store)
    assert "2 unchanged" in index(str(site), "--store", store)
    with LinkStore.open(store) as opened:
        assert list(opened.pages.sources()) == [f"{tmp_path.as_posix()}/odd\\udcff"]
        assert len(opened.pages.digests()) == 2
    assert linkstore("doctor", "--store", store, "--source", str(site))[0] == 0


def test_a_file_and_a_given_name_may_be_odd(tmp_path):
    lines = tmp_path / f"{ODD}.jsonl"
    lines.write_text('{"id": "a", "text": "Text"}\n')
    assert "1 added" in index(str(lines), "--store", str(tmp_path / "kb"))
    assert "1 added" in index(str(lines), "--store", str(tmp_path / "named"), "--source", ODD)


def test_a_store_at_such_a_path_is_refused_and_nothing_is_made(tmp_path, site):
    place = str(tmp_path / f"kb{ODD}")
    for words in (("index", str(site), "--store", place), ("doctor", "--store", place)):
        code, _, err = linkstore(*words)
        assert (code, "it is not valid UTF-8" in err) == (exits.DAMAGED, True)
    index(str(site), "--store", str(tmp_path / "kb"))
    assert linkstore("migrate", place, str(tmp_path / "to"))[0] == exits.DAMAGED
    assert linkstore("migrate", str(tmp_path / "kb"), place)[0] == exits.DAMAGED
    assert not Path(place).exists()
    with pytest.raises(StoreFormatError, match="not valid UTF-8"):
        LinkStore.open(place)


def test_what_is_not_unicode_names_no_page(tmp_path, site):
    store = str(tmp_path / "kb")
    index(str(site), "--store", store)
    for command in ("delete", "links"):
        code, _, err = linkstore(command, ODD, "--store", store)
        assert (code, err.startswith("linkstore: no document has the id or URL")) == (exits.OTHER, True)


def test_a_working_directory_that_is_gone_is_named(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code, _, err = linkstore("index", ".", "--store", str(tmp_path / "kb"))
    assert (code, err) == (exits.USAGE, "linkstore: . is relative, and the working directory is gone\n")
