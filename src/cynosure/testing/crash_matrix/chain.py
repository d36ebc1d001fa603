"""What is in the store: the heads of all references that count, and what was committed to them since.

References count that a list names. Others are of catalogs that were being made when their server died, or
that are gone: nobody reaches them, and a sweep removes them.

Must not break: it reads the database itself, beside all servers, and writes nothing but its own node lease.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Final, NamedTuple

from cynosure.auth.receipts import unpack_receipt
from cynosure.persistence.commit.records import RequestRecord
from cynosure.persistence.history.log import walk_log
from cynosure.persistence.index.keys import encode_key
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.references import realm_reference
from cynosure.persistence.spi import REALM_SCOPE, ObjId, RefKey

_BACKGROUND: Final = frozenset({"collect-events", "record-maintenance"})
"""What servers commit by themselves, now and then."""

Heads = Mapping[RefKey, ObjId]


class Committed(NamedTuple):
    """What was committed since some heads."""

    requests: tuple[RequestRecord, ...]

    def keyed(self, kind: str) -> int:
        """How many requests with a key have a receipt of this kind."""
        receipts = [each.receipt for each in self.requests if each.key_hash and each.receipt]
        return sum(unpack_receipt(each).kind == kind for each in receipts)

    def changes(self) -> "Counter[str]":
        """How often each kind of change was made."""
        return Counter(change.kind for each in self.requests for change in each.changes)


class ChainReader:
    """Reads all chains of a store."""

    def __init__(self, persistence: Persistence) -> None:
        self._persistence = persistence

    async def heads(self) -> Heads:
        """Of all references that count, now."""
        refs = await self._persistence.backend.list_refs()
        return {ref.key: ref.head for ref in refs if await self._counts(ref.key)}

    async def since(self, heads: Heads) -> Committed:
        """All requests that were committed after these heads, in all references that count now."""
        found: list[RequestRecord] = []
        for key, head in (await self.heads()).items():
            known = heads.get(key)
            if head == known:
                continue
            store = self._persistence.store(key.realm, key.catalog)
            async with aclosing(walk_log(store, head)) as entries:
                async for entry in entries:
                    if entry.id == known:
                        break
                    found.extend(entry.record.requests)
        return Committed(tuple(each for each in found if each.operation not in _BACKGROUND))

    async def _counts(self, key: RefKey) -> bool:
        if key.name == "tasks":
            # Tasks go on by themselves, on whichever server; what they change in a catalog is in its chain.
            return False
        if key.catalog == REALM_SCOPE:
            return True
        catalogs = await self._persistence.read(realm_reference(key.realm, "catalogs"))
        return await catalogs.state.find("ids", encode_key(key.catalog)) is not None


@asynccontextmanager
async def open_chain(url: str) -> AsyncIterator[ChainReader]:
    """For a store that servers have open."""
    async with open_persistence(url) as persistence:
        yield ChainReader(persistence)
