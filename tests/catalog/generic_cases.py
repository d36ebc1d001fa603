"""Every operation on generic tables and notifications, and exactly what they need: see `access_cases.py`."""

from cynosure.catalog.generic.create_generic_table import CreateGenericTable, create_generic_table
from cynosure.catalog.generic.drop_generic_table import drop_generic_table
from cynosure.catalog.generic.list_generic_tables import list_generic_tables
from cynosure.catalog.generic.load_generic_table import load_generic_table
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.notify import Notification, notify
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.access_cases import ALL, NEW, Case, a_role
from tests.catalog.external import UUID, as_external, write_metadata
from tests.catalog.generic.vendors import MemoryVendor, vending
from tests.catalog.world import NS, Lake

G = Identifier(NS, "g")


def generic(lake: Lake, name: str) -> CreateGenericTable:
    return CreateGenericTable(Identifier(NS, name), "delta", f"{lake.catalog.base.text}/generic/{name}")


async def a_generic_table(lake: Lake) -> None:
    await create_generic_table(lake.catalog, ROOT, generic(lake, "g"))


async def a_role_and_a_generic_table(lake: Lake) -> None:
    await a_role(lake)
    await a_generic_table(lake)


async def told(lake: Lake) -> Notification:
    return Notification("CREATE", "new", 1, UUID, await write_metadata(lake.catalog))


GENERIC_CASES = [
    Case(
        "list generic tables",
        lambda w, who, _: list_generic_tables(w.catalog, who, NS, ALL),
        on_namespace(NS, P.TABLE_LIST),
    ),
    Case(
        "create generic table",
        lambda w, who, _: create_generic_table(w.catalog, who, generic(w, "new")),
        on_namespace(NS, P.TABLE_CREATE),
    ),
    Case(
        "create generic table delegated",
        lambda w, who, _: create_generic_table(
            vending(w.catalog, MemoryVendor()), who, generic(w, "new"), is_delegated=True
        ),
        on_namespace(NS, P.TABLE_CREATE, P.TABLE_WRITE_DATA),
    ),
    Case(
        "load generic table",
        lambda w, who, _: load_generic_table(w.catalog, who, G),
        on_table(G, P.TABLE_READ_PROPERTIES),
        a_generic_table,
    ),
    Case(
        "load generic table to read",
        lambda w, who, _: load_generic_table(vending(w.catalog, MemoryVendor()), who, G, is_delegated=True),
        on_table(G, P.TABLE_READ_DATA),
        a_generic_table,
    ),
    Case(
        "load generic table to write",
        lambda w, who, _: load_generic_table(vending(w.catalog, MemoryVendor()), who, G, is_delegated=True),
        on_table(G, P.TABLE_WRITE_DATA),
        a_generic_table,
    ),
    Case(
        "drop generic table",
        lambda w, who, _: drop_generic_table(w.catalog, who, G),
        on_table(G, P.TABLE_DROP),
        a_generic_table,
    ),
    Case(
        "grant on a generic table",
        lambda w, who, _: grant_privilege(w.catalog, who, "reader", on_table(G, P.TABLE_LIST)[0]),
        on_table(G, P.CATALOG_MANAGE_ACCESS),
        a_role_and_a_generic_table,
    ),
    Case(
        "notify",
        lambda w, who, told: notify(as_external(w.catalog), who, NEW, told),
        on_catalog(
            P.TABLE_CREATE, P.TABLE_WRITE_PROPERTIES, P.TABLE_DROP, P.NAMESPACE_CREATE, P.NAMESPACE_DROP
        ),
        told,
    ),
]
