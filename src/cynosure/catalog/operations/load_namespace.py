"""Read a namespace, or only whether it is there."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog import resolve
from cynosure.catalog.entities import NamespaceEntity
from cynosure.catalog.names import Namespace
from cynosure.catalog.opened import OpenCatalog


async def load_namespace(catalog: OpenCatalog, caller: Caller, namespace: Namespace) -> NamespaceEntity:
    """The namespace; `NoSuchNamespace` when there is none."""
    view = await catalog.read()
    await catalog.authorize(view, caller, ops.LOAD_NAMESPACE, catalog.namespace(namespace))
    return await resolve.load_namespace(view, namespace)


async def namespace_exists(catalog: OpenCatalog, caller: Caller, namespace: Namespace) -> None:
    """`NoSuchNamespace` when there is none; its object is not read."""
    view = await catalog.read()
    await catalog.authorize(view, caller, ops.NAMESPACE_EXISTS, catalog.namespace(namespace))
    await resolve.require_namespace(view, namespace)
