"""Computes the depth and size of the tree of an HTML page from its tags, before it is parsed.

A parser takes time by the depth of the elements, opens formatting elements again in each paragraph that
follows (``<p><b id=1><b id=2>…<p>x<p>x…``), and moves elements that are closed out of order. So a page of
a few kilobytes can take gigabytes, or minutes. The rules are those of tree construction (HTML Living
Standard, section 13.2.6), as far as they change what is open.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from linkstore.extract.html_order import find_attribute_names


def _split_names(names: str) -> frozenset[str]:
    return frozenset(names.split())


_VOID: Final = _split_names(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr"
)
_HOLD_TEXT: Final = _split_names("script style title textarea iframe noembed noframes xmp plaintext")
"""No element lies in these, but for those of SVG and MathML: :class:`TagRewriter` sees to that."""
_NOT_OPENED: Final = _HOLD_TEXT | _split_names("html head body frameset")
_FORMATTING: Final = _split_names("a b big code em font i nobr s small strike strong tt u")
_HEADINGS: Final = _split_names("h1 h2 h3 h4 h5 h6")
_CLOSE_P: Final = _HEADINGS | _split_names(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form"
    " header hgroup hr li dd dt listing main menu nav ol p pre search section summary table ul"
)
_MARKERS: Final = _split_names("applet marquee object template td th caption")
_FOREIGN_SCOPES: Final = frozenset(
    {"svg foreignobject", "svg desc", "svg title", "math mi", "math mo", "math mn", "math ms", "math mtext"}
)
_SCOPES: Final = _MARKERS | _FOREIGN_SCOPES | {"table", "select", "math annotation-xml"}
_TABLES: Final = _split_names("table template")
_SPECIAL: Final = _SCOPES | (_CLOSE_P - {"dialog"}) | _split_names("button colgroup tbody tfoot thead tr")
_SCOPED_END: Final = (
    (_CLOSE_P | _split_names("button applet marquee object select")) - {"p", "hr"} - _HEADINGS
)
_ITEMS: Final = {"li": ("li",), "dd": ("dd", "dt"), "dt": ("dd", "dt")}
_PART_OF: Final = {
    "caption": ("table",),
    "colgroup": ("table",),
    **dict.fromkeys(("tbody", "thead", "tfoot"), ("table",)),
    "tr": ("tbody", "thead", "tfoot"),
    **dict.fromkeys(("td", "th"), ("tr",)),
}
"""The element around each part of a table."""
_IMPLIED: Final = {"tr": ("tbody",), "td": ("tbody", "tr"), "th": ("tbody", "tr")}
_IMPLIED_ENDS: Final = _split_names("dd dt li optgroup option p rb rp rt rtc")
_ENDS_WHERE: Final = {
    "option": _split_names("option"),
    "optgroup": _split_names("option optgroup"),
    **dict.fromkeys(("rb", "rtc"), _IMPLIED_ENDS),
    **dict.fromkeys(("rp", "rt"), _IMPLIED_ENDS - {"rtc"}),
}
"""Elements that end where the next one of the same group begins."""
_WITHOUT_TEXT: Final = _split_names("rb rtc rp rt template")
"""Elements at whose beginning no formatting element is reopened."""
_BREAKS_OUT: Final = _split_names(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing"
    " menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var"
)
_BREAKING_FONT: Final = _split_names("color face size")
_ALIKE: Final = 3
"""Maximum number of equal formatting elements that are reopened."""
_FEW: Final = 8
_SHORT: Final = 16
"""Numbers of elements and attributes up to which comparing them takes no measurable time."""
_STEPS: Final = 8
"""Maximum number of times that a formatting element is moved when it is closed."""


class _FormattingElement:
    """A formatting element that is opened again until it is closed.

    Args:
        name: Its name.
        attributes: As they are written.
    """

    __slots__ = ("_weight", "attributes", "name", "place")

    def __init__(self, name: str, attributes: str) -> None:
        self.name = name
        self.attributes = attributes
        self.place = -1
        """Its position among the open elements; -1 while it waits to be opened again."""
        self._weight = 0

    @property
    def weight(self) -> int:
        """The number of its attributes, and one for itself."""
        self._weight = self._weight or 1 + len(set(find_attribute_names(self.attributes)))
        return self._weight


class ElementStack:
    """The open elements at a place of a page.

    Attributes:
        reopened: How many elements and attributes were opened again without a tag.
        moved: How often an element was moved since one around it was closed.
        compared: How often an attribute was compared with one of an element of the same name.
    """

    def __init__(self) -> None:
        self.reopened = 0
        self.moved = 0
        self.compared = 0
        self._stack: list[str] = []
        self._entries: list[_FormattingElement | None] = []
        self._places: dict[str, list[int]] = {}
        self._special: list[int] = []
        self._scopes: list[int] = []
        self._tables: list[int] = []
        self._formatting: list[_FormattingElement | None] = []
        self._counts: list[dict[str, int]] = [{}]
        self._alike: list[dict[tuple[str, str], list[_FormattingElement]]] = [{}]
        self._foreign = 0

    @property
    def depth(self) -> int:
        """How many elements are open."""
        return len(self._stack)

    @property
    def in_foreign(self) -> bool:
        """Whether the innermost element is SVG or MathML, and no place for HTML in it."""
        return bool(self._foreign) and " " in self._stack[-1] and self._stack[-1] not in _FOREIGN_SCOPES

    def text(self) -> None:
        """Open formatting elements again, as text does."""
        formatting = self._formatting
        if not formatting or formatting[-1] is None or formatting[-1].place >= 0:
            return
        at = len(formatting)
        while at and (entry := formatting[at - 1]) is not None and entry.place < 0:
            at -= 1
        for entry in formatting[at:]:
            if entry is not None:
                self._push(entry.name, entry)
                self.reopened += entry.weight

    def start(self, name: str, attributes: str) -> None:
        """Open an element by its start tag, and close what the tag ends."""
        if self._foreign and self.in_foreign:
            if name not in _BREAKS_OUT and not (name == "font" and _is_breaking_font(attributes)):
                self._start_foreign(self._stack[-1].partition(" ")[0], name, attributes)
                return
            while self.in_foreign:
                self._pop()
        if name in _NOT_OPENED:
            return
        if name in _PART_OF:
            self._start_part(name)
        elif name in _CLOSE_P:
            self._start_block(name)
        elif name in _FORMATTING:
            self._start_formatting(name, attributes)
        elif name in _VOID:
            if name == "input" and self._in_scope(self._last("select")):
                self._pop_to(self._last("select"))
            self.text()
        else:
            self._start_other(name, attributes)

    def end(self, name: str) -> None:
        """Close elements by an end tag."""
        if self._foreign and " " in self._stack[-1] and self._end_foreign(name):
            return
        if name in _PART_OF or name in _TABLES:
            if self._tables and self._last(name) >= self._tables[-1]:
                self._pop_to(self._last(name))
        elif name in _FORMATTING:
            self._end_formatting(name)
        elif name in _HEADINGS:
            self._end_scoped(max(map(self._last, _HEADINGS)))
        elif name == "form":
            self._end_form()
        elif name == "li" and self._last(name) < max(self._last("ul"), self._last("ol")):
            return  # an item around the list stays open
        elif name in _SCOPED_END or name == "p":
            self._end_scoped(self._last(name))
        elif name not in _NOT_OPENED:
            self._end_other(name)

    # What is open

    def _push(self, name: str, entry: _FormattingElement | None = None) -> None:
        place = len(self._stack)
        self._stack.append(name)
        self._entries.append(entry)
        self._places.setdefault(name, []).append(place)
        if entry is not None:
            entry.place = place
        elif name in _SPECIAL:
            self._special.append(place)
            if name in _SCOPES:
                self._scopes.append(place)
            if name in _TABLES:
                self._tables.append(place)
            if name in _MARKERS:
                self._formatting.append(None)
                self._counts.append({})
                self._alike.append({})
        if " " in name:
            self._foreign += 1

    def _pop(self) -> None:
        name, entry = self._stack.pop(), self._entries.pop()
        self._places[name].pop()
        if entry is not None:
            entry.place = -1
        elif name in _SPECIAL:
            self._special.pop()
            if name in _SCOPES:
                self._scopes.pop()
            if name in _TABLES:
                self._tables.pop()
            if name in _MARKERS:
                self._forget_to_marker()
        if " " in name:
            self._foreign -= 1

    def _forget_to_marker(self) -> None:
        while self._formatting.pop() is not None:
            pass
        self._counts.pop()
        self._alike.pop()

    def _pop_to(self, place: int) -> None:
        """Close all open elements from a position on."""
        while len(self._stack) > place:
            self._pop()

    def _last(self, name: str) -> int:
        """Return the position of the last open element with a name, -1 without one."""
        places = self._places.get(name)
        return places[-1] if places else -1

    def _in_scope(self, place: int) -> bool:
        return place >= 0 and (not self._scopes or place >= self._scopes[-1])

    def _end_scoped(self, place: int) -> None:
        if self._in_scope(place):
            self._pop_to(place)

    def _end_other(self, name: str) -> None:
        place = self._last(name)
        if place >= 0 and (not self._special or place > self._special[-1]):
            self._pop_to(place)

    # Starts

    def _start_block(self, name: str) -> None:
        if name in _ITEMS:
            self._end_item(_ITEMS[name])
        if name == "form" and self._last(name) >= 0:
            return
        place = self._last("p")
        if self._in_scope(place) and place > self._last("button"):
            self._pop_to(place)
        if name == "table" and self._tables and self._tables[-1:] == self._scopes[-1:]:
            self._end_table()
        if name in _HEADINGS and self._stack and self._stack[-1] in _HEADINGS:
            self._pop()
        if name != "hr":
            self._push(name)

    def _end_item(self, names: tuple[str, ...]) -> None:
        """End the list item that is open, unless another element begins a part of the page in it."""
        for place in reversed(self._special):
            name = self._stack[place]
            if name in names:
                self._pop_to(place)
            if name not in {"address", "div", "p"}:
                return

    def _end_table(self) -> None:
        """End a table in which another one begins outside of its cells."""
        if self._stack[self._tables[-1]] == "table":
            self._pop_to(self._tables[-1])

    def _start_part(self, name: str) -> None:
        """Start a part of a table. It is ignored outside of tables."""
        if not self._tables:
            return
        floor = self._tables[-1]
        around = _PART_OF[name]
        while len(self._stack) - 1 > floor and self._stack[-1] not in around:
            if name in {"td", "th"} and self._stack[-1] in _PART_OF["tr"]:
                break
            self._pop()
        if len(self._stack) - 1 == floor:
            for implied in _IMPLIED.get(name, ()):
                self._push(implied)
        elif self._stack[-1] not in around:
            self._push("tr")
        self._push(name)

    def _start_formatting(self, name: str, attributes: str) -> None:
        if name in {"a", "nobr"} and self._counts[-1].get(name):
            self._end_formatting(name)
        self.text()
        entry = _FormattingElement(name, attributes)
        self._push(name, entry)
        same = self._counts[-1].get(name, 0)
        if same > _FEW and len(attributes) > _SHORT:
            self.compared += same * entry.weight**2
        alike = self._alike[-1].setdefault((name, attributes), [])
        if len(alike) == _ALIKE:
            self._forget(alike[0])
        alike.append(entry)
        self._formatting.append(entry)
        self._counts[-1][name] = self._counts[-1].get(name, 0) + 1

    def _forget(self, entry: _FormattingElement) -> None:
        """Take a formatting element off the list of those that are opened again."""
        at = len(self._formatting) - 1
        while self._formatting[at] is not entry:
            at -= 1
        del self._formatting[at]
        self._counts[-1][entry.name] -= 1
        self._alike[-1][entry.name, entry.attributes].remove(entry)

    def _start_other(self, name: str, attributes: str) -> None:
        if name in _ENDS_WHERE and (name[0] == "o" or self._in_scope(self._last("ruby"))):
            while self._stack and self._stack[-1] in _ENDS_WHERE[name]:
                self._pop()
        elif name in {"button", "select"} and self._in_scope(self._last(name)):
            self._pop_to(self._last(name))
            if name == "select":
                return
        if name not in _WITHOUT_TEXT:
            self.text()
        if name in {"svg", "math"}:
            self._start_foreign(name, name, attributes)
        else:
            self._push(name)

    def _start_foreign(self, kind: str, name: str, attributes: str) -> None:
        if not attributes.endswith("/"):
            self._push(f"{kind} {name}")

    # Ends

    def _end_foreign(self, name: str) -> bool:
        """End an element of SVG or MathML, and return False if the end tag belongs to neither."""
        if name in {"p", "br"}:
            while self.in_foreign:
                self._pop()
            return False
        place = max(self._last(f"svg {name}"), self._last(f"math {name}"))
        if place < 0 or any(" " not in one for one in self._stack[place:]):
            return False
        self._pop_to(place)
        return True

    def _end_formatting(self, name: str) -> None:
        """End a formatting element. Blocks in it are moved out of it."""
        if not self._counts[-1].get(name):
            self._end_other(name)
            return
        at = len(self._formatting) - 1
        while (entry := self._formatting[at]) is None or entry.name != name:
            at -= 1
        if entry.place >= 0:
            if not self._in_scope(entry.place):
                return
            blocks = bisect_right(self._special, entry.place)
            within = len(self._special) - blocks
            self.moved += _STEPS * (len(self._stack) - entry.place) if within else 0
            if within >= _STEPS:
                return  # it is still open, within this many of them
            self._remove(entry.place, self._special[blocks] if within else len(self._stack))
        self._forget(entry)

    def _end_form(self) -> None:
        """Close a form alone. Elements in it stay open."""
        place = self._last("form")
        if self._in_scope(place):
            while self._stack[-1] in _IMPLIED_ENDS:
                self._pop()
            self.moved += len(self._stack) - place
            self._remove(place, place + 1)

    def _remove(self, place: int, inside: int) -> None:
        """Close the elements from one position up to another, but not those inside."""
        inner = list(zip(self._stack[inside:], self._entries[inside:], strict=True))
        self._pop_to(place)
        for name, entry in inner:
            self._push(name, entry)


def _is_breaking_font(attributes: str) -> bool:
    return not _BREAKING_FONT.isdisjoint(find_attribute_names(attributes))
