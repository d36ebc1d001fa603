"""A process that uses a store, for tests that kill, freeze or starve it.

store_process.py move URL WRITERS        move one reference per writer for ever; print each acknowledgement
store_process.py relax URL WRITERS       insert rows by relaxed calls for ever; print each acknowledgement
store_process.py count URL TIMES         raise one shared counter so often, by compare and swap
store_process.py hold URL                take a turn at the reference and keep it
store_process.py fill URL LIMIT_BYTES    as move with one writer, until a file may not grow any more
"""

import asyncio
import resource
import signal
import sys
from itertools import count as count_from

from cynosure.common.errors import CynosureError
from cynosure.persistence.open_backend import open_backend
from cynosure.persistence.spi import (
    Backend,
    CatalogId,
    Insert,
    ObjId,
    ObjKey,
    RealmId,
    Reference,
    RefKey,
    Row,
)

REALM = RealmId("default")


def ref_key(name: str) -> RefKey:
    return RefKey(REALM, CatalogId("c"), name)


def row_keys(name: str, head: int) -> list[ObjKey]:
    return [ObjKey(REALM, CatalogId("c"), f"{name}-{part}", ObjId(head)) for part in range(3)]


async def move(backend: Backend, name: str) -> None:
    current = Reference(ref_key(name), ObjId(1), 0, (), 0)
    await backend.insert_ref(current)
    while True:
        updated = current._replace(head=ObjId(current.head + 1))
        rows = [Row(key, b"x" * 2000) for key in row_keys(name, updated.head)]
        assert await backend.swap_ref(current, updated, rows)
        print(f"acknowledged {name} {updated.head}", flush=True)
        current = updated


async def relax(backend: Backend, writer: int) -> None:
    for number in count_from(1):
        keys = row_keys(f"w{writer}", number)
        writes = [Insert(Row(key, b"x" * 200, "token")) for key in keys]
        assert await backend.write_each(writes, is_relaxed=True) == [True] * len(keys)
        print(f"acknowledged w{writer} {number}", flush=True)


async def count(backend: Backend, times: int) -> None:
    done = 0
    while done < times:
        (current,) = await backend.fetch_refs([ref_key("counter")])
        assert current is not None
        done += await backend.swap_ref(current, current._replace(head=ObjId(current.head + 1)))


async def main() -> None:
    command, url = sys.argv[1:3]
    backend = open_backend(url)
    if command == "move":
        await asyncio.gather(*(move(backend, f"r{number}") for number in range(int(sys.argv[3]))))
    elif command == "relax":
        await asyncio.gather(*(relax(backend, number) for number in range(int(sys.argv[3]))))
    elif command == "count":
        await count(backend, int(sys.argv[3]))
        await backend.close()
    elif command == "hold":
        hold = backend.hold_ref(ref_key("held"), "commit")
        assert hold is not None
        async with hold:
            print("holding", flush=True)
            await asyncio.Event().wait()
    elif command == "fill":
        # The kernel refuses to let any file of this process grow beyond this.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
        try:
            await move(backend, "r0")
        except CynosureError as error:
            print(f"refused {type(error).__name__}", flush=True)
        await backend.close()


if __name__ == "__main__":
    asyncio.run(main())
