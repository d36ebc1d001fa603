"""Looking names up in a state: the second step of every operation.

Must not break: inside `prepare` these are given the tracked view, so that what was found is checked again
when the change is committed.
"""

from cynosure.catalog.entities import (
    GENERIC_TABLE,
    NAMESPACE,
    POLICY,
    GenericTableEntity,
    NamespaceEntity,
    PolicyEntity,
)
from cynosure.catalog.errors import (
    CatalogClosed,
    GenericTableExists,
    NoSuchGenericTable,
    NoSuchNamespace,
    NoSuchPolicy,
    NoSuchTable,
    NoSuchView,
    RenameTargetTaken,
    TableExists,
    ViewExists,
)
from cynosure.catalog.names import (
    ADOPTING,
    CLOSED,
    Identifier,
    Namespace,
    facade_key,
    generic_key,
    namespace_key,
    namespace_text,
    policy_key,
    table_key,
    view_key,
)
from cynosure.persistence.commit import View
from cynosure.persistence.objects import ObjRef


async def require_open(view: View) -> None:
    """Refuse to write into a catalog that is being dropped."""
    if await view.find("names", CLOSED) is not None:
        raise CatalogClosed("The catalog is being dropped", fix="Use another catalog.")


async def find_namespace(view: View, namespace: Namespace) -> NamespaceEntity | None:
    """The namespace, or `None`."""
    value = await view.find("names", namespace_key(namespace))
    if value is None:
        return None
    return (await view.load_many(NAMESPACE, [ObjRef.unpack(value).id]))[0]


async def load_namespace(view: View, namespace: Namespace) -> NamespaceEntity:
    """The namespace; `NoSuchNamespace` when there is none."""
    entity = await find_namespace(view, namespace)
    if entity is None:
        raise NoSuchNamespace(namespace_text(namespace))
    return entity


async def require_namespace(view: View, namespace: Namespace) -> None:
    """Refuse a namespace that does not exist, without reading it."""
    if await view.find("names", namespace_key(namespace)) is None:
        raise NoSuchNamespace(namespace_text(namespace))


async def require_namespace_ref(view: View, namespace: Namespace) -> ObjRef:
    """Where the namespace's state is; `NoSuchNamespace` when there is none."""
    value = await view.find("names", namespace_key(namespace))
    if value is None:
        raise NoSuchNamespace(namespace_text(namespace))
    return ObjRef.unpack(value)


async def find_table_ref(view: View, table: Identifier) -> ObjRef | None:
    """Where the table's state is, or `None`."""
    value = await view.find("names", table_key(table))
    return None if value is None else ObjRef.unpack(value)


async def require_table_ref(view: View, table: Identifier) -> ObjRef:
    """Where the table's state is. Clients tell a missing namespace from a missing table by neither."""
    ref = await find_table_ref(view, table)
    if ref is None:
        raise NoSuchTable(str(table))
    return ref


async def require_view_ref(view: View, name: Identifier) -> ObjRef:
    """Where the view's state is; `NoSuchView` when there is none."""
    value = await view.find("names", view_key(name))
    if value is None:
        raise NoSuchView(str(name))
    return ObjRef.unpack(value)


async def require_policy_ref(view: View, policy: Identifier) -> ObjRef:
    """Where the policy's state is; `NoSuchPolicy` when there is none."""
    value = await view.find("names", policy_key(policy))
    if value is None:
        raise NoSuchPolicy(str(policy))
    return ObjRef.unpack(value)


async def load_policy(view: View, policy: Identifier) -> PolicyEntity:
    """The policy; `NoSuchPolicy` when there is none."""
    ref = await require_policy_ref(view, policy)
    return (await view.load_many(POLICY, [ref.id]))[0]


async def require_generic_ref(view: View, table: Identifier) -> ObjRef:
    """Where the generic table's state is; `NoSuchGenericTable` when there is none."""
    value = await view.find("names", generic_key(table))
    if value is None:
        raise NoSuchGenericTable(str(table))
    return ObjRef.unpack(value)


async def load_generic(view: View, ref: ObjRef) -> GenericTableEntity:
    """A generic table that was looked up."""
    return (await view.load_many(GENERIC_TABLE, [ref.id]))[0]


async def require_any_table_ref(view: View, table: Identifier) -> ObjRef:
    """Where the state of a table, generic table or facade is; `NoSuchTable` when there is none."""
    for key in (table_key(table), generic_key(table), facade_key(table)):
        value = await view.find("names", key)
        if value is not None:
            return ObjRef.unpack(value)
    raise NoSuchTable(str(table))


async def require_free_name(view: View, name: Identifier, *, for_view: bool) -> None:
    """Refuse a name that a table, view or generic table has. The namespace must exist."""
    await _require_unpromised(view, name)
    if await view.find("names", table_key(name)) is not None:
        raise TableExists(str(name), is_wanted_by_view=for_view)
    if await view.find("names", view_key(name)) is not None:
        raise ViewExists(str(name), is_wanted_by_table=not for_view)
    if await view.find("names", generic_key(name)) is not None:
        raise GenericTableExists(str(name), is_wanted_by_other=True)


async def require_free_generic_name(view: View, name: Identifier) -> None:
    """`require_free_name` for a generic table."""
    await _require_unpromised(view, name)
    if await view.find("names", generic_key(name)) is not None:
        raise GenericTableExists(str(name))
    if await view.find("names", table_key(name)) is not None:
        raise TableExists(str(name), is_wanted_by_view=True)
    if await view.find("names", view_key(name)) is not None:
        raise ViewExists(str(name), is_wanted_by_table=True)


async def require_free_target(view: View, source: Identifier, destination: Identifier) -> None:
    """Refuse to rename onto a name that a table, view or generic table has."""
    await _require_unpromised(view, destination)
    for kind, key_of in (("Table", table_key), ("View", view_key), ("Generic table", generic_key)):
        if await view.find("names", key_of(destination)) is not None:
            raise RenameTargetTaken(str(source), str(destination), taken_by=kind)


async def _require_unpromised(view: View, name: Identifier) -> None:
    """Refuse a name of something that is on its way here from another catalog: it is as good as there."""
    if await view.find(ADOPTING, table_key(name)) is not None:
        raise TableExists(str(name))
    if await view.find(ADOPTING, view_key(name)) is not None:
        raise ViewExists(str(name))
