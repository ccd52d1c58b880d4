"""Writes docs/schema.md: the tables of both engines, from the code that makes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Final

from linkstore.embeddings import get_embedding
from linkstore.engines.cassandra import statements
from linkstore.engines.cassandra.statements import Tables
from linkstore.engines.embedded import lexical, schema

TABLES = Tables("ks", "kb")
READ_OR_WRITTEN: Final = re.compile(r"(read|write|delete|count|scan|select|insert|exchange|remove)(_|\Z)")
"""How the names of functions begin that make statements, other than those that create tables."""
PAGE = """# Tables

These are the tables as the code creates them. [The file format](file-format.md) and
[Operate a store in Cassandra](how-to/operate-cassandra.md) describe what they are for.

## In a folder

SQLite; format version {version}.

```sql
{sqlite}
```

## In Cassandra

For a store `kb` in a keyspace `ks`, with the default embedding, whose vectors have {dimension} dimensions.

```sql
{cassandra}
```

## Statements for Cassandra

These are all statements that read or write a store. Values are always bound to the `?`.

{statements}
This page is written by `make docs`.
"""


def pages() -> dict[str, str]:
    """The page: name below docs/ → text."""
    dimension = len(get_embedding("wordllama").embed_query("dimension"))
    made = dict.fromkeys(_made(dimension))  # the small tables include some that have a function of their own
    text = PAGE.format(
        version=schema.FORMAT_VERSION,
        sqlite=f"{_without_rows(schema.TABLES)}\n{lexical.WORD_TABLE.strip()}",
        dimension=dimension,
        cassandra="\n".join(f"{_laid_out(statement)};" for statement in made),
        statements="\n".join(_statements()),
    )
    return {"schema.md": text}


def _made(dimension: int) -> Iterator[str]:
    """The statements that create tables and indexes, in the order of their functions."""
    for name, function in inspect.getmembers(statements, inspect.isfunction):
        if name.startswith("create_"):
            known = {"tables": TABLES, "dimension": dimension}
            text = function(**{one: known[one] for one in inspect.signature(function).parameters})
            yield from [text] if isinstance(text, str) else text


def _without_rows(tables: str) -> str:
    """The statements that create tables, without those that fill them."""
    return "\n".join(line for line in tables.strip().splitlines() if not line.startswith(("INSERT", "-- ")))


def _laid_out(statement: str) -> str:
    """A CREATE statement as people write it: a line for each column, and for each option."""
    head, opening, rest = statement.partition(" (")
    if not head.startswith("CREATE TABLE"):
        return statement.replace(" ON ", "\n  ON ").replace(" USING ", "\n  USING ")
    columns, closing, options = rest.partition(")) WITH ") if ")) WITH " in rest else (rest[:-1], "", "")
    listed = re.split(r", (?=\w+ (?:text|map|set|frozen|blob|vector|int|bigint|float)|PRIMARY KEY)", columns)
    text = f"{head}{opening}\n" + ",\n".join(f"  {column}" for column in listed)
    return f"{text})\n) WITH {options.replace(' AND ', chr(10) + '  AND ')}" if closing else f"{text}\n)"


def _statements() -> Iterator[str]:
    for name, function in _functions(statements):
        says = re.sub(
            r":func:`(\w+)`", r"`\1`", " ".join((function.__doc__ or "").partition("Args:")[0].split())
        )
        yield f"**{name}.** {says}\n\n```sql\n{_shown(function)}\n```\n"


def _functions(module: object) -> list[tuple[str, Callable[..., str]]]:
    found = inspect.getmembers(module, inspect.isfunction)
    return [(name, function) for name, function in found if READ_OR_WRITTEN.match(name)]


def _shown(function: Callable[..., str]) -> str:
    """The text of a statement, with one example of everything that can occur several times."""
    examples = {
        "tables": TABLES,
        "table": TABLES.member_rows,
        "equalities": 1,
        "count": 1,
        **dict.fromkeys(("whole", "replace", "after"), True),
    }
    wanted = inspect.signature(function).parameters
    return function(**{name: value for name, value in examples.items() if name in wanted})
