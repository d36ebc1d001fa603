"""A vendor in memory, and catalogs that give access with it."""

import re

from cynosure.catalog.opened import OpenCatalog
from cynosure.storage.access.ports import Credential, Scope, Subject, Vended
from cynosure.storage.access.vending import Vending
from cynosure.storage.errors import StorageRefused
from cynosure.storage.open_storage import Storage


class MemoryVendor:
    """Numbers what it makes, and remembers for what; refuses locations that match a pattern."""

    def __init__(self, *, refused: str = "") -> None:
        self.minted: list[tuple[Scope, Subject]] = []
        self._refused = re.compile(refused) if refused else None

    async def mint(self, scope: Scope, subject: Subject) -> Vended:
        if self._refused is not None and self._refused.search(scope.locations[0].text):
            raise StorageRefused("The token service gives nothing for this")
        self.minted.append((scope, subject))
        number = str(len(self.minted))
        made = tuple(Credential(each.text, {"s3.session-token": number}) for each in scope.locations)
        return Vended(made, issued_ms=0, expires_ms=2**60)


def vending(catalog: OpenCatalog, vendor: MemoryVendor) -> OpenCatalog:
    """The same catalog, with a storage that gives credentials."""
    shared = catalog.shared
    storage = Storage(
        catalog.files, {"client.region": "eu"}, vending=Vending(vendor, shared.persistence.clock)
    )
    return OpenCatalog(catalog.realm, catalog.entity, shared, storage)
