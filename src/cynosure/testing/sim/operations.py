"""What the clients of a simulation ask for, prepared on production views.

Entities live in the three indexes every catalog has: name to object, stable id to name, location to
stable id. `model.py` says what the same operations mean, on dictionaries and without any of this code.

Must not break: what a preparation decides may rest on the view alone; the change feed carries the
operation, so that the chain can be replayed.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from cynosure.common.errors import AlreadyExists, Conflict, NotFound
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.objects import ObjRef, Stored, struct_type
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject

ACCOUNTS = 4
OPENING_BALANCE = 100
SCAN_LIMIT = 100
SHARED = "shared-"
"""Names that begin so are there as soon as something is counted under them."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One change to one reference."""

    kind: str
    args: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.args))})"


class Detail(Stored, frozen=True):
    """Something an entity needs and garbage collection must find through it."""

    text: bytes


class Entity(Stored, frozen=True):
    """What a name stands for."""

    stable_id: int
    name: str
    location: str
    counter: int
    detail: ObjId


def _entity_refs(entity: Entity) -> list[ObjRef]:
    return [ObjRef(entity.detail, DETAIL.name)]


DETAIL = struct_type("sim-detail", Detail)
ENTITY = struct_type("sim-entity", Entity, refs=_entity_refs)


class _Edit:
    """A change being worked out on a view."""

    def __init__(self, view: View, new_id: Callable[[], ObjId], text: bytes) -> None:
        self._view = view
        self._text = text
        self.new_id = new_id
        self.changes: dict[str, dict[bytes, bytes | None]] = {}
        self.objects: list[NewObject] = []

    async def find(self, name: str) -> Entity | None:
        value = await self._view.find("names", name.encode())
        if value is None:
            return None
        entity = (await self._view.load_many(ENTITY, [ObjRef.unpack(value).id]))[0]
        # Read although nothing needs it: what an entity refers to must be there as long as the entity is.
        await self._view.load_many(DETAIL, [entity.detail])
        return entity

    async def get(self, name: str) -> Entity:
        entity = await self.find(name)
        if entity is None:
            raise NotFound("No such entity", name=name)
        return entity

    async def names(self, prefix: str, limit: int) -> list[str]:
        entries = await self._view.scan("names", prefix=prefix.encode(), limit=limit)
        return [key.decode() for key, _ in entries]

    async def is_free(self, location: str) -> bool:
        """Neither taken, nor inside a taken one, nor around one."""
        parts = location.rstrip("/").split("/")
        for depth in range(1, len(parts)):
            if await self._view.find("locations", f"{'/'.join(parts[:depth])}/".encode()) is not None:
                return False
        return not await self._view.scan("locations", prefix=location.encode(), limit=1)

    def put(self, entity: Entity) -> None:
        obj_id = self.new_id()
        self.objects.append(NewObject(ENTITY, obj_id, entity))
        self._set("names", entity.name, ObjRef(obj_id, ENTITY.name).pack())

    def count(self, entity: Entity, counter: int) -> None:
        self.put(msgspec.structs.replace(entity, counter=counter))

    def create(self, name: str, location: str, counter: int) -> int:
        stable_id, detail = self.new_id(), self.new_id()
        self.objects.append(NewObject(DETAIL, detail, Detail(text=self._text)))
        self.put(Entity(stable_id=stable_id, name=name, location=location, counter=counter, detail=detail))
        self._set("ids", f"{stable_id:020d}", name.encode())
        self._set("locations", location, f"{stable_id:020d}".encode())
        return stable_id

    def drop(self, entity: Entity) -> None:
        self._set("names", entity.name, None)
        self._set("ids", f"{entity.stable_id:020d}", None)
        self._set("locations", entity.location, None)

    def rename(self, entity: Entity, name: str) -> None:
        self._set("names", entity.name, None)
        self.put(msgspec.structs.replace(entity, name=name))
        self._set("ids", f"{entity.stable_id:020d}", name.encode())

    def _set(self, index: str, key: str, value: bytes | None) -> None:
        self.changes.setdefault(index, {})[key.encode()] = value


async def _open(edit: _Edit) -> None:
    if await edit.find("account-0") is None:
        for number in range(ACCOUNTS):
            edit.create(f"account-{number}", f"accounts/{number}/", OPENING_BALANCE)


async def _increment(edit: _Edit, name: str, by: int) -> int:
    entity = await edit.get(name)
    edit.count(entity, entity.counter + by)
    return entity.counter + by


async def _set_if(edit: _Edit, name: str, expected: int, counter: int) -> int:
    entity = await edit.get(name)
    if entity.counter != expected:
        raise Conflict("The counter is another", name=name)
    edit.count(entity, counter)
    return counter


async def _create(edit: _Edit, name: str, location: str) -> int:
    if await edit.find(name) is not None:
        raise AlreadyExists("The name is taken", name=name)
    if not await edit.is_free(location):
        raise Conflict("The location is taken", location=location)
    return edit.create(name, location, 0)


async def _ensure(edit: _Edit, name: str, location: str) -> int:
    entity = await edit.find(name)
    if entity is not None:
        return entity.stable_id
    if not await edit.is_free(location):
        raise Conflict("The location is taken", location=location)
    return edit.create(name, location, 0)


async def _rename(edit: _Edit, name: str, new_name: str) -> int:
    entity = await edit.get(name)
    if await edit.find(new_name) is not None:
        raise AlreadyExists("The name is taken", name=new_name)
    edit.rename(entity, new_name)
    return entity.stable_id


async def _drop(edit: _Edit, name: str) -> int:
    entity = await edit.get(name)
    edit.drop(entity)
    return entity.counter


async def _drop_first(edit: _Edit, prefix: str) -> str:
    names = await edit.names(prefix, 1)
    if not names:
        raise NotFound("No such entity", prefix=prefix)
    edit.drop(await edit.get(names[0]))
    return names[0]


async def _tally(edit: _Edit, prefix: str) -> int:
    """Write down how many names begin so: a decision on a range, which a concurrent create would break."""
    total = len(await edit.names(prefix, SCAN_LIMIT))
    entity = await edit.find(f"tally-{prefix}")
    if entity is None:
        edit.create(f"tally-{prefix}", f"tallies/{prefix}/", total)
    elif entity.counter != total:
        edit.count(entity, total)
    return total


async def _transfer(edit: _Edit, source: str, target: str, amount: int) -> tuple[int, int]:
    paying, paid = await edit.get(source), await edit.get(target)
    if paying.counter < amount:
        raise Conflict("The balance is too low", name=source)
    edit.count(paying, paying.counter - amount)
    edit.count(paid, paid.counter + amount)
    return paying.counter - amount, paid.counter + amount


async def _join(edit: _Edit, name: str, members: int) -> list[int]:
    """Count several requests at once, of which each has a record of its own, with the same result.

    The result names the preparation, so an answer says which one it is of.
    """
    if name.startswith(SHARED) and await edit.find(name) is None:
        return [0, members, edit.create(name, f"{name}/", members)]
    entity = await edit.get(name)
    edit.count(entity, entity.counter + members)
    return [entity.counter, members, edit.new_id()]


async def _read(edit: _Edit, name: str) -> int:
    return (await edit.get(name)).counter


_PREPARE: dict[str, Callable[..., Awaitable[Any]]] = {
    "open": _open,
    "increment": _increment,
    "set-if": _set_if,
    "create": _create,
    "ensure": _ensure,
    "rename": _rename,
    "drop": _drop,
    "drop-first": _drop_first,
    "tally": _tally,
    "transfer": _transfer,
    "join": _join,
    "read": _read,
}


async def prepare(
    operation: Operation, view: View, *, new_id: Callable[[], ObjId], text: bytes, number: int
) -> Prepared[Any]:
    """Work an operation out. `number` says which preparation of its request this is."""
    edit = _Edit(view, new_id, text)
    result = await _PREPARE[operation.kind](edit, *operation.args)
    detail = {"op": operation.kind, "args": list(operation.args), "result": result, "number": number}
    feed = [Change(kind="sim", index="", key=b"", detail=raw_detail(detail))]
    return Prepared(result=result, changes=edit.changes, objects=edit.objects, feed=feed)
