"""URLs have one spelling; the pages of a site are named by their path."""

from __future__ import annotations

import pytest
from ada_url import join_url
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import (
    MAX_TAG_BYTES,
    Link,
    Site,
    UrlPolicy,
    add_fragment,
    is_internal_tag,
    normalize_fragment,
    normalize_url,
    quote_fragment,
    split_tag,
)
from stores import times

from linkstore.core import urls
from linkstore.errors import LinkError

BASE = "https://Docs.Example.org/guide/intro.html"


@pytest.mark.parametrize(
    ("href", "url"),
    [
        # relative to the page
        ("setup.html", "https://docs.example.org/guide/setup.html"),
        ("../api/", "https://docs.example.org/api/"),
        ("/about", "https://docs.example.org/about"),
        ("./a/./b/../c", "https://docs.example.org/guide/a/c"),
        ("../../../x", "https://docs.example.org/x"),
        ("", "https://docs.example.org/guide/intro.html"),
        ("#usage", "https://docs.example.org/guide/intro.html#usage"),
        ("?page=2", "https://docs.example.org/guide/intro.html?page=2"),
        ("//cdn.example.org/lib", "https://cdn.example.org/lib"),
        (r"..\api\x.html", "https://docs.example.org/api/x.html"),
        ("  setup.html\n", "https://docs.example.org/guide/setup.html"),
        ("se\ntup.html", "https://docs.example.org/guide/setup.html"),
        # scheme, host, port
        ("HTTP://EXAMPLE.COM/Path", "http://example.com/Path"),
        ("https://example.com", "https://example.com/"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:443/a", "http://example.com:443/a"),
        ("http://example.com:8080/a", "http://example.com:8080/a"),
        ("http://example.com:/a", "http://example.com/a"),
        ("https://me:secret@example.com/a", "https://example.com/a"),
        ("http://[::0:1]/a", "http://[::1]/a"),
        ("file:///srv/site/a.html", "file:///srv/site/a.html"),
        # internationalised hosts and paths
        ("https://müller.example/ß", "https://xn--mller-kva.example/%C3%9F"),
        ("https://faß.example/", "https://xn--fa-hia.example/"),
        ("https://FASS.example/", "https://fass.example/"),
        ("https://MÜLLER.example/ß", "https://xn--mller-kva.example/%C3%9F"),
        ("https://☃.example/", "https://xn--n3h.example/"),
        ("https://東京。example/", "https://xn--1lqs71d.example/"),
        ("https://" + "ß" * 300 + ".example/", None),
        ("https://a\u200f\u0600.example/", None),
        ("https://XN--MLLER-KVA.example/%c3%9f", "https://xn--mller-kva.example/%C3%9F"),
        # percent-encoding
        ("/%7euser/%41", "https://docs.example.org/~user/A"),
        ("/a%2fb", "https://docs.example.org/a%2Fb"),
        ("/a b", "https://docs.example.org/a%20b"),
        ("/100%", "https://docs.example.org/100%25"),
        # folders and their index files
        ("/a/index.html", "https://docs.example.org/a/"),
        ("/a/index.htm", "https://docs.example.org/a/"),
        ("/index.html", "https://docs.example.org/"),
        ("/a/index.html#top", "https://docs.example.org/a/#top"),
        ("/a/index.php", "https://docs.example.org/a/index.php"),
        ("/a", "https://docs.example.org/a"),
        ("/a/", "https://docs.example.org/a/"),
        # query
        ("/q?b=2&a=1", "https://docs.example.org/q?a=1&b=2"),
        ("/q?a=2&a=1", "https://docs.example.org/q?a=1&a=2"),
        ("/q?", "https://docs.example.org/q"),
        ("/q?a=b?", "https://docs.example.org/q?a=b%3F"),
        ("/q?utm_source=x&a=1&FBCLID=2", "https://docs.example.org/q?a=1"),
        ("/q;jsessionid=0A?utm_medium=x#f", "https://docs.example.org/q#f"),
        ("/q?utm=1&source=2", "https://docs.example.org/q?source=2&utm=1"),
        ("/q?a=b%20c", "https://docs.example.org/q?a=b+c"),
        # fragment
        ("/f#", "https://docs.example.org/f"),
        ("/f#caf%C3%A9", "https://docs.example.org/f#café"),
        ("/f#a%20b", "https://docs.example.org/f#a%20b"),
        ("/f#a b", "https://docs.example.org/f#a%20b"),
        ("/f#%7Ex", "https://docs.example.org/f#~x"),
        ("/f#%E9", "https://docs.example.org/f#%E9"),
        ("/f#x:~:text=words", "https://docs.example.org/f#x"),
        ("/f#:~:text=words", "https://docs.example.org/f"),
    ],
)
def test_a_url_has_one_spelling(href, url):
    assert normalize_url(href, base=BASE) == url


@pytest.mark.parametrize(("href", "url"), [("?", ""), ("?#f", "#f"), ("#f", "?q=1#f"), ("?a=2", "?a=2")])
def test_an_empty_query_takes_the_place_of_the_one_of_the_base(href, url):
    assert normalize_url(href, base="https://x.org/list?q=1#g") == f"https://x.org/list{url}"


@pytest.mark.parametrize(
    "href",
    [
        "javascript:void(0)",
        "JavaScript:alert(1)",
        "java\nscript:alert(1)",
        "mailto:a@example.org",
        "data:text/html,x",
        "tel:+1",
        "about:blank",
        "Talk:Page",
        "http://",
        "http:///",
        "http://[",
        "http://[::1",
        "http://host:port/",
        "http://a b/",
        "https://" + "a" * MAX_TAG_BYTES,
    ],
)
def test_what_leads_to_no_page_has_no_url(href):
    assert normalize_url(href, base=BASE) is None


def test_a_relative_url_without_base_leads_nowhere():
    assert normalize_url("a.html") is None


@pytest.mark.parametrize(
    ("policy", "url"),
    [
        (UrlPolicy(), "https://x.org/a/?q=1#f"),
        (UrlPolicy(query="drop"), "https://x.org/a/#f"),
        (UrlPolicy(fragment="drop"), "https://x.org/a/?q=1"),
        (UrlPolicy(trailing_slash="strip"), "https://x.org/a?q=1#f"),
        (UrlPolicy(index_files=()), "https://x.org/a/index.html?q=1#f"),
    ],
)
def test_the_policy_says_what_makes_two_urls_one_page(policy, url):
    assert normalize_url("https://x.org/a/index.html?q=1#f", policy=policy) == url


def test_stripping_leaves_the_root_its_slash():
    assert normalize_url("https://x.org", policy=UrlPolicy(trailing_slash="strip")) == "https://x.org/"


SITE = Site(bases=("https://peps.example.org/", "https://www.example.org/dev/peps"))


@pytest.mark.parametrize(
    ("href", "tag"),
    [
        ("../pep-0008/", "/pep-0008"),
        ("../pep-0008", "/pep-0008"),
        ("../pep-0008/index.html", "/pep-0008"),
        ("../pep-0008/index.html?highlight=x#Intro", "/pep-0008#Intro"),
        ("https://peps.example.org/pep-0008/", "/pep-0008"),
        ("http://PEPS.example.org:80/pep-0008", "/pep-0008"),
        ("https://www.example.org/dev/peps/pep-0008/#a%20b", "/pep-0008#a%20b"),
        ("https://www.example.org/dev/peps", "/"),
        ("https://www.example.org/dev/pepsi", "https://www.example.org/dev/pepsi"),
        ("#own", "/pep-0001#own"),
        ("", "/pep-0001"),
        ("/", "/"),
        ("..", "/"),
        ("../../../up", "/up"),
        ("//peps.example.org/pep-0008//x", "/pep-0008/x"),
        ("https://elsewhere.org/a/", "https://elsewhere.org/a/"),
        ("mailto:x@example.org", None),
    ],
)
def test_a_site_names_its_pages_by_path_and_others_by_url(href, tag):
    assert SITE.tag(href, page="pep-0001/index.html") == tag
    assert tag is None or is_internal_tag(tag) == tag.startswith("/")


def test_a_site_below_the_host_leaves_the_host_root_outside():
    site = Site(bases=("https://host.org/docs/",))
    assert site.tag("/blog", page="a/index.html") == "https://host.org/blog"
    assert site.tag("/docs/b.html", page="a/index.html") == "/b.html"


def test_base_href_says_what_links_are_relative_to():
    assert Site().tag("x.html", page="a/b.html", base="../c/") == "/c/x.html"
    assert Site().tag("x.html", page="a/b.html", base="https://o.org/d/") == "https://o.org/d/x.html"
    assert Site().tag("x.html", page="a/b.html", base="http://[") == "/a/x.html"


def test_a_base_must_be_absolute():
    with pytest.raises(LinkError, match="not an absolute URL"):
        Site(bases=("docs/",))


def test_page_tag_takes_a_path_a_tag_or_a_public_url():
    names = ("pep-0008/index.html", "/pep-0008", "pep-0008/", "https://peps.example.org/pep-0008/")
    assert {SITE.page_tag(name) for name in names} == {"/pep-0008"}


def test_fragments_and_anchors_meet():
    for anchor in ("a b", "é", "100%", 'quote"d', "a#b", "x[0]", "日本"):
        assert normalize_fragment(quote_fragment(anchor)) == quote_fragment(anchor)
    assert normalize_fragment("caf%C3%A9") == quote_fragment("café")


def test_tags_split_where_they_were_joined():
    assert split_tag("/a#b") == ("/a", "b")
    assert split_tag("/a") == ("/a", None)
    assert add_fragment("/a", None) == "/a"


SNIPPETS = [
    *(
        "http://",
        "https://",
        "//",
        "/",
        "..",
        ".",
        "index.html",
        "?",
        "&",
        "=",
        "#",
        "%2f",
        "%41",
        "%zz",
        "%",
    ),
    *(
        "@",
        ":80",
        ":",
        "é",
        "[",
        "]",
        "\\",
        "mailto:",
        "a",
        "B",
        "host",
        ";",
        ":~:",
        "%E9",
        "\ud800",
        " ",
        "\t",
    ),
]
URLISH = st.lists(st.one_of(st.text(max_size=5), st.sampled_from(SNIPPETS)), max_size=12).map("".join)


@settings(max_examples=times(150, 500))
@given(URLISH, st.sampled_from([UrlPolicy(), UrlPolicy(query="drop", trailing_slash="strip")]))
def test_no_text_breaks_normalisation_and_twice_is_the_same_as_once(text, policy):
    url = normalize_url(text, base="https://Host.org/a/b.html", policy=policy)
    if url is not None:
        assert normalize_url(url, policy=policy) == url
        Link.outgoing(kind="hyperlink", tag=url)


@settings(max_examples=times(150, 500))
@given(
    st.from_regex(r"(\.{0,2}/)?[a-z.~_-]{0,4}(/[a-z.-]{0,4}){0,3}/?", fullmatch=True),
    st.from_regex(
        r"https?://[a-z]{1,3}(\.[a-z]{1,2}){0,2}(/[a-z.~]{0,4}){0,3}(\?[a-z/]{1,3})?", fullmatch=True
    ),
)
def test_a_plain_path_is_joined_as_any_other(path, base):
    try:
        joined = join_url(base, path)
    except ValueError:
        joined = ""
    assert normalize_url(path, base=base) == normalize_url(joined)


@settings(max_examples=times(150, 500))
@given(
    URLISH, st.sampled_from([(), ("https://host.org/docs/", "http://b.org")]), st.sampled_from(["", "x/y"])
)
def test_a_tag_is_its_own_tag(text, bases, page):
    site = Site(bases=bases)
    tag = site.tag(text, page=page)
    if tag is not None:
        assert site.page_tag(tag) == tag


@settings(max_examples=times(100, 300))
@given(st.text(min_size=1))
def test_every_anchor_has_a_stable_fragment(anchor):
    fragment = quote_fragment(anchor)
    assert quote_fragment(anchor) == fragment
    assert "#" not in fragment
    fragment.encode()


def test_a_host_of_characters_that_are_left_out_is_none() -> None:
    assert normalize_url("//\u200b//x", base="https://a.example/") is None
    assert normalize_url("https:////\u200b//x") is None


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("file:..//", "file:///"),
        ("file://\\\\//~é\\", "file:///~%C3%A9/"),
        ("http:////~:80", "http://~/"),
        ("HTTPS:////a.example/c", "https://a.example/c"),
        ("http://a.example//b", "http://a.example//b"),
    ],
)
def test_slashes_before_the_host_are_two_or_of_a_file_three(url, normal) -> None:
    assert normalize_url(url) == normalize_url(normal) == normal


def test_long_urls_are_the_same_and_are_not_kept() -> None:
    """A page may have thousands of them, each different."""
    long = "/a/" + "x" * 5_000
    assert normalize_url(long, base="https://o.org/b") == f"https://o.org{long}"
    assert Site().tag(long, page="b.html") == long
    caches = urls._normalize_page.__wrapped__, urls._name_page.__wrapped__
    kept = [one.cache_info().currsize for one in caches]
    for n in range(10):
        assert normalize_url(f"{long}{n}", base="https://o.org/b") == f"https://o.org{long}{n}"
        assert Site().tag(f"{long}{n}", page="b.html") == f"{long}{n}"
    assert [one.cache_info().currsize for one in caches] == kept


def test_thousands_of_index_files_in_each_other_are_one_folder() -> None:
    url = "https://o.org/a" + "/index.html" * 1200
    assert normalize_url(url, policy=UrlPolicy(trailing_slash="strip")) == "https://o.org/a"
    assert Site().tag("/a" + "/index.html" * 1200, page="b.html") == "/a"
