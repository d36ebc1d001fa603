"""Read a namespace, or only whether it is there."""

from cynosure.auth.caller import Caller
from cynosure.catalog import resolve
from cynosure.catalog.entities import NamespaceEntity
from cynosure.catalog.names import Namespace
from cynosure.catalog.opened import OpenCatalog


async def load_namespace(catalog: OpenCatalog, caller: Caller, namespace: Namespace) -> NamespaceEntity:
    """The namespace; `NoSuchNamespace` when there is none."""
    return await resolve.load_namespace(await catalog.read(), namespace)


async def namespace_exists(catalog: OpenCatalog, caller: Caller, namespace: Namespace) -> None:
    """`NoSuchNamespace` when there is none; its object is not read."""
    await resolve.require_namespace(await catalog.read(), namespace)
