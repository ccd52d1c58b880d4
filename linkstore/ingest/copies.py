"""Finds what a folder says twice: one page under several names, and a whole book on one page.

The names of one page are links to one file, and files with the same bytes, but for links that lead to the
same places. So a copy in another folder, whose relative links are written otherwise, is one, and a page of
the same text for another version is not. It is indexed once.

Markdown beside HTML of the same name is its source, and one of its names, if nearly all of its paragraphs are
in the HTML. If not, both are pages.

A page repeats a book if the paragraphs of several other pages are in it, and next to nothing else: mdBook's
``print.html``, a manual "on one page" beside its chapters. It is left out, since it would be the answer to
every question. Whether a page asks search engines not to index it (``noindex``) says nothing of that: it is
said of private sites, of old versions, and of reference pages that stand on other sites too.

DocBook gives each picture a page "Long Description", ``ld-….html``, which next to nothing is on.

A page without a title that is mostly links, which all open outside its frame, is a menu that other pages show
in a frame, such as mdBook's ``toc.html``.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from html import unescape
from posixpath import basename, dirname, splitext
from typing import Final
from urllib.parse import urljoin

import xxhash

from linkstore.extract.blocks import count_letters
from linkstore.extract.html import UnboundedPageError, decode_html, find_canonical_href, parse_html
from linkstore.ingest.files import Listing, PageFile
from linkstore.ingest.folders import Folder
from linkstore.ingest.notes.frontmatter import split_front_matter
from linkstore.ingest.notes.markdown import render_markdown
from linkstore.ingest.outlines import LINK, Outlines, hash_without_links
from linkstore.ingest.source import UnreadablePageError
from linkstore.ingest.suffixes import MARKDOWN_SUFFIXES

COPIES: Final = "other names of pages"
MENUS: Final = "menus shown in frames"
STUBS: Final = "descriptions of pictures"
"""How a summary counts them."""
_STUB_TITLES: Final = frozenset({"Long Description"})
_LARGEST_STUB: Final = 2**11
_LARGEST: Final = 16 * 2**20
_NAMED: Final = 3
_LEAST_BOOK: Final = 32 * 2**10
"""Bytes of a page that may repeat a book."""
_PART: Final = 1 / 10
"""How large it is at least, beside all other pages of its folder, so that few pages are compared with all."""
_FEWEST_REPEATED: Final = 5
_REPEATED: Final = 0.99
"""How much of it other pages say."""
_CONTAINED: Final = 0.9
"""How much of each of them it says."""
_PARAGRAPH_ENDS: Final = re.compile(
    rb"</?(?:p|pre|li|d[dtl]|t[dhr]|h[1-6]|div|section|article|main|[ou]l|blockquote|table|body|br)\b[^<>]*+>",
    re.IGNORECASE,
)
_OUTSIDE: Final = frozenset({"_parent", "_top"})
"""Targets of links outside a frame (HTML Living Standard, section 7.3.1.7)."""
_TAG: Final = re.compile(rb"<[^<>]*+>")
_UNSHOWN: Final = re.compile(rb"<(script|style|template)\b.*?</\1", re.IGNORECASE | re.DOTALL)
_LETTERS: Final = re.compile(r"[^\W_]+")
_FEWEST_LETTERS: Final = 100
_SAID: Final = 0.98
"""How much of Markdown must be in the page that was made from it, for what its builder adds or replaces."""
_KEPT: Final = 1_000
"""Pages whose paragraphs are kept while books are looked for."""
_SHORTEST_PARAGRAPH: Final = 32
"""Letters; headings and entries of tables of contents are shorter."""


def merge_copies(listing: Listing, outlines: Outlines) -> Listing:
    """Return a listing in which each page stands once, with its other names as aliases, and no whole book.

    Args:
        listing: The pages.
        outlines: Of the pages, which are compared if they may have the same titles, or have the same size.
    """
    folder, titles = listing.folder, outlines.titles
    real: dict[str, list[PageFile]] = {}
    sizes: dict[str, int] = {}
    alike: dict[frozenset[str] | int, list[PageFile]] = {}
    for file in listing.files:
        size, target = (file.size, file.page) if file.size else _look_at(folder, file)
        sizes[file.page] = size
        real.setdefault(target, []).append(file)
        if target == file.page and size:
            alike.setdefault(titles.get(file.url) or size, []).append(file)
    for files in alike.values():
        for first, *others in _group_by_content(files, outlines) if len(files) > 1 else ():
            for other in others:
                real[first] += real.pop(other)
    merged = [_merge(target, files) for target, files in real.items()]
    merged = _merge_sources(merged)
    kept = [
        file for file in merged if titles.get(file.url, True) or file.suffix != ".html" or not _is_menu(file)
    ]
    copies, menus = len(listing.files) - len(merged), len(merged) - len(kept)
    stubs = {
        file.page
        for file in kept
        if titles.get(file.url) == _STUB_TITLES
        and basename(file.page).startswith("ld-")
        and sizes[file.page] <= _LARGEST_STUB
    }
    unread = Counter({**listing.unread, COPIES: copies, MENUS: menus, STUBS: len(stubs)})
    built = {file.page: file for file in kept if file.suffix == ".html"}
    books = set(
        find_books({page: sizes[page] for page in built}, lambda page, most: _read(built[page], most))
    )
    unread += count_books(books)
    left = sorted((file for file in kept if file.page not in books | stubs), key=lambda file: file.page)
    return replace(listing, files=tuple(left), unread=dict(+unread))


def _look_at(folder: Folder, file: PageFile) -> tuple[int, str]:
    """Return the size of a page, 0 for a link, and the path that it really has."""
    path = folder.path / file.page
    with suppress(OSError):  # it is read later, and then reported
        status = path.lstat()
        if not stat.S_ISLNK(status.st_mode):
            return status.st_size, file.page
        target = folder.inside(type(path)(os.path.realpath(path)))
        return 0, "/".join(target) if target else file.page
    return 0, file.page


def _group_by_content(files: Sequence[PageFile], outlines: Outlines) -> list[list[str]]:
    """Return the names of pages that say the same, the nearest to the root first."""
    alike: dict[str, list[PageFile]] = {}
    for file in files:
        with suppress(ValueError, OSError):  # likewise
            digest = outlines.get(file).content or hash_without_links(
                file.read(_LARGEST)
            )  # links take longer
            alike.setdefault(digest, []).append(file)
    names_of: dict[bytes, list[str]] = {}
    for file in (file for others in alike.values() if len(others) > 1 for file in others):
        with suppress(ValueError, OSError):  # likewise; or a link that is none
            names_of.setdefault(_identify(file, file.read(_LARGEST)), []).append(file.page)
    return [sorted(names, key=lambda name: name.count("/")) for names in names_of.values()]


def _identify(file: PageFile, content: bytes) -> bytes:
    """Return a hash of a page's content, with its links resolved.

    Raises:
        ValueError: If a link cannot be parsed.
    """

    def resolve(link: re.Match[bytes]) -> bytes:
        return urljoin(f"/{file.url}", str(link[1], "latin-1")).encode("latin-1", "replace")

    is_html = file.suffix == ".html"
    digest = xxhash.xxh3_128(b"" if is_html else os.fsencode(dirname(file.page)))
    digest.update(LINK.sub(resolve, content) if is_html else content)
    return digest.digest()


def _merge(target: str, files: Sequence[PageFile]) -> PageFile:
    """Return the file to keep of several copies, with the names of the others as aliases.

    It is the one that the page names, an index, or the first that is no link.
    """
    if len(files) == 1:
        return files[0]
    named = ""
    with suppress(UnboundedPageError):
        named = basename((find_canonical_href(parse_html(_read(files[0], _LARGEST))) or "").rstrip("/"))
    kept = min(
        files,
        key=lambda file: (
            basename(file.page) != named,
            not basename(file.page).startswith("index."),
            file.page != target,
        ),
    )
    others = (name for file in files if file is not kept for name in (file.url, *file.aliases))
    return replace(kept, aliases=tuple(dict.fromkeys((*kept.aliases, *others))))


def _is_menu(file: PageFile) -> bool:
    """Return whether a page is mostly links, all of which open outside its frame."""
    with suppress(UnboundedPageError):
        tree = parse_html(_read(file, _LARGEST))
        links = tree.css("a[href]")
        letters = sum(count_letters(link.text()) for link in links)
        return (
            all((link.attributes.get("target") or "").lower() in _OUTSIDE for link in links)
            and tree.body is not None
            and 2 * letters > count_letters(tree.body.text())
        )
    return False


def _merge_sources(files: Sequence[PageFile]) -> list[PageFile]:
    """Merge Markdown sources into the pages made from them, as further names."""
    built = {file.page: file for file in files if file.suffix == ".html"}
    if not built or len(built) == len(files):
        return list(files)
    sources: set[str] = set()
    for file in files:
        stem, suffix = splitext(file.page)
        page = built.get(stem) or built.get(f"{stem}.html")
        if page is not None and suffix.lower() in MARKDOWN_SUFFIXES and _is_source(file, page):
            sources.add(file.page)
            built[page.page] = replace(page, aliases=(*page.aliases, file.url, *file.aliases))
    return [built.get(file.page, file) for file in files if file.page not in sources]


def _is_source(file: PageFile, page: PageFile) -> bool:
    """Say whether nearly all paragraphs of a file of Markdown are those of a page of HTML."""
    body = split_front_matter(decode_html(_read(file, _LARGEST)).text)[1]
    written = _read_paragraphs(render_markdown(body).encode(errors="replace"))
    letters = sum(written.values())
    if letters < _FEWEST_LETTERS:
        return False
    shared = written.keys() & _read_paragraphs(_read(page, _LARGEST)).keys()
    return sum(written[paragraph] for paragraph in shared) >= _SAID * letters


def count_books(books: Iterable[str]) -> Counter[str]:
    """Count the pages left out for repeating others, as a summary describes them."""
    named = sorted(books)
    more = ", …" if len(named) > _NAMED else ""
    return Counter(
        {f"repeating other pages ({', '.join(named[:_NAMED])}{more})": len(named)} if named else {}
    )


def find_books(sizes: Mapping[str, int], read: Callable[[str, int], bytes]) -> Iterator[str]:
    """Yield the paths of pages of HTML that repeat other pages in or below their folder, the largest first.

    Args:
        sizes: The bytes of each page, by path.
        read: Returns the content of a page, or so many bytes of its beginning.
    """
    if max(sizes.values(), default=0) < _LEAST_BOOK:
        return
    below: Counter[str] = Counter()
    for page, size in sizes.items():
        path = page
        while path:
            path = dirname(path)
            below[path] += size
    books: set[str] = set()

    @lru_cache(_KEPT)  # a folder may have several books
    def read_paragraphs(page: str) -> Mapping[int, int]:
        return _read_paragraphs(read(page, _LARGEST))

    for page in sorted(sizes, key=lambda path: -sizes[path]):
        size, folder = sizes[page], dirname(page)
        if size < _LEAST_BOOK:
            return
        if basename(page).startswith("index.") or size < _PART * (below[folder] - size):
            continue
        lead = f"{folder}/" if folder else ""
        inside = [path for path in sizes if path.startswith(lead) and path not in books and path != page]
        if _repeats(read_paragraphs(page), map(read_paragraphs, inside)):
            books.add(page)
            yield page


def _repeats(own: Mapping[int, int], others: Iterable[Mapping[int, int]]) -> bool:
    """Say whether the paragraphs of a page are those of other pages, and of next to nothing else."""
    covered: set[int] = set()
    contained = 0
    for paragraphs in others if own else ():
        shared = paragraphs.keys() & own.keys()
        covered |= shared
        contained += sum(paragraphs[paragraph] for paragraph in shared) > _CONTAINED * sum(
            paragraphs.values()
        )
    repeated = sum(own[paragraph] for paragraph in covered)
    return contained >= _FEWEST_REPEATED and repeated >= _REPEATED * sum(own.values())


def _read_paragraphs(content: bytes) -> dict[int, int]:
    """Return the hashes of a page's paragraphs, as letters alone, with their lengths."""
    parts = _PARAGRAPH_ENDS.split(_UNSHOWN.sub(b"", content))
    texts = (unescape(_TAG.sub(b"", part).decode(errors="replace")) for part in parts)
    paragraphs = ("".join(_LETTERS.findall(text)) for text in texts)
    return {
        hash(paragraph): len(paragraph) for paragraph in paragraphs if len(paragraph) >= _SHORTEST_PARAGRAPH
    }


def _read(file: PageFile, most: int) -> bytes:
    with suppress(UnreadablePageError, OSError):  # it is read again, and then reported
        return file.folder.head(file.page, most)
    return b""
