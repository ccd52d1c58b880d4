"""A page store in memory, for tests of sources."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from linkstore import get_links
from linkstore.engines.contract import Survey


class MemoryStore:
    """What sources need of a store, which is also its own ``pages``, in memory."""

    def __init__(self):
        self.stored = {}
        self.puts = []

    @property
    def pages(self):
        return self

    def digests(self, source):
        return {url: page.digest for (owner, url), page in self.stored.items() if owner == source}

    def states(self, source):
        return {
            url: (page.digest, page.outline) for (owner, url), page in self.stored.items() if owner == source
        }

    def embed(self, source, pages):
        return list(pages)

    def put(self, source, pages):
        self.puts.append([page.url for page in pages])
        self.stored.update({(source, page.url): page for page in pages})

    def record(self, done: object) -> None:
        """Take what a run changed, which no test asks this store for."""

    def renew(self, source, states):
        for url, (digest, outline) in states.items():
            self.stored[source, url] = replace(self.stored[source, url], digest=digest, outline=outline)

    def remove(self, urls, source):
        for url in urls:
            del self.stored[source, url]

    def scan(self):
        documents = (document for page in self.stored.values() for document in page.documents)
        return iter(sorted(documents, key=lambda document: document.id))

    def check(self, source, urls):
        assert not isinstance(urls, str)

    def survey(self, kind="hyperlink", take=10):
        links = [link for document in self.scan() for link in get_links(document)]
        owned = {(link.kind, link.tag) for link in links if link.leads_in}
        wanted = Counter((link.kind, link.tag) for link in links if link.leads_out)
        dangling = tuple((*group, count) for group, count in wanted.items() if group not in owned)
        return Survey(documents=0, pages=len(self.stored), links={}, groups=0, dangling=dangling), []
