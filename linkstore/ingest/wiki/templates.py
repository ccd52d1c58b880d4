"""The text of well-known templates; other templates yield only their links to pages.

Templates are programs of the wiki, and a dump of its articles does not contain them. Those that most wikis
use within sentences have rules here, each a row of a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from linkstore.ingest.wiki.citations import citation, identifier, is_citation, may_cite, title_of
from linkstore.ingest.wiki.marks import BREAK, GONE, PIPE, SHIELD, marks_in, shown

_NAMED: Final = re.compile(r"\s*([\w][\w -]{0,40}?)\s*=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mention:
    """A link that a template makes.

    Args:
        target: What it names; a URL if ``external``.
        label: What it shows.
        external: Whether it leads out of the wiki.
    """

    target: str
    label: str
    external: bool = False


VISIBLE_ANCHORS: Final = frozenset({"vanchor", "visible anchor"})
ANCHORS: Final = VISIBLE_ANCHORS | {"anchor", "anchors", "anker", "ancre", "ancla"}
"""Templates whose arguments are anchors; of some the first one is shown too."""

Rendered = str | tuple[str | Mention, ...]
"""The visible content of a template: text, or text and links in order."""


@dataclass(frozen=True, slots=True)
class Call:
    """A template with its arguments.

    Args:
        name: In lower case, with single spaces.
        values: The positional arguments.
        fields: The named ones, by name in lower case.
    """

    name: str
    values: tuple[str, ...]
    fields: Mapping[str, str]

    def value(self, number: int) -> str:
        """Return a positional argument, from 1, empty if it is not there."""
        if number <= len(self.values):
            return self.values[number - 1].strip()
        return self.fields.get(str(number), "")

    def texts(self) -> Iterator[str]:
        """Yield the positional arguments as plain text, leaving out empty ones."""
        return (text for value in self.values if (text := shown(value)))

    @classmethod
    def read(cls, parts: list[str]) -> Call:
        """Read the text between the braces, divided at each ``|``."""
        values: list[str] = []
        fields: dict[str, str] = {}
        for part in parts[1:]:
            named = _NAMED.match(part) if "=" in part else None
            if named is None:
                values.append(part)
            elif value := named[2].strip():
                fields[named[1].lower()] = value
        return cls(called(parts[0]), tuple(values), fields)


def called(written: str) -> str:
    """Return a template's name as the tables have it."""
    return " ".join(written.replace("_", " ").lower().split())


def render(parts: list[str], page: str) -> Rendered:
    """Return the visible content of a template.

    Args:
        parts: What stands between its braces, divided at each ``|``.
        page: The title of the page it stands in.
    """
    name = called(parts[0])
    rule = _RULES.get(name)
    if rule is not None:
        return rule(Call.read(parts))
    if name == "pagename":
        return page
    if ":" in name:
        return _function(parts)
    return _by_name(name, parts)


def kept(text: str, parts: list[str]) -> str:
    """Return the visible content of a template, with all links and anchors of its arguments."""
    marks = marks_in("".join(parts))
    if not marks:
        return text
    inside = marks_in(text)
    if len(inside) <= len(marks):
        return marks[: len(marks) - len(inside)] + text
    return marks


def _by_name(name: str, parts: list[str]) -> Rendered:
    if name.startswith("lang-"):
        return Call.read(parts).value(1)
    if len(parts) == 1 or name.startswith(("infobox", "sfn", "harv")):
        return GONE
    if may_cite(name, "|".join(parts).lower()):
        call = Call.read(parts)
        if is_citation(name, call.fields):
            return _citation(call)
    return identifier(name, shown(parts[1])) or GONE


def _function(parts: list[str]) -> str:
    """Return the text of a parser function, which is known for a few of them."""
    name, _, value = parts[0].partition(":")
    return value.strip() if name.strip().lower() in _TEXT_FUNCTIONS else GONE


def _citation(call: Call) -> Rendered:
    text = shown(citation(call.fields)) or GONE
    url = shown(call.fields.get("url") or call.fields.get("chapter-url") or "")
    if "://" not in url or " " in url:
        return text
    return (text, Mention(url, shown(title_of(call.fields)), external=True))


def _nth(number: int) -> Callable[[Call], str]:
    return lambda call: call.value(number)


def _last(call: Call) -> str:
    return call.values[-1].strip() if call.values else ""


def _constant(text: str) -> Callable[[Call], str]:
    return lambda _: text


def _joined(separator: str) -> Callable[[Call], str]:
    return lambda call: separator.join(value.strip() for value in call.values if value.strip())


def _led(words: str) -> Callable[[Call], str]:
    return lambda call: f"{words}{call.value(1)}"


def _quotation(call: Call) -> str:
    text = call.fields.get("text") or call.fields.get("quote") or call.fields.get("content") or call.value(1)
    return f"\n\n{text}\n\n" if text else ""


def _listed(call: Call) -> str:
    items = [value.strip() for value in call.values if value.strip()]
    marked = (item if item.startswith("*") else f"* {item}" for item in items)
    return "\n{}\n".format("\n".join(marked))


def _columns(call: Call) -> str:
    return "\n{}\n".format(call.fields.get("content") or max(call.values, key=len, default=""))


def _measure(call: Call) -> str:
    unit = 4 if call.value(2) in {"to", "-", "\u2013", "and", "by", "x", "or"} else 2
    return " ".join(filter(None, (call.value(number) for number in range(1, unit + 1))))


def _number(call: Call) -> str:
    return " ".join(filter(None, (call.value(1), call.fields.get("u") or call.fields.get("ul") or "")))


def _fraction(call: Call) -> str:
    shown_values = [value.strip() for value in call.values[:3] if value.strip()]
    if len(shown_values) == 3:
        return f"{shown_values[0]} {shown_values[1]}/{shown_values[2]}"
    return f"1/{shown_values[0]}" if len(shown_values) == 1 else "/".join(shown_values)


def _date(call: Call) -> str:
    numbers = [value.strip() for value in call.values[:3] if value.strip().lstrip("-").isdecimal()]
    return "-".join(number.zfill(2) for number in numbers) if numbers else call.value(1)


def _two_dates(call: Call) -> str:
    return _date(Call(call.name, call.values[:3], {}))


def _nihongo(call: Call) -> str:
    inside = ", ".join(filter(None, (call.value(2), call.value(3))))
    return f"{call.value(1)} ({inside})" if inside else call.value(1)


def _url(call: Call) -> Rendered:
    url = shown(call.value(1))
    label = shown(call.value(2)) or url
    full = url if "://" in url else f"https://{url}"
    return (Mention(full, label, external=True),) if url and " " not in url else label


def _hatnote(words: str) -> Callable[[Call], Rendered]:
    def render_hatnote(call: Call) -> Rendered:
        pieces: list[str | Mention] = []
        for number, target in enumerate(call.texts(), start=1):
            own = call.fields.get(f"l{number}") or call.fields.get(f"label {number}")
            label = shown(own) if own else target.replace("#", " \u00a7 ")
            pieces += (", " if pieces else words, Mention(target, label))
        return (SHIELD, *pieces, BREAK) if pieces else ""

    return render_hatnote


def _interlanguage(call: Call) -> Rendered:
    title = shown(call.value(1))
    label = shown(call.fields.get("lt", "")) or title
    return (Mention(title, label),) if title else ""


def _section(call: Call) -> Rendered:
    page, section = shown(call.value(1)), shown(call.value(2))
    return (Mention(f"{page}#{section}", f"{page} \u00a7 {section}"),) if section else page


def _sorted_name(call: Call) -> Rendered:
    name = f"{shown(call.value(1))} {shown(call.value(2))}".strip()
    if call.fields.get("nolink") or not name:
        return name
    return (Mention(shown(call.value(3)) or call.fields.get("dab", "") or name, name),)


_FIRST = """
    abbr abbrlink angbr angle_bracket big blue bold bracket code fontcolor gloss ipa italic kbd
    keypress linktext math mono monospace mvar nobold nobr noitalic nowrap nowrap1 oldstyle pre red
    samp sc script serif sic small smallcaps smaller smallsup strikethrough strong tooltip tt underline
    unicode var keyboard_press not_a_typo typo not_typo larger resize em
    block_indent flag flagcountry flagu sup sub su polytonic hebrew okina_word native_phrase wikt-lang
    large noflag country_flag chem chem2 music
"""
_SECOND = "lang transl_text wikt-lang langx font color native_name rtl-lang ruby_text"
_QUOTES = (
    "quote quotation blockquote bquote cquote rquote quote_box quotebox centered_pull_quote pull_quote verse"
)
_DATES = (
    "birth_date birth_date_and_age birth-date bda start_date start_date_and_age end_date film_date dob dts"
    " date release_date birth_year_and_age"
)
_TEXT_FUNCTIONS: Final = frozenset({"formatnum", "lc", "uc", "lcfirst", "ucfirst", "urlencode"})


def _named(names: str) -> list[str]:
    return [name.replace("_", " ") for name in names.split()]


_RULES: Final[dict[str, Callable[[Call], Rendered]]] = {
    **dict.fromkeys(_named(_FIRST), _nth(1)),
    **dict.fromkeys(_named(_SECOND), _nth(2)),
    **dict.fromkeys(_named(_QUOTES), _quotation),
    **dict.fromkeys(_named(_DATES), _date),
    **dict.fromkeys(_named("death_date death_date_and_age death-date dda"), _two_dates),
    **dict.fromkeys(_named("transl transliteration"), _last),
    **dict.fromkeys(_named("convert cvt"), _measure),
    **dict.fromkeys(_named("val num"), _number),
    **dict.fromkeys(_named("frac fraction sfrac"), _fraction),
    **dict.fromkeys(_named("nihongo nihongo2 nihongo3"), _nihongo),
    **dict.fromkeys(_named("plainlist plain_list flatlist flat_list"), _columns),
    **dict.fromkeys(_named("columns-list columns colbegin div_col multicol col-list"), _columns),
    **dict.fromkeys(_named("hlist"), _joined(", ")),
    **dict.fromkeys(_named("ubl unbulleted_list bulleted_list bulletedlist"), _listed),
    **dict.fromkeys(_named("circa c. ca."), _led("c. ")),
    **dict.fromkeys(_named("url official_url official_website"), _url),
    **dict.fromkeys(_named("main main_article mainarticle"), _hatnote("Main article: ")),
    **dict.fromkeys(_named("hauptartikel"), _hatnote("Hauptartikel: ")),
    **dict.fromkeys(_named("siehe_auch"), _hatnote("Siehe auch: ")),
    **dict.fromkeys(_named("article_principal article_détaillé"), _hatnote("Article principal : ")),
    **dict.fromkeys(_named("voir_aussi article_connexe"), _hatnote("Voir aussi : ")),
    **dict.fromkeys(_named("artículo_principal principal ap"), _hatnote("Artículo principal: ")),
    **dict.fromkeys(_named("véase_también vt véase"), _hatnote("Véase también: ")),
    **dict.fromkeys(_named("vedi_anche"), _hatnote("Vedi anche: ")),
    **dict.fromkeys(_named("hoofdartikel zie_hoofdartikel"), _hatnote("Hoofdartikel: ")),
    **dict.fromkeys(_named("artigo_principal ver_artigo_principal"), _hatnote("Artigo principal: ")),
    **dict.fromkeys(_named("see_also seealso also"), _hatnote("See also: ")),
    **dict.fromkeys(_named("further details further_information"), _hatnote("Further information: ")),
    **dict.fromkeys(_named("ill interlanguage_link link-interwiki"), _interlanguage),
    **dict.fromkeys(_named("section_link slink section"), _section),
    **dict.fromkeys(_named("sortname sort_name"), _sorted_name),
    **dict.fromkeys(_named("as_of as_of?"), _led("As of ")),
    **dict.fromkeys(_named("nbsp space spaces nnbsp thinsp thin_space"), _constant(" ")),
    **dict.fromkeys(_named("ndash en_dash"), _constant("\u2013")),
    **dict.fromkeys(_named("mdash em_dash"), _constant("\u2014")),
    **dict.fromkeys(_named("spaced_ndash snd spnd spaced_en_dash \u2013"), _constant(" \u2013 ")),
    **dict.fromkeys(_named("snds spaced_mdash snd. \u2014"), _constant(" \u2014 ")),
    **dict.fromkeys(_named("\u00b7 dot middot \u2022 bull bullet"), _constant(" \u00b7 ")),
    **dict.fromkeys(_named("br break clear -"), _constant(BREAK)),
    **dict.fromkeys(_named("' apos"), _constant("\u2019")),
    "!": _constant("|"),
    "!!": _constant("||"),
    "!-": _constant("|-"),
    "(!": _constant("{|"),
    "!)": _constant("|}"),
    "=": _constant("="),
    "pipe": _constant(SHIELD + PIPE),
    "okina": _constant("\u02bb"),
    "shy": _constant(""),
}
