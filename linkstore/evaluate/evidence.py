"""Evidence: passages that a search found, with hashes, held against the store later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal

from linkstore.core.arguments import quote_value
from linkstore.errors import ArgumentError

if TYPE_CHECKING:
    from linkstore.store.core import CoreStore

Verdict = Literal["unchanged", "moved", "changed", "gone", "altered"]
HOLDING: Final[frozenset[Verdict]] = frozenset({"unchanged", "moved"})
"""The verdicts on a passage that the store still has."""
_FIELDS: Final[Mapping[str, type]] = {
    "id": str,
    "page": str,
    "start": int,
    "end": int,
    "text": str,
    "sha256": str,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPassage:
    """A passage of evidence, held against the store.

    Args:
        id: The id of its document, as the evidence names it.
        text: The passage.
        verdict: ``"unchanged"``: it stands where it stood. ``"moved"``: it stands elsewhere in its document
            or its page. ``"changed"``: its page or document no longer has it. ``"gone"``: there is neither.
            ``"altered"``: the evidence was changed, for its text does not have its hash.
        now: The id of the document that has it now, None if none has.
    """

    id: str
    text: str
    verdict: Verdict
    now: str | None = None


def check_evidence(store: CoreStore, evidence: Sequence[Mapping[str, Any]]) -> list[CheckedPassage]:
    """Hold what :meth:`Hits.to_evidence <linkstore.core.hits.Hits.to_evidence>` returned against a store.

    Args:
        store: Where the passages were found.
        evidence: The passages, as they were read from JSON.

    Raises:
        ArgumentError: If it is no evidence.
    """
    items = list(_read_items(evidence))
    pages = store.pages.ids(None, sorted({item["page"] for item in items}))
    wanted = dict.fromkeys(id for item in items for id in (item["id"], *pages.get(item["page"], ())))
    texts = {document.id or "": document.page_content for document in store.get_by_ids(list(wanted))}
    return [_check(item, texts, pages.get(item["page"], ())) for item in items]


def _read_items(evidence: object) -> Iterator[Mapping[str, Any]]:
    items: list[Any] = evidence if isinstance(evidence, list) else [evidence]
    for item in items:
        wrong = [
            name
            for name, kind in _FIELDS.items()
            if not isinstance(item, dict) or type(item.get(name)) is not kind
        ]
        if wrong:
            raise ArgumentError(
                f"evidence is a list of passages, each with {', '.join(_FIELDS)};"
                f" {quote_value(item)[:200]} lacks {', '.join(wrong)}"
            )
        yield item


def _check(item: Mapping[str, Any], texts: Mapping[str, str], of_page: Sequence[str]) -> CheckedPassage:
    id, text = item["id"], item["text"]

    def judge(verdict: Verdict, now: str | None = None) -> CheckedPassage:
        return CheckedPassage(id=id, text=text, verdict=verdict, now=now)

    if sha256(text.encode(errors="surrogatepass")).hexdigest() != item["sha256"]:
        return judge("altered")
    if texts.get(id, "")[max(0, item["start"]) : item["end"]] == text:
        return judge("unchanged", id)
    now = next((other for other in (id, *of_page) if text and text in texts.get(other, "")), None)
    if now is not None:
        return judge("moved", now)
    return judge("changed" if id in texts or of_page else "gone")
