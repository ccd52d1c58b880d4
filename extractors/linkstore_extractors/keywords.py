"""Keywords: links documents that share a rare word or phrase.

Words between stop words and punctuation could be keywords, and so could phrases of them. The documents that
contain each are counted in bounded memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.core.links import Link
from linkstore.core.text import HIRAGANA, STOP_WORDS, fold, make_word_pattern
from linkstore.errors import ExtractionError

_VERSION: Final = 1
_KEPT: Final = 0.75
"""Share of the limit that pruning leaves at most."""
_SENTENCE_ENDS: Final = frozenset(".!?…:\n")
_LONGEST_WORD: Final = 64
"""Longer runs of letters are hashes, encoded data and the like."""
MAX_WORDS: Final = 3
_PARTICLES: Final = re.compile(f"[{HIRAGANA}]+")
JOINING_SHARE: Final = 0.2
"""A word of more than this share of the documents, as a preposition, begins and ends no phrase."""
_fold_cached = lru_cache(maxsize=1 << 16)(fold)
SMALLEST_BOUND: Final = 5
"""A keyword of so few documents is never too frequent, however small the corpus."""
START_WORDS: Final = 25
"""Words at the start of a text that count fully."""
LATE_FACTOR: Final = 0.8
LOWER_CASE_FACTOR: Final = 0.6
SINGLE_WORD_FACTOR: Final = 0.85


class Frequencies:
    """Document frequencies of words and phrases.

    When the table exceeds its limit, candidates of one document go first, then those of two, and so
    on until three quarters of the limit are left, in the manner of lossy counting (G. Manku and
    R. Motwani, "Approximate Frequency Counts over Data Streams", VLDB 2002): counts may then be too
    low, never too high, and what is frequent is always kept.

    Args:
        limit: Most candidates to remember; one takes some 120 bytes.
        documents: How many documents were observed.
        counts: In how many of them each candidate occurs.
    """

    __slots__ = ("_counts", "_limit", "documents")

    def __init__(self, limit: int, documents: int = 0, counts: Mapping[str, int] | None = None) -> None:
        self._limit = limit
        self._counts: Counter[str] = Counter(counts)
        self.documents = documents
        self._prune()

    def __len__(self) -> int:
        return len(self._counts)

    def __getitem__(self, term: str) -> int:
        return self._counts.get(term, 0)

    def add(self, terms: set[str]) -> None:
        """Count one document's candidates."""
        self._counts.update(terms)
        self.documents += 1
        if len(self._counts) > self._limit:
            self._prune()

    def cohesion(self, words: Sequence[str]) -> float:
        """Measure how much more often words occur together than apart, from -1 to 1 (always together).

        The measure is normalised pointwise mutual information over documents (G. Bouma, "Normalized
        (Pointwise) Mutual Information in Collocation Extraction", GSCL 2009). A phrase of three words has
        that of the weaker of its two joints.
        """
        count = self._counts.get
        together = count(" ".join(words), 0)
        if not together:
            return -1.0
        if together >= self.documents:
            return 1.0
        cuts = [(" ".join(words[:cut]), " ".join(words[cut:])) for cut in range(1, len(words))]
        apart = max(count(left, 1) * count(right, 1) for left, right in cuts)
        return log(together * self.documents / apart) / -log(together / self.documents)

    def to_dict(self) -> dict[str, Any]:
        """Return the frequencies as a plain dict, ready for JSON."""
        return {"version": _VERSION, "documents": self.documents, "frequencies": dict(self._counts)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], limit: int) -> Frequencies:
        """Read frequencies that :meth:`to_dict` wrote.

        Raises:
            ExtractionError: If it is not that.
        """
        documents, counts = data.get("documents"), data.get("frequencies")
        if data.get("version") != _VERSION or type(documents) is not int or not isinstance(counts, Mapping):
            raise ExtractionError(
                f"these are not keyword statistics of version {_VERSION}; observe the corpus again"
            )
        if not all(type(count) is int and 0 < count <= documents for count in counts.values()):
            raise ExtractionError("these keyword statistics are damaged: observe the corpus again")
        return cls(limit, documents, counts)

    def _prune(self) -> None:
        rare = 0
        while len(self._counts) > self._limit or (rare and len(self._counts) > self._limit * _KEPT):
            rare += 1
            self._counts = Counter({term: n for term, n in self._counts.items() if n > rare})


@dataclass(slots=True)
class WordRun:
    """Words of a text that follow each other with no stop word or punctuation between them.

    Args:
        start: How many words of the text stand before it, stop words included.
        opens: Whether its first word opens a sentence.
        words: The words, folded.
        raws: The words as written.
    """

    start: int
    opens: bool
    words: list[str]
    raws: list[str]


def get_text(source: Document | str) -> str:
    """Return the text of a source."""
    return source if isinstance(source, str) else source.page_content


def find_runs(text: str) -> list[WordRun]:
    """Split a text into runs, in order. Hyphens join words, other punctuation and blank lines part them.

    Hiragana part them too: most Japanese particles and endings are written in them.
    """
    text = _PARTICLES.sub("\u3001", text)
    runs: list[WordRun] = []
    run: WordRun | None = None
    opens, position = True, 0
    for raw in _compile_token(make_word_pattern(text)).findall(text):
        if not (raw[0].isalnum() or raw[0] == "_"):
            run = None
            opens = opens or raw[0] in _SENTENCE_ENDS
            continue
        word = _fold_cached(raw)
        if not word or word in STOP_WORDS or len(raw) > _LONGEST_WORD:
            run = None
        elif run is None:
            run = WordRun(position, opens, [word], [raw])
            runs.append(run)
        else:
            run.words.append(word)
            run.raws.append(raw)
        opens = False
        position += 1
    return runs


@lru_cache(maxsize=256)
def _compile_token(word: str) -> re.Pattern[str]:
    """Compile a pattern of words, blank lines, and punctuation other than hyphens and apostrophes."""
    return re.compile(rf"{word}|\n\s*\n|[^\w\s\-'\u2019]")


def stands_alone(word: str) -> bool:
    """Say whether a word can be a keyword without others: no number, no single letter."""
    return len(word) > 1 and (word.isalpha() or not (word.isdecimal() or word.strip("_") == ""))


def find_candidates(found: Iterable[WordRun]) -> set[str]:
    """Return all words and all phrases of two and three words. A phrase does not begin with a number."""
    terms: set[str] = set()
    for run in found:
        previous = pair = ""
        for word in run.words:
            if stands_alone(word):
                terms.add(word)
            if pair:
                terms.add(f"{pair} {word}")
            pair = f"{previous} {word}" if previous and not previous.isdecimal() else ""
            if pair:
                terms.add(pair)
            previous = word
    return terms


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
    English stop words are left out. In other languages the words of more than ``max_share`` of the
    documents are, and those of a fifth begin and end no phrase. In Japanese, what stands between hiragana
    is a word. Chinese and Thai, whose words no sign parts, work less well.

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
        """Make an extractor that goes on from the result of :meth:`statistics`.

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
            runs = find_runs(get_text(source))
            letters = {word for run in runs for word in run.words if len(word) == 1 and word.isalpha()}
            self._frequencies.add(find_candidates(runs) | letters)  # a letter may be a preposition

    def extract(self, source: Document | str) -> tuple[Link, ...]:
        """Return the document's keywords, most salient first, equal ones by tag.

        Raises:
            ExtractionError: If no document was observed.
        """
        salient = [
            (keyword.count / (keyword.count + 1) * self._rarity(tag) * keyword.factor, tag, keyword.label)
            for tag, keyword in self._keywords(find_runs(get_text(source))).items()
        ]
        salient.sort(key=lambda item: (-item[0], item[1]))
        return tuple(
            Link.bidir(kind=self._settings.kind, tag=tag, label=label, weight=weight)
            for weight, tag, label in salient[: self._settings.max_keywords]
        )

    def extract_query(self, text: str) -> tuple[Link, ...]:
        """Return outgoing links to the keywords that a question names, in order, weighted by rarity.

        Phrases go before the words in them. Only what the corpus knows as a keyword is named.

        Raises:
            ExtractionError: If no document was observed.
        """
        return tuple(
            Link.outgoing(kind=self._settings.kind, tag=tag, label=keyword.label, weight=self._rarity(tag))
            for tag, keyword in self._keywords(find_runs(text)).items()
        )

    def _keywords(self, found: Sequence[WordRun]) -> dict[str, _Keyword]:
        """Return the possible keywords of a text, by tag, in order of appearance."""
        if not self._frequencies.documents:
            raise ExtractionError(
                "this extractor has observed 0 documents, so it knows no keyword: give all documents to"
                " observe() first, or make it by from_statistics()"
            )
        share = int(self._settings.max_share * self._frequencies.documents)
        least = self._settings.min_documents
        bound = min(self._settings.max_documents, max(SMALLEST_BOUND, share))
        keywords: dict[str, _Keyword] = {}
        for run, start, end in self._segments(found):
            tag = run.words[start] if end == start + 1 else " ".join(run.words[start:end])
            keyword = keywords.get(tag)
            if keyword is None:
                if not least <= self._frequencies[tag] <= bound:
                    continue
                keyword = keywords[tag] = _Keyword(" ".join(run.raws[start:end]))
            keyword.count += 1
            keyword.factor = max(keyword.factor, _weigh_occurrence(run, start, end))
        return keywords

    def _segments(self, found: Sequence[WordRun]) -> Iterator[tuple[WordRun, int, int]]:
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
        end, rare = start + 1, max(SMALLEST_BOUND, JOINING_SHARE * self._frequencies.documents)
        for longer in range(start + 2, min(len(words), start + MAX_WORDS) + 1):
            phrase = words[start:longer]
            if self._frequencies[" ".join(phrase)] < self._settings.min_documents:
                break
            outer = max(map(self._frequencies.__getitem__, (phrase[0], phrase[-1])))
            if outer <= rare and self._frequencies.cohesion(phrase) >= self._settings.cohesion:
                end = longer
        return end

    def _rarity(self, tag: str) -> float:
        """Return the rarity of a keyword: just above 0 if every document has it, 1 for ``min_documents``."""
        total = self._frequencies.documents + 1
        return min(1.0, log(total / self._frequencies[tag]) / log(total / self._settings.min_documents))


def _weigh_occurrence(run: WordRun, start: int, end: int) -> float:
    """Return the value of the place, the case and the length of one occurrence."""
    place = 1.0 if run.start + start < START_WORDS else LATE_FACTOR
    length = SINGLE_WORD_FACTOR if end == start + 1 else 1.0
    inside = start + 1 if run.opens and start == 0 else start
    for raw in run.raws[inside:end]:
        if raw[0].isupper():
            return place * length
    return place * length * LOWER_CASE_FACTOR
