"""Questions about typed links, as values: starts, relations to follow, and what to return.

A query has *branches*. Each starts from one named document, or from all of a type, and follows a path of
*steps*. A step is a relation, which is a kind of link, followed forward or backward. ``branches`` are joined
by ``all`` (a document is a result if every branch leads to it) or ``any``; what a branch of ``but_not`` leads
to is no result. So "which protocols does Cardiology use for sepsis?" is::

    GraphQuery((Branch("Cardiology", path="USES"), Branch("sepsis", path="TREATED_BY")))

A step has a short form: ``"FLIES"`` follows links of this kind, ``"<OWNED_BY"`` follows them against their
direction, ``"OWNS|LEASES"`` follows links of either kind, and ``"PART_OF{1,3}"`` from one to three of them in
a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from dataclasses import field as make_field
from typing import Any, Final, Literal, Self, TypeVar

import orjson

from linkstore.core.arguments import quote_value, require_at_least
from linkstore.core.filters import Filter, parse_filter
from linkstore.errors import QueryError

T = TypeVar("T")
Returned = Literal["documents", "count", "values", "groups"]
RETURNED: Final[tuple[Returned, ...]] = ("documents", "count", "values", "groups")
Combination = Literal["all", "any"]
COMBINATIONS: Final[tuple[Combination, ...]] = ("all", "any")
DEFAULT_LIMIT: Final = 20
MAX_REPEAT: Final = 20
"""How many links of one step may be followed in a row."""
MAX_BRANCHES: Final = 20
MAX_STEPS: Final = 20
_STEP: Final = re.compile(
    r"(?P<back><?)(?P<kinds>[^<{}|]+(?:\|[^<{}|]+)*)(?:\{(?P<low>\d+)(?:,(?P<high>\d+))?\})?"
)
_DATE: Final = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])")


@dataclass(frozen=True, slots=True)
class Step:
    """Links to follow, and the documents to arrive at.

    Args:
        relations: Kinds of link, of which any will do: one, or several.
        backward: Whether to follow the links against their direction. Default False.
        repeat: The least and the most links to follow in a row, from 0 to 20. Default one.
        type: The type of the documents at the end of the step. None, the default: any.
        where: A filter that these documents must pass. Default None.
        also: Branches that must lead to these documents too. Their own steps have none of these.
        but_not: Branches that must not.

    Raises:
        QueryError: If one of them is invalid.
        FilterError: If the filter is.
    """

    relations: tuple[str, ...]
    backward: bool = False
    repeat: tuple[int, int] = (1, 1)
    type: str | None = None
    where: Filter | None = make_field(default=None, hash=False)
    also: tuple[Branch, ...] = ()
    but_not: tuple[Branch, ...] = ()

    def __init__(
        self,
        relations: str | Iterable[str],
        backward: bool = False,
        repeat: Sequence[int] = (1, 1),
        type: str | None = None,
        where: Filter | None = None,
        also: Branch | Iterable[Branch | Mapping[str, Any]] = (),
        but_not: Branch | Iterable[Branch | Mapping[str, Any]] = (),
    ) -> None:
        kinds = (relations,) if isinstance(relations, str) else _as_tuple("relations", relations)
        for kind in kinds:
            _check_text("a relation", kind, "a kind of link such as 'FLIES'")
        if not kinds:
            raise QueryError("a step needs at least one relation, such as 'FLIES'")
        _check_flag("backward", backward)
        _check_optional("the type of a step", type)
        object.__setattr__(self, "relations", kinds)
        object.__setattr__(self, "backward", backward)
        object.__setattr__(self, "repeat", _check_repeat(repeat))
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "where", _check_filter(where))
        object.__setattr__(self, "also", _as_branches("also", also, nested=True))
        object.__setattr__(self, "but_not", _as_branches("but_not", but_not, nested=True))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Make a step from its short form, such as ``"<OWNED_BY"`` or ``"PART_OF{1,3}"``.

        Raises:
            QueryError: If the text has another form.
        """
        match = _STEP.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            raise QueryError(
                f"{quote_value(text)} is no step; write a relation such as 'FLIES', '<OWNED_BY' against the"
                " direction of its links, 'OWNS|LEASES' for either, or 'PART_OF{1,3}' for 1 to 3 in a row"
            )
        low = int(match["low"] or 1)
        repeat = (low, int(match["high"] or low))
        return cls([kind.strip() for kind in match["kinds"].split("|")], bool(match["back"]), repeat)

    @property
    def text(self) -> str:
        """The short form, without type and filter."""
        low, high = self.repeat
        often = "" if self.repeat == (1, 1) else f"{{{low}}}" if low == high else f"{{{low},{high}}}"
        return f"{'<' if self.backward else ''}{'|'.join(self.relations)}{often}"

    def to_dict(self) -> dict[str, Any] | str:
        """Return the step as plain JSON: its short form if that says all of it, else an object."""
        text: dict[str, Any] = {"step": self.text}
        if not _says_all(self):
            text = {"relations": list(self.relations), "backward": self.backward, "repeat": list(self.repeat)}
        conditions = {name: value for name in ("type", "where") if (value := getattr(self, name)) is not None}
        for name in ("also", "but_not"):
            if branches := getattr(self, name):
                conditions[name] = [branch.to_dict() for branch in branches]
        return self.text if not conditions and "step" in text else {**text, **conditions}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any] | str) -> Self:
        """Make a step from what :meth:`to_dict` returned.

        Raises:
            QueryError: If it is something else.
        """
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, Mapping) and "step" in value:
            parsed, rest = cls.parse(value["step"]), {key: value[key] for key in value if key != "step"}
            _check_names("a step with a short form", rest, ("type", "where", "also", "but_not"))
            return cls(parsed.relations, parsed.backward, parsed.repeat, **rest)
        return _make(cls, "a step", value, ("relations",))


@dataclass(frozen=True, slots=True)
class Branch:
    """Where to start, and the steps from there.

    Args:
        start: The id or a name of the document to start from. None: all documents of ``start_type``.
        start_type: The type of what to start from. None, the default: any.
        path: Steps, or their short forms, in order; one, several, or none for the start itself.
        where: A filter that the start must pass. Default None.

    Raises:
        QueryError: If one of them is invalid.
        FilterError: If the filter is.
    """

    start: str | None = None
    start_type: str | None = None
    path: tuple[Step, ...] = ()
    where: Filter | None = make_field(default=None, hash=False)

    def __init__(
        self,
        start: str | None = None,
        start_type: str | None = None,
        path: str | Step | Iterable[str | Step | Mapping[str, Any]] = (),
        where: Filter | None = None,
    ) -> None:
        _check_optional("the start of a branch", start)
        _check_optional("start_type", start_type)
        listed = (path,) if isinstance(path, str | Step) else _as_tuple("path", path)
        if len(listed) > MAX_STEPS:
            raise QueryError(f"a path may have {MAX_STEPS} steps, not {len(listed)}; use a repetition")
        steps = tuple(step if isinstance(step, Step) else Step.from_dict(step) for step in listed)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "start_type", start_type)
        object.__setattr__(self, "path", steps)
        object.__setattr__(self, "where", _check_filter(where))

    @property
    def hops(self) -> int:
        """How many links the branch, and what its steps name, follows at most."""
        own = sum(step.repeat[1] for step in self.path)
        return max([own, *(branch.hops for branch in self.nested)])

    @property
    def nested(self) -> tuple[Branch, ...]:
        """The branches that its steps name."""
        return tuple(branch for step in self.path for branch in (*step.also, *step.but_not))

    def __str__(self) -> str:
        start = self.start if self.start is not None else f"all {self.start_type or 'documents'}"
        return " ".join([start, *(step.text for step in self.path)])

    def to_dict(self) -> dict[str, Any]:
        """Return the branch as plain JSON, without what has its default."""
        path = [step.to_dict() for step in self.path] or None
        settings = {"start": self.start, "start_type": self.start_type, "path": path, "where": self.where}
        return {name: setting for name, setting in settings.items() if setting is not None}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Make a branch from what :meth:`to_dict` returned.

        Raises:
            QueryError: If it is something else.
        """
        return _make(cls, "a branch", value)


@dataclass(frozen=True, slots=True)
class GraphQuery:
    """What to find by following typed links: see :mod:`linkstore.core.graph_query`.

    Args:
        branches: One, or several.
        combine: ``"all"``, the default: every branch must lead to a result. ``"any"``: one of them must.
        but_not: Branches that must not lead to a result.
        result_type: The type of the results. None, the default: any.
        where: A filter that the results must pass. Default None.
        as_of: A date such as ``"2024-05-01"``, on which all documents and links on the way must be valid. A
            document is by its metadata, a link by its data: a field says from when, another until when, both
            days included, and a missing one sets no bound. The schema names the fields; without one these are
            ``valid_from`` and ``valid_until``. Default None.
        returns: ``"documents"``, the default; their ``"count"``; the different ``"values"`` of a field, or
            ``"groups"``, the number of results for each value of a field.
        field: The metadata field whose values, or groups, are returned.
        order_by: The metadata field that orders the documents: numbers, then strings, then those without it.
            Or a step that begins with ``<`` or ``>``, such as ``"<FLIES"``: how many documents it leads to.
            None, the default: by id.
        descending: Whether larger values come first. Default False.
        limit: The maximum number of documents, values or groups to return. Default 20.
        ties: Whether documents in no other order than the last are returned beyond the limit. Default False.

    Raises:
        QueryError: If one of them is invalid.
        FilterError: If the filter is.
    """

    branches: tuple[Branch, ...]
    combine: Combination = "all"
    but_not: tuple[Branch, ...] = ()
    result_type: str | None = None
    where: Filter | None = make_field(default=None, hash=False)
    as_of: str | None = None
    returns: Returned = "documents"
    field: str | None = None
    order_by: str | None = None
    descending: bool = False
    limit: int = DEFAULT_LIMIT
    ties: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "branches", _as_branches("branches", self.branches))
        object.__setattr__(self, "but_not", _as_branches("but_not", self.but_not))
        object.__setattr__(self, "where", _check_filter(self.where))
        if not self.branches:
            raise QueryError("a query needs at least one branch, such as Branch('MV Aurora', path='FLIES')")
        _check_choice("combine", self.combine, COMBINATIONS)
        _check_choice("returns", self.returns, RETURNED)
        for name in ("descending", "ties"):
            _check_flag(name, getattr(self, name))
        for name in ("result_type", "field", "order_by"):
            _check_optional(name, getattr(self, name))
        if self.as_of is not None and not (isinstance(self.as_of, str) and _DATE.fullmatch(self.as_of)):
            raise QueryError(f"as_of must be a date such as '2024-05-01', not {quote_value(self.as_of)}")
        if (self.returns in ("values", "groups")) is not (self.field is not None):
            raise QueryError(
                f"returns={self.returns!r} with field={self.field!r}: a field is needed for 'values' and"
                " 'groups', and only there"
            )
        if self.counted and self.counted.repeat != (1, 1):
            raise QueryError(
                f"order_by counts what one link leads to, so {self.order_by!r} takes no repetition"
            )
        require_at_least(1, limit=self.limit)

    @property
    def counted(self) -> Step | None:
        """The step whose ends are counted to order the documents; None where a field orders them."""
        if self.order_by is None or self.order_by[0] not in "<>":
            return None
        return Step.parse(self.order_by.removeprefix(">"))

    @property
    def all_branches(self) -> tuple[Branch, ...]:
        """All branches, with those of steps."""
        own = (*self.branches, *self.but_not)
        return (*own, *(nested for branch in own for nested in branch.nested))

    @property
    def hops(self) -> int:
        """How many links in a row the query follows at most."""
        return max(branch.hops for branch in self.all_branches)

    @property
    def relations(self) -> frozenset[str]:
        """All kinds of link that the query names."""
        steps = [step for branch in self.all_branches for step in branch.path]
        steps += [self.counted] if self.counted else []
        return frozenset(kind for step in steps for kind in step.relations)

    @property
    def types(self) -> frozenset[str]:
        """All types that the query names."""
        named = {self.result_type}
        for branch in self.all_branches:
            named |= {branch.start_type, *(step.type for step in branch.path)}
        return frozenset(name for name in named if name is not None)

    @property
    def filters(self) -> tuple[Filter, ...]:
        """All filters in the query."""
        conditions = [self.where]
        for branch in self.all_branches:
            conditions += [branch.where, *(step.where for step in branch.path)]
        return tuple(condition for condition in conditions if condition is not None)

    def to_dict(self) -> dict[str, Any]:
        """Return the query as plain JSON, without what has its default."""
        query: dict[str, Any] = {"branches": [branch.to_dict() for branch in self.branches]}
        if self.but_not:
            query["but_not"] = [branch.to_dict() for branch in self.but_not]
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.name not in ("branches", "but_not") and value != setting.default:
                query[setting.name] = value
        return query

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Make a query from what :meth:`to_dict` returned.

        Raises:
            QueryError: If it is something else.
        """
        return _make(cls, "a query", value, ("branches",))


def make_json_schema(
    relations: Sequence[str] = (), types: Sequence[str] = (), filter: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the JSON schema of a query, whose objects take no other fields.

    Args:
        relations: The kinds of link of a store, of which a path may have no others; none: any.
        types: The types of its documents; none: any.
        filter: The JSON schema of a filter. Default: any object.
    """
    type_schema: dict[str, Any] = {"type": "string", **({"enum": sorted(types)} if types else {})}
    where = dict(filter or {"type": "object"})
    step: dict[str, Any] = {"type": "string", "description": _STEP_TEXT}
    if relations:
        names = "|".join(re.escape(kind) for kind in sorted(relations))
        step["pattern"] = rf"^<?({names})(\|({names}))*(\{{[0-9]+(,[0-9]+)?\}})?$"
    kind = {"type": "string", **({"enum": sorted(relations)} if relations else {})}
    explicit = {"relations": {"type": "array", "items": kind}, "backward": {"type": "boolean"}}
    explicit["repeat"] = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
    spelled = not relations or not all(_says_all(Step(kind)) for kind in relations)
    branch: dict[str, Any] = {}
    for _ in range(2):  # the second time, with the branches that steps name
        inner = {"type": "array", "items": branch, "maxItems": MAX_BRANCHES}
        conditions = {"type": type_schema, "where": where}
        conditions |= {"also": inner, "but_not": inner} if branch else {}
        forms = [step, _make_object({"step": step, **conditions}, ["step"])]
        forms += [_make_object({**explicit, **conditions}, ["relations"])] if spelled else []
        branch = _make_object(
            {
                "start": {"type": "string", "description": "Id or name of the thing to start from."},
                "start_type": type_schema,
                "path": {"type": "array", "items": {"anyOf": forms}},
                "where": where,
            },
            [],
        )
    branches = {"type": "array", "items": branch, "minItems": 1, "maxItems": MAX_BRANCHES}
    return _make_object(
        {
            "branches": branches,
            "combine": {"type": "string", "enum": list(COMBINATIONS)},
            "but_not": {"type": "array", "items": branch, "maxItems": MAX_BRANCHES},
            "result_type": type_schema,
            "where": where,
            "as_of": {"type": "string", "description": "A date such as 2024-05-01."},
            "returns": {"type": "string", "enum": list(RETURNED)},
            "field": {"type": "string"},
            "order_by": {"type": "string"},
            "descending": {"type": "boolean"},
            "limit": {"type": "integer", "minimum": 1},
            "ties": {"type": "boolean"},
        },
        ["branches"],
    )


_STEP_TEXT: Final = "FLIES, <OWNED_BY (against the links), OWNS|LEASES (either) or PART_OF{1,3} (in a row)"


def _make_object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }


def _says_all(step: Step) -> bool:
    """Say whether the short form of a step has all its relations as they are."""
    try:
        parsed = Step.parse(step.text)
    except QueryError:
        return False
    return (parsed.relations, parsed.backward, parsed.repeat) == (step.relations, step.backward, step.repeat)


def _make(kind: type[T], what: str, value: object, required: Sequence[str] = ()) -> T:
    """Make a value from a plain object."""
    if not isinstance(value, Mapping):
        raise QueryError(f"{what} must be an object, not {quote_value(value)}")
    settings = [setting.name for setting in fields(kind)]  # type: ignore[arg-type]
    _check_names(what, value, settings)
    for name in required:
        if name not in value:
            raise QueryError(f"{what} needs {name!r}; it has {', '.join(map(repr, value)) or 'nothing'}")
    return kind(**value)


def _check_names(what: str, value: Iterable[object], names: Sequence[str]) -> None:
    for name in value:
        if name not in names:
            raise QueryError(f"{what} has no {quote_value(name)}; it takes {', '.join(names)}")


def _as_tuple(name: str, value: object) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise QueryError(f"{name} must be a list, not {quote_value(value)}")
    return tuple(value)


def _names_branches(step: object) -> bool:
    if isinstance(step, Mapping):  # not parsed yet, however deep it is
        return bool(step.get("also") or step.get("but_not"))
    return isinstance(step, Step) and bool(step.also or step.but_not)


def _as_branches(name: str, value: object, *, nested: bool = False) -> tuple[Branch, ...]:
    listed = (value,) if isinstance(value, Branch) else _as_tuple(name, value)
    if len(listed) > MAX_BRANCHES:
        raise QueryError(f"{name} may have {MAX_BRANCHES} branches, not {len(listed)}")
    for branch in listed if nested else ():
        path = (
            branch.path
            if isinstance(branch, Branch)
            else branch.get("path", ())
            if isinstance(branch, Mapping)
            else ()
        )
        if any(_names_branches(step) for step in (path if isinstance(path, Sequence) else ())):
            raise QueryError(
                f"a step of a branch in {name!r} of a step names no further branches; make it flat"
            )
    return tuple(branch if isinstance(branch, Branch) else Branch.from_dict(branch) for branch in listed)


def _check_repeat(value: object) -> tuple[int, int]:
    ends = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
    whole = all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
    if len(ends) != 2 or not whole or not 0 <= ends[0] <= ends[1] <= MAX_REPEAT or not ends[1]:
        raise QueryError(
            f"repeat must be the least and the most links in a row, such as (1, 3), up to {MAX_REPEAT}, not"
            f" {quote_value(value)}"
        )
    return ends[0], ends[1]


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise QueryError(f"{name} must be {' or '.join(map(repr, choices))}, not {quote_value(value)}")


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise QueryError(f"{name} must be true or false, not {quote_value(value)}")


def _check_text(what: str, value: object, example: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise QueryError(f"{what} must be {example}, not {quote_value(value)}")


def _check_optional(what: str, value: object) -> None:
    if value is not None:
        _check_text(what, value, "a non-empty string or null")


def _check_filter(where: Filter | None) -> Filter | None:
    """Return a copy of a filter, None for an empty one."""
    if where is None:
        return None
    if not isinstance(where, Mapping):
        raise QueryError(f"where must be a filter such as {{'status': 'active'}}, not {quote_value(where)}")
    parse_filter(where)
    copy: Filter = orjson.loads(orjson.dumps(where))
    return copy or None
