"""Questions within German, Japanese, Russian, Chinese, French, Spanish, Greek, and from these into English.

Run: ``python benchmarks/languages.py --packages FOLDER``, with ``apt-get`` and ``dpkg-deb``; FOLDER keeps
what was downloaded. The handbook, the installation guide, the FAQ, the developer's reference and the
reference have the same pages in all languages. A question is a heading that one section alone has, and
that is translated; gold is its section. Within a language, sections are without their headings, so a
heading does not find itself; into English they have them, and the same questions in English are asked
too.

For words, for each embedding, and for both with the weight of words that linkstore uses: the share of
questions whose section is among the first 1 / 5 / 10. The order is that of the first stage of a search,
without links.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from _report import add_output, listed
from _vector_cache import make_encoder
from bs4 import BeautifulSoup, NavigableString, Tag

from linkstore.core.arrays import Floats
from linkstore.core.lexical import bm25_weight, extract_question_terms, extract_terms, inverse_frequency
from linkstore.embeddings.encoder import Encoder
from linkstore.embeddings.names import LEXICAL_WEIGHT

ENGLISH: Final = "en"
HEADINGS: Final = ("h1", "h2", "h3", "h4")
FEWEST_LETTERS: Final = 80
"""Shorter sections say too little."""
ASKED: Final = 400
SEED: Final = 7
AMONG: Final = (1, 5, 10)
_DOC: Final = "usr/share/doc"
PLACES: Final = {
    "handbook": ("debian-handbook", f"{_DOC}/debian-handbook/html/{{region}}/*.html"),
    "guide": ("installation-guide-amd64", f"{_DOC}/installation-guide-amd64/{{guide}}/*.html"),
    "faq": ("debian-faq{package}", f"{_DOC}/debian/FAQ/**/*.{{web}}.html"),
    "developers": ("developers-reference{package}", f"{_DOC}/developers-reference*/**/*.html"),
    "reference": ("debian-reference-{web}", "usr/share/debian-reference/*.html"),
}
"""The package of each manual, and where its pages are."""
LANGUAGES: Final = {
    ENGLISH: {"region": "en-US", "guide": "en", "web": "en", "package": ""},
    "de": {"region": "de-DE", "guide": "de", "web": "de", "package": "-de"},
    "ja": {"region": "ja-JP", "guide": "ja", "web": "ja", "package": "-ja"},
    "ru": {"region": "ru-RU", "guide": "ru", "web": "ru", "package": "-ru"},
    "zh": {"region": "zh-CN", "guide": "zh_CN", "web": "zh-cn", "package": "-zh-cn"},
    "fr": {"region": "fr-FR", "guide": "fr", "web": "fr", "package": "-fr"},
    "es": {"region": "es-ES", "guide": "es", "web": "es", "package": "-es"},
    "el": {"region": "el-GR", "guide": "el", "web": "el", "package": "-el"},
}
ABSENT: Final = {
    ("reference", "ru"),
    ("developers", "zh"),
    *((manual, "fr") for manual in ("faq", "developers", "reference")),
    *((manual, "es") for manual in ("faq", "developers")),
    *((manual, "el") for manual in ("faq", "developers", "reference")),
}
"""Manuals that a language has no package of, or that are left out."""
_NUMBER: Final = re.compile(
    r"^(?:\W*[0-9A-Z]{1,3}(?:\.\d+)*\.?\s+|(?:Kapitel|Chapter|Глава|Anhang|Appendix|第|付録|附录)\s*[\w.]+\s*[章部]?[.:\uff0e]?\s*)"
)
_LETTERS: Final = {
    "ja": r"[\u3040-\u9fff]",
    "zh": r"[\u4e00-\u9fff]",
    "ru": r"[\u0400-\u04ff]",
    "el": r"[\u0370-\u03ff]",
}
"""What a translated heading has, where the alphabet tells."""


class Section(NamedTuple):
    """A section: where it stands in every language, its heading and its text without the heading."""

    place: str
    heading: str
    body: str


def main() -> None:
    """Ask within each language and into English, and print a line for each embedding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--packages", required=True, type=Path, help="folder that keeps the packages")
    parser.add_argument(
        "--embeddings", default="wordllama,multilingual", help="default wordllama,multilingual"
    )
    parser.add_argument("--languages", default=",".join(LANGUAGES), help="default all")
    parser.add_argument("--cache", metavar="FOLDER", help="keeps vectors between runs")
    add_output(parser)
    options = parser.parse_args()
    encoders = {name: make_encoder(name, options.cache) for name in options.embeddings.split(",")}
    english = list(read_sections(ENGLISH, options.packages))
    rows = [
        row
        for language in options.languages.split(",")
        for row in _measure(language, english, options.packages, encoders)
    ]
    title = "Sections of Debian's manuals found by their headings, %"
    listed(title, rows, as_json=options.json, record_as=options.record)


def read_sections(language: str, packages: Path) -> Iterator[Section]:
    """Yield the sections of all manuals in a language."""
    for manual, (package, pages) in PLACES.items():
        if (manual, language) not in ABSENT:
            root = _unpack(package.format(**LANGUAGES[language]), packages)
            for page in sorted(root.glob(pages.format(**LANGUAGES[language]))):
                name = page.name.removesuffix(".html").removesuffix(f".{LANGUAGES[language]['web']}")
                yield from _read_page(page, f"{manual}/{name}")


def _unpack(package: str, packages: Path) -> Path:
    target = packages / "unpacked" / package
    if not target.exists():
        packages.mkdir(parents=True, exist_ok=True)
        if not list(packages.glob(f"{package}_*.deb")):
            subprocess.run(["apt-get", "download", package], cwd=packages, check=True, capture_output=True)
        subprocess.run(["dpkg-deb", "-x", next(packages.glob(f"{package}_*.deb")), target], check=True)
    return target


def _read_page(page: Path, place: str) -> Iterator[Section]:
    soup = BeautifulSoup(page.read_bytes(), "html.parser")
    for chrome in soup.select(
        "nav, script, style, .navheader, .navfooter, .toc, .sphinxsidebar, .related, .headerlink"
    ):
        chrome.decompose()
    for number, tag in enumerate(soup.find_all(HEADINGS)):
        heading = _NUMBER.sub("", " ".join(tag.get_text().split()))
        body = " ".join(" ".join(_read_body(tag)).split())
        if heading and len(body) >= FEWEST_LETTERS:
            yield Section(f"{place}#{number}", heading, body)


def _read_body(heading: Tag) -> Iterator[str]:
    inside = {id(part) for part in heading.descendants}
    for part in heading.next_elements:
        if isinstance(part, Tag) and part.name in HEADINGS:
            return
        if isinstance(part, NavigableString) and id(part) not in inside:
            yield str(part)


def choose_questions(language: str, sections: Sequence[Section], english: Sequence[Section]) -> list[int]:
    """Choose sections whose headings are questions: translated, said once, and of some length."""
    said = Counter(section.heading for section in sections)
    known = {section.place: section.heading for section in english} if language != ENGLISH else {}
    letters = re.compile(_LETTERS.get(language, r"\S\s+\S"))
    chosen = [
        row
        for row, (place, heading, _) in enumerate(sections)
        if said[heading] == 1 and known.get(place) != heading and letters.search(heading) and len(heading) > 4
    ]
    random.Random(SEED).shuffle(chosen)
    return chosen[:ASKED]


def _measure(
    language: str, english: Sequence[Section], packages: Path, encoders: Mapping[str, Encoder]
) -> Iterator[dict[str, Any]]:
    sections = english if language == ENGLISH else list(read_sections(language, packages))
    rows = np.array(choose_questions(language, sections, english))
    asked = [sections[row].heading for row in rows]
    bodies = [section.body for section in sections]
    places = {section.place: row for row, section in enumerate(english)}
    shared = [row for row in rows if sections[row].place in places]
    across = np.array([places[sections[row].place] for row in shared])
    words = score_words(bodies, asked)
    for name, encoder in encoders.items():
        begun = time.process_time()
        vectors = encoder.embed_array(bodies)
        spent = (time.process_time() - begun) / len(bodies) * 1e3
        alike = encoder.embed_array(asked) @ vectors.T
        wholes = encoder.embed_array([f"{section.heading}\n{section.body}" for section in english])
        weight = LEXICAL_WEIGHT.get(encoder.name, 1.0)
        yield {
            "language, embedding": f"{language}, {name}",
            "sections": len(bodies),
            "questions": len(asked),
            "words": _share(words, rows),
            "similarity": _share(alike, rows),
            "both": _share(alike + weight * words, rows),
            "into English": _share(
                encoder.embed_array([sections[row].heading for row in shared]) @ wholes.T, across
            ),
            "the same in English": _share(
                encoder.embed_array([english[row].heading for row in across]) @ wholes.T, across
            ),
            "CPU ms a section": spent,
        }


def score_words(texts: Sequence[str], questions: Sequence[str]) -> Floats:
    """Score texts by the words of questions as linkstore does: the best text of a question has 1."""
    counts = [Counter(extract_terms(text)) for text in texts]
    lengths = np.array([counted.total() for counted in counts], np.float64)
    having: dict[str, dict[int, int]] = defaultdict(dict)
    for row, counted in enumerate(counts):
        for term, count in counted.items():
            having[term][row] = count
    scores = np.zeros((len(questions), len(texts)), np.float32)
    for at, question in enumerate(questions):
        for term in extract_question_terms(question)[0]:
            rows = np.array([*having.get(term, ())], np.intp)
            weights = bm25_weight(
                np.array([*having.get(term, {}).values()], np.float64), lengths[rows], lengths.mean()
            )
            scores[at, rows] += inverse_frequency(len(texts), len(rows)) * weights
    return scores / np.maximum(scores.max(axis=1, keepdims=True), 1e-9)


def _share(scores: Floats, gold: Sequence[int]) -> list[float]:
    """The share of questions whose text is among the first, in %."""
    ranks = (scores > scores[np.arange(len(gold)), gold][:, None]).sum(axis=1)
    return [100 * float(np.mean(ranks < among)) for among in AMONG]


if __name__ == "__main__":
    main()
