"""Index a built site from end to end, beside embedding its chunks and putting them into usearch alone.

Run: ``python benchmarks/site.py --data DIR``, where DIR (or LINKSTORE_EVAL_DATA) holds
``docs_site/peps_html.tar.xz``. Reading, chunking, embedding, links and storing are all counted on
our side; the other side gets the finished chunks, embeds them in batches of the same size and saves
a verified index. Both run in turns in one process, with imports and the model loaded before. Then
the site is indexed again with nothing changed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _report import add_data, add_output, report
from _site import add_site, unpack_site
from usearch.index import Index

from linkstore import LinkStore
from linkstore.embeddings import get_embedding
from linkstore.ingest import FolderSource, Summary, index
from linkstore.store.documents import BATCH_SIZE


def main() -> None:
    """Unpack the site, time both in turns, print the table."""
    options = _options()
    embedding: Any = get_embedding(options.embedding)
    embedding.embed_query("load the model")
    with tempfile.TemporaryDirectory(prefix="linkstore-site-") as folder:
        site = Path(folder) / "site"
        unpack_site(options.data, site, options.every)
        rounds = [_round(site, Path(folder) / f"kb{n}", embedding) for n in range(options.repeat)]
    names = list(rounds[0])
    median = {name: statistics.median(one[name] for one in rounds) for name in names}
    name = "median" if options.embedding == "wordllama" else options.embedding
    report("site", [{"": name, **median}], as_json=options.json, record_as=options.record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    add_site(parser)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the median counts (default 3)")
    add_output(parser)
    return parser.parse_args()


def _round(site: Path, folder: Path, embedding: Any) -> dict[str, Any]:
    """Both sides once, on a store of its own."""
    store = LinkStore.open(folder, embedding)
    indexed, first = _timed(lambda: _index(store, site))
    texts = [document.page_content for document in store.scan()]
    alone, _ = _timed(lambda: _alone(texts, embedding, folder / "alone.usearch"))
    again, second = _timed(lambda: _index(store, site))
    store.close()
    if second.pages.unchanged != first.pages.added or second.pages.added or second.pages.updated:
        raise SystemExit(f"the second run was to change nothing: {second.pages}")
    return {
        "pages": first.pages.added,
        "chunks": len(texts),
        "links": sum(first.links.values()),
        "index the site, s": indexed,
        "embed and usearch alone, s": alone,
        "ratio": indexed / alone,
        "index again, nothing changed, s": again,
        "share of the first run": again / indexed,
    }


def _index(store: LinkStore, site: Path) -> Summary:
    summary = index(store, FolderSource(site))
    store.backend.run(store.backend.flush())
    return summary


def _alone(texts: list[str], embedding: Any, path: Path) -> None:
    """The least that any vector store must do with the chunks."""
    index = Index(ndim=len(embedding.embed_query("dimension")), metric="ip", dtype="f16")
    embed = getattr(embedding, "embed_array", embedding.embed_documents)
    for start in range(0, len(texts), BATCH_SIZE):
        vectors = np.asarray(embed(texts[start : start + BATCH_SIZE]), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        index.add(np.arange(start, start + len(vectors)), vectors)
    index.save(str(path))
    if len(Index.restore(str(path), view=True)) != len(texts):
        raise SystemExit(f"{path} does not hold what was saved")


def _timed(action: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


if __name__ == "__main__":
    main()
