"""How realms get their root: once, whoever starts, races or dies; and who is told its secret."""

import asyncio
import itertools
import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from cynosure.auth.bootstrap import (
    Bootstrapped,
    bootstrap_realm,
    ensure_realms_bootstrapped,
    read_given,
    reset_root,
)
from cynosure.auth.caller import Caller, operator_caller
from cynosure.auth.credential_files import CredentialFiles
from cynosure.auth.credentials import Credentials
from cynosure.auth.errors import NoSuchRealm
from cynosure.auth.identities import Identities
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.delete_principal_role import delete_principal_role
from cynosure.auth.operations.list_roles_of_principal import list_roles_of_principal
from cynosure.auth.principals import find_client, find_principal
from cynosure.auth.realms import create_realm, list_realms
from cynosure.auth.secret_hash import SecretHasher
from cynosure.common.errors import Misconfigured, Unavailable
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import RealmId
from cynosure.testing.small_realm import SharedBackend, caller_for, open_identities_on

pytestmark = pytest.mark.anyio

ACME = RealmId("acme")
GIVEN = {ACME: Credentials("admin", Secret("s3cr3t"))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


async def start(
    backend: SharedBackend, folder: Path, given: dict[RealmId, Credentials] | None = None
) -> list[Bootstrapped]:
    """What a server does when it starts."""
    async with open_identities_on(backend) as identities:
        return await ensure_realms_bootstrapped(identities, given or {}, CredentialFiles(folder))


async def is_root(identities: Identities, realm: RealmId, credentials: Credentials) -> bool:
    found = await find_client(identities.persistence, realm, credentials.client_id)
    if found is None or found.name != "root":
        return False
    return identities.hasher.find_match(credentials.client_secret, found.secrets) is not None


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_new_store_gets_a_root_whose_secret_only_its_owner_can_read(
    shared_backend: SharedBackend, folder: Path
) -> None:
    (made,) = await start(shared_backend, folder)

    assert made.realm == DEFAULT_REALM
    assert made.path == folder / "root-credentials.json"
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert json.loads(made.path.read_text()) == {
        "realm": "default",
        "principal": "root",
        "client_id": made.credentials.client_id,
        "client_secret": made.credentials.client_secret.reveal(),
    }
    assert files_in(folder) == ["root-credentials.json"]
    assert made.credentials.client_secret.reveal() not in repr(made)
    async with open_identities_on(shared_backend) as identities:
        assert await is_root(identities, DEFAULT_REALM, made.credentials)
        root = await find_principal(identities.persistence, DEFAULT_REALM, "root")
        assert root is not None
        roles = await list_roles_of_principal(identities, caller_for(root), "root")
        assert [each.name for each in roles.roles] == ["service_admin"]


async def test_the_second_start_changes_and_tells_nothing(
    shared_backend: SharedBackend, folder: Path
) -> None:
    await start(shared_backend, folder)
    before = (folder / "root-credentials.json").read_bytes()

    assert await start(shared_backend, folder) == []
    given = {DEFAULT_REALM: Credentials("other", Secret("other-secret"))}
    assert await start(shared_backend, folder, given) == []

    assert (folder / "root-credentials.json").read_bytes() == before
    async with open_identities_on(shared_backend) as identities:
        assert not await is_root(identities, DEFAULT_REALM, given[DEFAULT_REALM])


async def test_given_credentials_are_used_create_their_realms_and_are_not_written_down(
    shared_backend: SharedBackend, folder: Path
) -> None:
    given = read_given({"CYNOSURE_BOOTSTRAP_CREDENTIALS": "default,root,s3cr3t; acme,admin,pa$$word;"})

    made = await start(shared_backend, folder, given)

    assert [(each.realm, each.path) for each in made] == [(ACME, None), (DEFAULT_REALM, None)]
    assert files_in(folder) == []
    async with open_identities_on(shared_backend) as identities:
        assert [each.name for each in await list_realms(identities.persistence)] == ["acme", "default"]
        assert await is_root(identities, ACME, Credentials("admin", Secret("pa$$word")))
        assert await is_root(identities, DEFAULT_REALM, Credentials("root", Secret("s3cr3t")))


async def test_every_realm_without_given_credentials_has_a_file_of_its_own(
    shared_backend: SharedBackend, folder: Path
) -> None:
    async with open_identities_on(shared_backend) as identities:
        await create_realm(identities, ACME)
        await create_realm(identities, RealmId("zeta"))

    given = {ACME: Credentials("admin", Secret("s3cr3t"))}
    made = await start(shared_backend, folder, given)

    assert [(each.realm, each.path) for each in made] == [(DEFAULT_REALM, folder / "root-credentials.json")]
    assert files_in(folder) == ["root-credentials.json"], "the others got theirs when they were created"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("default,root", "three parts"),
        ("default,root,topsecret,more", "three parts"),
        ("a,b,topsecret;;c,d,topsecret", "three parts"),
        ("not/a/realm,root,topsecret", "realm name"),
        (",root,topsecret", "realm name"),
        ("default,a:b,topsecret", "client id"),
        ("default,,topsecret", "client id"),
        ("default,root,top", "client secret"),
        ("default,root,topsecret x", "client secret"),
        ("default,root,topsecret;default,root,topsecret", "named twice"),
    ],
)
def test_malformed_credentials_name_the_rule_and_never_the_secret(text: str, reason: str) -> None:
    """I21."""
    with pytest.raises(Misconfigured) as refused:
        read_given({"POLARIS_BOOTSTRAP_CREDENTIALS": text})

    shown = str(refused.value) + repr(refused.value.details)
    assert reason in refused.value.details["reason"]
    assert refused.value.details["variable"] == "POLARIS_BOOTSTRAP_CREDENTIALS"
    assert "topsecret" not in shown
    assert refused.value.__cause__ is None


def test_our_own_variable_goes_before_the_other() -> None:
    both = {
        "CYNOSURE_BOOTSTRAP_CREDENTIALS": "default,ours,s3cr3t",
        "POLARIS_BOOTSTRAP_CREDENTIALS": "default,theirs,s3cr3t",
    }
    assert read_given(both)[DEFAULT_REALM].client_id == "ours"
    assert read_given({"POLARIS_BOOTSTRAP_CREDENTIALS": "x,y,s3cr3t"}).keys() == {"x"}
    assert read_given({"CYNOSURE_BOOTSTRAP_CREDENTIALS": " "}) == {}


async def test_of_servers_that_start_at_once_one_has_credentials_and_they_are_good(
    shared_backend: SharedBackend, tmp_path: Path
) -> None:
    folders = [tmp_path / str(at) for at in range(4)]
    for each in folders:
        each.mkdir()
    async with open_identities_on(shared_backend):
        pass  # The store itself is there.

    made = await asyncio.gather(*(start(shared_backend, each) for each in folders))

    (winner,) = [each for each in made if each]
    assert sorted(files for each in folders for files in files_in(each)) == ["root-credentials.json"]
    async with open_identities_on(shared_backend) as identities:
        assert await is_root(identities, DEFAULT_REALM, winner[0].credentials)


async def test_workers_of_one_server_share_a_directory(shared_backend: SharedBackend, folder: Path) -> None:
    made = await asyncio.gather(*(start(shared_backend, folder) for _ in range(4)))

    assert len({each.credentials.client_secret for found in made for each in found}) == 1
    (name,) = files_in(folder)
    content = json.loads((folder / name).read_text())
    async with open_identities_on(shared_backend) as identities:
        written = Credentials(content["client_id"], Secret(content["client_secret"]))
        assert await is_root(identities, DEFAULT_REALM, written)


async def test_a_server_that_dies_at_any_write_leaves_no_realm_that_nobody_can_open(tmp_path: Path) -> None:
    """I36: the next start either tells the credentials that are good, or has told them."""
    has_died = True
    for writes in itertools.count():
        if not has_died:
            break
        has_died = False
        backend, folder = SharedBackend(), tmp_path / str(writes)
        folder.mkdir()
        async with open_identities_on(backend) as dying:
            backend.writes_left = writes
            told: list[Bootstrapped] = []
            try:
                told = await ensure_realms_bootstrapped(dying, GIVEN, CredentialFiles(folder))
            except Unavailable:
                has_died = True
            backend.writes_left = None
        told += await start(backend, folder, GIVEN)

        async with open_identities_on(backend) as identities:
            (shown,) = [each for each in told if each.realm == DEFAULT_REALM]
            assert await is_root(identities, DEFAULT_REALM, shown.credentials)
            assert await is_root(identities, ACME, GIVEN[ACME])
        assert files_in(folder) == ["root-credentials.json"]
    assert writes > 5


async def test_credentials_committed_by_one_who_died_before_giving_them_their_place_are_found(
    shared_backend: SharedBackend, folder: Path
) -> None:
    files = CredentialFiles(folder)
    lost = Credentials("0123456789abcdef", Secret("good-secret"))
    async with open_identities_on(shared_backend) as dying:
        files.write_draft(DEFAULT_REALM, Credentials("fedcba9876543210", Secret("bad-secret")))
        files.write_draft(DEFAULT_REALM, lost)
        (folder / ".root-credentials-default.abc").write_text('{"realm": "def')
        await bootstrap_realm(dying, DEFAULT_REALM, lost)

    (found,) = await start(shared_backend, folder)

    assert found == Bootstrapped(DEFAULT_REALM, lost, folder / "root-credentials.json")
    assert files_in(folder) == ["root-credentials.json"]


async def test_a_file_that_is_there_is_never_written_over(
    shared_backend: SharedBackend, folder: Path
) -> None:
    (folder / "root-credentials.json").write_text('{"of": "another store"}')

    (made,) = await start(shared_backend, folder)

    assert (folder / "root-credentials.json").read_text() == '{"of": "another store"}'
    assert made.path == folder / "root-credentials.2.json"
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600


async def test_a_directory_that_cannot_be_written_leaves_no_root_without_a_secret(
    shared_backend: SharedBackend, tmp_path: Path
) -> None:
    with pytest.raises(Misconfigured):
        await start(shared_backend, tmp_path / "missing")
    async with open_identities_on(shared_backend) as identities:
        assert await find_principal(identities.persistence, DEFAULT_REALM, "root") is None


async def test_a_server_with_other_keys_is_refused_at_its_start(
    shared_backend: SharedBackend, folder: Path
) -> None:
    """Else every login there would be refused, with the right secret."""
    await start(shared_backend, folder)

    async with open_identities_on(shared_backend) as identities:
        strange = SecretHasher(lambda: Keyring({"k1": b"z" * 32}, "k1"))
        other = replace(identities, hasher=strange)
        with pytest.raises(Misconfigured) as refused:
            await ensure_realms_bootstrapped(other, {}, CredentialFiles(folder))
        assert "reset-root" in refused.value.fix

        # Whoever lost the keys begins anew.
        fresh = await reset_root(other, DEFAULT_REALM)
        assert await is_root(other, DEFAULT_REALM, fresh)
        assert await ensure_realms_bootstrapped(other, {}, CredentialFiles(folder)) == []


async def test_drafts_are_never_readable_by_others(folder: Path) -> None:
    old = os.umask(0)
    try:
        draft = CredentialFiles(folder).write_draft(ACME, Credentials("a", Secret("s3cr3t")))
    finally:
        os.umask(old)
    assert stat.S_IMODE(draft.stat().st_mode) == 0o600


async def test_root_gets_new_credentials_from_an_operator_and_keeps_its_rights(
    identities: Identities, root: Caller
) -> None:
    fresh = await reset_root(identities, DEFAULT_REALM)

    assert await is_root(identities, DEFAULT_REALM, fresh)
    found = await find_principal(identities.persistence, DEFAULT_REALM, "root")
    assert found is not None
    await create_principal(identities, caller_for(found), NewPrincipal("x"))
    with pytest.raises(NoSuchRealm):
        await reset_root(identities, RealmId("nowhere"))


async def test_what_is_missing_of_a_root_is_completed(shared_backend: SharedBackend) -> None:
    async with open_identities_on(shared_backend) as identities:
        operator = operator_caller()
        await create_principal(identities, operator, NewPrincipal("root"))

        assert await bootstrap_realm(identities, DEFAULT_REALM) is None

        root = await find_principal(identities.persistence, DEFAULT_REALM, "root")
        assert root is not None
        roles = (await list_roles_of_principal(identities, caller_for(root), "root")).roles
        assert [each.name for each in roles] == ["service_admin"]
        with pytest.raises(Exception, match="cannot be deleted"):
            await delete_principal_role(identities, operator, "service_admin")
