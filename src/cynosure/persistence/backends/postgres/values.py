"""Rows, keys and references as parameters of statements, and back."""

from collections.abc import Sequence
from typing import Any

from cynosure.persistence.backends.postgres.statements import (
    DELETE_IF,
    INSERT,
    SWAP,
    EachStatements,
    Statements,
)
from cynosure.persistence.spi import (
    ConditionalWrite,
    DeleteIf,
    Insert,
    ObjId,
    ObjKey,
    Reference,
    RefKey,
    Row,
    Swap,
)


def to_obj_columns(keys: Sequence[ObjKey]) -> tuple[list[Any], ...]:
    """Keys as one array per column, for `unnest`."""
    return (
        [key.realm for key in keys],
        [key.catalog for key in keys],
        [key.type for key in keys],
        [key.id for key in keys],
    )


def to_row_columns(rows: Sequence[Row]) -> tuple[list[Any], ...]:
    """Immutable rows as one array per column."""
    return (
        *to_obj_columns([row.key for row in rows]),
        [row.blob for row in rows],
        [row.created_us for row in rows],
    )


def to_ref_values(ref: Reference) -> tuple[Any, ...]:
    """All columns of a reference."""
    return (*ref.key, ref.head, ref.generation, ref.recent, ref.created_us)


def to_swap(
    statements: Statements, expected: Reference, updated: Reference, rows: Sequence[Row]
) -> tuple[str, tuple[Any, ...]]:
    """The statement that moves a reference, and its parameters."""
    values = (*to_ref_values(updated), expected.head, expected.generation)
    if not rows:
        return statements.swap_ref, values
    return statements.swap_ref_with_rows, (*values, *to_row_columns(rows))


def to_each(
    statements: EachStatements, writes: Sequence[ConditionalWrite]
) -> tuple[str, list[tuple[Any, ...]]]:
    """The statement for conditional writes, and the parameters of each, with its position last.

    Writes of one kind, which is what most calls have, take a statement of their own: sixteen of them took a
    fifth less time than with the one that can be anything.
    """
    # In the order of keys: two calls that lock the same rows in different orders could wait for each other.
    in_order = sorted(enumerate(writes), key=lambda numbered: numbered[1].key)
    inserts = [(*_row_values(write.row), at) for at, write in in_order if isinstance(write, Insert)]
    if len(inserts) == len(writes):
        return statements.insert, inserts
    swaps = [
        (*_row_values(write.row), write.expected_token, at)
        for at, write in in_order
        if isinstance(write, Swap)
    ]
    if len(swaps) == len(writes):
        return statements.swap, swaps
    deletions = [
        (*write.key, write.expected_token, at) for at, write in in_order if isinstance(write, DeleteIf)
    ]
    if len(deletions) == len(writes):
        return statements.delete_if, deletions
    return statements.mixed, [(*_mixed_values(write), at) for at, write in in_order]


def _row_values(row: Row) -> tuple[Any, ...]:
    return (*row.key, row.blob, row.token, row.created_us)


def _mixed_values(write: ConditionalWrite) -> tuple[Any, ...]:
    if isinstance(write, Insert):
        return (*_row_values(write.row), "", INSERT)
    if isinstance(write, Swap):
        return (*_row_values(write.row), write.expected_token, SWAP)
    return (*write.key, b"", "", 0, write.expected_token, DELETE_IF)


def to_ref(key: RefKey, columns: Sequence[Any]) -> Reference:
    """A reference from head, generation, recent heads and created-at."""
    head, generation, recent, created_us = columns
    return Reference(key, ObjId(head), generation, tuple(recent), created_us)
