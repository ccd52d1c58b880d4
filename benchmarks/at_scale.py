"""Simulates the link groups of up to 100 million pages, and works out from measured rates what a job costs.

Run: ``python benchmarks/at_scale.py --sizes 1000000,10000000,100000000 --record``. Nothing is stored.

Groups: a page has 8 links and 2 categories, as that of ``_scale_pages.py``. Half of the links lead anywhere,
so that the r-th most linked page has a share of about 1 / (r + 50): Zipf's law, with which numbers of links
to pages follow a power law of exponent 2, near the 2.1 measured on the web (A. Broder and others, "Graph
structure in the Web", Computer Networks 33, 2000). One category of a page is that of its topic, with 200
pages; the sizes of the others follow Zipf's law too. The number of links to each page is drawn for every
page (Poisson). The rows that a search reads are those of 2,000 simulated ones, in groups drawn as links lead
there.

Job: rates of docs/figures (Cassandra on one node of 2 cores, with its client), embedding as measured here on
one core, three copies of each row, and prices that are options. Work is taken to be divided evenly.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any, Final

sys.path.append(sys.path.pop(0))  # cassandra.py must not be taken for the driver's package of the same name

import numpy as np
from _report import FIGURES, add_output, report

from linkstore.core.arrays import Ints
from linkstore.embeddings.names import get_encoder
from linkstore.engines.cassandra.codec import encode_vectors
from linkstore.engines.cassandra.derived import GROUP_BUCKETS
from linkstore.engines.cassandra.listing import LARGEST_GROUP_BYTES
from linkstore.strategies.base import DEFAULT_BEAM, DEFAULT_HUB_CAP

LINKS: Final = 8
FAR: Final = LINKS // 2
"""Links that lead anywhere; the others lead to pages of the same topic."""
TOPIC: Final = 200
OFFSET: Final = 50
SEARCHES: Final = 2000
STARTS: Final = 16
"""Documents from which the default strategy follows links."""
BLOCK: Final = 10_000_000
ROW: Final = 40 + 40 + 4
"""Bytes of a row of members besides the copy of the vector, as in docs/how-to/operate-cassandra.md."""
COPIES: Final = 3
WORDS: Final = 150
"""Of a text that is embedded: about 200 tokens, 1,000 characters."""
TOKENS: Final = 200


def count_links_to(count: int, links: int, random: np.random.Generator) -> Ints:
    """Draw for each page, most linked first, how many far links lead to it; (count,) int32."""
    ranks_share = 1 / np.log((count + OFFSET) / OFFSET)
    found = np.empty(count, np.int32)
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        found[start:stop] = random.poisson(
            links * ranks_share / (np.arange(start, stop, dtype=np.float64) + OFFSET)
        )
    return found


def follow(starts: int, far: Ints, categories: Ints, random: np.random.Generator, *, popular: bool) -> int:
    """Return the rows of members that a hop from so many pages reads, both ways, with hubs cut."""
    most = DEFAULT_HUB_CAP + 1
    pages = draw_linked(far, starts, random) if popular else far[random.integers(0, len(far), starts)]
    into = np.minimum(pages + random.poisson(LINKS - FAR, starts), most)
    named = np.minimum(draw_linked(categories, starts, random), most)
    return int(starts * LINKS + into.sum() + named.sum() + starts * min(TOPIC, most))


def draw_linked(sizes: Ints, count: int, random: np.random.Generator) -> Ints:
    """Draw groups as links lead to them: one of twice the size twice as often."""
    at = (len(sizes) + OFFSET) / OFFSET
    ranks = OFFSET * at ** random.random(count) - OFFSET  # the inverse of the sum of 1 / (r + OFFSET)
    return sizes[np.minimum(ranks.astype(np.int64), len(sizes) - 1)]


def simulate(count: int, dimension: int) -> dict[str, Any]:
    """Count the link groups of so many pages, and the rows that searches read."""
    random = np.random.default_rng(count)
    (code,) = encode_vectors(np.full((1, dimension), dimension**-0.5, np.float32))
    row = ROW + len(code)
    far = count_links_to(count, count * FAR, random)
    categories = count_links_to(count // 20, count, random)
    hubs = far > DEFAULT_HUB_CAP
    one = [follow(STARTS, far, categories, random, popular=False) for _ in range(SEARCHES)]
    two = [
        follow(4, far, categories, random, popular=False)
        + follow(DEFAULT_BEAM, far, categories, random, popular=True)
        for _ in range(SEARCHES)
    ]
    largest = max(int(far.max()), int(categories.max()))
    first = min(largest * row, LARGEST_GROUP_BYTES)
    return {
        "pages": count,
        "links": count * LINKS,
        "hubs": int(hubs.sum()),
        "hubs, % of pages": 100 * float(hubs.mean()),
        "links to hubs, %": 100 * float(far[hubs].sum()) / (count * LINKS),
        "median links to a page": float(np.median(far)) + LINKS - FAR,
        "largest group": largest,
        "largest group, MB": largest * row / 1e6,
        "split groups": int(sum(((sizes * row) > LARGEST_GROUP_BYTES).sum() for sizes in (far, categories))),
        "largest partition, MB": max(first, (largest * row - first) / GROUP_BUCKETS) / 1e6,
        "default, rows p50": float(np.median(one)),
        "default, rows p95": float(np.percentile(one, 95)),
        "depth 2, rows p50": float(np.median(two)),
        "depth 2, rows p95": float(np.percentile(two, 95)),
    }


def measure_embedding(name: str) -> tuple[float, int]:
    """Return how many texts of 150 words one core embeds in a second, and the dimension."""
    random = np.random.default_rng(1)
    words = ["the", "of", "city", "river", "built", "hall", "tower", "water", "line", "station", "near"]
    texts = [" ".join(random.choice(words, WORDS)) for _ in range(256)]
    encoder: Any = get_encoder(name)
    encoder.embed_documents(texts[:8])
    begun, done = time.process_time(), 0
    while time.process_time() - begun < 3:
        encoder.embed_documents(texts)
        done += len(texts)
    return done / (time.process_time() - begun), len(encoder.embed_documents(texts[:1])[0])


def cost_job(
    name: str, texts_a_second: float | None, dimension: int, count: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Work out how long a job takes on a cluster that holds its documents, and what it costs."""
    figures = json.loads((FIGURES / "cassandra-adding.json").read_text())["rows"]["100000"]["values"]
    rate = figures["linkstore, documents/s"]
    # The measured document has 256 dimensions: of each, 4 bytes in itself, 4 in the index, 1.5 in 15 members.
    size = figures["linkstore, bytes/document"] + (dimension - 256) * (4 + 4 + 15 * 1.5)
    stored = count * size * COPIES
    nodes = max(COPIES, int(np.ceil(stored / (options.disk * 1e9 * 0.5))))
    cores = nodes * options.cores
    # A node of 2 cores took `rate` documents of 256 dimensions; more cores take more, longer rows take long.
    writing = count * COPIES / (rate * cores / 2) * size / figures["linkstore, bytes/document"] / 3600
    embedding = 0.0 if texts_a_second is None else count / (texts_a_second * cores) / 3600
    tokens = 0.0 if texts_a_second is not None else count * TOKENS / 1e6 * options.token_price
    hours = writing + embedding
    return {
        "embedding": name,
        "dimension": dimension,
        "texts/s of a core": texts_a_second,
        "kB/document": size / 1000,
        "TB with 3 copies": stored / 1e12,
        "nodes": nodes,
        "hours to write": writing,
        "hours to embed": embedding,
        "machines, $": hours * cores * options.core_price,
        "embedding by API, $": tokens,
        "a month of the nodes, $": cores * options.core_price * 730,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", default="1000000,10000000,100000000", help="numbers of pages")
    parser.add_argument("--documents", type=int, default=100_000_000, help="documents of the job")
    parser.add_argument("--embeddings", default="wordllama,minilm", help="built-in ones to measure")
    parser.add_argument("--cores", type=int, default=16, help="of a node")
    parser.add_argument("--disk", type=float, default=2000, help="GB of a node, of which half is filled")
    parser.add_argument("--core-price", type=float, default=0.05, help="$ an hour")
    parser.add_argument("--token-price", type=float, default=0.02, help="$ a million tokens of an API")
    add_output(parser)
    options = parser.parse_args()
    named = options.record
    groups = [simulate(int(size), 256) for size in options.sizes.split(",")]
    report("link groups", groups, as_json=options.json, record_as=named and f"{named}-groups")
    jobs = [
        cost_job(name, *measure_embedding(name), options.documents, options)
        for name in options.embeddings.split(",")
    ]
    jobs.append(cost_job("an API, 1,536 dimensions", None, 1536, options.documents, options))
    report("a job", jobs, as_json=options.json, record_as=named and f"{named}-jobs")


if __name__ == "__main__":
    main()
