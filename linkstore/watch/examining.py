"""Checks a store: coverage, drift, staleness, names and confidence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from linkstore.arguments import given, require, require_list
from linkstore.backends.base import Survey
from linkstore.drivers import in_thread
from linkstore.ingest import Source, staleness
from linkstore.ingest.relink import BEGUN
from linkstore.links import get_links
from linkstore.operations import INCOMPLETE
from linkstore.schema import Schema, TypedGraph
from linkstore.schema.model import TYPE_FIELD
from linkstore.store.checking import require_store
from linkstore.urls import is_internal
from linkstore.watch.checkup import Checkup, Finding, finding
from linkstore.watch.naming import NAME_KINDS, Names
from linkstore.watch.watch import Watch

if TYPE_CHECKING:
    from linkstore.store import LinkStore

CHEAP: Final = 20_000
"""Maximum number of documents of a store whose derived data are verified too."""
_EXTERNAL: Final = frozenset({"hyperlink", "citation"})
"""Kinds whose tags are URLs, which may lead to other sites."""


def examine(
    store: LinkStore,
    *,
    sources: Mapping[str, Source] | None = None,
    names: Collection[str] = NAME_KINDS,
    watch: Watch | None = None,
) -> Checkup:
    """Check a store: its schema, types that no traversal reaches, stale pages, links and names.

    All documents are read once. The time and memory grow with the size of the store. Nothing is written.

    Args:
        store: The store.
        sources: Sources to compare with what is stored of them, by their names in the store, made with the
            settings that they were indexed with. See :func:`~linkstore.ingest.staleness`.
        names: Kinds of link whose tags are names; default ``"entity"`` and ``"mention"``.
        watch: A watch over the store. Its alarms are among the findings, and so are types and kinds that
            none of its searches found.

    Raises:
        ArgumentError: If an argument has the wrong type.
        SourceNotFoundError: If a source does not exist.
    """
    _check(store, sources, names, watch)
    schema = store.schema()
    graph = TypedGraph(schema.type_field if schema else TYPE_FIELD)
    named = Names(names)
    for document in store.scan():
        links = get_links(document)
        graph.add(document.id or "", document.metadata, links)
        named.add(document.id or "", links)
    survey = store.survey()
    dangling = _dangling(survey)
    findings = [
        *(_of_schema(store, schema) if schema else ()),
        *_drift(graph, schema),
        *_coverage(survey, schema, dangling),
        *_incomplete(store),
        *(finding for name, source in (sources or {}).items() for finding in _stale(store, source, name)),
        *named.findings(),
        *(_unsound(store) if survey.documents <= CHEAP else ()),
        *(_of_searches(watch, graph) if watch else ()),
    ]
    return Checkup(
        documents=survey.documents,
        pages=survey.pages,
        types=graph.standing(),
        links=dict(survey.links),
        dangling=dangling,
        findings=tuple(sorted(findings, key=lambda one: one.severity != "alarm")),
        skipped=_skipped(store, survey, sources or {}, schema),
    )


async def aexamine(
    store: LinkStore,
    *,
    sources: Mapping[str, Source] | None = None,
    names: Collection[str] = NAME_KINDS,
    watch: Watch | None = None,
) -> Checkup:
    """Check a store in a thread of its own: see :func:`examine`."""
    return await in_thread(examine, store, sources=sources, names=names, watch=watch)


def _check(store: object, sources: object, names: object, watch: object) -> None:
    """Raise ArgumentError unless the arguments of :func:`examine` have the right types."""
    require_store(store=store)
    require_list("kinds", names=names)
    require(Mapping, "a dict of sources by their names", **given(sources=sources))
    require(Watch, "a Watch", **given(watch=watch))


def _of_schema(store: LinkStore, schema: Schema) -> Iterator[Finding]:
    """Yield the problems under the recorded schema."""
    report = store.check_schema(schema)
    if report.count:
        text = f"problems that version {schema.version} of the schema has with the store: {report.count:,}"
        yield finding("schema", "alarm", text, report.count, map(str, report.problems))


def _drift(graph: TypedGraph, schema: Schema | None) -> Iterator[Finding]:
    """Yield types of documents that no traversal reaches."""
    standing = graph.standing()
    apart = {name for name, one in standing.items() if name is not None and one.alone == one.documents}
    for one in sorted(apart if len(standing) > 1 else ()):
        text = f"no link leads to or from any document of the type {one!r}, so no traversal reaches it"
        yield finding("drift", "alarm", text, standing[one].documents)
    roots = _roots(schema) if schema else frozenset[str]()
    if not roots:
        return
    left, ids = graph.unreached(roots)
    for name, count in left.items():
        if name is None or name in apart:
            continue
        whole = count == standing[name].documents
        starts = ", ".join(sorted(roots))
        text = f"no traversal from {starts} reaches {'any' if whole else f'{count:,}'} of the type {name!r}"
        yield finding("drift", "alarm" if whole else "note", text, count, ids if len(left) == 1 else ())


def _roots(schema: Schema) -> frozenset[str]:
    """Return the types that no relation leads to: where traversals start."""
    led = {
        end
        for relation in schema.relations
        for end in (relation.types if relation.both_ways else relation.to_types)
    }
    return schema.types - led


def _coverage(survey: Survey, schema: Schema | None, dangling: Mapping[str, int]) -> Iterator[Finding]:
    """Yield kinds that lead nowhere, and what the schema names and the store lacks."""
    for kind, count in dangling.items():
        every = count >= survey.links.get(kind, 0)
        share = ", all of them" if every else ""
        text = f"links of the kind {kind!r} that lead to no document: {count:,}{share}"
        tags = (tag for of, tag, _ in survey.dangling if of == kind and _should_lead(of, tag))
        yield finding("dangling", "note", text, count, tags)
    unused = sorted(schema.kinds - survey.links.keys()) if schema and survey.documents else []
    if unused:
        text = f"kinds of the schema that no link has: {len(unused):,}"
        yield finding("coverage", "note", text, len(unused), unused)


def _dangling(survey: Survey) -> dict[str, int]:
    """Return the number of dangling links of each kind, without links to other sites."""
    counts: dict[str, int] = {}
    for kind, tag, links in survey.dangling:
        if _should_lead(kind, tag):
            counts[kind] = counts.get(kind, 0) + links
    return dict(sorted(counts.items()))


def _should_lead(kind: str, tag: str) -> bool:
    return kind not in _EXTERNAL or is_internal(tag)


def _incomplete(store: LinkStore) -> Iterator[Finding]:
    """Yield pages that lost documents since they were indexed."""
    sources = store.sources()
    if BEGUN in sources:
        text = "linking the corpus was interrupted; index a source again, or run linkstore relink"
        yield finding("stale", "alarm", text, sources[BEGUN])
    pages = sorted(page for page, digest in store.pages(None).items() if digest == INCOMPLETE)
    if pages:
        yield finding(
            "stale",
            "alarm",
            "pages lost documents since they were indexed; index their source again",
            len(pages),
            pages,
        )


def _stale(store: LinkStore, source: Source, name: str) -> Iterator[Finding]:
    """Yield pages that are not as they were when they were indexed."""
    found = staleness(store, source, name)
    for pages, what in (
        (found.changed, "that changed since they were indexed"),
        (found.added, "that are not indexed"),
        (found.gone, "that are gone from it"),
    ):
        if pages:
            text = f"pages of {name} {what}: {len(pages):,}; index it again"
            yield finding("stale", "alarm", text, len(pages), pages)
    if found.unread:
        reasons = (f"{page} ({reason})" for page, reason in found.unread)
        text = f"parts of {name} that could not be looked at: {len(found.unread):,}"
        yield finding("stale", "note", text, len(found.unread), reasons)


def _unsound(store: LinkStore) -> Iterator[Finding]:
    """Yield the findings of ``verify``."""
    for one in store.verify().findings:
        yield finding("sound", "alarm", f"{one.problem}; repair the store", one.count, one.examples)


def _of_searches(watch: Watch, graph: TypedGraph) -> Iterator[Finding]:
    """Yield the alarms of a watch, and what its searches did not come to."""
    vitals = watch.vitals()
    for alarm in watch.alarms():
        yield finding("searches", "alarm", alarm.text, vitals.searches)
    if vitals.searches < max(1, watch.limits.least):
        return
    documents, links = graph.counts()
    types = sorted(name for name in documents.keys() - vitals.types.keys() if name is not None)
    kinds = sorted(links.keys() - vitals.kinds.keys())
    for names, what in (
        (types, "types of documents that none found"),
        (kinds, "kinds of link none followed"),
    ):
        if names:
            text = f"of the last {vitals.searches:,} searches, {what}: {len(names):,}"
            yield finding("searches", "note", text, len(names), names)


def _skipped(
    store: LinkStore, survey: Survey, sources: Mapping[str, Source], schema: Schema | None
) -> dict[str, str]:
    """Return the checks that were not made, each with the reason."""
    reasons: dict[str, str] = {}
    others = sorted(store.sources().keys() - sources.keys() - {BEGUN})
    if others:
        reasons["stale"] = f"these sources were not compared: {', '.join(others)}"
    if schema is None:
        reasons["schema"] = "the store records no schema"
    if survey.documents > CHEAP:
        reasons["sound"] = f"the store has more than {CHEAP:,} documents; run linkstore verify"
    return reasons
