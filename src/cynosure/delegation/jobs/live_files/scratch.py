"""Listed and referenced files of one table side by side, for as long as a job works in this process.

It is a private database of SQLite without a name: in memory while it is small, in a temporary file that is
gone with the connection when it is not. So a process can work on a table of any size.

A maintainer must not break: calls do not overlap, because a job makes one at a time; each runs in a thread.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any, Final

from cynosure.delegation.jobs.live_files.expanding import Found
from cynosure.delegation.jobs.live_files.places import Places
from cynosure.delegation.jobs.live_files.references import Role
from cynosure.storage.fileio import FileInfo

_SCHEMA: Final = """
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -32000;
    CREATE TABLE listed
        (place INT, path TEXT, size INT, modified INT, PRIMARY KEY (place, path)) WITHOUT ROWID;
    CREATE TABLE named (place INT, path TEXT, role INT, PRIMARY KEY (place, path)) WITHOUT ROWID;
    CREATE TABLE outside (path TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_INSERT_NAMED: Final = """
    INSERT INTO named VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET role = max(role, excluded.role)
"""
_ALL: Final = """
    SELECT place, path, size, coalesce(role, :leftover) AS stage
    FROM listed LEFT JOIN named USING (place, path) WHERE stage IN ({stages}) ORDER BY stage, place, path
"""
_UNNAMED: Final = """
    SELECT place, path, size, :leftover AS stage FROM listed LEFT JOIN named USING (place, path)
    WHERE role IS NULL AND modified < :before ORDER BY place, path
"""

Row = tuple[int, str, int, int]
"""Place, path, size in bytes and role of a file that is there."""


class Scratch:
    """Files of one table. Use as a context manager."""

    def __init__(self, places: Places) -> None:
        self._places = places
        # Threads take turns: one call at a time.
        self._db = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        self._db.executescript(_SCHEMA)

    def __enter__(self) -> "Scratch":
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    async def add_listed(self, found: Sequence[FileInfo]) -> None:
        """Files that are there."""
        rows = [
            (*named, each.size_bytes, each.modified_us)
            for each in found
            if (named := self._places.name(each.location)) is not None
        ]
        await asyncio.to_thread(self._insert, "INSERT OR REPLACE INTO listed VALUES (?, ?, ?, ?)", rows)

    async def add_named(self, found: Sequence[Found]) -> None:
        """Files that the table names, wherever they are."""
        inside: list[tuple[int, str, int]] = []
        outside: list[tuple[str]] = []
        for role, path in found:
            if (named := self._places.find(path)) is None:
                outside.append((path.encode(errors="replace").decode(),))
            else:
                inside.append((*named, int(role)))
        await asyncio.to_thread(self._insert, _INSERT_NAMED, inside)
        await asyncio.to_thread(self._insert, "INSERT OR IGNORE INTO outside VALUES (?)", outside)

    async def read_all(self, roles: Iterable[Role], *, size: int) -> AsyncGenerator[list[Row], None]:
        """Files that are there and have one of these roles, in the order of the roles."""
        stages = ", ".join(str(int(role)) for role in roles)
        query = _ALL.format(stages=stages)
        async for rows in self._read(query, {"leftover": int(Role.LEFTOVER)}, size):
            yield rows

    async def read_unnamed(self, *, before_us: int, size: int) -> AsyncGenerator[list[Row], None]:
        """Files that are there, that nothing names, and that were last written before."""
        values = {"leftover": int(Role.LEFTOVER), "before": before_us}
        async for rows in self._read(_UNNAMED, values, size):
            yield rows

    async def find_unnamed(self, rows: Sequence[Row]) -> list[Row]:
        """Those of these files that nothing names."""
        return await asyncio.to_thread(
            lambda: [
                row
                for row in rows
                if not self._select(
                    "SELECT 1 FROM named WHERE place = :place AND path = :path",
                    {"place": row[0], "path": row[1]},
                )
            ]
        )

    async def read_outside(self, most: int) -> tuple[int, list[str]]:
        """How many named files are outside, and some of them."""
        [(count,)] = await asyncio.to_thread(self._select, "SELECT count(*) FROM outside")
        rows = await asyncio.to_thread(
            self._select, "SELECT path FROM outside ORDER BY path LIMIT :most", {"most": most}
        )
        return count, [path for (path,) in rows]

    def _insert(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self._db.execute("BEGIN")
            self._db.executemany(statement, rows)
            self._db.execute("COMMIT")

    def _select(self, statement: str, values: Mapping[str, int | str] | None = None) -> list[Any]:
        return self._db.execute(statement, values or {}).fetchall()

    async def _read(self, query: str, values: dict[str, int], size: int) -> AsyncGenerator[list[Row], None]:
        cursor = await asyncio.to_thread(self._db.execute, query, values)
        while rows := await asyncio.to_thread(cursor.fetchmany, size):
            yield rows
