"""Drop an empty namespace. It can be restored within the undrop window."""

from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.dropping import make_drop_of
from cynosure.catalog.entities import NAMESPACE
from cynosure.catalog.errors import NamespaceNotEmpty, NoSuchNamespace
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.names import (
    Namespace,
    children_prefix,
    generics_prefix,
    namespace_key,
    namespace_text,
    policies_prefix,
    tables_prefix,
    views_prefix,
)
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_open
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.objects import ObjRef

_HELD: Final = (tables_prefix, children_prefix, views_prefix, generics_prefix, policies_prefix)
"""What a namespace can hold."""


async def drop_namespace(catalog: OpenCatalog, caller: Caller, namespace: Namespace) -> None:
    """Drop it. `NamespaceNotEmpty` when it holds anything, `NoSuchNamespace` when there is none."""
    key = namespace_key(namespace)

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        value = await view.find("names", key)
        if value is None:
            raise NoSuchNamespace(namespace_text(namespace))
        await _require_empty(view, namespace)
        state = ObjRef.unpack(value)
        (entity,) = await view.load_many(NAMESPACE, [state.id])
        held = Held(entity.id, "")
        return make_drop_of("namespace", catalog, caller, namespace, key, state, held).prepared()

    await catalog.commit(caller, ops.DROP_NAMESPACE, (catalog.namespace(namespace),), prepare, NOTHING)


async def _require_empty(view: View, namespace: Namespace) -> None:
    # The scans are remembered by the view: whatever is created here meanwhile makes them untrue.
    for prefix_of in _HELD:
        if await view.scan("names", prefix=prefix_of(namespace), limit=1):
            raise NamespaceNotEmpty(namespace_text(namespace))
