"""Writes docs/schema.md: the tables of both engines, from the code that makes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.embedded import schema, words
from linkstore.embeddings import get_embedding

TABLES = Tables("ks", "kb")
PAGE = """# Tables

The tables as the code makes them; what they are for, and how they may be read, stands in
[the file format](file-format.md) and [operating Cassandra](how-to/operate-cassandra.md).

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

## What is asked of Cassandra

Every statement that reads or writes a store. Each `?` is bound, never spliced.

{statements}
This page is written by `make docs`.
"""


def pages() -> dict[str, str]:
    """The page: name below docs/ → text."""
    dimension = len(get_embedding("wordllama").embed_query("dimension"))
    made = _made(dimension)
    text = PAGE.format(
        version=schema.FORMAT_VERSION,
        sqlite=f"{_without_rows(schema.TABLES)}\n{words.TABLE.strip()}",
        dimension=dimension,
        cassandra="\n".join(f"{_laid_out(statement)};" for statement in made),
        statements="\n".join(_statements()),
    )
    return {"schema.md": text}


def _made(dimension: int) -> Iterator[str]:
    """All that makes tables and indexes, as the module has it."""
    for name, function in inspect.getmembers(cql, inspect.isfunction):
        if name.startswith("create_"):
            known = {"tables": TABLES, "dimension": dimension}
            text = function(**{one: known[one] for one in inspect.signature(function).parameters})
            yield from [text] if isinstance(text, str) else text


def _without_rows(tables: str) -> str:
    """The statements that make tables, without those that fill them."""
    return "\n".join(line for line in tables.strip().splitlines() if not line.startswith(("INSERT", "-- ")))


def _laid_out(statement: str) -> str:
    """A CREATE statement as people write it: a line for each column."""
    head, opening, rest = statement.partition(" (")
    if not head.startswith("CREATE TABLE"):
        return statement.replace(" ON ", "\n  ON ").replace(" USING ", "\n  USING ")
    columns = re.split(r", (?=(?:\w+ (?:text|map|frozen|blob|vector|int|float))|PRIMARY KEY)", rest[:-1])
    return f"{head}{opening}\n" + ",\n".join(f"  {column}" for column in columns) + "\n)"


def _statements() -> Iterator[str]:
    for name, function in inspect.getmembers(cql, inspect.isfunction):
        if name.startswith(("read", "write", "delete", "count", "scan", "nearest")):
            says = re.sub(r":func:`(\w+)`", r"`\1`", " ".join((function.__doc__ or "").split()))
            yield f"**{name}.** {says}\n\n```sql\n{_shown(function)}\n```\n"


def _shown(function: object) -> str:
    """The text of a statement, with one of each thing that there may be several of."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    examples = {"equalities": 1, "whole": True, "count": 1, "lifetime": True, "replace": True}
    given = {name: examples[name] for name in signature.parameters if name != "tables"}
    return str(function(TABLES, **given))  # type: ignore[operator]
