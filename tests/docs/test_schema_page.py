"""The statements on docs/schema.md are whole, and each is there once."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from documented import ROOT

SQL = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "schema.md").read_text(encoding="utf-8"), re.DOTALL)


def test_sqlite_creates_the_tables_of_a_folder() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SQL[0].partition("CREATE VIRTUAL TABLE")[0])
        made = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()
    assert made == (SQL[0].count("CREATE TABLE"),)


def test_statements_for_cassandra_are_whole_and_different() -> None:
    created = [statement.strip() for statement in SQL[1].split(";") if statement.strip()]
    statements = created + SQL[2:]
    assert len(set(statements)) == len(statements) > 30
    for statement in statements:
        for opening, closing_ in ("()", "{}"):
            assert statement.count(opening) == statement.count(closing_), statement
