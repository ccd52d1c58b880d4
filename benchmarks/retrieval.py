"""What following links finds that dense search misses, on questions with known answers.

Run: ``python benchmarks/retrieval.py --data DIR``, where DIR (or LINKSTORE_EVAL_DATA) holds the folders
``hotpotqa_train``, ``musique_train``, ``ottqa_links``, ``docs_faq`` and ``docs_site``, as their SOURCE.txt
describes. ``docs_faq`` needs its three Debian packages unpacked into one folder, given by ``--sites``:
``apt-get download python-django-doc git-doc sqlite3-doc`` and ``dpkg-deb -x PACKAGE FOLDER`` for each.

``--hipporag DIR`` takes the sets of 1,000 questions that others report, as OSU-NLP-Group/HippoRAG publishes
them in ``reproduce/dataset`` (``musique.json``, ``musique_corpus.json``, …), for ``--sets`` musique,
2wikimultihopqa and hotpotqa.

Sets: hotpotqa_train, musique_train, ottqa_links, single_hop (a control), docs_faq, and cost, which times
the default beside usearch alone. ``--convert FOLDER`` keeps the sets in the form of ``linkstore eval``.
``similarity+words`` is the first stage of PageRank alone, without a link; ``wordless`` is PageRank without
search by words. ``--cassandra`` keeps the corpora on a Cassandra server of its own, for which Java 17 and
Maven are needed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from _report import add_data, listed, record, versions
from _retrieval_sets import HIPPORAG, ROW_SETS, SITES, faq_documents, read_hipporag, site_questions
from _retrieval_stores import Stores
from langchain_core.embeddings import Embeddings

from linkstore import LinkStore
from linkstore.embeddings import get_embedding
from linkstore.evaluate import Evaluation, GoldQuestion, evaluate, read_corpus, read_questions
from linkstore.evaluate.metrics import STRATEGIES, make_strategies
from linkstore.evaluate.profiling import with_links
from linkstore.ingest import FolderSource, index
from linkstore.strategies import PageRank, Strategy

DOCS: Final = "docs_faq"
COST: Final = "cost"
SETS: Final = (*ROW_SETS, DOCS, COST)
WORDLESS: Final = "wordless"
CUTS: Final = {"R@2 / 5 / 20": (2, 5, 20), "R@5 / 10 / 20": (5, 10, 20)}
Row = dict[str, Any]


def main() -> None:
    """Run the sets with each embedding; print tables, write JSON, Markdown and plots."""
    options = _options()
    rows: list[Row] = []
    costs: list[Row] = []
    with Stores(cassandra=options.cassandra) as stores:
        for name in options.embeddings.split(","):
            embedding = get_embedding(name)
            for chosen in options.sets.split(","):
                if chosen == COST:
                    costs += [{"embedding": name, **row} for row in _cost(Path(options.data), embedding)]
                else:
                    found = _set_rows(chosen, options, embedding, stores)
                    rows += [{"embedding": name, **row} for row in found]
                    record(options.record, _recorded(rows))
                    _show([row for row in rows if row["embedding"] == name and row["from"] == chosen])
    if costs:
        listed("a query over 100,000 pieces of text", costs, as_json=False)
        name = options.record and f"{options.record}-cost"
        record(name, {f"{row['search']}, {row['embedding']}": row for row in costs})
    _write(options, rows, costs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    parser.add_argument("--sets", default=",".join(SETS), help=f"some of {','.join(SETS)} (default all)")
    parser.add_argument("--embeddings", default="wordllama,minilm", help="default wordllama,minilm")
    parser.add_argument(
        "--hipporag", metavar="DIR", help="folder of HippoRAG's published sets of 1,000 questions"
    )
    parser.add_argument("--sites", help="folder with the unpacked packages of docs_faq")
    parser.add_argument("--convert", help="folder to keep the converted sets in")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    parser.add_argument("--record", action="store_const", const="retrieval", help="write docs/figures")
    parser.add_argument("--markdown", metavar="FILE", help="write tables there")
    parser.add_argument("--plots", metavar="FOLDER", help="write plots there (needs matplotlib)")
    parser.add_argument("--cassandra", action="store_true", help="keep the corpora on a Cassandra server")
    options = parser.parse_args()
    known = (*SETS, *HIPPORAG) if options.hipporag else SETS
    unknown = set(options.sets.split(",")) - set(known)
    if unknown:
        parser.error(f"unknown sets {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    if DOCS in options.sets.split(",") and not options.sites:
        parser.error("docs_faq needs --sites; or name other --sets")
    return options


def _recorded(rows: Sequence[Row]) -> Row:
    """Recall in %, gain and time of the strategies, by set, kinds of link and embedding."""
    found: dict[str, Row] = {}
    for row in rows:
        gain = row["gain_over_dense"]["recall@5"]
        found.setdefault(f"{row['set']}, {row['links']}, {row['embedding']}", {})[row["strategy"]] = {
            **{name: [100 * row[f"recall@{k}"] for k in cuts] for name, cuts in CUTS.items()},
            "questions": row["questions"],
            "interval of R@5": [100 * end for end in row["intervals"]["recall@5"]],
            "gain in R@5": [100 * gain["value"], *(100 * end for end in gain["interval"])],
            "ms": row["ms_without_embedding"],
        }
    return found


def _set_rows(name: str, options: argparse.Namespace, embedding: Embeddings, stores: Stores) -> Iterator[Row]:
    if name == DOCS:
        for site in SITES:
            for row in _site_rows(Path(options.data), Path(options.sites), site, embedding, stores):
                yield {"from": name, **row}
    else:
        with tempfile.TemporaryDirectory(prefix="linkstore-retrieval-") as folder:
            kept = Path(options.convert or folder)
            kept.mkdir(parents=True, exist_ok=True)
            data = Path(options.hipporag if name in HIPPORAG else options.data)
            for row in _converted_rows(name, data, kept, embedding, stores):
                yield {"from": name, **row}


def _converted_rows(
    name: str, data: Path, folder: Path, embedding: Embeddings, stores: Stores
) -> Iterator[Row]:
    """All strategies with the set's own links, then the default with other kinds of links."""
    rows = read_hipporag(data, name) if name in HIPPORAG else ROW_SETS[name](data)
    corpus, asked = rows.write(folder)
    documents, questions = read_corpus(corpus), read_questions(asked)
    for links in rows.links:
        with stores.opened(embedding) as store:
            store.add_documents(with_links(documents, links))
            whole = links == rows.links[0]
            yield from _rows(name, "+".join(links), _measured(store, questions, whole=whole))


def _site_rows(data: Path, sites: Path, site: str, embedding: Embeddings, stores: Stores) -> Iterator[Row]:
    """All strategies on a site as it is indexed, then without the pages where its questions stand."""
    with stores.opened(embedding) as store:
        index(store, FolderSource(sites / SITES[site]), name=site)
        questions = site_questions(data, site, store)
        yield from _rows(f"docs_faq {site}", "as indexed", _measured(store, questions, whole=True))
        store.delete(faq_documents(data, site, store))
        alone = _measured(store, questions, whole=False)
        yield from _rows(f"docs_faq {site}", "as indexed, without the FAQ", alone)


def _measured(store: LinkStore, questions: Sequence[GoldQuestion], *, whole: bool) -> Evaluation:
    return evaluate(store, questions, _contenders() if whole else _two())


def _contenders() -> Mapping[str, Strategy]:
    """All that are compared; the first stage stands behind what it joins."""
    named = make_strategies(STRATEGIES)
    first = {name: named.pop(name) for name in ("similarity", "words", "similarity+words")}
    return {**first, **named, WORDLESS: PageRank(lexical=0.0)}


def _two() -> Mapping[str, Strategy]:
    return make_strategies(["pagerank"])


def _rows(name: str, links: str, evaluation: Evaluation) -> Iterator[Row]:
    found: Mapping[str, Row] = evaluation.to_dict()["strategies"]
    for strategy, values in found.items():
        yield {
            "set": name,
            "links": links,
            "questions": evaluation.questions,
            "strategy": strategy,
            **values,
        }


def _cost(data: Path, embedding: Embeddings) -> list[Row]:
    from _retrieval_cost import cost

    return cost(data, embedding)


def _show(rows: Sequence[Row]) -> None:
    title = f"{rows[0]['from']}, {rows[0]['embedding']}: recall and MRR in %"
    listed(title, [_printed(row) for row in rows], as_json=False)


def _printed(row: Row) -> Mapping[str, str]:
    """What tables show of a row."""
    gain = row["gain_over_dense"]["recall@5"]
    low, high = gain["interval"]
    rescued = row["rescue_rate"]
    return {
        "set": row["set"],
        "links": row["links"],
        "strategy": row["strategy"],
        **{f"R@{k}": f"{100 * row[f'recall@{k}']:.1f}" for k in (2, 5, 10, 20)},
        "MRR": f"{100 * row['mrr']:.1f}",
        "gain R@5": f"{100 * gain['value']:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]",
        "rescued": "-" if rescued is None else f"{100 * rescued:.0f}",
        "ms": f"{row['ms_without_embedding']:.1f}",
    }


def _write(options: argparse.Namespace, rows: Sequence[Row], costs: Sequence[Row]) -> None:
    if options.json:
        found = {"versions": versions(), "rows": rows, "cost": costs}
        Path(options.json).write_text(json.dumps(found, indent=2))
    if options.markdown:
        Path(options.markdown).write_text("\n\n".join(_markdown(rows, costs)) + "\n")
    if options.plots and rows:
        from _retrieval_plots import draw_curves, draw_gains

        for name in options.embeddings.split(","):
            own = [row for row in rows if row["embedding"] == name and "," not in row["links"]]
            own = [row for row in own if row["links"] == _first_links(rows, row["set"])]
            draw_curves(own, Path(options.plots) / f"recall-{name}.svg")
            draw_gains(own, Path(options.plots) / f"gain-{name}.svg")


def _first_links(rows: Sequence[Row], name: str) -> str:
    return next(row["links"] for row in rows if row["set"] == name)


def _markdown(rows: Sequence[Row], costs: Sequence[Row]) -> Iterator[str]:
    """A table for each embedding, and one of costs."""
    for name in dict.fromkeys(row["embedding"] for row in rows):
        yield f"### {name}"
        yield _table([_printed(row) for row in rows if row["embedding"] == name])
    if costs:
        yield _table([{key: str(value) for key, value in row.items()} for row in costs])
    yield ", ".join(f"{package} {number}" for package, number in versions().items())


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
