"""A single page, and the pages that an ``llms.txt`` names, as sources.

An ``llms.txt`` is a list of the pages of a site that matter, in Markdown (https://llmstxt.org). Each page is
a link, often to the same page in Markdown, which has the page's own URL with ``.md`` appended.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from linkstore.core.arguments import as_path
from linkstore.errors import SourceNotFoundError
from linkstore.extract.html import decode_html
from linkstore.ingest.files import Listing, PageFile, list_pages, quote_path
from linkstore.ingest.folders import Folder
from linkstore.ingest.html.folder import FolderPages
from linkstore.ingest.settings import PathSettings
from linkstore.ingest.source import BadInput, UnreadablePageError
from linkstore.ingest.suffixes import NOTE_SUFFIXES, SITE_SUFFIXES, get_suffix

_LONGEST_LIST: Final = 16 * 2**20
LIST_NAME: Final = "llms.txt"
_LINK: Final = re.compile(r"\[[^\]\n]{0,400}+\]\(\s*<?([^\s()<>]{1,2048})>?[^()\n]{0,1000}\)")


@dataclass(frozen=True, slots=True)
class PageSource(PathSettings):
    """A single page: a file of HTML, Markdown, plain text, or a notebook.

    A page of the web is ``WebsiteSource(url, follow_links=False)``.

    Args:
        path: The file.

    Its other settings are those of :class:`~linkstore.ingest.settings.PathSettings`.
    """

    @contextmanager
    def open(self) -> Iterator[FolderPages]:
        """Look at the file.

        Raises:
            SourceNotFoundError: If there is no such file, or it is of another kind.
        """
        folder, name = _open_file(self.path, "a page")
        if get_suffix(name) not in SITE_SUFFIXES | NOTE_SUFFIXES:
            raise SourceNotFoundError(
                f"{str(self.path)!r} is no page; pages are {', '.join(sorted(SITE_SUFFIXES))}"
            )
        file = PageFile(folder=folder, page=name, url=quote_path(name))
        yield FolderPages(self, Listing(folder=folder, files=(file,)))


@dataclass(frozen=True, slots=True)
class LlmsTxtSource(PathSettings):
    """The pages of a folder that its ``llms.txt`` names.

    The list of a website is indexed as ``WebsiteSource("https://…/llms.txt")``.

    Args:
        path: The file; links in it are relative to its folder, which also stands for the site's root.

    Its other settings are those of :class:`~linkstore.ingest.settings.PathSettings`.
    """

    @contextmanager
    def open(self) -> Iterator[FolderPages]:
        """Read the list.

        Raises:
            SourceNotFoundError: If there is no such file, or it cannot be read.
        """
        folder, name = _open_file(self.path, "an llms.txt")
        try:
            written = decode_html(folder.read(name, _LONGEST_LIST)).text
        except UnreadablePageError as error:
            raise SourceNotFoundError(f"{str(self.path)!r} cannot be read: {error}") from error
        listed = list_pages(folder)
        files = {file.page: file for file in listed.files}
        chosen: dict[str, PageFile] = {}
        problems: list[BadInput] = []
        for href in find_named_pages(written):
            path = unquote(urlsplit(href).path).lstrip("/").removeprefix("./")
            tried = (path, f"{path.rstrip('/')}/index.html".lstrip("/"), f"{path}.html", f"{path}.md")
            page = next((candidate for candidate in tried if candidate in files), None)
            if page is None:
                problems.append(BadInput(name=href, reason="the list names it, and it is not in the folder"))
                continue
            original = find_original(files[page].url)
            aliases = (original,) if original and unquote(original) not in files else ()
            chosen[page] = replace(files[page], aliases=(*files[page].aliases, *aliases))
        pages = tuple(chosen[page] for page in sorted(chosen))
        yield FolderPages(
            self, replace(listed, files=pages, problems=(*listed.problems, *problems), unread={})
        )


def _open_file(path: str | Path, wanted: str) -> tuple[Folder, str]:
    file = as_path("path", path)
    if not file.is_file():
        raise SourceNotFoundError(f"the file {str(path)!r} does not exist; give {wanted}")
    real = Path(os.path.realpath(file))
    return Folder(real.parent), real.name


def is_page_list(place: str) -> bool:
    """Say whether a path or URL names such a list."""
    return PurePosixPath(urlsplit(place).path).name.lower() == LIST_NAME


def find_named_pages(text: str) -> list[str]:
    """Return the URLs that a list names, as written, each once and without fragment."""
    written = (match[1].partition("#")[0] for match in _LINK.finditer(text))
    return list(dict.fromkeys(filter(None, written)))


def find_original(url: str) -> str | None:
    """Return the URL of the page that this is the Markdown of, None if it is not named so."""
    original = url.removesuffix(".md")
    return None if original == url or original.endswith("/") else original
