"""How the results of a catalog's operations come back for a repeated request (`auth/receipts.py`).

Tables, views and the like are immutable objects, and their commits wrote them. So a receipt holds only which
object the result was, and the result is loaded from there: the very version that the first attempt was
answered with, however often it was changed since, and also when others changed it in the same commit.

Must not break: an object that a receipt names is kept for as long as the key is. Where the state that the
commit made has it, history keeps it; where another request of the same commit replaced it, no index has it,
and only the grace of garbage collection keeps it. Both last longer than keys do (`check_lifetimes`).
And what a table says is told again only to who is not restricted on it by now, wherever it was moved since:
the names that the operation is authorized on may be another's by then, or nobody's.
"""

from typing import Generic, NamedTuple, TypeVar

from cynosure.auth.caller import Caller
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import Done
from cynosure.auth.request_key import RequestKey
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.restrictions.rule import Asked
from cynosure.persistence.objects import ObjectType, ObjRef

T = TypeVar("T")


class Version(NamedTuple, Generic[T]):
    """A value, and the object that holds it."""

    ref: ObjRef
    value: T


class RecalledVersion(Generic[T]):
    """Of operations whose result is one stored object."""

    def __init__(self, object_type: ObjectType[T]) -> None:
        self._type = object_type

    def keep(self, result: Version[T], key: RequestKey) -> bytes:
        """See `Recall.keep`."""
        return result.ref.pack()

    async def recall(self, done: Done) -> Version[T]:
        """See `Recall.recall`."""
        ref = ObjRef.unpack(done.data)
        (value,) = await done.after.load_many(self._type, [ref.id])
        return Version(ref, value)


class RecalledTable:
    """Of operations whose result is a version of a table."""

    def __init__(self, catalog: OpenCatalog, caller: Caller, operation: Operation, table: Identifier) -> None:
        self._catalog = catalog
        self._caller = caller
        self._operation = operation
        self._table = table

    def keep(self, result: ManagedTable, key: RequestKey) -> bytes:
        """See `Recall.keep`."""
        return result.ref.pack()

    async def recall(self, done: Done) -> ManagedTable:
        """See `Recall.recall`."""
        catalog = self._catalog
        table = await load_table_at(done.after, ObjRef.unpack(done.data).id, catalog.shared.tables)
        target = catalog.table(self._table)
        asked = Asked(self._caller, self._operation, (target,))
        await catalog.restrictions.check_again(await catalog.read(), asked, target, table.state.id)
        return table
