"""Names in a statement as tables of the catalog.

    t          the session's catalog and namespace
    n.t        the session's catalog
    c.n.t      catalog c; if there is none that the user sees, namespace c.n of the session's catalog

A maintainer must not break: which of several readings of a name is meant does not depend on what somebody
else may see; each is asked on behalf of the user.
"""

from collections.abc import Sequence

from cynosure.query.catalog_access.port import TableName
from cynosure.query.sql.names import resolve


def candidates(parts: Sequence[str], catalog: str, namespace: tuple[str, ...]) -> tuple[TableName, ...]:
    """What a name can mean, the likeliest first. `SqlError` when the session says too little."""
    readings = (
        resolve(tuple(parts), catalog, namespace, catalogs=parts[:1]),
        resolve(tuple(parts), catalog, namespace),
    )
    return tuple(TableName(*each) for each in dict.fromkeys(readings))


def namespace_candidates(
    parts: Sequence[str], catalog: str, namespace: tuple[str, ...]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What a name of a namespace can mean; none given: the session's."""
    if not parts:
        return ((catalog, namespace),)
    found = [(parts[0], tuple(parts[1:]))]
    if catalog:
        found.insert(0 if len(parts) == 1 else 1, (catalog, tuple(parts)))
    return tuple(found)
