"""A folder of built HTML and Markdown as a source of pages, and its redirects.

Whether a page changed is decided by a hash of its bytes, not by its size and time of change: reading
and hashing costs little beside embedding, and a build may well write another text in the same second.

A page redirects by ``<meta http-equiv="refresh">`` (HTML Living Standard, section 4.2.5.3). A ``_redirects``
file (Netlify, Cloudflare Pages) or ``redirects`` file has one line ``from to [status]`` for each redirect.
Lines with wildcards, placeholders or conditions are left out, because they do not name a single page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, takewhile
from typing import Final

import xxhash

from linkstore.core.urls import Site, split_tag
from linkstore.extract.html import decode_html, parse_html
from linkstore.extract.html_bounds import UnboundedPageError
from linkstore.extract.protocol import Chunk, Page
from linkstore.ingest.chunks import add_incoming_links, make_chunks
from linkstore.ingest.copies import merge_copies
from linkstore.ingest.documents import Claims
from linkstore.ingest.files import Listing, PageFile, detect_bases, detect_origins, list_pages, open_folder
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
from linkstore.ingest.settings import PathSettings, hash_values
from linkstore.ingest.source import BadInput, SourcePage, UnreadablePageError
from linkstore.ingest.suffixes import (
    HTML_SUFFIXES,
    MARKDOWN_SUFFIXES,
    NOTEBOOK_SUFFIX,
    PDF_SUFFIX,
    RST_SUFFIX,
    TEXT_SUFFIX,
)
from linkstore.ingest.texts import read_notebook_page, read_rst_page, read_text_page
from linkstore.ingest.titles import TITLE_BYTES, PageTitles, find_titles

REDIRECT_FILES: Final = ("_redirects", "redirects", "_redirects.txt", "redirects.txt")
"""The names of files of redirects, at the root of the site."""
_REFRESH: Final = re.compile(rb"http-equiv\s*=\s*[\"']?refresh", re.IGNORECASE)
_TARGET: Final = re.compile(
    r"\s*(\d{0,9})[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?([\"']?)(.*)\2\s*", re.IGNORECASE | re.DOTALL
)
_NOT_FOR_ALL: Final = "script, style, noscript, template"
"""Elements that are not text, or are only for browsers without scripts."""
_SENDING: Final = frozenset({"301", "302", "303", "307", "308"})
_REFRESH_WITHIN: Final = 4096
_MOST_TEXT: Final = 400
_SOON: Final = 10
"""Seconds; a page that stays longer is one to be read, such as a picture of a slide show."""
_LONGEST_FILE: Final = 16 * 2**20
_LARGEST_STUB: Final = 16 * 2**10
_LONGEST_WAY: Final = 16
_SAMPLE: Final = 16
"""Pages from which it is told what a site's pages share."""
_LARGEST_SAMPLED: Final = 2**17
"""Bytes of a page among them."""
_LEAST_PART: Final = 24
"""Pages in a folder at the root of a site, from which on it is looked at on its own."""
_MOST_PARTS: Final = 8


def find_refresh_target(content: bytes) -> str | None:
    """Return the target of a page that only redirects.

    Args:
        content: HTML.

    Returns:
        The URL as written, None if the page stays, only reloads, sends on only browsers without scripts, or
        has more text or stays longer than a notice.
    """
    if not _REFRESH.search(content[:_REFRESH_WITHIN]):
        return None
    try:
        tree = parse_html(content)
    except UnboundedPageError:
        return None  # it is read again, and then reported
    for unseen in tree.css(_NOT_FOR_ALL):
        unseen.decompose()
    node = tree.css_first("meta[http-equiv=refresh i][content]")
    match = _TARGET.fullmatch(node.attributes.get("content") or "") if node else None
    text = 0 if tree.body is None else len(tree.body.text(strip=True))
    is_notice = match and (text == 0 or (text <= _MOST_TEXT and int(match[1] or 0) <= _SOON))
    return match[3].strip() or None if match and is_notice else None


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


def find_redirects(folder: Folder, files: Sequence[PageFile], site: Site) -> SiteRedirects:
    """Find the redirects of a site.

    A page that sends its reader to no other page of the site, or in a circle, stays a page.

    Args:
        folder: Where it lies.
        files: Its pages.
        site: How they are named.
    """
    tags = {file.url: [site.page_tag(name) or "" for name in (file.url, *file.aliases)] for file in files}
    ways: dict[str, str] = {}
    problems: list[BadInput] = []
    for start, end in read_redirects(folder, problems):
        _add_redirect(ways, site.tag(start), site.tag(end))
    sent_on = {file.url: _find_page_redirect(file) for file in files}
    for url, target in sent_on.items():
        if target is not None:
            for tag in tags[url]:
                _add_redirect(ways, tag, site.tag(target, page=url))
    stubs = {url for url, target in sent_on.items() if target is not None}
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


def _find_page_redirect(file: PageFile) -> str | None:
    """Return the target of the redirect of a page, or None if it has none, or cannot be read."""
    if file.suffix != ".html":
        return None
    try:
        return find_refresh_target(file.read(_LARGEST_STUB))
    except (UnreadablePageError, OSError):
        return None  # it is longer; or it is read again, and then reported


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
        return nullcontext(FolderPages(self, list_pages(open_folder(self.path, "a folder of pages"))))


class FolderPages:
    """The pages of a folder, in one run.

    Args:
        settings: How pages are read.
        listing: Which files are pages.
    """

    def __init__(self, settings: PathSettings, listing: Listing) -> None:
        self._settings = settings
        titles = dict(read_file_titles(listing.files, settings.encoding))
        self._listing = listing = merge_copies(listing, titles)
        self._folder = folder = listing.folder
        files = listing.files
        bases = settings.bases
        self.site: Final = settings.make_site(detect_bases(files) if bases is None else bases)
        own = self.site.bases or (detect_origins(files) if bases is None else ())
        self._claims = Claims(settings.claims, own)
        self._salt = hash_values(settings.limits, settings.encoding, settings.claims, own)
        self._redirects = find_redirects(folder, files, self.site)
        self._files = [file for file in files if file.url not in self._redirects.stubs]
        self._own_tags = frozenset(filter(None, (self.site.page_tag(file.url) for file in self._files)))
        self._look_around()
        self._bundles = Bundles(self._files, settings.encoding)
        self._titles = PageTitles((file.url, titles[file.url]) for file in self._files if file.url in titles)
        self._symbols: Mapping[str, Mapping[str, Sequence[str]]] = {}

    @property
    def unread(self) -> Mapping[str, int]:
        """The number of files that are pages to a reader and are not read here, by kind, most first."""
        return self._listing.unread

    def __len__(self) -> int:
        """Return the number of pages."""
        return len(self._files)

    def pages(self, known: Mapping[str, str]) -> Iterator[SourcePage | BadInput]:
        """Yield the pages by path. Each file is read, and parsed only if its page is read."""
        yield from (*self._listing.problems, *self._redirects.problems)
        yield from self._read_symbols()
        yield from map(self._offer, self._files)

    def reread(self, paths: Collection[str]) -> list[SourcePage | BadInput]:
        """Return the pages with these paths as they are now, with all else as it was when it was opened."""
        return [self._offer(file) for file in self._files if file.page in paths]

    def _offer(self, file: PageFile) -> SourcePage | BadInput:
        content = read_file_content(file, self._settings.max_bytes)
        if isinstance(content, BadInput):
            return content
        read = partial(self._chunks, file, content)
        digest, apart = self._digest(file, content), file.suffix == PDF_SUFFIX
        return SourcePage(url=file.url, digest=digest, read=read, size=len(content), apart=apart)

    def _look_around(self) -> None:
        """Learn from a few pages the text that most begin and end with, and whether links omit suffixes.

        The pages are taken from the whole folder, and more of them where some are too large.
        """
        sample = list(self._read_sample([file for file in self._files if file.suffix != PDF_SUFFIX]))
        built = [file for file in self._files if file.suffix == ".html"]
        urls = {file.url for file in built}
        self._chromes = {"": Chrome.find([content for url, content in sample if url in urls])}
        self._homes = {"": _find_home(self._files)}
        parts = Counter(map(_get_part, built))
        for part, count in parts.most_common(_MOST_PARTS) if len(parts) > 1 else ():
            if part and count >= _LEAST_PART:
                inside = [file for file in built if _get_part(file) == part]
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
        part = _get_part(file) if _get_part(file) in self._chromes else ""
        return self._chromes[part] if file.suffix == ".html" and file.url != self._homes[part] else None

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

    def _digest(self, file: PageFile, content: bytes) -> str:
        known_as = (file.url, file.aliases, self._old_names(file), self._symbols.get(file.url))
        chrome = self._find_chrome(file)
        framed = chrome.digest if chrome else ""
        around = f"{self._titles.describe(file.url)}{self._bundles.describe(file.page)}"
        settings = f"{self._salt}{known_as}{framed}{around}"
        digest = xxhash.xxh3_128(settings.encode(errors="replace"))
        digest.update(content)
        return digest.hexdigest()

    def _chunks(self, file: PageFile, content: bytes) -> list[Chunk]:
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
        return self._redirects.starts.get(self.site.page_tag(file.url) or "", {})

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


def read_file_titles(files: Iterable[PageFile], encoding: str | None) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the titles that files may have, skipping unreadable files.

    These are reported later, when they are read as pages.
    """
    for file in files:
        if file.suffix == PDF_SUFFIX:
            yield file.url, frozenset()
            continue
        with suppress(UnreadablePageError, OSError):
            head = decode_html(file.folder.head(file.page, TITLE_BYTES), encoding=encoding).text
            yield file.url, find_titles(head, markdown=file.suffix != ".html")


def read_file_content(file: PageFile, most: int) -> bytes | BadInput:
    """Return the content of a file, or the reason why it cannot be read."""
    try:
        return file.read(most)
    except UnreadablePageError as error:
        return BadInput(name=file.url, reason=str(error))
    except OSError as error:
        return BadInput(name=file.url, reason=error.strerror or str(error), hides=(file.url,))
