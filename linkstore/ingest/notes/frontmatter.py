"""Front matter: YAML between ``---`` lines, or TOML between ``+++`` lines, at the beginning of a page.

Its values become plain JSON, the only form that metadata can have. Logseq's properties, lines such as
``alias:: Name`` at the beginning of a page, are read the same way.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

import yaml

from linkstore.core.links import Link
from linkstore.core.text import replace_surrogates
from linkstore.core.urls import is_short_tag
from linkstore.errors import LinkStoreError

_MOST_VALUES: Final = 10_000
DEEPEST_VALUE: Final = 20
"""Lists in lists, or objects in objects, of metadata."""
_YAML: Final = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(?![ \t\r]*\n(?!\s*[\w\"'-]+:))(.*?)^(?:---|\.\.\.)[ \t\r]*$\n?",
    re.DOTALL | re.MULTILINE,
)
_TOML: Final = re.compile(r"\A\ufeff?(\+\+\+[ \t]*\r?\n.*?)^\+\+\+[ \t\r]*$\n?", re.DOTALL | re.MULTILINE)
_PROPERTY: Final = r"[\w][\w/.-]{0,60}::[ \t][^\n]*"
_PROPERTIES: Final = re.compile(rf"\A\ufeff?({_PROPERTY}(?:\n{_PROPERTY})*)(?:\n|\Z)")
_LOGSEQ_TAGS: Final = re.compile(r"^tags?::[^\n]+", re.MULTILINE)
_LINKED_TAG: Final = re.compile(r"\[\[([^\[\]|#]+)\]\]")
_NAMES: Final = frozenset({"alias", "aliases", "tags", "tag"})
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BETWEEN_TAGS: Final = re.compile(r"[,\s]+")
_MOST_URLS: Final = 100
_MERGES: Final = re.compile(r"<<\s*:|!!merge")
_UNFIT: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What PyYAML raises, besides its own errors, for a value that does not fit its tag: ``!!timestamp soon``."""
LONGEST_FRONT_MATTER: Final = 64 * 2**10
"""Characters of front matter that are read."""
_TITLE: Final = re.compile(r"^title(?::|[ \t]*=|::)[ \t]*(\S[^\n]*?)\s*$", re.MULTILINE)


class NotPlainError(LinkStoreError, ValueError):
    """A value is too large to be metadata, or holds itself."""


def make_plain(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert a mapping to plain JSON.

    Keys become strings, tuples and sets lists, dates ISO 8601. Numbers that JSON cannot hold and all else
    become what ``str`` says. The result shares nothing with the values.

    Raises:
        NotPlainError: If it holds more than 10,000 values, or is nested more than 20 deep. References can
            make a few lines of YAML stand for billions of values.
    """
    budget = iter(range(_MOST_VALUES))
    try:
        return {str(key): _make_plain_value(value, budget, 1) for key, value in values.items()}
    except NotPlainError:
        raise
    except ValueError as error:
        raise NotPlainError(f"a number with too many digits: {error}") from error


def _make_plain_value(value: Any, budget: Iterator[int], depth: int) -> Any:
    if next(budget, None) is None or depth > DEEPEST_VALUE:
        raise NotPlainError(f"over {_MOST_VALUES:,} values, or lists in lists without end")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _make_plain_value(item, budget, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_make_plain_value(item, budget, depth + 1) for item in value]
    if isinstance(value, AbstractSet):
        return [_make_plain_value(item, budget, depth + 1) for item in sorted(value, key=str)]
    text = value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)
    return replace_surrogates(text)


class FrontMatterError(LinkStoreError, ValueError):
    """The front matter is not a YAML mapping, or is too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """The front matter of a page.

    Args:
        fields: All of it, as plain JSON: dates as ISO 8601, keys as strings.
        linked: The tags of Logseq that are written as wikilinks.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    linked: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The title, ``title``; may be empty."""
        title = self.fields.get("title")
        return str(title).strip() if isinstance(title, str | int | float) else ""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names of the page: ``aliases`` or ``alias``."""
        return _list_names(self.fields, ("aliases", "alias"))

    @property
    def tags(self) -> tuple[str, ...]:
        """Its ``tags`` or ``tag``, without ``#``."""
        return tuple(
            tag.lstrip("#") for tag in _list_names(self.fields, ("tags", "tag"), apart=_BETWEEN_TAGS)
        )

    @property
    def categories(self) -> tuple[str, ...]:
        """Its ``categories`` or ``category``."""
        return _list_names(self.fields, ("categories", "category"))

    @property
    def urls(self) -> tuple[str, ...]:
        """Where else the page is, or was: ``permalink``, ``slug`` and ``redirect_from``."""
        return _list_names(self.fields, ("permalink", "slug", "redirect_from"))[:_MOST_URLS]

    @property
    def metadata(self) -> dict[str, Any]:
        """The fields as metadata of documents, with all aliases under one name."""
        return {**self.fields, "aliases": list(self.aliases)} if self.aliases else dict(self.fields)


NO_FRONT_MATTER: Final = FrontMatter()


def make_tag_links(names: Iterable[str]) -> Iterator[Link]:
    """Yield the links of tags, and of the tags around them: ``a/b`` is found by ``a`` too, as in Obsidian."""
    parts = (filter(None, name.casefold().split("/")) for name in names)
    for tag in dict.fromkeys(tag for own in parts for tag in accumulate(own, "{}/{}".format)):
        if is_usable_tag(tag):
            yield Link.bidir(kind="tag", tag=tag, label=f"#{tag}")


def is_usable_tag(tag: str) -> bool:
    """Say whether a link can have a tag."""
    return bool(tag) and "\0" not in tag and is_short_tag(tag)


def split_front_matter(text: str) -> tuple[str, str]:
    """Split a page into its front matter, empty if it has none, and its body.

    TOML keeps its first line, ``+++``, by which :func:`read_front_matter` tells it from YAML. A ruler with a
    blank line and a sentence below begins no front matter.
    """
    for pattern in (_YAML, _TOML, _PROPERTIES):
        match = pattern.match(text)
        if match is not None:
            return match[1], text[match.end() :]
    return "", text


def find_front_title(source: str) -> str:
    """Return the title that front matter names, by a search, not a parse; empty if it names none."""
    match = _TITLE.search(source)
    return match[1].strip("\"'") if match else ""


def read_front_matter(source: str) -> FrontMatter:
    """Read front matter.

    Args:
        source: What stands between the lines, may be empty.

    Raises:
        FrontMatterError: If it is not YAML or TOML, not a mapping, too large or too deep.
    """
    if not source.strip():
        return NO_FRONT_MATTER
    if len(source) > LONGEST_FRONT_MATTER:
        raise FrontMatterError(
            f"the front matter has {len(source):,} characters; up to {LONGEST_FRONT_MATTER:,} are read"
        )
    read = _parse_properties(source) if _PROPERTIES.fullmatch(source) else _parse_block(source)
    if read is None:
        return NO_FRONT_MATTER
    if not isinstance(read, dict):
        raise FrontMatterError(f"the front matter is a {type(read).__name__}, not a list of names and values")
    try:
        fields = make_plain(read)
    except NotPlainError as error:
        raise FrontMatterError(f"the front matter holds {error}") from error
    return FrontMatter(
        fields=fields, linked=tuple(_LINKED_TAG.findall("".join(_LOGSEQ_TAGS.findall(source))))
    )


def _parse_block(source: str) -> object:
    is_toml = source.startswith("+++")
    language = "TOML" if is_toml else "YAML"
    try:
        if is_toml:
            return tomllib.loads(source.partition("\n")[2].replace("\r\n", "\n"))
        _check_depth(source)
        return yaml.load(source, Loader=_LOADER)  # noqa: S506 (a safe loader)
    except FrontMatterError:
        raise
    except (yaml.YAMLError, RecursionError, *_UNFIT) as error:
        raise FrontMatterError(
            f"the front matter is not valid {language}: {' '.join(str(error).split())}; quote a value that is"
            " not of its type to make it text"
        ) from error


def _parse_properties(source: str) -> dict[str, object]:
    """Read Logseq's properties. Names are set apart by commas, and may be written as links or tags."""
    fields: dict[str, object] = {}
    for line in source.splitlines():
        key, _, value = (part.strip() for part in line.partition("::"))
        names = [name.strip().strip("#[]") for name in value.split(",")]
        fields[key] = names if key in _NAMES else value
    return fields


def _check_depth(source: str) -> None:
    """Refuse nesting that would overflow the stack of a recursive loader.

    Merge keys are refused too: a few of them can make a loader build billions of entries.
    """
    if _MERGES.search(source):
        raise FrontMatterError("the front matter has merge keys (<<), which are not read")
    depth = 0
    for event in yaml.parse(source, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST_VALUE + 1:  # the mapping itself is not counted
                raise FrontMatterError(f"the front matter has lists in lists more than {DEEPEST_VALUE} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _list_names(
    fields: Mapping[str, Any], keys: Iterable[str], apart: re.Pattern[str] | None = None
) -> tuple[str, ...]:
    """Return the names under these keys: in a list, or alone in a string, or in one string set apart."""
    names: list[str] = []
    for key in keys:
        value = fields.get(key)
        values = value if isinstance(value, list) else [value]
        for item in values:
            if isinstance(item, str | int | float) and not isinstance(item, bool):
                names.extend(apart.split(str(item)) if apart and value is item else [str(item)])
    return tuple(dict.fromkeys(name for text in names if (name := text.strip())))
