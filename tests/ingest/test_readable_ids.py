"""Pages are named in their own letters, and found by either spelling."""

from __future__ import annotations

import json
import unicodedata

import pytest
from documented import linkstore
from internals import Site, make_readable, normalize_url

from linkstore import LinkStore, get_links
from linkstore.ingest import FolderSource, VaultSource, index

LINKS = ("hyperlink",)


@pytest.fixture
def store(tmp_path):
    with LinkStore.open(tmp_path / "kb") as opened:
        yield opened


def written(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("url", "readable"),
    [
        ("%E6%9D%B1%E4%BA%AC.md", "東京.md"),
        ("%e6%9d%b1.md#%C3%A9", "東.md#é"),
        ("a%20b%23%3F%25.md", "a%20b%23%3F%25.md"),
        ("%FF%E6%9D%B1%80", "%FF東%80"),
        ("%E2%80%AEx%E2%80%A8%C2%A0%C2%85%E3%80%80", "%E2%80%AEx%E2%80%A8%C2%A0%C2%85%E3%80%80"),
        ("%F0%9F%91%A9%E2%80%8D%F0%9F%9A%80", "👩\u200d🚀"),
        ("%ED%A0%80", "%ED%A0%80"),
        ("plain", "plain"),
    ],
)
def test_a_url_in_its_own_letters(url, readable):
    assert make_readable(url) == readable
    assert make_readable(readable) == readable
    assert Site().page_tag(readable) == Site().page_tag(url)
    base = "https://docs.example/"
    assert normalize_url(readable, base=base) == normalize_url(url, base=base)


def test_notes_and_pages_are_named_in_their_own_letters(store, tmp_path):
    folder = written(
        tmp_path / "pages",
        {
            "日本/東京.md": "# 東京\n\n[[Ünï]], [x](../%C3%9Cn%C3%AF.md) and [y](../Ünï.md).\n",
            "Ünï.md": "# Ü\n\n[[東京]].\n",
        },
    )
    for kind in (VaultSource, FolderSource):
        index(store, kind(folder, prefix=f"ß{kind.__name__}"), links=LINKS, name=kind.__name__)
    for lead in ("ßVaultSource", "ßFolderSource"):
        (tokyo,) = store.get_by_ids([f"{lead}/日本/東京.md"])
        assert (tokyo.metadata["url"], tokyo.metadata["page"]) == (tokyo.id, tokyo.id)
        (other,) = store.get_by_ids([f"{lead}/Ünï.md"])
        tags = {link.tag for link in get_links(other) if link.leads_in}
        assert {link.tag for link in get_links(tokyo) if link.leads_out} <= tags
    assert (
        index(
            store, VaultSource(folder, prefix="ßVaultSource"), links=LINKS, name="VaultSource"
        ).pages.unchanged
        == 2
    )
    assert store.survey().dangling == ()


def test_a_folder_that_cannot_be_read_keeps_its_pages_whatever_its_letters(store, tmp_path):
    pages = {"日本/東京.md": "# 東京\n\nText.\n", "a.md": "# A\n\nText.\n", "b.md": "# B\n\nText.\n"}
    folder = written(tmp_path / "vault", pages)
    index(store, VaultSource(folder), links=LINKS)
    (folder / "日本").rename(tmp_path / "elsewhere")
    (folder / "日本").mkdir()
    index(store, VaultSource(folder), links=LINKS)
    assert store.get_by_ids(["日本/東京.md"])


@pytest.fixture
def vault(tmp_path):
    files = {
        "日本/東京.md": "# 東京\n\n[[Garden]]\n",
        "x/Garden.md": "# Garden\n\nText.\n\n## The view\n\nFar.\n",
        "x/Tom's (old) note.md": "# N\n\nText.\n",
        **{f"{n:02}/Many.md": "# M\n\nText.\n" for n in range(12)},
        "guide/index.md": "# Guide\n\nText.\n",
    }
    with LinkStore.open(tmp_path / "kb") as store:
        index(store, VaultSource(written(tmp_path / "vault", files)), links=())
    return str(tmp_path / "kb")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("日本/東京.md", "日本/東京.md"),
        ("%E6%97%A5%E6%9C%AC/%E6%9D%B1%E4%BA%AC.md", "日本/東京.md"),
        ("東京", "日本/東京.md"),
        ("Garden", "x/Garden.md"),
        ("garden.MD", "x/Garden.md"),
        ("/x/garden", "x/Garden.md"),
        ("Garden#the-view", "x/Garden.md#the-view"),
        ("Tom's (old) note", "x/Tom%27s%20%28old%29%20note.md"),
        ("x/Tom's (old) note.md", "x/Tom%27s%20%28old%29%20note.md"),
        ("guide", "guide/index.md"),
        ("11/many", "11/Many.md"),
    ],
)
def test_links_finds_what_is_unique(vault, name, found):
    code, out, err = linkstore("links", name, "--store", vault, "--json")
    assert (code, err) == (0, "")
    first, *others = [row["id"] for row in json.loads(out)]
    assert first == found
    assert all(id.startswith(f"{found}#") for id in others)  # a page has all of its sections


def test_a_name_of_several_pages_lists_ten_of_them(vault):
    code, out, err = linkstore("links", "Many", "--store", vault)
    assert (code, out) == (2, "")
    assert "12 pages" in err
    assert [f"{n:02}/Many.md" in err for n in range(12)] == [True] * 10 + [False] * 2
    assert "and 2 more" in err
    for name in ("arden", "none", "/", "#", "\0", "\ud800"):
        code, out, err = linkstore("links", name, "--store", vault)
        assert (code, out, "no document has" in err) == (1, "", True), (name, err)


@pytest.mark.parametrize("name", ["日本/東京.md", "%E6%97%A5%E6%9C%AC/%E6%9D%B1%E4%BA%AC.md", "x/Garden.md"])
def test_delete_takes_either_spelling(vault, name):
    assert linkstore("delete", name, "--store", vault)[0] == 0
    assert linkstore("links", name, "--store", vault)[0] == 1
    assert linkstore("delete", "Many", "--store", vault)[0] == 1, "what is deleted is named in full"


def test_delete_takes_a_chunk_in_either_spelling(vault):
    name = "%E6%97%A5%E6%9C%AC/%E6%9D%B1%E4%BA%AC.md"
    assert linkstore("delete", "--chunk", name, "--store", vault)[0] == 0
    with LinkStore.open(vault) as store:
        assert store.get_by_ids([unicodedata.normalize("NFC", "日本/東京.md")]) == []
