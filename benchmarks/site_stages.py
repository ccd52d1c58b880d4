"""Where the processor time goes when a site is indexed, stage by stage, each alone in one process.

Run: ``python benchmarks/site_stages.py --data DIR``, with the data and the embedding of ``site.py``. Reading
is shared among the worker processes. Embedding uses all cores that there are. Storing is done by one thread.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from _report import add_data, add_output, listed
from _site import add_site, unpack_site
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore import LinkStore
from linkstore.core.documents import PageDocuments
from linkstore.core.processes import infrequent_gc
from linkstore.embeddings import get_embedding
from linkstore.ingest import FolderSource
from linkstore.ingest.batches import batch_pages
from linkstore.ingest.documents import Linkers
from linkstore.ingest.html.pages import decode_page, parse_page
from linkstore.ingest.pipeline import DEFAULT_LINKS
from linkstore.ingest.source import SourcePage

BATCH = 512
PARSING = "parse the HTML"
CUTTING = "find the content, cut chunks"
Seconds = dict[str, float]


class Known(Embeddings):
    """Looks up what was embedded before."""

    def __init__(self, vectors: dict[str, Any]) -> None:
        self._vectors = vectors

    def embed_array(self, texts: Sequence[str]) -> Any:
        """(n, dimension) float32 vectors."""
        return np.stack([self._vectors[text] for text in texts])

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The same as lists."""
        vectors: list[list[float]] = self.embed_array(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a text that was embedded."""
        vector: list[float] = self._vectors[text].tolist()
        return vector


def main() -> None:
    """Unpack the site, take the median of each stage, print the table."""
    options = _options()
    embedding = get_embedding(options.embedding)
    embedding.embed_query("load the model")
    with tempfile.TemporaryDirectory(prefix="linkstore-stages-") as folder:
        site = Path(folder) / "site"
        unpack_site(options.data, site, options.every)
        runs = [_stages(site, Path(folder) / f"kb{n}", embedding) for n in range(options.repeat)]
        with FolderSource(site).open() as source:
            pages = len(source)
    medians = {stage: statistics.median(run[stage] for run in runs) for stage in runs[0]}
    medians["all"] = whole = sum(medians.values())
    rows = [
        {"stage": stage, "pages": pages, "ms a page": spent / pages * 1e3, "share": spent / whole}
        for stage, spent in medians.items()
    ]
    listed("site, processor time", rows, as_json=options.json, record_as=options.record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    add_site(parser)
    parser.add_argument("--repeat", type=int, default=3, help="runs; the median counts (default 3)")
    add_output(parser)
    return parser.parse_args()


def _stages(site: Path, folder: Path, embedding: Any) -> Seconds:
    """Every stage once."""
    spent: Seconds = {}
    with _counted(spent, "list and hash the files"), FolderSource(site).open() as source:
        offered = [page for page in source.pages({}) if isinstance(page, SourcePage)]
    linkers = Linkers(DEFAULT_LINKS, source.site)
    pages = [_read(site, page, linkers, spent) for page in offered]
    for page in pages:
        _send(page, spent)
    texts = [document.page_content for page in pages for document in page.documents]
    vectors: dict[str, Any] = {}
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        with _counted(spent, "embed"):
            found = np.asarray(embedding.embed_array(batch))
        vectors.update(zip(batch, found, strict=True))
    with LinkStore.open(folder, Known(vectors)) as store, _counted(spent, "check and store"):
        for some in batch_pages(iter(pages)):
            store.pages.put("site", some)
    return spent


def _read(site: Path, page: SourcePage, linkers: Linkers, spent: Seconds) -> PageDocuments:
    """A page, read; parsing, which reading includes, is done once more to be counted alone."""
    content = (site / page.url).read_bytes()
    own: Seconds = {}
    with infrequent_gc():
        with _counted(own, PARSING):
            parse_page(decode_page(content, "utf-8"))
        with _counted(own, CUTTING):
            chunks = page.read()
        own[CUTTING] -= own[PARSING]
        with _counted(own, "find links"):
            documents = linkers.make_documents(chunks)
    for stage, seconds in own.items():
        spent[stage] = spent.get(stage, 0.0) + seconds
    return PageDocuments(url=page.url, digest=page.digest, documents=documents)


def _send(page: PageDocuments, spent: Seconds) -> None:
    """What a worker does to send a page, and the process that stores it to receive it."""
    fields = [(one.id, one.page_content, one.metadata) for one in page.documents]
    with _counted(spent, "send to the process that stores"):
        received = pickle.loads(pickle.dumps(fields, pickle.HIGHEST_PROTOCOL))
        _ = [Document(id=id, page_content=text, metadata=metadata) for id, text, metadata in received]


@contextmanager
def _counted(spent: Seconds, stage: str) -> Iterator[None]:
    started = time.process_time()
    yield
    spent[stage] = spent.get(stage, 0.0) + time.process_time() - started


if __name__ == "__main__":
    main()
