"""The text of ``[[File:…]]``: its caption, if readers see one."""

from __future__ import annotations

import re
from typing import Final

_BESIDE_WORDS: Final = """
    thumb thumbnail frame framed mini miniatur gerahmt vignette cadre miniatura miniaturadeimagen marco
    miniaturadaimagem sinistra destra мини миниатюра обрамить мініатюра miniatyr ram サムネイル 缩略图 縮圖
"""
_BESIDE: Final = frozenset(_BESIDE_WORDS.split())
"""Options by which a file stands beside the text, in MediaWiki's commoner languages."""

_OPTION_WORDS: Final = """
    frameless border left right center centre none upright baseline middle sub super text-top text-bottom top
    bottom rahmenlos rand links rechts zentriert ohne hochkant gauche droite centré néant redresse izquierda
    derecha centro no справа слева центр
"""
_OPTIONS: Final = _BESIDE | frozenset(_OPTION_WORDS.split())
_LONGEST_OPTION: Final = 24
_SETTING: Final = re.compile(
    r"\s*(?:[^\W\d]+\s*=.*|[\d.]*\s*x?\s*[\d.]*\s*px\s*|upright\s+[\d.]+\s*)", re.DOTALL
)


def caption(parts: list[str]) -> str:
    """Return the caption that readers see, empty if there is none.

    Args:
        parts: What stands in the brackets behind the file's name, divided at each ``|``.
    """
    text, beside = "", False
    for part in reversed(parts):
        part = part.strip()
        word = part.lower() if len(part) < _LONGEST_OPTION else ""
        if word in _BESIDE or word.startswith("thumb"):
            beside = True
        elif not text and not _is_option(part, word):
            text = part
    return text if beside else ""


def gallery_captions(text: str) -> list[str]:
    """Return the captions of a gallery, which has a file on each line, none for those without."""
    captions = []
    for line in text.split("\n"):
        _, _, rest = line.partition("|")
        parts = [part for part in rest.split("|") if not _SETTING.fullmatch(part)]
        captions.append(parts[-1].strip() if parts else "")
    return [caption for caption in captions if caption]


def _is_option(part: str, word: str) -> bool:
    return not part or word in _OPTIONS or (_may_set(part) and bool(_SETTING.fullmatch(part)))


def _may_set(part: str) -> bool:
    return "=" in part[:_LONGEST_OPTION] or part.endswith("px")
