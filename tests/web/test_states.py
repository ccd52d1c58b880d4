"""Whatever happens to a site and to the runs over it, the store ends up as one fresh run would leave it."""

from __future__ import annotations

import random
from zlib import crc32

import pytest
from memory_store import MemoryStore
from stores import times
from web_site import Reply, html, moved, network, running

from linkstore.ingest import WebsiteSource, batches, index

START = "http://docs.test/"
SETTINGS = {"rate": 1e6, "retries": 1}


class RandomSite:
    """Pages that link at random, redirects, stubs and copies; it can change."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pages: dict[str, object] = {"/robots.txt": Reply(status=404)}
        self.links: dict[str, list[str]] = {}
        self.texts: dict[str, int] = {}
        self.count = 0
        self.write("/", [])
        for _ in range(12):
            self.grow()

    def grow(self) -> None:
        """A new URL, linked from some page."""
        parent = self.random.choice(sorted(self.links))
        self.count += 1
        path = f"/{self.count}"
        kind = self.random.choice(["page", "page", "page", "page", "redirect", "stub", "copy", "missing"])
        some = self.random.choice(sorted(self.links))
        if kind == "page":
            self.write(path, self.random.sample(sorted(self.links), k=min(2, len(self.links))))
        elif kind == "redirect":
            self.pages[path] = moved(some)
        elif kind == "stub":
            self.pages[path] = f'<meta http-equiv="refresh" content="0; url={some}">'
        elif kind == "copy":
            path = f"{some}?copy={self.count}"
            self.pages[path] = html("a copy", head=f'<link rel="canonical" href="{some}">')
        self.write(parent, [*self.links[parent], path])

    def change(self) -> None:
        """Another text, a redirect that leads elsewhere, or a page that is gone."""
        pages = sorted(self.links)
        what = self.random.choice(["text", "grow", "grow", "redirect", "gone"])
        some = self.random.choice(pages)
        redirects = sorted(path for path, one in self.pages.items() if isinstance(one, Reply) and one.headers)
        if what == "text":
            self.write(some, self.links[some])
        elif what == "redirect" and redirects:
            self.pages[self.random.choice(redirects)] = moved(some)
        elif what == "gone" and some != "/":
            del self.pages[some], self.links[some]
        else:
            self.grow()

    def write(self, path: str, links: list[str]) -> None:
        """A page, which has another ETag each time unless the site knows of none."""
        self.links[path] = links
        self.texts[path] = self.texts.get(path, 0) + 1
        etag = f'"{self.texts[path]}"'
        body = html(f"text {self.texts[path]} of {path}", *links, title=f"Page {path}")
        headers = {"Content-Type": "text/html"} | ({"ETag": etag} if crc32(path.encode()) % 3 else {})

        def answer(asked):
            if asked.headers.get("if-none-match") == etag and "ETag" in headers:
                return Reply(status=304)
            return Reply(headers=headers, body=body)

        self.pages[path] = answer


def run(store, site, *, until=None):
    """A run that is interrupted after so many requests."""
    site.forget()

    def clock():
        if until is not None and len(site.asked) >= until:
            raise KeyboardInterrupt
        return 0.0

    index(store, WebsiteSource(START, **SETTINGS, network=network(site, clock=clock)), links=("hyperlink",))


def content(store):
    """What is stored, by page: its texts, and its links."""
    return {
        url: (
            sorted(document.page_content for document in page.documents),
            {
                (one["tag"], one["direction"])
                for document in page.documents
                for one in document.metadata["links"]
            },
        )
        for (_, url), page in store.stored.items()
    }


@pytest.mark.parametrize("seed", range(times(6, 60)))
def test_runs_that_are_interrupted_lead_to_the_same_store_as_one_run(seed, monkeypatch):
    monkeypatch.setattr(batches, "_BATCH_DOCUMENTS", 1)
    made = RandomSite(seed)
    store = MemoryStore()
    with running(made.pages) as site:
        for _ in range(3):
            for _ in range(made.random.randrange(4)):
                made.change()
            try:
                run(store, site, until=made.random.randrange(3, 25))
            except KeyboardInterrupt:
                continue
        run(store, site)
        fresh = MemoryStore()
        run(fresh, site)
        found, wanted = content(store), content(fresh)
        for url, (texts, links) in wanted.items():
            assert found[url][0] == texts
            assert found[url][1] >= links
        # What nothing links to any more is no loss as long as it is there.
        for url, (_, links) in found.items():
            assert url.removeprefix("http://docs.test") in made.pages
            for tag, direction in links - wanted.get(url, ("", links))[1]:
                assert direction == "in"
                assert tag in made.pages
        before = len(store.puts)
        run(store, site)
        assert content(store) == found
        assert len(store.puts) == before, "nothing changed, so nothing is written"
