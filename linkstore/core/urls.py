"""One normal form of URLs, for extractors, ingest and queries."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import Final, Literal, TypeVar, TypeVarTuple
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

from linkstore.core.display import make_readable
from linkstore.core.links import MAX_TAG_BYTES
from linkstore.core.text import replace_surrogates
from linkstore.errors import LinkError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
SCHEMES: Final = frozenset({"http", "https", "ftp", "file"})
"""Schemes with pages behind them; every other, such as ``mailto:``, is skipped."""
_LONGEST_HOST: Final = 253
_ESCAPES: Final = re.compile(r"%(?:([0-9A-Fa-f]{2}))?|[;|^]")
_UNENCODED: Final = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,:=@"
)
"""Characters of a path that are the same percent-encoded (RFC 3986, sections 2.3 and 3.3); ``;`` is not."""


def join_url(base: str, url: str) -> str:
    """Return the absolute URL that a link leads to, as browsers resolve it (https://url.spec.whatwg.org).

    Args:
        base: An absolute URL, or empty.
        url: As it is written.

    Returns:
        The URL without fragment, and without a query that is empty.

    Raises:
        ValueError: If it cannot be parsed.
    """
    from ada_url import join_url as join  # late: it takes 30 ms to import
    from ada_url import normalize_url as parse

    joined: str = join(base, url) if base else parse(url)
    address, _, query = joined.partition("#")[0].partition("?")
    return f"{address}?{query}" if query else address


def make_canonical(url: str, base: str = "") -> str | None:
    """Return the URL that a link leads to in its one spelling, or None if no page lies behind it.

    Browsers take ``%7E`` and ``~`` for two paths, and the order of parameters for a difference; here they are
    one (RFC 3986, section 6.2.2).

    Raises:
        ValueError: If it cannot be parsed.
    """
    scheme, mark, rest = join_url(base, url).partition("://")
    if not mark or scheme not in SCHEMES:
        return None
    address, mark, query = rest.partition("?")
    authority, _, path = address.partition("/")
    host = authority.rpartition("@")[2]
    if len(host) > _LONGEST_HOST or (not host and scheme != "file"):
        return None
    path = _ESCAPES.sub(_normalize_escape, path)
    if scheme == "file":
        path = path.lstrip("/")  # more slashes would be read as a host
    pairs = sorted(parse_qsl(query, keep_blank_values=True, errors="surrogateescape")) if query else []
    parameters = urlencode(pairs, errors="surrogateescape")
    return f"{scheme}://{host}/{path}{'?' if parameters else ''}{parameters}"


def _normalize_escape(found: re.Match[str]) -> str:
    """Return a percent-encoding, or a character, as it is spelled in a path."""
    if found[1] is None:
        return quote(found[0])  # a percent sign that encodes nothing could do so once another is decoded
    character = chr(int(found[1], 16))
    return character if character in _UNENCODED else found[0].upper()


_NO_BASE: Final = "http://site.invalid/"
_CACHED_URLS: Final = 65_536
_LONGEST_CACHED: Final = 512
"""Longer URLs, in characters, are not cached: else a page of them could fill the memory."""
_CACHED_PAGES: Final = 1024

# A URL that is already normal. Most joined links are, and checking is much cheaper than normalizing.
_NORMAL: Final = re.compile(r"https?://[a-z0-9-]+(?:\.[a-z0-9-]+)*(?:/[\w~-][\w.~-]*)*/?", re.ASCII)
_PLAIN_FRAGMENT: Final = re.compile(r"[\w.~-]+", re.ASCII)
_UNSAFE_IN_FRAGMENT: Final = re.compile(
    r'[\x00-\x20"#%<>\\^`{|}\x7f-\x9f\s\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]'
)
_ABSOLUTE: Final = re.compile(r"\s*[a-z][a-z0-9+.-]*:", re.IGNORECASE | re.ASCII)
_PLAIN_PATH: Final = re.compile(r"[\w~-][\w.~-]*(?:/[\w~-][\w.~-]*)*", re.ASCII)
_FROM_ROOT: Final = re.compile(r"[/\\](?![/\\])")
_NOT_IN_URLS: Final = re.compile(r"[\t\r\n]")


# What advertisers append to learn where a visitor comes from (https://en.wikipedia.org/wiki/UTM_parameters,
# and the list that Firefox strips), and by what servers know a session: PHP, Java Servlets, ASP, ColdFusion.
_TRACKING: Final = re.compile(
    r"(?:utm_\w+|gclid|gclsrc|dclid|gbraid|wbraid|fbclid|msclkid|twclid|ttclid|yclid|igshid|srsltid|mc_[ce]id"
    r"|_hsenc|_hsmi|mkt_tok|oly_(?:anon|enc)_id|vero_(?:id|conv)|_openstat|phpsessid|jsessionid"
    r"|aspsessionid\w*|cfid|cftoken)(?:=.*)?",
    re.IGNORECASE | re.ASCII,
)
_SESSION_PATH: Final = re.compile(r";(?:jsessionid|phpsessid)=[^/?#;]*", re.IGNORECASE)


def drop_tracking(url: str) -> str:
    """Return a URL without tracking and session parameters: ``utm_source``, ``PHPSESSID``."""
    if ";" in url:
        url = _SESSION_PATH.sub("", url)
    address, mark, query = url.partition("?")
    if not mark or "=" not in query:
        return url
    kept = [parameter for parameter in query.split("&") if not _TRACKING.fullmatch(parameter)]
    return f"{address}?{'&'.join(kept)}" if kept else address


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlPolicy:
    """The parts of a URL that identify a page.

    Args:
        query: ``"keep"`` the query, its parameters sorted (default), or ``"drop"`` it. Parameters that only
            say who asks go in any case: see :func:`drop_tracking`.
        fragment: ``"keep"`` the fragment (default), so that links lead to sections, or ``"drop"`` it.
        trailing_slash: ``"keep"`` (default): ``/a/`` and ``/a`` are two pages; or ``"strip"``.
        index_files: File names that stand for their folder.
    """

    query: Literal["keep", "drop"] = "keep"
    fragment: Literal["keep", "drop"] = "keep"
    trailing_slash: Literal["keep", "strip"] = "keep"
    index_files: tuple[str, ...] = ("index.html", "index.htm")


DEFAULT_POLICY: Final = UrlPolicy()


def normalize_url(url: str, *, base: str | None = None, policy: UrlPolicy = DEFAULT_POLICY) -> str | None:
    """Return the one spelling of the URL that a link leads to.

    Args:
        url: Absolute, or relative to ``base``, as written in a page.
        base: The absolute URL of the page (or what its ``<base href>`` says).
        policy: What makes two URLs the same page.

    Returns:
        An absolute URL of at most 8 KiB, or None for a link that leads to no page: ``mailto:`` and the
        like, a relative URL without a base, a URL that cannot be parsed or is too long.
    """
    address, _, fragment = _scrub_url(url).partition("#")
    page = _normalize_page(address, base or "", policy)
    if page is None:
        return None
    if fragment and policy.fragment == "keep":
        page = add_fragment(page, normalize_fragment(fragment))
    return page if is_short_tag(page) else None


def normalize_fragment(fragment: str) -> str:
    """Return a fragment as written in a link, percent-decoded, in one spelling.

    Characters that cannot stand in a URL stay percent-encoded. A text directive (``:~:text=…``) is no
    part of the fragment.
    """
    if _PLAIN_FRAGMENT.fullmatch(fragment):
        return fragment
    fragment = fragment.partition(":~:")[0]
    encoded = unquote_to_bytes(fragment)
    try:
        return quote_fragment(encoded.decode())
    except UnicodeDecodeError:
        return quote(encoded)


def quote_fragment(anchor: str) -> str:
    """Return the fragment that leads to an element's ``id`` or ``name``, spelled as in links to it."""
    if _PLAIN_FRAGMENT.fullmatch(anchor):
        return anchor
    return _UNSAFE_IN_FRAGMENT.sub(lambda match: quote(match[0]), replace_surrogates(anchor))


def list_fragments(anchor: str) -> tuple[str, ...]:
    """Return the fragments that lead to an element's ``id`` or ``name``, spelled as in links to it.

    Browsers look for a fragment as it is written, then decoded (HTML Living Standard, section 7.4.6.4). So an
    ``id`` that is percent-encoded itself, ``a%3Cb``, is found by ``#a%3Cb`` and by ``#a%253Cb``.
    """
    own = quote_fragment(anchor)
    return (own,) if "%" not in anchor else tuple(dict.fromkeys((own, normalize_fragment(anchor))))


def add_fragment(page: str, fragment: str | None) -> str:
    """Return a page's tag or URL with a fragment, if there is one."""
    return f"{page}#{fragment}" if fragment else page


def split_tag(tag: str) -> tuple[str, str | None]:
    """Split a tag or URL into its page and its fragment, which is None where there is none."""
    page, _, fragment = tag.partition("#")
    return page, fragment or None


def is_short_tag(tag: str) -> bool:
    """Say whether a tag is short enough for a link (8 KiB of UTF-8)."""
    return len(tag) <= MAX_TAG_BYTES // 4 or len(tag.encode()) <= MAX_TAG_BYTES


def is_internal_tag(tag: str) -> bool:
    """Say whether a tag of a :class:`Site` names one of its own pages."""
    return tag.startswith("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A folder of pages that link to each other, and the names of these pages.

    Args:
        bases: Where the site lies in public, such as ``("https://peps.python.org/",)``: absolute URLs
            below one of them are pages of the site, whether by http or https. The first one also says
            where a link such as ``/docs/`` starts from. Without, the folder is the root.
        policy: For URLs that leave the site.
        prefix: Where the site lies beside others, such as ``3.13`` or ``en/3.13``: all its tags begin
            with it. Without bases, a link such as ``../3.12/`` leads to the site beside it. With bases,
            its pages also answer to their public URLs, which is how other sites link to them.
        query: Inside, ``"drop"`` the query (default; a file has none), or ``"keep"`` it, where a server
            answers; the policy may still drop it.

    Raises:
        LinkError: If a base is not an absolute URL, or the prefix is not a path.
    """

    bases: tuple[str, ...] = ()
    policy: UrlPolicy = DEFAULT_POLICY
    prefix: str = ""
    query: Literal["keep", "drop"] = "drop"
    _roots: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _mounts: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        prefix = _normalize_prefix(self.prefix)
        roots = tuple(_normalize_base(base) for base in self.bases) or (
            f"{_NO_BASE}{_format_prefix(prefix)}",
        )
        mounts = [(root.partition("://")[2], prefix) for root in roots]
        if prefix and not self.bases:
            mounts.append((_NO_BASE.partition("://")[2], ""))
        object.__setattr__(self, "prefix", prefix)
        object.__setattr__(self, "_roots", roots)
        object.__setattr__(self, "_mounts", tuple(mounts))

    def tag(self, href: str, *, page: str = "", base: str | None = None) -> str | None:
        """Return the tag of what a link leads to.

        Args:
            href: As written in the page.
            page: The page it stands in: its URL path from the root, or an absolute URL.
            base: What the page's ``<base href>`` says, if anything.

        Returns:
            ``/path#fragment`` inside the site, else a normalised absolute URL, or None where
            :func:`normalize_url` gives None.
        """
        address, _, fragment = _scrub_url(href).partition("#")
        if self.prefix and not self.bases and _FROM_ROOT.match(address):
            address = f"/{self.prefix}{address}"
        url = _normalize_page(address, _resolve_origin(self._roots[0], page, base), self.policy)
        if url is None:
            return None
        tag = _name_page(url, self._mounts, self.policy.index_files, self.query == "keep")
        if fragment and self.policy.fragment == "keep":
            tag = add_fragment(tag, normalize_fragment(fragment))
        return tag if is_short_tag(tag) else None

    def page_tag(self, url: str) -> str | None:
        """Return the tag of a page, given its URL path from the root, its public URL, or its tag."""
        is_index = url.rpartition("/")[2] in self.policy.index_files
        if not self.prefix and not is_index and len(url) < _LONGEST_CACHED and _PLAIN_PATH.fullmatch(url):
            return f"/{url}"  # what follows comes to the same, and takes ten times as long
        return self.tag(url if _ABSOLUTE.match(url) else f"./{self._strip_root(url)}")

    def page_tags(self, url: str) -> tuple[str, ...]:
        """Return all tags that lead to a page: its own, and in a site with prefix and bases its public URLs.

        Args:
            url: As for :meth:`page_tag`.
        """
        tags = [self.page_tag(url)]
        if self.prefix and self.bases:
            path = url if _ABSOLUTE.match(url) else f"./{self._strip_root(url)}"
            tags += [normalize_url(path, base=root, policy=self.policy) for root in self._roots]
        return tuple(dict.fromkeys(split_tag(tag)[0] for tag in tags if tag))

    def place(self, path: str) -> str:
        """Return a page's path below the prefix, as a store names it. URLs stay as they are."""
        return path if "://" in path else f"{make_readable(_format_prefix(self.prefix))}{path}"

    def _strip_root(self, url: str) -> str:
        """Return a path from the site's root, given the same path or a tag, which begins with a slash."""
        if self.prefix and f"{url}/".startswith(f"/{self.prefix}/"):
            url = url[len(self.prefix) + 1 :]
        return url.lstrip("/")


def _normalize_base(base: str) -> str:
    url = normalize_url(base, policy=UrlPolicy(query="drop", fragment="drop"))
    if url is None:
        raise LinkError(f"the base {base!r} is not an absolute URL; use one such as 'https://docs.org/'")
    return url if url.endswith("/") else f"{url}/"


def _normalize_prefix(prefix: str) -> str:
    """Return a prefix in its one spelling, without slashes around it."""
    if not prefix:
        return ""
    url = normalize_url(f"{_NO_BASE}{prefix.strip('/')}/", policy=UrlPolicy(index_files=()))
    path = (url or "").removeprefix(_NO_BASE).strip("/")
    if "" in path.split("/") or path.count("/") != prefix.strip("/").count("/") or {"?", "#"} & set(prefix):
        raise LinkError(f"the prefix {prefix!r} is not a path; use one such as '3.13' or 'en/3.13'")
    return path


def _format_prefix(prefix: str) -> str:
    """Return a prefix as it stands before a path."""
    return f"{prefix}/" if prefix else ""


def _cache_urls(function: Callable[[str, *Ts], T]) -> Callable[[str, *Ts], T]:
    """Cache the results of a function of a URL, its first argument, except for long URLs."""
    cached = lru_cache(maxsize=_CACHED_URLS)(function)

    @wraps(cached)
    def call(url: str, *rest: *Ts) -> T:
        return (cached if len(url) <= _LONGEST_CACHED else function)(url, *rest)

    return call


@_cache_urls
def _normalize_page(url: str, base: str, policy: UrlPolicy) -> str | None:
    """Return an absolute URL without fragment, in its one spelling, or None if no page lies behind it."""
    if _NORMAL.fullmatch(url):
        return _apply_policy(url, policy)
    try:
        canonical = make_canonical(drop_tracking(url), drop_tracking(base))
    except ValueError:
        return None
    return None if canonical is None else _apply_policy(canonical, policy)


def _apply_policy(url: str, policy: UrlPolicy) -> str:
    address, mark, query = url.partition("?")
    scheme, _, address = address.partition("://")
    host, _, path = address.partition("/")
    folder, slash, name = path.rpartition("/")
    if policy.trailing_slash == "strip":
        path = _strip_index(path, policy.index_files)
    elif name in policy.index_files:
        path = folder + slash
    parameters = mark + query if query and policy.query == "keep" else ""
    return f"{scheme}://{host}/{path}{parameters}"


def _strip_index(path: str, index_files: tuple[str, ...]) -> str:
    """Return a path without trailing slashes and index files."""
    while True:
        path = path.rstrip("/")
        folder, _, name = path.rpartition("/")
        if name not in index_files:
            return path
        path = folder


@lru_cache(maxsize=_CACHED_PAGES)
def _resolve_origin(root: str, page: str, base: str | None) -> str:
    """Return the URL that the links of a page are relative to."""
    origin = _join_leniently(root, page.lstrip("/"))
    return _join_leniently(origin, _scrub_url(base)) if base else origin


@_cache_urls
def _name_page(
    url: str, mounts: tuple[tuple[str, str], ...], index_files: tuple[str, ...], with_query: bool
) -> str:
    """Return a normal URL without fragment as a site names it: by its path if it lies below a root."""
    address = url.partition("://")[2]
    path, mark, query = address.partition("?")
    for root, prefix in mounts:
        if path.startswith(root) or path == root[:-1]:
            segments = filter(None, path[len(root) :].split("/"))
            tag = (
                f"/{_format_prefix(prefix)}{_strip_index('/'.join(segments), index_files)}".rstrip("/") or "/"
            )
            return f"{tag}{mark}{query}" if with_query else tag
    return url


def _join_leniently(base: str, url: str) -> str:
    """Resolve ``url`` against ``base``, and return the base itself where the URL is garbage."""
    try:
        return join_url(base, url)
    except ValueError:
        return base


def _scrub_url(url: str) -> str:
    """Remove what browsers ignore in a URL: white space around it, tabs and line breaks."""
    url = url.strip()
    if not url.isprintable():
        url = replace_surrogates(_NOT_IN_URLS.sub("", url))
    return url
