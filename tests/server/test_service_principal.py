"""The principal of a service that the catalog makes: credentials that are good, for its owner only."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.auth.bootstrap import bootstrap_realm
from cynosure.auth.caller import operator_caller
from cynosure.auth.entities import PrincipalEntity
from cynosure.auth.identities import Identities
from cynosure.auth.operations.list_roles_of_principal import list_roles_of_principal
from cynosure.auth.operations.reset_credentials import reset_credentials
from cynosure.auth.operations.set_trusted_service import set_trusted_service
from cynosure.auth.principals import find_principal
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.server.data_dir import RoleLock
from cynosure.server.service_credentials import read_file
from cynosure.server.service_principal import DELEGATION, GATEWAY, provision_principal
from cynosure.testing.small_realm import SharedBackend, open_identities_on

pytestmark = pytest.mark.anyio
OPERATOR = operator_caller()


@pytest.fixture
async def identities() -> AsyncIterator[Identities]:
    async with open_identities_on(SharedBackend()) as opened:
        await bootstrap_realm(opened, DEFAULT_REALM)
        yield opened


async def find(identities: Identities, name: str = GATEWAY) -> PrincipalEntity:
    found = await find_principal(identities.persistence, DEFAULT_REALM, name)
    assert found is not None
    return found


async def test_it_is_trusted_has_no_rights_and_its_credentials_are_in_the_file(
    identities: Identities, tmp_path: Path
) -> None:
    path = tmp_path / "gateway" / "credentials.json"

    await asyncio.gather(
        *(provision_principal(identities, DEFAULT_REALM, GATEWAY, path, is_trusted=True) for _ in range(3))
    )

    line, made = read_file(path), await find(identities)
    assert made.is_trusted_service
    assert (line.clientId, line.principal) == (made.client_id, GATEWAY)
    assert identities.hasher.find_match(Secret(line.clientSecret), made.secrets) is not None
    assert path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in path.parent.iterdir() if path.name.startswith(".cred")] == []
    roles = await list_roles_of_principal(identities, OPERATOR, GATEWAY)
    assert [each.name for each in roles.roles] == [GATEWAY]


async def test_who_is_overtaken_on_the_way_to_its_turn_waits(
    identities: Identities, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "credentials.json"
    # Another worker takes its turn right behind the look that found it free.
    monkeypatch.setattr(RoleLock, "find_holder", lambda _: None)

    with RoleLock(tmp_path, "provision"):
        waiting = asyncio.create_task(provision_principal(identities, DEFAULT_REALM, GATEWAY, path))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        assert not path.exists()
    await waiting

    assert read_file(path).clientId == (await find(identities)).client_id


async def test_what_is_good_stays_and_what_is_not_is_replaced(identities: Identities, tmp_path: Path) -> None:
    path = tmp_path / "credentials.json"
    await provision_principal(identities, DEFAULT_REALM, GATEWAY, path, is_trusted=True)
    first = path.read_bytes()

    await set_trusted_service(identities, OPERATOR, GATEWAY, is_trusted=False)
    await provision_principal(identities, DEFAULT_REALM, GATEWAY, path, is_trusted=True)
    assert path.read_bytes() == first
    assert not (await find(identities)).is_trusted_service, "who took the trust away is not overruled"

    await reset_credentials(identities, OPERATOR, GATEWAY)
    await provision_principal(identities, DEFAULT_REALM, GATEWAY, path, is_trusted=True)
    line, made = read_file(path), await find(identities)
    assert path.read_bytes() != first
    assert identities.hasher.find_match(Secret(line.clientSecret), made.secrets) is not None
    assert made.is_trusted_service


async def test_a_service_that_acts_for_nobody_is_not_trusted(identities: Identities, tmp_path: Path) -> None:
    await provision_principal(identities, DEFAULT_REALM, DELEGATION, tmp_path / "credentials.json")

    assert not (await find(identities, DELEGATION)).is_trusted_service
