"""Which files of a folder are pages, and under which URLs they are known."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import quote

from linkstore.errors import LinkStoreError
from linkstore.extraction.markup import canonical_href, parse_html
from linkstore.urls import Site, UrlPolicy, normalize_url

HTML_SUFFIXES: Final = frozenset({".html", ".htm", ".xhtml"})
MARKDOWN_SUFFIXES: Final = frozenset({".md", ".markdown"})

_NO_PAGES_IN: Final = frozenset(
    {"_static", "_sources", "_images", "_downloads", "node_modules", "__pycache__"}
)
_NO_PAGES: Final = frozenset({"search", "genindex", "genindex-all"})
"""At the root, Sphinx's search form and its index of everything."""
_FOLDER_PAGES: Final = frozenset({"readme.md", "index.md", "readme.markdown", "index.markdown"})
_SAMPLE: Final = 16
_FOLDED: Final = UrlPolicy(query="drop", fragment="drop", trailing_slash="strip")


class SourceNotFoundError(LinkStoreError, FileNotFoundError):
    """There is no folder of pages at the given path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file that is a page.

    Args:
        path: Where it lies.
        page: Its path from the root, with ``/``.
        url: The same, percent-encoded.
        aliases: Further URL paths that lead to it, such as a README's folder.
    """

    path: Path
    page: str
    url: str
    aliases: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its path for people to read: what is no Unicode in it is replaced."""
        return self.page.encode(errors="replace").decode()

    @property
    def is_markdown(self) -> bool:
        """Whether it holds Markdown rather than HTML."""
        return self.path.suffix.lower() in MARKDOWN_SUFFIXES


def page_files(root: Path, is_page: Callable[[PurePosixPath], bool] | None = None) -> list[PageFile]:
    """The pages of a folder, by path.

    Hidden files and folders are left out, as are the folders that site builders keep no pages in
    (``_static``, ``_sources``, …) and, at the root, the search form and the general index.

    Args:
        root: The folder.
        is_page: Whether a file is a page, by its path; default HTML and Markdown.

    Raises:
        SourceNotFoundError: If there is no such folder.
    """
    if not root.is_dir():
        raise SourceNotFoundError(f"there is no folder {str(root)!r}; give the folder of the built site")
    names = sorted(_page_names(root, is_page or _is_page))
    known = set(names)
    return [
        PageFile(path=root / name, page=name, url=quoted(name), aliases=_aliases(name, known))
        for name in names
    ]


def quoted(path: str) -> str:
    """A path, percent-encoded; of a file whose name is no Unicode, the bytes that it has."""
    return quote(path, errors="surrogateescape")


def detect_bases(files: Sequence[PageFile]) -> tuple[str, ...]:
    """Where a site lies in public, by the ``rel=canonical`` of a few of its pages.

    Returns:
        The base that most of them agree on; empty if they name none, or none that fits their paths.
    """
    html = [file for file in files if not file.is_markdown]
    step = max(1, len(html) // _SAMPLE)
    found = [base for file in html[::step] if (base := _base(file)) is not None]
    if not found:
        return ()
    base, votes = Counter(found).most_common(1)[0]
    return (base,) if votes * 2 > len(found) else ()


def _page_names(root: Path, is_page: Callable[[PurePosixPath], bool]) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _NO_PAGES_IN and not name.startswith(".")]
        here = PurePosixPath(Path(folder).relative_to(root).as_posix())
        for name in files:
            path = here / name
            if is_page(path):
                yield str(path)


def _is_page(path: PurePosixPath) -> bool:
    if path.name.startswith(".") or path.suffix.lower() not in HTML_SUFFIXES | MARKDOWN_SUFFIXES:
        return False
    top = path.parent.name if path.stem == "index" and len(path.parts) == 2 else path.stem
    at_root = len(path.parts) == 1 or top != path.stem
    return not (at_root and (top in _NO_PAGES or top.startswith("genindex-")))


def _aliases(name: str, known: set[str]) -> tuple[str, ...]:
    folder, slash, file = name.rpartition("/")
    if file.lower() not in _FOLDER_PAGES or known & {
        f"{folder}{slash}index.html",
        f"{folder}{slash}index.htm",
    }:
        return ()
    return (f"{quoted(folder)}/",)


def _base(file: PageFile) -> str | None:
    """The URL that, with the page's path, makes its canonical URL."""
    canonical = canonical_href(parse_html(file.path.read_bytes()))
    url = normalize_url(canonical, policy=_FOLDED) if canonical else None
    if url is None:
        return None
    path = (Site().page_tag(file.url) or "").rstrip("/")
    for ending in (path, path.removesuffix(".html")):
        if url.rstrip("/").endswith(ending):
            return f"{url.rstrip('/').removesuffix(ending)}/"
    return None
