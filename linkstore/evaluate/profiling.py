"""Profiles a corpus: statistics of its links, and how much they can improve the results of questions.

With questions, the verdict is a measurement: the default compared with the best search without links. The
second sentence says why: the share of gold answers that dense search misses among its first 5, and the share
of these that one link from its first 10 hits leads to. Without questions, it is the share of documents that a
link from another page leads to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from langchain_core.documents import Document

from linkstore.core.arguments import omit_none, require, require_list
from linkstore.core.arrays import Floats, Ints, normalize_vector
from linkstore.core.display import format_percent
from linkstore.core.links import LINKS_KEY, copy_with_links
from linkstore.core.plans import Find, Ids, Nearest, Plan, Tags, ask
from linkstore.errors import CapabilityError, EvaluationError
from linkstore.evaluate.link_groups import HUB_CAP, GoldEdges, GoldProfile, Profile, measure_links
from linkstore.evaluate.metrics import DEFAULT, DENSE, WITHOUT_LINKS, Comparison
from linkstore.evaluate.running import GoldKind, GoldQuestion, GoldUnits, evaluate, find_gold_units
from linkstore.extract.protocol import CorpusExtractor, extractor_names, load_extractor
from linkstore.ingest.relink import CORPUS_LINKS
from linkstore.store.linkstore import LinkStore, require_store
from linkstore.strategies.base import HOP_SIDES
from linkstore.strategies.traversal import follow_links


def with_links(documents: Sequence[Document], links: Sequence[str] | None = None) -> list[Document]:
    """Return copies of documents with the links that are wanted.

    Args:
        documents: A corpus.
        links: Names. Links of these kinds are kept, all others dropped. Where no document carries links of
            a name, the link extractor of that name is run over the corpus, if it reads documents. None: all
            links that the documents carry, or if they carry none, those that ``CORPUS_LINKS`` of ingest find.

    Raises:
        EvaluationError: If a name is neither a kind that is carried nor an installed extractor.
    """
    require_list("documents", documents=documents)
    for document in documents:
        require(Document, "a Document", document=document)
    require_list("names", **omit_none(links=links))
    carried = {link["kind"] for document in documents for link in document.metadata.get(LINKS_KEY, ())}
    if links is None and carried:
        return list(documents)
    installed = extractor_names()
    wanted = [name for name in CORPUS_LINKS if name in installed] if links is None else list(links)
    unknown = [name for name in wanted if name not in carried and name not in installed]
    if unknown:
        raise EvaluationError(
            f"no document carries links of kind {', '.join(unknown)}, and no extractor of that name is"
            f" installed; carried: {', '.join(sorted(carried)) or 'none'}; installed: {', '.join(installed)}"
        )
    loaded = [load_extractor(name) for name in dict.fromkeys(wanted) if name not in carried]
    extractors = [extractor for extractor in loaded if getattr(extractor, "source", Document) is Document]
    kept = []
    for document in documents:
        links = [link for link in document.metadata.get(LINKS_KEY, ()) if link["kind"] in wanted]
        kept.append(document.model_copy(update={"metadata": {**document.metadata, LINKS_KEY: links}}))
    for extractor in extractors:
        if isinstance(extractor, CorpusExtractor):
            extractor.observe(kept)
    if not extractors:
        return kept
    return [
        copy_with_links(document, *(extractor.extract(document) for extractor in extractors))
        for document in kept
    ]


WELL_LINKED: Final = 0.5
"""From this share of documents reached on, a corpus is well linked."""
BARELY_LINKED: Final = 0.1
"""Below this share, a search finds hardly any link to follow."""


def describe_verdict(reached_share: float, gold: GoldProfile | None, comparison: Comparison | None) -> str:
    """Return the verdict in one or two sentences.

    Args:
        reached_share: Share of documents that another one leads to by one link other than ``section``.
        gold: What questions with known answers say about the links, if there are any questions.
        comparison: What these questions say about the searches.
    """
    if gold is None or comparison is None:
        return _describe_structure(reached_share)
    return (
        f"{comparison} Dense search misses {format_percent(gold.headroom, 0)} of the gold "
        "answers among its first"
        f" 5, and one link from its first 10 leads to {format_percent(gold.reach, 0)} of what it misses."
    )


def _describe_structure(share: float) -> str:
    asked = "Questions with known answers (--questions) show whether the links lead to what is asked for."
    counted = f"{format_percent(share, 0)} of the documents can be reached from another document by one link"
    if share >= WELL_LINKED:
        return f"Well linked: {counted}. {asked}"
    if share >= BARELY_LINKED:
        return f"Partly linked: {counted}. {asked}"
    return f"Hardly linked: {counted}, so links can add little to any search."


ALL_KINDS: Final = "all"
"""Stands for all kinds of link together."""
_FOUND_AMONG: Final = 5
"""A gold document is missed if it is not among this many results of dense search."""
_REACHED_FROM: Final = 10
"""A gold document is within reach if one link joins it to one of this many results."""

Edge = tuple[int, int]


def profile_gold(store: LinkStore, questions: Sequence[GoldQuestion], units: GoldUnits) -> GoldProfile:
    """Search for each question by similarity, and examine the links of its gold answers.

    Args:
        store: Where the documents are.
        questions: Questions with their answers.
        units: The documents of each answer.
    """
    results = []
    for question in questions:
        answers = [units.documents[answer] for answer in question.gold]
        vector = normalize_vector(store.embeddings.embed_query(question.question))
        results.append(store.backend.run(store.backend.answer(_examine_question(answers, vector))))
    several = [result for result in results if result.answers > 1]
    kinds = sorted(
        {kind for result in several for kind in result.edges}, key=lambda kind: (kind != ALL_KINDS, kind)
    )
    joining = {kind: [result.find_joining(kind) for result in several] for kind in kinds}
    return GoldProfile(
        questions=len(questions),
        recall_at_5=float(np.mean([1 - len(result.missed) / result.answers for result in results])),
        missed=sum(len(result.missed) for result in results),
        within_reach=sum(len(result.within_reach) for result in results),
        kinds={
            kind: GoldEdges(
                edges=sum(len(result.edges.get(kind, ())) for result in several),
                joining=sum(map(len, joining[kind])),
                gold=sum(result.answers for result in several),
                linked=sum(
                    len({result.answer[ref] for edge in edges for ref in edge})
                    for result, edges in zip(several, joining[kind], strict=True)
                ),
            )
            for kind in kinds
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _QuestionLinks:
    """The answers of one question, and the links that join them.

    Args:
        answers: How many gold answers it has.
        answer: For each document of an answer, the number of that answer.
        edges: By kind, the documents that links join: pairs, the smaller ref first, one of them gold and the
            other not of the same answer.
        missed: Answers of which dense search has no document among its first.
        within_reach: Of these, those with a document that a link joins to one of the starts.
    """

    answers: int
    answer: Mapping[int, int]
    edges: Mapping[str, frozenset[Edge]]
    missed: frozenset[int]
    within_reach: frozenset[int]

    def find_joining(self, kind: str) -> list[Edge]:
        """Return the edges of a kind that join two answers."""
        return [edge for edge in self.edges.get(kind, ()) if self.answer.keys() >= set(edge)]


def _examine_question(answers: Sequence[frozenset[str]], vector: Floats) -> Plan[_QuestionLinks]:
    number = {id: at for at, ids in enumerate(answers) for id in sorted(ids)}
    candidates = yield from ask(Find(ids=tuple(number)))
    ids = yield from ask(Ids(refs=candidates.refs))
    answer = {ref: number[id] for ref, id in zip(candidates.refs.tolist(), ids, strict=True)}
    near = yield from ask(Nearest(vector=vector, k=_REACHED_FROM))
    edges = yield from _find_edges(candidates.refs)
    edges = {  # those that do not stay within one answer
        kind: frozenset((source, other) for source, other in pairs if answer.get(source) != answer.get(other))
        for kind, pairs in edges.items()
    }
    missed = set(range(len(answers))) - _find_answers(near.refs[:_FOUND_AMONG].tolist(), answer)
    starts = frozenset(near.refs.tolist())
    reached = {ref for edge in edges[ALL_KINDS] if starts.intersection(edge) for ref in edge}
    return _QuestionLinks(
        answers=len(answers),
        answer=answer,
        edges=edges,
        missed=frozenset(missed),
        within_reach=frozenset(missed & _find_answers(reached, answer)),
    )


def _find_answers(refs: Iterable[int], answer: Mapping[int, int]) -> set[int]:
    return {answer[ref] for ref in refs if ref in answer}


def _find_edges(refs: Ints) -> Plan[dict[str, frozenset[Edge]]]:
    """Return the pairs of each of ``refs`` and a document linked to it, by kind and for all kinds."""
    edges: defaultdict[str, set[Edge]] = defaultdict(set)
    for leave, _ in HOP_SIDES["both"]:
        hop = yield from follow_links(refs, leave, take=HUB_CAP, cap=HUB_CAP)
        tags = yield from ask(Tags(groups=hop.groups))
        pairs_of = {group: edges[name] for group, (name, _) in zip(hop.groups.tolist(), tags, strict=True)}
        left, reached = refs[hop.edges.source].tolist(), hop.edges.target.tolist()
        for source, other, group in zip(left, reached, hop.edges.group.tolist(), strict=True):
            if source != other:
                pairs_of[group].add((min(source, other), max(source, other)))
    whole = frozenset[Edge]().union(*edges.values())
    return {kind: frozenset(pairs) for kind, pairs in edges.items()} | {ALL_KINDS: whole}


def profile(
    store: LinkStore, questions: Sequence[GoldQuestion] = (), *, gold: GoldKind | None = None
) -> Profile:
    """Describe the links of a store.

    Reads all links of the store into memory, twice. What is written meanwhile may or may not be counted.

    Args:
        store: The store, which is not changed.
        questions: Questions with their answers, to measure how links help to find them. Without questions,
            the verdict can only say how well documents are linked.
        gold: What answers name: see :func:`~linkstore.evaluate.evaluate`.

    Raises:
        EvaluationError: If a gold answer is not in the store.
    """
    require_store(store=store)
    measured_links = measure_links(store.backend.run(store.backend.links()), store.survey())
    units = find_gold_units(store, questions, gold) if questions else None
    measured = profile_gold(store, questions, units) if units else None
    comparison = _compare_searches(store, questions, units.kind) if units else None
    return replace(
        measured_links,
        gold=measured,
        gold_kind=units.kind if units else None,
        comparison=comparison,
        verdict=describe_verdict(measured_links.reached_share, measured, comparison),
    )


def _compare_searches(
    store: LinkStore, questions: Sequence[GoldQuestion], gold: GoldKind
) -> Comparison | None:
    """Compare the default with the searches without links that the backend can do."""
    try:
        return evaluate(store, questions, (*WITHOUT_LINKS, DEFAULT), gold=gold).comparison
    except CapabilityError:  # it has no search by words
        return evaluate(store, questions, (DENSE, DEFAULT), gold=gold).comparison
