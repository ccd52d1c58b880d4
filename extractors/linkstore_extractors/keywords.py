"""Keywords: links documents that share a rare word or phrase.

Words and phrases are chosen by statistics over the corpus, with no model and no dictionary beyond the
stop words. The parts are well known: inverse document frequency (K. Spärck Jones, "A statistical
interpretation of term specificity", Journal of Documentation, 1972), normalised mutual information to
tell phrases from words that happen to meet (G. Bouma, GSCL 2009), and two features of YAKE
(R. Campos et al., "YAKE! Keyword extraction from single documents", Information Sciences 509, 2020):
words written with a capital and words near the start count more. None of YAKE's code is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.errors import ExtractionError
from linkstore.links import Link
from linkstore_extractors._frequencies import Frequencies
from linkstore_extractors._terms import MAX_WORDS, Run, candidates, runs, stands_alone, text_of

SMALLEST_BOUND: Final = 5
"""A keyword of so few documents is never too frequent, however small the corpus."""
START: Final = 25
"""Words at the start of a text that count fully."""
LATE: Final = 0.8
LOWER_CASE: Final = 0.6
SINGLE_WORD: Final = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordSettings:
    """The rules for keywords.

    Args:
        max_keywords: Most keywords of a document.
        min_documents: A keyword of fewer documents is left out: shared with nobody, it links nothing.
        max_share: A keyword of more than this share of the documents is left out, since it tells
            nothing apart; below that, its weight falls with every document it is found in.
        max_documents: A keyword of more documents than this is left out; the default is the size
            above which strategies do not follow a link group.
        cohesion: From which normalised mutual information on words are a phrase, from -1 to 1.
        max_candidates: Most words and phrases to remember; each takes some 120 bytes. When there are
            more, the rarest are forgotten.
        kind: Kind of the links.

    Raises:
        ExtractionError: If a setting is out of range.
    """

    max_keywords: int = 8
    min_documents: int = 2
    max_share: float = 0.1
    max_documents: int = 200
    cohesion: float = 0.5
    max_candidates: int = 2_000_000
    kind: str = "keyword"

    def __post_init__(self) -> None:
        if min(self.max_keywords, self.min_documents, self.max_candidates) < 1:
            raise ExtractionError("max_keywords, min_documents and max_candidates must be at least 1")
        if self.max_documents < self.min_documents:
            raise ExtractionError("max_documents must not be below min_documents")
        if not (0 < self.max_share <= 1 and -1 <= self.cohesion <= 1):
            raise ExtractionError("max_share must lie above 0 and up to 1, cohesion from -1 to 1")


DEFAULTS: Final = KeywordSettings()


@dataclass(slots=True)
class _Keyword:
    label: str
    """The spelling of the first occurrence."""
    factor: float = 0.0
    """The value of its place, case and length: the best of its occurrences."""
    count: int = 0


class KeywordExtractor:
    """Keywords by statistics over the corpus: ``observe`` all documents, then ``extract`` each.

    A document's text is cut at stop words and punctuation, and what remains into the longest known
    phrases of up to three words. The salience of each, above 0 and up to 1, is the product of

    - how often it occurs here: n / (n + 1);
    - how rare it is: log((N + 1) / documents) / log((N + 1) / min_documents), at most 1;
    - 0.6 if it is never written with a capital inside a sentence;
    - 0.8 if it is not among the first 25 words;
    - 0.85 if it is a single word.

    The most salient are the document's keywords, and salience is the link's weight. Links go both
    ways: tag is the folded keyword, label is how the document first writes it, words joined by single
    spaces. Counts are those observed so far: a document extracted early sees less of the corpus.
    English stop words; texts of other languages with spaces between words work less well, texts
    without such spaces (Chinese, Japanese, Thai) do not.

    Args:
        settings: What counts as a keyword.
    """

    source = Document

    def __init__(self, settings: KeywordSettings = DEFAULTS) -> None:
        self._settings = settings
        self._frequencies = Frequencies(settings.max_candidates)

    @classmethod
    def from_statistics(
        cls, statistics: Mapping[str, Any], settings: KeywordSettings = DEFAULTS
    ) -> KeywordExtractor:
        """Make an extractor that goes on from what :meth:`statistics` gave.

        Raises:
            ExtractionError: If the statistics are not of this version, or damaged.
        """
        extractor = cls(settings)
        extractor._frequencies = Frequencies.from_dict(statistics, settings.max_candidates)
        return extractor

    def statistics(self) -> dict[str, Any]:
        """Return all that was observed, as a plain dict ready for JSON."""
        return self._frequencies.to_dict()

    def observe(self, sources: Iterable[Document | str]) -> None:
        """Count the words and phrases of these documents. A document observed twice counts twice."""
        for source in sources:
            self._frequencies.add(candidates(runs(text_of(source))))

    def extract(self, source: Document | str) -> tuple[Link, ...]:
        """Return the document's keywords, most salient first, equal ones by tag."""
        salient = [
            (found.count / (found.count + 1) * self._rarity(tag) * found.factor, tag, found.label)
            for tag, found in self._keywords(runs(text_of(source))).items()
        ]
        salient.sort(key=lambda item: (-item[0], item[1]))
        return tuple(
            Link.bidir(kind=self._settings.kind, tag=tag, label=label, weight=weight)
            for weight, tag, label in salient[: self._settings.max_keywords]
        )

    def extract_query(self, text: str) -> tuple[Link, ...]:
        """Return outgoing links to the keywords that a question names, in order, weighted by rarity.

        Phrases go before the words in them. Only what the corpus knows as a keyword is named.
        """
        return tuple(
            Link.outgoing(kind=self._settings.kind, tag=tag, label=found.label, weight=self._rarity(tag))
            for tag, found in self._keywords(runs(text)).items()
        )

    def _keywords(self, found: Sequence[Run]) -> dict[str, _Keyword]:
        """Return the possible keywords of a text, by tag, in order of appearance."""
        least, bound = self._settings.min_documents, self._bound()
        keywords: dict[str, _Keyword] = {}
        for run, start, end in self._segments(found):
            tag = run.words[start] if end == start + 1 else " ".join(run.words[start:end])
            keyword = keywords.get(tag)
            if keyword is None:
                if not least <= self._frequencies[tag] <= bound:
                    continue
                keyword = keywords[tag] = _Keyword(" ".join(run.raws[start:end]))
            keyword.count += 1
            factor = _factor(run, start, end)
            if factor > keyword.factor:
                keyword.factor = factor
        return keywords

    def _segments(self, found: Sequence[Run]) -> Iterator[tuple[Run, int, int]]:
        """Cut the runs into the longest phrases, from left to right. Lone numbers are left out."""
        for run in found:
            start = 0
            while start < len(run.words):
                end = self._phrase_end(run.words, start)
                if end > start + 1 or stands_alone(run.words[start]):
                    yield run, start, end
                start = end

    def _phrase_end(self, words: Sequence[str], start: int) -> int:
        """Return the end of the longest phrase that begins at ``start``, after one word if there is none."""
        end = start + 1
        for longer in range(start + 2, min(len(words), start + MAX_WORDS) + 1):
            phrase = words[start:longer]
            if self._frequencies[" ".join(phrase)] < self._settings.min_documents:
                break
            if self._frequencies.cohesion(phrase) >= self._settings.cohesion:
                end = longer
        return end

    def _bound(self) -> int:
        share = int(self._settings.max_share * self._frequencies.documents)
        return min(self._settings.max_documents, max(SMALLEST_BOUND, share))

    def _rarity(self, tag: str) -> float:
        """Return the rarity of a keyword: just above 0 if every document has it, 1 for ``min_documents``."""
        total = self._frequencies.documents + 1
        return min(1.0, log(total / self._frequencies[tag]) / log(total / self._settings.min_documents))


def _factor(run: Run, start: int, end: int) -> float:
    """Return the value of the place, the case and the length of one occurrence."""
    place = 1.0 if run.start + start < START else LATE
    length = SINGLE_WORD if end == start + 1 else 1.0
    inside = start + 1 if run.opens and start == 0 else start
    for raw in run.raws[inside:end]:
        if raw[0].isupper():
            return place * length
    return place * length * LOWER_CASE
