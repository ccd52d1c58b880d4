"""Checks the bundles of the Open Knowledge Format in a store: fields, dead links, orphans, stale pages."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from linkstore.core.links import Link
from linkstore.core.urls import is_internal_tag, split_tag
from linkstore.ingest.notes.bundles import LIFECYCLE, PROBLEM, STATUSES, read_day

_COMPUTATION: Final = "Attested Computation"
_EVENTS: Final = ("generated", "verified")


def find_field_problems(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the metadata of a concept lack, or have in another form than the format says.

    Args:
        fields: Those of its front matter.
    """
    status, ends = fields.get("status"), fields.get("stale_after")
    if status is not None and status not in STATUSES:
        yield f"status {status!r} is not one of {', '.join(STATUSES)}"
    if ends is not None and read_day(ends) is None:
        yield f"stale_after {ends!r} is not a date"
    for name in _EVENTS:
        value = fields.get(name)
        events = value if isinstance(value, list) else [] if value is None else [value]
        if any(not (isinstance(event, dict) and event.get("by")) for event in events):
            yield f"{name} without by"
    sources = fields.get("sources")
    if sources is not None and not (
        isinstance(sources, list) and all(isinstance(item, dict) and item.get("resource") for item in sources)
    ):
        yield "sources without resource"
    if fields.get("type") == _COMPUTATION and not fields.get("runtime"):
        yield "runtime is missing"


class BundleCheck:
    """What a checkup sees of the bundles of a store, document by document."""

    def __init__(self) -> None:
        self._problems: dict[str, list[str]] = {}
        """The problems of each concept; one without any has an empty list."""
        self._untyped: dict[str, str] = {}
        self._ends: dict[str, dt.date] = {}
        self._targets: dict[tuple[str, str], set[str]] = defaultdict(set)
        """The kind and tag of a link → the pages that it is on."""
        self._named: dict[str, set[str]] = defaultdict(set)
        """The tag of a page → the pages that link to it."""
        self._tags: dict[str, set[str]] = defaultdict(set)
        """Page of a bundle → its tags."""

    def add(self, metadata: Mapping[str, Any], links: Sequence[Link]) -> None:
        """Take a document into account."""
        page = metadata.get("page")
        if not isinstance(page, str):
            return
        concept = LIFECYCLE in metadata
        if PROBLEM in metadata:
            self._untyped[page] = str(metadata[PROBLEM])
        elif concept and page not in self._problems:
            self._problems[page] = list(find_field_problems(metadata))
            ends = read_day(metadata.get("stale_after"))
            if ends is not None and metadata.get("status") != "deprecated":
                self._ends[page] = ends
        for link in links:
            if not is_internal_tag(link.tag):
                continue
            if link.leads_out:
                self._named[split_tag(link.tag)[0]].add(page)
                if concept:
                    self._targets[link.kind, link.tag].add(page)
            elif concept and link.kind == "hyperlink":
                self._tags[page].add(split_tag(link.tag)[0])

    def find_untyped(self) -> list[str]:
        """Return the pages without a type, which are no concepts, each with the reason."""
        return [f"{page}: {problem}" for page, problem in sorted(self._untyped.items())]

    def find_invalid(self) -> list[str]:
        """Return the concepts whose fields have problems, with these."""
        return [
            f"{page}: {'; '.join(problems)}" for page, problems in sorted(self._problems.items()) if problems
        ]

    def find_dead_links(self, dangling: Iterable[tuple[str, str]]) -> list[str]:
        """Return the links of concepts that lead nowhere, each as ``page → tag``.

        Args:
            dangling: The kinds and tags of all links of the store that do so.
        """
        lost = [(page, tag) for kind, tag in dangling for page in self._targets.get((kind, tag), ())]
        return [f"{page} → {tag}" for page, tag in sorted(set(lost))]

    def find_orphans(self) -> list[str]:
        """Return the concepts that no other page links to."""
        return sorted(
            page
            for page, tags in self._tags.items()
            if not any(self._named.get(tag, set()) - {page} for tag in tags)
        )

    def find_stale(self, today: dt.date) -> list[str]:
        """Return the concepts that are out of date on a day, and not deprecated."""
        return sorted(page for page, ends in self._ends.items() if today >= ends)
