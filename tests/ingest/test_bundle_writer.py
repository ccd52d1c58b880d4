"""A store written as a bundle, and read again: nothing that a store keeps is lost."""

from __future__ import annotations

import re

import pytest
import yaml
from bundle_cases import BUNDLE, write
from documented import linkstore
from internals import LINKS_KEY, Link, get_links, write_bundle
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.cli import exits
from linkstore.errors import LinkStoreError
from linkstore.ingest import FolderSource, VaultSource, index

TEXTS = """---
type: Note
title: "Signs: *all* of them"
owner: {team: data, since: 2024-01-31}
---
# Table {#the-table}

| Column | Meaning |
|---|---|
| `a_b` | see [churn](metrics/churn.md), 5 < 6 & 7 |
| c | \\| |

- one [rules](policies/rules.md#rules-of-counting)
- two * three

1. first
2. second

```python
def f():
    return {"a": [1, 2]}
```

## Below

1999. A year. [https](https://example.org/a_b(c)) and [^note] # not a heading

> - [x] quoted, <b>bold</b> ~~gone~~ $x$ {{ y }} !!! note

## Below

The second of this name, [here](#below-1).
"""


def load(folder):
    """Return the documents of a folder by id: text, metadata, links."""
    with LinkStore() as store:
        index(store, FolderSource(folder))
        return {document.id: describe(document) for document in store.scan()}


def describe(document):
    fields = {key: value for key, value in document.metadata.items() if key != LINKS_KEY}
    links = {(link.kind, link.tag, link.direction, link.label) for link in get_links(document)}
    return document.page_content, fields, links


def export(folder, out):
    with LinkStore() as store:
        index(store, FolderSource(folder))
        return write_bundle(store, out)


def test_a_bundle_that_is_written_and_read_is_the_same(tmp_path):
    pages = {**BUNDLE, "signs.md": TEXTS, "metrics/untyped.md": "# No type\n\nA text.\n"}
    write(tmp_path / "in", pages)

    assert export(tmp_path / "in", tmp_path / "out") == len(pages)
    assert load(tmp_path / "out") == load(tmp_path / "in")
    fields = yaml.safe_load((tmp_path / "out/signs.md").read_text().split("---")[1])
    assert fields == {
        "type": "Note",
        "title": "Signs: *all* of them",
        "owner": {"team": "data", "since": "2024-01-31"},
    }


def test_notices_are_not_written(tmp_path):
    write(tmp_path / "in", BUNDLE)
    export(tmp_path / "in", tmp_path / "out")

    assert "superseded" not in (tmp_path / "out/metrics/churn-old.md").read_text()


SITE = {
    "index.html": "<title>Start</title><h1>Start</h1><p>To <a href='guide/set.html#s2'>set up</a> it: <a"
    " href='guide/set.html#api.Way'>how</a>, <a href='guide/set.html#steps'>which</a>, <a"
    " href='guide/set.html#gone'>lost</a>.</p>",
    "guide/set.html": "<title>Set</title><h1 id='s1'>Set up</h1><p>A <a href='../'>way</a>.</p>"
    "<h2 id='s2'>The 2nd step</h2><p id='unnamed'>Some more words to read.</p>"
    f"<p id='api.Way'>{'A long way. ' * 400}</p><p>Back to <a href='#s1'>set up</a>.</p>"
    "<h2 id='steps'>The 3rd step</h2><pre>run <b id='it'>it</b></pre><p>See <a href='#it'>it</a>.</p>",
}


def test_a_site_becomes_a_bundle_whose_links_lead_as_before(tmp_path):
    write(tmp_path / "in", SITE)
    assert export(tmp_path / "in", tmp_path / "out") == 2

    before, after = load(tmp_path / "in"), load(tmp_path / "out")
    assert after["guide/set.md#the-2nd-step"][0] == before["guide/set.html#s2"][0]
    assert after["guide/set.md"][1]["type"] == "Page"
    assert ("hyperlink", "/guide/set.md#s2", "out", "set up") in after["index-page.md"][2]
    assert find_targets(after) >= find_targets(before)
    assert len(find_targets(before)) == 6
    assert "okf_version" in (tmp_path / "out/index.md").read_text()


def test_each_fragment_of_a_link_stands_in_the_markdown_that_it_leads_to(tmp_path):
    """As GitHub and others read it: a heading has the id of its words, and an element its own."""
    write(tmp_path / "in", SITE)
    export(tmp_path / "in", tmp_path / "out")

    led = []
    for path in (tmp_path / "out").rglob("*.md"):
        for target, fragment in re.findall(r"\(</([^>#]+)#([^>]+)>\)", path.read_text()):
            text = (tmp_path / "out" / target).read_text()
            words = re.findall(r"(?m)^#+ (.+)$", text)
            ids = {re.sub(r"[^a-z0-9-]", "", word.lower().replace(" ", "-")) for word in words}
            assert fragment in ids | set(re.findall(r'<a id="([^"]+)"></a>', text)), fragment
            led.append(fragment)
    assert sorted(led) == ["api.Way", "it", "s1", "s2", "steps"]
    assert "unnamed" not in (tmp_path / "out/guide/set.md").read_text()


def find_targets(documents):
    """Return where hyperlinks lead: their labels, each with the beginnings of the texts with their tags."""
    led = {
        (tag, text[:40]) for text, _, links in documents.values() for _, tag, side, _ in links if side == "in"
    }
    return {
        (label, tuple(sorted(text for tag, text in led if tag == wanted)))
        for _, _, links in documents.values()
        for kind, wanted, side, label in links
        if (kind, side) == ("hyperlink", "out") and label in {"set up", "how", "which", "way", "it"}
    }


def test_the_elements_in_a_page_of_markdown_stay(tmp_path):
    pages = {
        "a.md": "---\ntype: A\ntitle: A\n---\n# A\n\n<a id='here'></a>Text.\n\n## B {#c}\n\n"
        "<a id='d&amp;'></a>\n\n- x\n",
        "index.md": "---\nokf_version: '0.2'\n---\n# All\n\n[A](/a.md#here)\n",
    }
    write(tmp_path / "in", pages)
    export(tmp_path / "in", tmp_path / "out")

    assert load(tmp_path / "out") == load(tmp_path / "in")
    tags = {tag for _, tag, _, _ in load(tmp_path / "out")["a.md#c"][2]}
    assert {"/a.md#c", "/a.md#d&"} <= tags


def test_documents_without_pages_keep_their_typed_links(tmp_path):
    led = Link.outgoing(kind="knows", tag="bob", label="knows", weight=0.5, data={"since": 2020})
    named = Link.incoming(kind="knows", tag="bob")
    documents = [
        Document(id="p:ann", page_content="Ann is a baker.", metadata={"type": "Person"}),
        Document(id="p/bob", page_content="Bob is a cook."),
    ]
    for document, link in zip(documents, (led, named), strict=True):
        document.metadata[LINKS_KEY] = [link.to_dict()]
    with LinkStore() as store:
        store.add_documents(documents)
        assert write_bundle(store, tmp_path / "out") == 2

    with LinkStore() as store:
        index(store, FolderSource(tmp_path / "out"))
        ann, bob = sorted(
            (document for document in store.scan() if document.metadata.get("type")),
            key=lambda document: document.page_content.splitlines()[-1],
        )
        assert ann.page_content.endswith("Ann is a baker.")
        assert led.to_dict() in [link.to_dict() for link in get_links(ann)]
        assert named in get_links(bob)
        assert (ann.metadata["type"], bob.metadata["type"]) == ("Person", "Document")


@pytest.mark.parametrize("field", ["linkstore_links: 5", "linkstore_links: [{kind: a}]"])
def test_a_page_with_links_that_are_none_is_skipped_with_the_reason(tmp_path, field):
    page = f"---\ntype: Note\ngenerated: {{by: a/1}}\n{field}\n---\nText.\n"
    write(tmp_path, {"a.md": page, "b.md": "Text.\n"})
    with LinkStore() as store:
        summary = index(store, FolderSource(tmp_path))

    assert "linkstore_links" in summary.skipped["a.md"]


def test_tags_in_the_text_of_notes_stay(tmp_path):
    write(tmp_path / "in", {"a.md": "---\ntags: [x/y]\n---\n# A\n\nA #Plan/one.\n", "b.md": "# B\n\n[[a]]\n"})
    with LinkStore() as store:
        index(store, VaultSource(tmp_path / "in"))
        write_bundle(store, tmp_path / "out")

    tags = {tag for kind, tag, _, _ in load(tmp_path / "out")["a.md"][2] if kind == "tag"}
    assert tags == {"x", "x/y", "plan", "plan/one"}
    front = yaml.safe_load((tmp_path / "out/a.md").read_text().split("---")[1])
    assert [link["tag"] for link in front["linkstore_links"]] == ["plan", "plan/one"]


def test_nothing_is_overwritten(tmp_path):
    write(tmp_path / "in", BUNDLE)
    write(tmp_path / "out", {"mine.txt": "keep"})

    with pytest.raises(LinkStoreError, match="not empty"):
        export(tmp_path / "in", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_the_command_needs_the_name_of_a_folder(tmp_path):
    write(tmp_path / "in", BUNDLE)
    place = str(tmp_path / "kb")
    linkstore("index", str(tmp_path / "in"), "--store", place)

    code, _, err = linkstore("export", "--format", "okf", "--store", place)
    assert (code, "--output" in err) == (exits.USAGE, True)
    code, _, err = linkstore("export", "--format", "okf", "--store", place, "-o", str(tmp_path / "out"))
    assert (code, err) == (0, f"wrote 7 pages to {tmp_path / 'out'}\n")
    assert linkstore("export", "--store", place, "-o", str(tmp_path))[0] == exits.USAGE
