"""Checks a store: coverage, drift, staleness, names and confidence."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from linkstore.core.arguments import omit_none, require, require_list
from linkstore.core.calls import run
from linkstore.core.display import format_percent
from linkstore.core.links import Link, get_links
from linkstore.core.urls import is_internal_tag
from linkstore.engines.contract import Survey
from linkstore.evaluate.bundles import BundleCheck
from linkstore.extract.names import normalize_name
from linkstore.ingest.relink import BEGUN_SOURCE
from linkstore.ingest.source import Source, staleness
from linkstore.store.core import require_store
from linkstore.store.documents import INCOMPLETE_DIGEST
from linkstore.store.schema import TYPE_FIELD, Schema
from linkstore.store.schema_graph import TypeConnectivity, TypedGraph
from linkstore.store.usage import UnansweredQuestion, read_unanswered

if TYPE_CHECKING:
    from linkstore.store.core import CoreStore

Severity = Literal["alarm", "hint"]
MAX_EXAMPLES: Final = 5
"""How many examples a finding has at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckupFinding:
    """Something in a store that needs attention.

    Args:
        check: What was checked: ``schema``, ``drift``, ``coverage``, ``stale``, ``dangling``, ``names``,
            ``confidence``, ``bundle`` or ``sound``.
        severity: ``"alarm"``: searches miss something, or may. ``"hint"``: it may be as it should be.
        text: What it is, in words.
        count: How many documents, links or pages it concerns.
        examples: The first of these.
    """

    check: str
    severity: Severity
    text: str
    count: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.examples) else ""
        return f"{self.check}: {self.text}" + (
            f" ({', '.join(self.examples)}{more})" if self.examples else ""
        )


def make_finding(
    check: str, severity: Severity, text: str, count: int, examples: Iterable[str] = ()
) -> CheckupFinding:
    """Return a finding with the first of the examples."""
    shown = tuple(islice(examples, MAX_EXAMPLES))
    return CheckupFinding(check=check, severity=severity, text=text, count=count, examples=shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """The content of a store, and what needs attention.

    Args:
        documents: How many documents there are.
        pages: How many indexed pages.
        types: How the documents of each type are joined to others; None stands for those without a type.
        links: How many links there are of each kind.
        groups: How many link groups there are.
        dangling: Of each kind, how many links lead to no document; links to other sites are not counted.
        external: How many links lead to other sites.
        findings: What needs attention, alarms first.
        skipped: Checks that were not made, each with the reason.
        unanswered: The questions that found nothing and are kept in the store, the most frequent first.
    """

    documents: int
    pages: int
    types: Mapping[str | None, TypeConnectivity]
    links: Mapping[str, int]
    groups: int
    dangling: Mapping[str, int]
    external: int
    findings: tuple[CheckupFinding, ...]
    skipped: Mapping[str, str]
    unanswered: tuple[UnansweredQuestion, ...] = ()

    @property
    def alarms(self) -> tuple[CheckupFinding, ...]:
        """The findings that are alarms."""
        return tuple(finding for finding in self.findings if finding.severity == "alarm")

    @property
    def healthy(self) -> bool:
        """Whether there is no alarm."""
        return not self.alarms

    def to_dict(self) -> dict[str, Any]:
        """Return the checkup as a plain JSON dict, with documents without a type under ``""``."""
        return {
            "healthy": self.healthy,
            "documents": self.documents,
            "pages": self.pages,
            "types": {name or "": asdict(standing) for name, standing in self.types.items()},
            "links": dict(self.links),
            "groups": self.groups,
            "dangling": dict(self.dangling),
            "external": self.external,
            "findings": [asdict(finding) for finding in self.findings],
            "skipped": dict(self.skipped),
            "unanswered": [
                {"question": question.question, "count": question.count, "last": question.last.isoformat()}
                for question in self.unanswered
            ],
        }


NAME_KINDS: Final = ("entity", "mention")
"""Kinds of link whose tags are names, by default."""
CONFIDENCE_KEY: Final = "confidence"
"""The key in the data of a link for the confidence of its extractor, from 0 to 1."""
MIN_CONFIDENCE: Final = 0.6
"""A link with less confidence is doubtful."""


def _check_names(kinds: Collection[str], named: Iterable[tuple[str, Link]]) -> Iterator[CheckupFinding]:
    """Yield names with several spellings, and links of whose names an extractor was unsure.

    Args:
        kinds: Kinds of link whose tags are names.
        named: The links of these kinds, each with the id of its document.
    """
    spellings: dict[tuple[str, str], set[str]] = defaultdict(set)
    scored: Counter[str] = Counter()
    doubtful: dict[str, list[str]] = defaultdict(list)
    for id, link in named:
        spellings[link.kind, normalize_name(link.tag)].add(link.tag)
        confidence = (link.data or {}).get(CONFIDENCE_KEY)
        if isinstance(confidence, int | float) and not isinstance(confidence, bool):
            scored[link.kind] += 1
            if confidence < MIN_CONFIDENCE:
                doubtful[link.kind].append(f"{link.label or link.tag} in {id}")
    for kind in sorted(kinds):
        split = [tags for (of, _), tags in sorted(spellings.items()) if of == kind and len(tags) > 1]
        if split:
            text = (
                f"names of the kind {kind!r} with several spellings, which do not meet: {len(split):,};"
                " join them with linkstore.extract.names"
            )
            examples = (" = ".join(map(repr, sorted(tags))) for tags in split)
            yield make_finding("names", "alarm", text, len(split), examples)
        if doubtful[kind]:
            count = len(doubtful[kind])
            text = (
                f"links of the kind {kind!r} with a confidence below {MIN_CONFIDENCE}: {count:,},"
                f" {format_percent(count / scored[kind])} of those that have one"
            )
            yield make_finding("confidence", "hint", text, count, doubtful[kind])


MAX_VERIFIED: Final = 20_000
"""Maximum number of documents of a store whose derived data are verified too."""
_EXTERNAL_KINDS: Final = frozenset({"hyperlink", "citation", "sourced_from"})
"""Kinds whose tags are URLs, which may lead to other sites."""


def examine(
    store: CoreStore, *, sources: Mapping[str, Source] | None = None, names: Collection[str] = NAME_KINDS
) -> Checkup:
    """Check a store: its schema, types that no traversal reaches, stale pages, links and names.

    All documents are read once. The time and memory grow with the size of the store. Nothing is written.

    Args:
        store: The store.
        sources: Sources to compare with what is stored of them, by their names in the store, made with the
            settings that they were indexed with. They are compared by the digests of their pages.
        names: Kinds of link whose tags are names; default ``"entity"`` and ``"mention"``.

    Raises:
        ArgumentError: If an argument has the wrong type.
        SourceNotFoundError: If a source does not exist.
    """
    require_store(store=store)
    require_list("kinds", names=names)
    require(Mapping, "a dict of sources by their names", **omit_none(sources=sources))
    schema = store.schema.get()
    graph = TypedGraph(schema.type_field if schema else TYPE_FIELD)
    kinds = frozenset(names)
    bundles = BundleCheck()

    def read_named() -> Iterator[tuple[str, Link]]:
        for document in store.scan():
            links = get_links(document)
            graph.add(document.id or "", document.metadata, links)
            bundles.add(document.metadata, links)
            yield from ((document.id or "", link) for link in links if link.kind in kinds)

    named = list(_check_names(kinds, read_named()))
    survey = store.survey()
    dangling = _count_dangling_links(survey)
    findings = [
        *(_check_schema_problems(store, schema) if schema else ()),
        *_check_drift(graph, schema),
        *_check_coverage(survey, schema, dangling),
        *_check_incomplete(store),
        *(
            finding
            for name, source in (sources or {}).items()
            for finding in _check_stale(store, source, name)
        ),
        *named,
        *_check_bundles(bundles, survey),
        *(_check_sound(store) if survey.documents <= MAX_VERIFIED else ()),
    ]
    return Checkup(
        documents=survey.documents,
        pages=survey.pages,
        types=graph.count_connectivity(),
        links=dict(survey.links),
        groups=survey.groups,
        dangling=dangling,
        external=sum(links for kind, tag, links in survey.dangling if not _is_expected_inside(kind, tag)),
        findings=tuple(sorted(findings, key=lambda finding: finding.severity != "alarm")),
        skipped=_list_skipped(store, survey, sources or {}, schema),
        unanswered=tuple(run(read_unanswered(store.backend))),
    )


def _check_schema_problems(store: CoreStore, schema: Schema) -> Iterator[CheckupFinding]:
    """Yield the problems under the recorded schema."""
    report = store.schema.check(schema)
    if report.count:
        text = f"problems that version {schema.version} of the schema has with the store: {report.count:,}"
        yield make_finding("schema", "alarm", text, report.count, map(str, report.problems))


def _check_drift(graph: TypedGraph, schema: Schema | None) -> Iterator[CheckupFinding]:
    """Yield types of documents that no traversal reaches."""
    standing = graph.count_connectivity()
    apart = {
        name
        for name, connectivity in standing.items()
        if name is not None and connectivity.alone == connectivity.documents
    }
    for document_type in sorted(apart if len(standing) > 1 else ()):
        text = (
            f"no link leads to or from any document of the type {document_type!r}, so no traversal reaches it"
        )
        yield make_finding("drift", "alarm", text, standing[document_type].documents)
    if schema is None:
        return
    led = (relation.types if relation.both_ways else relation.to_types for relation in schema.relations)
    roots = schema.types.difference(*led)  # traversals start where no relation leads
    if not roots:
        return
    left, ids = graph.count_unreached(roots)
    for name, count in left.items():
        if name is None or name in apart:
            continue
        whole = count == standing[name].documents
        starts = ", ".join(sorted(roots))
        text = f"no traversal from {starts} reaches {'any' if whole else f'{count:,}'} of the type {name!r}"
        yield make_finding("drift", "alarm" if whole else "hint", text, count, ids if len(left) == 1 else ())


def _check_coverage(
    survey: Survey, schema: Schema | None, dangling: Mapping[str, int]
) -> Iterator[CheckupFinding]:
    """Yield kinds of link that lead nowhere, and kinds of the schema without links."""
    for kind, count in dangling.items():
        every = count >= survey.links.get(kind, 0)
        share = ", all of them" if every else ""
        why = " (absent, or not fetched, as robots.txt or an option says)" if kind in _EXTERNAL_KINDS else ""
        text = f"links of the kind {kind!r} that lead to no document{why}: {count:,}{share}"
        tags = (tag for of, tag, _ in survey.dangling if of == kind and _is_expected_inside(of, tag))
        yield make_finding("dangling", "hint", text, count, tags)
    unused = sorted(schema.kinds - survey.links.keys()) if schema and survey.documents else []
    if unused:
        text = f"kinds of the schema that no link has: {len(unused):,}"
        yield make_finding("coverage", "hint", text, len(unused), unused)


def _count_dangling_links(survey: Survey) -> dict[str, int]:
    """Return the number of dangling links of each kind, without links to other sites."""
    counts: dict[str, int] = {}
    for kind, tag, links in survey.dangling:
        if _is_expected_inside(kind, tag):
            counts[kind] = counts.get(kind, 0) + links
    return dict(sorted(counts.items()))


def _is_expected_inside(kind: str, tag: str) -> bool:
    return kind not in _EXTERNAL_KINDS or is_internal_tag(tag)


def _check_incomplete(store: CoreStore) -> Iterator[CheckupFinding]:
    """Yield pages that lost documents since they were indexed."""
    sources = store.pages.sources()
    if BEGUN_SOURCE in sources:
        text = "linking the corpus was interrupted; index a source again, or run linkstore links --relink"
        yield make_finding("stale", "alarm", text, sources[BEGUN_SOURCE])
    pages = sorted(page for page, digest in store.pages.digests(None).items() if digest == INCOMPLETE_DIGEST)
    if pages:
        yield make_finding(
            "stale",
            "alarm",
            "pages lost documents since they were indexed; index their source again",
            len(pages),
            pages,
        )


def _check_stale(store: CoreStore, source: Source, name: str) -> Iterator[CheckupFinding]:
    """Yield pages that are not as they were when they were indexed."""
    comparison = staleness(store, source, name)
    for pages, what in (
        (comparison.changed, "that changed since they were indexed"),
        (comparison.added, "that are not indexed"),
        (comparison.gone, "that are gone from it"),
    ):
        if pages:
            text = f"pages of {name} {what}: {len(pages):,}; index it again"
            yield make_finding("stale", "alarm", text, len(pages), pages)
    if comparison.unread:
        reasons = (f"{page} ({reason})" for page, reason in comparison.unread)
        text = f"parts of {name} that could not be looked at: {len(comparison.unread):,}"
        yield make_finding("stale", "hint", text, len(comparison.unread), reasons)


def _check_bundles(bundles: BundleCheck, survey: Survey) -> Iterator[CheckupFinding]:
    """Yield the pages of bundles without a type, and what may be as it should be: all else is guidance."""
    dead = bundles.find_dead_links((kind, tag) for kind, tag, _ in survey.dangling)
    checks: list[tuple[Severity, list[str], str]] = [
        ("alarm", bundles.find_untyped(), "pages of bundles without a type"),
        ("hint", bundles.find_invalid(), "pages of bundles whose fields are not as the format says"),
        ("hint", dead, "links of bundles that lead to no page"),
        ("hint", bundles.find_orphans(), "pages of bundles that no other page links to"),
        ("hint", bundles.find_stale(dt.datetime.now(dt.UTC).date()), "pages of bundles that are out of date"),
    ]
    for severity, pages, what in checks:
        if pages:
            yield make_finding("bundle", severity, f"{what}: {len(pages):,}", len(pages), pages)


def _check_sound(store: CoreStore) -> Iterator[CheckupFinding]:
    """Yield the findings of ``verify``."""
    for finding in store.verify().findings:
        yield make_finding(
            "sound", "alarm", f"{finding.problem}; repair the store", finding.count, finding.examples
        )


def _list_skipped(
    store: CoreStore, survey: Survey, sources: Mapping[str, Source], schema: Schema | None
) -> dict[str, str]:
    """Return the checks that were not made, each with the reason."""
    reasons: dict[str, str] = {}
    others = sorted(store.pages.sources().keys() - sources.keys() - {BEGUN_SOURCE})
    if others:
        reasons["stale"] = f"these sources were not compared: {', '.join(others)}"
    if schema is None:
        reasons["schema"] = "the store records no schema"
    if survey.documents > MAX_VERIFIED:
        reasons["sound"] = (
            f"the store has more than {MAX_VERIFIED:,} documents; run linkstore doctor --verify"
        )
    return reasons
