"""Names of catalogs by id, as a realm's list has them.

The room of catalogs is above this one; what is read here is the list's own index (`ids`), not its entities.
"""

from cynosure.persistence.commit import State
from cynosure.persistence.index import after, decode_key, encode_key
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import realm_reference
from cynosure.persistence.spi import CatalogId, ObjId, RealmId

_ENTRIES_AT_ONCE = 1_000


class CatalogNames:
    """What one process knows of the lists of all realms."""

    def __init__(self, persistence: Persistence) -> None:
        self._persistence = persistence
        self._known: dict[RealmId, tuple[ObjId, dict[CatalogId, str]]] = {}

    async def list(self, realm: RealmId) -> dict[CatalogId, str]:
        """All catalogs that are listed now."""
        state = await self._read(realm)
        known = self._known.get(realm)
        if known is not None and known[0] == state.commit_id:
            return known[1]
        names: dict[CatalogId, str] = {}
        start = b""
        while entries := await state.scan("ids", start=start, limit=_ENTRIES_AT_ONCE):
            names |= {CatalogId(decode_key(key)[0]): decode_key(name)[0] for key, name in entries}
            start = after(entries[-1][0])
        self._known[realm] = (state.commit_id, names)
        return names

    async def find(self, realm: RealmId, catalog: CatalogId) -> str | None:
        """The name of one catalog; `None` when it is not listed."""
        name = await (await self._read(realm)).find("ids", encode_key(catalog))
        return None if name is None else decode_key(name)[0]

    async def _read(self, realm: RealmId) -> State:
        committer = self._persistence.committer(realm_reference(realm, "catalogs"))
        # Fresh: where heads may be stale, a list that is older than a position would look like a dropped
        # catalog.
        return (await committer.read(is_fresh=True)).state
