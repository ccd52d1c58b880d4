"""Candidates for questions, taken from the pages of manuals by three rules.

``faq``: an entry of a page of questions, whose answer links to other pages of the manual; gold is where the
links lead. ``see``: a need with the page that serves it, as in "To do this, see that"; gold is where the link
leads. ``heading``: a heading outside of such pages that asks something or begins with "How to"; gold is its
section.
What the rules let through was read, and only what is in ``questions.jsonl`` counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag
from hyperdocs.manuals import Manual, list_pages

HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6", "dt")
CONTROLS: Final = frozenset({"form", "input", "select", "button"})
"""Ids of these name no section."""
MOST_GOLD: Final = 4
"""An answer with more targets is a list of pages."""
FEWEST_WORDS: Final = 3
FEWEST_LETTERS: Final = 8
"""In scripts without spaces between words."""
ASKING: Final = ("?", "\uff1f")
_CHROME_TAGS: Final = frozenset({"nav", "header", "footer", "script", "style"})
_CHROME_CLASSES: Final = frozenset(
    {"navheader", "navfooter", "sphinxsidebar", "related", "headerlink", "header", "toc", "contents"}
)
_TURN: Final = re.compile(r"(?i)^\W*(next|prev(ious)?|up|home|index|contents|top|back|search)\W*$")
_HOW: Final = re.compile(r"(?i)^how (to|do|does|can|should)\b")
_NUMBER: Final = re.compile(r"^\W*(?:[QA]?\d+(?:\.\d+)*|\(\d+\))[.):]?\s+")
_MARK: Final = re.compile(r"\x02(\d+)\x03")
_NEED: Final = r"(?P<need>[^.:;()\x02\x03]{12,140}?)"
_VERB: Final = r"(?:please\s+)?(?:see|refer to|consult|read|look at)"
_SEE: Final = (
    re.compile(rf"(?:^|[.;(]\s+)(?:For|To)\s+{_NEED},?\s+{_VERB}\b[^.\x02]{{0,50}}\x02(?P<link>\d+)\x03"),
    re.compile(
        rf"(?:^|[.;(]\s+){_VERB}\s[^.\x02]{{0,40}}\x02(?P<link>\d+)\x03[^\x02]*?\x04[^.\x02]{{0,25}}?\s"
        rf"(?:for|to learn|to find out)\s+{_NEED}(?=[.;)]|$)",
        re.IGNORECASE,
    ),
)
_VAGUE: Final = re.compile(
    r"(?i)^(?:a |an |the |some )?(?:(?:more|further|additional|full|complete|detailed|other|general|specific"
    r"|much|background|in-depth)\s+)*(?:information|details?|explanations?|descriptions?|discussions?|documentation|list|specifics"
    r"|overview|instructions?|examples?|background|help|notes?|advice|out more|about|learn more|find out)"
    r"\s*(?:on|about|of|regarding|concerning|for|as to)?\s+"
)
_POINTING: Final = re.compile(
    r"(?i)\b(this|these|those|above|below|here|it|them|such|following|previous|next|section|chapter|page)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A question with its gold.

    Args:
        manual: The name of the manual.
        rule: The rule that took it.
        page: Where it stands, and
        anchor: the last anchor before it.
        question: The text.
        gold: Where the answer is, as ``page#anchor`` or ``page`` below the root.
    """

    manual: str
    rule: str
    page: str
    anchor: str
    question: str
    gold: tuple[str, ...]

    @property
    def key(self) -> str:
        """What is committed in the place of the text: the first digits of its SHA-256."""
        said = f"{self.manual}\n{self.page}\n{self.question}"
        return hashlib.sha256(said.encode()).hexdigest()[:12]


def find_candidates(manual: Manual, root: Path, whole: Manual | None = None) -> Iterator[Candidate]:
    """Take the candidates from the pages of a manual, each question of a page once.

    Args:
        manual: The manual, or some pages of it.
        root: Where its pages are.
        whole: The manual with all pages that links may lead to, if ``manual`` has only some.
    """
    pages = {path.relative_to(root).as_posix(): path for path in list_pages(whole or manual, root)}
    asked = {path.relative_to(root).as_posix() for pattern in manual.faq for path in root.glob(pattern)}
    for path in list_pages(manual, root):
        name = path.relative_to(root).as_posix()
        soup = BeautifulSoup(path.read_bytes(), "html.parser")
        for chrome in [*soup.find_all(_is_chrome)]:
            chrome.decompose()
        if name in asked:
            found = list(_find_entries(manual, name, soup, pages))
        else:
            found = [*_find_headings(manual, name, soup), *_find_needs(manual, name, soup, pages)]
        yield from {one.key: one for one in reversed(found)}.values()


def _is_chrome(tag: Tag) -> bool:
    classes = {str(one).lower() for one in tag.get("class") or ()}
    return tag.name in _CHROME_TAGS or not _CHROME_CLASSES.isdisjoint(classes)


def _find_entries(
    manual: Manual, name: str, soup: BeautifulSoup, pages: dict[str, Path]
) -> Iterator[Candidate]:
    """The entries of a page of questions."""
    entries = [tag for tag in soup.find_all([*HEADINGS, "b", "strong"]) if _text(tag).endswith(ASKING)]
    for tag, after in zip(entries, [*entries[1:], None], strict=False):
        targets: dict[str, None] = {}
        for link in tag.find_all_next("a", href=True):
            if after is not None and _is_behind(after, link):
                break
            if not _is_in(link, tag) and (target := _resolve(name, link, pages)):
                targets[target] = None
        said = [one for one in targets if not one.endswith("index.html")]  # a whole manual says little
        if 1 <= len(said) <= MOST_GOLD:
            yield _make(manual, "faq", name, tag, _text(tag), tuple(said))


def _find_headings(manual: Manual, name: str, soup: BeautifulSoup) -> Iterator[Candidate]:
    """Headings that ask something."""
    for tag in soup.find_all(HEADINGS[:6]):
        said = _text(tag)
        enough = len(said.split()) >= FEWEST_WORDS or (not said.isascii() and len(said) >= FEWEST_LETTERS)
        if enough and (said.endswith(ASKING) or _HOW.match(said)):
            anchor = _find_anchor(tag, near=True)
            yield _make(manual, "heading", name, tag, said, (f"{name}#{anchor}" if anchor else name,))


def _find_needs(
    manual: Manual, name: str, soup: BeautifulSoup, pages: dict[str, Path]
) -> Iterator[Candidate]:
    """Needs, each with a link that serves it."""
    for tag in soup.find_all(["p", "li", "dd", "td"]):
        if tag.find(["p", "li", "dd", "table"]) or not (links := tag.find_all("a", href=True)):
            continue
        said = _mark_links(tag)
        for pattern in _SEE:
            for match in pattern.finditer(said):
                need = _VAGUE.sub("", " ".join(match["need"].replace("\x04", "").split()))
                target = _resolve(name, links[int(match["link"])], pages)
                if target and len(need.split()) >= FEWEST_WORDS and not _POINTING.search(need):
                    yield _make(manual, "see", name, tag, need, (target,))


def _mark_links(tag: Tag) -> str:
    """The text, in which each link begins with its number between two marks and ends with a third."""
    pieces, at = [], {id(link): number for number, link in enumerate(tag.find_all("a", href=True))}
    for piece in tag.descendants:
        if isinstance(piece, Tag):
            continue
        link = next((one for one in piece.parents if id(one) in at), None)
        first = link is not None and next(iter(link.strings), None) is piece
        pieces.append(f"\x02{at[id(link)]}\x03{piece}\x04" if first else str(piece))
    return " ".join("".join(pieces).split())


def _make(manual: Manual, rule: str, name: str, tag: Tag, question: str, gold: tuple[str, ...]) -> Candidate:
    anchor = _find_anchor(tag)
    return Candidate(manual=manual.name, rule=rule, page=name, anchor=anchor, question=question, gold=gold)


def _text(tag: Tag) -> str:
    return _NUMBER.sub("", " ".join(tag.get_text().replace("¶", "").split()))


def _is_in(tag: Tag, outer: Tag) -> bool:
    return any(one is outer for one in tag.parents)


def _is_behind(mark: Tag, link: Tag) -> bool:
    """Whether a link is in or behind a tag."""
    places = [(one.sourceline or 0, one.sourcepos or 0) for one in (mark, link)]
    return _is_in(link, mark) or places[1] > places[0]


def _find_anchor(tag: Tag, *, near: bool = False) -> str:
    """The anchor of a tag, or the last one before it; "" without one.

    Args:
        tag: The tag.
        near: Whether the section's own anchor is wanted: in or around the heading, or directly before it.
    """
    for one in (tag, *tag.find_all(["a", "span"]), *([tag.parent] if tag.parent is not None else [])):
        if found := one.get("id") or (one.get("name") if one.name == "a" else None):
            return str(found)
    before = tag.find_previous(
        lambda one: one.name not in CONTROLS and (one.get("id") or (one.name == "a" and one.get("name")))
    )
    if before is None or (near and before.find_next(HEADINGS) is not tag):
        return ""
    return str(before.get("id") or before.get("name"))


def _resolve(name: str, link: Tag, pages: dict[str, Path]) -> str | None:
    """Where a link leads, if that is another page of the manual."""
    if _TURN.match(link.get_text()) or link.find("img"):
        return None
    parts = urlsplit(str(link["href"]))
    if parts.scheme or parts.netloc or not parts.path:
        return None
    folders = name.split("/")[:-1]
    for step in unquote(parts.path).split("/"):
        if step == "..":
            if not folders:
                return None
            folders.pop()
        elif step not in {"", "."}:
            folders.append(step)
    target = "/".join(folders)
    target = f"{target}/index.html".lstrip("/") if target not in pages else target
    if target not in pages or target == name or target.endswith(("genindex.html", "search.html")):
        return None
    fragment = unquote(parts.fragment)
    return f"{target}#{fragment}" if fragment else target
