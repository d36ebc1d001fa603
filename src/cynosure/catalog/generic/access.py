"""Credentials for the files of a generic table, as its client asked for them.

Whoever asks gets them or an error: the protocol has no answer in between, and no signing beside it.

Must not break: the base location is validated against what the catalog allows now, every time.
"""

from typing import Final

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.catalog.entities import GenericTableEntity
from cynosure.catalog.file_access.giving import subject_of
from cynosure.catalog.locations import check_allowed
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput
from cynosure.storage.access.ports import Scope
from cynosure.storage.access.vending import Vending

HEADER: Final = "Polaris-Generic-Table-Access-Delegation"
"""How a client asks."""


class StorageAccess(Struct, frozen=True):
    """All that a client needs below one prefix: credentials, and where the storage is."""

    prefix: str
    config: dict[str, str]

    def __repr__(self) -> str:
        return f"StorageAccess({self.prefix!r}, …)"


def require_vending(catalog: OpenCatalog, location: str) -> Vending:
    """Refuse to promise credentials where none can be made."""
    if not location:
        raise BadInput(
            "A generic table without a base location has no files to give access to",
            field=HEADER,
            fix="Create it with a base-location, or do not ask for access.",
        )
    if catalog.storage.vending is None:
        raise BadInput(
            "The storage of this catalog gives no credentials",
            field=HEADER,
            fix="Do not ask for access, or configure a storage with a token service.",
            catalog=catalog.entity.name,
        )
    return catalog.storage.vending


async def give_generic_access(
    catalog: OpenCatalog, caller: Caller, table: Identifier, entity: GenericTableEntity, *, is_writable: bool
) -> tuple[StorageAccess, ...]:
    """Credentials for the base location. Whoever calls has authorized the caller for exactly this.

    `LocationRefused` when the catalog does not allow the location any more.
    """
    vending = require_vending(catalog, entity.location)
    location = check_allowed(catalog, entity.location, field="base-location")
    scope = Scope((location,), is_writable=is_writable)
    vended = await vending.vend(scope, subject_of(catalog, caller, table))
    told = catalog.storage.client_config
    return tuple(StorageAccess(each.prefix, {**told, **each.config}) for each in vended.credentials)
