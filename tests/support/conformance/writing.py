"""W and P: documents and page entries come, change and go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, overload

import pytest

from conformance.base import Cases
from conformance.probe import Probe, link_both, link_in, link_out, make_record, make_vector
from linkstore.engines.contract import PageEntry, Record, Report, WriteCounts

NOON = 1_700_000_000_000_000
"""A time in microseconds since 1970."""


class WriteCases(Cases):
    """One change at a time, whole or not at all."""

    def test_a_new_id_is_added(self, probe: Probe) -> None:
        """[W-1, W-10] Find a new document by similarity, id and link."""
        assert probe.put(make_record("a", 0.9, link_in("x")), make_record("b", 0.1)) == WriteCounts(added=2)
        assert probe.put(make_record("c", 0.5)) == WriteCounts(added=1)
        assert probe.near(5) == ["a", "c", "b"]
        assert [found for found, _ in probe.found(["b", "a"])] == ["b", "a"]
        assert probe.met(["x"]).of == {"x": ["a"]}

    def test_a_known_id_is_replaced_whole(self, probe: Probe) -> None:
        """[W-2, W-10] Keep nothing of text, metadata or vector."""
        probe.put(make_record("a", 0.9, text="old", old=1), make_record("b", 0.5))
        assert probe.put(make_record("a", 0.1, text="new", new=2)) == WriteCounts(updated=1)
        stored = probe.stored("a")[0]
        assert (stored.text, stored.metadata) == ("new", {"new": 2})
        assert probe.near(5) == ["b", "a"]
        assert probe.near(5, {"old": 1}) == []

    def test_an_update_replaces_links(self, probe: Probe) -> None:
        """[W-2] Remove old links on all sides, add new ones, and keep those that stay."""
        probe.put(
            make_record(
                "a",
                0.5,
                link_out("gone"),
                link_in("gone"),
                link_both("gone too"),
                link_both("kept", weight=0.25),
            )
        )
        probe.put(make_record("a", 0.5, link_both("kept", weight=0.75), link_out("new"), link_in("new")))
        for side in ("out", "in"):
            met = probe.met(["gone", "gone too", "kept", "new"], side)
            assert met.of == {"gone": [], "gone too": [], "kept": ["a"], "new": ["a"]}
            assert met.sizes == {"gone": 0, "gone too": 0, "kept": 1, "new": 1}
            assert met.weights["kept", "a"] == 0.75
            assert [entry.tag for entry in probe.lying(["a"], side)] == ["kept", "new"]

    def test_an_update_may_turn_a_link_round(self, probe: Probe) -> None:
        """[W-2] Move a link that changes direction to the other side."""
        probe.put(make_record("a", 0.5, link_out("x")))
        probe.put(make_record("a", 0.5, link_in("x")))
        assert probe.met(["x"], "out").of == {"x": []}
        assert probe.met(["x"], "in").of == {"x": ["a"]}

    def test_an_update_may_take_all_links(self, probe: Probe) -> None:
        """[W-2] Put a document without links on no group."""
        probe.put(make_record("a", 0.5, link_both("x")), make_record("b", 0.5, link_both("x")))
        probe.put(make_record("a", 0.5))
        assert probe.lying(["a"], "out") == []
        assert probe.met(["x"]).of == {"x": ["b"]}

    def test_the_same_again_is_unchanged(self, probe: Probe) -> None:
        """[W-3, W-10] Count the same record apart, and change nothing."""
        records = [make_record("a", 0.9, link_both("x"), n=1), make_record("b", 0.1)]
        probe.put(*records)
        assert probe.put(*records) == WriteCounts(unchanged=2)
        assert probe.met(["x"]).sizes == {"x": 1}
        assert probe.near(5) == ["a", "b"]

    @pytest.mark.parametrize(
        "changed",
        [
            make_record("a", 0.5, link_both("x"), n=1, text="other"),
            make_record("a", 0.25, link_both("x"), n=1),
            make_record("a", 0.5, link_both("y"), n=1),
            make_record("a", 0.5, link_both("x", weight=0.5), n=1),
            make_record("a", 0.5, link_both("x", label="label"), n=1),
            make_record("a", 0.5, link_both("x"), n=2),
            make_record("a", 0.5, link_both("x"), n=1, m=1),
            make_record("a", 0.5, link_both("x"), n=1.0),
            make_record("a", 0.5, link_both("x"), n=True),
        ],
        ids=["text", "vector", "tag", "weight", "label", "value", "field", "1.0", "true"],
    )
    def test_any_difference_is_an_update(self, probe: Probe, changed: Record) -> None:
        """[W-3, W-10] Store any difference, however small."""
        probe.put(make_record("a", 0.5, link_both("x"), n=1))
        assert probe.put(changed) == WriteCounts(updated=1)
        stored = probe.stored("a")[0]
        assert repr(stored.metadata.get("n")) == repr(changed.metadata["n"])
        assert (stored.text, stored.metadata) == (changed.text, changed.metadata)

    def test_a_removed_document_is_gone_from_everything(self, probe: Probe) -> None:
        """[W-4] Remove a document from similarity, ids, both sides and all sizes."""
        probe.put(
            make_record("a", 0.9, link_both("x"), link_out("x"), link_in("y")),
            make_record("b", 0.5, link_both("x")),
        )
        assert probe.remove("a") == WriteCounts(removed=1)
        assert probe.near(5) == probe.ids() == ["b"]
        assert probe.found(["a", "b"]) == [("b", 0.5)]
        for side in ("in", "out"):
            met = probe.met(["x", "y"], side)
            assert (met.of, met.sizes) == ({"x": ["b"], "y": []}, {"x": 1, "y": 0})

    def test_unknown_ids_are_ignored(self, probe: Probe) -> None:
        """[W-4, W-10] Remove nothing for an id that is not stored, or given twice."""
        probe.put(make_record("a"), make_record("b"))
        assert probe.remove("?", "a", "a") == WriteCounts(removed=1)
        assert probe.remove("a") == WriteCounts()
        assert probe.ids() == ["b"]

    def test_nothing_is_removed_before_any_claim(self, unclaimed: Probe) -> None:
        """[W-4] Remove nothing in a store that never had a document."""
        assert unclaimed.write(remove=["a"], remove_pages=[("source", "url")]) == WriteCounts()

    def test_a_removed_document_may_come_back(self, probe: Probe) -> None:
        """[W-1, W-4] Add a removed document as a new one, with nothing of the old."""
        probe.put(make_record("a", 0.9, link_both("x"), old=1))
        probe.remove("a")
        assert probe.put(make_record("a", 0.5, link_both("y"))) == WriteCounts(added=1)
        met = probe.met(["x", "y"])
        assert (met.of, met.sizes) == ({"x": [], "y": ["a"]}, {"x": 0, "y": 1})
        assert probe.stored("a")[0].metadata.keys() == {"links"}

    def test_of_several_with_one_id_the_last_counts(self, probe: Probe) -> None:
        """[W-5, W-10] Count one id once, among new documents and among known ones."""
        twice = [
            make_record("a", 0.1, link_in("x"), n=1),
            make_record("b", 0.5),
            make_record("a", 0.9, link_in("y"), n=2),
        ]
        assert probe.put(*twice) == WriteCounts(added=2)
        assert probe.near(5) == ["a", "b"]
        assert probe.met(["x", "y"]).of == {"x": [], "y": ["a"]}
        assert probe.put(*twice) == WriteCounts(unchanged=2)

    def test_an_id_both_removed_and_put_is_put(self, probe: Probe) -> None:
        """[W-6] Count the id as updated or added, not as removed."""
        probe.put(make_record("a", 0.5, link_in("x")))
        written = probe.write(
            put=[make_record("a", 0.5, link_in("y")), make_record("b", 0.1)], remove=["b", "a"]
        )
        assert written == WriteCounts(added=1, updated=1)
        assert probe.met(["x", "y"]).of == {"x": [], "y": ["a"]}
        assert probe.near(5) == ["a", "b"]

    def test_a_change_that_fails_leaves_nothing(self, probe: Probe) -> None:
        """[W-7] Apply all records, removals and pages, or nothing."""
        page = PageEntry(source="s", url="u", digest="1", ids=("a",))
        probe.write(put=[make_record("a", 0.9, link_in("x")), make_record("b", 0.5)], put_pages=[page])
        broken = _BreakingSequence([make_record("c", 0.8, link_in("x")), make_record("a", 0.1)])
        with pytest.raises(_BrokenError):
            probe.write(put=broken, remove=["b"], put_pages=[replace(page, digest="2")])
        with pytest.raises(_BrokenError):
            probe.write(
                put=[make_record("c", 0.8, link_in("x"))],
                remove=["b"],
                put_pages=_BreakingSequence([replace(page, digest="2")]),
            )
        assert probe.near(5) == ["a", "b"]
        assert probe.met(["x"]).of == {"x": ["a"]}
        assert probe.do(probe.backend.pages(None)) == [page]
        assert probe.put(make_record("c", 0.8)) == WriteCounts(added=1)

    def test_a_dangling_link_works_when_the_document_arrives(self, probe: Probe) -> None:
        """[W-8] Keep a link without an answer, and after the answer went and came back."""
        probe.put(make_record("a", 0.9, link_out("b")))
        assert [entry.tag for entry in probe.lying(["a"], "out")] == ["b"]
        assert probe.met(["b"]).of == {"b": []}
        for _ in range(2):
            probe.put(make_record("b", 0.5, link_in("b")))
            assert probe.met(["b"]).of == {"b": ["b"]}
            assert probe.met(["b"], "out").of == {"b": ["a"]}
            probe.remove("b")
            assert probe.met(["b"]).of == {"b": []}

    def test_the_caller_may_reuse_what_it_wrote(self, probe: Probe) -> None:
        """[W-9] Store no later change to the caller's metadata and vector."""
        metadata: dict[str, Any] = {"tags": ["x"], "n": 1}
        vector = make_vector(0.9)
        probe.put(Record(id="a", text="", metadata=metadata, vector=vector, links=()))
        metadata["tags"].append("y")
        metadata["n"] = 2
        vector[:] = make_vector(-1.0)
        assert probe.stored("a")[0].metadata == {"tags": ["x"], "n": 1}
        assert probe.near_scored(1)[0][1] == pytest.approx(0.9)

    def test_one_change_does_all_it_holds(self, probe: Probe) -> None:
        """[W-10] Count added, updated, unchanged and removed documents."""
        probe.put(*(make_record(id, 0.5) for id in ("same", "old", "gone")))
        written = probe.write(
            put=[make_record("same", 0.5), make_record("old", 0.1), make_record("new", 0.2)],
            remove=["gone", "?"],
        )
        assert written == WriteCounts(added=1, updated=1, unchanged=1, removed=1)
        assert probe.ids() == ["new", "old", "same"]

    def test_a_change_that_holds_nothing_is_fine(self, probe: Probe) -> None:
        """[W-10] Accept an empty change on an empty store and on a filled one."""
        assert probe.write() == WriteCounts()
        probe.put(make_record("a"))
        assert probe.write() == WriteCounts()
        assert probe.ids() == ["a"]


class AccessCases(Cases):
    """When documents were last accessed."""

    def test_accesses_are_recorded(self, probe: Probe) -> None:
        """[W-13] Record accesses to stored documents, and ignore the others."""
        probe.put(make_record("a"), make_record("b"), make_record("c"))
        assert probe.do(probe.backend.accessed(["a", "b", "no such id"])) == {}
        assert probe.do(probe.backend.touch({"a": NOON, "b": NOON + 1, "no such id": NOON})) == 2
        assert probe.do(probe.backend.accessed(["c", "b", "no such id", "a"])) == {"a": NOON, "b": NOON + 1}
        assert probe.do(probe.backend.touch({})) == 0
        assert probe.do(probe.backend.accessed([])) == {}

    def test_nothing_can_be_accessed_before_a_claim(self, unclaimed: Probe) -> None:
        """[W-13] Record nothing in a store without documents."""
        assert unclaimed.do(unclaimed.backend.touch({"a": NOON})) == 0
        assert unclaimed.do(unclaimed.backend.accessed(["a"])) == {}

    def test_the_latest_access_stays(self, probe: Probe) -> None:
        """[W-14] Keep an access through updates and relinking, but not through a removal."""
        probe.put(make_record("a"), make_record("b"))
        for time in (NOON, NOON - 5, NOON + 7, NOON + 1):
            probe.do(probe.backend.touch({"a": time, "b": time}))
        probe.put(make_record("a", 0.25, text="another"))
        probe.do(probe.backend.relink({"k"}, {"a": [link_out("x")]}))
        assert probe.do(probe.backend.accessed(["a", "b"])) == {"a": NOON + 7, "b": NOON + 7}
        probe.remove("a")
        assert probe.do(probe.backend.accessed(["a", "b"])) == {"b": NOON + 7}
        probe.put(make_record("a"))
        assert probe.do(probe.backend.accessed(["a", "b"])) == {"b": NOON + 7}

    def test_an_access_changes_nothing_else(self, probe: Probe) -> None:
        """[W-15] Keep answers, counts and scanned records the same."""
        probe.put(make_record("a", 0.5, link_both("x"), n=1), make_record("b", 0.25, link_both("x")))
        before = self._all(probe)
        probe.do(probe.backend.touch({"a": NOON, "b": NOON}))
        assert self._all(probe) == before
        assert probe.do(probe.backend.verify()) == Report()
        assert probe.put(make_record("a", 0.5, link_both("x"), n=1)).unchanged == 1

    @staticmethod
    def _all(probe: Probe) -> list[object]:
        scanned = probe.do(probe.backend.scan(None, 9))
        shown = [(one.id, one.text, dict(one.metadata), one.vector.tobytes(), one.links) for one in scanned]
        return [shown, probe.near_scored(9), probe.met(["x"]).of, probe.do(probe.backend.survey())]


class PageCases(Cases):
    """What is remembered of indexed pages."""

    A = PageEntry(source="site", url="a", digest="1", ids=("a#2", "a#1", "a#10"))
    B = PageEntry(source="site", url="b", digest="2", ids=())
    C = PageEntry(source="other", url="a", digest="3", ids=("c",))

    def test_an_entry_is_added_and_replaced(self, probe: Probe) -> None:
        """[P-1] Replace an entry by source and url, and keep the order of its ids."""
        probe.write(put_pages=[self.A, self.C])
        assert self._pages(probe, "site") == [self.A]
        changed = replace(self.A, digest="9", ids=("z", "y"))
        probe.write(put_pages=[changed])
        assert self._pages(probe, "site") == [changed]
        assert self._pages(probe, "other") == [self.C]

    def test_entries_are_sorted(self, probe: Probe) -> None:
        """[P-2] Sort entries of one source by url, and entries of all by source first."""
        probe.write(put_pages=[self.B, self.C, self.A])
        assert self._pages(probe, "site") == [self.A, self.B]
        assert self._pages(probe, None) == [self.C, self.A, self.B]
        assert self._pages(probe, "unknown") == []

    def test_entries_with_certain_urls(self, probe: Probe) -> None:
        """[P-2] Omit unknown urls, of one source or of all, and return none for no urls."""
        probe.write(put_pages=[self.A, self.B, self.C])
        urls = ["a", "b", "?", "a", *map(str, range(300))]
        ask = probe.backend.pages
        assert probe.do(ask("site", ["b", "?"])) == [self.B]
        assert probe.do(ask("site", urls)) == [self.A, self.B]
        assert probe.do(ask(None, urls)) == [self.C, self.A, self.B]
        assert probe.do(ask(None, [])) == probe.do(ask("site", [])) == probe.do(ask("?", urls)) == []

    def test_digests_are_those_of_the_entries(self, probe: Probe) -> None:
        """[P-2] Return the digests of a source by url, of all, and of an unknown source."""
        probe.write(put_pages=[self.A, self.B, replace(self.C, url="c")])
        ask = probe.backend.digests
        assert probe.do(ask("site")) == {"a": self.A.digest, "b": self.B.digest}
        assert probe.do(ask(None)) == {"a": self.A.digest, "b": self.B.digest, "c": self.C.digest}
        assert probe.do(ask("?")) == {}

    def test_the_most_linked_pages(self, probe: Probe) -> None:
        """[P-4] Count links to any of a page's documents and tags, but no links of the page itself."""
        pages = [
            PageEntry(source=source, url=name, digest="1", ids=(f"{name}1", f"{name}2"))
            for source, name in (("s", "a"), ("s", "b"), ("r", "c"), ("s", "d"))
        ]
        probe.write(
            put=[
                make_record("a1", 0.5, link_in("a"), link_in("a#"), link_out("a#x"), link_out("b")),
                make_record("a2", 0.5, link_in("a#x"), link_in("a"), link_out("a")),
                make_record(
                    "b1", 0.5, link_in("b"), link_out("a"), link_out("a#x"), link_out("c", kind="other")
                ),
                make_record("b2", 0.5, link_both("both"), link_out("a")),
                make_record("c1", 0.5, link_in("c"), link_both("both"), link_out("nowhere")),
                make_record("none", 0.5, link_out("c"), link_out("a")),
            ],
            put_pages=pages,
        )

        def linked(take: int, kind: str = "k") -> list[tuple[str, str, int]]:
            found = probe.do(probe.backend.find_most_linked(kind, take))
            return [(page.source, page.url, page.links) for page in found]

        expected = [("s", "a", 4), ("r", "c", 2), ("s", "b", 2)]
        assert linked(9) == expected
        assert linked(2) == expected[:2]
        assert linked(9, kind="other") == linked(0) == []

    def test_entries_are_removed(self, probe: Probe) -> None:
        """[P-3] Remove entries by both source and url, and ignore unknown ones."""
        probe.write(put_pages=[self.A, self.B, self.C])
        probe.write(remove_pages=[("site", "a"), ("site", "?"), ("?", "a")])
        assert self._pages(probe, None) == [self.C, self.B]

    def test_entries_and_documents_live_apart(self, probe: Probe) -> None:
        """[P-3] Keep entries when documents are removed, and the reverse."""
        probe.write(put=[make_record("c"), make_record("d")], put_pages=[self.C, self.B])
        probe.write(remove_pages=[("other", "a")])
        assert probe.ids() == ["c", "d"]
        probe.write(remove=["d"])
        assert self._pages(probe, None) == [self.B]

    def test_an_entry_both_removed_and_put_is_put(self, probe: Probe) -> None:
        """[W-6] Put the entry, like a document."""
        probe.write(put_pages=[self.A])
        changed = replace(self.A, digest="9")
        probe.write(put_pages=[changed], remove_pages=[("site", "a")])
        assert self._pages(probe, None) == [changed]

    @staticmethod
    def _pages(probe: Probe, source: str | None) -> list[PageEntry]:
        return probe.do(probe.backend.pages(source))


class _BrokenError(Exception):
    """The error of a sequence that fails."""


class _BreakingSequence(Sequence[Any]):
    """A sequence that fails after its items, as a lazily computed one might."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return an item, or fail past the last."""
        if isinstance(index, int) and index >= len(self._items):
            raise _BrokenError
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items) + 1

    def __iter__(self) -> Iterator[Any]:
        yield from self._items
        raise _BrokenError
