"""The text of well-known templates and of citations; other templates yield only their links.

An extractor recognizes cited works by the text of citations. Templates are programs of the wiki, and a dump
of its articles does not contain them. Those that most wikis use within sentences have rules here, each a row
of a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from linkstore.ingest.wiki.layout import BREAK, GONE, PIPE, SHIELD, extract_marks, render_text
from linkstore.ingest.wiki.titles import NAMES, split_names

_NAMES: Final = re.compile(
    r"(?:cite|vcite|cita|citar|ref) (?!needed\b|check\b|quote\b)\w"
    r"|(?:cite|citation|literatur|internetquelle|ouvrage)$"
)
_MOST_AUTHORS: Final = 3
_YEAR: Final = re.compile(r"\b(?:1[5-9]|20)\d\d[a-z]?\b")

_CITATIONS: Final = NAMES["citations"]
_AUTHOR, _TITLE, _DATE, _WITHIN = (
    tuple(_CITATIONS[part].split()) for part in ("author", "title", "date", "within")
)
_NUMBERED_AUTHORS: Final = (
    (("last", "last1", "surname", "surname1", "author1"), ("first", "first1", "given", "given1")),
    *(
        ((f"last{number}", f"surname{number}", f"author{number}"), (f"first{number}", f"given{number}"))
        for number in range(2, _MOST_AUTHORS + 2)
    ),
)
_IDENTIFIERS: Final[dict[str, str]] = _CITATIONS["identifiers"]
_STANDALONE: Final[dict[str, str]] = {**_IDENTIFIERS, **_CITATIONS["alone"]}
_IDENTIFIED: Final = re.compile(r"\|\s*+(?:doi|pmid|pmc|arxiv)\s*+=\s*+[^\s|]", re.IGNORECASE)
_PLACE: Final = re.compile(r"\$(\d)")
_NAMED: Final = re.compile(r"\s*([\w][\w -]{0,40}?)\s*=(.*)", re.DOTALL)
_TEMPLATES: Final = NAMES["templates"]
VISIBLE_ANCHORS: Final = frozenset(split_names(_TEMPLATES["visible_anchors"]))
ANCHORS: Final = VISIBLE_ANCHORS | frozenset(split_names(_TEMPLATES["anchors"]))
"""Templates whose arguments are anchors; of some the first one is shown too."""
_TEXT_FUNCTIONS: Final = frozenset(_TEMPLATES["functions"].split())


def format_citation(fields: Mapping[str, str]) -> str:
    """Write a work as reference lists show it, empty if the template states neither title nor identifier.

    Args:
        fields: The template's named parameters, names in lower case.
    """
    identifiers = [
        _prefix_value(before, fields[name])
        for name, before in _IDENTIFIERS.items()
        if fields.get(name) and (name != "eprint" or "arxiv" not in fields)
    ]
    identifiers += filter(None, [fields.get("id")])
    title = find_title(fields)
    if not title and not identifiers:
        return ""
    names = ((_get_first(fields, last), _get_first(fields, first)) for last, first in _NUMBERED_AUTHORS)
    authors = [f"{last}, {first}" if first else last for last, first in names if last]
    authors = authors or list(filter(None, [_get_first(fields, _AUTHOR)]))
    shown = "; ".join(authors[:_MOST_AUTHORS]) + (" et al." if len(authors) > _MOST_AUTHORS else "")
    year = _YEAR.search(_get_first(fields, _DATE))
    within = _get_first(fields, _WITHIN).rstrip(".")
    parts = (shown, year and f"({year[0]}).", title and f'"{title}".', within and f"{within}.", *identifiers)
    return " ".join(filter(None, parts))


def find_title(fields: Mapping[str, str]) -> str:
    """Return the work's title, empty if the template states none."""
    return _get_first(fields, _TITLE).strip(".\"' ")


def format_identifier(name: str, value: str) -> str | None:
    """Write what a template of its own, such as ``{{doi|…}}``, shows, or None if it is no identifier."""
    before = _STANDALONE.get(name)
    return None if before is None or not value else _prefix_value(before, value)


def _prefix_value(before: str, value: str) -> str:
    return value if value.lower().startswith(before.strip(": ").lower()) else f"{before}{value}"


def _get_first(fields: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((fields[name] for name in names if fields.get(name)), "")


@dataclass(frozen=True, slots=True)
class TemplateLink:
    """A link that a template makes.

    Args:
        target: What it names, or a URL.
        label: What it shows.
    """

    target: str
    label: str


RenderedTemplate = str | tuple[str | TemplateLink, ...]
"""The visible content of a template: text, or text and links in order."""


@dataclass(frozen=True, slots=True)
class TemplateCall:
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
        return (text for value in self.values if (text := render_text(value)))

    @classmethod
    def read(cls, parts: list[str]) -> TemplateCall:
        """Read the text between the braces, divided at each ``|``."""
        values: list[str] = []
        fields: dict[str, str] = {}
        for part in parts[1:]:
            named = _NAMED.match(part) if "=" in part else None
            if named is None:
                values.append(part)
            elif value := named[2].strip():
                fields[named[1].lower()] = value
        return cls(normalise_name(parts[0]), tuple(values), fields)


def normalise_name(written: str) -> str:
    """Return a template's name as the tables have it."""
    return " ".join(written.replace("_", " ").lower().split())


def render_template(parts: list[str], page: str) -> RenderedTemplate:
    """Return the visible content of a template.

    Args:
        parts: What stands between its braces, divided at each ``|``.
        page: The title of the page it stands in.
    """
    name = normalise_name(parts[0])
    rule = _RULES.get(name)
    if rule is not None:
        return rule(TemplateCall.read(parts))
    if name == "pagename":
        return page
    if ":" in name:
        return _render_function(parts)
    return _render_by_name(name, parts)


def keep_marks(text: str, parts: list[str]) -> str:
    """Return the visible content of a template, with all links and anchors of its arguments."""
    marks = extract_marks("".join(parts))
    if not marks:
        return text
    inside = extract_marks(text)
    if len(inside) <= len(marks):
        return marks[: len(marks) - len(inside)] + text
    return marks


def _render_by_name(name: str, parts: list[str]) -> RenderedTemplate:
    if name.startswith("lang-"):
        return TemplateCall.read(parts).value(1)
    if len(parts) == 1 or name.startswith(("infobox", "sfn", "harv")):
        return GONE
    if _NAMES.match(name) or _IDENTIFIED.search("|".join(parts)):
        return _render_citation(TemplateCall.read(parts))
    return format_identifier(name, render_text(parts[1])) or GONE


def _render_function(parts: list[str]) -> str:
    """Return the text of a parser function, which is known for a few of them."""
    name, _, value = parts[0].partition(":")
    return value.strip() if name.strip().lower() in _TEXT_FUNCTIONS else GONE


def _render_citation(call: TemplateCall) -> RenderedTemplate:
    text = render_text(format_citation(call.fields)) or GONE
    url = render_text(call.fields.get("url") or call.fields.get("chapter-url") or "")
    if "://" not in url or " " in url:
        return text
    return (text, TemplateLink(url, render_text(find_title(call.fields))))


def _make_pattern(pattern: str) -> Callable[[TemplateCall], str]:
    """Make a rule that shows a text, with ``$1`` for the first argument."""
    return lambda call: _PLACE.sub(lambda match: call.value(int(match[1])), pattern)


def _render_quotation(call: TemplateCall) -> str:
    text = call.fields.get("text") or call.fields.get("quote") or call.fields.get("content") or call.value(1)
    return f"\n\n{text}\n\n" if text else ""


def _render_list(call: TemplateCall) -> str:
    items = [value.strip() for value in call.values if value.strip()]
    marked = (item if item.startswith("*") else f"* {item}" for item in items)
    return "\n{}\n".format("\n".join(marked))


def _render_columns(call: TemplateCall) -> str:
    return "\n{}\n".format(call.fields.get("content") or max(call.values, key=len, default=""))


def _render_measure(call: TemplateCall) -> str:
    unit = 4 if call.value(2) in {"to", "-", "\u2013", "and", "by", "x", "or"} else 2
    return " ".join(filter(None, (call.value(number) for number in range(1, unit + 1))))


def _render_number(call: TemplateCall) -> str:
    return " ".join(filter(None, (call.value(1), call.fields.get("u") or call.fields.get("ul") or "")))


def _render_fraction(call: TemplateCall) -> str:
    shown_values = [value.strip() for value in call.values[:3] if value.strip()]
    if len(shown_values) == 3:
        return f"{shown_values[0]} {shown_values[1]}/{shown_values[2]}"
    return f"1/{shown_values[0]}" if len(shown_values) == 1 else "/".join(shown_values)


def _render_date(call: TemplateCall) -> str:
    numbers = [value.strip() for value in call.values[:3] if value.strip().lstrip("-").isdecimal()]
    return "-".join(number.zfill(2) for number in numbers) if numbers else call.value(1)


def _render_nihongo(call: TemplateCall) -> str:
    inside = ", ".join(filter(None, (call.value(2), call.value(3))))
    return f"{call.value(1)} ({inside})" if inside else call.value(1)


def _render_url(call: TemplateCall) -> RenderedTemplate:
    url = render_text(call.value(1))
    label = render_text(call.value(2)) or url
    full = url if "://" in url else f"https://{url}"
    return (TemplateLink(full, label),) if url and " " not in url else label


def _make_hatnote(words: str) -> Callable[[TemplateCall], RenderedTemplate]:
    def render_hatnote(call: TemplateCall) -> RenderedTemplate:
        pieces: list[str | TemplateLink] = []
        for number, target in enumerate(call.texts(), start=1):
            own = call.fields.get(f"l{number}") or call.fields.get(f"label {number}")
            label = render_text(own) if own else target.replace("#", " \u00a7 ")
            pieces += (", " if pieces else words, TemplateLink(target, label))
        return (SHIELD, *pieces, BREAK) if pieces else ""

    return render_hatnote


def _render_interlanguage(call: TemplateCall) -> RenderedTemplate:
    title = render_text(call.value(1))
    label = render_text(call.fields.get("lt", "")) or title
    return (TemplateLink(title, label),) if title else ""


def _render_section(call: TemplateCall) -> RenderedTemplate:
    page, section = render_text(call.value(1)), render_text(call.value(2))
    return (TemplateLink(f"{page}#{section}", f"{page} \u00a7 {section}"),) if section else page


def _render_sorted_name(call: TemplateCall) -> RenderedTemplate:
    name = f"{render_text(call.value(1))} {render_text(call.value(2))}".strip()
    if call.fields.get("nolink") or not name:
        return name
    return (TemplateLink(render_text(call.value(3)) or call.fields.get("dab", "") or name, name),)


def _list_rules() -> Iterator[tuple[Callable[[TemplateCall], RenderedTemplate], str]]:
    """Yield each rule with the names of the templates that it is for."""
    rules: dict[str, Callable[[TemplateCall], RenderedTemplate]] = {
        "last": lambda call: call.values[-1].strip() if call.values else "",
        "quotation": _render_quotation,
        "date": _render_date,
        "measure": _render_measure,
        "number": _render_number,
        "fraction": _render_fraction,
        "nihongo": _render_nihongo,
        "columns": _render_columns,
        "joined": lambda call: ", ".join(filter(None, map(str.strip, call.values))),
        "list": _render_list,
        "url": _render_url,
        "interlanguage": _render_interlanguage,
        "section": _render_section,
        "sorted_name": _render_sorted_name,
    }
    yield from ((rules[rule], names) for rule, names in _TEMPLATES["rules"].items())
    yield from ((_make_hatnote(words), names) for words, names in _TEMPLATES["hatnotes"].items())
    yield from ((_make_pattern(text), names) for text, names in _TEMPLATES["texts"].items())
    yield _make_pattern(BREAK), "br break clear -"
    yield _make_pattern(SHIELD + PIPE), "pipe"


_RULES: Final = {name: rule for rule, names in _list_rules() for name in split_names(names)}
