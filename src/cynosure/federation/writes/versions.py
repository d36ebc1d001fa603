"""The object that a prepared change puts under a name: what a receipt of it names."""

from typing import TypeVar

from cynosure.catalog.recalling import Version
from cynosure.common.errors import CorruptObject
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.objects import ObjRef

T = TypeVar("T")


async def version_of(view: View, prepared: Prepared[T], key: bytes) -> Version[T]:
    """What a change leaves under a key of `names`: its own, or what was there when it changes nothing."""
    names = prepared.changes.get("names", {})
    value = names[key] if key in names else await view.find("names", key)
    if value is None:
        raise CorruptObject("What was seen of a remote is not in its catalog")
    return Version(ObjRef.unpack(value), prepared.result)
