"""A storm of grants and revokes through the management API, judged afterwards.

    python -m cynosure.testing.access_storm            10,000 grants by 16 clients on a server of its own

Every client has rights of its own (a role, a privilege, a namespace), which it grants, takes away and grants
again; all of them change the same reference. So what was acknowledged last for a right says whether the
role must have it now.

A maintainer must not break: a request is written down before it is sent, and counts as acknowledged only when
all of its answer has arrived.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import httpx

from cynosure.testing.admin import MANAGEMENT, Admin, Grant
from cynosure.testing.catalog_server import ServedCatalog, start_catalog_server
from cynosure.testing.harness.processes import Processes

_METADATA = ("CREATE", "DROP", "LIST", "READ_PROPERTIES", "WRITE_PROPERTIES", "FULL_METADATA")
_PRIVILEGES = (
    *(f"NAMESPACE_{what}" for what in _METADATA),
    *(f"TABLE_{what}" for what in (*_METADATA, "READ_DATA", "WRITE_DATA")),
    *(f"VIEW_{what}" for what in _METADATA),
)
_REVOKED_SHARE = 0.2


class Right(NamedTuple):
    """What a client gives and takes."""

    role: str
    grant: Grant


@dataclass
class Ledger:
    """What was sent and what came of it."""

    has: dict[Right, bool] = field(default_factory=dict)
    """What was acknowledged last."""
    in_doubt: set[Right] = field(default_factory=set)
    """Sent since, and never answered."""
    statuses: Counter[int] = field(default_factory=Counter)

    @property
    def acknowledged(self) -> int:
        """How many requests were."""
        return self.statuses[201]

    def unexpected(self) -> dict[int, int]:
        """Answers other than success, by status."""
        return {status: count for status, count in self.statuses.items() if status != 201}


class GrantStorm:
    """Clients on the roles of one catalog."""

    def __init__(self, catalog: ServedCatalog, rights: int, seed: int, *, per_role: int = 250) -> None:
        self.ledger = Ledger()
        self._catalog = catalog
        self._rng = random.Random(seed)
        count = -(-rights // per_role)
        self._roles = [f"role_{number}" for number in range(count)]
        self._namespaces = [f"ns_{number}" for number in range(-(-per_role // len(_PRIVILEGES)))]
        every = [
            Right(role, Grant(privilege, (namespace,)))
            for role in self._roles
            for namespace in self._namespaces
            for privilege in _PRIVILEGES
        ]
        self._rng.shuffle(every)
        self._rights = every[:rights]

    async def prepare(self) -> None:
        """The roles, and the namespaces that privileges are granted on."""
        async with self._catalog.client(base_url=self._catalog.root.removesuffix("/api/catalog")) as http:
            for namespace in self._namespaces:
                answer = await http.post(f"{self._catalog.url}/namespaces", json={"namespace": [namespace]})
                answer.raise_for_status()
            for role in self._roles:
                await Admin(http).create_catalog_role(self._catalog.name, role)

    async def blow(self, clients: int, *, is_killed: bool = False) -> None:
        """Grant every right, and take a share of them away again, with so many clients.

        `is_killed`: servers are killed meanwhile, so answers may be missing.
        """
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                rng = random.Random(self._rng.random())
                group.create_task(self._run(self._rights[number::clients], rng, is_killed=is_killed))

    async def judge(self) -> list[str]:
        """What is wrong; nothing, if all is well. Nothing may be in flight any more."""
        found: set[Right] = set()
        async with self._catalog.client() as http:
            for role in self._roles:
                answer = (await http.get(self._grants(role))).raise_for_status()
                found |= {_read(role, grant) for grant in answer.json()["grants"]}
        wanted = {right for right, has in self.ledger.has.items() if has}
        sure = self.ledger.has.keys() - self.ledger.in_doubt
        problems = [f"lost: {right}" for right in sorted((wanted & sure) - found)]
        problems += [f"came back: {right}" for right in sorted((found & sure) - wanted)]
        problems += [f"nobody gave: {right}" for right in sorted(found - self.ledger.has.keys())]
        return problems

    async def _run(self, rights: list[Right], rng: random.Random, *, is_killed: bool) -> None:
        async with self._catalog.client() as http:
            for right in rights:
                changes = [True, False, True] if rng.random() < _REVOKED_SHARE / 2 else [True]
                if rng.random() < _REVOKED_SHARE / 2:
                    changes.append(False)
                for has in changes:
                    await self._change(http, right, has=has, is_killed=is_killed)

    async def _change(self, http: httpx.AsyncClient, right: Right, *, has: bool, is_killed: bool) -> None:
        ledger = self.ledger
        ledger.has.setdefault(right, False)
        ledger.in_doubt.add(right)
        while True:
            try:
                answer = await http.request(
                    "PUT" if has else "POST",
                    self._grants(right.role),
                    json={"grant": right.grant.to_wire()},
                )
                break
            except httpx.TransportError:
                if not is_killed:
                    raise
                # Killed, or being started. Granting and revoking are idempotent: it is simply asked again.
                await asyncio.sleep(self._rng.uniform(0.005, 0.05))
        ledger.statuses[answer.status_code] += 1
        if answer.status_code == 201:
            ledger.has[right] = has
            ledger.in_doubt.discard(right)

    def _grants(self, role: str) -> str:
        server = self._catalog.root.removesuffix("/api/catalog")
        return f"{server}{MANAGEMENT}/catalogs/{self._catalog.name}/catalog-roles/{role}/grants"


def _read(role: str, wire: dict[str, object]) -> Right:
    namespace = wire.get("namespace", [])
    assert isinstance(namespace, list)
    return Right(role, Grant(str(wire["privilege"]), tuple(namespace)))


async def _main(grants: int, clients: int) -> int:
    with (
        tempfile.TemporaryDirectory(prefix="cynosure-storm-") as folder,
        Processes(Path(folder)) as processes,
    ):
        server = await start_catalog_server(processes, Path(folder))
        storm = GrantStorm(await server.create_catalog("lake"), grants, seed=int(time.time()))
        await storm.prepare()
        began_s = time.monotonic()
        await storm.blow(clients)
        spent_s = time.monotonic() - began_s
        problems = await storm.judge()
    ledger = storm.ledger
    print(f"{ledger.acknowledged} changes of {grants} grants by {clients} clients in {spent_s:.1f} s")
    print(f"refused: {ledger.unexpected() or 'none'}; wrong: {len(problems)}")
    print("\n".join(problems[:20]))
    return 1 if problems or ledger.unexpected() else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m cynosure.testing.access_storm")
    parser.add_argument("--grants", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()
    sys.exit(asyncio.run(_main(options.grants, options.clients)))
