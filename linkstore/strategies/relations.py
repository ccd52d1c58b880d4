"""Where relations meet: chains of meaningful links, valid now, from the documents that a question names.

Two relations of one thing lead to the answer of such a question, and documents that have only one of them are
wrong. Types of documents say where a chain ends: it leads through no second document of the type that it
starts from, because that is about another thing, and through none of the type of its end.

Whether what a document describes is valid now, its metadata say; nothing is guessed from its text. It says so
by a state (``status: "withdrawn"``), by a flag (``in_force: false``), or by when it ends
(``valid_until: "2019-12-31"``). Questions are about what is valid now, unless they name another state.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Literal, Self

from linkstore.core.arguments import quote_value, require_at_least
from linkstore.core.filters import EVERYTHING, Condition, Filter, parse_filter
from linkstore.core.hits import Chain, Cut, Hit, Hits
from linkstore.core.plans import Plan, StoredDocument, read_documents
from linkstore.core.text import tokenize
from linkstore.errors import StrategyError
from linkstore.strategies.all_paths import AllPaths, select_independent_chains
from linkstore.strategies.base import Question, Strategy
from linkstore.strategies.first_stage import Named
from linkstore.strategies.pagerank import PageRank

MAX_STARTS: Final = 5
"""Number of documents that a question names from which relations are followed."""
MIN_SURETY: Final = 3.01
"""A document is no start if the question names another one so many times as surely."""
MAX_MEETINGS: Final = 200
"""Number of documents whose chains are compared."""
MAX_CHAINS_EACH: Final = 20
MAX_SHOWN_STATES: Final = 5
_ASKED: Final = re.compile(
    r"\W*(?:which|what|list|name|show)\s+(?:all\s+)?(?:of\s+)?(?:the\s+)?(\w.*)", re.IGNORECASE | re.DOTALL
)
_ASKED_WORDS: Final = 3
"""The type that is asked for is among so many words after "which", with which the question begins."""
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Relations(Strategy):
    """The documents where relations of the named documents meet, then the hits of :class:`PageRank`.

    Chains of at most ``depth`` links, in either direction, start from the documents that the question names,
    or from the best one of ``start_type``. Relations meet at a document if independent chains lead to it (see
    :class:`AllPaths`) that pass only what is valid now (see :mod:`linkstore.strategies.relations`) and end at
    the first document of their type. Of several types of end, that is meant which the question asks for
    ("Which rules …"), or else those with the fewest links followed against their direction. These documents
    come first, with ``meeting`` among their contributions and with their chains. Cuts tell what was not
    valid, and how many more there are.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page among those of PageRank. Default None, no maximum.
        depth: Maximum number of links in a chain. Default 3.
        start_type: The type of the documents to start from. None, the default: of those that are named.
        result_type: The type of the documents to find. None, the default: any.
        where: For types of documents on the way, a filter that they must pass, such as
            ``{"Approval": {"status": "ACTIVE"}}``. For other types, their states decide what is valid now.
        type_field: The metadata field that holds types. Default ``"type"``.
        min_similarity: As for :class:`PageRank`. Default None.
    """

    depth: int = 3
    start_type: str | None = None
    result_type: str | None = None
    where: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    type_field: str = "type"
    min_similarity: float | None = None

    def __post_init__(self) -> None:
        Strategy.__post_init__(self)
        require_at_least(0, depth=self.depth)
        if not isinstance(self.where, Mapping) or not all(
            isinstance(condition, Mapping) for condition in self.where.values()
        ):
            raise StrategyError(
                'where must have a condition for each type, such as {"Type": {"field": "value"}}, not'
                f" {quote_value(self.where)}"
            )
        for condition in self.where.values():
            parse_filter(condition)

    @property
    def ranking(self) -> PageRank:
        """The strategy for the documents that follow."""
        return PageRank(k=self.k, per_page=self.per_page, min_similarity=self.min_similarity)

    def with_floor(self, floor: float | None) -> Self:
        """Return a copy with ``floor``: see :meth:`Strategy.with_floor`."""
        return (
            self if floor is None or self.min_similarity is not None else replace(self, min_similarity=floor)
        )

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan the names, the chains from them, and the walk of PageRank."""
        starts, unclear = yield from self._find_starts(question)
        met, cuts = (
            (yield from self._find_meetings(question, starts)) if starts and self.depth > 1 else ([], [])
        )
        results = question.result_filter & self._of_type(self.result_type)
        ranked: Hits = yield from self.ranking.plan(replace(question, result_filter=results))
        met_ids = {hit.document.id for hit in met}
        hits = [*met, *(hit for hit in ranked if hit.document.id not in met_ids)]
        if len(met) > self.k:
            cuts.append(
                Cut(reason="meeting", count=len(met) - self.k, depth=None, detail="where relations meet too")
            )
        cuts += [*unclear, *(cut for cut in ranked.cuts if cut not in unclear)]
        return replace(ranked, hits=tuple(hits[: self.k]), cuts=tuple(cuts), strategy=str(self))

    def _of_type(self, type: str | None) -> Condition:
        return EVERYTHING if type is None else parse_filter({self.type_field: type})

    def _find_starts(self, question: Question) -> Plan[tuple[list[Hit], list[Cut]]]:
        """Find the documents that the question names, the surest first, or else the best of its type.

        Returns them, and which names may mean several documents.
        """
        asked = replace(
            question,
            seed_filter=question.seed_filter & self._of_type(self.start_type),
            result_filter=EVERYTHING,
        )
        hits: Hits = yield from Named(k=MAX_STARTS).plan(asked)
        unclear = [cut for cut in hits.cuts if cut.reason == "name"]
        if not hits and self.start_type is not None:
            hits = yield from AllPaths(k=1, start_k=1, depth=0, min_similarity=self.min_similarity).plan(
                asked
            )
        return [hit for hit in hits if MIN_SURETY * hit.score >= hits[0].score], unclear

    def _find_meetings(self, question: Question, starts: Sequence[Hit]) -> Plan[tuple[list[Hit], list[Cut]]]:
        types = {hit.document.metadata.get(self.type_field) for hit in starts}
        start_type = types.pop() if len(types) == 1 else None
        apart = start_type if isinstance(start_type, str) and start_type != self.result_type else None
        asked = replace(
            question,
            seed_filter=EVERYTHING,
            hop_filter=question.hop_filter & parse_filter(self._make_hop_filter(apart)),
            result_filter=question.result_filter & self._of_type(self.result_type),
            roots=tuple(str(hit.document.id) for hit in starts),
            links=(),
        )
        strategy = AllPaths(
            k=MAX_MEETINGS,
            start_k=0,
            named=0,
            depth=self.depth,
            chains=MAX_CHAINS_EACH,
            direction="both",
            adjacent_k=100,
            beam=MAX_MEETINGS,
            references=False,
        )
        hits: Hits = yield from strategy.plan(asked)
        ids = {id for hit in hits for chain in hit.chains for id in chain.documents}
        documents: list[StoredDocument] = yield from read_documents(tuple(sorted(ids)))
        judge = _ChainJudge(self, question.text, documents)
        met = [judged for hit in hits if (judged := judge.judge(hit))]
        if self.result_type is None:
            met = _select_asked_type(met, question.text, self.type_field)
        shown = ", ".join(f"[{id}] {state}" for id, state in sorted(judge.invalid.items())[:MAX_SHOWN_STATES])
        cut = Cut(reason="state", count=len(judge.invalid), depth=None, detail=f"not valid: {shown}")
        return met, [cut] if judge.invalid else []

    def _make_hop_filter(self, start_type: str | None) -> Filter | None:
        """Return a filter without other documents of the start's type, and what does not meet conditions."""
        parts: list[Filter] = [] if start_type is None else [{self.type_field: {"$ne": start_type}}]
        parts += [
            {
                "$or": [
                    {self.type_field: {"$ne": type_name}},
                    {"$and": [{self.type_field: type_name}, dict(condition)]},
                ]
            }
            for type_name, condition in self.where.items()
            if condition
        ]
        return {"$and": parts} if parts else None


class _ChainJudge:
    """Selects the chains to a document that count, and finds the invalid documents on the way.

    Args:
        strategy: Has the types, and those for which the caller says what is valid.
        question: In words.
        documents: All documents of the chains.
    """

    def __init__(self, strategy: Relations, question: str, documents: Sequence[StoredDocument]) -> None:
        self._question = question
        self._types = {document.id: document.metadata.get(strategy.type_field) for document in documents}
        self._states: dict[str, str] = {}
        self.invalid: dict[str, str] = {}
        states: dict[tuple[object, str], dict[str, tuple[object, Validity]]] = defaultdict(dict)
        for document in documents:
            if self._types[document.id] not in strategy.where:
                for name, value, meaning in find_states(document.metadata):
                    states[self._types[document.id], name][document.id] = value, meaning
        for (_, name), values in states.items():
            self._states |= _find_invalid(question, name, values)

    def judge(self, hit: Hit) -> Hit | None:
        """Return a hit with the chains that count, or None if fewer than two independent ones do."""
        ending = list(filter(self._ends_there, hit.chains))
        valid = [chain for chain in ending if not self._find_invalid(chain)]
        independent = _select_chains(valid)
        if not independent:
            if _select_chains(ending):
                self.invalid |= {id: state for chain in ending for id, state in self._find_invalid(chain)}
            return None
        chains = [replace(chain, independent=True) for chain in independent]
        chains += [replace(chain, independent=False) for chain in valid if chain not in independent]
        parts = {name: part for name, part in hit.contributions.items() if name != "meeting"}
        score = hit.score - hit.contributions.get("meeting", 0.0) + len(independent) - 1
        parts["meeting"] = len(independent) - 1.0
        return replace(hit, chains=tuple(chains), score=score, contributions=parts)

    def _find_invalid(self, chain: Chain) -> list[tuple[str, str]]:
        """Return the documents and links of a chain that are not valid, by id, each with its state."""
        invalid = [(id, self._states[id]) for id in chain.documents if id in self._states]
        for triple in chain:
            for name, value, meaning in find_states(triple.data or {}):
                if meaning == "over" and not is_asked_for(self._question, value):
                    invalid.append((triple.object, _format_state(name, value)))
        return invalid

    def _ends_there(self, chain: Chain) -> bool:
        """Say whether no document on the way has the type of the last one, or of the first one."""
        *inside, end = (self._types.get(id) for id in chain.documents[1:])
        return not {end, self._types.get(chain.start)} - {None} & set(inside)


def _select_chains(chains: Sequence[Chain]) -> list[Chain]:
    """Select the most independent chains, and of as many those with the fewest links followed backward."""
    starts = dict.fromkeys(chain.start for chain in chains)
    selections = [
        select_independent_chains([chain for chain in chains if chain.start == start]) for start in starts
    ]
    selections.append([] if any(selections) else select_independent_chains(chains, starts))
    return min(selections, key=lambda some: (-len(some), sum(map(_count_backward, some))))


def _find_invalid(question: str, name: str, values: Mapping[str, tuple[object, Validity]]) -> dict[str, str]:
    """Return the documents of a type that are not valid by one of their states, each with its state.

    A state that the question names is the valid one. A state that is not known is not valid beside one that
    is, and if there are several such states, none of them is taken for valid.
    """
    asked = {id for id, (value, _) in values.items() if is_asked_for(question, value)}
    meanings = {meaning for _, meaning in values.values()}
    unknown = {str(value) for value, meaning in values.values() if meaning == "unknown"}
    unclear = "valid" in meanings or len(unknown) > 1
    return {
        id: _format_state(name, value)
        for id, (value, meaning) in values.items()
        if id not in asked and (asked or meaning == "over" or (meaning == "unknown" and unclear))
    }


def _format_state(name: str, value: object) -> str:
    return f"{name}: {str(value).lower() if isinstance(value, bool) else value}"


def _select_asked_type(hits: Sequence[Hit], question: str, type_field: str) -> list[Hit]:
    """Return the hits of the type asked for, or of those with the fewest links against their direction."""
    groups: dict[str, list[Hit]] = defaultdict(list)
    for hit in hits:  # documents without types are each of their own
        groups[str(hit.document.metadata.get(type_field) or f"\0{hit.document.id}")].append(hit)
    match = _ASKED.match(question)
    asked = tokenize(match[1])[:_ASKED_WORDS] if match else ()
    named = [group for group in groups if _is_named(group, asked)]
    turned = {
        group: min(
            sum(_count_backward(chain) for chain in hit.chains if chain.independent) for hit in groups[group]
        )
        for group in named or groups
    }
    fewest = min(turned.values(), default=0)
    chosen = {hit.document.id for group, count in turned.items() if count == fewest for hit in groups[group]}
    return [hit for hit in hits if hit.document.id in chosen]


def _is_named(type: str, words: Sequence[str]) -> bool:
    """Say whether words have the last word of a type's name, in the singular or plural."""
    last = tokenize(_CAMEL.sub(" ", type).replace("_", " "))[-1:]
    forms = {form for word in last for form in (word, f"{word}s", f"{word}es", re.sub("y$", "ies", word))}
    return not forms.isdisjoint(words)


def _count_backward(chain: Chain) -> int:
    """Count the links of a chain that were followed against their direction."""
    return sum(triple.object == before for before, triple in zip(chain.documents, chain, strict=False))


Validity = Literal["valid", "over", "unknown"]
_STATE_WORDS: Final = frozenset({"condition", "lifecycle", "phase", "stage", "state", "status", "validity"})
"""A metadata field whose name has one of these words holds a state."""
_VALID_TEXT: Final = """
    active applicable approved available binding confirmed current effective enabled granted
    issued live maintained ongoing open operative outstanding published ratified registered
    running stable standing supported unfixed unresolved valid yes
"""
_VALID: Final = frozenset(_VALID_TEXT.split())
_OVER_TEXT: Final = """
    abandoned abolished abrogated annulled archived cancelled canceled ceased closed declined
    deleted denied deprecated disabled discontinued dismissed draft elapsed ended expired fixed
    former future historic historical inactive ineffective invalid lapsed obsolete old over
    overruled overturned past patched paused pending planned previous proposed quashed refused
    rejected remedied removed repealed replaced rescinded resolved retired retracted revoked
    superseded suspended terminated unsupported upcoming vacated void voided withdrawn yanked
"""
_OVER: Final = frozenset(_OVER_TEXT.split())
_NEGATIONS: Final = frozenset({"non", "not", "never"})
_IN_FORCE: Final = frozenset({"force", "effect", "use", "service"})
_END_TEXT: Final = """
    cancelled end ended ends expiration expire expired expires expiry repeal repealed revocation revoked
    terminated termination until withdrawal withdrawn
"""
_END_WORDS: Final = frozenset(_END_TEXT.split())
_EXCLUDING_TEXT: Final = """
    apart aside besides but disregard disregarding drop except exclude excluding excluded forget
    ignore ignoring leave leaving minus neither no nor not omit omitting skip skipping unless
    without
"""
_EXCLUDING: Final = frozenset(_EXCLUDING_TEXT.split())
_DATE: Final = re.compile(r"(\d{4})(-\d{2})?(-\d{2})?")


def find_states(metadata: Mapping[str, Any]) -> Iterator[tuple[str, object, Validity]]:
    """Yield the fields that say whether something is valid: name, value, and meaning."""
    for name, value in metadata.items():
        words = set(tokenize(_CAMEL.sub(" ", name).replace("_", " ").replace("-", " ")))
        if isinstance(value, bool):
            validity = read_state(words)
            if validity != "unknown":
                yield name, value, validity if value else "over" if validity == "valid" else "valid"
        elif words & _END_WORDS and (end := _DATE.match(str(value))):
            today = datetime.now(UTC).date().isoformat()
            yield name, value, "over" if end[0] < today[: len(end[0])] else "valid"
        elif isinstance(value, str) and words & _STATE_WORDS:
            yield name, value, read_state(set(tokenize(value.replace("_", " ").replace("-", " "))))


def read_state(words: set[str]) -> Validity:
    """Return what the words of a state, or of the name of a flag, mean."""
    over = bool(words & _OVER)
    valid = bool(words & _VALID) or ("in" in words and bool(words & _IN_FORCE))
    if words & _NEGATIONS or ("no" in words and len(words) > 1):
        over, valid = valid or over, False
    return "unknown" if over == valid else "over" if over else "valid"


def is_asked_for(question: str, value: object) -> bool:
    """Say whether a question names a state, and has no word such as "without" or "except"."""
    words, asked = set(tokenize(str(value))), set(tokenize(question))
    return isinstance(value, str) and bool(words) and words <= asked and not asked & _EXCLUDING
