import asyncio
from datetime import timedelta

import msgspec
import pytest

from cynosure.auth.caller import operator_caller
from cynosure.auth.errors import NoSuchRealm
from cynosure.auth.settings import AuthSettings
from cynosure.auth.tokens.authenticator import TRUSTED_US
from cynosure.auth.tokens.key_store import KeyStore
from cynosure.auth.tokens.signing_keys import (
    SIGNING_KEYS,
    apply_rotation,
    generate_private,
    open_public,
    open_signer,
    public_jwk,
    seal_key,
)
from cynosure.common.clock import SystemClock
from cynosure.common.errors import CorruptObject, Misconfigured, NotAuthenticated
from cynosure.common.keyring import Keyring, sealed_key_id
from cynosure.persistence.history.log import walk_log
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.objects import seal
from cynosure.persistence.references import DEFAULT_REALM, realm_reference
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import RealmId
from tests.auth.tokens.forge import header_of
from tests.auth.tokens.world import KEYRING, changed, open_world, server_on

pytestmark = pytest.mark.anyio
OPERATOR = operator_caller()
OTHER = RealmId("other")


# --- one key ---------------------------------------------------------------------------------------


def test_a_key_opens_with_its_keyring_in_its_realm_and_nowhere_else():
    private = generate_private()
    stored = seal_key(private, KEYRING, DEFAULT_REALM, 1)

    assert open_signer(stored, KEYRING, DEFAULT_REALM).private.private_numbers() == private.private_numbers()
    with pytest.raises(CorruptObject):
        open_signer(stored, KEYRING, OTHER)
    with pytest.raises(Misconfigured):
        open_signer(stored, Keyring({"k2": bytes(32)}, "k2"), DEFAULT_REALM)


def test_what_is_stored_of_a_key_does_not_hold_its_private_part():
    private = generate_private()
    stored = seal_key(private, KEYRING, DEFAULT_REALM, 1)

    blob = seal(SIGNING_KEYS, SIGNING_KEYS.codec.decode(msgspec.msgpack.encode({"keys": [stored]}), 1))

    numbers = private.private_numbers()
    for number in (numbers.p, numbers.q, numbers.d):
        assert number.to_bytes(256, "big").lstrip(b"\0")[:24] not in blob


def test_a_public_part_of_another_key_is_found_out():
    ours, theirs = (seal_key(generate_private(), KEYRING, DEFAULT_REALM, 1) for _ in range(2))
    swapped = msgspec.structs.replace(ours, public=theirs.public)

    with pytest.raises(CorruptObject):
        open_public(swapped)
    with pytest.raises(CorruptObject):
        open_signer(msgspec.structs.replace(swapped, kid=theirs.kid), KEYRING, DEFAULT_REALM)


def test_a_rotation_retires_the_key_before_and_drops_those_that_are_over():
    first, second, third = (
        msgspec.structs.replace(seal_key(generate_private(), KEYRING, DEFAULT_REALM, at), created_us=at)
        for at in (0, 10, 25)
    )

    keys = apply_rotation((first,), second, now_us=10, lifetime_us=10)
    assert [(key.created_us, key.retired_us, key.good_until_us) for key in keys] == [(10, 0, 0), (0, 10, 20)]

    keys = apply_rotation(keys, third, now_us=25, lifetime_us=10)
    assert [(key.created_us, key.retired_us, key.good_until_us) for key in keys] == [(25, 0, 0), (10, 25, 35)]


# --- the keys of a realm ---------------------------------------------------------------------------


async def test_a_realm_has_no_key_before_its_first_token_and_looking_makes_none(world):
    keys = world.tokens.keys

    assert (await keys.load(DEFAULT_REALM)).keys == ()
    assert await keys.load_public(DEFAULT_REALM) == {}


@pytest.mark.parametrize("realm", ["nowhere", "_system", "", "a/b"])
async def test_there_are_no_keys_for_a_realm_that_does_not_exist(world, realm):
    for call in (world.tokens.keys.load, world.tokens.keys.load_signer):
        with pytest.raises(NoSuchRealm):
            await call(RealmId(realm))
    with pytest.raises(NoSuchRealm):
        await world.tokens.keys.rotate(operator_caller(realm=RealmId(realm)))


async def test_servers_that_need_the_first_key_at_once_make_one_and_all_use_it(tmp_path):
    # Who loses a race waits a moment, so time has to pass by itself.
    url, settings, clock = f"sqlite:{tmp_path}/store.db", AuthSettings(), SystemClock()
    async with (
        open_world(clock, url=url) as one,
        open_persistence(url, PersistenceSettings(), clock=clock) as persistence,
        server_on(persistence, clock, settings) as two,
        server_on(persistence, clock, settings) as three,
    ):
        signers = await asyncio.gather(
            *(each.tokens.keys.load_signer(DEFAULT_REALM) for each in (one, two, three) for _ in range(5))
        )

        assert len({signer.kid for signer in signers}) == 1
        assert len((await one.tokens.keys.load(DEFAULT_REALM)).keys) == 1


async def test_realms_have_keys_of_their_own(world):
    other = await world.add_realm("other")

    signers = [await world.tokens.keys.load_signer(realm) for realm in (DEFAULT_REALM, other)]

    assert signers[0].kid != signers[1].kid
    assert set(await world.tokens.keys.load_public(other)) == {signers[1].kid}


async def test_a_key_is_replaced_by_itself_and_its_tokens_stay_good_until_they_expire(manual_clock):
    settings = changed(key_lifetime=timedelta(seconds=20), lifetime=timedelta(seconds=30))
    async with (
        open_world(manual_clock, settings) as world,
        server_on(world.persistence, manual_clock, world.identities.settings) as other,
    ):
        ann = await world.add_principal("ann")
        await world.login(ann)
        manual_clock.step_wall(19)
        before = await world.login(ann)
        manual_clock.step_wall(1)

        after, elsewhere = await world.login(ann), await other.login(ann)

        assert header_of(before)["kid"] != header_of(after)["kid"] == header_of(elsewhere)["kid"]
        for server in (world, other):
            for token in (before, after):
                await server.tokens.authenticator.authenticate(token, DEFAULT_REALM)
        manual_clock.step_wall(30 + 20)
        assert set(await world.tokens.keys.load_public(DEFAULT_REALM)) == {header_of(after)["kid"]}


async def test_a_rotation_by_hand_leaves_the_tokens_of_the_key_before(world):
    ann = await world.add_principal("ann")
    before = await world.login(ann)

    await world.tokens.keys.rotate(OPERATOR)

    assert header_of(await world.login(ann))["kid"] != header_of(before)["kid"]
    await world.tokens.authenticator.authenticate(before, DEFAULT_REALM)


async def test_a_revoked_key_takes_its_tokens_with_it_everywhere(world):
    ann = await world.add_principal("ann")
    seen, unseen = await world.login(ann), await world.login(ann)
    async with server_on(world.persistence, world.clock, world.identities.settings) as other:
        for each in (world, other):
            await each.tokens.authenticator.authenticate(seen, DEFAULT_REALM)

        await world.tokens.keys.rotate(OPERATOR, revoke=True)

        for each in (world, other):
            with pytest.raises(NotAuthenticated):
                await each.tokens.authenticator.authenticate(unseen, DEFAULT_REALM)
        world.clock.step_wall(TRUSTED_US / 1_000_000)
        for each in (world, other):
            with pytest.raises(NotAuthenticated):
                await each.tokens.authenticator.authenticate(seen, DEFAULT_REALM)
        await other.tokens.authenticator.authenticate(await world.login(ann), DEFAULT_REALM)


async def test_rewrapping_leaves_nothing_under_the_old_master_key_and_all_tokens_good(world):
    ann = await world.add_principal("ann")
    token = await world.login(ann)
    await world.tokens.keys.rotate(OPERATOR)
    both = Keyring({"k1": bytes(range(32)), "k2": bytes(32)}, "k2")
    keys = KeyStore(world.persistence, lambda: both, world.identities.settings.tokens)

    assert await keys.rewrap(OPERATOR) == 2
    assert await keys.rewrap(OPERATOR) == 0

    stored = await keys.load(DEFAULT_REALM)
    assert {sealed_key_id(key.sealed) for key in stored.keys} == {"k2"}
    only_new = Keyring({"k2": bytes(32)}, "k2")
    assert open_signer(stored.keys[0], only_new, DEFAULT_REALM).kid == stored.keys[0].kid
    await world.tokens.authenticator.authenticate(token, DEFAULT_REALM)


async def test_changes_of_keys_are_in_the_history_without_the_keys(world):
    await world.tokens.keys.load_signer(DEFAULT_REALM)
    await world.tokens.keys.rotate(operator_caller("olga"))

    state = (await world.persistence.read(realm_reference(DEFAULT_REALM, "settings"))).state
    requests = [
        request async for entry in walk_log(state.store, state.commit_id) for request in entry.record.requests
    ]
    assert [(each.principal, each.operation) for each in requests] == [
        ("olga", "rotate-signing-keys"),
        ("system", "make-signing-key"),
    ]


async def test_a_damaged_key_can_be_replaced(world, manual_clock):
    await world.tokens.keys.load_signer(DEFAULT_REALM)
    wrong = Keyring({"k1": bytes(32)}, "k1")
    async with server_on(world.persistence, manual_clock, world.identities.settings, keyring=wrong) as other:
        with pytest.raises(CorruptObject):
            await other.tokens.keys.load_signer(DEFAULT_REALM)
        with pytest.raises(Misconfigured, match="not the one"):
            await other.tokens.keys.require_keyring(DEFAULT_REALM)

        await other.tokens.keys.rotate(OPERATOR, revoke=True)

        assert (await other.tokens.keys.load_signer(DEFAULT_REALM)).kid
        await other.tokens.keys.require_keyring(DEFAULT_REALM)


async def test_published_keys_are_public_and_have_what_clients_need(world):
    signer = await world.tokens.keys.load_signer(DEFAULT_REALM)
    (stored,) = (await world.tokens.keys.load(DEFAULT_REALM)).keys

    jwk = public_jwk(stored)

    assert {name: jwk[name] for name in ("kty", "use", "alg", "kid", "e")} == {
        "kty": "RSA",
        "use": "sig",
        "alg": "RS256",
        "kid": signer.kid,
        "e": "AQAB",
    }
    assert jwk.keys() == {"kty", "use", "alg", "kid", "e", "n"}


async def test_a_key_that_cannot_be_made_fails_everyone_who_waits_and_the_next_tries_again(manual_clock):
    failures = [RuntimeError("no entropy")]

    def generate():
        if failures:
            raise failures.pop()
        return generate_private()

    async with open_world(manual_clock) as world:
        keys = KeyStore(
            world.persistence, lambda: KEYRING, world.identities.settings.tokens, generate=generate
        )

        results = await asyncio.gather(
            *(keys.load_signer(DEFAULT_REALM) for _ in range(3)), return_exceptions=True
        )

        assert [type(each) for each in results] == [RuntimeError] * 3
        assert (await keys.load_signer(DEFAULT_REALM)).kid


async def test_a_keyring_is_asked_for_only_when_a_key_is_used(world):
    def no_keyring():
        raise AssertionError

    keys = KeyStore(world.persistence, no_keyring, world.identities.settings.tokens)

    assert (await keys.load(DEFAULT_REALM)).keys == ()
