"""SQL statements of the hot paths: every commit, and every look at the commits of other processes."""

import re
from typing import Any

from sqlalchemy import ClauseElement, Connection, CursorResult, Dialect
from sqlalchemy.sql.compiler import SQLCompiler


class Statement:
    """One SQL statement, compiled once per dialect.

    SQLAlchemy's work for each execution was a fifth of the cost of a write.
    """

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._made: dict[str, tuple[str, list[str] | None]] = {}
        self._insert: _Insert | None = None

    def execute(self, connection: Connection, rows: list[dict[str, Any]]) -> CursorResult[Any]:
        """Execute the statement once for each row of parameters."""
        text, order = self._for(connection.dialect)
        if len(rows) > 1 and connection.dialect.name == "postgresql":
            if self._insert is None:
                self._insert = _Insert(text)
            return self._insert.execute(connection, rows)
        if order is None:
            return connection.exec_driver_sql(text, rows if len(rows) > 1 else rows[0])
        given = [tuple([row[name] for name in order]) for row in rows]
        return connection.exec_driver_sql(text, given if len(given) > 1 else given[0])

    def _for(self, dialect: Dialect) -> tuple[str, list[str] | None]:
        made = self._made.get(dialect.name)
        if made is None:
            compiled = self._statement.compile(dialect=dialect)
            assert isinstance(compiled, SQLCompiler)
            order = compiled.positiontup if compiled.positional else None
            made = self._made[dialect.name] = (str(compiled), order)
        return made


_PARAMETER = re.compile(r"%\((\w+)\)s")


class _Insert:
    """An INSERT of several rows as one statement.

    The driver would send one statement for each row without waiting. While the server waits for the next one, it does
    not end the transaction of a process that was paused (`idle_in_transaction_session_timeout`), and the others wait
    for its locks. A commit has at most some hundred rows, far from the server's limit of 65,535 parameters.
    """

    def __init__(self, text: str) -> None:
        self._head, values = text.split(" VALUES ")
        self._order = _PARAMETER.findall(values)
        self._row = _PARAMETER.sub("%s", values)

    def execute(self, connection: Connection, rows: list[dict[str, Any]]) -> CursorResult[Any]:
        given = tuple([row[name] for row in rows for name in self._order])
        return connection.exec_driver_sql(f"{self._head} VALUES {', '.join([self._row] * len(rows))}", given)
