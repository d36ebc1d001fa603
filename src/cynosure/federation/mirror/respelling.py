"""Restrictions under a spelling that is none: they are for what the remote has under the right one.

Somebody attached a row filter to `NS`, and the remote calls it `ns`. What is under the wrong spelling is
given up (`forgetting.py`); before that, all that hides rows or columns there is left to wait for the right
one.

Must not break: this only adds restrictions. Policies that are under the wrong spelling themselves stay there.
"""

from cynosure.auth.caller import Caller
from cynosure.catalog.cascading.contents import Kind, walk_contents
from cynosure.catalog.managed.identity import load_identity
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import find_namespace, find_table_ref, require_open
from cynosure.federation.mirror.changing import commit_mirror
from cynosure.federation.mirror.facades import find_facade
from cynosure.federation.mirror.waiting import (
    find_awaited_namespaces,
    find_awaited_tables,
    pass_on_to_namespace,
    pass_on_to_table,
)
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.spi import ObjId


async def respell_table(catalog: OpenCatalog, caller: Caller, wrong: Identifier, right: Identifier) -> None:
    """Have what is attached to a table, or waits for it, wait for another name as well."""

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        entity_id = await _find_id(view, wrong)
        return Prepared(None, await pass_on_to_table(view, wrong, entity_id, right))

    await commit_mirror(catalog, caller, "mirror-respell-table", prepare)


async def respell_namespace(catalog: OpenCatalog, caller: Caller, wrong: Namespace, right: Namespace) -> None:
    """The same for a namespace and all that is in it."""

    def moved(path: tuple[str, ...]) -> tuple[str, ...]:
        return (*right, *path[len(wrong) :])

    state = await catalog.read()
    things = [each async for each in walk_contents(state, wrong, Kind.TABLE, Kind.NAMESPACE)]
    namespaces = {wrong, *(each.path for each in things if each.kind is Kind.NAMESPACE)}
    namespaces |= {*await find_awaited_namespaces(state, wrong)}
    tables = {each.name for each in things if each.kind is Kind.TABLE}
    tables |= {*await find_awaited_tables(state, wrong)}
    for path in sorted(namespaces):
        await _respell_level(catalog, caller, path, moved(path))
    for table in sorted(tables):
        await respell_table(catalog, caller, table, Identifier(moved(table.namespace), table.name))


async def _respell_level(catalog: OpenCatalog, caller: Caller, wrong: Namespace, right: Namespace) -> None:
    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        entity = await find_namespace(view, wrong)
        entity_id = None if entity is None else entity.id
        return Prepared(None, await pass_on_to_namespace(view, wrong, entity_id, right))

    await commit_mirror(catalog, caller, "mirror-respell-namespace", prepare)


async def _find_id(view: View, table: Identifier) -> ObjId | None:
    ref = await find_table_ref(view, table)
    if ref is not None:
        return (await load_identity(view, ref))[0]
    facade = await find_facade(view, table)
    return None if facade is None else facade.id
