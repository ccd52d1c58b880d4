"""Indexes what a site builder has built, and lists its pages in ``llms.txt`` (https://llmstxt.org)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from langchain_core.documents import Document

from linkstore.core.display import get_body, get_title, get_url, make_snippet
from linkstore.ingest.html.folder import FolderSource
from linkstore.ingest.pipeline import index
from linkstore.store.linkstore import LinkStore

LIST_NAME: Final = "llms.txt"
_MARK: Final = "<!-- written by linkstore -->\n"
"""The end of a list of our own; another one is left as it is."""
_LONGEST: Final = 160


def index_build(site: str | Path, place: str | Path, title: str, base: str = "") -> int:
    """Index a folder that was built as a whole, write its ``llms.txt``, and return the number of its pages.

    A list that somebody else wrote stays.

    Args:
        site: The folder.
        place: The folder of the store, made if need be.
        title: Name of the site, and of the source in the store.
        base: Where the site lies in public; without, links in the list are relative.

    Raises:
        NothingIndexedError: If the folder has no page.
    """
    with LinkStore.open(place) as store:
        summary = index(store, FolderSource(site), name=title, prune=True)
        listed = Path(site) / LIST_NAME
        if not listed.exists() or listed.read_text(encoding="utf-8", errors="replace").endswith(_MARK):
            listed.write_text("\n".join(_list_pages(store, title, base)), encoding="utf-8")
    return summary.pages.added + summary.pages.updated + summary.pages.unchanged


def _list_pages(store: LinkStore, title: str, base: str) -> Iterator[str]:
    """Yield the lines of a list, with a section for each folder at the root."""
    folders: defaultdict[str, list[Document]] = defaultdict(list)
    for document in sorted(store.scan(), key=lambda document: get_url(document) or ""):
        if (url := get_url(document)) and "#" not in url:
            folders[url.partition("/")[0] if "/" in url else ""].append(document)
    yield f"# {title}\n"
    for folder, documents in folders.items():
        yield f"## {folder or 'Pages'}\n"
        for document in documents:
            name = (get_title(document) or document.id or "").replace("[", r"\[").replace("]", r"\]")
            yield f"- [{name}]({base}{get_url(document)}): {make_snippet(get_body(document), '', _LONGEST)}"
        yield ""
    yield _MARK
