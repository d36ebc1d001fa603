"""What a collection has decided to delete, as a stored object, so that it can go on after a crash.

The object is itself unreachable: the next collection deletes it.
"""

from collections.abc import Iterator

from pyroaring import BitMap64

from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import CatalogId, ObjId, ObjKey, RealmId


class DoomedScope(Stored, frozen=True):
    """Doomed rows of one type in one scope."""

    realm: RealmId
    catalog: CatalogId
    type: str
    ids: bytes
    """Serialized 64-bit roaring bitmap."""


class Doomed(Stored, frozen=True):
    """All rows a collection will delete."""

    scopes: tuple[DoomedScope, ...]

    def count(self) -> int:
        """Number of rows."""
        return sum(len(BitMap64.deserialize(scope.ids)) for scope in self.scopes)

    def batches(self, rows: int) -> Iterator[list[ObjKey]]:
        """Keys in a fixed order, at most `rows` at a time.

        Parts come last and in batches of their own: a reader who finds an object without its parts, and
        then no object, knows that it was collected and not damaged.
        """
        batch: list[ObjKey] = []
        is_in_parts = False
        for scope in sorted(self.scopes, key=lambda scope: "#" in scope.type):
            if batch and not is_in_parts and "#" in scope.type:
                yield batch
                batch = []
            is_in_parts = "#" in scope.type
            for obj_id in BitMap64.deserialize(scope.ids):
                batch.append(ObjKey(scope.realm, scope.catalog, scope.type, ObjId(obj_id)))
                if len(batch) == rows:
                    yield batch
                    batch = []
        if batch:
            yield batch


DOOMED = struct_type("gc-doomed", Doomed)
