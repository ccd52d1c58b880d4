"""The example that users of langchain-community's GraphVectorStore know, in our own words.

Two articles, of which one links to the other, and four short posts. The posts name what the question
names, so they are more similar to it than the article that answers it.
"""

from __future__ import annotations

import re

from langchain_core.documents import Document

from linkstore import add_links
from linkstore_extractors.html import HtmlInput, HtmlLinkExtractor

QUESTION = "What is close to the Space Needle?"
ARTICLES = {
    "https://encyclopedia.example/Space_Needle": """<p>The <b>Space Needle</b> is an observation tower in
        Seattle, Washington. It was built for the Century 21 Exposition of 1962, stands 184 metres tall, and
        has a restaurant and a viewing deck near its top. It is the best-known landmark of the city, in the
        neighborhood of <a href="/Lower_Queen_Anne">Lower Queen Anne</a>.</p>""",
    "https://encyclopedia.example/Lower_Queen_Anne": """<p><b>Lower Queen Anne</b>, also called Uptown, is a
        neighborhood at the foot of Queen Anne Hill. Apartment blocks, bars, small theatres and record shops
        line its streets. It has an arena, an opera house, a ballet and a science museum.</p>""",
}
POSTS = {
    "post-1": "omg you HAVE to see the Space Needle at night, the view is unreal!!",
    "post-2": "Space Needle selfie, day 3 of our trip. What a tower!",
    "post-3": "waited two hours in line for the Space Needle elevator, never again",
    "post-4": "anyone know a good coffee place? asking for a friend",
}
NEEDLE, NEIGHBORHOOD = "Space_Needle", "Lower_Queen_Anne"


def articles(made=str) -> list[Document]:
    """The two articles with the links that their HTML has.

    Args:
        made: What the extractor reads, from HTML: a string, or soup.
    """
    inputs = [HtmlInput(made(html), url) for url, html in ARTICLES.items()]
    return [
        article(url, html, links)
        for (url, html), links in zip(ARTICLES.items(), HtmlLinkExtractor().extract_many(inputs), strict=True)
    ]


def article(url, html, links) -> Document:
    text = " ".join(re.sub(r"<[^>]*>", "", html).split())
    document = Document(page_content=text, metadata={"content_id": url.rpartition("/")[2]})
    add_links(document, links)
    return document


def posts() -> list[Document]:
    return [Document(page_content=text, metadata={"content_id": name}) for name, text in POSTS.items()]
