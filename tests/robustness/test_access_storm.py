"""Rights that many change at once, on servers that are killed, and on two servers with one database."""

import asyncio
import base64
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cynosure.testing.access_storm import GrantStorm
from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes, ProcessFailed
from cynosure.testing.login import make_credential
from tests.names import unique

from .phoenix import start_phoenix, until

pytestmark = pytest.mark.anyio


async def test_grants_by_sixteen_clients_are_all_there_and_none_fails(
    processes: Processes, tmp_path: Path, rng: random.Random, scale: Callable[[int, int], int]
) -> None:
    """I4: with `./dev soak`, ten thousand."""
    server = await start_catalog_server(processes, tmp_path)
    storm = GrantStorm(await server.create_catalog("lake"), scale(500, 10_000), rng.getrandbits(32))
    await storm.prepare()

    await storm.blow(16)

    assert storm.ledger.unexpected() == {}
    assert await storm.judge() == []


async def test_kill_9_during_grants_loses_no_acknowledged_one_and_brings_back_no_revoked_one(
    processes: Processes, store_url: str, tmp_path: Path, rng: random.Random, scale: Callable[[int, int], int]
) -> None:
    """I4, I5."""
    phoenix = await start_phoenix(processes, tmp_path, store_url)
    lake = await phoenix.server.create_catalog("lake")
    storm = GrantStorm(lake, 4000, rng.getrandbits(32))
    await storm.prepare()

    blowing = asyncio.create_task(storm.blow(8, is_killed=True))
    for _ in range(scale(6, 40)):
        told = storm.ledger.acknowledged
        await until(lambda told=told: storm.ledger.acknowledged > told + 5)
        await asyncio.sleep(rng.uniform(0.0, 0.1))
        await phoenix.kill()
    told = storm.ledger.acknowledged
    await until(lambda: storm.ledger.acknowledged > told + 10)
    blowing.cancel()
    with suppress(asyncio.CancelledError):
        await blowing

    assert storm.ledger.unexpected() == {}
    assert await storm.judge() == []
    assert await phoenix.server.process.stop() == 0


# --- two servers on one database -------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair(
    shared_schema_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[CatalogServer, CatalogServer]]:
    """Two servers that share a database, keys, a root and a catalog `lake` with a namespace `ns`."""
    directory = tmp_path_factory.mktemp("pair")
    shared = directory / "shared"
    env = {
        "CYNOSURE_PERSISTENCE__URL": shared_schema_url,
        "CYNOSURE_STORAGE__FILE_ROOTS__SHARED": str(shared),
        "CYNOSURE_KEYRING__FILE": str(directory / "keyring.json"),
    }
    root = make_credential()

    async def start() -> tuple[CatalogServer, CatalogServer]:
        # At once: exactly one of them makes the realm's root, and both know it afterwards.
        first, second = await asyncio.gather(
            *(
                start_catalog_server(
                    processes, directory, data=directory / name, name=name, credential=root, env=env
                )
                for name in ("first", "second")
            )
        )
        lake = await first.create_catalog("lake", location=(shared / "lake").as_uri())
        async with lake.client() as http:
            (await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})).raise_for_status()
        return first, second

    with Processes(directory) as processes:
        yield asyncio.run(start())


async def ask(server: CatalogServer, token: str) -> int:
    """Status of a request that needs NAMESPACE_READ_PROPERTIES."""
    async with server.stranger(headers={"Authorization": f"Bearer {token}"}) as http:
        return (await http.get("/api/catalog/v1/lake/namespaces/ns")).status_code


def key_of(token: str) -> str:
    """The id of the key that signed a token."""
    head = token.partition(".")[0]
    kid: str = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))["kid"]
    return kid


READ = Grant("NAMESPACE_READ_PROPERTIES")


async def test_what_one_server_takes_away_is_gone_with_the_next_request_on_the_other(
    pair: tuple[CatalogServer, CatalogServer],
) -> None:
    first, second = pair
    name = unique("ann")
    async with first.client() as http:
        admin = Admin(http)
        ann = first.login_as(await admin.create_user(name, "lake", READ)).token()
        for take, give in [
            (
                lambda: admin.revoke("lake", f"{name}_catalog_role", READ),
                lambda: admin.grant("lake", f"{name}_catalog_role", READ),
            ),
            (
                lambda: admin.take_catalog_role("lake", f"{name}_catalog_role", f"{name}_role"),
                lambda: admin.assign_catalog_role("lake", f"{name}_catalog_role", f"{name}_role"),
            ),
            (lambda: admin.take_role(name, f"{name}_role"), lambda: admin.assign_role(name, f"{name}_role")),
        ]:
            assert [await ask(server, ann) for server in pair] == [200, 200]
            await take()
            assert [await ask(server, ann) for server in (second, first)] == [403, 403]
            await give()
        assert [await ask(server, ann) for server in pair] == [200, 200]

        await admin.delete_principal(name)
        assert [await ask(server, ann) for server in (second, first)] == [401, 401]


async def test_a_secret_that_was_reset_on_one_server_ends_its_tokens_on_the_other(
    pair: tuple[CatalogServer, CatalogServer],
) -> None:
    first, second = pair
    name = unique("bob")
    async with first.client() as http:
        admin = Admin(http)
        old = await admin.create_user(name, "lake", READ)
        token = second.login_as(old).token()
        assert await ask(second, token) == 200

        await admin.reset(name)

        assert [await ask(server, token) for server in (second, first)] == [401, 401]
        with pytest.raises(AssertionError, match="401"):
            second.login_as(old).token()


async def test_keys_that_one_server_rotates_are_known_to_the_other(
    pair: tuple[CatalogServer, CatalogServer],
) -> None:
    """I37: tokens of the old key stay good, those of the new key are good everywhere at once."""
    first, second = pair
    before = first.token()
    assert [await ask(server, before) for server in pair] == [200, 200]

    await first.run_cli("tokens", "rotate")
    after = first.login_as(first.credential).token()

    assert [await ask(server, after) for server in (second, first)] == [200, 200]
    assert [await ask(server, before) for server in (second, first)] == [200, 200]
    assert key_of(before) != key_of(after)
    assert key_of(second.login_as(second.credential).token()) == key_of(after)


async def test_a_server_with_another_keyring_does_not_start(
    pair: tuple[CatalogServer, CatalogServer], shared_schema_url: str, processes: Processes, tmp_path: Path
) -> None:
    """To its clients every secret would be wrong."""
    env = {"CYNOSURE_PERSISTENCE__URL": shared_schema_url}

    with pytest.raises(ProcessFailed, match="another master key") as refused:
        await start_catalog_server(processes, tmp_path, env=env)

    assert "keyring.file" in refused.value.log_tail
    assert "Traceback" not in refused.value.log_tail
