"""A wiki's name, address and namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MAIN: Final = 0
SPECIAL: Final = -1
MEDIA: Final = -2
FILE: Final = 6
CATEGORY: Final = 14

_CANONICAL: Final = {
    MEDIA: "Media",
    SPECIAL: "Special",
    1: "Talk",
    2: "User",
    3: "User talk",
    4: "Project",
    5: "Project talk",
    FILE: "File",
    7: "File talk",
    8: "MediaWiki",
    9: "MediaWiki talk",
    10: "Template",
    11: "Template talk",
    12: "Help",
    13: "Help talk",
    CATEGORY: "Category",
    15: "Category talk",
}
"""Names that every wiki understands, whatever its language."""

_EVERYWHERE: Final = {"image": FILE, "image talk": 7}
_WIKIPEDIA: Final = {"wp": 4, "wt": 5}

# Further names of File and Category in MediaWiki's message files ($namespaceAliases); dumps leave them out.
_ALIASES: Final = {
    "cs": {"soubor": FILE},
    "da": {"billede": FILE},
    "de": {"bild": FILE},
    "es": {"imagen": FILE},
    "fi": {"kuva": FILE},
    "fr": {"image": FILE},
    "hu": {"kép": FILE},
    "it": {"immagine": FILE},
    "ja": {"画像": FILE, "ファイル": FILE},
    "ko": {"그림": FILE},
    "nb": {"bilde": FILE},
    "nl": {"afbeelding": FILE},
    "no": {"bilde": FILE},
    "pl": {"grafika": FILE},
    "pt": {"imagem": FILE},
    "ru": {"изображение": FILE},
    "sv": {"bild": FILE},
    "tr": {"resim": FILE},
    "uk": {"зображення": FILE},
    "zh": {"图像": FILE, "圖像": FILE, "文件": FILE, "檔案": FILE, "分类": CATEGORY, "分類": CATEGORY},
}

_PROJECTS: Final = (
    "wikipedia wiktionary wikibooks wikinews wikiquote wikisource wikiversity wikivoyage wikimedia wikidata"
    " mediawiki wikifunctions"
)
WIKIMEDIA: Final = frozenset(_PROJECTS.split())
"""Second-level domains of the Wikimedia wikis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A namespace of a wiki.

    Args:
        number: Its number; 0 is that of articles.
        name: Its local name; empty for articles.
        first_letter: Whether a title's first letter is a capital whatever its author writes.
    """

    number: int
    name: str
    first_letter: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteInfo:
    """The information about the wiki in a dump.

    Args:
        name: The wiki's name.
        database: Its short name, such as ``"enwiki"``.
        base: The URL of its main page.
        language: Its language code.
        first_letter: As for namespaces, for those that the dump does not list.
        namespaces: By number.
    """

    name: str = ""
    database: str = ""
    base: str = ""
    language: str = ""
    first_letter: bool = True
    namespaces: Mapping[int, Namespace] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The wiki's host name, empty if the dump does not say."""
        return self.base.partition("://")[2].partition("/")[0].lower()

    @property
    def is_wikimedia(self) -> bool:
        """Whether the wiki is one of Wikimedia's, with their interwiki prefixes."""
        return bool(WIKIMEDIA & set(self.host.split(".")[-2:-1]))

    @property
    def folder(self) -> str | None:
        """The URL that a page's title is put behind, None if the dump names no main page."""
        address, query, _ = self.base.partition("?")
        if "://" not in address:
            return None
        if query:  # index.php?title=Main_Page, which index.php/Main_Page is another address of
            return f"{address.rstrip('/')}/"
        return f"{address.rpartition('/')[0]}/" if self.host != address.partition("://")[2] else f"{address}/"

    def named_namespaces(self) -> dict[int, Namespace]:
        """Return all namespaces by number: those of the dump, and those that every wiki has."""
        known = {
            number: Namespace(number=number, name=name, first_letter=self.first_letter)
            for number, name in {MAIN: "", **_CANONICAL}.items()
        }
        return {**known, **self.namespaces}

    def prefixes(self) -> dict[str, int]:
        """Return the numbers of namespaces by all names that links may use, folded."""
        known = {name.casefold(): number for number, name in _CANONICAL.items()} | _EVERYWHERE
        known |= _ALIASES.get(self.language.partition("-")[0], {})
        if ".wikipedia." in f".{self.host}":
            known |= _WIKIPEDIA
        return known | {one.name.casefold(): one.number for one in self.namespaces.values() if one.name}
