"""Names on links: spellings in different link groups, and doubtful names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from linkstore.display import in_percent
from linkstore.links import Link
from linkstore.variants import normalized
from linkstore.watch.checkup import EXAMPLES, Finding, finding

NAME_KINDS: Final = ("entity", "mention")
"""Kinds of link whose tags are names, by default."""
CONFIDENCE: Final = "confidence"
"""The key in the data of a link for the confidence of its extractor, from 0 to 1."""
UNSURE: Final = 0.6
"""A link with less confidence is doubtful."""


class Names:
    """The names on the links of documents, gathered one by one.

    Args:
        kinds: Kinds of link whose tags are names.
    """

    def __init__(self, kinds: Collection[str]) -> None:
        self._kinds = frozenset(kinds)
        self._spellings: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._scored: Counter[str] = Counter()
        self._doubtful: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = defaultdict(list)

    def add(self, id: str, links: Iterable[Link]) -> None:
        """Add the links of a document."""
        for link in links:
            if link.kind in self._kinds:
                self._spellings[link.kind, normalized(link.tag)][link.tag] += 1
                self._count_confidence(id, link)

    def findings(self) -> Iterator[Finding]:
        """Yield the findings about names."""
        for kind in sorted(self._kinds):
            yield from self._find_split(kind)
            yield from self._unsure(kind)

    def _count_confidence(self, id: str, link: Link) -> None:
        """Count how sure the extractor of a link was, if the link records it."""
        confidence = (link.data or {}).get(CONFIDENCE)
        if isinstance(confidence, int | float) and not isinstance(confidence, bool):
            self._scored[link.kind] += 1
            if confidence < UNSURE:
                self._doubtful[link.kind] += 1
                if len(self._examples[link.kind]) < EXAMPLES:
                    self._examples[link.kind].append(f"{link.label or link.tag} in {id}")

    def _find_split(self, kind: str) -> Iterator[Finding]:
        """Yield names whose spellings are different tags, so that they do not meet."""
        split = [tags for (of, _), tags in sorted(self._spellings.items()) if of == kind and len(tags) > 1]
        if split:
            text = (
                f"names of the kind {kind!r} with several spellings, which do not meet: {len(split):,};"
                " join them with linkstore.variants"
            )
            yield finding(
                "names", "alarm", text, len(split), (" = ".join(map(repr, sorted(tags))) for tags in split)
            )

    def _unsure(self, kind: str) -> Iterator[Finding]:
        """Links of which their extractor was unsure."""
        count = self._doubtful[kind]
        if count:
            share = count / self._scored[kind]
            text = (
                f"links of the kind {kind!r} with a confidence below {UNSURE}: {count:,},"
                f" {in_percent(share)} of those that have one"
            )
            yield finding("confidence", "note", text, count, self._examples[kind])
