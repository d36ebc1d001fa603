"""Realms: whole or gone, whoever dies or races; and a name that comes back brings nothing back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cynosure.auth.bootstrap import bootstrap_realm, ensure_realms_bootstrapped
from cynosure.auth.caller import Caller, operator_caller
from cynosure.auth.credential_files import CredentialFiles
from cynosure.auth.credentials import Credentials
from cynosure.auth.errors import BuiltIn, NoSuchRealm, RealmClosed, RealmNotEmpty
from cynosure.auth.identities import Identities
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.list_principals import list_principals
from cynosure.auth.principals import find_client, find_principal
from cynosure.auth.realms import (
    CreatedRealm,
    create_realm,
    delete_realm,
    is_being_deleted,
    list_realms,
    load_realm,
    update_realm,
)
from cynosure.common.errors import (
    AlreadyExists,
    BadInput,
    Conflict,
    CynosureError,
    NotAuthenticated,
    NotFound,
    Unavailable,
)
from cynosure.common.secrets import Secret
from cynosure.persistence.commit import Prepared, Request, View
from cynosure.persistence.index import encode_key
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.references import DEFAULT_REALM, REALM_REFERENCES, realm_reference
from cynosure.persistence.spi import RealmId, Reference
from cynosure.testing.small_realm import SharedBackend, caller_for, identities_of, open_identities_on

pytestmark = pytest.mark.anyio

ACME = RealmId("acme")
OLD = Credentials("acme-root", Secret("old-secret"))


@pytest.fixture
async def acme(identities: Identities) -> Caller:
    """The root of a realm of this name."""
    await create_realm(identities, ACME, credentials=OLD)
    return await root_of(identities)


async def root_of(identities: Identities) -> Caller:
    found = await find_principal(identities.persistence, ACME, "root")
    assert found is not None
    return caller_for(found, ACME)


async def put_catalog(identities: Identities) -> None:
    """What creating a catalog does to the realm's list, without its storage."""
    await change_catalogs(identities, b"7")


async def change_catalogs(identities: Identities, value: bytes | None) -> None:
    async def prepare(view: View) -> Prepared[None]:
        return Prepared(None, {"ids": {encode_key("7"): value}})

    catalogs = identities.persistence.committer(realm_reference(ACME, "catalogs"))
    await catalogs.commit(Request(prepare, "root", operation="test"))


async def refs_of(backend: SharedBackend, realm: RealmId = ACME) -> list[str]:
    return sorted(ref.key.name for ref in await backend.list_refs(realm))


async def test_a_new_realm_has_a_root_and_nothing_of_other_realms(identities: Identities) -> None:
    created = await create_realm(identities, ACME, properties={"team": "a"})

    assert created.credentials is not None
    found = await find_client(identities.persistence, ACME, created.credentials.client_id)
    assert found is not None
    assert identities.hasher.find_match(created.credentials.client_secret, found.secrets) is not None
    assert await load_realm(identities.persistence, ACME) == created.entry
    assert created.entry.properties == {"team": "a"}
    assert [each.name for each in await list_realms(identities.persistence)] == ["acme", "default"]
    assert await find_client(identities.persistence, DEFAULT_REALM, created.credentials.client_id) is None


async def test_a_taken_or_malformed_name_is_refused(identities: Identities, acme: Caller) -> None:
    with pytest.raises(AlreadyExists):
        await create_realm(identities, ACME)
    with pytest.raises(BadInput):
        await create_realm(identities, RealmId("a/b"))
    with pytest.raises(BadInput):
        await create_realm(identities, RealmId("b"), properties={"cynosure.x": "1"})
    # The root of the one that exists is as it was.
    assert acme.identity is not None
    await identities.standings.load(ACME, acme.identity)


async def test_properties_are_set_and_removed(identities: Identities, acme: Caller) -> None:
    persistence = identities.persistence
    await update_realm(persistence, ACME, set_properties={"a": "1", "b": "2"})
    await update_realm(persistence, ACME, set_properties={"a": "3"}, remove_properties=("b", "z"))

    assert (await load_realm(persistence, ACME)).properties == {"a": "3"}
    with pytest.raises(NoSuchRealm, match="Realm does not exist: nowhere"):
        await update_realm(persistence, RealmId("nowhere"))
    with pytest.raises(BadInput):
        await update_realm(persistence, ACME, set_properties={"polaris.x": "1"})


async def test_a_deleted_realm_is_gone_with_all_that_was_in_it(
    identities: Identities, acme: Caller, shared_backend: SharedBackend
) -> None:
    assert acme.identity is not None
    async with open_identities_on(shared_backend) as other:
        await other.standings.load(ACME, acme.identity)

        await delete_realm(identities.persistence, ACME)

        for each in (identities, other):
            assert [found.name for found in await list_realms(each.persistence)] == ["default"]
            with pytest.raises(NoSuchRealm):
                await each.standings.load(ACME, acme.identity)
            with pytest.raises(CynosureError):
                await create_principal(each, acme, NewPrincipal("late"))
    assert await refs_of(shared_backend) == []
    with pytest.raises(NoSuchRealm):
        await delete_realm(identities.persistence, ACME)


async def test_the_default_realm_and_one_with_catalogs_stay(identities: Identities, acme: Caller) -> None:
    await put_catalog(identities)
    with pytest.raises(RealmNotEmpty):
        await delete_realm(identities.persistence, ACME)
    with pytest.raises(BuiltIn):
        await delete_realm(identities.persistence, DEFAULT_REALM)

    # And nothing was closed on the way.
    await create_principal(identities, acme, NewPrincipal("x"))
    assert not await is_being_deleted(identities.persistence, ACME)
    await change_catalogs(identities, None)
    await delete_realm(identities.persistence, ACME)


async def test_a_name_that_comes_back_brings_nothing_back(
    identities: Identities, acme: Caller, shared_backend: SharedBackend
) -> None:
    await create_principal(identities, acme, NewPrincipal("etl", client_id="etl-client"))
    await delete_realm(identities.persistence, ACME)

    await create_realm(identities, ACME)

    await assert_new(identities, acme)


async def assert_new(identities: Identities, old_root: Caller) -> None:
    """The realm holds its root, and nothing of the one before knows its way in."""
    persistence = identities.persistence
    assert old_root.identity is not None
    with pytest.raises(NotAuthenticated):
        await identities.standings.load(ACME, old_root.identity)
    listed = await list_principals(identities, operator_caller(realm=ACME))
    assert [each.name for each in listed.principals] == ["root"]
    for client_id in ("etl-client", "acme-root"):
        assert await find_client(persistence, ACME, client_id) is None
    for name in REALM_REFERENCES:
        state = (await persistence.committer(realm_reference(ACME, name)).read()).state
        assert await state.find("marks", encode_key("closed")) is None
        assert state.commit.record.sequence <= 1
    await create_principal(identities, await root_of(identities), NewPrincipal("works"))


async def test_whoever_dies_while_deleting_can_be_finished_by_deleting_or_creating_again() -> None:
    """A crash before each of the writes; every one of them is a step that the others must cope with."""
    steps = 0
    for again in ("delete", "create", "start"):
        for writes in range(100):
            backend = SharedBackend()
            async with open_identities_on(backend) as identities:
                await create_realm(identities, ACME, credentials=OLD)
                old = await root_of(identities)
                backend.writes_left = writes
                try:
                    await delete_realm(identities.persistence, ACME)
                except Unavailable:
                    pass
                else:
                    break
                finally:
                    backend.writes_left = None
                    steps = max(steps, writes)
            async with open_identities_on(backend) as other:
                await _finish(other, again, old)
                if again == "delete":
                    assert await refs_of(backend) == []
    assert steps >= 3 + len(REALM_REFERENCES)


async def _finish(identities: Identities, again: str, old: Caller) -> None:
    persistence = identities.persistence
    is_listed = "acme" in [each.name for each in await list_realms(persistence)]
    is_closed = is_listed and await is_being_deleted(persistence, ACME)
    if again == "delete" or is_listed:
        await delete_realm(persistence, ACME)
    if again == "delete":
        return
    if again == "start" and not is_closed and not is_listed:
        # What a server does that is told to have this realm.
        given = {ACME: Credentials("new-root", Secret("new-secret"))}
        given[DEFAULT_REALM] = Credentials("root", Secret("s3cr3t"))
        await ensure_realms_bootstrapped(identities, given, CredentialFiles(Path("/nonexistent")))
    else:
        await create_realm(identities, ACME, credentials=Credentials("new-root", Secret("new-secret")))
    await assert_new(identities, old)


async def test_a_realm_whose_deletion_was_cut_short_lets_nobody_in(
    identities: Identities, acme: Caller, shared_backend: SharedBackend
) -> None:
    shared_backend.writes_left = 2  # Both marks, and then nothing.
    with pytest.raises(Unavailable):
        await delete_realm(identities.persistence, ACME)
    shared_backend.writes_left = None

    assert await is_being_deleted(identities.persistence, ACME)
    assert acme.identity is not None
    with pytest.raises(NotAuthenticated):
        await identities.standings.load(ACME, acme.identity)
    assert await find_client(identities.persistence, ACME, "acme-root") is None
    with pytest.raises(RealmClosed):
        await create_principal(identities, operator_caller(realm=ACME), NewPrincipal("x"))
    with pytest.raises(RealmClosed):
        await bootstrap_realm(identities, ACME)
    assert await ensure_realms_bootstrapped(identities, {}, CredentialFiles(Path("/nonexistent"))) == []

    await delete_realm(identities.persistence, ACME)
    assert await refs_of(shared_backend) == []


@pytest.mark.parametrize("name", ["catalogs", "principals"])
async def test_a_commit_prepared_in_the_old_realm_never_reaches_the_new_one(
    identities: Identities, acme: Caller, shared_backend: SharedBackend, name: str
) -> None:
    """I36: another server is stopped right before its swap while the realm is deleted and made again."""
    stopped, go_on = asyncio.Event(), asyncio.Event()
    key = realm_reference(ACME, name)
    swapped: list[bool] = []

    async def hold(expected: Reference, updated: Reference, apply: Any) -> bool:
        if expected.key != key or stopped.is_set():
            return await apply()
        stopped.set()
        await go_on.wait()
        won = await apply()
        swapped.append(won)
        return won

    async with open_identities_on(shared_backend) as other:
        shared_backend.rule = hold
        is_of_principals = name == "principals"
        under_way = asyncio.create_task(
            create_principal(other, acme, NewPrincipal("ghost")) if is_of_principals else put_old(other)
        )
        await stopped.wait()
        await delete_realm(identities.persistence, ACME)
        await create_realm(identities, ACME)
        go_on.set()
        (ended,) = await asyncio.gather(under_way, return_exceptions=True)

    assert swapped == [False]
    assert isinstance(ended, NotAuthenticated if is_of_principals else PreparedAgain)
    await assert_new(identities, acme)


class PreparedAgain(NotFound):
    """In another realm than before."""


async def put_old(identities: Identities) -> None:
    """A commit to a list of catalogs at its empty state, which looks like that of a new realm."""
    attempts = 0

    async def prepare(view: View) -> Prepared[None]:
        nonlocal attempts
        attempts += 1
        if attempts > 1:
            raise PreparedAgain("Prepared again")
        return Prepared(None, {"ids": {encode_key("7"): b"7"}})

    catalogs = identities.persistence.committer(realm_reference(ACME, "catalogs"))
    await catalogs.commit(Request(prepare, "root", operation="test"))


async def test_of_several_who_create_one_realm_one_does_and_its_root_is_good(
    identities: Identities, shared_backend: SharedBackend
) -> None:
    async with open_identities_on(shared_backend) as other:
        ended = await asyncio.gather(
            *(create_realm((identities, other)[at % 2], ACME) for at in range(6)), return_exceptions=True
        )

    (made,) = [each for each in ended if isinstance(each, CreatedRealm)]
    assert sum(isinstance(each, AlreadyExists) for each in ended) == 5
    assert made.credentials is not None
    found = await find_client(identities.persistence, ACME, made.credentials.client_id)
    assert found is not None
    assert await refs_of(shared_backend) == sorted(REALM_REFERENCES)


async def test_deleting_and_creating_at_once_never_leaves_half_a_realm(
    identities: Identities, shared_backend: SharedBackend
) -> None:
    async with open_identities_on(shared_backend) as other:
        for _ in range(8):
            ended = await asyncio.gather(
                create_realm(identities, ACME),
                delete_realm(other.persistence, ACME),
                create_realm(other, ACME),
                delete_realm(identities.persistence, ACME),
                return_exceptions=True,
            )
            for each in ended:
                assert not isinstance(each, BaseException) or isinstance(
                    each, (AlreadyExists, NoSuchRealm, Conflict, NotFound)
                ), ended
            names = [each.name for each in await list_realms(identities.persistence)]
            if "acme" in names:
                await delete_realm(identities.persistence, ACME)
            assert await refs_of(shared_backend) == []


async def test_realms_come_and_go_on_a_database_with_two_servers(postgres_schema_url: str) -> None:
    """I36, where heads are read over a network and generations are a column."""
    async with (
        open_persistence(postgres_schema_url, initialise=True) as one,
        open_persistence(postgres_schema_url, initialise=True) as two,
    ):
        here, there = identities_of(one), identities_of(two)
        for _ in range(3):
            ended = await asyncio.gather(
                create_realm(here, ACME, credentials=OLD),
                create_realm(there, ACME, credentials=OLD),
                return_exceptions=True,
            )
            assert sum(isinstance(each, CreatedRealm) for each in ended) == 1, ended
            old = await root_of(there)
            await create_principal(there, old, NewPrincipal("etl", client_id="etl-client"))

            await delete_realm(one, ACME)
            assert old.identity is not None
            with pytest.raises(NoSuchRealm):
                await there.standings.load(ACME, old.identity)
            await create_realm(there, ACME)
            await assert_new(here, old)
            await delete_realm(two, ACME)
        assert await one.backend.list_refs(ACME) == []
