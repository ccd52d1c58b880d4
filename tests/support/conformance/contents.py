"""S and V: what a store says of itself, and its upkeep."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.base import Cases
from conformance.probe import Probe, link_both, link_in, link_out, make_record
from linkstore.core.arrays import normalize_vector
from linkstore.core.vocabulary import Vocabulary
from linkstore.engines.contract import Manifest, PageEntry, Record, Report, Survey
from linkstore.errors import EmbeddingError


class ContentsCases(Cases):
    """Manifest, scan and survey."""

    def test_a_new_store_has_no_manifest(self, unclaimed: Probe) -> None:
        """[S-1] Return neither name nor dimension."""
        assert unclaimed.do(unclaimed.backend.manifest()) == Manifest(embedding=None, dimension=None)

    def test_the_first_claim_counts(self, unclaimed: Probe) -> None:
        """[S-2] Return the recorded manifest to later claims."""
        first, backend = Manifest(embedding="mine", dimension=7), unclaimed.backend
        assert unclaimed.do(backend.claim(first)) == first
        for other in (Manifest(embedding="yours", dimension=8), first):
            assert unclaimed.do(backend.claim(other)) == first
            assert unclaimed.do(backend.manifest()) == first

    def test_nothing_is_put_before_a_claim(self, unclaimed: Probe) -> None:
        """[S-3] Refuse both the records and the pages of the change."""
        entry = PageEntry(source="s", url="u", digest="d", ids=())
        with pytest.raises(EmbeddingError):
            unclaimed.write(put=[make_record("a")], put_pages=[entry])
        assert unclaimed.ids() == []
        assert unclaimed.do(unclaimed.backend.pages(None)) == []

    def test_vectors_of_another_dimension_are_refused(self, probe: Probe) -> None:
        """[S-3] Refuse the whole change, and leave the store unchanged."""
        probe.put(make_record("a"))
        other = replace(make_record("b"), vector=normalize_vector([1.0, 2.0]))
        with pytest.raises(EmbeddingError):
            probe.write(put=[make_record("c"), other], remove=["a"])
        assert probe.ids() == probe.near(5) == ["a"]

    def test_scan_goes_on_after_an_id(self, probe: Probe) -> None:
        """[S-4] Scan at most so many records after an id, which need not be stored any more."""
        ids = ["b", "é", "a", "Z", "10", "9"]
        probe.put(*(make_record(id) for id in ids))
        order = self._scan(probe, None, 99)
        assert sorted(order) == sorted(ids)
        assert self._scan(probe, None, 2) == order[:2]
        assert self._scan(probe, order[1], 2) == order[2:4]
        assert self._scan(probe, order[-1], 99) == []
        assert self._scan(probe, None, 0) == []
        probe.remove(order[2])
        assert self._scan(probe, order[2], 99) == order[3:]
        assert self._scan(probe, order[1], 99) == order[3:]

    def test_pages_of_a_scan_cover_everything_once(self, probe: Probe) -> None:
        """[S-4] Continue after the last id of one page with the next id."""
        ids = sorted(f"{n}" for n in range(23))
        probe.put(*(make_record(id) for id in ids))
        seen: list[str] = []
        while page := self._scan(probe, seen[-1] if seen else None, 5):
            seen += page
        assert sorted(seen) == ids
        assert len(seen) == len(set(seen))

    def test_a_scanned_record_equals_the_one_written(self, probe: Probe) -> None:
        """[S-5] Keep id, text, metadata, vector, and links with label and weight."""
        written = make_record(
            "a",
            0.3,
            link_out("x", label="l", weight=0.5),
            link_in("y"),
            link_both("z"),
            text="t",
            n=[1, None],
        )
        probe.put(written)
        found = probe.do(probe.backend.scan(None, 5))
        assert [_format_record(scanned) for scanned in found] == [_format_record(written)]

    def test_a_scanned_record_can_be_written_again(self, probe: Probe) -> None:
        """[S-5, W-3] Change nothing when a scanned record is written again."""
        probe.put(make_record("a", 0.3, link_out("x"), n=1), make_record("b", 0.5))
        assert probe.put(*probe.do(probe.backend.scan(None, 5))).unchanged == 2

    def test_an_empty_store_counts_nothing(self, probe: Probe) -> None:
        """[S-6] Count nothing before the first document, and after the last is removed."""
        nothing = Survey(documents=0, pages=0, links={}, groups=0, dangling=())
        assert probe.do(probe.backend.survey()) == nothing
        probe.put(make_record("a", 0.5, link_both("x"), link_out("y")))
        probe.remove("a")
        assert probe.do(probe.backend.survey()) == nothing

    def test_links_are_counted_by_kind(self, probe: Probe) -> None:
        """[S-6] Count each link of each document once, whatever its direction."""
        entry = PageEntry(source="s", url="u", digest="d", ids=())
        probe.write(
            put=[
                make_record("a", 0.5, link_out("x"), link_in("x"), link_both("y", kind="word")),
                make_record("b", 0.5, link_both("y", kind="word"), link_in("x"), link_both("x")),
                make_record("c", 0.5),
            ],
            put_pages=[entry],
        )
        survey = probe.do(probe.backend.survey())
        assert survey == Survey(documents=3, pages=1, links={"k": 4, "word": 2}, groups=2, dangling=())

    def test_counts_follow_updates(self, probe: Probe) -> None:
        """[S-6] Stop counting links that an update removed, and groups that it emptied."""
        probe.put(
            make_record("a", 0.5, link_both("x"), link_both("y")), make_record("b", 0.5, link_both("y"))
        )
        probe.put(make_record("a", 0.5, link_both("z", kind="other")))
        survey = probe.do(probe.backend.survey())
        assert (survey.documents, survey.links, survey.groups) == (2, {"k": 1, "other": 1}, 2)

    def test_dangling_links_are_named(self, probe: Probe) -> None:
        """[S-7] List dangling links by kind, then tag, with their number. Bidir links answer themselves."""
        probe.put(
            make_record(
                "a",
                0.5,
                link_out("z"),
                link_out("b"),
                link_out("own"),
                link_in("own"),
                link_both("alone"),
                link_in("unasked"),
            ),
            make_record("b", 0.5, link_out("z"), link_out("b", kind="a"), link_out("answered")),
            make_record("c", 0.5, link_both("answered")),
        )
        dangling = (("a", "b", 1), ("k", "b", 1), ("k", "z", 2))
        assert probe.do(probe.backend.survey()).dangling == dangling
        probe.put(make_record("d", 0.5, link_in("z")))
        assert probe.do(probe.backend.survey()).dangling == dangling[:2]
        probe.remove("a", "d")
        assert probe.do(probe.backend.survey()).dangling == (("a", "b", 1), ("k", "z", 1))

    def test_names_of_kinds_and_fields_are_known(self, probe: Probe) -> None:
        """[S-8] Know the names that documents have, by whatever write, and no others."""
        asked = Vocabulary(kinds=frozenset({"k", "K", "word", "x"}), fields=frozenset({"lang", "links", "k"}))
        assert probe.do(probe.backend.vocabulary(asked)) == Vocabulary()
        probe.put(make_record("a", 0.5, link_out("x")), make_record("b", 0.5, lang={"k": 1}))
        known = Vocabulary(kinds=frozenset({"k"}), fields=frozenset({"lang", "links"}))
        assert probe.do(probe.backend.vocabulary(asked)) == known
        probe.do(
            probe.backend.relink(
                {"word"}, {"b": [link_both("y", kind="word")], "no such id": [link_out("z", kind="K")]}
            )
        )
        found = probe.do(probe.backend.vocabulary(asked))
        assert found.kinds - {"K"} == {"k", "word"}
        assert probe.do(probe.backend.vocabulary(Vocabulary())) == Vocabulary()

    def test_all_names_can_be_listed(self, probe: Probe) -> None:
        """[S-9, L-1] Include names that look like syntax, but not names within a text or a value."""
        names = ['"', "a b", "é", "e\u0301", "'; --", "%", "$.a", "a\n", "\u0000", "🜁", "", "lang:"]
        links = [link_out("t", kind=name) for name in names if name.strip("\0")]
        before = probe.do(probe.backend.vocabulary(None))
        assert before == Vocabulary()
        probe.put(
            make_record("a", 0.5, *links, text='"other": 1'),
            make_record("b", 0.5, **dict.fromkeys(names, '"v": ')),
        )
        fields, kinds = frozenset({*names, "links"}), frozenset(link.kind for link in links)
        assert probe.do(probe.backend.vocabulary(None)) == Vocabulary(kinds=kinds, fields=fields)
        asked = Vocabulary(kinds=kinds | {"other"}, fields=fields | {"v", "other", "a"})
        assert probe.do(probe.backend.vocabulary(asked)) == Vocabulary(kinds=kinds, fields=fields)

    def test_names_follow_updates(self, probe: Probe) -> None:
        """[S-8] Know the names that an update added, and perhaps names that it removed."""
        probe.put(make_record("a", 0.5, link_out("x"), old=1))
        probe.put(make_record("a", 0.5, link_out("x", kind="other"), new=1))
        asked = Vocabulary(kinds=frozenset({"k", "other"}), fields=frozenset({"old", "new"}))
        found = probe.do(probe.backend.vocabulary(asked))
        assert found - Vocabulary(kinds=frozenset({"k"}), fields=frozenset({"old"})) == Vocabulary(
            kinds=frozenset({"other"}), fields=frozenset({"new"})
        )

    def test_notes_are_kept_as_given(self, probe: Probe) -> None:
        """[S-10] Keep each note by its name, also in a store without documents."""
        backend = probe.backend
        assert probe.do(backend.note("a")) is None
        texts = {
            "a": "",
            "A": "é 🜁\n",
            "a b": '{"x": "\'"}',
            "note": "x" * 100_000,
            "e\u0301": "nfd",
            "é": "nfc",
        }
        for name, text in texts.items():
            assert probe.do(backend.set_note(name, text, None)) == text
        assert {name: probe.do(backend.note(name)) for name in texts} == texts
        before = probe.do(backend.survey())
        assert (before.documents, before.links) == (0, {})

    def test_a_note_is_set_where_it_is_as_expected(self, probe: Probe) -> None:
        """[S-11] Set nothing otherwise, and return the present note."""
        backend = probe.backend
        assert probe.do(backend.set_note("a", "new", "old")) is None
        assert probe.do(backend.set_note("a", "one", None)) == "one"
        assert probe.do(backend.set_note("a", "two", None)) == "one"
        assert probe.do(backend.set_note("a", "two", "one")) == "two"
        assert probe.do(backend.set_note("a", "three", "one")) == "two"
        assert probe.do(backend.set_note("a", None, "one")) == "two"
        assert probe.do(backend.set_note("a", None, "two")) is None
        assert probe.do(backend.note("a")) is None
        assert probe.do(backend.set_note("a", None, None)) is None

    def test_notes_change_nothing_else(self, probe: Probe) -> None:
        """[S-11] Keep answers and counts the same, and the store sound."""
        probe.put(make_record("a", 0.5, link_both("x")), make_record("b", 0.25, link_both("x")))
        before = (probe.near_scored(5), probe.met(["x"]).of, probe.do(probe.backend.survey()))
        assert probe.do(probe.backend.set_note("a", "b", None)) == "b"
        assert (probe.near_scored(5), probe.met(["x"]).of, probe.do(probe.backend.survey())) == before
        assert probe.do(probe.backend.verify()) == probe.do(probe.backend.repair()) == Report()
        assert probe.do(probe.backend.note("a")) == "b"

    @staticmethod
    def _scan(probe: Probe, after: str | None, limit: int) -> list[str]:
        return [scanned.id for scanned in probe.do(probe.backend.scan(after, limit))]


class UpkeepCases(Cases):
    """Verify, repair, flush and compact."""

    def test_a_store_written_through_the_backend_is_sound(self, probe: Probe) -> None:
        """[V-1] Check an empty, a filled, an updated and an emptied store."""
        assert probe.do(probe.backend.verify()) == Report()
        self._fill(probe)
        assert probe.do(probe.backend.verify()) == Report()
        assert probe.do(probe.backend.verify()).sound
        probe.remove(*probe.ids())
        assert probe.do(probe.backend.verify()) == Report()

    def test_repair_of_a_sound_store_changes_nothing(self, probe: Probe) -> None:
        """[V-2] Report nothing, and keep answers the same."""
        self._fill(probe)
        before = self._answers(probe)
        assert probe.do(probe.backend.repair()) == Report()
        assert self._answers(probe) == before

    def test_compact_changes_no_answer(self, probe: Probe) -> None:
        """[V-4] Keep answers the same, and do not disturb writes after it."""
        self._fill(probe)
        before = self._answers(probe)
        probe.do(probe.backend.compact())
        assert self._answers(probe) == before
        assert probe.do(probe.backend.verify()) == Report()

    def test_flush_changes_no_answer(self, probe: Probe) -> None:
        """[V-3] Flush an empty store, a filled one, twice, and with writes after it."""
        probe.do(probe.backend.flush())
        self._fill(probe)
        before = self._answers(probe)
        for _ in range(2):
            probe.do(probe.backend.flush())
            assert self._answers(probe) == before
        probe.put(make_record("new", 0.99, link_in("x")))
        assert probe.near(1) == ["new"]
        assert probe.do(probe.backend.verify()) == Report()

    @staticmethod
    def _fill(probe: Probe) -> None:
        """Fill the store with documents that are added, updated, relinked and removed."""
        probe.put(
            *(
                make_record(f"{n:02}", n / 40, link_both("x"), link_out(f"{n + 1}"), link_in(f"{n}"))
                for n in range(30)
            )
        )
        probe.put(*(make_record(f"{n:02}", n / 50, link_both("y"), link_in(f"{n}")) for n in range(0, 30, 3)))
        probe.remove(*(f"{n:02}" for n in range(0, 30, 7)))

    @staticmethod
    def _answers(probe: Probe) -> list[object]:
        met = probe.met(["x", "y", "3"])
        records = probe.do(probe.backend.scan(None, 99))
        return [
            probe.near_scored(20),
            (met.of, met.sizes, met.weights),
            [_format_record(scanned) for scanned in records],
            probe.do(probe.backend.survey()),
        ]


def _format_record(record: Record) -> tuple[object, ...]:
    """Format all content of a record so that it can be compared."""
    links = [(link.to_dict(), link.label, link.weight) for link in record.links]
    return record.id, record.text, dict(record.metadata), record.vector.tobytes(), links
