"""Writes docs/schema.md: the tables of both engines, from the code that makes them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from linkstore.embeddings import get_embedding
from linkstore.engines.cassandra import statements
from linkstore.engines.cassandra.statements import Tables
from linkstore.engines.embedded import lexical, schema

TABLES = Tables("ks", "kb")
READ_OR_WRITTEN: Final = re.compile(r"(read|write|delete|select|insert|exchange|remove)_", re.IGNORECASE)
"""How the names of statements and of functions that make them begin, other than those that create tables."""
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
    text = PAGE.format(
        version=schema.FORMAT_VERSION,
        sqlite=f"{_without_rows(schema.TABLES)}\n{lexical.WORD_TABLE.strip()}",
        dimension=dimension,
        cassandra="\n".join(f"{_laid_out(statement)};" for statement in _made(dimension)),
        statements="\n".join(_statements()),
    )
    return {"schema.md": text}


def _made(dimension: int) -> Iterator[str]:
    """The statements that create tables and indexes."""
    made = (
        *statements.create_small_tables(expiring=False),
        *statements.create_document_tables(dimension, expiring=False),
        statements.CREATE_MEMBER_TABLE,
        statements.CREATE_WORD_TABLE,
    )
    return map(TABLES.name_in, made)


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
    for name, says in sorted(_described(), key=lambda one: one[0].lower()):
        if READ_OR_WRITTEN.match(name):
            said = re.sub(r":(?:func|data):`(\w+)`", r"`\1`", " ".join(says.partition("Args:")[0].split()))
            text = TABLES.name_in(_shown(getattr(statements, name)))
            yield f"**{name}.** {said}\n\n```sql\n{text}\n```\n"


def _described() -> Iterator[tuple[str, str]]:
    """The names of functions and values of the module of statements, each with its docstring."""
    for one, after in pairwise(ast.parse(inspect.getsource(statements)).body):
        if isinstance(one, ast.FunctionDef):
            yield one.name, ast.get_docstring(one) or ""
        elif isinstance(one, ast.AnnAssign) and isinstance(after, ast.Expr):
            yield ast.unparse(one.target), ast.literal_eval(after.value)


def _shown(statement: str | Callable[..., str]) -> str:
    """The text of a statement, with one example of everything that can occur several times."""
    if isinstance(statement, str):
        return statement
    examples = {
        "table": statements.MEMBER_ROWS,
        "equalities": 1,
        "count": 1,
        **dict.fromkeys(("whole", "replace"), True),
    }
    wanted = inspect.signature(statement).parameters
    return statement(**{name: value for name, value in examples.items() if name in wanted})
