"""All SQL on a store in SQLite, one function per call of the contract.

A maintainer must not break: a read takes all rows of its statement, because a statement left half-way
keeps its snapshot, and the next read on that connection would see the past. A write leaves BEGIN and
COMMIT to the writer and may be run again after a rollback.
"""

import sqlite3
from collections.abc import Sequence
from struct import pack, unpack
from typing import Final

from cynosure.persistence.spi import (
    ConditionalWrite,
    Insert,
    ObjId,
    ObjKey,
    RealmId,
    Reference,
    RefKey,
    Row,
    RowHead,
    Swap,
)

_OBJECT: Final = "realm = ? AND catalog = ? AND type = ? AND id = ?"
_REF: Final = "realm = ? AND catalog = ? AND name = ?"

_FETCH: Final = f"SELECT blob, token, created_us FROM objects WHERE {_OBJECT}"  # noqa: S608
# Not INSERT OR IGNORE, which also swallows violations that are bugs.
_WRITE: Final = (
    "INSERT INTO objects (realm, catalog, type, id, blob, token, created_us) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING"
)
_SWAP: Final = f"UPDATE objects SET blob = ?, token = ?, created_us = ? WHERE {_OBJECT} AND token = ?"  # noqa: S608
_DELETE: Final = f"DELETE FROM objects WHERE {_OBJECT}"  # noqa: S608
_DELETE_IF: Final = f"{_DELETE} AND token = ?"
_SCAN: Final = (
    "SELECT realm, catalog, type, id, token, created_us, length(blob) FROM objects "
    "WHERE (realm, catalog, type, id) > (?, ?, ?, ?) ORDER BY realm, catalog, type, id LIMIT ?"
)
_FETCH_REF: Final = f"SELECT head, generation, recent, created_us FROM refs WHERE {_REF}"  # noqa: S608
_LIST_REFS: Final = (
    "SELECT realm, catalog, name, head, generation, recent, created_us FROM refs "
    "WHERE ?1 IS NULL OR realm = ?1 ORDER BY realm, catalog, name"
)
_INSERT_REF: Final = (
    "INSERT INTO refs (realm, catalog, name, head, generation, recent, created_us) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_SWAP_REF: Final = (
    "UPDATE refs SET head = ?, generation = ?, recent = ?, created_us = ? "  # noqa: S608
    f"WHERE {_REF} AND head = ? AND generation = ?"
)
_DELETE_REF: Final = f"DELETE FROM refs WHERE {_REF} AND head = ? AND generation = ?"  # noqa: S608

_BEFORE_ALL = ("", "", "", 0)

# --- objects -----------------------------------------------------------------------------------


def fetch(connection: sqlite3.Connection, keys: Sequence[ObjKey]) -> list[Row | None]:
    """One lookup per key: cheaper than any join against a list of keys, as there is no round trip."""
    found: list[Row | None] = []
    for key in keys:
        rows = connection.execute(_FETCH, key).fetchall()
        found.append(Row(key, *rows[0]) if rows else None)
    return found


def write(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Add rows; existing keys are left alone."""
    connection.executemany(_WRITE, [(*row.key, row.blob, row.token, row.created_us) for row in rows])


def insert(connection: sqlite3.Connection, row: Row) -> bool:
    """Add a row unless its key exists."""
    return connection.execute(_WRITE, (*row.key, row.blob, row.token, row.created_us)).rowcount == 1


def swap(connection: sqlite3.Connection, row: Row, expected_token: str) -> bool:
    """Replace a row if its token is the expected one."""
    values = (row.blob, row.token, row.created_us, *row.key, expected_token)
    return connection.execute(_SWAP, values).rowcount == 1


def delete_if(connection: sqlite3.Connection, key: ObjKey, expected_token: str) -> bool:
    """Delete a row if its token is the expected one."""
    return connection.execute(_DELETE_IF, (*key, expected_token)).rowcount == 1


def write_each(connection: sqlite3.Connection, writes: Sequence[ConditionalWrite]) -> list[bool]:
    """Conditional writes, each with its own outcome."""
    return [_write_one(connection, write) for write in writes]


def _write_one(connection: sqlite3.Connection, write: ConditionalWrite) -> bool:
    if isinstance(write, Insert):
        return insert(connection, write.row)
    if isinstance(write, Swap):
        return swap(connection, write.row, write.expected_token)
    return delete_if(connection, write.key, write.expected_token)


def delete(connection: sqlite3.Connection, keys: Sequence[ObjKey]) -> None:
    """Delete rows; missing ones are ignored."""
    connection.executemany(_DELETE, keys)


def scan(connection: sqlite3.Connection, after: ObjKey | None, limit: int) -> list[RowHead]:
    """A page of row heads in key order."""
    rows = connection.execute(_SCAN, (*(after or _BEFORE_ALL), limit)).fetchall()
    return [RowHead(ObjKey(*row[:4]), *row[4:]) for row in rows]


# --- references --------------------------------------------------------------------------------


def fetch_refs(connection: sqlite3.Connection, keys: Sequence[RefKey]) -> list[Reference | None]:
    """One lookup per key, as in `fetch`."""
    found: list[Reference | None] = []
    for key in keys:
        rows = connection.execute(_FETCH_REF, key).fetchall()
        found.append(_to_ref(key, *rows[0]) if rows else None)
    return found


def list_refs(connection: sqlite3.Connection, realm: RealmId | None) -> list[Reference]:
    """All references, or those of one realm, in key order."""
    rows = connection.execute(_LIST_REFS, (realm,)).fetchall()
    return [_to_ref(RefKey(*row[:3]), *row[3:]) for row in rows]


def insert_ref(connection: sqlite3.Connection, ref: Reference) -> bool:
    """Add a reference unless its key exists."""
    return connection.execute(_INSERT_REF, (*ref.key, *_to_values(ref))).rowcount == 1


def swap_ref(
    connection: sqlite3.Connection, expected: Reference, updated: Reference, rows: Sequence[Row]
) -> bool:
    """Move a reference and add its rows in the same transaction; a lost swap adds none."""
    values = (*_to_values(updated), *expected.key, expected.head, expected.generation)
    if connection.execute(_SWAP_REF, values).rowcount != 1:
        return False
    write(connection, rows)
    return True


def delete_ref(connection: sqlite3.Connection, expected: Reference) -> bool:
    """Delete a reference if it did not move."""
    values = (*expected.key, expected.head, expected.generation)
    return connection.execute(_DELETE_REF, values).rowcount == 1


def _to_values(ref: Reference) -> tuple[int, int, bytes, int]:
    return ref.head, ref.generation, pack(f">{len(ref.recent)}Q", *ref.recent), ref.created_us


def _to_ref(key: RefKey, head: ObjId, generation: int, recent: bytes, created_us: int) -> Reference:
    # Typed, not converted: `ObjId(...)` is a call, and this is on the way of every request.
    heads: tuple[ObjId, ...] = unpack(f">{len(recent) // 8}Q", recent)
    return Reference(key, head, generation, heads, created_us)
