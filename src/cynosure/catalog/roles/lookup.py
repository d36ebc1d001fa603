"""A catalog role by its name, in a state of the catalog's `grants`.

Must not break: inside `prepare` these are given the tracked view.
"""

from collections.abc import Iterable
from typing import NamedTuple

from cynosure.auth.entities import CATALOG_ROLE, CatalogRoleEntity
from cynosure.persistence.commit import View
from cynosure.persistence.index import encode_id_key, encode_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId


class FoundRole(NamedTuple):
    """A catalog role and the version of it that the state has."""

    ref: ObjRef
    entity: CatalogRoleEntity


def role_key(name: str) -> bytes:
    """Key of a catalog role in `names`."""
    return encode_key(name)


async def find_role(view: View, name: str) -> FoundRole | None:
    """The role of this name, or `None`."""
    value = await view.find("names", role_key(name)) if name else None
    if value is None:
        return None
    ref = ObjRef.unpack(value)
    return FoundRole(ref, (await view.load_many(CATALOG_ROLE, [ref.id]))[0])


async def load_roles_by_id(view: View, ids: Iterable[ObjId]) -> list[CatalogRoleEntity]:
    """The roles of these ids, in their order; those that are gone are left out."""
    refs: list[ObjRef] = []
    for each in ids:
        key = await view.find("ids", encode_id_key(each))
        value = None if key is None else await view.find("names", key)
        if value is not None:
            refs.append(ObjRef.unpack(value))
    return await view.load_many(CATALOG_ROLE, [ref.id for ref in refs])
