"""SQL statements of the hot paths: every commit, and every look at the commits of other processes."""

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

    def execute(self, connection: Connection, rows: list[dict[str, Any]]) -> CursorResult[Any]:
        """Execute the statement once for each row of parameters."""
        text, order = self._for(connection.dialect)
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
