"""The reader: answers the fetches of one plan from one consistent view of the store."""

from __future__ import annotations

from typing import Final

import numpy as np

from linkstore.core.arrays import (
    Bools,
    Floats,
    Ints,
    cosine_similarities,
    find_distinct,
    is_member,
    sort_unique,
)
from linkstore.core.calls import drive
from linkstore.core.filters import Condition
from linkstore.core.plans import (
    Candidates,
    Documents,
    Find,
    Groups,
    Ids,
    Lexical,
    LexicalMatches,
    Matching,
    Members,
    Memberships,
    Nearest,
    ReachedMembers,
    Resolve,
    StoredDocument,
    Tags,
    Vectors,
    rank_best,
    select_by_group,
)
from linkstore.engines.contract import Reader, StoredLinks, as_operation
from linkstore.engines.embedded import lexical
from linkstore.engines.embedded.filters import StoreView
from linkstore.engines.embedded.mirror import GroupSpans, collect_columns, gather_entries
from linkstore.engines.embedded.schema import (
    convert_row_errors,
    fetch_rows,
    find_groups,
    read_ids,
    read_metadata,
    read_tags,
)
from linkstore.engines.embedded.vectors import PROPOSALS

MAX_PROPOSALS: Final = 1024
"""If a filter leaves too few of this many candidates, a search compares with all documents."""
_PROPOSED_SHARE: Final = 64
"""Of a large store, one in so many are proposed before, which takes less than comparing with all."""
_MARGIN: Final = 8
"""Multiple of the proposals nearer than the last result that there must be: the order by codes is not that by
similarity, so what is missing are documents that belong among the last proposals."""
_ALL_SHARE: Final = 4
"""If more than one in this many documents are to be scored, the query is compared with all."""
_FIRST: Final = 8
"""Multiple of the cap that is read first of a large link group; each further read is this factor larger."""
_FIND_DOCUMENTS: Final = "SELECT document.key FROM json_each(?) CROSS JOIN document ON document.id = value"
_READ_DOCUMENTS: Final = (
    "SELECT document.id, text, metadata, links FROM json_each(?) CROSS JOIN document ON document.key = value"
)
_NO_ROWS: Final = np.empty(0, np.int64)


class EmbeddedReader(Reader):
    """Answers from the mirror; only what is text comes from tables.

    Refs of documents are the mirror's rows, those of link groups their keys.

    Args:
        view: The data to read.
        scope: The condition for documents to exist for the plan.
        exact_below: If a scope has at most this many documents, the query is compared with each of them,
            without an index.
    """

    def __init__(self, view: StoreView, scope: Condition, exact_below: int) -> None:
        self._view = view
        self._exact_below = exact_below
        self._scope = scope
        self._mirror = view.mirror
        self._compared: tuple[Floats, Floats] | None = None

    @as_operation
    def nearest(self, fetch: Nearest) -> Candidates:
        """Ask the index and compare with documents past it, or with all if a filter leaves too few."""
        if not fetch.k or not self._mirror.living:
            return Candidates(refs=_NO_ROWS, similarity=np.empty(0, np.float32))
        if not self._scope.always and self._mirror.living > self._exact_below:
            rows = self._view.find_inside(self._scope).rows
            if len(rows) <= self._exact_below:
                return self._first_passing(rows, self._score(rows, fetch.vector), fetch)
        index, mirror = self._view.index, self._mirror
        if index is not None:
            past = mirror.find_living(mirror.keys.count_up_to(index.covered))
            scores, count = self._score(past, fetch.vector), max(fetch.k, PROPOSALS)
            while count <= max(MAX_PROPOSALS, mirror.living // _PROPOSED_SHARE, fetch.k):
                proposed = self._find_rows(index.near(fetch.vector, count))
                near, seen = self._score(proposed, fetch.vector), mirror.alive[proposed]
                best = self._first_passing(
                    np.concatenate((proposed[seen], past)), np.concatenate((near[seen], scores)), fetch
                )
                # Documents past the index may be enough, and worse than those that it would propose next.
                worst = best.similarity[-1] if len(best.refs) == fetch.k else -np.inf
                ahead = np.count_nonzero(near > worst)
                if ahead < len(near) and (ahead < fetch.k or _MARGIN * ahead < len(near)):
                    return best
                count *= 4
        rows, scores = mirror.find_living(), self._compare(fetch.vector)
        return self._first_passing(rows, scores if len(rows) == len(scores) else scores[rows], fetch)

    def _find_rows(self, keys: Ints) -> Ints:
        """Return the rows of documents, in the order of the keys, without keys that the mirror lacks."""
        rows, present = self._mirror.keys.find(keys)
        return rows[present]

    def _score(self, rows: Ints, vector: Floats | None) -> Floats:
        """Return the similarity of documents to a vector, 0 without one.

        For many documents, comparing with all costs less than gathering their vectors.
        """
        if not len(rows):  # the vectors of a store that never had a document have no dimension
            return np.empty(0, np.float32)
        if vector is None:
            return np.zeros(len(rows), np.float32)
        if self._compared is None or self._compared[0] is not vector:
            once, where = find_distinct(rows)
            if _ALL_SHARE * len(once) < len(self._mirror.keys):
                return cosine_similarities(self._mirror.vectors.take(once), vector)[where]
        return self._compare(vector)[rows]

    def _compare(self, vector: Floats) -> Floats:
        """Return the similarity of all documents to a vector, kept for the fetches that follow."""
        if self._compared is None or self._compared[0] is not vector:
            parts = self._mirror.vectors.parts(0, len(self._mirror.keys))
            self._compared = vector, np.concatenate([cosine_similarities(part, vector) for part in parts])
        return self._compared[1]

    def _first_passing(self, rows: Ints, scores: Floats, fetch: Nearest | Lexical) -> Candidates:
        """Return the best ``k`` documents that pass scope and filter, checking as few documents as needed."""
        unfiltered = fetch.filter.always and self._scope.always
        take = fetch.k if unfiltered else max(4 * fetch.k, PROPOSALS)
        while True:
            passing = drive(rank_best(scores, take), lambda at: self._view.find_ids(rows[at]))
            if not unfiltered:
                passing = passing[self._view.find_passing(self._scope, rows[passing])]
                passing = passing[self._view.find_passing(fetch.filter, rows[passing])]
            if len(passing) >= fetch.k or take >= len(rows):
                chosen = passing[: fetch.k]
                return Candidates(refs=rows[chosen], similarity=scores[chosen])
            take *= 8

    def _exist(self, rows: Ints) -> Bools:
        """Say whether each document (n,) exists for the plan."""
        exist = self._mirror.alive[rows]
        if not self._scope.always:
            exist[exist] = self._view.find_passing(self._scope, rows[exist])
        return exist

    @as_operation
    def find(self, fetch: Find) -> Candidates:
        """Look the ids up in the index on ids."""
        ids = dict.fromkeys(fetch.ids)
        keys = fetch_rows(self._view.connection, _FIND_DOCUMENTS, (list(ids),))
        rows = self._find_rows(np.array(keys, dtype=np.int64).reshape(-1))
        rows = rows[self._view.find_passing(self._scope, rows)]
        passing = self._view.find_passing(fetch.filter, rows)
        kept = rows[passing]
        scores = self._score(kept, fetch.vector)
        return Candidates(refs=kept, similarity=scores, filtered=int((~passing).sum()))

    @as_operation
    def groups(self, fetch: Groups) -> Memberships:
        """Read the documents' link entries."""
        mirror = self._mirror
        document, entry = mirror.links_of(fetch.refs)
        weight = mirror.sides[fetch.side].weight.take(entry)
        kind = mirror.link_kind.take(entry)
        on_side: Bools = weight >= 0
        if fetch.kinds is not None:
            codes = [code for code, name in enumerate(mirror.kinds) if name in fetch.kinds]
            on_side &= is_member(kind, np.array(codes, dtype=np.int64))
        chosen, filtered = np.flatnonzero(on_side), 0
        if not fetch.links.always:
            weight[chosen] = self._view.find_weights(fetch.links, fetch.side, entry[chosen])
            passing = weight[chosen] >= 0
            chosen, filtered = chosen[passing], int(np.count_nonzero(~passing))
        return Memberships(
            document=document[chosen],
            group=mirror.link_group.take(entry[chosen]).astype(np.int64),
            kind=kind[chosen].astype(np.int64),
            weight=weight[chosen],
            kinds=mirror.kinds,
            filtered=filtered,
        )

    @as_operation
    def resolve(self, fetch: Resolve) -> Ints:
        """Look the tags up in the index on tags."""
        return np.array(find_groups(self._view.connection, fetch.tags), dtype=np.int64)

    @as_operation
    def members(self, fetch: Members) -> ReachedMembers:
        """Read the runs of that side, and score every member once, however many groups it is in."""
        mirror = self._mirror
        spans, sizes = mirror.sides[fetch.side].find(fetch.groups)
        open_groups = np.flatnonzero(~self._find_hubs(spans, sizes, fetch.cap))
        owner, entry = gather_entries(spans, open_groups)
        rows = mirror.link_document.take(entry).astype(np.int64)
        exist = self._exist(rows)
        sizes[open_groups] = np.bincount(owner[exist], minlength=len(sizes))[open_groups]
        kept = exist & (sizes <= fetch.cap)[owner] & ~is_member(rows, fetch.exclude)
        return self._select_most_similar(
            owner[kept], entry[kept], rows[kept], np.minimum(sizes, fetch.cap + 1), fetch
        )

    def _find_hubs(self, spans: list[GroupSpans], sizes: Ints, cap: int) -> Bools:
        """Say which groups (g,) certainly have more than ``cap`` members; ``sizes`` are upper bounds (g,).

        Within a scope, large groups are read a part at a time, until enough members in the scope are found.
        """
        mirror = self._mirror
        if self._scope.always:  # even if all removed documents were members of it
            return sizes - (len(mirror.keys) - mirror.living) > cap
        hubs = np.zeros(len(sizes), np.bool_)
        open_groups, most = np.flatnonzero(sizes > cap), _FIRST * (cap + 1)
        while len(open_groups):
            owner, entry = gather_entries(spans, open_groups, most)
            there = self._exist(mirror.link_document.take(entry).astype(np.int64))
            counted = np.bincount(owner[there], minlength=len(sizes))
            hubs |= counted > cap
            open_groups = open_groups[(counted <= cap)[open_groups] & (sizes[open_groups] > most)]
            most *= _FIRST
        return hubs

    def _select_most_similar(
        self, owner: Ints, entry: Ints, rows: Ints, sizes: Ints, fetch: Members
    ) -> ReachedMembers:
        """Return the first ``take`` members of each group that pass the filter, by similarity, then id."""
        filtered = filtered_links = 0
        if not fetch.filter.always:
            passing = self._view.find_passing(fetch.filter, rows)
            filtered = len(sort_unique(rows[~passing]))  # a document in several groups counts once
            owner, entry, rows = owner[passing], entry[passing], rows[passing]
        if fetch.links.always:
            weight = self._mirror.sides[fetch.side].weight.take(entry)
        else:
            weight = self._view.find_weights(fetch.links, fetch.side, entry)
            passing = weight >= 0
            filtered_links = int(np.count_nonzero(~passing))
            owner, rows, weight = owner[passing], rows[passing], weight[passing]
        scores = self._score(rows, fetch.vector)
        order = select_by_group(owner, scores, fetch.take, lambda at: self._view.find_ids(rows[at]))
        return ReachedMembers(
            group=owner[order],
            refs=rows[order],
            similarity=scores[order],
            weight=weight[order],
            sizes=sizes,
            filtered=filtered,
            filtered_links=filtered_links,
        )

    @as_operation
    def lexical(self, fetch: Lexical) -> LexicalMatches:
        """Score the documents by the postings of the words, with counts from within the scope."""
        mirror, documents = self._mirror, self._mirror.living
        average = mirror.word_count / max(1, documents)
        if not self._scope.always:
            inside = self._view.find_inside(self._scope)
            documents, average = len(inside.rows), inside.words

        def locate(keys: Ints) -> tuple[Ints, Bools]:
            rows, present = mirror.keys.find(keys)
            if not self._scope.always:
                present[present] = self._view.find_passing(self._scope, rows[present])
            return rows, present

        def read(word: str, enough: int | None) -> lexical.Posting:
            key = ("posting", self._scope.key, word)
            posting: lexical.Posting | None = self._view.cache.get(key)
            if posting is None or posting.change != mirror.change or not (posting.whole or enough):
                posting = lexical.read_posting(self._view.connection, word, locate, mirror.change, enough)
                self._view.cache.keep(key, posting)
            return posting

        rows, scores, having, left = lexical.score_documents(
            self._view.connection,
            fetch.terms,
            read,
            documents,
            mirror.words.take,
            average,
            scoped=not self._scope.always,
        )
        best = self._first_passing(rows, scores, fetch)
        return LexicalMatches(
            refs=best.refs,
            score=best.similarity,
            left_out=tuple(left),
            document_frequency=having,
            documents=documents,
        )

    @as_operation
    def matching(self, fetch: Matching) -> Bools:
        """Look up what is known of the filter, and read the other documents."""
        return self._view.find_passing(fetch.filter, fetch.refs)

    @as_operation
    def vectors(self, fetch: Vectors) -> Floats:
        """Read the mirror's vectors."""
        return self._mirror.vectors.take(fetch.refs)

    @as_operation
    def ids(self, fetch: Ids) -> list[str]:
        """Read the table of documents."""
        return self._view.find_ids(fetch.refs)

    @as_operation
    def tags(self, fetch: Tags) -> list[tuple[str, str]]:
        """Read the table of link groups."""
        return read_tags(self._view.connection, fetch.groups)

    @as_operation
    def documents(self, fetch: Documents) -> list[StoredDocument]:
        """Read the table of documents."""
        keys = self._mirror.keys.take(fetch.refs).tolist()
        rows = fetch_rows(self._view.connection, _READ_DOCUMENTS, (keys,))
        with convert_row_errors("documents"):
            return [
                StoredDocument(id=id, text=text, metadata=read_metadata(*data)) for id, text, *data in rows
            ]


def read_links(view: StoreView) -> StoredLinks:
    """Return the links of all documents, from the mirror: from the table it takes ten times as long."""
    columns = collect_columns(view.mirror)
    groups = sort_unique(columns["link_group"])
    return StoredLinks(
        ids=read_ids(view.connection, columns["keys"]),
        groups=read_tags(view.connection, groups),
        document=columns["link_document"].astype(np.int64),
        group=np.searchsorted(groups, columns["link_group"]),
        leads_out=columns["out_weight"] >= 0,
        leads_in=columns["in_weight"] >= 0,
    )
