"""Hold what is stored of bundles and vaults against their files: links, types and statuses.

Run: ``python benchmarks/bundles.py --data DIR``, with a folder in DIR for each repository, as it was cloned.
Each is indexed as a whole, by recognition alone. Its files are read again by another parser of Markdown,
markdown-it-py, and PyYAML, with rules that need no guess: a path from the folder of the page, from the root
of the bundle where it begins with ``/``, or to a folder with an index; a wikilink to the only page of this
name. For each page are counted the links that lead to a page by these rules and do not in the store, those
that are in the store neither as a link to a page nor as one that leads nowhere, and fields that differ.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from urllib.parse import unquote

import yaml
from _report import add_output, report
from markdown_it import MarkdownIt

from linkstore import LinkStore, get_links
from linkstore.cli.sources import recognize_kind
from linkstore.core.urls import split_tag
from linkstore.ingest import index

FRONT = re.compile(r"\ufeff?---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
WIKILINK = re.compile(r"(?<!\\)\[\[([^\[\]|#\n][^\[\]|\n]*)(?:\|([^\[\]\n]*))?\]\]")
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)
MEDIA = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".bmp", ".avif", ".mp3", ".mp4", ".webm", ".mov")
IDS = re.compile(r"(?:id=[\"']?|\{#|\s\^)([\w.-]+)")
ALIASES = re.compile(r"^alias(?:es)?:: (.*)$", re.MULTILINE)
LOGSEQ_NAMES = re.compile(r"^(?:alias|aliases|title):: .*$", re.MULTILINE)
PARSER = MarkdownIt("commonmark").enable("table")


def read_front(text):
    match = FRONT.match(text)
    if match is None:
        return {}, LOGSEQ_NAMES.sub("", text)
    try:
        fields = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError):
        return None, text[match.end() :]
    return (fields if isinstance(fields, dict) else {}), text[match.end() :]


def find_links(body):
    """Yield the links of a text outside of code, as written: (whether a wikilink, target)."""
    for block in PARSER.parse(body):
        for token in block.children or ():
            if token.type == "link_open":
                yield False, token.attrs["href"]
        if block.type == "inline":
            text = "".join("" if token.type == "code_inline" else token.content for token in block.children)
            yield from ((True, match.groups(default="")) for match in WIKILINK.finditer(text))


def make_slug(heading):
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


class Files:
    """The pages of Markdown in a folder, as their names lead to them."""

    def __init__(self, root, pages):
        self.root = root
        self.texts = {page: (root / page).read_text(errors="replace").replace("\r\n", "\n") for page in pages}
        self.fronts = {page: read_front(text) for page, text in self.texts.items()}
        self.anchors = {}
        self.by_name = defaultdict(set)
        for page in pages:
            self.by_name[Path(page).stem.casefold()].add(page)
            fields, text = self.fronts[page][0] or {}, self.texts[page]
            listed = fields.get("aliases") or fields.get("alias") or []
            aliases = listed if isinstance(listed, list) else [listed]
            aliases += [name.strip("[] ") for line in ALIASES.findall(text) for name in line.split(",")]
            for alias in aliases:
                self.by_name[str(alias).casefold()].add(page)
        self.declared = {
            posixpath.dirname(page)
            for page, (fields, _) in self.fronts.items()
            if posixpath.basename(page) == "index.md" and fields and "okf_version" in fields
        }

    def resolve(self, page, target):
        """Return the page that a target leads to by a rule without a guess, else None."""
        path = unquote(target.partition("#")[0].partition("?")[0])
        above = [posixpath.dirname(page)]
        while above[-1]:
            above.append(posixpath.dirname(above[-1]))
        base = (
            next((folder for folder in above if folder in self.declared), "") if path[:1] == "/" else above[0]
        )
        joined = posixpath.normpath(posixpath.join(base, path.lstrip("/")))
        tried = (
            (joined, posixpath.join(joined, "index.md"), posixpath.join(joined, "README.md")) if path else ()
        )
        return next((page for page in tried if page in self.texts), None)

    def has_anchor(self, page, target):
        """Whether a page has the heading or id that a link names, or the link names none."""
        anchor = unquote(target.partition("#")[2]).rpartition("#")[2].strip()
        if page not in self.anchors:
            blocks = PARSER.parse(self.fronts[page][1])
            headings = [
                blocks[at + 1].content for at, block in enumerate(blocks) if block.type == "heading_open"
            ]
            self.anchors[page] = set(map(make_slug, headings)) | set(IDS.findall(self.texts[page]))
        return not anchor or anchor in self.anchors[page] or make_slug(anchor) in self.anchors[page]

    def resolve_name(self, name):
        """Return the only page of a name, its last part where it has folders, else None."""
        pages = self.by_name.get(
            posixpath.basename(name.partition("#")[0].strip()).removesuffix(".md").casefold(), ()
        )
        return next(iter(pages)) if len(pages) == 1 else None


def judge(root):  # noqa: C901 - one rule after the other
    began = time.process_time()
    kind = recognize_kind(str(root))
    with tempfile.TemporaryDirectory() as place, LinkStore.open(Path(place) / "kb") as store:
        summary = index(store, kind.make(str(root), {}), progress=None)
        documents = list(store.scan())
    seconds = time.process_time() - began
    counts, wrong = Counter(), defaultdict(list)
    listed = sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*.md")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts)
        if "node_modules" not in path.parts
    )
    files = Files(root, listed)
    of_page, arriving = defaultdict(list), defaultdict(set)
    for document in documents:
        page = unquote(document.metadata["page"])
        of_page[page].append(document)
        for link in get_links(document):
            if link.leads_in and link.kind == "hyperlink":
                arriving[link.tag].add(page)
    skipped = {unquote(name.split(" (")[0]) for name in (*summary.skipped, *summary.unseen)}
    for page in listed:
        counts["pages"] += 1
        chunks = of_page.get(page)
        if chunks is None:
            counts["skipped"] += page in skipped
            if page not in skipped:
                wrong["page"].append(page)
            continue
        fields, body = files.fronts[page]
        for name, key in (("type", "type"), ("status", "okf_lifecycle")):
            value = (fields or {}).get(name)
            if not isinstance(value, str) or not value.strip():
                continue
            have = {chunk.metadata.get(key, chunk.metadata.get(name)) for chunk in chunks}
            counts[name] += 1
            if have != {value} and not (name == "status" and have == {"stale"}):
                wrong[name].append(f"{page}: {value!r}, stored {sorted(map(str, have))}")
        leaving = {
            link.tag
            for chunk in chunks
            for link in get_links(chunk)
            if link.leads_out and link.kind == "hyperlink"
        }
        pages_named = {unquote(split_tag(tag)[0]).lstrip("/") for tag in leaving}
        labels = {
            link.label
            for chunk in chunks
            for link in get_links(chunk)
            if link.leads_out and link.kind == "hyperlink"
        }
        reached = {target for tag in leaving for target in arriving.get(tag, ())}
        ends = {
            posixpath.basename(unquote(split_tag(tag)[0])).removesuffix(".md").casefold() for tag in leaving
        }
        for wiki, target in find_links(body):
            if not wiki and (SCHEME.match(target) or "{{" in target):
                continue
            counts["links"] += 1
            names = [name for name in target if name.strip()] if wiki else [target]
            if wiki:
                expected = next(filter(None, map(files.resolve_name, names)), None)
            else:
                expected = files.resolve(page, target)
            if expected == page or (expected is not None and expected not in of_page):
                continue
            if expected is not None:
                counts["to pages"] += 1
                written = (
                    next((name for name in names if files.resolve_name(name) == expected), target)
                    if wiki
                    else target
                )
                if expected in reached:
                    continue
                if expected in pages_named and not files.has_anchor(expected, written):
                    counts["dead anchors"] += 1  # the store has the link, and says that it leads nowhere
                else:
                    wrong["link"].append(f"{page}: {target} -> {expected}")
                continue
            bare = [unquote(name.partition("#")[0].partition("?")[0]).strip().rstrip("/") for name in names]
            if any(name.lower().endswith(MEDIA) for name in bare):
                counts["media"] += 1
                continue
            if labels & {name.strip() for name in names}:  # it leads to an alias
                continue
            folded = {posixpath.basename(name).removesuffix(".md").casefold() for name in bare}
            if folded.isdisjoint(ends) and not any(
                name in {"", ".", ".."} or name in end for name in folded for end in ends
            ):
                wrong["silent"].append(f"{page}: {target}")
    return kind.name, seconds, counts, wrong, summary


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", required=True, type=Path, help="the folder with a folder for each repository"
    )
    parser.add_argument("--show", type=int, default=0, help="how many of each error to show")
    add_output(parser)
    options = parser.parse_args()
    rows = []
    for root in sorted(path for path in options.data.iterdir() if path.is_dir()):
        kind, seconds, counts, wrong, summary = judge(root)
        rows.append(
            {
                "bundle": root.name,
                "read as": kind,
                "pages": counts["pages"],
                "skipped with a reason": counts["skipped"],
                "left out by count": sum(summary.unread.values()),
                "lost": max(0, len(wrong["page"]) - sum(summary.unread.values())),
                "links": counts["links"],
                "to a page": counts["to pages"],
                "dead anchors": counts["dead anchors"],
                "wrong": len(wrong["link"]),
                "lost in silence": len(wrong["silent"]),
                "types": counts["type"],
                "wrong types": len(wrong["type"]),
                "statuses": counts["status"],
                "wrong statuses": len(wrong["status"]),
                "s, CPU": round(seconds, 1),
            }
        )
        print(json.dumps(rows[-1]))
        for name, cases in wrong.items():
            for case in cases[: options.show]:
                print("   ", name, case)
    report("bundles and vaults by recognition alone", rows, as_json=options.json, record_as=options.record)


if __name__ == "__main__":
    main()
