"""Write the golden data of this version: `python -m tests.upgrade.make_golden`, from the root of a checkout.

- `tests/upgrade/golden/layout-N/`   a small store in SQLite, and what is in it (`expected.json`); the name
  goes on with what is new in it, when that needed no new layout
- `tests/upgrade/golden/types/`      the bytes of one value of every stored type

A maintainer must not break: what exists is never written again. It is what a released version wrote, and
every later version has to read it. A new layout, or a new version of a type, adds files.
"""

import asyncio
import json
import sqlite3
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec

from cynosure.persistence.commit import Committed
from cynosure.persistence.gc.pins import set_pin
from cynosure.persistence.history.log import walk_log
from cynosure.persistence.ids import NodeLeases, Owner
from cynosure.persistence.index import encode_key
from cynosure.persistence.lifecycle import Persistence, open_persistence_on
from cynosure.persistence.listing import list_page
from cynosure.persistence.maintenance import gc_task
from cynosure.persistence.objects import seal
from cynosure.persistence.open_backend import open_backend
from cynosure.persistence.references import REALMS, ensure_reference
from cynosure.persistence.scopes import create_realm
from cynosure.persistence.settings import GcSettings, NodeLeaseSettings, PersistenceSettings
from cynosure.persistence.spi import SYSTEM_REALM, Backend, Limits, ObjId, ObjKey, RealmId, Row
from cynosure.persistence.store import NewObject
from cynosure.persistence.store_info import LAYOUT
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.storm.writers import MAIN, TYPES, read_counts
from cynosure.testing.workload import ITEM, Item, Items

from .values import GOLDEN

HERE = Path(__file__).parent / "golden"
TYPE_FILES = HERE / "types"
NEWEST = f"layout-{LAYOUT}-key-log"

# A small tree with several levels, and everything within its lifetime for the tests that go on.
SETTINGS = PersistenceSettings(
    index_buffer_bytes=256,
    index_leaf_entries=8,
    page_token_life=timedelta(hours=2),
    # Longer than all of it takes on a clock that leaps: renewals would depend on real time.
    node_lease=NodeLeaseSettings(duration=timedelta(days=1), renewal=timedelta(hours=8)),
    gc=GcSettings(rows_per_second=0),
)
PIN_LIFE_S = 10 * 365 * 86_400.0
FOREIGN = ObjKey(MAIN.realm, MAIN.catalog, "from-elsewhere", ObjId(1 << 40))


class SmallRows:
    """A backend that takes small rows only, so that a small store has objects in parts."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner

    @property
    def limits(self) -> Limits:
        return msgspec.structs.replace(self._inner.limits, row_bytes=1_500)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


async def write_store(directory: Path) -> None:
    """A store with a bit of everything."""
    path = directory / "store.db"
    clock, rng = ManualClock(), Random(20260101)
    backend: Backend = SmallRows(open_backend(f"sqlite:{path}"))  # type: ignore[assignment]
    opened = open_persistence_on(backend, SETTINGS, initialise=True, types=TYPES, clock=clock, rng=rng)
    # No name of the machine that wrote it.
    owner = Owner(host="catalog-1", pid=4711, started_us=clock.now_us())
    with patch("cynosure.persistence.lifecycle.this_process", lambda _: owner):
        async with opened as persistence:
            expected = await _fill(persistence, clock, rng)
    expected["now_us"] = clock.now_us()
    (directory / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def _fill(persistence: Persistence, clock: ManualClock, rng: Random) -> dict[str, Any]:
    backend = persistence.backend
    await create_realm(
        persistence.committer(REALMS), RealmId("acme"), backend=backend, ids=persistence.ids, clock=clock,
        principal="root",
    )  # fmt: skip
    await ensure_reference(backend, MAIN, clock)
    main, items = persistence.committer(MAIN), Items(persistence.ids)

    async def commit(request: Any) -> int:
        await clock.advance(60)
        outcome = await main.commit(request)
        assert isinstance(outcome, Committed)
        return int(outcome.commit_id)

    await asyncio.gather(*(main.commit(items.create("ns", f"t{number:03}")) for number in range(200)))
    await commit(Items(persistence.ids, payload=rng.randbytes(4_000)).create("ns", "large"))
    early = await commit(items.add("ns", "t000", amount=5))
    await commit(items.add("counter", amount=2, key_hash="c0ffee"))
    await commit(items.create("old"))
    await commit(items.rename("old", "renamed"))
    await commit(items.drop("ns", "t199"))
    pinned = await commit(items.add("counter", amount=3))
    await set_pin(
        main.store, head=ObjId(pinned), commit=ObjId(pinned), owner="golden", life_s=PIN_LIFE_S,
        ids=persistence.ids, clock=clock, retention=SETTINGS.gc.history_retention,
    )  # fmt: skip

    # What nobody needs is collected, so the collector's own objects are here too.
    stale = Item(stable_id=persistence.ids.next(), location="")
    await main.store.write([NewObject(ITEM, persistence.ids.next(), stale) for _ in range(3)])
    await clock.advance(SETTINGS.gc.grace.total_seconds() + 1)
    await persistence.tasks.run_now(gc_task(persistence))
    await backend.write([Row(FOREIGN, seal(ITEM, stale), created_us=1)])
    owner = Owner(host="catalog-2", pid=42, started_us=clock.now_us())
    await NodeLeases(persistence.store(SYSTEM_REALM), clock, rng, owner, lease_s=600).acquire()
    await commit(items.add("counter", amount=4, key_hash="facade"))

    state = (await main.read()).state
    page = await list_page(main, persistence.page_tokens, index="names", prefix=encode_key("ns"), size=10)
    return {
        "store": persistence.info.id,
        "head": state.commit_id,
        "early": early,
        "pinned": pinned,
        "log": [[entry.id, entry.record.sequence] async for entry in walk_log(main.store, state.commit_id)],
        "counts": await read_counts(state),
        "first_page": [key.hex() for key, _ in page.entries],
        "next_token": page.next_token,
    }


def write_types() -> None:
    """The bytes of every type whose file does not exist."""
    TYPE_FILES.mkdir(parents=True, exist_ok=True)
    for name, golden in GOLDEN.items():
        path = TYPE_FILES / f"{name}-v{golden.type.version}.bin"
        if not path.exists():
            path.write_bytes(seal(golden.type, golden.value))
            print(f"wrote {path.name}", file=sys.stderr)


def main() -> None:
    write_types()
    directory = HERE / NEWEST
    if directory.exists():
        print(f"{directory.name} exists and stays as it is", file=sys.stderr)
    else:
        directory.mkdir(parents=True)
        asyncio.run(write_store(directory))
        print(f"wrote {directory.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
