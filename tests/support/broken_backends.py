"""Backends that are each wrong in one way; tests/test_oracle.py runs the suite on them.

Each class names the case that must find it out.
"""

from __future__ import annotations

import asyncio
import functools
import unicodedata
from dataclasses import replace
from operator import or_

import numpy as np
import pytest
from conformance import BackendConformance
from conformance.lexical import LexicalCases
from conformance.probe import QUERY_VECTOR
from oracle import OracleBackend, OracleReader

from linkstore.core.calls import answer_plan, drive
from linkstore.core.filters import EVERYTHING
from linkstore.core.lexical import extract_document_terms
from linkstore.core.plans import Find, select_by_group
from linkstore.core.vocabulary import Vocabulary, collect_names
from linkstore.engines.contract import WriteBatch, as_operation


class BrokenBackend(OracleBackend):
    reader = OracleReader

    def answer(self, plan, scope=EVERYTHING):
        records = [one for one in self._open().records.values() if scope.matches(one.metadata)]
        return (yield from answer_plan(plan, self.reader(records).answer))


class Suite:
    """The fixture; each class below joins it with the part of the suite that has its case."""

    backend_class = BrokenBackend

    @pytest.fixture
    def backend(self):
        backend = self.backend_class()
        yield backend
        backend.close()


def now(operation):
    """The answer of an oracle's operation."""
    return drive(operation, lambda request: request)


def part_with(case):
    """The part of the suite that has a case: running the others on every class would only take time."""
    return next(part for part in BackendConformance.__mro__ if case in vars(part))


def backend_of(reader):
    return type("Backend", (BrokenBackend,), {"reader": reader})


class TestTiesInReverse(Suite, part_with("test_ties_are_in_the_order_of_code_points")):
    case = "test_ties_are_in_the_order_of_code_points"

    class Reader(OracleReader):
        def _by_similarity(self, refs, vector):
            return sorted(refs, key=lambda ref: (self._similarity(ref, vector), self._records[ref].id))[::-1]

    backend_class = backend_of(Reader)


class TestTiesCutBeforeTheyAreBroken(Suite, part_with("test_ties_at_the_cut_go_to_the_smallest_ids")):
    case = "test_ties_at_the_cut_go_to_the_smallest_ids"

    class Reader(OracleReader):
        @as_operation
        def nearest(self, fetch):
            passing = [ref for ref, r in enumerate(self._records) if fetch.filter.matches(r.metadata)]
            chosen = sorted(passing, key=lambda ref: -self._similarity(ref, fetch.vector))[: fetch.k]
            return self._candidates(self._by_similarity(chosen, fetch.vector), fetch.vector)

    backend_class = backend_of(Reader)


class TestNearestFiltersAfterwards(Suite, part_with("test_a_filter_that_leaves_few_still_gives_k")):
    case = "test_a_filter_that_leaves_few_still_gives_k"

    class Reader(OracleReader):
        @as_operation
        def nearest(self, fetch):
            all_near = now(super().nearest(replace(fetch, filter=EVERYTHING)))
            keep = [fetch.filter.matches(self._records[ref].metadata) for ref in all_near.refs]
            return replace(all_near, refs=all_near.refs[keep], similarity=all_near.similarity[keep])

    backend_class = backend_of(Reader)


class TestScoresInDoublePrecision(Suite, part_with("test_similarities_are_those_of_the_shared_function")):
    case = "test_similarities_are_those_of_the_shared_function"

    class Reader(OracleReader):
        def _similarity(self, ref, vector):
            return float(np.dot(self._records[ref].vector.astype(float), vector.astype(float))) + 1e-7

    backend_class = backend_of(Reader)


class TestFindGivesDoubles(Suite, part_with("test_in_the_order_asked_each_once")):
    case = "test_in_the_order_asked_each_once"

    class Reader(OracleReader):
        @as_operation
        def find(self, fetch):
            parts = [now(OracleReader.find(self, replace(fetch, ids=(name,)))) for name in fetch.ids]
            return replace(
                parts[0],
                refs=np.concatenate([part.refs for part in parts]),
                similarity=np.concatenate([part.similarity for part in parts]),
            )

    backend_class = backend_of(Reader)


class TestHubsAreCountedAfterTheFilter(Suite, part_with("test_size_is_counted_before_the_filter")):
    case = "test_size_is_counted_before_the_filter"

    class Reader(OracleReader):
        @as_operation
        def members(self, fetch):
            passing = [r for r in self._records if fetch.filter.matches(r.metadata)]
            fewer = OracleReader(passing)
            fewer._records = self._records
            weights = self._weights[fetch.side]
            kept = [w if r in passing else {} for r, w in zip(self._records, weights, strict=True)]
            fewer._groups, fewer._weights = self._groups, {**self._weights, fetch.side: kept}
            return now(fewer.members(fetch))

    backend_class = backend_of(Reader)


class TestHubsAreCountedAfterTheLinksAreFiltered(
    Suite, part_with("test_hubs_are_counted_before_the_links_are_filtered")
):
    case = "test_hubs_are_counted_before_the_links_are_filtered"

    class Reader(OracleReader):
        @as_operation
        def members(self, fetch):
            wide = now(super().members(replace(fetch, cap=10**6, take=10**6)))
            sizes = np.bincount(wide.group, minlength=len(fetch.groups))
            return replace(wide, sizes=sizes) if (sizes <= fetch.cap).all() else now(super().members(fetch))

    backend_class = backend_of(Reader)


class TestLinksThatDoNotPassLendTheirWeight(
    Suite, part_with("test_the_weight_is_that_of_the_links_that_pass")
):
    case = "test_the_weight_is_that_of_the_links_that_pass"

    class Reader(OracleReader):
        @as_operation
        def groups(self, fetch):
            passing = now(super().groups(fetch))
            whole = now(super().groups(replace(fetch, links=EVERYTHING)))
            entries = zip(whole.document, whole.group, strict=True)
            weight_of = dict(zip(entries, whole.weight, strict=True))
            weight = [weight_of[entry] for entry in zip(passing.document, passing.group, strict=True)]
            return replace(passing, weight=np.array(weight, np.float32))

    backend_class = backend_of(Reader)


class TestDataAreLookedAtOnWritesAlone(Suite, part_with("test_relink_replaces_data")):
    case = "test_relink_replaces_data"

    class Backend(BrokenBackend):
        @as_operation
        def relink(self, kinds, links):
            plain = {id: [replace(link, data=None) for link in given] for id, given in links.items()}
            return now(super().relink(kinds, plain))

    backend_class = Backend


class TestHubsAreCountedAfterExclusion(Suite, part_with("test_size_is_counted_before_exclusion")):
    case = "test_size_is_counted_before_exclusion"

    class Reader(OracleReader):
        @as_operation
        def members(self, fetch):
            weights = self._weights[fetch.side]
            kept = [{} if ref in fetch.exclude else w for ref, w in enumerate(weights)]
            self._weights = {**self._weights, fetch.side: kept}
            return now(super().members(fetch))

    backend_class = backend_of(Reader)


class TestMembersAreTakenByRoughEstimates(Suite, part_with("test_the_members_taken_are_the_most_similar")):
    case = "test_the_members_taken_are_the_most_similar"

    class Reader(OracleReader):
        @as_operation
        def members(self, fetch):
            whole = now(super().members(replace(fetch, take=len(self._records))))
            rough = whole.similarity.round(1)
            ids = np.array([self._records[ref].id for ref in whole.refs.tolist()])
            order = select_by_group(whole.group, rough, fetch.take, lambda at: ids[at].tolist())
            columns = {
                name: getattr(whole, name)[np.sort(order)]
                for name in ("group", "refs", "similarity", "weight")
            }
            return replace(whole, **columns)

    backend_class = backend_of(Reader)


class TestWordsAreFoundInPartsOfWords(Suite, LexicalCases):
    case = "test_documents_that_have_any_of_the_words"

    class Reader(OracleReader):
        @as_operation
        def lexical(self, fetch):
            having = {of for r in self._records for of in extract_document_terms(r.text, r.metadata, r.id)}
            parts = [word for word in having if any(asked in word for asked in fetch.terms)]
            return now(super().lexical(replace(fetch, terms=tuple(parts))))

    backend_class = backend_of(Reader)


class TestTheFilterComesAfterTheBestMatches(Suite, LexicalCases):
    case = "test_a_filter_that_leaves_few_matches_still_gives_k"

    class Reader(OracleReader):
        @as_operation
        def lexical(self, fetch):
            found = now(super().lexical(replace(fetch, filter=EVERYTHING)))
            passes = [fetch.filter.matches(self._records[ref].metadata) for ref in found.refs.tolist()]
            return replace(found, refs=found.refs[passes], score=found.score[passes])

    backend_class = backend_of(Reader)


class TestWordsAreCountedAmongThoseThatMatch(Suite, LexicalCases):
    case = "test_scores_are_those_of_the_formula"

    class Reader(OracleReader):
        @as_operation
        def lexical(self, fetch):
            asked = set(fetch.terms)
            kept = [r for r in self._records if asked & set(extract_document_terms(r.text, r.metadata, r.id))]
            found = now(OracleReader(kept).lexical(fetch))
            refs = [
                self._records.index(sorted(kept, key=lambda r: r.id, reverse=True)[at]) for at in found.refs
            ]
            return replace(found, refs=np.array(refs, dtype=np.int64))

    backend_class = backend_of(Reader)


class TestAnyVectorWithoutAVector(Suite, part_with("test_without_a_vector_by_id")):
    case = "test_without_a_vector_by_id"

    class Reader(OracleReader):
        @as_operation
        def members(self, fetch):
            vector = QUERY_VECTOR if fetch.vector is None else fetch.vector
            return now(super().members(replace(fetch, vector=vector)))

    backend_class = backend_of(Reader)


class TestHubsBeginAtTheCap(Suite, part_with("test_a_hub_gives_none")):
    case = "test_a_hub_gives_none"

    class Reader(OracleReader):
        @as_operation
        def members(self, fetch):
            return now(super().members(replace(fetch, cap=fetch.cap - 1)))

    backend_class = backend_of(Reader)


class TestHubsGiveTheirBest(Suite, part_with("test_hubs_are_not_followed_but_named")):
    case = "test_hubs_are_not_followed_but_named"

    class Reader(OracleReader):
        @as_operation
        def members(self, fetch):
            return now(super().members(replace(fetch, cap=10**6)))

    backend_class = backend_of(Reader)


class TestMembersIgnoreTheFilter(Suite, part_with("test_the_filter_holds_for_members")):
    case = "test_the_filter_holds_for_members"

    class Reader(OracleReader):
        @as_operation
        def members(self, fetch):
            return now(super().members(replace(fetch, filter=EVERYTHING)))

    backend_class = backend_of(Reader)


class TestExcludedMembersTakePlaces(Suite, part_with("test_excluded_documents_take_no_place")):
    case = "test_excluded_documents_take_no_place"

    class Reader(OracleReader):
        @as_operation
        def members(self, fetch):
            reached = now(super().members(replace(fetch, exclude=fetch.exclude[:0])))
            keep = ~np.isin(reached.refs, fetch.exclude)
            fields = ("group", "refs", "similarity", "weight")
            return replace(reached, **{name: getattr(reached, name)[keep] for name in fields})

    backend_class = backend_of(Reader)


class TestSidesAreMixedUp(Suite, part_with("test_only_the_side_asked_for")):
    case = "test_only_the_side_asked_for"

    class Reader(OracleReader):
        @as_operation
        def members(self, fetch):
            return now(super().members(replace(fetch, side="out" if fetch.side == "in" else "in")))

    backend_class = backend_of(Reader)


class TestKindsAreIgnored(Suite, part_with("test_only_the_kinds_asked_for")):
    case = "test_only_the_kinds_asked_for"

    class Reader(OracleReader):
        @as_operation
        def groups(self, fetch):
            return now(super().groups(replace(fetch, kinds=fetch.kinds or None)))

    backend_class = backend_of(Reader)


class TestWeightsAreTheLowest(Suite, part_with("test_weight_is_the_highest_on_that_side")):
    case = "test_weight_is_the_highest_on_that_side"

    class Reader(OracleReader):
        def __init__(self, records):
            super().__init__(records)
            for side in ("out", "in"):
                for record, weights in zip(self._records, self._weights[side], strict=True):
                    for link in record.links:
                        tag = link.kind, link.tag
                        if tag in weights and (link.leads_out if side == "out" else link.leads_in):
                            weights[tag] = min(weights[tag], link.weight)

        @as_operation
        def groups(self, fetch):
            answer = now(super().groups(fetch))
            entries = zip(answer.document.tolist(), answer.group.tolist(), strict=True)
            refs = fetch.refs.tolist()
            lowest = [self._weights[fetch.side][refs[at]][self._groups[group]] for at, group in entries]
            return replace(answer, weight=np.array(lowest, np.float32))

        @as_operation
        def members(self, fetch):
            answer = now(super().members(fetch))
            entries = zip(answer.refs.tolist(), fetch.groups[answer.group].tolist(), strict=True)
            lowest = [self._weights[fetch.side][ref][self._groups[group]] for ref, group in entries]
            return replace(answer, weight=np.array(lowest, np.float32))

    backend_class = backend_of(Reader)


class TestMetadataIsShared(Suite, part_with("test_metadata_is_the_receivers_own")):
    case = "test_metadata_is_the_receivers_own"

    class Reader(OracleReader):
        @as_operation
        def documents(self, fetch):
            stored = now(super().documents(fetch))
            return [
                replace(s, metadata=self._records[ref].metadata)
                for s, ref in zip(stored, fetch.refs, strict=True)
            ]

    backend_class = backend_of(Reader)


class TestBooleansAreNumbers(Suite, part_with("test_every_fetch_agrees_with_the_filter_module")):
    case = "test_every_fetch_agrees_with_the_filter_module"

    class Reader(OracleReader):
        @as_operation
        def matching(self, fetch):
            loose = [
                {key: int(v) if isinstance(v, bool) else v for key, v in r.metadata.items()}
                for r in self._records
            ]
            return np.array([fetch.filter.matches(loose[ref]) for ref in fetch.refs], dtype=np.bool_)

    backend_class = backend_of(Reader)


class TestADocumentLeavesItsMembersBehind(
    Suite, part_with("test_a_removed_document_is_gone_from_everything")
):
    case = "test_a_removed_document_is_gone_from_everything"

    class Backend(BrokenBackend):
        def __init__(self):
            super().__init__()
            ghosts = self.ghosts = []

            class Reader(OracleReader):
                @as_operation
                def members(self, fetch):
                    reached = now(super().members(fetch))
                    tags = [self._groups[group] for group in fetch.groups]
                    left = [sum(tag in ghost for ghost in ghosts) for tag in tags]
                    return replace(reached, sizes=np.minimum(reached.sizes + left, fetch.cap + 1))

            self.reader = Reader

        @as_operation
        def write(self, change):
            for name in change.remove:
                if name in self._state.records:
                    links = self._state.records[name].links
                    self.ghosts.append({(link.kind, link.tag) for link in links})
            return now(super().write(change))

    backend_class = Backend


class TestAnUpdateKeepsOldLinks(Suite, part_with("test_an_update_replaces_links")):
    case = "test_an_update_replaces_links"

    class Backend(BrokenBackend):
        @as_operation
        def write(self, change):
            before = self._state.records
            put = [
                replace(r, links=r.links + before[r.id].links) if r.id in before else r for r in change.put
            ]
            return now(super().write(replace(change, put=put)))

    backend_class = Backend


class TestDanglingLinksAreDropped(Suite, part_with("test_a_dangling_link_works_when_the_document_arrives")):
    case = "test_a_dangling_link_works_when_the_document_arrives"

    class Backend(BrokenBackend):
        @as_operation
        def write(self, change):
            records = [*self._state.records.values(), *change.put]
            answered = {(link.kind, link.tag) for r in records for link in r.links if link.leads_in}
            put = [
                replace(r, links=tuple(x for x in r.links if x.leads_in or (x.kind, x.tag) in answered))
                for r in change.put
            ]
            return now(super().write(replace(change, put=put)))

    backend_class = Backend


class TestAChangeIsAppliedPieceByPiece(Suite, part_with("test_a_change_that_fails_leaves_nothing")):
    case = "test_a_change_that_fails_leaves_nothing"

    class Backend(BrokenBackend):
        @as_operation
        def write(self, change):
            for record in change.put:
                now(super().write(replace(change, put=[record], remove=(), put_pages=())))
            return now(super().write(change))

    backend_class = Backend


class TestAPlanSeesWritesUnderWay(Suite, part_with("test_a_plan_sees_each_document_in_one_state")):
    case = "test_a_plan_sees_each_document_in_one_state"

    class Backend(BrokenBackend):
        def answer(self, plan, scope=EVERYTHING):
            def fresh(fetch):
                return OracleReader(list(self._open().records.values())).answer(fetch)

            return (yield from answer_plan(plan, fresh))

    backend_class = Backend


class TestTagsAreNormalised(Suite, part_with("test_tags_are_opaque")):
    case = "test_tags_are_opaque"

    class Backend(BrokenBackend):
        @as_operation
        def write(self, change):
            put = [
                replace(
                    r,
                    links=tuple(
                        replace(link, tag=unicodedata.normalize("NFC", link.tag)) for link in r.links
                    ),
                )
                for r in change.put
            ]
            return now(super().write(replace(change, put=put)))

    backend_class = Backend


class TestTheLastClaimCounts(Suite, part_with("test_the_first_claim_counts")):
    case = "test_the_first_claim_counts"

    class Backend(BrokenBackend):
        @as_operation
        def claim(self, manifest):
            self._state = replace(self._open(), manifest=manifest)
            return manifest

    backend_class = Backend


class TestAScanBeginsAgainAtItsLastId(Suite, part_with("test_scan_goes_on_after_an_id")):
    case = "test_scan_goes_on_after_an_id"

    class Backend(BrokenBackend):
        @as_operation
        def scan(self, after, limit):
            names = sorted(name for name in self._open().records if after is None or name >= after)
            return [self._state.records[name] for name in names[:limit]]

    backend_class = Backend


class TestBidirectionalLinksCountTwice(Suite, part_with("test_links_are_counted_by_kind")):
    case = "test_links_are_counted_by_kind"

    class Backend(BrokenBackend):
        @as_operation
        def survey(self):
            survey = now(super().survey())
            return replace(survey, links={kind: count + 1 for kind, count in survey.links.items()})

    backend_class = Backend


class TestReplacedLinksBringNoNames(Suite, part_with("test_names_of_kinds_and_fields_are_known")):
    case = "test_names_of_kinds_and_fields_are_known"

    class Backend(BrokenBackend):
        names = Vocabulary()

        @as_operation
        def write(self, change):
            self.names |= functools.reduce(
                or_, (collect_names(one.metadata, one.links) for one in change.put)
            )
            return now(super().write(change))

        @as_operation
        def vocabulary(self, asked=None):
            return self.names if asked is None else asked & self.names

    backend_class = Backend


class TestNamesIgnoreAccents(Suite, part_with("test_all_names_can_be_listed")):
    case = "test_all_names_can_be_listed"

    class Backend(BrokenBackend):
        @as_operation
        def vocabulary(self, asked=None):
            found = now(super().vocabulary(asked))
            return Vocabulary(
                kinds=found.kinds,
                fields=frozenset(unicodedata.normalize("NFC", name) for name in found.fields),
            )

    backend_class = Backend


class TestNotesAreSetWhateverIsExpected(Suite, part_with("test_a_note_is_set_where_it_is_as_expected")):
    case = "test_a_note_is_set_where_it_is_as_expected"

    class Backend(BrokenBackend):
        @as_operation
        def set_note(self, name, value, expected):
            return now(super().set_note(name, value, self._open().notes.get("note " + name)))

    backend_class = Backend


class TestEarlierAccessesCount(Suite, part_with("test_the_latest_access_stays")):
    case = "test_the_latest_access_stays"

    class Backend(BrokenBackend):
        @as_operation
        def touch(self, times):
            state = self._open()
            known = {id: time for id, time in times.items() if id in state.records}
            self._state = replace(state, accessed={**state.accessed, **known})
            return len(known)

    backend_class = Backend


class TestPagesComeAsWritten(Suite, part_with("test_entries_are_sorted")):
    case = "test_entries_are_sorted"

    class Backend(BrokenBackend):
        @as_operation
        def pages(self, source, urls=None):
            entries = self._open().pages.items()
            found = [page for (of, _), page in entries if source in (None, of)]
            return found if urls is None else now(super().pages(source, urls))

    backend_class = Backend


class TestDigestsOfAllSources(Suite, part_with("test_digests_are_those_of_the_entries")):
    case = "test_digests_are_those_of_the_entries"

    class Backend(BrokenBackend):
        def digests(self, source):
            return super().digests(None)

    backend_class = Backend


class TestAllEntriesWhereSomeAreAskedFor(Suite, part_with("test_entries_with_certain_urls")):
    case = "test_entries_with_certain_urls"

    class Backend(BrokenBackend):
        @as_operation
        def pages(self, source, urls=None):
            return now(super().pages(source, urls or None))

    backend_class = Backend


class TestAPageThatLinksToItself(Suite, part_with("test_the_most_linked_pages")):
    case = "test_the_most_linked_pages"

    class Backend(BrokenBackend):
        @as_operation
        def find_most_linked(self, kind, take):
            linked = now(super().find_most_linked(kind, take))
            return [replace(page, links=page.links + 1) for page in linked]

    backend_class = Backend


class TestRunStartsALoop(Suite, part_with("test_run_works_inside_a_running_loop")):
    case = "test_run_works_inside_a_running_loop"

    class Backend(BrokenBackend):
        def run(self, operation):
            return asyncio.run(self.arun(operation))

    backend_class = Backend


class TestAClosedBackendAnswers(Suite, part_with("test_a_closed_backend_says_so")):
    case = "test_a_closed_backend_says_so"

    class Backend(BrokenBackend):
        def close(self):
            self._closed = False

    backend_class = Backend


class TestARelinkWritesWhatItRead(Suite, part_with("test_an_update_that_was_acknowledged_meanwhile_stays")):
    case = "test_an_update_that_was_acknowledged_meanwhile_stays"

    class Backend(BrokenBackend):
        def run(self, operation):
            return drive(operation, lambda request: request)

        def relink(self, kinds, links):
            before = dict(self._open().records)
            yield "a request"
            put = [before[name] for name in links if name in before]
            now(self.write(WriteBatch(put=put)))
            return now(super().relink(kinds, links))

    backend_class = Backend


class TestTheScopeFiltersAnswers(Suite, part_with("test_what_is_outside_is_no_member")):
    case = "test_what_is_outside_is_no_member"

    class Backend(BrokenBackend):
        """Leaves out what is outside, after hubs were counted."""

        def answer(self, plan, scope=EVERYTHING):
            reader = self.reader(list(self._open().records.values()))

            def narrowed(fetch):
                if hasattr(fetch, "filter"):
                    fetch = replace(fetch, filter=scope & fetch.filter)
                return reader.answer(fetch)

            return (yield from answer_plan(plan, narrowed))

    backend_class = Backend


class TestWordsAreCountedOutsideTheScope(Suite, LexicalCases):
    case = "test_words_of_what_is_outside_do_not_count"
    backend_class = TestTheScopeFiltersAnswers.Backend


class TestFindCountsWhatIsOutside(Suite, part_with("test_random_graphs_show_nothing_of_what_is_outside")):
    case = "test_random_graphs_show_nothing_of_what_is_outside"

    class Backend(BrokenBackend):
        def answer(self, plan, scope=EVERYTHING):
            state = self._open()
            inside = OracleReader([r for r in state.records.values() if scope.matches(r.metadata)])

            def counting(fetch):
                answer = now(inside.answer(fetch))
                if isinstance(fetch, Find):
                    outside = sum(n in state.records for n in set(fetch.ids)) - len(answer.refs)
                    answer = replace(answer, filtered=max(outside, answer.filtered))
                return answer
                yield

            return (yield from answer_plan(plan, counting))

    backend_class = Backend
