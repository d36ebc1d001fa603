"""What a store knows about itself: its identity, and the key that seals its page tokens.

Must not break: written once, by whoever initialises the store first; every server reads the same.
"""

from random import Random

from cynosure.common.clock import Clock
from cynosure.common.errors import Misconfigured, NewerFormat
from cynosure.common.paging import KEY_BYTES
from cynosure.persistence.ids import named_id
from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.store import Store

LAYOUT = 1
"""Version of what is stored as a whole: references, index names, scopes. Raised by an incompatible change."""


class StoreInfo(Stored, frozen=True):
    """One per store."""

    id: str
    layout: int
    created_us: int
    page_key: bytes


STORE_INFO = struct_type("store-info", StoreInfo, is_mutable=True)
_ID = named_id("store-info")


async def find_store_info(system: Store) -> StoreInfo | None:
    """The store's information; `None` when the store was never initialised."""
    found = await system.fetch(STORE_INFO, _ID)
    if found is None:
        return None
    if found.value.layout > LAYOUT:
        raise NewerFormat(
            "This store was laid out by a newer version",
            fix="Start that version or a later one.",
            layout=found.value.layout,
            reads_up_to=LAYOUT,
        )
    return found.value


async def ensure_store_info(system: Store, clock: Clock, rng: Random) -> StoreInfo:
    """The store's information, written now if nobody has. Safe to race."""
    info = StoreInfo(
        id=f"{rng.getrandbits(128):032x}",
        layout=LAYOUT,
        created_us=clock.now_us(),
        page_key=rng.getrandbits(8 * KEY_BYTES).to_bytes(KEY_BYTES, "big"),
    )
    if await system.insert(STORE_INFO, _ID, info) is not None:
        return info
    return await load_store_info(system)


async def load_store_info(system: Store) -> StoreInfo:
    """The store's information; refused when the store was never initialised."""
    found = await find_store_info(system)
    if found is None:
        raise Misconfigured("This store is empty", fix="Initialise it with 'cynosure store init'.")
    return found
