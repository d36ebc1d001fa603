"""Stores of versions that had no principals: their realms get roots, and nothing else changes."""

import json
import shutil
from pathlib import Path
from random import Random

import pytest

from cynosure.auth.bootstrap import ensure_realms_bootstrapped
from cynosure.auth.credential_files import CredentialFiles
from cynosure.auth.credentials import Credentials
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.principals import find_principal
from cynosure.auth.realms import list_realms
from cynosure.common.secrets import Secret
from cynosure.persistence.lifecycle import open_persistence_on
from cynosure.persistence.open_backend import open_backend
from cynosure.persistence.references import DEFAULT_REALM, REALM_REFERENCES, realm_reference
from cynosure.persistence.spi import RealmId
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_realm import caller_for, identities_of
from cynosure.testing.storm.writers import MAIN, TYPES, read_counts

from .make_golden import HERE, SETTINGS

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("layout", sorted(path.name for path in HERE.glob("layout-*")))
async def test_every_realm_of_an_old_store_gets_a_root_once(layout: str, tmp_path: Path) -> None:
    store, folder = tmp_path / "store.db", tmp_path / "data"
    folder.mkdir()
    shutil.copyfile(HERE / layout / "store.db", store)
    expected = json.loads((HERE / layout / "expected.json").read_text())
    clock = ManualClock(now_us=expected["now_us"] + 60_000_000)
    opened = open_persistence_on(
        open_backend(f"sqlite:{store}"), SETTINGS, initialise=True, types=TYPES, clock=clock, rng=Random(1)
    )
    async with opened as persistence:
        identities = identities_of(persistence)
        realms = [RealmId(each.name) for each in await list_realms(persistence)]
        before = await read_counts((await persistence.committer(MAIN).read()).state)
        given = {DEFAULT_REALM: Credentials("root", Secret("s3cr3t"))}

        made = await ensure_realms_bootstrapped(identities, given, CredentialFiles(folder))
        again = await ensure_realms_bootstrapped(identities, given, CredentialFiles(folder))

        assert len(realms) > 1
        assert [each.realm for each in made] == realms
        assert again == []
        assert sorted(path.name for path in folder.iterdir()) == sorted(
            f"root-credentials-{realm}.json" for realm in realms if realm != DEFAULT_REALM
        )
        for realm in realms:
            root = await find_principal(persistence, realm, "root")
            assert root is not None
            await create_principal(identities, caller_for(root, realm), NewPrincipal("etl"))
            keys = [realm_reference(realm, name) for name in REALM_REFERENCES]
            assert None not in await persistence.backend.fetch_refs(keys)
        assert await read_counts((await persistence.committer(MAIN).read()).state) == before
