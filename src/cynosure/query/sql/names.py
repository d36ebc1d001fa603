"""Names of tables: what a name with fewer parts than a full one is relative to.

    t           session's catalog and namespace
    a.t         session's catalog, namespace a, unless a is a catalog
    c.a.b.t     catalog c, namespace a.b

As Spark has it: the first part is a catalog if there is one of that name, else a namespace of the session's
catalog.

A maintainer must not break: this decides which table is meant. It never looks for a table in two places.
"""

from collections.abc import Collection
from typing import NamedTuple

from cynosure.query.errors import SqlError


class FullName(NamedTuple):
    """Where a table is."""

    catalog: str
    namespace: tuple[str, ...]
    name: str


def resolve(
    parts: tuple[str, ...], catalog: str, namespace: tuple[str, ...], *, catalogs: Collection[str] = ()
) -> FullName:
    """What a name stands for, given the session's catalog and namespace, and the catalogs that there are."""
    if not parts or not all(parts):
        raise SqlError("The name of a table is empty", fix="Name a table.")
    if len(parts) == 1:
        if not catalog:
            raise SqlError(
                "The table has no catalog", fix="Write catalog.namespace.table, or choose one.", name=parts[0]
            )
        if not namespace:
            raise SqlError("The table has no namespace", fix="Write namespace.table.", name=parts[0])
        return FullName(catalog, namespace, parts[0])
    if len(parts) > 2 and (parts[0] in catalogs or parts[0] == catalog or not catalog):
        return FullName(parts[0], parts[1:-1], parts[-1])
    if not catalog:
        raise SqlError("The table has no catalog", fix="Write catalog.namespace.table.", name=".".join(parts))
    return FullName(catalog, parts[:-1], parts[-1])
