"""A made-up wiki of any number of pages, like the first paragraphs of Wikipedia's articles, as a dump.

A page has a title of its own, a paragraph of 40 to 80 words, 8 links and one or two categories. Half of
the words are those of every English text, by Zipf's law; of the others most are of the page's topic, the
rest of a large vocabulary. Half of the links lead to pages of the same topic, half anywhere, so that the
r-th most linked page has a share of about 1 / (r + 50). A category for each topic has some 200 pages; every
sixth page is also in one category that is as large as that. Page ``n`` of ``count`` is always the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from linkstore.core.arrays import Ints

LINKS: Final = 8
QUESTIONS: Final = 200
_BLOCK: Final = 1000
_VOCABULARY: Final = 50_000
_OF_TOPIC: Final = 64
_SHORTEST, _LONGEST = 40, 80
_COMMON_WORDS: Final = (
    "the of and in to was is for as on by with from at his an that were are which it or first be also had"
    " its one new who their has not but after two have this been she they her other he when during into"
    " time may city more used world over most state only about between where some three there known later"
    " years until all made then second under part many while than through became before school including"
    " area population film called because number since work name these century several early both up team"
    " located family south north village series small people along member large born war against season"
)
_COMMON: Final = tuple(_COMMON_WORDS.split())
_ONSETS: Final = ("b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v")
_SYLLABLES: Final = tuple(onset + vowel for onset in _ONSETS for vowel in "aeiou")
_NAMES: Final = len(_SYLLABLES) ** 4
"""So many titles can be told apart: 24 million."""
_SPREAD: Final = 7_368_787
"""A prime: what it multiplies looks shuffled, and stays distinct modulo anything it does not divide."""
_HEAD: Final = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo><sitename>Made</sitename><dbname>made</dbname><base>https://made.example/wiki/Main_Page</base>
  <case>first-letter</case><namespaces><namespace key="0" case="first-letter" />
  <namespace key="14" case="first-letter">Category</namespace></namespaces></siteinfo>
"""


def write_dump(path: Path, count: int) -> None:
    """Write the dump of a wiki of ``count`` pages, unless it is there; whole or not at all."""
    if path.exists():
        return
    unfinished = path.with_suffix(".part")
    with unfinished.open("w", encoding="utf-8") as file:
        file.write(_HEAD)
        for number, text in enumerate(_texts(count)):
            file.write(
                f"<page><title>{title(number)}</title><ns>0</ns><id>{number + 1}</id><revision>"
                f"<id>{number + 1}</id><model>wikitext</model><text>{text}</text></revision></page>\n"
            )
        file.write("</mediawiki>\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


def questions(count: int) -> list[str]:
    """200 questions, each of six words of one topic of a wiki of ``count`` pages."""
    random = np.random.default_rng(7)
    topics = random.integers(0, _topics(count), QUESTIONS)
    words = _topical(np.repeat(topics, 6), random.integers(0, _OF_TOPIC // 4, 6 * QUESTIONS)).reshape(-1, 6)
    return [" ".join(["what is", *map(_word, row)]) for row in words.tolist()]


def title(number: int) -> str:
    """The title of a page; no other has it."""
    return f"{_spelt(number * _SPREAD % _NAMES, 4).capitalize()} {_COMMON[number % 7 + 60]}"


def _texts(count: int) -> Iterator[str]:
    """The wikitext of each page."""
    words = [_word(number) for number in range(_VOCABULARY)]
    for start in range(0, count, _BLOCK):
        random = np.random.default_rng((count, start))
        numbers = np.arange(start, min(start + _BLOCK, count))
        chosen = _chosen_words(random, numbers, count).tolist()
        targets = _targets(random, numbers, count).tolist()
        lengths = random.integers(_SHORTEST, _LONGEST + 1, len(numbers)).tolist()
        for number, own, leads, length in zip(numbers.tolist(), chosen, targets, lengths, strict=True):
            spelt = [words[word] if word >= 0 else _COMMON[-word - 1] for word in own[:length]]
            yield _wikitext(number, count, spelt, leads)


def _wikitext(number: int, count: int, words: list[str], targets: list[int]) -> str:
    """A paragraph with a link in place of each fifth word, in sentences of fourteen, and the categories."""
    for place, target in enumerate(targets):
        at = 5 * place + 3
        words[at] = f"[[{title(target)}]]" if place % 2 else f"[[{title(target)}|{words[at]}]]"
    for at in range(13, len(words), 14):
        words[at] += "."
    hub = "\n[[Category:Everything living]]" if number % 6 == 0 else ""
    topic = number % _topics(count)
    return f"'''{title(number)}''' is {' '.join(words)}.\n[[Category:{_word(topic)} {topic}]]{hub}"


def _chosen_words(random: np.random.Generator, numbers: Ints, count: int) -> Ints:
    """(pages, 80) words: positions in the vocabulary, or minus one and less for common ones."""
    shape = (len(numbers), _LONGEST)
    topics = np.repeat(numbers % _topics(count), _LONGEST)
    topical = _topical(topics, _zipf(random, _OF_TOPIC, 5, topics.shape)).reshape(shape)
    rare = _zipf(random, _VOCABULARY, 50, shape)
    common = -1 - _zipf(random, len(_COMMON), 2, shape)
    kind = random.random(shape)
    return np.where(kind < 0.5, common, np.where(kind < 0.8, topical, rare))


def _targets(random: np.random.Generator, numbers: Ints, count: int) -> Ints:
    """(pages, 8) the pages that each page links to."""
    topics = _topics(count)
    shape = (len(numbers), LINKS // 2)
    siblings = random.integers(0, max(1, count // topics), shape) * topics + (numbers % topics)[:, None]
    anywhere = _zipf(random, count, 50, shape) * _SPREAD % count
    return np.concatenate([siblings, anywhere], axis=1)


def _topics(count: int) -> int:
    return max(1, count // 200)


def _topical(topics: Ints, ranks: Ints) -> Ints:
    """The vocabulary's words that are some of a topic's own."""
    return (topics * _OF_TOPIC + ranks) * _SPREAD % _VOCABULARY


def _zipf(random: np.random.Generator, size: int, flat: int, shape: Any) -> Ints:
    """Ranks below ``size``, the r-th with a weight of about 1 / (r + flat)."""
    ranks = (flat * ((size + flat) / flat) ** random.random(shape) - flat).astype(np.int64)
    return np.minimum(ranks, size - 1)


def _word(number: int) -> str:
    return _spelt(number * 31 + 7, 3)


def _spelt(number: int, syllables: int) -> str:
    """A number in syllables, the least significant first."""
    spelt = ""
    for _ in range(syllables):
        number, digit = divmod(number, len(_SYLLABLES))
        spelt += _SYLLABLES[digit]
    return spelt
