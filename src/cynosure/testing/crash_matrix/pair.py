"""Two servers on one store: one that can be told when to halt, and one that goes on.

Must not break: the first one's backend is found as any installed package's is, and the second knows nothing
of it.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.crash_matrix.chain import ChainReader, open_chain
from cynosure.testing.crash_matrix.halting import FOLDER_VARIABLE, SCHEME, Order, Orders
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.login import make_credential

LEASE: Final = "500ms"
"""Short, so that nobody waits long for a request of a server that is dead."""
_METADATA: Final = "Metadata-Version: 2.1\nName: cynosure-halting\nVersion: 1.0\n"
_ENTRY_POINTS: Final = f"[cynosure.backends]\n{SCHEME} = cynosure.testing.crash_matrix.halting:open_backend\n"
_GIVEN_UP_S: Final = 60.0
_AFTERWARDS_S: Final = 10.0


class Pair:
    """Two servers, and clients of them that are root."""

    def __init__(
        self,
        halting: CatalogServer,
        steady: CatalogServer,
        orders: Orders,
        chain: ChainReader,
        clients: tuple[httpx.AsyncClient, httpx.AsyncClient],
        files: Path,
    ) -> None:
        self.halting = halting
        self.steady = steady
        self.orders = orders
        self.chain = chain
        self.to_halting, self.to_steady = clients
        self.files = files
        """Where files of catalogs may be."""

    async def wait_halted(self, sent: "asyncio.Task[Any]") -> bool:
        """Whether the order was carried out; `False` when the request ended without reaching it.

        What is written after an answer is waited for as well, for a while.
        """
        loop = asyncio.get_running_loop()
        give_up_s = loop.time() + _GIVEN_UP_S
        while not (self.orders.is_carried_out and _is_halted(self.halting.process)):
            if sent.done():
                give_up_s = min(give_up_s, loop.time() + _AFTERWARDS_S)
            if loop.time() > give_up_s:
                self.orders.take_back()
                return False
            await asyncio.sleep(0.01)
        return True

    def order(self, order: Order) -> None:
        """Tell the first server what is to happen to it."""
        self.orders.give(order)

    async def revive(self) -> None:
        """Start the first server again, after it died."""
        self.orders.take_back()
        if not self.halting.process.is_running:
            await self.halting.process.start()


def _is_halted(process: ManagedProcess) -> bool:
    if not process.is_running:
        return True
    try:
        # Not "zombie": its other threads may still be dying, and then it cannot be started again yet.
        return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False


@asynccontextmanager
async def open_pair(
    processes: Processes, directory: Path, url: str, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Pair]:
    """Two servers on the store at `url`; `settings` are for both."""
    folder = directory / "halting"
    installed = directory / "site" / "cynosure_halting-1.0.dist-info"
    for each in (folder, installed):
        each.mkdir(parents=True, exist_ok=True)
    (installed / "METADATA").write_text(_METADATA)
    (installed / "entry_points.txt").write_text(_ENTRY_POINTS)
    flags = {
        "idempotency.lease": LEASE,
        "idempotency.wait": "10s",
        # Of what a dead server purged, too.
        "delegation.task.lease.lost_timeout": "2s",
        "delegation.retry.table_purge.initial_backoff": "200ms",
        "delegation.service.polling": "200ms",
        **(settings or {}),
    }
    path = os.pathsep.join(filter(None, [str(installed.parent), os.environ.get("PYTHONPATH", "")]))
    files = directory / "files"
    files.mkdir(exist_ok=True)
    both = {
        "CYNOSURE_KEYRING__FILE": str(directory / "keyring.json"),
        "CYNOSURE_STORAGE__FILE_ROOTS__FILES": str(files),
        **{f"CYNOSURE_{name.upper().replace('.', '__')}": value for name, value in flags.items()},
    }
    ours = {"PYTHONPATH": path, FOLDER_VARIABLE: str(folder), "CYNOSURE_PERSISTENCE__URL": f"{SCHEME}:{url}"}
    root = make_credential()
    steady = await start_catalog_server(
        processes,
        directory,
        data=directory / "steady",
        name="steady",
        credential=root,
        env={**both, "CYNOSURE_PERSISTENCE__URL": url},
    )
    halting = await start_catalog_server(
        processes,
        directory,
        data=directory / "halted",
        name="halting",
        credential=root,
        env={**both, **ours},
    )
    async with (
        open_chain(url) as chain,
        halting.client(timeout=60) as to_halting,
        steady.client(timeout=60) as to_steady,
    ):
        yield Pair(halting, steady, Orders(folder), chain, (to_halting, to_steady), files)
