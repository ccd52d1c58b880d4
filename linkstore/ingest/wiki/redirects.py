"""The redirects of a dump, in a temporary table on disk: any number of them takes constant memory."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from linkstore.ingest.wiki.anchors import anchor

MOST_ALIASES: Final = 10_000
"""Maximum number of redirects to one page; further ones are left out."""

# $magicWords of MediaWiki's larger languages.
_REDIRECT_WORDS: Final = """
    redirect weiterleitung redirection redirección redirecionamento rinvia doorverwijzing patrz przekieruj tam
    przekierowanie перенаправление перенапр перенаправлення ohjaus uudelleenohjaus omdirigering omdiriger
    videresending přesměruj átirányítás yönlendirme alih lencong đổi 転送 リダイレクト 넘겨주기
    重定向 تحويل הפניה
"""
_WORDS: Final = frozenset(_REDIRECT_WORDS.split())
_WORD: Final = re.compile(r"\s*#([^\W\d_]+)\s*:?\s*\[\[")
_PLACE: Final = re.compile(r"\[\[([^\[\]|{}<>\n]{1,1000})")

# Redirects to redirects are followed; a circle ends, as UNION keeps no row twice. What is nearest to the
# page determines the section.
_ALIASES: Final = f"""
    WITH RECURSIVE alias (title, section) AS (
        SELECT title, section FROM redirect WHERE target = ?1
        UNION
        SELECT redirect.title, iif(alias.section = '', redirect.section, alias.section)
        FROM alias JOIN redirect ON redirect.target = alias.title
        LIMIT {MOST_ALIASES}
    )
    SELECT title, min(section) FROM alias WHERE title <> ?1 GROUP BY title ORDER BY title
"""


@dataclass(frozen=True, slots=True)
class Alias:
    """Another title of a page.

    Args:
        title: The redirect's title.
        section: The anchor of the section it leads to; empty for the page.
    """

    title: str
    section: str = ""


class Redirects:
    """Which titles lead to a page.

    Args:
        found: Title, target and section (empty for none) of each redirect.
    """

    def __init__(self, found: Iterable[tuple[str, str, str]]) -> None:
        # An empty name gives a private file, which SQLite removes when the connection is closed.
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.execute("PRAGMA journal_mode = OFF")
        self._table.execute("CREATE TABLE redirect (title TEXT, target TEXT, section TEXT)")
        self._table.execute("BEGIN")
        self._table.executemany("INSERT INTO redirect VALUES (?, ?, ?)", found)
        self._table.execute("COMMIT")
        self._table.execute("CREATE INDEX by_target ON redirect (target, title, section)")

    def __len__(self) -> int:
        count: int = self._table.execute("SELECT count(*) FROM redirect").fetchone()[0]
        return count

    def aliases(self, title: str) -> tuple[Alias, ...]:
        """Return the redirects that end at a page, through others too, by title."""
        return tuple(Alias(*row) for row in self._table.execute(_ALIASES, (title,)))

    def close(self) -> None:
        """Remove the table."""
        self._table.close()


def is_redirect(text: str) -> bool:
    """Say whether a page's text makes it a redirect. Newer dumps say so beside the text."""
    word = _WORD.match(text)
    return word is not None and word[1].casefold() in _WORDS


def target_of(text: str) -> tuple[str, str]:
    """Return the title that a redirect's text names, as written, and the section's anchor, empty for none."""
    place = _PLACE.search(text)
    title, _, section = place[1].partition("#") if place else ("", "", "")
    return " ".join(title.replace("_", " ").split()).removeprefix(":"), anchor(section)
