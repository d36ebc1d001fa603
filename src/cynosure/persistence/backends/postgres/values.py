"""Rows, keys and references as parameters of statements, and back."""

from collections.abc import Sequence
from typing import Any

from cynosure.persistence.backends.postgres.statements import Statements
from cynosure.persistence.spi import ObjId, ObjKey, Reference, RefKey, Row


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


def to_ref(key: RefKey, columns: Sequence[Any]) -> Reference:
    """A reference from head, generation, recent heads and created-at."""
    head, generation, recent, created_us = columns
    return Reference(key, ObjId(head), generation, tuple(recent), created_us)
