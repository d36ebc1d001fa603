"""Rotating and resetting credentials; where secrets are, and above all where they are not."""

import copy
import io
import logging
import pickle

import msgspec
import pytest

from cynosure.auth.caller import Caller, operator_caller
from cynosure.auth.credentials import Credentials, PrincipalWithCredentials
from cynosure.auth.identities import Identities
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.load_principal import load_principal
from cynosure.auth.operations.provision_principal import provision_principal
from cynosure.auth.operations.reset_credentials import reset_credentials
from cynosure.auth.operations.rotate_credentials import rotate_credentials
from cynosure.auth.principals import find_client
from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.common.errors import AlreadyExists, BadInput
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.small_realm import SharedBackend, caller_for, identities_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def etl(identities: Identities, root: Caller) -> PrincipalWithCredentials:
    return await create_principal(identities, root, NewPrincipal("etl", is_rotation_required=True))


async def is_good(identities: Identities, credentials: Credentials) -> bool:
    found = await find_client(identities.persistence, DEFAULT_REALM, credentials.client_id)
    secrets = () if found is None else found.secrets
    return identities.hasher.find_match(credentials.client_secret, secrets) is not None


async def test_the_secret_before_a_rotation_stays_good_and_the_one_before_that_does_not(
    identities: Identities, etl: PrincipalWithCredentials
) -> None:
    own = caller_for(etl.principal)

    second = await rotate_credentials(identities, own, "etl")
    after_one = [await is_good(identities, each.credentials) for each in (etl, second)]
    third = await rotate_credentials(identities, own, "etl")
    after_two = [await is_good(identities, each.credentials) for each in (etl, second, third)]

    assert (after_one, after_two) == ([True, True], [False, True, True])
    assert [each.generation for each in third.principal.secrets] == [3, 2]
    assert (etl.principal.is_rotation_required, second.principal.is_rotation_required) == (True, False)
    assert third.principal.client_id == etl.principal.client_id


async def test_a_reset_ends_every_earlier_secret(
    identities: Identities, root: Caller, etl: PrincipalWithCredentials
) -> None:
    rotated = await rotate_credentials(identities, caller_for(etl.principal), "etl")

    reset = await reset_credentials(identities, root, "etl")

    assert not await is_good(identities, etl.credentials)
    assert not await is_good(identities, rotated.credentials)
    assert await is_good(identities, reset.credentials)
    assert [each.generation for each in reset.principal.secrets] == [3]
    assert reset.credentials.client_id == etl.credentials.client_id


async def test_credentials_can_be_set_to_given_ones(
    identities: Identities, root: Caller, etl: PrincipalWithCredentials
) -> None:
    wanted = Secret("correct-horse")

    reset = await reset_credentials(identities, root, "etl", client_id="etl-client", client_secret=wanted)

    assert reset.credentials == Credentials("etl-client", wanted)
    assert await is_good(identities, reset.credentials)
    gone = await find_client(identities.persistence, DEFAULT_REALM, etl.credentials.client_id)
    assert gone is None
    other = await create_principal(identities, root, NewPrincipal("other"))
    with pytest.raises(AlreadyExists):
        await reset_credentials(identities, root, "other", client_id="etl-client")
    assert await is_good(identities, other.credentials)
    with pytest.raises(BadInput):
        await reset_credentials(identities, root, "etl", client_secret=Secret("short"))
    with pytest.raises(BadInput):
        await reset_credentials(identities, root, "etl", client_id="with blank")


async def test_only_root_resets_and_only_oneself_rotates(
    identities: Identities, root: Caller, etl: PrincipalWithCredentials
) -> None:
    admin = await create_principal(identities, root, NewPrincipal("admin"))

    with pytest.raises(AccessDenied):
        await reset_credentials(identities, caller_for(etl.principal), "etl")
    with pytest.raises(AccessDenied):
        await rotate_credentials(identities, caller_for(admin.principal), "etl")
    with pytest.raises(AccessDenied):
        await rotate_credentials(identities, root, "etl")

    assert await is_good(identities, etl.credentials)
    assert (await load_principal(identities, root, "etl")).version == 1


async def test_resetting_can_be_switched_off_but_not_for_operators(
    identities: Identities, root: Caller, etl: PrincipalWithCredentials
) -> None:
    strict = identities_of(identities.persistence, AuthSettings(credential_reset=False))
    with pytest.raises(AccessDenied):
        await reset_credentials(strict, root, "etl")
    assert (await reset_credentials(strict, operator_caller(), "etl")).principal.version == 2


async def test_an_account_of_another_issuer_has_no_secret_to_rotate(
    identities: Identities, root: Caller
) -> None:
    ann = await provision_principal(identities, DEFAULT_REALM, "ann", "https://idp ann")
    with pytest.raises(BadInput):
        await rotate_credentials(identities, caller_for(ann), "ann")

    reset = await reset_credentials(identities, root, "ann")

    assert reset.credentials.client_id
    assert await is_good(identities, reset.credentials)


async def test_secrets_are_in_no_stored_byte_feed_text_or_copy(
    identities: Identities,
    root: Caller,
    shared_backend: SharedBackend,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """I21, I35."""
    caplog.set_level(logging.DEBUG)
    made = await create_principal(identities, root, NewPrincipal("etl"))
    rotated = await rotate_credentials(identities, caller_for(made.principal), "etl")
    reset = await reset_credentials(identities, root, "etl", client_secret=Secret("correct-horse-battery"))
    secrets = [each.credentials.client_secret.reveal() for each in (made, rotated, reset)]

    written = b"".join(row.blob for row in await all_rows(shared_backend)) + caplog.text.encode()
    shown = repr((made, rotated, reset)) + str(made) + f"{made.credentials}"

    assert written.count(b"principal-credentials-rotated") > 0
    for secret in secrets:
        assert secret.encode() not in written
        assert bytes.fromhex(secret) not in written if secret.isalnum() else True
        assert secret not in shown
    assert copy.deepcopy(made) == made
    for encode in (msgspec.json.encode, msgspec.msgpack.encode):
        with pytest.raises(TypeError):
            encode(made)
    with pytest.raises(TypeError):
        pickle.dump(made, io.BytesIO())


async def all_rows(backend: SharedBackend) -> list:
    heads = await backend.scan(after=None, limit=100_000)
    return [row for row in await backend.fetch([each.key for each in heads]) if row is not None]
