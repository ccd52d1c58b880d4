"""A source that offers what a test gives it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import ClassVar

from langchain_core.documents import Document

from linkstore.core.urls import Site
from linkstore.ingest.source import SourcePage, UnreadablePageError


class Listed:
    """A source that offers what it is given."""

    name = "listed"
    site = Site()
    unread: ClassVar = {}

    def __init__(self, *offered):
        self.offered = offered
        self.known = None
        self.reads = []

    def open(self):
        return nullcontext(self)

    def __len__(self):
        return 1

    def pages(self, known):
        self.known = dict(known)
        yield from self.offered

    def page(self, url, digest="1", text="text"):
        def read():
            self.reads.append(url)
            if text is None:
                raise UnreadablePageError("it is torn")
            return [Document(id=url, page_content=text, metadata={})] if text else []

        return SourcePage(url=url, digest=digest, read=read)


def offering(*pages):
    source = Listed()
    source.offered = [source.page(*page) if isinstance(page, tuple) else page for page in pages]
    return source
