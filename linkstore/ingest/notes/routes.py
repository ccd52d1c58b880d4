"""Where Docusaurus publishes the pages made of notes, so that links by URL find their notes.

``docs/02-guides/01-setup.md`` becomes ``/docs/guides/setup``: folders and files lose the numbers that order
them, unless these look like a date or a version; an index, a README and a file that is called as its folder
stand for the folder. In front matter, ``id`` replaces the name of the file, and ``slug`` too, from the folder
of the page or, with a slash before it, from the folder of the content, such as ``docs``
(https://docusaurus.io/docs/create-doc#doc-urls). Pages of ``blog`` are named by their slug alone, or by date.

What two notes would have leads to none of them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from linkstore.ingest.folders import Folder

_CONFIGS: Final = tuple(f"docusaurus.config.{suffix}" for suffix in ("js", "ts", "mjs", "cjs", "mts", "cts"))
_DOCS: Final = "docs"
"""The folder of the content whose pages a site may have at its root, and the name of a vault that is it."""
_BLOG: Final = "blog"
_NUMBER: Final = re.compile(r"\A(?!\d+[-_.]\d)\d+\s*[-_.]+\s*(?=[^-_.\s])")
_DATE: Final = re.compile(r"\A(\d{4})-(\d\d)-(\d\d)-")
_INDEXES: Final = frozenset({"index", "readme"})


class Routes:
    """The notes of a vault by where they are published.

    Args:
        notes: The path of each note from the root of the vault, with its front matter.
        sites: The folders of the vault that are sites of Docusaurus, empty for the vault itself.
        name: What the vault's folder is called.
    """

    def __init__(
        self, notes: Mapping[str, Mapping[str, Any]] | None = None, sites: Iterable[str] = (), name: str = ""
    ) -> None:
        self._sites = sorted(sites, key=len, reverse=True)
        self._name = name
        self._routes = {path: self._make_route(path, fields) for path, fields in (notes or {}).items()}
        self._notes: dict[str, str | None] = {}
        for path, route in self._routes.items():
            key = _fold_route(route)
            self._notes[key] = None if key in self._notes else path

    def find(self, path: str, page: str) -> str | None:
        """Return the note that a link by URL or from the root means, or None if there is none for sure.

        Args:
            path: As written, without fragment.
            page: The path of the note it is written in.
        """
        from_root = path.startswith("/")
        tried = self._list_from_root(path, page) if from_root else self._list_beside(path, page)
        for route in map(_fold_route, tried):
            if note := route if from_root and route in self._routes else self._notes.get(route):
                return note
        return None

    def get_published(self, path: str) -> str | None:
        """Return where a note of a site of Docusaurus is published, from the root of the vault."""
        return None if self._find_site(path) is None else self._routes[path]

    def _list_from_root(self, path: str, page: str) -> Iterator[str]:
        """Yield where a path from the root of a site may lie in the vault."""
        path = path.lstrip("/")
        site = self._find_site(page)
        if site is not None:
            yield posixpath.join(site, path)
            yield posixpath.join(site, _DOCS, path)
        else:
            yield path
        if self._name and path.startswith(f"{self._name}/"):
            yield path.removeprefix(f"{self._name}/")

    def _list_beside(self, path: str, page: str) -> Iterator[str]:
        for beside in (self._routes.get(page, page), _remove_numbers(page)):
            yield posixpath.join(posixpath.dirname(beside), path)

    def _find_site(self, path: str) -> str | None:
        """Return the site that a note belongs to, None if it belongs to none."""
        return next((site for site in self._sites if not site or path.startswith(f"{site}/")), None)

    def _make_route(self, path: str, fields: Mapping[str, Any]) -> str:
        """Return where a note is published, with a slash at the end if it stands for a folder."""
        site = self._find_site(path)
        content = "" if site is None else posixpath.join(site, path[len(site) :].lstrip("/").split("/")[0])
        content = "" if content == path else content
        folder, file = posixpath.split(posixpath.splitext(path)[0])
        slug, id = (str(fields.get(field) or "").strip() for field in ("slug", "id"))
        if slug.startswith("/"):
            return posixpath.join(content, slug.lstrip("/"))
        if posixpath.basename(content) == _BLOG:
            folder, file = (
                content,
                _DATE.sub(r"\1/\2/\3/", posixpath.relpath(posixpath.splitext(path)[0], content)),
            )
        else:
            folder, file = _remove_numbers(folder), _remove_numbers(file)
        if not slug and posixpath.basename(file).lower() in _INDEXES | {posixpath.basename(folder).lower()}:
            return f"{posixpath.join(folder, posixpath.dirname(file))}/"
        return posixpath.join(folder, slug or id or file)


def find_sites(folder: Folder, notes: Iterable[str]) -> tuple[str, ...]:
    """Return the folders of a vault with a configuration of Docusaurus, among those above its notes.

    Args:
        folder: The vault.
        notes: The paths of its notes.
    """
    above = {""}
    for note in notes:
        lead = posixpath.dirname(note)
        while lead not in above:
            above.add(lead)
            lead = posixpath.dirname(lead)
    return tuple(
        sorted(lead for lead in above if any(folder.has(posixpath.join(lead, config)) for config in _CONFIGS))
    )


def _remove_numbers(path: str) -> str:
    """Return a path whose parts are without the numbers before them."""
    return "/".join(_NUMBER.sub("", part, count=1) for part in path.split("/"))


def _fold_route(path: str) -> str:
    """Return one spelling of a path from the root, which is a dot."""
    return posixpath.normpath(path.strip("/") or ".")
