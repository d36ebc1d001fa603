"""A small application of the persistence room, for tests, benchmarks and fault injection.

Items with a name, a location and a count: enough to update, create, rename, drop and move, with the
three indexes a catalog has. It uses only what any operation may use.
"""

from collections.abc import Sequence
from typing import TypeVar

from cynosure.common.errors import AlreadyExists, Conflict, NotFound
from cynosure.persistence.commit import Change, Prepared, Request, View, find_object
from cynosure.persistence.commit.request import Prepare
from cynosure.persistence.ids import IdSource
from cynosure.persistence.index import encode_id_key, encode_key
from cynosure.persistence.objects import ObjRef, Stored, struct_type
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject

R = TypeVar("R")


class Item(Stored, frozen=True):
    """An entity: `count` is what updates change, `payload` gives it a realistic size."""

    stable_id: ObjId
    location: str
    count: int = 0
    payload: bytes = b""


ITEM = struct_type("test-item", Item)
OBJECT_TYPES = (ITEM,)


class Items:
    """Requests on items. Each method returns a request for a committer of a `main` reference."""

    def __init__(self, ids: IdSource, *, principal: str = "tester", payload: bytes = b"") -> None:
        self._ids = ids
        self._principal = principal
        self._payload = payload

    def create(self, *name: str, location: str = "", key_hash: str = "") -> Request[Item]:
        """A new item; `AlreadyExists` when its name or location is taken."""
        key, place = encode_key(*name), encode_key(location or "/".join(name))

        async def prepare(view: View) -> Prepared[Item]:
            if await view.find("names", key) is not None:
                raise AlreadyExists("Name taken", name=name)
            if await view.find("locations", place) is not None:
                raise AlreadyExists("Location taken", location=location)
            item = Item(stable_id=self._ids.next(), location=location, payload=self._payload)
            new = NewObject(ITEM, self._ids.next(), item)
            stable = encode_id_key(item.stable_id)
            changes = {
                "names": {key: ObjRef(new.id, ITEM.name).pack()},
                "ids": {stable: key},
                "locations": {place: stable},
            }
            return Prepared(item, changes, [new], [Change(kind="created", index="names", key=key)])

        return self._request(prepare, "create", key_hash)

    def add(self, *name: str, amount: int = 1, key_hash: str = "") -> Request[int]:
        """Add to an item's count and return it; creates the item when there is none."""
        return self.add_all([(encode_key(*name), amount)], key_hash=key_hash)

    def add_all(self, amounts: Sequence[tuple[bytes, int]], *, key_hash: str = "") -> Request[int]:
        """Add to several items' counts at once; returns the last one's."""

        async def prepare(view: View) -> Prepared[int]:
            changes: dict[bytes, bytes | None] = {}
            objects: list[NewObject] = []
            count = 0
            for key, amount in amounts:
                item = await find_object(view, "names", key, ITEM)
                count = (item.count if item else 0) + amount
                value = Item(
                    stable_id=item.stable_id if item else self._ids.next(),
                    location=item.location if item else "",
                    count=count,
                    payload=self._payload,
                )
                new = NewObject(ITEM, self._ids.next(), value)
                objects.append(new)
                changes[key] = ObjRef(new.id, ITEM.name).pack()
            feed = [Change(kind="added", index="names", key=key) for key, _ in amounts]
            return Prepared(count, {"names": changes}, objects, feed)

        return self._request(prepare, "add", key_hash)

    def require(self, *name: str, count: int) -> Request[int]:
        """Add one, if the count is `count` now; `Conflict` otherwise."""
        key = encode_key(*name)
        added = self.add(*name)

        async def prepare(view: View) -> Prepared[int]:
            item = await find_object(view, "names", key, ITEM)
            if item is None or item.count != count:
                raise Conflict("Requirement failed", expected=count, found=item.count if item else None)
            return await added.prepare(view)

        return self._request(prepare, "require", "")

    def rename(self, source: str, target: str) -> Request[None]:
        """Move an item to another name."""
        old_key, new_key = encode_key(source), encode_key(target)

        async def prepare(view: View) -> Prepared[None]:
            value = await view.find("names", old_key)
            item = await find_object(view, "names", old_key, ITEM)
            if value is None or item is None:
                raise NotFound("No such item", name=source)
            if await view.find("names", new_key) is not None:
                raise AlreadyExists("Name taken", name=target)
            changes: dict[str, dict[bytes, bytes | None]] = {
                "names": {old_key: None, new_key: value},
                "ids": {encode_id_key(item.stable_id): new_key},
            }
            return Prepared(None, changes, (), [Change(kind="renamed", index="names", key=old_key)])

        return self._request(prepare, "rename", "")

    def drop(self, *name: str) -> Request[None]:
        """Remove an item."""
        key = encode_key(*name)

        async def prepare(view: View) -> Prepared[None]:
            item = await find_object(view, "names", key, ITEM)
            if item is None:
                raise NotFound("No such item", name=name)
            place = encode_key(item.location or "/".join(name))
            changes: dict[str, dict[bytes, bytes | None]] = {
                "names": {key: None},
                "ids": {encode_id_key(item.stable_id): None},
                "locations": {place: None},
            }
            return Prepared(None, changes, (), [Change(kind="dropped", index="names", key=key)])

        return self._request(prepare, "drop", "")

    def drop_if_empty(self, prefix: bytes) -> Request[int]:
        """Refused with `Conflict` while any name begins with `prefix`; otherwise changes nothing."""

        async def prepare(view: View) -> Prepared[int]:
            if await view.scan("names", prefix=prefix, limit=1):
                raise Conflict("Not empty")
            marker = encode_key("emptied", prefix.hex())
            return Prepared(0, {"locations": {marker: b"x"}})

        return self._request(prepare, "drop-if-empty", "")

    def _request(self, prepare: Prepare[R], operation: str, key_hash: str) -> Request[R]:
        return Request(prepare, self._principal, operation, key_hash=key_hash)
