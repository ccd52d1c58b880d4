"""Files of built HTML and Markdown as sources: a folder with its redirects, a page, what a list names.

Whether a page changed is decided by a hash of its bytes, which are read if its file may have changed: see
:mod:`linkstore.ingest.outlines`.

A page redirects by ``<meta http-equiv="refresh">`` (HTML Living Standard, section 4.2.5.3). A ``_redirects``
file (Netlify, Cloudflare Pages) or ``redirects`` file has one line ``from to [status]`` for each redirect.
Lines with wildcards, placeholders or conditions are left out, because they do not name a single page.

An ``llms.txt`` is a list of the pages of a site that matter, in Markdown (https://llmstxt.org). Each page is
a link, often to the same page in Markdown, which has the page's own URL with ``.md`` appended.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice, takewhile
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

import xxhash

from linkstore.core.arguments import as_path
from linkstore.core.urls import Site, split_tag
from linkstore.errors import SourceNotFoundError
from linkstore.extract.html import decode_html
from linkstore.extract.protocol import Chunk, Page
from linkstore.ingest.chunks import add_incoming_links, make_chunks
from linkstore.ingest.copies import merge_copies
from linkstore.ingest.documents import Claims
from linkstore.ingest.files import (
    Listing,
    PageFile,
    detect_bases,
    detect_origins,
    list_pages,
    open_folder,
    quote_path,
)
from linkstore.ingest.folders import Folder
from linkstore.ingest.html.chrome import INVENTORY_NAME as INVENTORY
from linkstore.ingest.html.chrome import (
    LARGEST_INVENTORY,
    SYMBOL,
    Chrome,
    has_suffixless_links,
    read_inventory,
)
from linkstore.ingest.html.pages import PageContent, read_html_page
from linkstore.ingest.notes.bundles import Bundles
from linkstore.ingest.notes.markdown import read_markdown_page
from linkstore.ingest.outlines import Outlines
from linkstore.ingest.settings import PathSettings, hash_values
from linkstore.ingest.source import BadInput, SourcePage, UnreadablePageError
from linkstore.ingest.suffixes import (
    HTML_SUFFIXES,
    MARKDOWN_SUFFIXES,
    NOTE_SUFFIXES,
    NOTEBOOK_SUFFIX,
    PDF_SUFFIX,
    RST_SUFFIX,
    SITE_SUFFIXES,
    TEXT_SUFFIX,
    get_suffix,
)
from linkstore.ingest.texts import read_notebook_page, read_rst_page, read_text_page
from linkstore.ingest.titles import PageTitles

REDIRECT_FILES: Final = ("_redirects", "redirects", "_redirects.txt", "redirects.txt")
"""The names of files of redirects, at the root of the site."""
_SENDING: Final = frozenset({"301", "302", "303", "307", "308"})
_LONGEST_FILE: Final = 16 * 2**20
_LONGEST_WAY: Final = 16
_SAMPLE: Final = 16
"""Pages from which it is told what a site's pages share."""
_LARGEST_SAMPLED: Final = 2**17
"""Bytes of a page among them."""
_LEAST_PART: Final = 24
"""Pages in a folder at the root of a site, from which on it is looked at on its own."""
_MOST_PARTS: Final = 8


def read_redirects(folder: Folder, problems: list[BadInput]) -> Iterator[tuple[str, str]]:
    """Yield the redirects that the files at the root of a site name, from and to, as written.

    Args:
        folder: The site.
        problems: Takes what cannot be read.
    """
    for name in filter(folder.has, REDIRECT_FILES):
        try:
            content = folder.read(name, _LONGEST_FILE)
        except (UnreadablePageError, OSError) as error:
            problems.append(BadInput(name=name, reason=str(error)))
            continue
        for line in decode_html(content).text.splitlines():
            words = list(takewhile(lambda word: not word.startswith("#"), line.split()))
            one_page = len(words) in {2, 3} and not any("*" in word or "/:" in word for word in words[:2])
            if one_page and (len(words) == 2 or words[2].rstrip("!") in _SENDING):
                yield words[0], words[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRedirects:
    """The old URLs of the pages of a site.

    Args:
        stubs: Those of the pages that only send the reader on to another one, by URL.
        starts: Tag of a page → fragment, empty for the page as a whole → the tags that lead there.
        problems: Files of redirects that cannot be read.
    """

    stubs: frozenset[str]
    starts: Mapping[str, Mapping[str, tuple[str, ...]]]
    problems: tuple[BadInput, ...] = ()


def find_redirects(
    folder: Folder, files: Sequence[PageFile], site: Site, outlines: Outlines
) -> SiteRedirects:
    """Find the redirects of a site.

    A page that sends its reader to no other page of the site, or in a circle, stays a page.

    Args:
        folder: Where it lies.
        files: Its pages.
        site: How they are named.
        outlines: Of the pages.
    """
    ways: dict[str, str] = {}
    problems: list[BadInput] = []
    for start, end in read_redirects(folder, problems):
        _add_redirect(ways, site.tag(start), site.tag(end))
    stubs = {file.url: target for file in files if (target := outlines.get(file).redirect) is not None}
    if not ways and not stubs:
        return SiteRedirects(stubs=frozenset(), starts={}, problems=tuple(problems))
    tags = {file.url: [site.page_tag(name) or "" for name in (file.url, *file.aliases)] for file in files}
    for url, target in stubs.items():
        for tag in tags[url]:
            _add_redirect(ways, tag, site.tag(target, page=url))
    stays = {tags[file.url][0] for file in files if file.url not in stubs}
    ends = {start: at for start in sorted(ways) if (at := _follow_chain(start, ways, stays)) is not None}
    starts: dict[str, dict[str, tuple[str, ...]]] = {}
    for start, end in ends.items():
        page, fragment = split_tag(end)
        of_page = starts.setdefault(page, {})
        of_page[fragment or ""] = (*of_page.get(fragment or "", ()), start)
    return SiteRedirects(
        stubs=frozenset(url for url in stubs if tags[url][0] in ends), starts=starts, problems=tuple(problems)
    )


def _add_redirect(ways: dict[str, str], start: str | None, end: str | None) -> None:
    if start is not None and end is not None:
        ways.setdefault(split_tag(start)[0], end)


def _follow_chain(start: str, ways: Mapping[str, str], stays: AbstractSet[str]) -> str | None:
    """Follow redirects to their end, None if that is not a page, or the chain is circular or long."""
    if start in stays:
        return None
    here = ways.get(start)
    for _ in range(_LONGEST_WAY):
        if here is None or split_tag(here)[0] in stays:
            return here
        here = ways.get(split_tag(here)[0])
    return None


@dataclass(frozen=True, slots=True)
class FolderSource(PathSettings):
    """The pages of a folder: built HTML and Markdown, by path.

    Args:
        path: The folder.

    Its other settings are those of :class:`~linkstore.ingest.settings.PathSettings`.
    """

    def open(self) -> AbstractContextManager[FolderPages]:
        """List the folder.

        Raises:
            SourceNotFoundError: If there is no such folder.
        """
        return self.resume({})

    def resume(self, outlines: Mapping[str, str]) -> AbstractContextManager[FolderPages]:
        """List the folder, whose unchanged files need not be read: see :meth:`open`."""
        listing = list_pages(open_folder(self.path, "a folder of pages"))
        return nullcontext(FolderPages(self, listing, outlines))


class FolderPages:
    """The pages of a folder, in one run.

    Args:
        settings: How pages are read.
        listing: Which files are pages.
        outlines: What the last run said of its pages, by their names in the store.
    """

    def __init__(
        self, settings: PathSettings, listing: Listing, outlines: Mapping[str, str] | None = None
    ) -> None:
        self._settings = settings
        self._outlines = Outlines(listing.files, settings, outlines or {})
        titles = self._outlines.titles
        self._listing = listing = merge_copies(listing, self._outlines)
        self._folder = folder = listing.folder
        files = listing.files
        bases = settings.bases
        self.site: Final = settings.make_site(detect_bases(files) if bases is None else bases)
        own = self.site.bases or (detect_origins(files) if bases is None else ())
        self._claims = Claims(settings.claims, own)
        self._salt = hash_values(settings.limits, settings.encoding, settings.claims, own)
        self._redirects = find_redirects(folder, files, self.site, self._outlines)
        self._files = [file for file in files if file.url not in self._redirects.stubs]
        self._look_around()
        self._bundles = Bundles(self._files, self._outlines)
        self._titles = PageTitles((file.url, titles[file.url]) for file in self._files if file.url in titles)
        self._symbols: Mapping[str, Mapping[str, Sequence[str]]] = {}

    @cached_property
    def _own_tags(self) -> frozenset[str]:
        return frozenset(filter(None, (self.site.page_tag(file.url) for file in self._files)))

    @property
    def unread(self) -> Mapping[str, int]:
        """The number of files that are pages to a reader and are not read here, by kind, most first."""
        return self._listing.unread

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self._files)

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the pages by path. Files are read if they may have changed, and parsed if their page is."""
        yield from (*self._listing.problems, *self._redirects.problems)
        yield from self._read_symbols()
        yield from (self._offer(file, known.get(file.url)) for file in self._files)

    def reread(self, paths: Collection[str]) -> list[SourcePage | BadInput]:
        """Return the pages with these paths as they are now, with all else as it was when it was opened."""
        return [self._offer(replace(file, stamp="")) for file in self._files if file.page in paths]

    def _offer(self, file: PageFile, known: str | None = None) -> SourcePage | BadInput:
        described = self._describe(file).encode(errors="replace")
        around, outline = xxhash.xxh3_128_hexdigest(described), self._outlines.get(file)
        if known and outline.around == around:
            read = partial(self._chunks, file, None)
            return SourcePage(url=file.url, digest=known, read=read, outline=self._outlines.kept[file.url])
        content = read_file_content(file, self._settings.max_bytes)
        if isinstance(content, BadInput):
            return content
        digest = xxhash.xxh3_128(described)
        digest.update(content)
        return SourcePage(
            url=file.url,
            digest=digest.hexdigest(),
            read=partial(self._chunks, file, content),
            size=len(content),
            apart=file.suffix == PDF_SUFFIX,
            outline=self._outlines.write(file, around, content),
        )

    def _look_around(self) -> None:
        """Learn from a few pages the text that most begin and end with, and whether links omit suffixes.

        The pages are taken from the whole folder, and more of them where some are too large.
        """
        sample = list(self._read_sample([file for file in self._files if file.suffix != PDF_SUFFIX]))
        built = [file for file in self._files if file.suffix == ".html"]
        urls = {file.url for file in built}
        self._chromes = {"": Chrome.find([content for url, content in sample if url in urls])}
        self._homes = {"": _find_home(self._files)}
        parts: dict[str, list[PageFile]] = {}
        for file in built:
            parts.setdefault(_get_part(file), []).append(file)
        largest = sorted(parts.items(), key=lambda part: -len(part[1]))[:_MOST_PARTS]
        for part, inside in largest if len(parts) > 1 else ():
            if part and len(inside) >= _LEAST_PART:
                sampled = [content for _, content in self._read_sample(inside)]
                self._chromes[part] = Chrome.find(sampled, banners=False)
                self._homes[part] = _find_home(inside)
        if has_suffixless_links(sample, self.site, self._own_tags, HTML_SUFFIXES | MARKDOWN_SUFFIXES):
            self._files = [self._also_without_suffix(file) for file in self._files]

    def _read_sample(self, files: Sequence[PageFile]) -> Iterator[tuple[str, PageContent]]:
        """Yield a few pages, each with its URL."""
        apart = max(1, len(files) // _SAMPLE)
        tried = chain.from_iterable(files[start::apart] for start in dict.fromkeys((0, apart // 2)))
        small = ((file, read_file_content(file, _LARGEST_SAMPLED)) for file in tried)
        readable = ((file, content) for file, content in small if not isinstance(content, BadInput))
        for file, content in islice(readable, _SAMPLE):
            with suppress(Exception):  # whatever is wrong, the page is read again, and then reported
                yield file.url, self._read(file, content)

    def _find_chrome(self, file: PageFile) -> Chrome | None:
        """Return the chrome of a page's part of the site, or None for the page that keeps it."""
        if file.suffix != ".html":
            return None
        part = _get_part(file)
        part = part if part in self._chromes else ""
        return self._chromes[part] if file.url != self._homes[part] else None

    def _also_without_suffix(self, file: PageFile) -> PageFile:
        name, dot, _ = file.url.rpartition(".")
        if not dot or (self.site.page_tag(name) or "") in self._own_tags:
            return file
        return replace(file, aliases=(*file.aliases, name))

    def _read_symbols(self) -> Iterator[BadInput]:
        """Take up the names that Sphinx says are documented here, if it does."""
        if self._folder.has(INVENTORY):
            try:
                self._symbols = read_inventory(self._folder.read(INVENTORY, LARGEST_INVENTORY))
            except (UnreadablePageError, OSError) as error:
                yield BadInput(name=INVENTORY, reason=str(error))

    def _describe(self, file: PageFile) -> str:
        """Return a text that changes whenever a page would be read otherwise, though its file is the same."""
        known_as = (file.url, file.aliases, self._old_names(file), self._symbols.get(file.url))
        chrome = self._find_chrome(file)
        framed = chrome.digest if chrome else ""
        around = f"{self._titles.describe(file.url)}{self._bundles.describe(file.page)}"
        return f"{self._salt}{known_as}{framed}{around}"

    def _chunks(self, file: PageFile, content: bytes | None) -> list[Chunk]:
        content = file.read(self._settings.max_bytes) if content is None else content
        page_content = self._titles.choose(self._read(file, content), file.url)
        chrome = self._find_chrome(file)
        page_content = chrome.without(page_content) if chrome else page_content
        page_content = self._titles.disambiguate(page_content, file.url)
        old = self._old_names(file)
        canonical = self._canonical(file, page_content)
        believed = canonical is not None and self._claims.trusts(canonical)
        known_as: tuple[str, ...] = ()
        if believed and canonical is not None and page_content.canonical is not None:
            known_as = (page_content.canonical if "://" in page_content.canonical else canonical,)
        page = Page(
            url=file.url,
            title=self._bundles.get_title(file.page) or page_content.title,
            base=page_content.base,
            aliases=(*file.aliases, *known_as, *old.get("", ())),
            left_out=page_content.left_out,
            replaced=page_content.replaced,
            guessed=page_content.guessed,
            metadata=page_content.metadata,
            problem=page_content.problem,
            disbelieved=() if canonical is None or believed else (canonical,),
        )
        chunks = make_chunks(page, page_content.blocks, self._settings.limits)
        chunks = add_incoming_links(chunks, {"hyperlink": old, SYMBOL: self._symbols.get(file.url, {})})
        return self._bundles.complete(chunks, file.page, self.site)

    def _read(self, file: PageFile, content: bytes) -> PageContent:
        if file.suffix == NOTEBOOK_SUFFIX:
            return read_notebook_page(content)
        if file.suffix == PDF_SUFFIX:
            from linkstore.ingest.pdf import read_pdf_page

            return read_pdf_page(content)
        readers = {".html": read_html_page, TEXT_SUFFIX: read_text_page, RST_SUFFIX: read_rst_page}
        return readers.get(file.suffix, read_markdown_page)(content, encoding=self._settings.encoding)

    def _old_names(self, file: PageFile) -> Mapping[str, tuple[str, ...]]:
        """Return the tags that lead to a page by redirects, by fragment."""
        starts = self._redirects.starts
        return starts.get(self.site.page_tag(file.url) or "", {}) if starts else {}

    def _canonical(self, file: PageFile, found: PageContent) -> str | None:
        """Return the tag of the canonical URL, or None if it is another page, such as the home page."""
        if not found.canonical:
            return None
        tag = self.site.tag(found.canonical, page=file.url, base=found.base)
        return None if tag is None or split_tag(tag)[0] in self._own_tags else tag


def _find_home(files: Sequence[PageFile]) -> str:
    """Return the URL of the page that keeps the shared content: the root index, or else the first."""
    if not files:
        return ""
    lead = _get_part(files[0])
    return next(
        (file.url for file in files if file.page in {"index.html", f"{lead}/index.html"}), files[0].url
    )


def _get_part(file: PageFile) -> str:
    """Return the folder at the root of the site that a page lies in, such as a language or a book."""
    return file.page.partition("/")[0] if "/" in file.page else ""


def read_file_content(file: PageFile, most: int) -> bytes | BadInput:
    """Return the content of a file, or the reason why it cannot be read."""
    try:
        return file.read(most)
    except UnreadablePageError as error:
        return BadInput(name=file.url, reason=str(error))
    except OSError as error:
        return BadInput(name=file.url, reason=error.strerror or str(error), hides=(file.url,))


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
