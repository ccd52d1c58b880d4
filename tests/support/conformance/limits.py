"""L: hostile strings and large numbers of things."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.base import Cases
from conformance.probe import Probe, link_both, link_in, link_out, make_record
from linkstore.core.links import MAX_TAG_BYTES
from linkstore.engines.contract import PageEntry

HOSTILE = (
    "'; DROP TABLE document; --",
    '"quoted" \\ back`tick`',
    "%", "_", "*", "?", "$1", ":id", "{}", "null", "NaN", "-1", "01", "1.0", "1e0", "true",
    " ", " leading and trailing ", "a\nb\r\n\tc", "a\u00a0b", "\u200b", "\ufeffbom",
    "caf\u00e9", "cafe\u0301", "STRASSE", "straße", "\u0131", "I", "i", "İ",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u202eright to left", "\x01\x1f\x7f", "\U0010ffff",
    "../../etc/passwd", "https://example.org/a?b=c&d=%20#é", "k\x1ftag", "[\"json\"]",
)  # fmt: skip
"""Strings that break engines which splice, fold, trim, normalise or guess types."""
MANY = 1500


class LimitsCases(Cases):
    """Whatever obeys the rules is stored as it is."""

    def test_ids_are_opaque(self, probe: Probe) -> None:
        """[L-1] Distinguish ids, find them, and list them in order."""
        probe.put(*(make_record(id, 0.5) for id in HOSTILE))
        assert probe.ids() == sorted(HOSTILE)
        assert probe.near(100) == sorted(HOSTILE)
        assert [id for id, _ in probe.found(HOSTILE)] == list(HOSTILE)
        probe.remove(*HOSTILE[::2])
        assert probe.ids() == sorted(HOSTILE[1::2])

    def test_tags_are_opaque(self, probe: Probe) -> None:
        """[L-1] Lead from each tag to its own document and to no other."""
        probe.put(*(make_record(f"{n:02}", 0.5, link_in(tag)) for n, tag in enumerate(HOSTILE)))
        assert probe.met(HOSTILE).of == {tag: [f"{n:02}"] for n, tag in enumerate(HOSTILE)}

    def test_kinds_are_opaque(self, probe: Probe) -> None:
        """[L-1] Accept any kind as a group's name, among wanted kinds, and in the survey."""
        probe.put(make_record("a", 0.5, *(link_out("t", kind=kind) for kind in HOSTILE)))
        assert [entry.kind for entry in probe.lying(["a"], "out")] == sorted(HOSTILE)
        for kind in HOSTILE:
            assert [entry.kind for entry in probe.lying(["a"], "out", frozenset({kind}))] == [kind]
        assert probe.do(probe.backend.survey()).links == dict.fromkeys(HOSTILE, 1)

    def test_page_entries_are_opaque(self, probe: Probe) -> None:
        """[L-1] Keep source, url, digest and ids."""
        entries = [PageEntry(source=s, url=s[::-1], digest=s, ids=HOSTILE) for s in HOSTILE]
        probe.write(put_pages=entries)
        assert probe.do(probe.backend.pages(None)) == sorted(entries, key=lambda entry: entry.source)
        for entry in entries:
            assert probe.do(probe.backend.pages(entry.source)) == [entry]

    def test_metadata_keys_and_values_are_opaque(self, probe: Probe) -> None:
        """[L-1, C-1] Find by a filter exactly the documents that it names."""
        probe.put(*(make_record(f"{n:02}", 0.5, **{text: text}) for n, text in enumerate(HOSTILE)))
        for n, text in enumerate(HOSTILE):
            if not text.startswith("$"):
                assert probe.near(100, {text: text}) == [f"{n:02}"]

    @pytest.mark.parametrize("character", ["t", "é", "\U0001f600"])
    def test_kinds_and_tags_of_8_kib(self, probe: Probe, character: str) -> None:
        """[L-2] Distinguish kinds and tags by their last character."""
        size = len(character.encode())
        body = character * ((MAX_TAG_BYTES - 4) // size)
        tags = [body + end for end in ("", "0", "1")]
        probe.put(
            *(make_record(f"{n}", 0.5, link_in(tag), link_in("t", kind=tag)) for n, tag in enumerate(tags))
        )
        assert probe.met(tags).of == {tag: [f"{n}"] for n, tag in enumerate(tags)}
        for n, kind in enumerate(tags):
            assert probe.met(["t"], kind=kind).of == {"t": [f"{n}"]}

    @pytest.mark.parametrize(
        "text",
        ["", "a\0b\0", "\ufeff \n", "".join(HOSTILE), "ä" * 2_000_000],
        ids=["", "nul", "bom", "hostile", "4 MB"],
    )
    def test_any_text(self, probe: Probe, text: str) -> None:
        """[L-3] Return any text unchanged."""
        template = make_record("a")
        probe.put(type(template)(id="a", text=text, metadata={}, vector=template.vector, links=()))
        assert probe.stored("a")[0].text == text

    @pytest.mark.parametrize(
        "metadata",
        [
            {"n": [-(2**63), 2**63 - 1, 2**53 + 1, 0, -0.0, 5e-324, 1.7976931348623157e308, 0.1]},
            {"a": {"b": {"c": {"d": [[[[{"e": None}]]]]}}}},
            {text: text for text in HOSTILE},
            {"nul": "a\0b"},
            {f"key {n}": n for n in range(MANY)},
        ],
        ids=["numbers", "nested", "strings", "nul", "many keys"],
    )
    def test_any_metadata(self, probe: Probe, metadata: dict[str, Any]) -> None:
        """[L-4] Return any metadata unchanged, digit by digit."""
        probe.put(make_record("a", **metadata))
        assert repr(sorted(probe.stored("a")[0].metadata.items())) == repr(sorted(metadata.items()))

    def test_thousands_of_ids_and_tags(self, probe: Probe) -> None:
        """[L-5] Accept thousands in one change, one fetch, and one filter."""
        ids = [f"{n:04}" for n in range(MANY)]
        probe.put(*(make_record(id, 0.5, link_in(id), n=id) for id in ids))
        assert [id for id, _ in probe.found(ids)] == ids
        assert probe.met(ids).of == {id: [id] for id in ids}
        assert probe.near(MANY, {"n": {"$in": ids[::2]}}) == ids[::2]
        assert probe.met(ids[:3], exclude=ids[1:]).of == {"0000": ["0000"], "0001": [], "0002": []}
        assert probe.remove(*ids[1:]).removed == MANY - 1
        assert probe.ids() == ["0000"]

    def test_thousands_of_links(self, probe: Probe) -> None:
        """[L-5] Accept links of one document, and links to one link group."""
        tags = [f"{n:04}" for n in range(MANY)]
        probe.put(make_record("a", 0.5, *(link_both(tag) for tag in tags)))
        assert [entry.tag for entry in probe.lying(["a"], "out")] == tags
        assert probe.met(["0007", "1499"]).of == {"0007": ["a"], "1499": ["a"]}
        probe.put(*(make_record(tag, 0.5, link_in("popular")) for tag in tags))
        met = probe.met(["popular"], take=MANY, cap=MANY)
        assert met.of == {"popular": tags}
        assert probe.met(["popular"], cap=MANY - 1).sizes == {"popular": MANY}
