"""Questions within German, Japanese, Russian and Chinese, and from these into English, on Debian's manuals.

Run: ``python benchmarks/languages.py --packages FOLDER``, with ``apt-get`` and ``dpkg-deb``; FOLDER keeps what
was downloaded. Debian's handbook, installation guide, FAQ, developer's reference and reference have the same
pages in all languages. A question is a heading that only one section has, and that is translated; gold is its
section. Within a language, sections are without their headings, so a heading does not find itself; into English
they have them, and the same questions in English are asked too.

For words, for each embedding, and for both with the weight of words that linkstore uses: the share of questions
whose section is among the first 1 / 5 / 10.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from _report import add_output, listed
from bs4 import BeautifulSoup, NavigableString, Tag
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.embeddings.encoder import Encoder
from linkstore.embeddings.names import LEXICAL_WEIGHT, get_encoder
from linkstore.strategies import PageRank, Similarity, Words

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
}
ABSENT: Final = {("reference", "ru"), ("developers", "zh")}
"""Manuals that a language has no package of."""
_NUMBER: Final = re.compile(
    r"^(?:\W*[0-9A-Z]{1,3}(?:\.\d+)*\.?\s+|(?:Kapitel|Chapter|Глава|Anhang|Appendix|第|付録|附录)\s*[\w.]+\s*[章部]?[.:\uff0e]?\s*)"
)
_LETTERS: Final = {"ja": r"[\u3040-\u9fff]", "zh": r"[\u4e00-\u9fff]", "ru": r"[\u0400-\u04ff]"}
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
    add_output(parser)
    options = parser.parse_args()
    english = list(read_sections(ENGLISH, options.packages))
    rows = [
        row
        for language in options.languages.split(",")
        for row in _measure(language, english, options.packages, options.embeddings.split(","))
    ]
    title = "Sections of Debian's manuals found by their headings, %"
    listed(title, rows, as_json=options.json, record_as=options.record)


def read_sections(language: str, packages: Path) -> Iterator[Section]:
    """Yield the sections of all manuals in a language."""
    for manual, (package, pages) in PLACES.items():
        if (manual, language) not in ABSENT:
            root = _unpack(package.format(**LANGUAGES[language]), packages)
            for page in sorted(root.glob(pages.format(**LANGUAGES[language]))):
                yield from _read_page(page, f"{manual}/{page.name.partition('.')[0]}")


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
    letters = re.compile(_LETTERS.get(language, r"\w\W+\w"))
    chosen = [
        row
        for row, (place, heading, _) in enumerate(sections)
        if said[heading] == 1 and known.get(place) != heading and letters.search(heading) and len(heading) > 4
    ]
    random.Random(SEED).shuffle(chosen)
    return chosen[:ASKED]


def _measure(
    language: str, english: Sequence[Section], packages: Path, embeddings: Sequence[str]
) -> Iterator[dict[str, Any]]:
    sections = english if language == ENGLISH else list(read_sections(language, packages))
    chosen = choose_questions(language, sections, english)
    asked = [(sections[row].heading, sections[row].place) for row in chosen]
    bodies = {section.place: section.body for section in sections}
    wholes = {section.place: f"{section.heading}\n\n{section.body}" for section in english}
    in_english = {section.place: section.heading for section in english}
    shared = [(heading, place) for heading, place in asked if place in wholes]
    for name in embeddings:
        encoder = get_encoder(name)
        begun = time.process_time()
        shares = _ask(bodies, encoder, asked, ("words", "similarity", "both"))
        spent = (time.process_time() - begun) / len(bodies) * 1e3
        row = {"language, embedding": f"{language}, {name}", "sections": len(bodies), "questions": len(asked)}
        across = _ask(wholes, encoder, shared, ("similarity",))
        same = _ask(wholes, encoder, [(in_english[place], place) for _, place in shared], ("similarity",))
        across |= {"the same in English": same["similarity"]}
        yield row | shares | {"into English": across.pop("similarity")} | across | {"CPU ms a section": spent}


def _ask(
    texts: dict[str, str], encoder: Encoder, asked: Sequence[tuple[str, str]], ways: Sequence[str]
) -> dict[str, list[float]]:
    """The share of questions whose section is among the first, in %, for each way."""
    both = PageRank(depth=0, lexical=LEXICAL_WEIGHT.get(encoder.name, 1.0))
    strategies = {"words": Words(), "similarity": Similarity(), "both": both}
    with LinkStore.open(":memory:", encoder) as store:
        store.add_documents([Document(id=place, page_content=text) for place, text in texts.items()])
        shares = {}
        for way in ways:
            strategy = strategies[way].with_k(max(AMONG))
            found = [[hit.document.id for hit in store.search(text, strategy=strategy)] for text, _ in asked]
            ranks = [
                ids.index(gold) if gold in ids else max(AMONG)
                for ids, (_, gold) in zip(found, asked, strict=True)
            ]
            shares[way] = [100 * float(np.mean(np.array(ranks) < among)) for among in AMONG]
        return shares


if __name__ == "__main__":
    main()
