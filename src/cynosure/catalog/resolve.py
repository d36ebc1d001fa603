"""Looking names up in a state: the second step of every operation.

Must not break: inside `prepare` these are given the tracked view, so that what was found is checked again
when the change is committed.
"""

from cynosure.catalog.entities import NAMESPACE, NamespaceEntity
from cynosure.catalog.errors import (
    CatalogClosed,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    RenameTargetTaken,
    TableExists,
    ViewExists,
)
from cynosure.catalog.names import (
    CLOSED,
    Identifier,
    Namespace,
    namespace_key,
    namespace_text,
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


async def require_free_name(view: View, name: Identifier, *, for_view: bool) -> None:
    """Refuse a name that a table or view has. The namespace must exist."""
    if await view.find("names", table_key(name)) is not None:
        raise TableExists(str(name), is_wanted_by_view=for_view)
    if await view.find("names", view_key(name)) is not None:
        raise ViewExists(str(name), is_wanted_by_table=not for_view)


async def require_free_target(view: View, source: Identifier, destination: Identifier) -> None:
    """Refuse to rename onto a name that a table or view has."""
    is_table = await view.find("names", table_key(destination)) is not None
    if is_table or await view.find("names", view_key(destination)) is not None:
        raise RenameTargetTaken(str(source), str(destination), is_view=not is_table)
